"""A figure described by a real vLLM with guided JSON: the description is in the record, the Markdown and the index.

The tiny model has nothing to say. What it may say is bounded by the schema, as the server enforces it; a bias makes it
close its strings.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm_process import ServingProcess

MODEL = "glm-ocr"
SAMPLES = Path(__file__).parents[2] / "samples"


def pagemill(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "pagemill", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_description_lands_in_records_markdown_and_search(serving: ServingProcess, tmp_path: Path) -> None:
    vocabulary = json.loads((serving.checkpoint / "tokenizer.json").read_text())["model"]["vocab"]
    bias = {str(vocabulary[piece]): weight for piece, weight in (('"', 20.0), ("]", 0.3), ("}", 0.3), ("n", 0.5))}
    pairs = ", ".join(f'"{token}" = {weight}' for token, weight in bias.items())
    text = (files("pagemill.config") / "models" / f"{MODEL}.toml").read_text(encoding="utf-8")
    card = tmp_path / "terse.toml"
    card.write_text(text.replace("[sampling]", f"[sampling]\nextra.logit_bias = {{ {pairs} }}"), encoding="utf-8")

    out = tmp_path / "out"
    model = ("--describe-server", serving.url, "--describe-model", card)
    pagemill("parse", SAMPLES / "report.pdf", "-o", out, "--pages", "1", "--describe", "figures", *model)
    page = json.loads((out / "ocr_results.jsonl").read_text(encoding="utf-8"))
    (description,) = [region["description"] for region in page["regions"] if region["description"]]
    assert (description["model"], description.get("attempts", 1)) == (MODEL, 1)
    summary = description["summary"]
    assert summary.isalpha()
    assert f": {summary}](" in (out / "documents" / "report.md").read_text(encoding="utf-8")
    pagemill("index", out)
    (hit,) = map(json.loads, pagemill("search", out, summary, "--json").splitlines())
    assert (hit["page_id"], hit["label"]) == ("report_1", "image")
