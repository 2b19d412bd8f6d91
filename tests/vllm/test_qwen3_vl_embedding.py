"""Vectors by a real vLLM with a tiny Qwen3-VL-Embedding: equal to those of transformers, and none lost or doubled.

The tests share one server and one parsed run.
"""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from pagemill_process import PagemillProcess, Target
from pagemill_process import run as run_pagemill
from paragraph_pages import draw_pages
from recording_proxy import Exchange, RecordingProxy
from vllm_process import ServingProcess, VllmEnvironment, kill, wait_for

from pagemill.errors import ExitCode

MODEL = "qwen3-vl-embedding-2b"
PAGES = 4
TOLERANCE = 1e-4

Vectors = dict[tuple[str, str, int | None], NDArray[np.float32]]
"""By file, page and region."""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with records and no vectors."""
    folder = tmp_path_factory.mktemp("parsed")
    command = ["parse", draw_pages(folder / "pages", PAGES), "-o", folder / "out", "--lang", "en", "--no-report"]
    assert run_pagemill(command, dict(os.environ), folder / "log") == ExitCode.OK, (folder / "log").read_text()
    return folder / "out"


@pytest.fixture(scope="module")
def embedded(
    parsed: Path, serving: ServingProcess, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Exchange]]:
    """The run directory with vectors that nothing happened to, and what was asked for them."""
    out = tmp_path_factory.mktemp("embedded") / "out"
    shutil.copytree(parsed, out)
    with RecordingProxy(serving.url) as proxy:
        process = embed(out, proxy.url)
        try:
            assert process.wait() == ExitCode.OK, process.log.read_text()
        finally:
            process.clear()
    return out, [exchange for exchange in proxy.exchanges if exchange.path == "/v1/embeddings"]


def test_vectors_equal_those_of_transformers(
    embedded: tuple[Path, list[Exchange]], serving: ServingProcess, vllm: VllmEnvironment
) -> None:
    out, asked = embedded
    expected = np.array(
        [vector for vectors in vllm.reference(serving.checkpoint, [each.body for each in asked]) for vector in vectors]
    )
    answered = np.array([vector for exchange in asked for vector in vectors_of(exchange)])
    assert np.abs(answered - expected).max() < TOLERANCE
    stored = read_vectors(out)
    assert {file for file, _, _ in stored} == {"corpus_ocr_text", "corpus_images", "corpus_regions"}
    assert len({page for file, page, _ in stored if file == "corpus_images"}) == PAGES
    for vector in stored.values():
        assert np.abs(expected - vector).max(axis=1).min() < TOLERANCE
    # They say something about what was embedded: each page's image has a vector of its own.
    images = np.array([vector for (file, _, _), vector in stored.items() if file == "corpus_images"])
    assert np.abs(images[:, None] - images[None]).max(axis=2)[~np.eye(PAGES, dtype=bool)].min() > 10 * TOLERANCE


def test_kills_of_pagemill_and_of_the_server_lose_and_double_no_vector(
    parsed: Path, embedded: tuple[Path, list[Exchange]], serving: ServingProcess, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(parsed, out)
    whole = read_vectors(embedded[0])
    with RecordingProxy(serving.url) as proxy:
        process = embed(out, proxy.url)
        try:
            wait_for(lambda: process.exit_code is not None or len(proxy.exchanges) > len(whole) // 3, "some vectors")
            assert process.exit_code is None
            process.kill(Target.GROUP)
            process.wait_until_gone()
        finally:
            process.clear()
    with RecordingProxy(serving.url) as proxy:
        process = embed(out, proxy.url)
        try:
            wait_for(lambda: process.exit_code is not None or len(proxy.exchanges) > len(whole) // 3, "more vectors")
            assert process.exit_code is None
            (victim,) = serving.named("vllm")
            kill(victim)
            assert process.wait() == ExitCode.OK, process.log.read_text()
        finally:
            process.clear()
    assert "SIGKILL" in serving.said
    resumed = read_vectors(out)
    assert resumed.keys() == whole.keys()
    for key, vector in whole.items():
        assert np.abs(resumed[key] - vector).max() < TOLERANCE, key


def embed(out: Path, server: str) -> PagemillProcess:
    """Start ``pagemill embed``, one vector a request."""
    command = ["embed", out, "--engine", "vllm", "--model", MODEL, "--server", server, "--batch-size", "1", "--quiet"]
    return PagemillProcess(command, dict(os.environ), out.with_name("embed.log"))


def vectors_of(exchange: Exchange) -> list[NDArray[np.float32]]:
    """The vectors in an answer."""
    assert exchange.status == 200
    assert [each["index"] for each in exchange.answer["data"]] == list(range(len(exchange.body["messages"])))
    return [np.frombuffer(base64.b64decode(each["embedding"]), "<f4") for each in exchange.answer["data"]]


def read_vectors(out: Path) -> Vectors:
    """All vectors of a run directory; each is there once."""
    found: Vectors = {}
    for path in sorted((out / "embeddings").glob("*.npy")):
        vectors = np.load(path)
        rows = pq.read_table(path.with_suffix(".ids.parquet")).to_pylist()
        assert len(rows) == len(vectors)
        for row in rows:
            key = (path.stem, row["page_id"], row["region"])
            assert key not in found
            found[key] = vectors[row["row"]]
    return found
