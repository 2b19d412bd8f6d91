import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.document.labels import Task
from pagemill.inference.chat import Answer
from pagemill.recognition.vlm.guard import AnswerCheck, Flaw, judge, latex_fault, repeated_share, repeating_runs

PROMPT = "Text Recognition:"
PROSE = (
    "The committee met on the second Tuesday of March to hear the report of its chairman, who had spent the winter "
    "in the archives of three northern towns. He began with the oldest of the charters. "
)
CHINESE = "采用胶缝传力的全玻幕墙，其胶缝必须采用硅酮结构密封胶。"


def verdict(text: str, task: Task = Task.TEXT, finish: str | None = "stop", prompt: str = PROMPT) -> AnswerCheck:
    return judge(Answer(text=text, finish_reason=finish), task, prompt)


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (Task.TEXT, PROSE),
        (Task.TEXT, CHINESE),
        (Task.TEXT, "Contents\nIntroduction " + "." * 300 + " 3\nMethods " + ". " * 300 + "17"),
        (Task.TEXT, "Name " + "_" * 400),
        (Task.TEXT, "\n".join(f"{n}. Item number {n}" for n in range(1, 60))),
        (Task.TEXT, "□ yes\n□ no\n" * 8),
        (Task.TABLE, "<table>" + ("<tr>" + "<td></td>" * 12 + "</tr>") * 60 + "</table>"),
        (Task.TABLE, "<table>" + "<tr><td>N/A</td><td>0</td></tr>" * 30 + "</table>"),
        (Task.TABLE, "<fcel>Name<fcel>Value<nl>" + "<ecel><ecel><nl>" * 80),
        (Task.TABLE, "| a | b |\n|---|---|\n" + "| 0 | 0 |\n" * 60),
        (Task.FORMULA, r"\begin{pmatrix}" + r"0 & 0 & 0 & 0 & 0 & 0 \\ " * 12 + r"\end{pmatrix}"),
        (Task.FORMULA, r"\left\{ x \mid \{ y \} \right. \quad \text{if } a"),
    ],
)
def test_good_answers(task: Task, text: str):
    assert verdict(text, task) == AnswerCheck()


@pytest.mark.parametrize("head", ["", PROSE, CHINESE, "<table><tr><td>Name</td><td>Value</td></tr>"])
@pytest.mark.parametrize("task", [Task.TEXT, Task.TABLE])
def test_a_loop_that_ran_into_the_limit(head: str, task: Task):
    for unit in ("the ", "a", "그리고 ", CHINESE, PROSE, "<td>the same words again</td>", "0 & "):
        text = (head + unit * (10 + 3000 // len(unit)))[:-1]
        found = verdict(text, task, "length")
        assert found.flaw is Flaw.REPETITION, unit
        assert found.sound is not None, unit
        assert text.startswith(found.sound), unit
        assert len(head) - len(unit) <= len(found.sound) <= len(head) + 2 * len(unit) + 8, unit


def test_a_loop_inside_of_an_answer_that_ended():
    found = verdict(PROSE + "over and over again, " * 40 + CHINESE)
    assert found.flaw is Flaw.REPETITION
    assert "over and over" in found.message


def test_a_table_that_ends_after_hundreds_of_equal_rows_of_words():
    row = "<tr><td>Department of Agriculture</td><td>12</td></tr>"
    assert verdict("<table>" + row * 20 + "</table>", Task.TABLE).flaw is None
    assert verdict("<table>" + row * 100 + "</table>", Task.TABLE).flaw is Flaw.REPETITION


def test_a_loop_that_counts_its_turns():
    text = " ".join(f"{n}. The figure shows the share of households." for n in range(1, 200))
    assert verdict(text).flaw is Flaw.REPETITION
    assert verdict(text).sound is None


def test_truncation():
    found = judge(Answer(text=PROSE, finish_reason="length", completion_tokens=8192), Task.TEXT, PROMPT)
    assert found.flaw is Flaw.TRUNCATED
    assert "8192" in found.message
    assert verdict(PROSE, finish=None).flaw is None
    assert verdict(PROSE, finish="eos_token").flaw is None


def test_the_server_ended_a_repetition():
    assert verdict("short", finish="repetition").flaw is Flaw.REPETITION


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_empty(text: str):
    assert verdict(text).flaw is Flaw.EMPTY


@pytest.mark.parametrize("text", ["Text Recognition:", "text recognition", "Text Recognition:\nText Recognition:\n"])
def test_echo(text: str):
    assert verdict(text).flaw is Flaw.ECHO


def test_echo_of_a_long_prompt_and_no_echo_of_a_short_one():
    asked = "Read all text in this image in reading order, exactly as it is printed."
    assert verdict(asked + " Sure, here it is.", prompt=asked).flaw is Flaw.ECHO
    assert verdict("Text Recognition: a survey of methods").flaw is None
    assert verdict("...", prompt="!").flaw is None


def test_tables():
    assert verdict("<table><tr><td>1</td></tr>", Task.TABLE).flaw is Flaw.TABLE
    assert verdict("Nothing of the kind", Task.TABLE).flaw is Flaw.NO_TABLE
    assert verdict("<table><tr><td>1", Task.TABLE, "length").flaw is Flaw.TRUNCATED
    assert verdict("<table><tr><td>1<td>2</table>", Task.TABLE).flaw is None


@pytest.mark.parametrize(
    ("formula", "fault"),
    [
        (r"\frac{a}{b", "} is missing"),
        (r"a}", "} without its beginning"),
        (r"\begin{array}{l} a", "\\end{array} is missing"),
        (r"a \end{array}", "\\end{array} without its beginning"),
        (r"\begin{a} \begin{b} \end{a} \end{b}", "\\end{a} without its beginning"),
        (r"\left( a", "\\right is missing"),
        (r"{\left( a} \right)", "} without its beginning"),
    ],
)
def test_broken_formulas(formula: str, fault: str):
    assert fault in (latex_fault(formula) or "")
    assert verdict(formula, Task.FORMULA).flaw is not None


@pytest.mark.parametrize(
    "formula", [r"\{ a \}", r"a \\ b", r"\\{x}", r"\begin{array} {l} a \end{array}", r"\leftarrow"]
)
def test_sound_formulas(formula: str):
    assert latex_fault(formula) is None


def test_severity_puts_emptiness_last():
    flaws = [verdict(PROSE), verdict(PROSE, finish="length"), verdict("ab" * 400, finish="length"), verdict("")]
    assert [each.severity for each in flaws] == sorted({each.severity for each in flaws})


@settings(deadline=None)
@given(
    st.text(alphabet="ab<td>/ \n", max_size=60),
    st.text(alphabet="abc {}<>", min_size=1, max_size=30),
    st.integers(4, 60),
)
def test_a_period_is_found_where_there_is_one(head: str, unit: str, repeats: int):
    text = head + unit * repeats
    if len(unit) * repeats < 100 or repeats < 6:
        return
    last = repeating_runs(text)[-1]
    assert last.end == len(text)
    assert len(unit) % last.period == 0 or last.period <= len(unit)
    assert last.end - last.start >= len(unit) * (repeats - 3)
    assert all(text[i] == text[i - last.period] for i in range(last.start + last.period, last.end))


@settings(deadline=None)
@given(st.text(max_size=400), st.sampled_from(list(Task)), st.sampled_from(["stop", "length", "repetition", None]))
def test_any_text_has_a_verdict(text: str, task: Task, finish: str | None):
    found = verdict(text, task, finish)
    assert found.sound is None or 0 < len(found.sound) <= len(text)


def test_shares_of_repetition():
    assert repeated_share(PROSE * 2) == 0.0  # too short to tell
    assert repeated_share(PROSE * 20) > 0.9


HOSTILE = ["<table" * 60_000, "\\quad" * 80_000, "{" * 400_000, "|\n" * 200_000, "|" * 400_000, "ab" * 200_000]


@pytest.mark.parametrize(
    ("text", "task"),
    [
        *((text, Task.TEXT) for text in (*HOSTILE, "".join(f"{n} " for n in range(60_000)), "<|ref|>" * 50_000)),
        *((text, Task.TABLE) for text in (HOSTILE[0], HOSTILE[3])),
        *((text, Task.FORMULA) for text in HOSTILE[1:3]),
    ],
)
def test_hostile_answers_end(text: str, task: Task):
    verdict(text, task)


def element(content: str, number: int = 1, label: str = "text") -> str:
    return f"<|ref|>{label}<|/ref|><|det|>[[{number}, 20, 300, 400]]<|/det|>\n{content}\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "".join(element(word, n) for n, word in enumerate((PROSE * 2).split())),  # references are all alike
        "".join(element("", n, "image") for n in range(200)),
        element("<table>" + "<tr><td>해당 없음</td><td>0</td></tr>" * 30 + "</table>", label="table"),
        element("".join(f"<table><tr><td>{PROSE}{n}</td></tr></table>" for n in range(20)), label="table"),
    ],
)
def test_good_pages(text: str):
    assert verdict(text, Task.PAGE) == AnswerCheck()


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        (element(PROSE) + element("and so on ") * 30, "length"),
        (element(PROSE) + "and so on and on " * 100, "stop"),
        ("".join(element(PROSE, n) for n in range(40)), "stop"),  # other places, the same words
        (element("<table>") + "<tr><td>so on</td></tr>" * 300, "length"),
    ],
)
def test_pages_that_loop(text: str, finish: str):
    assert verdict(text, Task.PAGE, finish).flaw is Flaw.REPETITION


@pytest.mark.parametrize("piece", ["<table>", "</table>", "<table", "<|ref|>", "<|ref|>a<|/ref|>", "<|det|>[[", "<"])
def test_hostile_pages_end(piece: str):
    verdict(piece * (400_000 // len(piece)), Task.PAGE)
