"""Stored readings of GLM-OCR's own pipeline become its Markdown, but for differences that the guide defends."""

import os
import re
from pathlib import Path

import pytest

from pagemill.export.document import Document
from pagemill.tables.html import parse_table
from replay import differences, load_examples, replay

DATA = Path(os.environ.get("PAGEMILL_TEST_DATA", "/nonexistent")) / "glm-ocr-examples"
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not DATA.is_dir(), reason="PAGEMILL_TEST_DATA names no folder with glm-ocr-examples"),
]

JOINED = "(The result fails\n\nin characteristic"
"""In "paper": a paragraph that goes on in the right column."""
RAW_TAG = "Address <comp_fi1-1d>"
"""In "code": outside of code, so that a browser shows nothing of it."""


def as_we_write_it(markdown: str) -> str:
    """The reference with each defended difference applied."""
    markdown = re.sub(r"\$ ?([^$\n]+?) ?\$", r"$\1$", markdown)  # formulas close up to their dollars
    markdown = re.sub(r"^## (?=\d+\.\d+ )", "### ", markdown, flags=re.MULTILINE)  # 8.1 stands below 8
    markdown = markdown.replace(JOINED, JOINED.replace("\n\n", " ")).replace(RAW_TAG, RAW_TAG.replace("<", "&lt;"))
    table = parse_table(markdown) if markdown.startswith("<table") else None
    return (table.to_markdown() or "") if table else markdown


async def test_the_reference_is_reproduced():
    records = await replay(DATA)
    examples = load_examples(DATA)
    assert [example.name for example in examples] == ["code", "handwritten", "page", "paper", "seal", "table"]
    for example in examples:
        record = records[example.name]
        assert not record.errors
        assert len(record.regions) == len(example.regions)
        assert Document.from_pages([record]).markdown.strip() == as_we_write_it(example.markdown).strip()
        assert [region.bbox_2d for region in record.regions] == [stored.bbox_2d for stored in example.regions]
    assert not differences(examples[1], records["handwritten"])
    assert differences(examples[0], records["code"])
