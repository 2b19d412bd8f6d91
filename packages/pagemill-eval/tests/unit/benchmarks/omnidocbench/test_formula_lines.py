"""Lines of display formulas, by the rules of OmniDocBench v1.7."""

import pytest

from pagemill_eval.benchmarks.omnidocbench.formula_lines import lines_of, rows_of, with_arrays


def lines(latex: str) -> list[str] | None:
    found = lines_of(latex)
    return None if found is None else [line for line, _ in found]


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("$$a=1$$", None),
        ("$$a=1 \\\\ b=2$$", ["a=1", "b=2"]),
        ("\\begin{aligned} a&=1 \\\\[2pt] b&=2 \\tag{1} \\end{aligned}", ["a&=1", "b&=2"]),
        ("\\begin{array}{l} a \\\\ {b \\\\ c} \\end{array}", ["a", "{b \\\\ c}"]),
        ("\\begin{array}{rl} a & 1 \\\\ b & 2 \\end{array}", ["a & 1", "b & 2"]),
        ("\\begin{array}{|c|c|} a & 1 \\\\ b & 2 \\end{array}", None),
        ("\\begin{array}{ccc} a & 1 & 2 \\\\ b & 2 & 3 \\end{array}", None),
        ("\\begin{gather} a \\\\ b \\end{gather} \\quad (3)", ["a", "b"]),
        ("\\begin{gather} a \\\\ b \\end{gather} , c", ["a", "b , c"]),
        ("\\left\\{ \\begin{array}{l} a=1 \\\\ b=2 \\end{array} \\right.", None),
        ("\\left\\{ \\begin{aligned} x+y&=1 \\\\ x-y&=2 \\end{aligned} \\right.", None),
        ("\\begin{cases} 1, & x>0 \\\\ 0, & x<0 \\end{cases}", None),
        ("\\begin{cases} x>0 \\\\ \\Rightarrow y>0 \\end{cases}", ["x>0", "\\Rightarrow y>0"]),
        ("\\begin{matrix} a \\\\ b \\end{matrix}", None),
        ("\\begin{aligned} a", None),
    ],
)
def test_lines(latex: str, expected: list[str] | None) -> None:
    assert lines(latex) == expected


def test_places_are_in_the_formula() -> None:
    latex = "$$\\begin{aligned} a \\\\ bc \\end{aligned}$$"
    assert lines_of(latex) == [("a", latex.index("a \\")), ("bc", latex.index("bc"))]


def test_rows_end_outside_of_environments() -> None:
    assert rows_of("a \\\\* [1em] \\begin{x} b \\\\ c \\end{x} \\\\ \\{ d") == [
        "a",
        "[1em] \\begin{x} b \\\\ c \\end{x}",
        "\\{ d",
    ]


def test_cases_that_are_steps_become_arrays() -> None:
    steps = "\\begin{cases} a \\\\ b \\end{cases} \\Rightarrow c"
    assert with_arrays(steps) == "\\left\\{ \\begin{array}{l} a \\\\ b \\end{array} \\right. \\Rightarrow c"
    values = "\\begin{cases} 1 & a \\\\ 0 & b \\end{cases} \\Rightarrow c"
    assert with_arrays(values) == values


def test_nests_of_any_depth_are_taken() -> None:
    latex = "\\begin{cases}" * 1200 + "a \\\\ b" + "\\end{cases}" * 1200 + "\\Rightarrow c"
    assert with_arrays(latex).count("cases") + with_arrays(latex).count("array") == 2400
