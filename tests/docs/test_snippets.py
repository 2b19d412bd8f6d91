"""Code blocks of the documentation that are marked as runnable do run, page by page and in order."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_pages import PAGES, ROOT, blocks, name

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RUNNABLE = [page for page in PAGES if any(block.runs for block in blocks(page))]


@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_snippets_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    slow = shutil.ignore_patterns("makers", "truth", "*.py", "corpus.*", "*-scan.pdf")
    shutil.copytree(ROOT / "samples", tmp_path / "samples", ignore=slow)
    names: dict[str, object] = {}  # what one block of Python defines, the next ones use
    for block in blocks(page):
        if not block.runs:
            continue
        if block.language == "python":
            exec(compile(block.code, name(page), "exec"), names)
            continue
        assert block.language == "sh"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.code], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, f"{block.code}\n{done.stdout}\n{done.stderr}"


def test_pages_have_runnable_snippets():
    told = {name(page) for page in RUNNABLE}
    assert {"docs/index.md", "docs/tutorials/laptop.md", "docs/tutorials/python.md", "docs/tutorials/search.md"} <= told
