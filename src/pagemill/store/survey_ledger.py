"""The ledger's side of a survey: copied in one moment, so that a run that goes on does not move it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from pagemill.store.database import APPLICATION_ID, FORMAT, other_version, require_sqlite
from pagemill.store.ledger import summary_of
from pagemill.store.paths import LEDGER
from pagemill.store.rows import PageState
from pagemill.store.view import require_no_journal

if TYPE_CHECKING:
    from pagemill.store.summary import RunSummary
    from pagemill.store.survey import Survey

_STATES = " ".join(f"WHEN {state.value} THEN '{state.name.lower()}'" for state in PageState)
_COPY = f"""
INSERT INTO rows SELECT
    lower(hex(s.digest)) || '/' || p.page || CASE WHEN s.copy > 1 THEN '+' || s.copy ELSE '' END,
    CASE p.state {_STATES} END, p.page_id, d.doc_id, p.page_idx, p.page_number, p.offset, p.length, p.crc,
    p.text_offset, p.text_crc, p.preview_offset, p.preview_length, p.preview_crc
FROM ledger.pages p LEFT JOIN ledger.sources s USING (source) LEFT JOIN ledger.documents d USING (document);
INSERT INTO main.documents SELECT doc_id, written FROM ledger.documents;
INSERT INTO main.dropped SELECT file, offset FROM ledger.dropped;
INSERT INTO main.leftovers SELECT path FROM ledger.leftovers;
"""


class LedgerFacts(NamedTuple):
    """What the ledger says of the run as a whole."""

    summary: RunSummary
    results: int
    """Bytes of the records that pages have."""
    texts: int
    """Bytes of their texts."""
    generation: int
    """Counts the rewrites of the files."""
    renaming: bool
    """A rewrite was cut off: the new files still have their temporary names."""


def copy_ledger(survey: Survey) -> LedgerFacts:
    """Copy what the ledger knows into the survey's tables.

    Raises:
        ValueError: It is missing or no whole ledger; the tables are then empty.
        OutputError: It cannot be read without the right to write, or is of another version of pagemill.
        MissingDependencyError: SQLite is too old.
    """
    require_sqlite()
    path = survey.path / LEDGER
    if not path.is_file():
        raise ValueError("missing")
    try:
        try:
            return _copy(survey, "mode=ro")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
                raise
            require_no_journal(path)
            return _copy(survey, "immutable=1")
    except (sqlite3.DatabaseError, ValueError, TypeError) as error:
        survey.db.executescript("DELETE FROM rows; DELETE FROM documents; DELETE FROM dropped; DELETE FROM leftovers;")
        raise ValueError(str(error)) from error


def _copy(survey: Survey, mode: str) -> LedgerFacts:
    db = survey.db
    db.execute("ATTACH ? AS ledger", (f"{(survey.path / LEDGER).absolute().as_uri()}?{mode}",))
    try:
        db.execute("BEGIN")
        application, version = (
            int(db.execute(f"PRAGMA ledger.{name}").fetchone()[0]) for name in ("application_id", "user_version")
        )
        if application != APPLICATION_ID:
            raise ValueError("no ledger of pagemill")
        if version != FORMAT:
            raise other_version(survey.path / LEDGER, version)
        fault = db.execute("PRAGMA ledger.integrity_check(1)").fetchone()[0]
        if fault != "ok":
            raise ValueError(fault)
        for statement in _COPY.split(";\n"):
            db.execute(statement)
        runs = db.execute(
            "SELECT identity, settings, started, finished, interrupted, counters, results, texts, generation, renaming"
            " FROM ledger.run, ledger.written"
        ).fetchall()
        if len(runs) != 1:
            raise ValueError("it knows of no run")
        run = runs[0]
        return LedgerFacts(summary_of(run[:6]), run[6], run[7], run[8], bool(run[9]))
    finally:
        if db.in_transaction:
            db.execute("COMMIT")
        db.execute("DETACH ledger")
