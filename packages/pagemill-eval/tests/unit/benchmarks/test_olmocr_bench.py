import json
import os
from pathlib import Path
from typing import Any

import pytest

from pagemill.errors import InputError
from pagemill_eval.benchmark import Prediction, Rules, Status
from pagemill_eval.benchmarks.olmocr_bench import OlmOcrBench, PageTest, final_repeats, normal, run

MARKDOWN = "| Year | Sheets |\n|---|---|\n| 1790 | 120 |\n| 1800 | 240 |"
HTML = (
    '<table><tr><th colspan="2">Mills</th><th>Note</th></tr><tr><td rowspan="2">north</td><td>12</td><td>a</td></tr>'
    "<tr><td>14</td><td>b</td></tr></table>"
)


def passes(markdown: str, **fields: Any) -> bool | None:
    return run(PageTest(pdf="a.pdf", page=1, id="t", **fields), markdown)


def test_text_is_found_with_some_differences() -> None:
    page = "The **quick** brown\nfox “jumps”"
    assert passes(page, type="present", text='quick brown fox "jumps"')
    assert not passes(page, type="present", text="quick brown cat")
    assert passes(page, type="present", text="quick brown fax", max_diffs=2)
    assert passes(page, type="absent", text="cat")
    assert not passes(page, type="present", text="QUICK")
    assert passes(page, type="present", text="QUICK", case_sensitive=False)
    assert not passes(page, type="present", text="jumps", first_n=10)
    assert passes(page, type="present", text="jumps", last_n=10)


def test_order_of_nothing() -> None:
    assert not passes("a b", type="order", before="", after="b")


def test_order() -> None:
    assert passes("one two three", type="order", before="one", after="three")
    assert not passes("three two one", type="order", before="one", after="three")
    assert passes("three one three", type="order", before="one", after="three")
    assert not passes("one", type="order", before="one", after="three")


@pytest.mark.parametrize(
    ("table", "fields", "expected"),
    [
        (MARKDOWN, {"cell": "120", "left": "1790", "down": "240", "top_heading": "Sheets"}, True),
        (MARKDOWN, {"cell": "120", "up": "Sheets", "left_heading": "1790"}, True),
        (MARKDOWN, {"cell": "120", "right": "x"}, True),  # there is none, so that it is not asked for
        (MARKDOWN, {"cell": "120", "top_heading": "Year"}, False),
        (MARKDOWN, {"cell": "121"}, True),  # two thirds alike, and at least a half is asked for
        (MARKDOWN, {"cell": "120", "ignore_markdown_tables": True}, False),
        (HTML, {"cell": "14", "top_heading": "Mills", "left": "north"}, True),
        (HTML, {"cell": "b", "top_heading": "Note"}, True),
        (HTML, {"cell": "b", "top_heading": "Mills"}, True),  # a heading over columns heads those to the right, too
        ("no table", {"cell": "a"}, False),
    ],
)
def test_tables(table: str, fields: dict[str, Any], expected: bool) -> None:
    if fields.get("cell") == "121":
        assert passes(table, type="table", max_diffs=1, **fields) is expected
        assert passes(table, type="table", **fields) is False
    else:
        assert passes(table, type="table", **fields) is expected


def test_huge_spans_do_no_harm() -> None:
    assert passes('<table><tr><td colspan="999999999" rowspan="9999999">a</td></tr></table>', type="table", cell="a")
    assert passes('<table><tr><td colspan="x">a</td></tr></table>', type="table", cell="a")
    many = '<tr><td colspan="1000" rowspan="1000">a</td></tr>' * 200  # 20 million cells
    assert not passes(f"<table>{many}</table>", type="table", cell="a")


def test_formulas_letter_by_letter() -> None:
    assert passes("so $$ e^{x} $$ is", type="math", math="e^{x}")
    assert passes("so \\(a\\) is", type="math", math="a")
    assert passes("no formula", type="math", math="a") is False
    assert passes("$a$", type="math", math="a", ignore_dollar_delimited=True) is False


def test_sound_pages() -> None:
    assert passes("text", type="baseline")
    assert not passes("...", type="baseline")
    assert not passes("中", type="baseline")
    assert not passes("x" + "ab" * 40, type="baseline")
    assert passes("x" + "ab" * 29, type="baseline")
    assert passes("ab", type="baseline", max_length=2)
    assert not passes("abc", type="baseline", max_length=2)
    assert passes("![abc](d)ab", type="baseline", max_length=2, max_length_skips_image_alt_tags=True)


def test_final_repeats() -> None:
    assert final_repeats("abab") == [1, 2, 1, 1, 0]
    assert final_repeats("") == [0] * 5


def test_normal() -> None:
    assert normal("a<br/>**b** _c_ ‘d’ – 5µ") == "a b c 'd' - 5μ"


def bench(folder: Path) -> Path:
    rows = [
        {"pdf": "x/a.pdf", "page": 1, "id": "1", "type": "present", "text": "alpha"},
        {"pdf": "x/a.pdf", "page": 1, "id": "2", "type": "absent", "text": "beta", "checked": "verified", "url": None},
    ]
    (folder / "texts.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    row = {"pdf": "b.pdf", "page": 2, "id": "3", "type": "math", "math": "a+b"}
    (folder / "math.jsonl").write_text(json.dumps(row))
    row = {"pdf": "empty.pdf", "page": 1, "id": "4", "type": "baseline", "max_length": 3}
    (folder / "blanks.jsonl").write_text(json.dumps(row))
    return folder


def test_the_score_is_a_mean_over_files(tmp_path: Path) -> None:
    benchmark = OlmOcrBench()
    samples = benchmark.load(bench(tmp_path))
    assert sorted((sample.id, sample.prediction_names) for sample in samples) == [
        ("b_pg1", ("b_pg1_repeat1.md",)),  # for the baseline test, which is of the first page
        ("b_pg2", ("b_pg2_repeat1.md",)),
        ("empty_pg1", ("empty_pg1_repeat1.md",)),
        ("x/a_pg1", ("x/a_pg1_repeat1.md",)),
    ]
    texts = {"b_pg1": "text", "b_pg2": "$a+b$", "x/a_pg1": "alpha beta", "empty_pg1": ""}
    result = benchmark.result([benchmark.score(each, Prediction(text=texts[each.id])) for each in samples])
    figures = {name: figure.value for name, figure in result.figures.items()}
    assert figures == {
        "overall": pytest.approx((1 + 1 + 1 + 0.5) / 4),
        "pass_rate_baseline": 1.0,
        "pass_rate_blanks": 1.0,
        "pass_rate_math": 1.0,
        "pass_rate_texts": 0.5,
    }


def test_a_missing_page_voids_the_official_score_and_fails_by_ours(tmp_path: Path) -> None:
    benchmark = OlmOcrBench()
    scores = [benchmark.score(each, Prediction()) for each in benchmark.load(bench(tmp_path))]
    assert {score.status for score in scores} == {Status.MISSING}
    assert benchmark.result(scores, Rules.OFFICIAL).figures["overall"].value is None
    assert benchmark.result(scores).figures["overall"].value == 0.0


def test_files_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        OlmOcrBench().load(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"pdf": "../a.pdf", "page": 1, "id": "1", "type": "present"}')
    with pytest.raises(InputError):
        OlmOcrBench().load(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"pdf": "a.pdf", "page": 1, "id": "1", "type": "other"}')
    with pytest.raises(InputError):
        OlmOcrBench().load(tmp_path)


def test_the_stored_predictions() -> None:
    """Counts of the ``olmocr`` package, version 0.4.27; tests of formulas left out."""
    root = os.environ.get("PAGEMILL_TEST_DATA")
    if not root:
        pytest.skip("PAGEMILL_TEST_DATA is not set")
    folder = Path(root) / "olmocr-bench-sample"
    benchmark = OlmOcrBench()
    samples = benchmark.load(folder)
    read = benchmark.predictions(folder / "predictions" / "olmocr_pipeline", samples)
    found: dict[str, list[int]] = {}
    for sample in samples:
        for _, _, kind, passed in benchmark.score(sample, read(sample)).terms["tests"]:
            if kind != "math":
                found.setdefault(kind, [0, 0])[bool(passed)] += 1
    assert found == {"baseline": [1, 20], "present": [6, 24], "absent": [1, 23], "order": [1, 12], "table": [3, 17]}


def test_formulas_are_looked_for_once_through_the_text() -> None:
    """Openers without an end: with a regular expression this took minutes."""
    asked = PageTest(pdf="a.pdf", page=1, id="m", type="math", math="x")
    assert run(asked, "\\( " * 100_000) is False
    assert run(asked, "\\( " * 100_000 + "\\) $x$") is True


@pytest.mark.parametrize("markdown", ["\\(x\\)", "\\[ x \\]", "$$x$$", "$x$", "$a$ and $x$"])
def test_delimiters_of_formulas(markdown: str) -> None:
    assert run(PageTest(pdf="a.pdf", page=1, id="m", type="math", math="x"), markdown) is True


def test_names_of_images_are_skipped_once_through_the_line() -> None:
    asked = PageTest(pdf="a.pdf", page=1, id="b", type="baseline", max_length=3, max_length_skips_image_alt_tags=True)
    assert run(asked, "![a long name](image.png) abc") is True
    assert run(asked, "![a long name(image.png) abc") is False
    assert run(asked, "![" * 100_000 + "](") is True
