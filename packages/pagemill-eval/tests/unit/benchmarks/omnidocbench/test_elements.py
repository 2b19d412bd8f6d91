import pytest

from pagemill_eval.benchmarks.omnidocbench.elements import Category, elements_of
from pagemill_eval.benchmarks.omnidocbench.normalise import normal_formula, normal_text


def found(markdown: str) -> list[tuple[str, str]]:
    return [(element.category, element.content) for element in elements_of(markdown)]


def test_text_is_cut_at_blank_lines_and_else_at_lines() -> None:
    assert found("# One\ntwo\n\n  three  \n\n\n") == [("text", "# One\ntwo"), ("text", "three")]
    assert found("one\ntwo") == [("text", "one"), ("text", "two")]


def test_starts_do_not_count_separators() -> None:
    assert [element.start for element in elements_of("ab\n\ncd\n\nef")] == [0, 2, 4]


def test_images_fences_and_document_tags_go() -> None:
    assert found("![a](b)<html><body>x</body></html>") == [("text", "x")]
    assert found("```markdown\nx\n```") == [("text", "x")]
    # A code block loses its end and stays text, with its beginning.
    assert found("```python\nx = 1\n```\n\ny") == [("text", "```python\nx = 1"), ("text", "y")]
    assert found("```python\nx = 1 ``` z\n\ny") == [("text", "x = 1"), ("text", "z"), ("text", "y")]
    assert found("_______ a        b") == [("text", "____ a    b")]


def test_display_formulas_leave_the_text_and_inline_ones_stay() -> None:
    elements = elements_of("a $x$ b\n\n$$\ny\n= z$$")
    assert [(each.category, each.content, each.inline) for each in elements] == [
        (Category.TEXT, "a $x$ b", False),
        (Category.EQUATION, "\\[x\\]", True),
        (Category.EQUATION, "\\[ y = z\\]", False),
    ]


def test_only_the_formula_itself_leaves_the_text() -> None:
    assert found("$$x$$\n\n\\[ $$x$$ \\]") == [("equation", "\\[x\\]"), ("equation", "\\[ \\[x\\] \\]")]


def test_sections_are_unwrapped() -> None:
    assert found("\\section{One}\n\n\\section*{Two}") == [("text", "One"), ("text", "Two")]


def test_an_empty_display_formula_stays_in_the_text() -> None:
    assert found("a $$$$") == [("text", "a $$$$"), ("equation", "\\[\\]")]


def test_tables() -> None:
    html = "<table><tr><td><table></table></td></tr></table>"
    assert found(f"a\n\n{html}\n\nb") == [("text", "a"), ("html_table", html), ("text", "b")]
    latex = "\\begin{tabular}{l}a\\end{tabular}"
    # The official scorer takes one character too many.
    assert found(f"{latex}.b") == [("latex_table", f"{latex}."), ("text", "b")]
    assert found("\\begin{table}x\\end{table}") == [("latex_table", "\\begin{table}x\\end{table}")]


def test_markdown_tables_lose_the_line_above_and_cells_like_rules() -> None:
    elements = found("above\n| a | b |\n|---|---|\n| 1: | 2 |\nbelow")
    assert elements == [
        (
            "html_table",
            '<table border="1" >\n    <tr>\n      <td colspan="1" rowspan="1">a</td>\n'
            '      <td colspan="1" rowspan="1">b</td>\n    </tr>\n    <tr>\n'
            '      <td colspan="1" rowspan="1">2</td>\n    </tr>\n</table>',
        ),
        ("text", "below"),
    ]


def test_one_line_of_bars_is_no_table() -> None:
    assert found("a | b |\n\nc") == [("text", "a | b |"), ("text", "c")]


@pytest.mark.parametrize(
    "text", ["", "<table>" * 3000, "$" * 999, "\\begin{tabular}" * 2000, "|" * 5000, "\\title{" * 999]
)
def test_hostile_pages_come_to_an_end(text: str) -> None:
    elements_of(text)


@pytest.mark.parametrize(
    "part", ["![", "\\(", "\\[", "\\title{", "\\begin{table}", "| a |\n", "|x", "<table", "<!--", "$$a$$ "]
)
def test_runaway_pages_take_time_with_their_length(part: str) -> None:
    text = part * (2**16 // len(part))  # minutes, if each opener were looked for to the end of the page
    elements_of(text)
    normal_text(text)
    normal_formula(text)
