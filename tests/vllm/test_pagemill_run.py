"""``pagemill run`` with a real vLLM: both servers, parsing and vectors, killed on the way and gone on with."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
from pagemill_process import PagemillProcess
from paragraph_pages import draw_pages
from reading_run import read_records
from vllm_process import ARGUMENTS, VllmEnvironment, wait_for

from pagemill.config import model_cards
from pagemill.errors import ExitCode

READER, EMBEDDER = "glm-ocr", "qwen3-vl-embedding-2b"
PAGES = 4


def test_the_whole_pipeline_is_killed_and_goes_on(vllm: VllmEnvironment, checkpoints: Path, tmp_path: Path) -> None:
    draw_pages(tmp_path / "pages", PAGES)
    command = ["run", tmp_path / "pages", "-o", tmp_path / "out", "--vllm", vllm.folder, "--profile", "cpu"]
    command += ["--layout-engine", "onnx"]
    command += ["--model", eager_card(READER, tmp_path), "--weights", checkpoints / READER]
    command += ["--embedding-model", eager_card(EMBEDDER, tmp_path), "--embedding-weights", checkpoints / EMBEDDER]

    killed = PagemillProcess(command, vllm.variables, tmp_path / "killed.log")
    try:
        wait_for(lambda: killed.exit_code is not None or "[embed]" in killed.log.read_text(), "the second step")
        assert killed.exit_code is None, killed.log.read_text()
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        killed.wait_until_gone()
    finally:
        killed.clear()
    records = read_records(tmp_path)
    assert len({record["page_id"] for record in records}) == len(records) == PAGES
    assert {region["engine"] for record in records for region in record["regions"]} == {f"vlm:{READER}"}

    resumed = PagemillProcess(command, vllm.variables, tmp_path / "resumed.log")
    try:
        assert resumed.wait() == ExitCode.OK, resumed.log.read_text()
        resumed.wait_until_gone()
    finally:
        resumed.clear()
    assert read_records(tmp_path) == records
    regions = sum(len(record["regions"]) for record in records)
    for name, rows in {"corpus_ocr_text": PAGES, "corpus_images": PAGES, "corpus_regions": regions}.items():
        vectors = np.load(tmp_path / "out" / "embeddings" / f"{name}.npy", allow_pickle=False)
        assert len(vectors) == rows
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-2)


def eager_card(name: str, folder: Path) -> Path:
    """A model card whose servers compile nothing, which takes longer here than all answers."""
    card = (Path(model_cards.__file__).parent / "models" / f"{name}.toml").read_text(encoding="utf-8")
    known, _, rest = card.partition("\nargs = [")
    assert rest
    quoted = ", ".join(f'"{word}"' for word in ARGUMENTS)
    path = folder / f"{name}.toml"
    path.write_text(f"{known}\nargs = [{quoted}, {rest}", encoding="utf-8")
    return path
