import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from synthetic_run import sample_pages, write_run

from pagemill.app.status import InvocationStatus, Process, RunState, RunStatus
from pagemill.cli import status as status_module
from pagemill.cli.progress import LenientConsole
from pagemill.cli.status import command, show, status_lines
from pagemill.document.page import PageError
from pagemill.errors import OutputError
from pagemill.store.reading import FailedPage, FailureKind

START = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def status(**fields: Any) -> RunStatus:
    known: dict[str, Any] = {
        "path": "out",
        "state": RunState.RUNNING,
        "process": Process(pid=7, host="mill", since=START),
        "started": START,
        "finished": None,
        "total": 1000,
        "pages": {"running": 2, "waiting": 1, "done": 240, "failed": 9, "skipped": 1},
        "documents": 12,
        "rate": 2.5,
        "invocation": InvocationStatus(pages=240, seconds=120.0, rate=2.0),
        "seconds_left": 300.0,
        "failures": [
            FailureKind(
                category="timeout",
                pages=9,
                examples=[FailedPage(page_id="a_1", message="took\ntoo long\x1b[2J", attempts=2)],
            )
        ],
        "skipped": {"duplicate": 1},
        "warnings": {"table": 3},
        "review": 4,
        "in_flight": ["b_1", "b_2"],
        "seconds_by_stage": {"recognition": 60.0, "layout": 40.0},
        "bytes_on_disk": {"records": 2_000_000, "crops": 500},
    }
    return RunStatus(**(known | fields))


def test_rates_by_machine_of_many_the_slowest_and_the_fastest():
    assert "nodes" not in text_of(status())
    assert "nodes      a 0.50, b 1.25" in text_of(status(nodes={"b": 1.25, "a": 0.5}))
    many = {f"gpu-{number}": number + 0.5 for number in range(9)}
    assert "9 machines, slowest gpu-0 0.50, fastest gpu-8 8.50" in text_of(status(nodes=many))


def text_of(each: RunStatus, width: int = 100) -> str:
    return "\n".join("".join([name, text]) for name, (text, _) in status_lines(each, width))


def test_everything_that_is_known_is_reported() -> None:
    text = text_of(status())
    for part in (
        "out: running, process 7 on mill, since 2026-01-0",
        "250 of 1,000 finished (25%)",
        "done 240",
        "failed 9",
        "waiting 1",
        "to review 4",
        "to come 747",
        "2.50 pages/s recently",
        "about 5 min 0 s left",
        "timeout 9",
        "a_1: took too long\N{REPLACEMENT CHARACTER}[2J (2 attempts)",
        "... and 8 more of timeout",
        "duplicate 1",
        "b_1, b_2",
        "recognition 60%",
        "2.0 MB in all",
    ):
        assert part in text


def test_a_run_about_which_little_is_known() -> None:
    text = text_of(
        status(
            state=RunState.CUT_OFF,
            process=None,
            total=None,
            rate=None,
            invocation=None,
            seconds_left=None,
            failures=[],
            skipped={},
            warnings={},
            review=0,
            in_flight=[],
            seconds_by_stage={},
            bytes_on_disk={},
            pages={"running": 0, "waiting": 0, "done": 0, "failed": 0, "skipped": 0},
        )
    )
    assert text.splitlines()[0].startswith("run        out: cut off, started 2026-01-0")
    assert "0 finished" in text
    assert "to resume" in text
    assert "rate" not in text


def test_lines_keep_to_the_width() -> None:
    crowded = status(in_flight=[f"page-{number:04}" for number in range(50)], failures=[])
    assert max(map(len, text_of(crowded, 72).splitlines())) <= 72
    assert "and 38 more" in text_of(crowded, 72)


def test_a_finished_run_reflects_its_last_invocation_and_counts_no_pauses() -> None:
    done = status(state=RunState.FINISHED, process=None, rate=None, finished=START + timedelta(minutes=61))
    text = text_of(done)
    assert re.search(r"out: finished 2026-01-0\d \d\d:05$", text, re.MULTILINE)
    assert "2.00 pages/s in the last invocation (240 pages in 2 min 0 s)" in text
    nothing_done = status(rate=None, seconds_left=None, invocation=InvocationStatus(pages=0, seconds=1.0, rate=None))
    assert "rate" not in text_of(nothing_done)


def test_pages_no_longer_in_the_input_are_no_part_of_it() -> None:
    pages = {"running": 0, "waiting": 0, "done": 27, "failed": 0, "skipped": 4}
    some_gone = status(total=27, pages=pages, skipped={"no longer in the input": 4})
    assert "27 of 27 finished (100%)" in text_of(some_gone)
    assert "to come" not in text_of(some_gone)
    assert "skipped    no longer in the input 4" in text_of(some_gone)
    parsed_ones_gone = status(total=20, pages=pages, skipped={"no longer in the input": 4})
    assert "27 finished, 20 in the input now" in text_of(parsed_ones_gone)
    assert "%" not in text_of(parsed_ones_gone).splitlines()[1]


def test_a_log_gets_a_line_a_time_and_all_at_the_end() -> None:
    console = LenientConsole(file=io.StringIO(), width=100)
    show([status(), status(state=RunState.FINISHED, finished=START)], console, watch=True)
    first, second, *rest = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first == "running: 250 of 1,000 pages, 2.50 pages/s, 5 min 0 s left, 9 failed"
    assert second.startswith("finished: 250")
    assert rest[0].startswith("run ")


def test_a_terminal_is_redrawn() -> None:
    console = LenientConsole(file=io.StringIO(), width=100, height=6, force_terminal=True)
    show([status(), status()], console, watch=True)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[2K" in drawn
    assert "\x1b[2J" not in drawn


def test_the_command_on_a_real_run(tmp_path: Path) -> None:
    write_run(tmp_path, sample_pages())
    run = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
    assert run.exit_code == 0
    assert "4 of 4 finished (100%)" in run.stdout
    watched = CliRunner().invoke(command, [str(tmp_path), "--watch", "--json"], catch_exceptions=False)
    (line,) = watched.stdout.splitlines()
    assert json.loads(line)["pages"]["done"] == 3
    assert json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).stdout)["state"] == "finished"


def test_a_directory_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="contains no run") as caught:
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
    assert caught.value.remedy


def test_watching_outlives_a_restart_and_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path, sample_pages())
    clock = iter(range(100))
    monkeypatch.setattr(status_module.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(status_module.time, "sleep", lambda _: None)
    states = [RunState.RUNNING, RunState.CUT_OFF, RunState.DESCRIBING, RunState.CUT_OFF, RunState.FINISHED]
    answers = iter([status(state=state) for state in states])
    monkeypatch.setattr("pagemill.cli.status.read_status", lambda *_, **__: next(answers))
    run = CliRunner().invoke(command, [str(tmp_path), "--watch", "--json"], catch_exceptions=False)
    assert [json.loads(line)["state"] for line in run.stdout.splitlines()] == [state.value for state in states]


def test_watching_a_run_that_was_cut_off_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path, sample_pages())
    monkeypatch.setattr(status_module.time, "sleep", lambda _: pytest.fail("nothing to wait for"))
    monkeypatch.setattr("pagemill.cli.status.read_status", lambda *_, **__: status(state=RunState.CUT_OFF))
    run = CliRunner().invoke(command, [str(tmp_path), "--watch", "--json"], catch_exceptions=False)
    assert len(run.stdout.splitlines()) == 1


def test_pages_to_review_are_listed_with_what_speaks_against_them(tmp_path: Path) -> None:
    pages = sample_pages()
    pages[0].review, pages[0].confidence, pages[0].signals = True, 0.913, {"low_confidence": 0.25}
    warning = PageError(component="recognition", category="low_confidence", message="doubtful\x1b[2J")
    pages[0].errors = [warning] * 7 + [PageError(component="crops", category="internal", message="a picture")]
    write_run(tmp_path, pages)
    shown = CliRunner().invoke(command, [str(tmp_path), "--review"])
    assert shown.exit_code == 0
    first, *warnings = shown.output.splitlines()
    assert first == f"{pages[0].page_id}: about 91% right, low_confidence 25%"
    assert len(warnings) == 6 and "\x1b" not in shown.output
    assert warnings[-1].strip() == "... and 2 more warnings"
    (line,) = CliRunner().invoke(command, [str(tmp_path), "--review", "--json"]).output.splitlines()
    told = json.loads(line)
    assert (told["confidence"], len(told["why"]), told["page_number"]) == (0.913, 7, 1)
    summary = CliRunner().invoke(command, [str(tmp_path)]).output
    assert "to review 1" in summary
    assert CliRunner().invoke(command, [str(tmp_path), "--review", "--watch"]).exit_code == 2
