"""What is asked of a survey costs as much as there is: a run may have a million pages, and all of them damaged."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pagemill.store import checks, derived
from pagemill.store.findings import Kind
from pagemill.store.survey import Survey


def rows_and_torn_lines(survey: Survey, pages: int) -> None:
    survey.db.executemany(
        "INSERT INTO rows (page_key, state, page_id, offset) VALUES (?, 'done', ?, ?)",
        ((f"key {n}", f"page {n}", 100 * n + 50) for n in range(pages)),
    )
    survey.db.executemany(
        "INSERT INTO lines (number, offset, length, fault) VALUES (?, ?, 90, 'torn')",
        ((n, 100 * n + 5) for n in range(1, pages + 1)),
    )


def ask_for_records(survey: Survey, pages: int) -> None:
    checks.records_and_rows(survey)
    (group,) = survey.groups()  # of the other pages it is said that their line is torn
    assert (group.kind, [example.page_id for example in group.examples]) == (Kind.ROW_WITHOUT_RECORD, ["page 0"])


def doubled_records(survey: Survey, pages: int) -> None:
    survey.file("ocr_results.jsonl").touch()
    for n in range(pages):
        survey.db.execute(
            "INSERT INTO lines (number, offset, length, page_id, doc_id, good) VALUES (?, 0, 0, ?, ?, 0)",
            (n, f"page {n}", f"document {n}"),
        )
        survey.add(Kind.DOUBLED_RECORD, "place", line=n)


def ask_for_documents(survey: Survey, pages: int) -> None:
    for n in range(pages):
        assert not list(derived.records(survey, f"document {n}"))


@pytest.mark.parametrize(
    ("fill", "ask"), [(rows_and_torn_lines, ask_for_records), (doubled_records, ask_for_documents)]
)
def test_four_times_as_much_takes_no_sixteen_times_as_long(tmp_path: Path, fill, ask) -> None:
    def steps(pages: int) -> int:
        """Of SQLite's machine."""
        with closing(Survey(tmp_path)) as survey:
            fill(survey, pages)
            survey.index()
            taken = [0]

            def step() -> None:
                taken[0] += 1

            survey.db.set_progress_handler(step, 1)
            ask(survey, pages)
            return taken[0]

    assert steps(400) < 7 * steps(100)
