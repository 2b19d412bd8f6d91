"""The table path on PubTabNet's sample images, read with the engine that is installed by default."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pagemill.document.page import TextLine, Word
from pagemill.evaluation.teds import teds
from pagemill.imaging.transforms import crop_quad
from pagemill.imaging.types import Pixels
from pagemill.recognition.rapidocr_engine import RapidOcrDetector, RapidOcrRecognizer
from pagemill.tables.recognize import recognize_table

pytestmark = pytest.mark.integration


def truth_of(entry: dict[str, object]) -> str:
    """PubTabNet keeps structure tokens and cells apart; a cell's content follows its opening tag."""
    html = entry["html"]
    assert isinstance(html, dict)
    cells = iter(html["cells"])
    pieces = []
    for token in html["structure"]["tokens"]:
        pieces.append(token)
        if token in ("<td>", ">"):
            pieces += next(cells)["tokens"]
    return f"<table>{''.join(pieces)}</table>"


detector = functools.cache(RapidOcrDetector)
recognizer = functools.cache(RapidOcrRecognizer)


def read(pixels: Pixels) -> list[TextLine]:
    detected = detector().detect(pixels)
    texts = recognizer().recognize([crop_quad(pixels, line.polygon) for line in detected])
    lines = []
    for line, text in zip(detected, texts, strict=True):
        corners = np.array(line.polygon)
        (x1, y1), (x2, y2) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
        words = tuple(
            Word(word, (x1 + start * (x2 - x1), y1, x1 + end * (x2 - x1), y2)) for word, start, end in text.word_spans
        )
        lines.append(TextLine(text=text.text, box=(x1, y1, x2, y2), polygon=line.polygon, words=words))
    return lines


@pytest.mark.slow
def test_mean_teds_on_pubtabnet() -> None:
    root = os.environ.get("PAGEMILL_TEST_DATA")
    if not root:
        pytest.skip("PAGEMILL_TEST_DATA is not set")
    folder = Path(root) / "pubtabnet"
    scores = []
    # Every second one: benchmarks/pubtabnet.py measures all.
    for line in (folder / "PubTabNet_Examples.jsonl").read_text().splitlines()[::2]:
        entry = json.loads(line)
        pixels = np.asarray(Image.open(folder / entry["filename"]).convert("RGB"))
        table = recognize_table(pixels, (0, 0, pixels.shape[1], pixels.shape[0]), read(pixels))
        scores.append(teds(table.to_html(), truth_of(entry)) if table else 0.0)
    assert len(scores) == 10
    assert np.mean(scores) >= 0.85, scores
