"""A page read by a real vLLM with a tiny PaddleOCR-VL: other prompts, another chat template, the same client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reading_run import check_reading

if TYPE_CHECKING:
    from pathlib import Path

    from vllm_process import ServingProcess, VllmEnvironment

MODEL = "paddleocr-vl"


def test_records_hold_what_transformers_reads_in_the_crops(
    serving: ServingProcess, vllm: VllmEnvironment, tmp_path: Path
) -> None:
    check_reading(serving, vllm, tmp_path)
