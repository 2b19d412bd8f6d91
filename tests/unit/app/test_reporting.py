"""The outcome of a run, and the exit code that follows from it."""

from datetime import UTC, datetime

import pytest
from fake_pipeline import page

from pagemill.app.reporting import RunOutcome
from pagemill.document.page import DOUBTS, PageError
from pagemill.errors import ExitCode
from pagemill.parsing.page import ParsedPage
from pagemill.store.summary import RunSummary

BAD, CRASH, OK = ExitCode.INPUT, ExitCode.CRASH, ExitCode.OK


def outcome_of(*pages: ParsedPage, **options: bool) -> RunOutcome:
    outcome = RunOutcome(RunSummary(started=datetime.now(UTC)), **options)
    for each in pages:
        outcome.summary.add(each.record)
        outcome.add(each)
    return outcome


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
    outcome = outcome_of(*(page(number, code) for number, code in enumerate(codes, start=1)))
    assert outcome.exit_code is expected
    outcome.summary.interrupted = True
    assert outcome.exit_code is ExitCode.INTERRUPTED


def test_a_warning_on_a_good_page_is_not_success_and_the_list_of_failures_is_bounded():
    outcome = outcome_of(*(page(number, warning=True) for number in range(1, 101)))
    assert outcome.exit_code is ExitCode.PAGES_FAILED
    assert len(outcome.failures) == outcome.MAX_FAILURES
    assert outcome.errors == 100


@pytest.mark.parametrize("category", sorted(DOUBTS))
def test_a_doubt_about_what_was_read_decides_about_the_exit_code_with_strict_alone(category):
    for strict, expected in ((False, ExitCode.OK), (True, ExitCode.PAGES_FAILED)):
        each = page(1)
        each.record.errors = [PageError(component="recognition", category=category, message="x", region=0)]
        outcome = outcome_of(each, strict=strict)
        assert outcome.exit_code is expected
        assert (outcome.errors, len(outcome.failures)) == (int(strict), int(strict))
        assert outcome.summary.warnings_by_kind == {category: 1}
