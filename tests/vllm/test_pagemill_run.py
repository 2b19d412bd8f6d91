"""``pagemill run`` with a real vLLM on the reference corpus in miniature: killed, resumed, published, scored."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import miniature_corpus
import numpy as np
import pytest
from local_hub import LocalHub, Repository
from miniature_corpus import PAGE_IDS, QUESTIONS
from pagemill_process import PagemillProcess
from reading_run import read_records
from vllm_process import ARGUMENTS, ServingProcess, VllmEnvironment, wait_for

from pagemill.config import model_cards
from pagemill.errors import ExitCode

READER, EMBEDDER = "glm-ocr", "qwen3-vl-embedding-2b"


def test_the_reference_corpus_is_killed_resumed_published_and_scored(
    vllm: VllmEnvironment, checkpoints: Path, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    published = miniature_corpus.write(tmp_path / "published")
    command = ["run", f"hf://datasets/{miniature_corpus.NAME}", "-o", tmp_path / "out", "--vllm", vllm.folder]
    command += ["--queries", "auto", "--download", tmp_path / "copies", "--profile", "cpu", "--layout-engine", "onnx"]
    command += ["--model", eager_card(READER, tmp_path), "--weights", checkpoints / READER]
    command += ["--embedding-model", eager_card(EMBEDDER, tmp_path), "--embedding-weights", checkpoints / EMBEDDER]

    with LocalHub() as hub:
        files = {path.name: path.read_bytes() for path in published.iterdir()}
        hub.repositories[miniature_corpus.NAME] = Repository(branches={"main": files})
        variables = vllm.variables | {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
        variables |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        killed = PagemillProcess(command, variables, tmp_path / "killed.log")
        try:
            wait_for(lambda: killed.exit_code is not None or "[embed]" in killed.log.read_text(), "the second step")
            assert killed.exit_code is None, killed.log.read_text()
            os.kill(killed.pid, signal.SIGKILL)
            killed.wait()
            killed.wait_until_gone()
        finally:
            killed.clear()
    assert "2 tables without images skipped" in killed.log.read_text()
    records = read_records(tmp_path)
    assert sorted(record["page_id"] for record in records) == sorted(PAGE_IDS)
    engines = {region["engine"] for record in records for region in record["regions"]}
    assert engines - {None} == {f"vlm:{READER}"}  # pictures have none

    resumed = tmp_path / "resumed.log"  # without the Hub: the copy is whole
    assert run(command, vllm, resumed) == ExitCode.OK, resumed.read_text()
    assert read_records(tmp_path) == records
    for name, rows in {"corpus_images": len(PAGE_IDS), "queries": len(QUESTIONS)}.items():
        vectors = np.load(tmp_path / "out" / "embeddings" / f"{name}.npy", allow_pickle=False)
        assert len(vectors) == rows
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-2)

    log, target = tmp_path / "log", tmp_path / "folder"
    assert run(["publish", tmp_path / "out", "--to", target, "--licence", "cc-by-sa-4.0"], vllm, log) == ExitCode.OK
    pages = datasets.load_dataset(str(target), split="train", cache_dir=str(tmp_path / "cache"))
    assert sorted(pages["page_id"]) == sorted(PAGE_IDS)

    assert run(["index", tmp_path / "out"], vllm, log) == ExitCode.OK, log.read_text()
    serving = ServingProcess(vllm, EMBEDDER, checkpoints, published)
    try:
        serving.wait_until_ready()
        scored = ["eval", "retrieval", tmp_path / "out", "--queries", "auto", "--server", serving.url]
        assert run([*scored, "-o", tmp_path / "scores.json"], vllm, log) == ExitCode.OK, log.read_text()
    finally:
        serving.clear()
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert (scores["queries"], scores["unknown_pages"]) == (len(QUESTIONS), [])


def run(arguments: list[str | Path], vllm: VllmEnvironment, log: Path) -> int:
    """Run ``pagemill`` to its end and give its status; nothing of it is left then."""
    process = PagemillProcess(arguments, vllm.variables, log)
    try:
        status = process.wait()
        process.wait_until_gone()
        return status
    finally:
        process.clear()


def eager_card(name: str, folder: Path) -> Path:
    """A model card whose servers compile nothing, which takes longer here than all answers."""
    card = (Path(model_cards.__file__).parent / "models" / f"{name}.toml").read_text(encoding="utf-8")
    known, _, rest = card.partition("\nargs = [")
    assert rest
    quoted = ", ".join(f'"{word}"' for word in ARGUMENTS)
    path = folder / f"{name}.toml"
    path.write_text(f"{known}\nargs = [{quoted}, {rest}", encoding="utf-8")
    return path
