"""Real answers and real documents: none is called a loop, empty or broken that is not."""

import json
import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from pagemill.document.labels import Task
from pagemill.inference.chat import Answer
from pagemill.recognition.vlm.guard import Flaw, judge

DATA = Path(os.environ.get("PAGEMILL_TEST_DATA", "/nonexistent"))

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DATA.is_dir(), reason="PAGEMILL_TEST_DATA is not set")]

FLAWED = {"01030000000165.md", "01030000000165.md, formula 1"}
"""A formula of one tool's output that repeats itself fifty times and does not end."""


def contents() -> Iterator[tuple[str, Task, str]]:
    """Name, task and text: GLM-OCR's answers; Markdown of three tools, of olmOCR and of people; tables of PubTabNet."""
    tasks = {"table": Task.TABLE, "formula": Task.FORMULA}
    for file in DATA.glob("glm-ocr-examples/*/result.json"):
        for region in chain.from_iterable(json.loads(file.read_text(encoding="utf-8"))):
            if region["content"] and region["label"] != "image":
                task = tasks.get(region["label"], Task.TEXT)
                yield f"{file.parent.name} {region['index']}", task, region["content"]
    for folder in ("dp-bench", "olmocr-bench-sample"):
        for file in DATA.glob(f"{folder}/**/*.md"):
            text = file.read_text(encoding="utf-8")
            yield file.name, Task.TEXT, text
            for number, table in enumerate(re.findall(r"<table.*?</table>", text, re.DOTALL)):
                yield f"{file.name}, table {number}", Task.TABLE, table
            for number, formula in enumerate(re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)):
                yield f"{file.name}, formula {number}", Task.FORMULA, formula
    for name in ("sample_gt", "sample_pred"):
        for key, table in json.loads((DATA / "pubtabnet" / f"{name}.json").read_text(encoding="utf-8")).items():
            yield f"{name} {key}", Task.TABLE, table if isinstance(table, str) else table["html"]


def test_good_content_is_not_flagged():
    seen, flagged = 0, {}
    for name, task, text in contents():
        if text.strip():
            seen += 1
            verdict = judge(Answer(text=text, finish_reason="stop"), task, "Text Recognition:")
            if verdict.flaw:
                flagged[name] = verdict.message
    assert seen > 1000
    assert flagged.keys() <= FLAWED, flagged


def test_what_is_cut_off_is_seldom_called_a_loop():
    """Cut off in the middle of a rule of dashes or of blanks, it looks like one."""
    found = []
    for _, task, text in contents():
        if len(text) > 80 and text[: len(text) // 2].strip():
            found.append(judge(Answer(text=text[: len(text) // 2], finish_reason="length"), task, "OCR:").flaw)
    assert set(found) <= {Flaw.TRUNCATED, Flaw.REPETITION}
    assert found.count(Flaw.REPETITION) < len(found) / 100
