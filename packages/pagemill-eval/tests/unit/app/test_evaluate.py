import json
from pathlib import Path

import pytest

from pagemill.errors import CorruptInputError, InputError, UsageError, WorkerCrashError
from pagemill_eval import benchmarks
from pagemill_eval.app import evaluate as module
from pagemill_eval.app.evaluate import benchmark_data, evaluate, read_evaluation
from pagemill_eval.app.evaluation_report import canonical, comparison_html, difference_html, evaluation_html
from pagemill_eval.benchmark import Rules
from pagemill_eval.comparing import compare

PUBTABNET = benchmarks.create("pubtabnet")


def table(*rows: str) -> str:
    return f"<table>{''.join(f'<tr><td>{row}</td></tr>' for row in rows)}</table>"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps({f"t{number}.png": table("a", f"b{number}", "c<&>") for number in range(20)}))
    return path


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    folder = tmp_path / "tool"
    folder.mkdir()
    for number in range(18):
        (folder / f"t{number}.html").write_text(
            table("a", f"b{number}") if number % 2 else table("a", f"b{number}", "c<&>")
        )
    (folder / "failures.jsonl").write_text('{"id": "t18.png", "error": "it crashed"}\n')
    return folder


def scored(data: Path, predictions: Path, out: Path, *, jobs: int = 1, rules: Rules = Rules.PAGEMILL):
    out.mkdir(exist_ok=True)
    samples = PUBTABNET.load(data)
    read = PUBTABNET.predictions(predictions, samples)
    return evaluate(PUBTABNET, samples, read, out, rules=rules, jobs=jobs, data=data, predictions=predictions)


def test_missing_and_failed_predictions_count_0(data, predictions, tmp_path):
    result = scored(data, predictions, tmp_path / "out")
    assert (result.missing, result.failed) == (["t19.png"], {"t18.png": "it crashed"})
    values = {each.id: each.metrics["teds"] for each in result.scores}
    assert values["t0.png"] == 1
    assert (values["t18.png"], values["t19.png"]) == (0, 0)
    assert result.figures["teds"].samples == 20
    assert result.figures["teds"].value == pytest.approx(sum(values.values()) / 20)
    rows = (tmp_path / "out" / "scores.csv").read_text().splitlines()
    assert rows[0] == "id,status,teds,teds_s,error"
    assert rows[19:] == ["t18.png,failed,0.000000,0.000000,it crashed", "t19.png,missing,0.000000,0.000000,"]


def test_the_files_hold_the_result(data, predictions, tmp_path):
    result = scored(data, predictions, tmp_path / "out")
    assert read_evaluation(tmp_path / "out") == result
    assert not (tmp_path / "out" / "scores.partial.jsonl").exists()
    (tmp_path / "out" / "scores.jsonl").write_text("")
    with pytest.raises(CorruptInputError, match="does not belong"):
        read_evaluation(tmp_path / "out")
    with pytest.raises(InputError):
        read_evaluation(tmp_path / "nothing")


def test_what_is_known_is_not_scored_again(data, predictions, tmp_path, monkeypatch):
    first = scored(data, predictions, tmp_path / "out")
    (predictions / "t3.html").write_text(table("a", "b3", "c<&>"))
    asked = []
    score = type(PUBTABNET).score
    monkeypatch.setattr(type(PUBTABNET), "score", lambda *given: asked.append(given[1].id) or score(*given))
    again = scored(data, predictions, tmp_path / "out")
    assert asked == ["t3.png"]
    assert (again.reused, again.scores[3].metrics["teds"]) == (19, 1)
    assert again.figures["teds"].value > first.figures["teds"].value
    scored(data, predictions, tmp_path / "out", rules=Rules.OFFICIAL)
    assert len(asked) == 21  # other rules, other scores


def test_a_stopped_evaluation_is_resumed(data, predictions, tmp_path, monkeypatch):
    out = tmp_path / "out"
    whole = scored(data, predictions, tmp_path / "whole")
    score = type(PUBTABNET).score

    def stops(self, sample, *given):
        if sample.id == "t5.png":
            raise KeyboardInterrupt
        return score(self, sample, *given)

    monkeypatch.setattr(type(PUBTABNET), "score", stops)
    with pytest.raises(KeyboardInterrupt):
        scored(data, predictions, out)
    partial = out / "scores.partial.jsonl"
    first, *others = partial.read_bytes().splitlines(keepends=True)
    partial.write_bytes(first[:20] + first + b"".join(others))  # a run that was killed, and one that went on from it
    with partial.open("ab") as torn:
        torn.write(b'{"id": "t5')
    monkeypatch.setattr(type(PUBTABNET), "score", score)
    result = scored(data, predictions, out)
    assert result.reused == 4
    assert result.scores == whole.scores


def test_processes_give_the_same_scores(data, predictions, tmp_path):
    alone = scored(data, predictions, tmp_path / "alone")
    together = scored(data, predictions, tmp_path / "together", jobs=2)
    assert together.scores == alone.scores


def test_a_scoring_process_that_dies(data, predictions, tmp_path, monkeypatch):
    class Broken:
        def __init__(self, *_, **__): ...

        def submit(self, *_):
            raise module.BrokenProcessPool

        def shutdown(self, **_): ...

    monkeypatch.setattr(module, "ProcessPoolExecutor", Broken)
    with pytest.raises(WorkerCrashError):
        scored(data, predictions, tmp_path / "out", jobs=2)


def test_where_the_data_is(tmp_path):
    assert benchmark_data(PUBTABNET, str(tmp_path), print) == tmp_path
    with pytest.raises(InputError):
        benchmark_data(PUBTABNET, str(tmp_path / "none"), print)
    with pytest.raises(UsageError, match="not a dataset on the Hub"):
        benchmark_data(PUBTABNET, None, print)


def test_the_report(data, predictions, tmp_path):
    (predictions / "t1.html").write_text(table("a", "<script>alert(1)</script><b onclick=x>b1</b>", "c"))
    result = scored(data, predictions, tmp_path / "out")
    page = "".join(evaluation_html(PUBTABNET, result, lambda _: b"RIFF"))
    assert "<script" not in page
    assert "onclick" not in page
    assert "data:image/webp;base64,UklGRg==" in page
    assert page.index("t18.png") < page.index("t1.png") < page.index("t0.png")  # the worst first
    assert "failed: it crashed" in page
    assert "1 missing, 1 failed" in page


def test_the_comparison(data, predictions, tmp_path):
    first = scored(data, predictions, tmp_path / "a")
    (predictions / "t0.html").write_text(table("a", "b0 <i>new</i>", "c"))
    second = scored(data, predictions, tmp_path / "b")
    comparison = compare(PUBTABNET, first, second)
    page = "".join(comparison_html(PUBTABNET, comparison, first, second, ("a&b", "<b>"), lambda _: None))
    assert "a&amp;b" in page and "&lt;b&gt;" in page
    assert "All 1, the worst first" in page  # samples that are equal are not shown
    assert "b0<ins> new</ins>" in page
    assert "<del>&lt;&amp;&gt;</del>" in page


@pytest.mark.parametrize(
    ("truth", "prediction", "expected"),
    [
        ("one two", "one two", "one two"),
        ("one two", "one three", "one <del>two</del><ins>three</ins>"),
        ("한지 체험", "한지 채험", "한지 <del>체</del><ins>채</ins>험"),
        ("a < b", "a", "a<del> &lt; b</del>"),
        ("", "new", "<ins>new</ins>"),
    ],
)
def test_differences(truth, prediction, expected):
    found = difference_html(truth, prediction)
    assert found in (expected, expected.replace("<del>two</del><ins>three</ins>", "<ins>three</ins><del>two</del>"),
                     expected.replace("<del>체</del><ins>채</ins>", "<ins>채</ins><del>체</del>"))  # fmt: skip


def test_tables_of_any_notation_are_the_same_lines():
    html = "Text\n\n<table>\n <tr><td> a </td>\n<td>b<br/>c</td></tr>\n<tr><td>1</td><td>2</td></tr></table>\n\n\n\nend"
    pipes = "Text\n\n|   a | b<br>c   |\n|-----|:------|\n| 1   | 2     |\n\nend"
    assert canonical(html) == canonical(pipes) == "Text\n\na | b c\n1 | 2\n\nend"
    assert canonical("a - b | c") == "a - b | c"
    assert canonical("<table" * 3) == "<table" * 3
