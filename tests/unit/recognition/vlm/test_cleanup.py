import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.document.labels import Task
from pagemill.document.page import ContentFormat
from pagemill.recognition.vlm.cleanup import STEPS, clean
from pagemill.tables.html import parse_table

GLM = ("fences", "delimiters", "leaders", "inline_math")
DEEPSEEK = ("special_tokens", "center", *GLM)


def text(said: str, steps: tuple[str, ...] = GLM) -> str:
    cleaned = clean(said, Task.TEXT, steps)
    assert cleaned.content_format is ContentFormat.MARKDOWN
    assert cleaned.problem is None
    return cleaned.content


def formula(said: str) -> str:
    cleaned = clean(said, Task.FORMULA, GLM)
    assert cleaned.content_format is ContentFormat.LATEX
    return cleaned.content


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("# 7.4 胶缝\n\ntext", "# 7.4 胶缝\n\ntext"),
        ("```markdown\n# Title\n```", "# Title"),
        ("```html\n<a>\n```", "```html\n<a>\n```"),  # a listing that was read
        ("```\nint x;\n```", "```\nint x;\n```"),
        ("a\r\nb\rc\x00\x07", "a\nb\nc"),
        (r"mass \(m\) and \[E=mc^2\]", "mass $m$ and $$E=mc^2$$"),
        (r"a \\[2pt] b", r"a \\[2pt] b"),
        ("degree $ d $ and $ x^{2} $.", "degree $d$ and $x^{2}$."),
        ("from $5 to $7 and $9", "from $5 to $7 and $9"),
        (r"costs \$5 or $ x $", r"costs \$5 or $x$"),
        ("$ a\n\nb $", "$ a\n\nb $"),
        ("$$\nx\n$$", "$$\nx\n$$"),
        ("Chapter 1 ............ 7", "Chapter 1 ... 7"),
        ("Chapter 1 . . . . . . 7", "Chapter 1 ...7"),
        ("wait... what", "wait... what"),
        ("```bash\n$ echo $HOME ......\n```\nand $ x $", "```bash\n$ echo $HOME ......\n```\nand $x$"),
        ("```\n$ open $", "```\n$ open $"),
        (r"use `s/\(a\)/$ x $/` and \(a\)", r"use `s/\(a\)/$ x $/` and $a$"),
        ("Name ________", "Name ___"),
    ],
)
def test_text(said: str, kept: str):
    assert text(said) == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("$$\nx\n$$", "x"),
        (r"\[ a \\[2pt] b \]", r"a \\[2pt] b"),
        (r"\( x \)", "x"),
        ("$x$", "x"),
        (r"$x\$", r"$x\$"),
        ("$$a$$\n\n$$b$$", "a\nb"),
        ("$$a", "a"),
        ("```latex\nx^2\n```", "x^2"),
        (r"\begin{equation} x \end{equation}", r"\begin{equation} x \end{equation}"),
        (r"a \text{ if $y$}", r"a \text{ if $y$}"),
        (". . . . . .", ". . . . . ."),
    ],
)
def test_formulas(said: str, kept: str):
    assert formula(said) == kept


def test_tables_are_made_anew():
    cleaned = clean('```html\n<table onclick="x"><tr><td style="a">1</td></tr></table>\n```', Task.TABLE, GLM)
    assert cleaned.content == "<table><tr><td>1</td></tr></table>"
    assert cleaned.content_format is ContentFormat.HTML
    assert cleaned.problem is None


def test_a_few_words_beside_a_table_are_its_caption():
    cleaned = clean("Table 2. <Yields>\n<table><tr><td>1</td></tr></table>\nSource: R & D", Task.TABLE, GLM)
    caption = "Table 2. &lt;Yields&gt; Source: R &amp; D"
    assert cleaned.content == f"<table><caption>{caption}</caption><tr><td>1</td></tr></table>"
    assert cleaned.problem is None
    table = parse_table(cleaned.content)
    assert table is not None
    assert [cell.text for cell in table.cells] == ["1"]


def test_words_between_tables_of_a_text_stay_where_they_are():
    said = "<table><tr><td>1</td></tr></table>\nwords\n<table><tr><td>2</td></tr></table>"
    cleaned = clean(said, Task.TEXT, ())
    assert (cleaned.content, cleaned.content_format) == (said, ContentFormat.MARKDOWN)


def test_much_beside_a_table_is_told():
    cleaned = clean("words " * 100 + "<table><tr><td>1</td></tr></table>", Task.TABLE, GLM)
    assert cleaned.content == "<table><tr><td>1</td></tr></table>"
    assert cleaned.problem is not None
    assert cleaned.problem.category == "beside_table"
    assert "words words" in cleaned.problem.message


def test_no_table_becomes_text_with_a_problem():
    cleaned = clean("just words", Task.TABLE, GLM)
    assert (cleaned.content, cleaned.content_format) == ("just words", ContentFormat.MARKDOWN)
    assert cleaned.problem is not None
    assert cleaned.problem.category == "no_table"


def test_a_table_where_text_was_asked_for():
    cleaned = clean("<table><tr><td>1</td></tr></table>", Task.TEXT, GLM)
    assert cleaned.content_format is ContentFormat.HTML


def test_what_a_model_thinks_is_no_content():
    assert text("<think>\nA page.\n</think>\n\n# Title", ("reasoning",)) == "# Title"
    assert text("a </think> b", ("reasoning",)) == "a </think> b"


def test_deepseek_tokens():
    said = (
        "<|ref|>title<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\n# T\n\n<|ref|>text<|/ref|><|det|>[[1,2,3,4]]<|/det|>\nwords"
    )
    assert text(said + "<｜end▁of▁sentence｜>", DEEPSEEK) == "# T\n\nwords"
    assert text("a <|grounding|> b", DEEPSEEK) == "a  b"
    assert text("<center>Figure 1</center>", DEEPSEEK) == "Figure 1"
    boxed = r"<|ref|>equation<|/ref|><|det|>[[1,2,3,4]]<|/det|>" + "\n" + r"\[ x \]"
    assert clean(boxed, Task.FORMULA, DEEPSEEK).content == "x"


@settings(deadline=None)
@given(st.text(max_size=300), st.sampled_from([Task.TEXT, Task.TABLE, Task.FORMULA]))
def test_any_answer_becomes_content(said: str, task: Task):
    cleaned = clean(said, task, STEPS)
    assert cleaned.content == cleaned.content.strip()
    assert "\n\n" not in cleaned.content or task is not Task.FORMULA


@settings(deadline=None)
@given(st.lists(st.sampled_from(["$", "$$", "\\", " ", "x", "1", "\n\n", "`", "(", ")"]), max_size=40).map("".join))
def test_inline_math_moves_nothing_but_spaces(said: str):
    squeezed = STEPS["inline_math"](said, Task.TEXT)
    assert squeezed.replace(" ", "").replace("\n", "") == said.replace(" ", "").replace("\n", "")


HOSTILE = [
    *("$" * 200_000, "$ " * 100_000, "\\(" * 100_000, ". " * 200_000, "```" * 100_000, "```\n" * 100_000),
    *("`" * 300_000, "`a\n" * 100_000, "<|ref|>" * 50_000, "</div>\n" * 50_000),
]


@pytest.mark.parametrize(
    ("said", "task"),
    [
        *((said, Task.TEXT) for said in HOSTILE),
        *((said, Task.FORMULA) for said in HOSTILE[:3]),
        *((said, Task.TABLE) for said in HOSTILE[-3:]),
    ],
)
def test_hostile_answers_end(said: str, task: Task):
    clean(said, task, STEPS)


@pytest.mark.parametrize(
    ("said", "cleaned"),
    [
        (r"see \[1\] and \[2, 3–5\]", "see [1] and [2, 3–5]"),
        (r"then \[x + 1\]", "then $$x + 1$$"),
        ("then\n\\[ x \\]\nholds", "then\n$$ x $$\nholds"),
        (r"- \[ x \] done, \[see below\]", "- [ x ] done, [see below]"),
        (r"in \[0, 1) and $x$", r"in \[0, 1) and $x$"),
        ("Total $ 5 and $ 10 due", "Total $ 5 and $ 10 due"),
        ("for $ x $ of $ 2 $ kinds", "for $x$ of $2$ kinds"),
    ],
)
def test_brackets_and_dollars_that_are_no_formulas(said: str, cleaned: str):
    assert text(said) == cleaned


@pytest.mark.parametrize(
    ("said", "latex"),
    [
        ("$x$ and $y$", r"x\text{ and }y"),
        (r"\(x\) \quad \(y\)", r"x \quad y"),
        (r"$x \text{ if $y$ } z$", r"x \text{ if $y$ } z"),
        (r"$x$, \$", r"x, \$"),
        ("$a", "$a"),
        ("plain + words", "plain + words"),
        (r"\(a\)", "a"),
    ],
)
def test_formulas_in_several_pieces(said: str, latex: str):
    assert clean(said, Task.FORMULA, GLM).content == latex
