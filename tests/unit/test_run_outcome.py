"""A run over a pipeline that needs no engines: exit codes, what is written when it ends early, signals."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pagemill.document.page import PageError, PageResult, Status
from pagemill.errors import ExitCode, InputError, LanguageError, OutputError
from pagemill.parsing.page import ParsedPage
from pagemill.run import RunOutcome, parse_into
from pagemill.sources import SourceOptions
from pagemill.sources.base import DocumentRef
from pagemill.store.run_directory import RunDirectory
from pagemill.store.summary import RunSummary


def page(number: int, code: ExitCode = ExitCode.OK, *, warning: bool = False, pages: int = 3) -> ParsedPage:
    failed = code is not ExitCode.OK
    error = PageError(component="decode", category="corrupt", message="it is damaged", remedy="Get it again.")
    record = PageResult(
        page_id=f"d_{number}",
        page_idx=number - 1,
        doc_id="d",
        source="d.pdf",
        page_number=number,
        status=Status.FAILED if failed else Status.DONE,
        errors=[error] if failed or warning else [],
    )
    return ParsedPage(document=DocumentRef(doc_id="d", uri="d.pdf", page_count=pages), record=record, exit_code=code)


class FakePipeline:
    """Gives the pages it was made with; then waits for ``gate`` where there is one."""

    total = None

    def __init__(self, *pages: ParsedPage, problem: Exception | None = None, gate: asyncio.Event | None = None) -> None:
        self.pages, self.problem, self.gate = pages, problem, gate
        self.closed = False

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.closed = True

    def describe(self):
        return {}

    async def prepare(self) -> None:
        if isinstance(self.problem, LanguageError):
            raise self.problem

    async def stream(self, inputs, options):
        for each in self.pages:
            yield each
        if self.problem:
            raise self.problem
        if self.gate:
            await self.gate.wait()


async def run(out: Path, pipeline: FakePipeline, progress=None) -> RunOutcome:
    return await parse_into(out, ["d.pdf"], pipeline=pipeline, options=SourceOptions(), report=False, progress=progress)


def records(out: Path) -> list[str]:
    return [json.loads(line)["page_id"] for line in (out / "ocr_results.jsonl").read_text().splitlines()]


BAD, CRASH, OK = ExitCode.INPUT, ExitCode.CRASH, ExitCode.OK


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([OK, OK], ExitCode.OK),
        ([OK, BAD], ExitCode.PAGES_FAILED),
        ([BAD, BAD], ExitCode.INPUT),
        ([BAD, CRASH], ExitCode.PAGES_FAILED),
        ([CRASH], ExitCode.CRASH),
    ],
)
def test_the_exit_code_is_the_cause_only_when_nothing_succeeded(codes, expected):
    outcome = RunOutcome(RunSummary(started=datetime.now(UTC)))
    for number, code in enumerate(codes, start=1):
        each = page(number, code)
        outcome.summary.add(each.record)
        outcome.add(each)
    assert outcome.exit_code is expected
    outcome.summary.interrupted = True
    assert outcome.exit_code is ExitCode.INTERRUPTED


def test_a_warning_on_a_good_page_is_not_success_and_the_list_of_failures_is_bounded():
    outcome = RunOutcome(RunSummary(started=datetime.now(UTC)))
    for number in range(1, 101):
        each = page(number, warning=True)
        outcome.summary.add(each.record)
        outcome.add(each)
    assert outcome.exit_code is ExitCode.PAGES_FAILED
    assert len(outcome.failures) == outcome.MAX_FAILURES
    assert outcome.errors == 100


async def test_a_document_is_written_when_its_last_page_is_there(tmp_path, monkeypatch):
    finished: list[tuple[str, int]] = []
    monkeypatch.setattr(
        RunDirectory, "finish_document", lambda self, doc_id: finished.append((doc_id, self.summary.pages))
    )
    await run(tmp_path / "out", FakePipeline(page(2), page(3), page(1)))
    assert finished[0] == ("d", 3)


async def test_what_no_page_could_do_is_said_before_the_output_is_touched(tmp_path):
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


class Interrupting:
    """Sends a signal to the process when the second page is there."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number
        self.pages = 0
        self.stopped = False

    def page(self, page: ParsedPage, total: int | None) -> None:
        self.pages += 1
        if self.pages == 2:
            signal.raise_signal(self.number)

    def stopping(self) -> None:
        self.stopped = True
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # the next one ends the process
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_the_run_and_the_handlers_come_back(tmp_path, number):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    progress = Interrupting(number)
    outcome = await run(tmp_path / "out", FakePipeline(page(1), page(2), gate=asyncio.Event()), progress)
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert progress.stopped
    assert records(tmp_path / "out") == ["d_1", "d_2"]
    assert (tmp_path / "out" / "documents" / "d.md").exists()
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


async def test_an_ignored_signal_stays_ignored(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        progress = Interrupting(signal.SIGINT)
        outcome = await run(tmp_path / "out", FakePipeline(page(1), page(2), page(3)), progress)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (outcome.exit_code, progress.pages, progress.stopped) == (ExitCode.OK, 3, False)


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
