"""Drawn PDF pages with words in regions that are not running text: each word is in the record."""

import json
from pathlib import Path
from typing import Any

import pytest
from form_pdfs import FormPage
from parse_command import parse, records

pytestmark = pytest.mark.integration

SENTENCE = "the river runs past the old mill and the wheel turns slowly in the morning"


def prose(page: FormPage, y: float) -> None:
    for i in range(4):
        page.text(72, y - 13 * i, SENTENCE, 10)


def grid(page: FormPage, x: float, top: float, width: float, rows: list[list[str]]) -> None:
    bottom, right = top - 16 * len(rows), x + width * len(rows[0])
    for i in range(len(rows) + 1):
        page.draw(f"0.7 w {x} {top - 16 * i} m {right} {top - 16 * i} l S")
    for i in range(len(rows[0]) + 1):
        page.draw(f"{x + width * i} {top} m {x + width * i} {bottom} l S")
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            page.text(x + 4 + width * j, top - 12 - 16 * i, text, 9)


def parsed(page: FormPage, folder: Path) -> tuple[dict[str, Any], Path]:
    (folder / "page.pdf").write_bytes(page.pdf())
    ended = parse(folder / "page.pdf", "-o", folder / "out", "--lang", "en")
    assert ended.returncode == 0, ended.stderr
    (record,) = records(folder / "out")
    return record, folder / "out"


def content_of(record: dict[str, Any], label: str) -> list[str]:
    return [region["content"] for region in record["regions"] if region["label"] == label]


def test_a_cell_that_overflows_its_table_keeps_its_words(tmp_path: Path):
    page = FormPage()
    prose(page, 780)
    rows = [[f"r{i}c{j}" for j in range(4)] for i in range(5)]
    rows[4][3] = "total 4711 EUR including VAT"
    grid(page, 72, 700, 60, rows)
    prose(page, 580)
    record, _ = parsed(page, tmp_path)
    (table,) = content_of(record, "table")
    assert "<td>total 4711 EUR including VAT</td>" in table


@pytest.mark.slow
def test_the_words_of_a_picture_are_searched_and_not_in_the_markdown(tmp_path: Path):
    page = FormPage()
    prose(page, 780)
    page.draw("72 550 m 472 550 l 472 690 l 72 690 l s 0 0 1 rg")
    for i in range(5):
        page.draw(f"{100 + 50 * i} 560 30 {40 + 18 * i} re f")
    page.draw("0 g")
    for i in range(5):
        page.text(100 + 50 * i, 538, f"lab{i}", 10)
    prose(page, 480)
    record, out = parsed(page, tmp_path)
    (picture,) = [region for region in record["regions"] if region["label"] in ("image", "chart")]
    assert picture["content"] == "lab0 lab1 lab2 lab3 lab4"
    assert "lab0" not in record["markdown"]
    (line,) = (out / "parsed_texts.jsonl").read_text(encoding="utf-8").splitlines()
    assert "lab0 lab1 lab2 lab3 lab4" in json.loads(line)["text"]
