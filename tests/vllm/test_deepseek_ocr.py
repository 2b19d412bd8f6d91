"""A page given as a whole to a real vLLM with DeepSeek-OCR's code: the card's flags and fields, and special tokens."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image, ImageDraw

from pagemill.config.model_cards import load_card

if TYPE_CHECKING:
    from pathlib import Path

    from vllm_process import ServingProcess

MODEL = "deepseek-ocr"
_GUARD = next(word for word in load_card(MODEL).server.args if "NGram" in word)
ARGUMENTS = ("--load-format", "dummy", "--logits-processors", _GUARD, "dictated_answer:DictatedAnswer")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page so small that the model looks at it once, which takes some ten seconds."""
    image = Image.new("RGB", (480, 620), "white")
    ImageDraw.Draw(image).text((50, 50), "baran beran", fill="black")
    path = tmp_path / "page.png"
    image.save(path)
    return path


def parse(page: Path, out: Path, url: str, model: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "pagemill", "parse", page, "-o", out, "--recognition-engine", "vlm"]
    subprocess.run([*command, "--model", model, "--served-model", MODEL, "--server", url], check=False)
    (line,) = (out / "ocr_results.jsonl").read_text().splitlines()
    record: dict[str, Any] = json.loads(line)
    return record


def test_a_page_comes_back_as_regions(serving: ServingProcess, page: Path, tmp_path: Path) -> None:
    record = parse(page, tmp_path / "out", serving.url, MODEL)
    assert (record["status"], record["errors"]) == ("done", [])
    assert [(region["label"], region["bbox_2d"], region["content"]) for region in record["regions"]] == [
        ("doc_title", [100, 50, 901, 90], "baran beran"),
        ("image", [100, 320, 480, 601], None),
        ("table", [521, 320, 901, 601], "<table><tr><td>bisel</td></tr></table>"),
    ]
    (crop,) = record["image_crops"]
    assert (tmp_path / "out" / crop["path"]).exists()


def test_without_the_field_for_special_tokens_the_places_are_lost_and_that_is_reported(
    serving: ServingProcess, page: Path, tmp_path: Path
) -> None:
    card = tmp_path / "plain.toml"
    text = (files("pagemill.config") / "models" / f"{MODEL}.toml").read_text(encoding="utf-8")
    card.write_text(text.replace("extra.skip_special_tokens = false\n", ""), encoding="utf-8")
    record = parse(page, tmp_path / "out", serving.url, str(card))
    assert [error["category"] for error in record["errors"]] == ["no_grounding"]
    assert "skip_special_tokens" in record["errors"][0]["remedy"]
    assert "baran beran" in record["markdown"]
