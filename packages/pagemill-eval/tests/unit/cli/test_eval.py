import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pagemill.cli import cli
from pagemill.errors import ExitCode, LockedError, MissingInputError, UsageError
from pagemill.store.lock import RunLock
from pagemill_eval import benchmarks
from pagemill_eval.app.evaluate import evaluation_folder
from pagemill_eval.cli import eval as module


def called(*arguments: object):
    return CliRunner().invoke(cli, [*map(str, arguments)])


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps({"one.png": "<table><tr><td>1</td></tr></table>"}))
    return path


def test_the_list_names_all_benchmarks():
    listed = json.loads(called("eval", "list", "--json").stdout)
    assert [each["name"] for each in listed] == list(benchmarks.names())
    text = called("eval", "list").stdout
    assert all(name in text for name in benchmarks.names())


def test_predictions_exclude_options_of_parsing(truth: Path, tmp_path: Path):
    ended = called("eval", "run", "pubtabnet", truth, "--predictions", tmp_path, "-o", tmp_path / "out", "--lang", "en")
    assert ended.exit_code == 2
    assert "leave out --lang" in ended.output
    assert not (tmp_path / "out").exists()


def test_an_engine_needs_images(truth: Path, tmp_path: Path):
    ended = called("eval", "run", "pubtabnet", truth, "-o", tmp_path / "out")
    assert isinstance(ended.exception, UsageError)
    assert "1 of 1 samples have no image" in str(ended.exception)


def test_unknown_names(truth: Path, tmp_path: Path):
    assert called("eval", "run", "nothing", truth, "-o", tmp_path / "out").exit_code == 2
    missing = called("eval", "run", "pubtabnet", tmp_path / "none", "-o", tmp_path / "out", "--predictions", tmp_path)
    assert isinstance(missing.exception, MissingInputError)
    assert isinstance(called("eval", "compare", tmp_path, tmp_path).exception, MissingInputError)


def test_the_first_samples_alone(tmp_path: Path):
    table = "<table><tr><td>1</td></tr></table>"
    (tmp_path / "truth.json").write_text(json.dumps({f"{number}.png": table for number in range(5)}))
    (tmp_path / "0.html").write_text(table)
    given = (tmp_path / "truth.json", "--predictions", tmp_path, "-o", tmp_path / "out", "--first", 2, "--json")
    ended = called("eval", "run", "pubtabnet", *given)
    result = json.loads(ended.stdout)
    assert (result["samples"], result["missing"]) == (2, ["1.png"])
    assert (tmp_path / "out" / "report.html").stat().st_size > 1000


def test_what_is_too_large_to_score_is_named_and_no_success(
    truth: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pagemill_eval.teds.MAX_NODES", 1)
    (tmp_path / "one.html").write_text("<table><tr><td>2</td></tr></table>")
    given = ["eval", "run", "pubtabnet", truth, "-o", tmp_path / "out", "--predictions", tmp_path]
    ended = CliRunner().invoke(cli, [*map(str, given)], standalone_mode=False)
    assert "1 prediction not scored in full, such as one.png: a table of" in ended.output
    assert ended.return_value == ExitCode.PAGES_FAILED


def test_two_at_once_in_one_folder_are_refused(truth: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setitem(RunLock.__init__.__kwdefaults__, "wait_s", 0.0)
    out = tmp_path / "out"
    given = ("eval", "run", "pubtabnet", truth, "--predictions", tmp_path, "-o", out)
    with evaluation_folder(out):
        ended = called(*given)
    assert isinstance(ended.exception, LockedError)
    assert f"{out} is in use by process" in str(ended.exception)
    assert not (out / "result.json").exists()
    called(*given)
    assert (out / "result.json").exists()


def test_brackets_of_names_and_notes_are_printed(capsys):
    module._console().print(module._figures("x", ["value"], iter([("page[2].png", ["needs olmocr[bench]"])])))
    assert "page[2].png" in (printed := capsys.readouterr().out)
    assert "olmocr[bench]" in printed
