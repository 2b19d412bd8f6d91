import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.recognition.vlm.table_answers import parse_otsl, read_table
from pagemill.tables.html import parse_table


def html(answer: str) -> str:
    read = read_table(answer)
    assert read is not None
    return read[0].to_html()


@pytest.mark.parametrize(
    ("answer", "made"),
    [
        ("<TABLE><TR><TD>a<TD>b</TABLE>", "<tr><td>a</td><td>b</td></tr>"),
        ("<table><tr><td>a", "<tr><td>a</td></tr>"),
        ("<table><tr><td>$a<b$ and $x < y$</td></tr></table>", "<tr><td>$a&lt;b$ and $x &lt; y$</td></tr>"),
        (
            "<table><tr><td>a<b and b>c, p<p or q>p</td></tr></table>",
            "<tr><td>a&lt;b and b&gt;c, p&lt;p or q&gt;p</td></tr>",
        ),
        ('<table border><tr><td nowrap><b class="x">a</b> <i>b</i></td></tr></table>', "<tr><td>a b</td></tr>"),
        ("<table><tr><td>12</td><td>13</td></tr><tr><t", "<tr><td>12</td><td>13</td></tr>"),
        ('<table><tr><td>12</td><td>13</td></tr><tr><td rowspan="', "<tr><td>12</td><td>13</td></tr>"),
        ("<table><tr><td>12</td><td>13</", "<tr><td>12</td><td>13</td></tr>"),
        ("<fcel>12<fcel>13<n", "<tr><td>12</td><td>13</td></tr>"),
        ("<table><tr><td>12<sup>3</sup> H<sub>2</sub>O</td></tr></table>", "<tr><td>12³ H₂O</td></tr>"),
        ("<table><tr><td>İ<td>ß</table>", "<tr><td>İ</td><td>ß</td></tr>"),
        ("<table><tr><td><script>x()</script>a</td></tr></table>", "<tr><td>a</td></tr>"),
        ("<fcel>a<fcel>b<nl><fcel>1<ecel><nl>", "<tr><td>a</td><td>b</td></tr><tr><td>1</td><td></td></tr>"),
        (
            "<fcel>a<lcel><fcel>b<nl><ucel><xcel><fcel>c<nl><fcel>1<fcel>2<ecel><nl>",
            '<tr><td rowspan="2" colspan="2">a</td><td>b</td></tr><tr><td>c</td></tr>'
            "<tr><td>1</td><td>2</td><td></td></tr>",
        ),
        ("<ched>h<nl><fcel>1<nl>", "<thead><tr><th>h</th></tr></thead><tbody><tr><td>1</td></tr></tbody>"),
        (
            "||a|b|\n|---|---|---|\n|x|1<br>2||",
            "<thead><tr><th></th><th>a</th><th>b</th></tr></thead><tbody><tr><td>x</td><td>1<br>2</td><td></td></tr></tbody>",
        ),
        (
            "| a | b |\n|---|:-:|\n| 1 | 2\\|3 |",
            "<thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2|3</td></tr></tbody>",
        ),
    ],
)
def test_tables(answer: str, made: str):
    assert html(answer) == f"<table>{made}</table>"


@pytest.mark.parametrize("answer", ["", "words", "a | b", "<td>1</td>", "<nl>", "|"])
def test_no_table(answer: str):
    assert read_table(answer) is None


def test_otsl_never_covers_a_cell_of_its_own():
    table, _ = parse_otsl("<fcel>a<lcel><lcel><nl><ucel><fcel>b<fcel>c<nl>")
    assert table is not None
    assert sorted(cell.text for cell in table.cells if cell.text) == ["a", "b", "c"]


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["fcel", "ecel", "lcel", "ucel", "xcel", "ched"]), max_size=6), min_size=1, max_size=6
    )
)
def test_otsl_of_any_shape_keeps_every_text_once(rows: list[list[str]]):
    said, number = "", 0
    texts = []
    for row in rows:
        for kind in row:
            said += f"<{kind}>"
            if kind in ("fcel", "ched"):
                number += 1
                texts.append(f"t{number}")
                said += texts[-1]
        said += "<nl>"
    table, _ = parse_otsl(said)
    if table is None:
        assert {"lcel", "ucel", "xcel"}.issuperset(kind for row in rows for kind in row)
        return
    assert sorted(cell.text for cell in table.cells if cell.text) == sorted(texts)
    slots = sum(cell.row_span * cell.column_span for cell in table.cells)
    assert slots == table.rows * table.columns
    assert parse_table(table.to_html()) is not None


def test_words_beside_a_table_are_told_and_further_tables_are_rows():
    answer = read_table(
        "x <table><caption>Cap</caption><tr><td>1</td></tr></table> y "
        "<table><caption>Second</caption><tr><td>2</td><td>3</td></tr></table>"
    )
    assert answer is not None
    assert answer[1] == "x y Second"
    assert answer[0].to_html() == (
        "<table><caption>Cap</caption><tr><td>1</td><td></td></tr><tr><td>2</td><td>3</td></tr></table>"
    )


def test_a_table_over_the_limits_is_not_lost_beside_another_one():
    small, wide = "<table><tr><td>small</td></tr></table>", "<tr>" + "<td>wide</td>" * 500 + "</tr>"
    large = f"<table>{wide}{'<tr><td>long</td></tr>' * 500}</table>"
    assert read_table(large) is None  # the cleanup keeps the text of the answer, with a problem
    assert read_table(small + large) is None
    assert read_table(large + small) is None


@pytest.mark.parametrize("inside", ["words", "<caption>words</caption>", "<tr>words</tr>"])
def test_words_of_a_table_without_cells_are_told(inside: str):
    answer = read_table(f"<table>{inside}</table><table><tr><td>1</td></tr></table>")
    assert answer is not None
    assert (answer[0].to_html(), answer[1]) == ("<table><tr><td>1</td></tr></table>", "words")


def test_a_table_in_a_cell_ends_no_table():
    answer = read_table("<table><tr><td>a<table><tr><td>in</td></tr></table></td><td>z</td></tr></table> after")
    assert answer is not None
    assert answer[0].to_html() == "<table><tr><td>a<br>in</td><td>z</td></tr></table>"
    assert answer[1] == "after"


def test_a_table_that_is_not_closed_before_the_next_one_keeps_its_rows_and_those_of_the_next():
    answer = read_table("<table><tr><td>a</td></tr><table><tr><td>b</td></tr></table> after")
    assert answer is not None
    assert answer[0].to_html() == "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>"
    assert answer[1] == "after"


def test_what_stands_around_otsl_is_told():
    answer = read_table("Table 1 <fcel>a<fcel>b<nl><fcel>c<ecel><nl> Source: R")
    assert answer is not None
    assert answer[1] == "Table 1 Source: R"


@given(st.lists(st.lists(st.text("ab |", max_size=4), min_size=2, max_size=4), min_size=2, max_size=4))
def test_markdown_tables_keep_every_cell_in_its_column(rows: list[list[str]]):
    lines = ["|".join(text.replace("|", "\\|") for text in row) for row in rows]
    answer = read_table("\n".join(f"|{line}|" for line in lines))
    assert answer is not None
    columns = max(map(len, rows))
    grid = [[""] * columns for _ in rows]
    for cell in answer[0].cells:
        grid[cell.row][cell.column] = cell.text
    assert grid == [[text.strip() for text in row] + [""] * (columns - len(row)) for row in rows]


@pytest.mark.parametrize(
    "answer",
    [
        "<table" * 50_000,
        "<table>" + "<" * 300_000,
        "<fcel>" * 60_000,
        "<fcel><lcel>" * 5_000,
        "<fcel><nl>" * 9_000,
        "<fcel>" + "<lcel>" * 9_000 + "<nl>" + "<ucel>" * 9_000,
        "|" * 300_000,
        "|-" * 150_000,
        "|a|\n" * 80_000,
        "<table>" + "<caption" * 40_000,
        "<table>" * 50_000,
        "<table><tr><td>1</table>" * 5_000,
        "</table>" * 50_000,
    ],
)
def test_hostile_answers_end(answer: str):
    read_table(answer)


def test_signs_beside_a_table_are_no_tags():
    read = read_table("<center>For a<b and b>c</center><table><tr><td>1</td></tr></table>")
    assert read is not None
    assert read[1] == "For a<b and b>c"
