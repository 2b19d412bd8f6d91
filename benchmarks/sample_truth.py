"""The truth of the samples, and the text of a parsed document that is compared with it."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.document.labels import Label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.page import PageResult, Region

SAMPLES = Path(__file__).parents[1] / "samples"
FURNITURE = {Label.HEADER, Label.FOOTER, Label.NUMBER}
FIGURES = {Label.IMAGE, Label.CHART}
FORMULAS = {Label.DISPLAY_FORMULA, Label.INLINE_FORMULA}

BAR = {
    ("report.pdf", "auto"): 0.005,
    ("notice-ko.pdf", "auto"): 0.005,
    ("report-scan.pdf", "auto"): 0.02,
    ("notice-ko-scan.pdf", "auto"): 0.05,
    ("report.pdf", "never"): 0.005,
    ("notice-ko.pdf", "never"): 0.05,
    ("pages.tiff", "auto"): 0.02,
}
"""Highest character error rate of the body by sample and text-layer mode."""


@functools.cache
def truth_of(name: str) -> dict[str, Any]:
    """The truth of a sample."""
    for path in sorted((SAMPLES / "truth").glob("*.json")):
        truth: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if name in truth["documents"]:
            return truth
    raise LookupError(name)


def is_body(label: str) -> bool:
    """Whether a region's text is compared: running text, headings, lists, captions."""
    return label not in FURNITURE | FIGURES | FORMULAS | {Label.TABLE}


def region_text(region: Region) -> str:
    """Content without list markers, which the truth leaves out too."""
    content = region.content or ""
    return re.sub(r"^\s*[•·▪*-]\s+", "", content, flags=re.MULTILINE) if region.list_item else content


def body(pages: Sequence[PageResult]) -> str:
    """Text of parsed pages."""
    return "\n".join(region_text(region) for page in pages for region in page.regions if is_body(region.label))


def true_body(pages: Sequence[dict[str, Any]]) -> str:
    """Text of the pages of a truth."""
    return "\n".join(element["text"] for page in pages for element in page["elements"] if is_body(element["label"]))
