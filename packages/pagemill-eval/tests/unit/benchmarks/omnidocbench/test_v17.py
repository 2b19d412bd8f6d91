import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pagemill_eval.benchmark import Prediction, Rules, SampleScore
from pagemill_eval.benchmarks.omnidocbench import v17_elements
from pagemill_eval.benchmarks.omnidocbench.v17 import OmniDocBenchV17
from pagemill_eval.benchmarks.omnidocbench.v17_elements import html_of_latex
from pagemill_eval.benchmarks.omnidocbench.v17_normalise import (
    plain_formula,
    plain_latex,
    plain_table,
    plain_text,
    without_tags,
)

TABLE = "<table><tr><td>mill</td><td>sheets</td></tr></table>"


def score(
    tmp_path: Path,
    detections: list[dict[str, Any]],
    markdown: str | None,
    relations: Any = (),
    rules: Rules = Rules.OFFICIAL,
) -> SampleScore:
    page = {
        "page_info": {"image_path": "a.jpg"},
        "layout_dets": [{"anno_id": number, **each} for number, each in enumerate(detections)],
        "extra": {
            "relation": [
                {"relation_type": "truncated", "source_anno_id": one, "target_anno_id": two} for one, two in relations
            ]
        },
    }
    (tmp_path / "OmniDocBench.json").write_text(json.dumps([page]))
    (sample,) = OmniDocBenchV17().load(tmp_path)
    return OmniDocBenchV17().score(sample, Prediction(text=markdown), rules)


def text(content: str, order: int, **more: Any) -> dict[str, Any]:
    return {"category_type": "text_block", "order": order, "text": content, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("① a \\textcircled{b}", "1ab"),
        ("$x^2$", "x2"),
        ("$" + "a^2" * 60 + "$", "a2" * 60),
        ("$\\begin{matrix}a\\end{matrix}$", "beginmatrixaendmatrix"),
        ("$\\frac{a$", "fraca"),
    ],
)
def test_text(given: str, expected: str) -> None:
    assert plain_text(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("$$a \\mid b \\tag*{1}$$", "a|b"),
        ("x_{1}\\,y \\; \\nonumber", "x_1y"),
        ("\\begin{array}{cc}a&b\\end{array}", "ab"),
    ],
)
def test_formula(given: str, expected: str) -> None:
    assert plain_formula(given) == expected


def test_braces_of_formulas_that_are_not_needed_go() -> None:
    assert plain_formula("{{a}} + \\phantom{b{c}}{d_1} \\tag{1 {x}} \\vert") == "a+d_1|"
    assert plain_formula("\\[ {\\alpha\\beta} \\]") == "{\\alpha\\beta}"
    assert plain_formula("\\phantom{a \\phantom{b}") == "{a\\phantomb"  # one that is not closed is the last
    assert plain_formula("\\\\\\,& x") == "\\\\&x"
    assert plain_formula("\\tag \\tagx \\nonumber \\hspace{1em}①") == "\\tag\\tagx1"


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("a + b", "a + b"),
        ("\\alpha_1", "α_1"),
        ("some plain words \\", "some plain words \\"),
        ("\\alpha_1 \\", "\\alpha_1 \\"),
        ("\\left( a", "\\left( a"),
        ("\\begin{a}x\\end{b}", "\\begin{a}x\\end{b}"),
        ("x" * 8001 + "\\alpha", "x" * 8001 + "\\alpha"),
    ],
)
def test_what_is_hardly_latex_stays(latex: str, expected: str) -> None:
    assert plain_latex(latex) == expected


def test_each_text_of_a_cell_is_stripped() -> None:
    assert "<td>H2O</td>" in plain_table("<table><tr><th> H<sub>2</sub> O</th></tr></table>")
    assert plain_table("none") == ""


def test_symbols_in_cells_are_unified() -> None:
    cells = ["$\\alpha$", "✓", "-", "5\\%", "\\(a \\pm b\\)", "Ø", "\u200bx "]
    table = "<table><tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr></table>"
    assert "".join(f"<td>{cell}</td>" for cell in ("α", "√", "—", "5%", "a ± b", "∅", "x")) in plain_table(table)


def test_a_missing_page_is_an_empty_one(tmp_path: Path) -> None:
    found = score(tmp_path, [text("abc", 1), {"category_type": "table", "order": 2, "html": TABLE}], None)
    assert (found.metrics["text_edit_distance"], found.metrics["teds"]) == (1.0, 0.0)


def test_ignored_elements_leave_with_what_belongs_to_them(tmp_path: Path) -> None:
    blocks = [text("gone", 1, ignore=True), text("with it", 2), text("stays", 3)]
    assert score(tmp_path, blocks, "stays", [(0, 1)]).metrics["text_edit_distance"] == 0.0


def test_chains_do_not_repeat(tmp_path: Path) -> None:
    blocks = [text("a" * 8, 1), text("b" * 8, 2), text("c" * 8, 3)]
    found = score(tmp_path, blocks, "a" * 8 + "b" * 8 + "c" * 8, [(0, 1), (1, 2)])
    assert found.metrics["text_edit_distance"] == 0.0


def test_order_has_tables_and_formulas(tmp_path: Path) -> None:
    blocks = [
        text("one paragraph", 1),
        {"category_type": "equation_isolated", "order": 2, "latex": "a=b"},
        {"category_type": "table", "order": 3, "html": TABLE},
    ]
    right, turned = f"one paragraph\n\n$$a=b$$\n\n{TABLE}", f"{TABLE}\n\n$$a=b$$\n\none paragraph"

    def order(markdown: str, rules: Rules) -> float | None:
        return score(tmp_path, blocks, markdown, rules=rules).metrics["reading_order_edit_distance"]

    assert order(right, Rules.PAGEMILL) == 0.0
    assert order(turned, Rules.PAGEMILL) == pytest.approx(2 / 3)
    # The official scorer takes place 0 in the list of predicted tables for none.
    assert order(right, Rules.OFFICIAL) == pytest.approx(1 / 3)


def test_tables_too_many_are_free(tmp_path: Path) -> None:
    blocks = [text("rags water", 1), text("another one", 2), {"category_type": "table", "order": 3, "html": TABLE}]
    extra = "<table><tr><td>rags</td><td>water</td></tr></table>"
    metrics = score(tmp_path, blocks, f"{extra}\n\nanother one\n\n{TABLE}").metrics
    assert (metrics["text_edit_distance"], metrics["teds"]) == (pytest.approx(9 / 19), 1.0)


def test_a_page_with_a_table_that_is_not_scored_counts_0(tmp_path: Path) -> None:
    blocks = [text("rags", 1), {"category_type": "table", "order": 2, "html": ""}]
    assert score(tmp_path, blocks, "rags").metrics["teds"] == 0.0
    blocks[1]["ignore"] = True
    assert score(tmp_path, blocks, "rags").metrics["teds"] is None


def test_relations_that_share_blocks_are_one_group(tmp_path: Path) -> None:
    blocks = [text(letter * 8, order) for order, letter in enumerate("abcd", start=1)]
    found = score(tmp_path, blocks, "".join(each * 8 for each in "abcd"), [(0, 1), (2, 3), (1, 2)])
    assert found.metrics["text_edit_distance"] == 0.0


def test_a_text_with_a_formula_for_a_prediction_is_compared_as_text(tmp_path: Path) -> None:
    assert score(tmp_path, [text("x² = 12345", 1)], "$$x^2 = 12345$$").metrics["text_edit_distance"] == pytest.approx(
        1 / 7
    )


def test_a_formula_with_text_for_a_prediction_stays_one(tmp_path: Path) -> None:
    formula = {"category_type": "equation_isolated", "order": 1, "latex": "$$x=12345$$"}
    metrics = score(tmp_path, [formula], "x = 12345").metrics
    assert (metrics["text_edit_distance"], metrics["formula_edit_distance"]) == (None, 1.0)
    # What looks like a formula may be one: of two signs and a number.
    metrics = score(tmp_path, [formula | {"latex": "x+1=2"}], "x + 1 = 2").metrics
    assert metrics["formula_edit_distance"] == 0.0


def test_latex_tables_without_a_converter_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    table = {"category_type": "table", "order": 1, "html": TABLE}
    latex = "\\begin{tabular}{ll}mill&sheets\\end{tabular}"
    found = score(tmp_path, [table], latex)
    assert (found.metrics["teds"], found.error) == (0.0, "a LaTeX table is not scored: latexmlc is not installed")
    converter = tmp_path / "latexmlc"
    converter.write_text(f'#!/bin/sh\nprintf "%s" "<html>{TABLE}</html>" > "${{5#--dest=}}"\n')
    converter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert score(tmp_path, [table], latex).metrics["teds"] == 1.0


@pytest.mark.parametrize(
    "command",
    [
        "\\input{/etc/hostname}",
        "\\def\\a{\\a}",
        "\\catcode`\\|=0 |input x",
        "^^5cinput x",
        "\\csname input\\endcsname x",
    ],
)
def test_a_latex_table_that_reaches_out_is_not_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command
) -> None:
    converter = tmp_path / "latexmlc"
    converter.write_text(f'#!/bin/sh\nprintf "%s" "<html>{TABLE}</html>" > "${{5#--dest=}}"\n')
    converter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    table = "\\begin{tabular}{ll}mill&%s\\end{tabular}"
    assert html_of_latex(table % command) == ""
    assert "<table>" in html_of_latex(table % "\\textbf{input} \\forall")


def test_a_conversion_is_within_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that fails or takes too long gives no table; none leaves a process."""
    latex, converter = "\\begin{tabular}{ll}mill&sheets\\end{tabular}", tmp_path / "latexmlc"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    writes = f'#!/bin/sh\nprintf "%s" "<html>{TABLE}</html>" > "${{5#--dest=}}"\n'
    converter.write_text(f"{writes}sleep 600 &\necho $! > {tmp_path}/child\n")
    converter.chmod(0o755)
    assert "<table>" in html_of_latex(latex)
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    until = time.monotonic() + 20
    with suppress(FileNotFoundError, ProcessLookupError):
        while child.read_text().split()[2] != "Z":
            assert time.monotonic() < until, "the child of the converter lives on"
            time.sleep(0.01)
    converter.write_text(f"{writes}exit 1\n")
    assert html_of_latex(latex) == ""
    monkeypatch.setattr(v17_elements, "_CONVERSION_S", 0.2)
    converter.write_text(f"{writes}sleep 600\n")
    assert html_of_latex(latex) == ""


@pytest.mark.parametrize("piece", ["<td><table>", "<math>x</math>"])
def test_hostile_tables_take_time_with_their_length(piece: str) -> None:
    """Minutes, if any part took time with its square."""
    assert plain_table("<table><tr><td>b" + piece * 8_000)


def test_numbers_of_formulas_are_taken_out_in_time_with_the_length() -> None:
    assert without_tags("a\\tag{(1)} \\tag*{2{b}} \\tag c \\tag{d") == "a  \\tag c {d"
    assert without_tags("\\tag{" * 50_000) == "{" * 50_000
    assert without_tags("\\tag{1}" * 50_000) == ""
