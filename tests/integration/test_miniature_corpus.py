"""The reference corpus in miniature, from its address on the Hub to its scores."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import miniature_corpus
import numpy as np
import pytest
from forked_command import run_forked
from local_hub import LocalHub, Repository
from miniature_corpus import CORPUS, PAGE_IDS, QUESTIONS, Layout
from pagemill_process import PagemillProcess, wait_for
from stub_process import StubProcess

from pagemill.errors import ExitCode

pytest.importorskip("huggingface_hub")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from run_pipeline import Mill

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ADDRESS = f"hf://datasets/{miniature_corpus.NAME}"
PUBLISHED = "me/kopub-pages"
LINES = ("--layout-engine", "fast", "--lang", "en")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """With the corpus on it."""
    folder = miniature_corpus.write(tmp_path / "published")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with LocalHub() as hub:
        hub.repositories[miniature_corpus.NAME] = Repository(branches={"main": files})
        yield hub


class Shell:
    """Runs commands in a folder, on a machine that knows the Hub."""

    def __init__(self, folder: Path, surroundings: dict[str, str], hub: LocalHub) -> None:
        self.folder = folder
        self.environment = surroundings | {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(folder / "hf"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        self.environment.pop("HF_HUB_OFFLINE", None)

    def run(self, *arguments: str, status: int = ExitCode.OK) -> str:
        done = run_forked(*arguments, cwd=self.folder, env=self.environment)
        said = done.stdout + done.stderr
        assert done.returncode == status, said
        return said

    def page_ids(self, out: str) -> list[str]:
        """Of the pages that were parsed, in input order."""
        lines = (self.folder / out / "ocr_results.jsonl").read_text().splitlines()
        records = sorted(map(json.loads, lines), key=lambda record: record["page_idx"])
        assert {record["status"] for record in records} == {"done"}
        return [record["page_id"] for record in records]


@pytest.fixture
def shell(tmp_path: Path, surroundings: dict[str, str], hub: LocalHub) -> Shell:
    return Shell(tmp_path, surroundings, hub)


def test_the_dataset_as_it_is_published(shell: Shell):
    said = shell.run("parse", ADDRESS, "-o", "out", *LINES)
    assert "2 tables without images skipped: SDS-KoPub-annotations, SDS-KoPub-QA" in said
    assert shell.page_ids("out") == PAGE_IDS
    assert sorted(path.stem for path in (shell.folder / "out" / "documents").glob("*.md")) == ["30", "7"]
    assert f"queries: 3, from {ADDRESS}/{miniature_corpus.QA}" in shell.run("embed", "out", "--queries", "auto")
    assert len(np.load(shell.folder / "out" / "embeddings" / "queries.npy")) == len(QUESTIONS)
    shell.run("index", "out")
    asked = ("eval", "retrieval", "out", "--queries", "auto", "--json")
    scores = json.loads(run_forked(*asked, cwd=shell.folder, env=shell.environment).stdout)
    assert scores["queries"] == len(QUESTIONS)
    assert scores["unknown_pages"] == []
    assert "page 0" not in shell.run("search", "out", "mill", "--top", "9")


@pytest.mark.parametrize("layout", [Layout.FOLDERS, Layout.CACHE])
def test_a_copy_on_this_disk(shell: Shell, layout: Layout):
    miniature_corpus.write(shell.folder / "data", layout)
    said = shell.run("parse", "data", "-r", "-o", "out", *LINES)
    assert "2 tables without images skipped: " in said
    assert sorted(shell.page_ids("out")) == sorted(PAGE_IDS)
    assert sorted(path.stem for path in (shell.folder / "out" / "documents").glob("*.md")) == ["30", "7"]
    assert "queries: 3, from" in shell.run("embed", "out", "--queries", "auto")


def test_one_configuration(shell: Shell):
    said = shell.run("parse", f"{ADDRESS}@main:{CORPUS}/test", "-o", "out", *LINES)
    assert "without images" not in said
    assert shell.page_ids("out") == PAGE_IDS
    assert "queries: 3, from" in shell.run("embed", "out", "--queries", "auto")


def test_a_configuration_that_is_not_there(shell: Shell):
    said = shell.run("parse", f"{ADDRESS}:pages", "-o", "out", *LINES, status=ExitCode.USAGE)
    assert "no configuration 'pages'" in said
    assert "SDS-KoPub-QA, SDS-KoPub-annotations, SDS-KoPub-corpus" in said


def test_queries_alone_are_a_failure_until_their_pages_come(shell: Shell):
    data, corpus = shell.folder / "data", shell.folder / "published" / f"{CORPUS}.parquet"
    data.mkdir()
    (shell.folder / "published" / f"{miniature_corpus.QA}.parquet").rename(data / "qa.parquet")
    assert "no column contains encoded page images" in shell.run(
        "parse", "data", "-o", "out", *LINES, status=ExitCode.INPUT
    )
    corpus.rename(data / "corpus.parquet")
    assert "1 table without images skipped: qa" in shell.run("parse", "data", "-o", "out", *LINES)
    assert sorted(path.stem for path in (shell.folder / "out" / "documents").glob("*.md")) == ["30", "7"]
    assert shell.page_ids("out") == PAGE_IDS


def test_queries_that_do_not_exist_are_reported_before_anything_starts(mill: Mill):
    assert mill.run(*mill.arguments("--queries", "auto")) == ExitCode.INPUT, mill.said
    assert "no table of queries" in mill.said
    assert not mill.out.exists()


def test_a_copy_is_fetched_once(shell: Shell, hub: LocalHub):
    command = ("parse", ADDRESS, "-o", "out", "--download", "copies", *LINES)
    said = shell.run(*command)
    copy = shell.folder / "copies" / miniature_corpus.NAME
    assert f"fetching {miniature_corpus.NAME}: 3 of 3 files" in said
    assert "2 tables without images skipped: SDS-KoPub-annotations, SDS-KoPub-QA" in said
    assert {path.name: path.read_bytes() for path in copy.iterdir() if path.suffix == ".parquet"} == {
        name: data for name, data in hub.repositories[miniature_corpus.NAME].branches["main"].items() if "SDS" in name
    }
    hub.requests.clear()
    assert "fetching" not in shell.run(*command, "--fresh")
    assert shell.page_ids("out") == PAGE_IDS
    assert f"queries: 3, from {copy / miniature_corpus.QA}" in shell.run("embed", "out", "--queries", "auto")
    assert not hub.requests


def test_of_one_configuration_its_files_are_fetched(shell: Shell, hub: LocalHub):
    command = ("parse", f"{ADDRESS}:{CORPUS}", "-o", "out", "--download", "copies", *LINES)
    assert "1 of 1 files" in shell.run(*command)
    assert shell.page_ids("out") == PAGE_IDS
    assert "queries: 3, from hf://" in shell.run("embed", "out", "--queries", "auto")
    hub.requests.clear()
    assert "all 6 pages are parsed" in shell.run(*command, "--check")
    assert not hub.requests


def test_a_download_that_breaks_resumes_and_one_that_is_damaged_is_refused(shell: Shell, hub: LocalHub):
    command = ("parse", ADDRESS, "-o", "out", "--download", "copies", *LINES)
    copy = shell.folder / "copies" / miniature_corpus.NAME
    files = hub.repositories[miniature_corpus.NAME].branches["main"]
    hub.breaks_after = 1_000
    assert "cannot download" in shell.run(*command, status=ExitCode.NETWORK)
    assert not (shell.folder / "out").exists()
    assert not (copy / ".pagemill-download.json").exists()
    hub.breaks_after = None
    hub.damaged = {f"{CORPUS}.parquet"}
    assert "differs from its digest on the Hub" in shell.run(*command, status=ExitCode.NETWORK)
    hub.damaged = set()
    hub.requests.clear()
    assert "there is work left" in shell.run(*command, "--check", status=ExitCode.WORK_LEFT)
    shell.run(*command, "--limit", "1")
    assert (copy / f"{CORPUS}.parquet").read_bytes() == files[f"{CORPUS}.parquet"]
    fetched = [request for request in hub.requests if request.startswith("GET") and "/resolve/" in request]
    assert [request.rsplit("/", 1)[1] for request in fetched] == [f"{CORPUS}.parquet"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_ctrl_c_ends_a_download(shell: Shell, hub: LocalHub):
    hub.may_send.clear()
    command = ("parse", ADDRESS, "-o", "out", "--download", shell.folder / "copies", *LINES)
    run = PagemillProcess(command, shell.environment, shell.folder / "log")
    try:
        wait_for(lambda: any(request.endswith(".parquet") for request in hub.requests), "the download to begin")
        os.killpg(run.pid, signal.SIGINT)
        hub.may_send.set()
        assert run.wait() == ExitCode.INTERRUPTED
        run.wait_until_gone()
    finally:
        run.clear()
    assert "Traceback" not in run.log.read_text()
    assert not (shell.folder / "out").exists()


def test_a_download_of_no_dataset_is_refused(shell: Shell):
    said = shell.run("parse", "published", "-o", "out", "--download", "copies", status=ExitCode.USAGE)
    assert "--download is for datasets on the Hub" in said
    assert not (shell.folder / "out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_the_whole_pipeline_is_killed_resumes_and_is_scored(mill: Mill, hub: LocalHub, tmp_path: Path):
    """The command of the documentation, then its dataset in a folder, loaded; then its own questions."""
    datasets = pytest.importorskip("datasets")
    mill.use(hub)
    mill.words = ("latency=300",)
    command = ["run", ADDRESS, "-o", str(mill.out), "--vllm", str(mill.world.program), "--queries", "auto"]
    command += ["--download", str(tmp_path / "copies"), "--hf-repo", PUBLISHED, "--licence", "cc-by-sa-4.0"]
    command += ["--private", "--profile", "l4", "--port", str(mill.port), "--layout-engine", "fast", "--workers", "2"]
    killed = mill.start(*command)
    wait_for(lambda: killed.exit_code is not None or mill.records(), "the first page")
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.wait_until_gone()
    mill.world.wait_until_gone()
    first = mill.records()
    assert 0 < len(first) < len(PAGE_IDS)
    assert PUBLISHED not in hub.repositories
    hub.requests.clear()

    mill.words = ()
    assert mill.run(*command) == ExitCode.OK, mill.said
    assert "2 tables without images skipped" in mill.said
    mill.assert_all_read(len(PAGE_IDS))
    assert {record["page_id"] for record in mill.records()} == set(PAGE_IDS)
    kept = {record["page_id"]: record for record in mill.records()}
    assert [kept[record["page_id"]] for record in first] == first
    assert not [request for request in hub.requests if "/resolve/" in request and miniature_corpus.NAME in request]
    assert len(np.load(mill.out / "embeddings" / "queries.npy")) == len(QUESTIONS)
    assert "data/train-00000-of-00001.parquet" in hub.repositories[PUBLISHED].branches["main"]

    target = tmp_path / "folder"
    published = ("publish", str(mill.out), "--to", str(target), "--licence", "cc-by-sa-4.0", "--page-images")
    assert mill.run(*published) == ExitCode.OK, mill.said
    pages = datasets.load_dataset(str(target), split="train", cache_dir=str(tmp_path / "cache"))
    assert sorted(pages["page_id"]) == sorted(PAGE_IDS)
    assert set(pages["status"]) == {"done"}
    assert pages[0]["image"].size == (300, 400)

    assert mill.run("index", str(mill.out)) == ExitCode.OK, mill.said
    scores = tmp_path / "scores.json"
    scored = ["eval", "retrieval", str(mill.out), "--queries", "auto", "-o", str(scores)]
    with StubProcess("--model", "qwen3-vl-embedding-2b", "--dimension", "8") as stub:
        assert mill.run(*scored, "--server", stub.url) == ExitCode.OK, mill.said
    result = json.loads(scores.read_text())
    assert (result["queries"], result["unknown_pages"]) == (len(QUESTIONS), [])
    assert set(result["parts"]["fused"]["by_type"]) == {"text", "cross", "visual"}
