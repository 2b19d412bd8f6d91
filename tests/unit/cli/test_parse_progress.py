"""Progress and summary: readable at 80 columns, bounded, harmless to the terminal, and never the end of a run."""

import io
import os
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest
from msgspec.structs import replace

from pagemill.app.reporting import RunOutcome
from pagemill.cli import parse_progress
from pagemill.cli.parse_progress import ParseProgress, print_skipped, print_summary
from pagemill.cli.progress import LenientConsole, ProgressBar
from pagemill.document.page import PageError, PageResult, Status
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.supervisor import Life, Vitals
from pagemill.sources.base import DocumentRef
from pagemill.store.summary import RunSummary


def failed(page_id: str, message: str, remedy: str | None = None) -> ParsedPage:
    error = PageError(component="decode", category="corrupt", message=message, remedy=remedy)
    record = PageResult(
        page_id=page_id, page_idx=0, doc_id="d", source="d", page_number=1, status=Status.FAILED, errors=[error]
    )
    return ParsedPage(document=DocumentRef(doc_id="d", uri="d"), record=record)


def done(page_id: str) -> ParsedPage:
    record = PageResult(page_id=page_id, page_idx=0, doc_id="d", source="d", page_number=1)
    return ParsedPage(document=DocumentRef(doc_id="d", uri="d"), record=record)


def test_the_progress_has_rates_by_machine(monkeypatch):
    monkeypatch.setattr("pagemill.cli.parse_progress.LOG_EVERY_S", 0.0)
    for node, shown in (("gpu-1", True), (None, False)):
        file = io.StringIO()
        progress = ParseProgress(LenientConsole(file=file, width=200), Life())
        progress.page(replace(done("a"), node=node), total=2, skipped=0)
        assert ("(gpu-1 1.00)" in file.getvalue()) is shown


def outcome_of(*pages: ParsedPage, **counts: object) -> RunOutcome:
    outcome = RunOutcome(RunSummary(started=datetime.now(UTC)))
    for page in pages:
        outcome.summary.add(page.record)
        outcome.add(page)
    for name, value in counts.items():
        setattr(outcome.summary, name, value)
    return outcome


def vitals_of(done: int, failed: int = 0) -> Vitals:
    return Vitals(done=done, failed=failed)


def summary_of(
    outcome: RunOutcome, width: int = 80, vitals: Vitals | None = None, out: Path = Path("nowhere")
) -> list[str]:
    file = io.StringIO()
    summary = outcome.summary
    vitals = vitals or vitals_of(summary.pages - summary.failed, summary.failed)
    with redirect_stdout(file), mock.patch.dict(os.environ, COLUMNS=str(width)):
        print_summary(outcome, vitals, out, 12.5)
    return file.getvalue().splitlines()


def test_the_summary_fits_its_width_and_splits_no_item():
    labels = {f"label_{number}": 10 + number for number in range(25)}
    outcome = outcome_of(pages=100, documents=1, regions=500, regions_by_label=labels)
    for width in (50, 80):
        lines = summary_of(outcome, width)
        assert max(map(len, lines)) <= width
        assert all(line == line.rstrip() for line in lines)
        text = "\n".join(lines)
        assert all(f"{label} {count}" in text for label, count in labels.items())
    assert lines[0] == "pages     100 done, 0 failed, 1 document"
    assert lines[1] == "time      12.5 s (8.00 pages/s)"
    assert text.index("label_24 34") < text.index("label_0 10")


def test_failures_with_one_remedy_stand_together_and_are_bounded():
    pages = [failed(f"p{n}", "is damaged", "Get it again." if n % 2 else "Repair it.") for n in range(100)]
    lines = summary_of(outcome_of(*pages))
    assert sum("is damaged" in line for line in lines) == 20
    assert [line.strip() for line in lines if "again" in line or "Repair" in line] == ["Repair it.", "Get it again."]
    assert lines[-2].startswith("  ... and 80 more")
    assert "--retry-failed" in lines[-1]


def test_a_log_names_the_first_failures_and_counts_the_others():
    file = io.StringIO()
    with ParseProgress(LenientConsole(file=file, width=80), Life()) as display:
        for number in range(100):
            page = failed(f"p{number}", "[bold]is damaged\x1b[31m\nand more " + "x" * 9999)
            display.page(page, total=100, skipped=0)
    lines = file.getvalue().splitlines()
    assert len(lines) == 21
    assert lines[0].startswith("failed p0: [bold]is damaged\ufffd[31m and more xxx")
    assert len(lines[0]) < 600
    assert "\x1b" not in file.getvalue()


def test_quiet_names_what_failed_and_nothing_else():
    file = io.StringIO()
    with ParseProgress(LenientConsole(file=file, width=80, failures_only=True), Life()) as display:
        display.opened(3)
        display.page(failed("p", "is damaged"), total=1, skipped=0)
        display.postponed(failed("p", "is damaged"))
        display.hangs(fresh_process=True)
        display.page(done("q"), total=2, skipped=0)
        display.stopping(2)
    assert file.getvalue() == "failed p: is damaged\n"


def test_a_terminal_gets_a_bar_that_a_stop_takes_away():
    file = io.StringIO()
    console = LenientConsole(file=file, width=120, force_terminal=True, color_system=None)
    with ParseProgress(console, Life(vitals=vitals_of(1, failed=1))) as display:
        display.page(failed("p", "is damaged"), total=4, skipped=0)
        display.postponed(failed("r", "hung"))
        display.page(done("o"), total=4, skipped=0)
        display.stopping(2)
        shown = file.getvalue()
        assert "2/4" in shown
        assert "1 failed, 1 retried" in shown
        assert "Stopping: 2 pages in flight will be finished" in shown
        display.page(failed("q", "is damaged, too"), total=4, skipped=0)  # one that was on its way
    assert "\x1b[?25h" in shown
    assert "Ctrl-C" in shown
    assert "2/4" not in file.getvalue()[len(shown) :]


@pytest.mark.parametrize("sink", ["pipe", "full"])
def test_a_console_that_nobody_reads_goes_quiet(sink: str):
    if sink == "full":
        if not Path("/dev/full").exists():
            pytest.skip("there is no /dev/full")
        write = os.open("/dev/full", os.O_WRONLY)
    else:
        read, write = os.pipe()
        os.close(read)
    with os.fdopen(write, "w", encoding="utf-8") as file:
        console = LenientConsole(file=file)
        console.print_line("one")
        console.print_line("two")
        assert console.quiet


def test_pages_of_an_earlier_invocation_are_progress_but_no_speed(monkeypatch: pytest.MonkeyPatch):
    clock = [100.0]
    monkeypatch.setattr(parse_progress.time, "monotonic", lambda: clock[0])
    file = io.StringIO()
    display = ParseProgress(LenientConsole(file=file, width=80), Life())
    display.opened(1_234)
    for _ in range(20):
        clock[0] += 1.0
        display.page(done("p"), total=1_294, skipped=1_234)
    lines = file.getvalue().splitlines()
    assert lines[0] == "Resuming: 1,234 pages finished before."
    assert lines[1:] == [
        "1244/1294 pages, 1.00 pages/s, 50.0 s left, 0 failed",
        "1254/1294 pages, 1.00 pages/s, 40.0 s left, 0 failed",
    ]


def test_a_process_that_takes_over_does_not_greet_again():
    file = io.StringIO()
    ParseProgress(LenientConsole(file=file), Life(number=1)).opened(7)
    assert file.getvalue() == ""


def test_a_page_that_will_be_retried_is_named():
    file = io.StringIO()
    display = ParseProgress(LenientConsole(file=file, width=80), Life())
    display.postponed(failed("p7", "took longer than 300 s"))
    assert file.getvalue() == "will be retried p7: took longer than 300 s\n"


def test_the_summary_separates_this_invocation_from_all():
    outcome = outcome_of(*(done(f"p{number}") for number in range(9)), failed("bad", "is damaged"))
    outcome.summary.skipped = 3
    lines = summary_of(outcome, vitals=vitals_of(done=4, failed=1))
    assert lines[0] == "pages     9 done, 1 failed, 3 skipped, 0 documents"
    assert lines[1] == "this time 4 done, 1 failed"
    assert lines[2] == "time      12.5 s (0.40 pages/s)"


def test_a_resume_with_nothing_left_says_so():
    outcome = outcome_of(done("p"), regions=7)
    lines = summary_of(outcome, vitals=vitals_of(0))
    assert lines == [
        "pages     1 done, 0 failed, 0 documents",
        "this time nothing to do",
        "time      12.5 s",
        "output    nowhere",
    ]


def test_the_report_is_named_where_there_is_one(tmp_path: Path):
    (tmp_path / "report.html").touch()
    assert summary_of(outcome_of(done("p")), width=500, out=tmp_path)[-1] == f"report    {tmp_path / 'report.html'}"


def test_the_remedy_of_a_failed_run_depends_on_what_failed():
    """An input that does not open is tried by every resume, a page that failed only when asked."""
    unopened = failed("typo", "does not exist")
    unopened.record.page_number = None
    assert summary_of(outcome_of(done("p"), unopened))[-1] == "The next run into this output retries them."
    mixed = summary_of(outcome_of(unopened, failed("q", "is damaged")))
    assert mixed[-1] == "To retry the failed pages, repeat the command with --retry-failed."


def test_an_interrupted_run_says_how_it_continues():
    lines = summary_of(outcome_of(done("p"), failed("q", "is damaged"), interrupted=True))
    assert lines[-1] == "Interrupted. The pages parsed so far are in the output; repeat the command to resume."


def test_a_bar_is_drawn_on_a_terminal_alone_and_not_when_quiet():
    for terminal, quiet in ((True, False), (True, True), (False, False)):
        file = io.StringIO()
        console = LenientConsole(file=file, width=80, force_terminal=terminal, color_system=None, failures_only=quiet)
        with ProgressBar(console, 3, "making") as bar:
            bar.advance()
            bar.update(4, 5, "texts", "a note")
            assert bar.shown == (terminal and not quiet)
        assert all((part in file.getvalue()) == (terminal and not quiet) for part in ("texts", "4/5", "a note"))


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ({"skipped_files": {".gif": 1, ".docx": 2}}, "skipped: 3 files of other kinds (.docx 2, .gif 1)"),
        ({"skipped_files": {".gif": 1}}, "skipped: 1 file of another kind (.gif 1)"),
        ({"skipped_links": ["old", "new"]}, "skipped: 2 linked folders, read only if named: old, new"),
        ({"skipped_tables": ["QA"]}, "1 table without images skipped: QA"),
        (
            {"skipped_tables": [str(number) for number in range(12)]},
            "12 tables without images skipped: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
        ),
        ({}, None),
    ],
)
def test_what_was_not_read_of_the_inputs_is_named_in_one_line(found, line):
    file = io.StringIO()
    print_skipped(RunOutcome(RunSummary(started=datetime.now(UTC)), **found), LenientConsole(file=file))
    assert file.getvalue().splitlines() == ([line] if line else [])
