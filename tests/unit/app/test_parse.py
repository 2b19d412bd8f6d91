"""A run over a pipeline that needs no engines: exit codes, what is written when it ends early, signals."""

import asyncio
import dataclasses
import json
import signal
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_pipeline import FakePipeline, page, ref

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.parse import parse_into
from pagemill.app.reporting import RunOutcome
from pagemill.errors import ExitCode, InputError, LanguageError, OutputError
from pagemill.parsing.page import ParsedPage, SkippedPage
from pagemill.runtime.supervisor import Life, Vitals
from pagemill.store.opening import OpenMode
from pagemill.store.run_directory import RunDirectory


async def run(
    out: Path,
    pipeline: FakePipeline,
    progress: Any = None,
    life: Life | None = None,
    *,
    fresh: bool = False,
    retry_failed: bool = False,
) -> RunOutcome:
    directory = DirectoryOptions(report=False, fresh=fresh, retry_failed=retry_failed)
    return await parse_into(out, ["d.pdf"], ParseOptions(), directory, pipeline=pipeline, life=life, progress=progress)


def records(out: Path) -> list[str]:
    return [json.loads(line)["page_id"] for line in (out / "ocr_results.jsonl").read_text().splitlines()]


async def test_a_document_is_written_when_its_last_page_is_there(tmp_path, monkeypatch):
    finished: list[tuple[str, int]] = []
    monkeypatch.setattr(
        RunDirectory, "finish_document", lambda self, doc_id: finished.append((doc_id, self.summary.pages))
    )
    await run(tmp_path / "out", FakePipeline(page(2), page(3), page(1)))
    assert finished[0] == ("d", 3)


async def test_what_no_page_could_do_is_reported_before_the_output_is_touched(tmp_path):
    pipeline = FakePipeline(page(1), problem=LanguageError("nobody reads xx"))
    with pytest.raises(LanguageError):
        await run(tmp_path / "out", pipeline)
    assert pipeline.closed
    assert not (tmp_path / "out").exists()


async def test_inputs_without_pages_are_an_error(tmp_path):
    with pytest.raises(InputError, match="no page"):
        await run(tmp_path / "out", FakePipeline())
    assert json.loads((tmp_path / "out" / "run.json").read_text())["finished"]


async def test_an_error_of_the_source_keeps_what_came_before(tmp_path):
    with pytest.raises(RuntimeError, match="broken"):
        await run(tmp_path / "out", FakePipeline(page(1), page(2), problem=RuntimeError("broken")))
    summary = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (summary["pages"], summary["interrupted"]) == (2, True)
    assert records(tmp_path / "out") == ["d_1", "d_2"]
    assert (tmp_path / "out" / "documents" / "d.md").exists()


async def test_an_output_error_ends_the_run_and_keeps_what_came_before(tmp_path, monkeypatch):
    write_page = RunDirectory.write_page

    def full(self, record, crops=(), preview=None):
        if record.page_number == 2:
            raise OutputError("cannot write")
        write_page(self, record, crops, preview)

    monkeypatch.setattr(RunDirectory, "write_page", full)
    pipeline = FakePipeline(page(1), page(2), page(3))
    with pytest.raises(OutputError, match="cannot write"):
        await run(tmp_path / "out", pipeline)
    assert pipeline.closed
    assert records(tmp_path / "out") == ["d_1"]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["pages"] == 1


class Listening:
    """Notes what it is told, and sends a signal to the process when the second page is there."""

    def __init__(self, number: signal.Signals | None = None) -> None:
        self.number = number
        self.pages = 0
        self.skipped: list[int] = []
        self.again: list[str] = []
        self.hung: list[bool] = []
        self.before: int | None = None
        self.in_flight: int | None = None

    def opened(self, ended_before: int) -> None:
        self.before = ended_before

    def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
        self.pages += 1
        self.skipped.append(skipped)
        if self.pages == 2 and self.number:
            signal.raise_signal(self.number)

    def postponed(self, page: ParsedPage) -> None:
        self.again.append(page.record.page_id)

    def hangs(self, *, fresh_process: bool) -> None:
        self.hung.append(fresh_process)

    def stopping(self, in_flight: int) -> None:
        self.in_flight = in_flight
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # the next one ends the process
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_drains_the_run_and_the_handlers_come_back(tmp_path, number):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    progress = Listening(number)
    outcome = await run(tmp_path / "out", FakePipeline(page(1), page(2), page(3), endless=True), progress)
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert progress.in_flight is not None
    assert records(tmp_path / "out") == ["d_1", "d_2", "d_3"]  # the third was in flight
    assert (tmp_path / "out" / "documents" / "d.md").exists()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


async def test_an_ignored_signal_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        progress = Listening(signal.SIGINT)
        outcome = await run(tmp_path / "out", FakePipeline(page(1), page(2), page(3)), progress)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (outcome.exit_code, progress.pages, progress.in_flight) == (ExitCode.OK, 3, None)


async def test_a_cancelled_run_does_not_close_the_directory_under_a_write(tmp_path, monkeypatch):
    writing, go_on, written = threading.Event(), threading.Event(), threading.Event()
    closed_early: list[bool] = []
    write_page, close = RunDirectory.write_page, RunDirectory.close

    def slow(self, record, crops=(), preview=None):
        writing.set()
        assert go_on.wait(30)
        write_page(self, record, crops, preview)
        written.set()

    def noting(self):
        closed_early.append(not written.is_set())
        go_on.set()  # so that a failing test ends
        close(self)

    monkeypatch.setattr(RunDirectory, "write_page", slow)
    monkeypatch.setattr(RunDirectory, "close", noting)
    task = asyncio.create_task(run(tmp_path / "out", FakePipeline(page(1))))
    await asyncio.to_thread(writing.wait, 30)
    task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(closed_early)
    assert records(tmp_path / "out") == ["d_1"]


def life(**options: Any) -> Life:
    return Life(supervised=True, **options)


async def test_a_page_that_is_tried_again_is_counted_once(tmp_path):
    bad, good = page(1, ExitCode.CRASH), page(1)
    mine, progress = life(), Listening()
    outcome = await run(tmp_path / "out", FakePipeline(good, postponed=(bad,)), progress, life=mine)
    assert (outcome.exit_code, outcome.summary.pages, outcome.summary.failed) == (ExitCode.OK, 1, 0)
    assert progress.again == records(tmp_path / "out") == ["d_1"]
    assert (mine.vitals.done, mine.vitals.failed, mine.vitals.attempts, mine.vitals.in_flight) == (1, 0, 2, 0)
    assert mine.vitals.beats > 0


async def test_pages_in_flight_are_known_to_the_parent(tmp_path):
    mine = life()
    seen: list[int] = []

    class Watching(Listening):
        def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
            seen.append(mine.vitals.in_flight)

    class TwoAtOnce(FakePipeline):
        async def stream(self, inputs, options, *, catalogue, journal, answers, max_attempts):
            for each in self.pages:
                await journal.started(ref(each), alone=False)
            for each in self.pages:
                yield each

    await run(tmp_path / "out", TwoAtOnce(page(1), page(2)), Watching(), life=mine)
    assert seen == [1, 0]


async def test_a_supervised_run_that_hangs_leaves_for_a_fresh_process(tmp_path):
    pipeline = FakePipeline(page(1), endless=True)
    pipeline.stuck.set()
    outcome = await run(tmp_path / "out", pipeline, life=life())
    assert outcome.recycle
    assert records(tmp_path / "out") == ["d_1"]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["finished"] is None


async def test_nobody_restarts_an_unsupervised_run_so_it_continues_when_something_hangs(tmp_path):
    pipeline = FakePipeline(page(1), page(2), page(3))
    pipeline.stuck.set()
    outcome = await run(tmp_path / "out", pipeline)
    assert not outcome.recycle
    assert len(records(tmp_path / "out")) == 3


@pytest.mark.parametrize("supervised", [True, False])
async def test_a_hang_is_reported_once_in_all_lives(tmp_path, supervised):
    mine, progress = Life(supervised=supervised), Listening()
    for number in (1, 2):
        pipeline = FakePipeline(page(number), endless=supervised)
        pipeline.stuck.set()
        await run(tmp_path / "out", pipeline, progress, life=mine)
    assert progress.hung == [supervised]


async def test_skipped_pages_are_no_failure_and_have_no_record(tmp_path):
    progress = Listening()
    skipped = SkippedPage(ref=ref(page(1)), reason="duplicate of e")
    outcome = await run(tmp_path / "out", FakePipeline(skipped, page(2)), progress)
    assert (outcome.exit_code, outcome.summary.pages, outcome.summary.skipped) == (ExitCode.OK, 1, 1)
    assert records(tmp_path / "out") == ["d_2"]
    assert progress.skipped == [1]


async def test_pages_of_earlier_invocations_count_for_the_exit_code(tmp_path):
    out = tmp_path / "out"
    assert (await run(out, FakePipeline(page(1, ExitCode.INPUT), page(2)))).exit_code is ExitCode.PAGES_FAILED
    progress = Listening()
    again = await run(out, FakePipeline(), progress)  # nothing is left to do
    assert (again.exit_code, again.failures, progress.before) == (ExitCode.PAGES_FAILED, [], 2)


async def test_a_document_counts_its_pages_of_earlier_invocations(tmp_path, monkeypatch):
    finished: list[str] = []
    monkeypatch.setattr(RunDirectory, "finish_document", lambda self, doc_id: finished.append(doc_id))
    monkeypatch.setattr(RunDirectory, "finish", lambda self, **how: None)
    await run(tmp_path / "out", FakePipeline(page(1), page(2)))
    assert finished == []
    last = page(3)
    last = msgspec.structs.replace(last, document=dataclasses.replace(last.document, finished=2))
    await run(tmp_path / "out", FakePipeline(last))
    assert finished == ["d"]


@pytest.mark.parametrize(
    ("stopped", "complete"), [(False, True), (False, False), (True, False)], ids=["to its end", "limited", "stopped"]
)
async def test_the_directory_records_whether_the_input_was_read_to_its_end(tmp_path, monkeypatch, stopped, complete):
    told: list[dict[str, bool]] = []
    monkeypatch.setattr(RunDirectory, "finish", lambda self, **how: told.append(how))
    pipeline = FakePipeline(page(1), page(2), endless=stopped)
    pipeline.complete = stopped or complete
    await run(tmp_path / "out", pipeline, Listening(signal.SIGINT) if stopped else None)
    assert told == [{"interrupted": stopped, "complete": complete}]


@pytest.mark.parametrize(
    ("options", "mode"), [({"fresh": True}, OpenMode.FRESH), ({"retry_failed": True}, OpenMode.RESUME)]
)
async def test_a_worker_that_takes_over_continues_with_what_the_first_started(tmp_path, monkeypatch, options, mode):
    told: list[dict[str, Any]] = []
    open_directory = RunDirectory.open

    def noting(path, **options):
        told.append({name: options[name] for name in ("mode", "retry_failed", "death")})
        return open_directory(path, **{**options, "mode": OpenMode.AUTO, "retry_failed": False})

    monkeypatch.setattr(RunDirectory, "open", noting)
    vitals = Vitals()
    for number, death in enumerate([None, "SIGKILL"]):
        mine = life(vitals=vitals, number=number, death=death)
        await run(tmp_path / "out", FakePipeline(page(number + 1)), life=mine, **options)
    assert told == [
        {"mode": mode, "retry_failed": "retry_failed" in options, "death": None},
        {"mode": OpenMode.RESUME, "retry_failed": False, "death": "SIGKILL"},
    ]


async def test_a_worker_that_died_before_it_opened_the_directory_did_nothing_to_it(tmp_path, monkeypatch):
    told: list[Any] = []
    open_directory = RunDirectory.open

    def noting(path, **options):
        told.append((options["mode"], options["death"]))
        return open_directory(path, **options)

    monkeypatch.setattr(RunDirectory, "open", noting)
    await run(tmp_path / "out", FakePipeline(page(1)), life=life(number=1, death="SIGKILL"), fresh=True)
    assert told == [(OpenMode.FRESH, None)]
