"""Progress and summary: readable at 80 columns, bounded, harmless to the terminal, and never the end of a run."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pagemill.cli.progress import LenientConsole, ProgressDisplay, print_summary
from pagemill.document.page import PageError, PageResult, Status
from pagemill.errors import ExitCode
from pagemill.parsing.page import ParsedPage
from pagemill.run import RunOutcome
from pagemill.sources.base import DocumentRef
from pagemill.store.summary import RunSummary


def failed(page_id: str, message: str, remedy: str | None = None) -> ParsedPage:
    error = PageError(component="decode", category="corrupt", message=message, remedy=remedy)
    record = PageResult(
        page_id=page_id, page_idx=0, doc_id="d", source="d", page_number=1, status=Status.FAILED, errors=[error]
    )
    return ParsedPage(document=DocumentRef(doc_id="d", uri="d"), record=record, exit_code=ExitCode.INPUT)


def outcome_of(*pages: ParsedPage, **counts: object) -> RunOutcome:
    outcome = RunOutcome(RunSummary(started=datetime.now(UTC)))
    for page in pages:
        outcome.summary.add(page.record)
        outcome.add(page)
    for name, value in counts.items():
        setattr(outcome.summary, name, value)
    return outcome


def summary_of(outcome: RunOutcome, width: int = 80) -> list[str]:
    file = io.StringIO()
    print_summary(outcome, Path("out"), 12.5, LenientConsole(file=file, width=width))
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
    pages = [failed(f"p{n}", "is damaged", "Get it again." if n % 2 else "Mend it.") for n in range(100)]
    lines = summary_of(outcome_of(*pages))
    assert sum("is damaged" in line for line in lines) == 20
    assert [line.strip() for line in lines if "again" in line or "Mend" in line] == ["Mend it.", "Get it again."]
    assert lines[-1].startswith("  ... and 80 more")


def test_a_log_names_the_first_failures_and_counts_the_others():
    file = io.StringIO()
    with ProgressDisplay(console=LenientConsole(file=file, width=80)) as display:
        for number in range(100):
            display.page(failed(f"p{number}", "[bold]is damaged\x1b[31m\nand more " + "x" * 9999), 100)
    lines = file.getvalue().splitlines()
    assert len(lines) == 21
    assert lines[0].startswith("failed p0: [bold]is damaged\ufffd[31m and more xxx")
    assert len(lines[0]) < 600
    assert "\x1b" not in file.getvalue()


def test_quiet_says_nothing():
    file = io.StringIO()
    with ProgressDisplay(quiet=True, console=LenientConsole(file=file, force_terminal=True)) as display:
        display.page(failed("p", "is damaged"), 1)
        display.stopping()
    assert file.getvalue() == ""


def test_a_terminal_gets_a_bar_that_a_stop_takes_away():
    file = io.StringIO()
    console = LenientConsole(file=file, width=80, force_terminal=True, color_system=None)
    with ProgressDisplay(console=console) as display:
        display.page(failed("p", "is damaged"), 4)
        display.stopping()
        shown = file.getvalue()
        assert "1/4" in shown
        assert "1 failed" in shown
        display.page(failed("q", "is damaged, too"), 4)  # one that was on its way
    assert "\x1b[?25h" in shown
    assert "Ctrl-C" in shown
    assert "1/4" not in file.getvalue()[len(shown) :]


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
        console.say("one")
        console.say("two")
        assert console.quiet
