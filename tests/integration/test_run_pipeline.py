"""``pagemill run`` from page images to a published dataset, with a vLLM that answers and a Hub on this machine."""

import os
import pty
import re
import select
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from local_hub import TOKEN, LocalHub
from pagemill_process import PATIENCE_S, wait_for
from run_pipeline import PAGES, Mill
from stub_process import StubProcess

from pagemill.errors import ExitCode

pytest.importorskip("aiohttp")


pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]

REPO = "mills/pages"
PUBLISHED = ("--hf-repo", REPO, "--licence", "cc-by-4.0")


@contextmanager
def command_lines(word: bytes) -> Iterator[set[bytes]]:
    """The command lines with this word, of any process of this machine, while it is entered."""
    seen: set[bytes] = set()
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.update(line for line in (path.read_bytes(),) if word in line)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()


def test_pages_are_read_embedded_and_published(mill: Mill, hub: LocalHub):
    mill.use(hub)
    with command_lines(str(mill.out).encode()) as seen:
        assert mill.run(*mill.arguments("--queries", str(mill.queries), *PUBLISHED)) == ExitCode.OK, mill.said
    mill.assert_all_read()
    vectors = mill.out / "embeddings"
    assert np.load(vectors / "corpus_ocr_text.npy").shape == (PAGES, 8)
    assert np.load(vectors / "corpus_images.npy").shape == (PAGES, 8)
    assert np.load(vectors / "queries.npy").shape == (1, 8)
    files = hub.repositories[REPO].branches["main"]
    assert {"README.md", "data/train-00000-of-00001.parquet"} <= files.keys()
    assert any(path.startswith("embeddings/") for path in files)
    served = [life["argv"][life["argv"].index("--served-model-name") + 1] for life in mill.world.lives()]
    assert served == ["glm-ocr", "qwen3-vl-embedding-2b"]  # one after the other, each once
    assert any(b"publish" in line for line in seen)
    assert not [line for line in seen if TOKEN.encode() in line]
    assert not [path for path in mill.log.parent.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_each_step_alone(mill: Mill, hub: LocalHub):
    mill.use(hub)
    for step, lives in (("ocr", 1), ("embed", 2), ("upload", 2)):
        assert mill.run(*mill.arguments("--step", step, *PUBLISHED)) == ExitCode.OK, mill.said
        assert len(mill.world.lives()) == lives
        assert (mill.out / "embeddings").exists() == (step != "ocr")
        assert (REPO in hub.repositories) == (step == "upload")
    mill.assert_all_read()


def test_a_server_that_dies_comes_back_and_nothing_is_lost(mill: Mill):
    mill.words = ("dies-after=5",)
    assert mill.run(*mill.arguments("--step", "ocr")) == ExitCode.OK, mill.said
    assert len(mill.world.lives()) == 2
    assert "starting again" in mill.said
    mill.assert_all_read()


def test_a_page_that_fails_costs_neither_the_others_nor_the_next_step(mill: Mill):
    (mill.scans / "torn.png").write_bytes((mill.scans / "page-0.png").read_bytes()[:200])
    assert mill.run() == ExitCode.PAGES_FAILED, mill.said
    assert np.load(mill.out / "embeddings" / "corpus_ocr_text.npy").shape == (PAGES, 8)


def test_servers_of_others_are_used_and_left_alone(mill: Mill):
    answers = ("--text", "Read from {image}", "--dimension", "8")
    with (
        StubProcess("--model", "glm-ocr", *answers) as reader,
        StubProcess("--model", "qwen3-vl-embedding-2b", *answers) as embedder,
    ):
        run = mill.start(*mill.arguments("--server", f"{reader.url}/v1", "--embedding-server", embedder.url))
        assert run.wait() == ExitCode.OK, mill.said
        assert reader.counts()["requests"] and embedder.counts()["embeddings"]  # neither has ended
    assert not mill.world.lives()
    mill.assert_all_read()
    assert np.load(mill.out / "embeddings" / "corpus_images.npy").shape == (PAGES, 8)


def test_a_server_of_others_that_is_not_there_is_reported_before_anything_starts(mill: Mill):
    assert mill.run(*mill.arguments("--server", "http://127.0.0.1:1")) == ExitCode.NETWORK
    assert "cannot be reached" in mill.said
    assert not mill.out.exists()


def test_this_machines_processor_does_it_without_any_server(mill: Mill):
    arguments = [*mill.arguments("--recognition-engine", "lines", "--embedding-model", "ngram")]
    place = arguments.index("--vllm")
    del arguments[place : place + 2]
    assert mill.run(*arguments) == ExitCode.OK, mill.said
    assert len(mill.records()) == PAGES
    assert (mill.out / "embeddings" / "corpus_ocr_text.npy").exists()
    assert not mill.world.lives()


def test_a_token_that_is_missing_is_reported_before_hours_of_parsing(mill: Mill):
    assert mill.run(*mill.arguments(*PUBLISHED)) == ExitCode.MISSING_DEPENDENCY
    assert "hf auth login" in mill.said
    assert not mill.out.exists()


def test_the_commands_of_a_dry_run_work_when_they_are_pasted(mill: Mill):
    asked = [sys.executable, "-m", "pagemill", *mill.arguments("--dry-run")]
    printed = subprocess.run(asked, env=mill.environment(), capture_output=True, text=True, check=True).stdout
    assert not mill.world.lives()
    lines = [shlex.split(line, comments=True) for line in printed.splitlines()]
    for server, command in zip(lines[1::3], lines[2::3], strict=True):
        with subprocess.Popen(server, env=mill.environment(), stdout=subprocess.PIPE, text=True) as served:
            try:
                assert first_line(served) == command[-1]  # it says so when it answers
                assert command[0] == "pagemill"
                assert mill.start(*command[1:]).wait() == ExitCode.OK, mill.said
            finally:
                served.terminate()
                served.wait(PATIENCE_S)
    mill.assert_all_read()
    assert np.load(mill.out / "embeddings" / "corpus_images.npy").shape == (PAGES, 8)


def test_on_a_terminal(mill: Mill):
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "pagemill", *mill.arguments()]
    with subprocess.Popen(
        command, env=mill.environment(), stdin=child, stdout=child, stderr=child, start_new_session=True
    ) as run:
        os.close(child)
        shown = read_terminal(parent)
        assert run.wait(PATIENCE_S) == ExitCode.OK, shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"\[ocr\] pagemill parse .*--server http", plain.replace("\r\n", ""))
    assert "[embed] pagemill embed" in plain
    assert "Traceback" not in plain
    wait_for(lambda: not mill.world.processes(), "the end of all processes")


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE_S)[0], "it says nothing"
    return process.stdout.readline().strip()


def read_terminal(descriptor: int) -> str:
    shown = b""
    while True:
        assert select.select([descriptor], [], [], PATIENCE_S)[0], shown
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # its other end is closed
            data = b""
        if not data:
            os.close(descriptor)
            return shown.decode()
        shown += data
