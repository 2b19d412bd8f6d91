"""Elements of predictions, by the rules of OmniDocBench v1.7."""

import pytest

from pagemill_eval.benchmarks.omnidocbench.v17_elements import LaterReader


def found(markdown: str) -> list[tuple[str, str]]:
    return [(element.category, element.content) for element in LaterReader().elements(markdown)]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("3 × 4 = 12", "\\[ 3 \\times 4 = 12 \\]"),
        ("□ + 2", "\\[ \\square + 2 \\]"),
        ("$a$ = b", "\\[ a = b \\]"),
        ("They make 12 sheets", None),
        ("a = b", None),
        ("1 + 1 = 2 " * 30, None),
    ],
)
def test_text_may_be_a_formula(text: str, latex: str | None) -> None:
    possible = [content for category, content in found(text) if category == "possible_formula"]
    assert possible == ([] if latex is None else [latex])


def test_descriptions_of_images_may_be_formulas_and_images_leave_spaces() -> None:
    elements = LaterReader().elements("![1 + 2 = 3](a.png)")
    assert [(each.category, each.start, each.end) for each in elements] == [("possible_formula", 0, 19)]
    described = "The image displays a curve of $x^2$ and more."
    assert found(described) == [("text", "The image displays a curve of x^2 and more.")]


def test_cells_that_calculate_are_formulas() -> None:
    table = "<table><tr><td>12 ÷ 4 = 3</td><td>mill</td></tr></table>"
    assert found(table) == [("html_table", table), ("found_formula", "\\[ 12 \\div 4 = 3 \\]")]


def test_arrows_are_formulas() -> None:
    reaction = "2H_2 + O_2 \\xrightarrow{heat} 2H_2O"
    assert found(reaction)[1] == ("found_formula", "\\[ 2H_2 + O_2 \\xrightarrow{\\text{heat}} 2H_2O \\]")


def test_names_within_text_are_no_formulas() -> None:
    assert found("of $x$ and $y1$") == [("text", "of $x$ and $y1$")]
    assert [category for category, _ in found("of $x+1$")] == ["text", "possible_formula", "equation"]


def test_numbers_and_captions_of_formulas_are_text() -> None:
    assert found("$$(1) \\quad x=y \\quad \\text{Energy conservation}$$") == [
        ("equation", "\\[ x=y \\]"),
        ("text", "(1)"),
        ("text", "Energy conservation"),
    ]
    assert found("$$x=y \\quad \\text{if}$$") == [("equation", "\\[x=y \\quad \\text{if}\\]")]


def test_rows_of_calculations_are_divided() -> None:
    elements = LaterReader().elements("$$1+1=2 \\quad 2+2=4$$")
    assert [(each.content, each.start) for each in elements] == [("\\[ 1+1=2 \\]", 0), ("\\[ 2+2=4 \\]", 10)]
    assert len(found("$$x=a \\quad y=b$$")) == 1


def test_blocks_of_html_are_text_and_tables_in_text_are_not_found() -> None:
    assert found("<div><p>One<br>two</p></div>") == [("text", "One\ntwo")]
    assert found("$broken") == [("text", "$broken")]


@pytest.mark.parametrize("part", ["\\[", "$$a$$ ", "\\begin{array}{l}", "\\tag{", "![", "\\quad "])
def test_runaway_pages_take_time_with_their_length(part: str) -> None:
    LaterReader().elements(part * (2**15 // len(part)))
