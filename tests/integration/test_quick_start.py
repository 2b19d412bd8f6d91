"""``pagemill run`` as its documentation begins: without INPUT and licence, on a Hub with the miniature corpus."""

import miniature_corpus
import numpy as np
import pytest
from local_hub import TOKEN, LocalHub
from miniature_corpus import PAGE_IDS, QUESTIONS
from test_miniature_corpus import ADDRESS, LINES, Shell, hub, shell

from pagemill.errors import ExitCode

__all__ = ["hub", "shell"]  # fixtures
pytestmark = pytest.mark.integration

QUICK_START = ("run", *LINES, "--recognition-engine", "lines", "--embedding-model", "ngram", "--hf-repo", "me/pages")
"""Without INPUT and licence."""


@pytest.mark.slow
def test_the_quick_start_as_published(shell: Shell, hub: LocalHub):
    said = shell.run(*QUICK_START, "--hf-token", TOKEN, "--resume")
    assert f"no INPUT: parsing the reference corpus, {ADDRESS}" in said
    assert f"the pages are published under cc-by-sa-4.0, according to {ADDRESS}/README.md" in said
    assert "output contains no run to resume: starting one" in said
    assert shell.page_ids("output") == PAGE_IDS
    assert len(np.load(shell.folder / "output" / "embeddings" / "queries.npy")) == len(QUESTIONS)
    published = hub.repositories["me/pages"].branches["main"]
    assert 'license: "cc-by-sa-4.0"' in published["README.md"].decode()
    again = shell.run(*QUICK_START, "--hf-token", TOKEN, "--resume=required")
    assert "nothing to do" in again
    shell.run("parse", ADDRESS, "-o", "other", "--download", "copies", *LINES)
    hub.requests.clear()
    dry = shell.run(*QUICK_START, "-o", "other", "--download", "copies", "--dry-run")
    assert f"according to copies/{miniature_corpus.NAME}/README.md" in dry.replace(f"{shell.folder}/", "")
    assert "--licence cc-by-sa-4.0" in dry
    assert not hub.requests


def test_an_upload_takes_the_licence_of_the_card_or_is_refused_before_anything_starts(shell: Shell, hub: LocalHub):
    dry = shell.run(*QUICK_START, "--dry-run")
    assert "pagemill publish output --repo me/pages --licence cc-by-sa-4.0" in dry
    files = hub.repositories[miniature_corpus.NAME].branches["main"]
    files["README.md"] = files["README.md"].replace(b"license:", b"licence:")
    said = shell.run(*QUICK_START, "--hf-token", TOKEN, status=ExitCode.USAGE)
    assert f"no dataset card of {ADDRESS} names one" in said
    assert not (shell.folder / "output").exists()
