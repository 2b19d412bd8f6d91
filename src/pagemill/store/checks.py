"""What a verification asks of a :class:`~pagemill.store.survey.Survey`; each question notes what it finds there."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from pagemill.store.files import reading_errors
from pagemill.store.findings import Kind
from pagemill.store.lines import read_span
from pagemill.store.paths import CROPS, DOCUMENTS, PREVIEWS, RESULTS, TEMPORARY_SUFFIX, TEXTS, stem_of_crop
from pagemill.store.rows import Span

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.store.survey import Survey

_LINE = f"'line ' || lines.number || ' of {RESULTS}'"
_TEXT_LINE = f"'line ' || texts.number || ' of {TEXTS}'"
_LATER_TEXT = "SELECT 1 FROM texts AS later WHERE later.page_id = texts.page_id AND later.number > texts.number"


def torn_lines(survey: Survey) -> None:
    """Lines that are no records, with the first page that the ledger has there."""
    survey.note(
        Kind.TORN_RECORD,
        f"""
        SELECT {_LINE}, (SELECT rows.page_id FROM rows WHERE rows.offset >= lines.offset
            AND rows.offset < lines.offset + lines.length ORDER BY rows.offset LIMIT 1), NULL, number
        FROM lines WHERE fault IS NOT NULL
        """,
    )


def doubled_lines(survey: Survey) -> None:
    """Of several records of a page, or by one page id, the one that the ledger names stays, else the last."""
    survey.db.execute(
        "UPDATE lines SET named = 1 WHERE EXISTS"
        " (SELECT 1 FROM rows WHERE rows.page_key = lines.page_key AND rows.offset = lines.offset)"
    )
    for name in ("page_key", "page_id"):
        survey.note(
            Kind.DOUBLED_RECORD,
            f"""
            SELECT 'line ' || number || ' of {RESULTS}', page_id, 'as in line ' || kept, number FROM (
                SELECT number, page_id, first_value(number) OVER best AS kept, row_number() OVER best AS rank
                FROM lines WHERE good AND {name} IN
                    (SELECT {name} FROM lines WHERE good GROUP BY {name} HAVING count(*) > 1)
                WINDOW best AS (PARTITION BY {name} ORDER BY named DESC, number DESC)
            ) WHERE rank > 1
            """,
        )
        survey.lose(Kind.DOUBLED_RECORD)


def records_and_rows(survey: Survey) -> None:
    """Every record has a row of the ledger that says the same, and every row of an ended page its record."""
    survey.note(
        Kind.CHANGED_RECORD,
        f"SELECT {_LINE}, lines.page_id, NULL, lines.number FROM lines JOIN rows USING (page_key)"
        " WHERE lines.good AND lines.named AND (rows.length <> lines.length OR rows.crc <> lines.crc)",
    )
    survey.lose(Kind.CHANGED_RECORD)
    survey.note(
        Kind.RECORD_WITHOUT_ROW,
        f"""
        SELECT {_LINE}, lines.page_id, 'the ledger has it as ' || rows.state, lines.number
        FROM lines LEFT JOIN rows USING (page_key)
        WHERE lines.good AND (rows.state IS NULL OR rows.state NOT IN ('done', 'failed'))
        """,
    )
    survey.note(
        Kind.OTHER_ROW,
        f"""
        SELECT {_LINE}, lines.page_id, CASE
            WHEN rows.offset IS NOT lines.offset THEN 'the ledger has it at byte ' || ifnull(rows.offset, 'none')
            WHEN rows.state IS NOT lines.status THEN 'the ledger has it as ' || rows.state
            ELSE 'the ledger has other names or numbers' END, lines.number
        FROM lines JOIN rows USING (page_key)
        WHERE lines.good AND NOT (
            rows.offset IS lines.offset AND rows.state IS lines.status AND rows.page_id IS lines.page_id
            AND rows.doc_id IS lines.doc_id AND rows.page_idx IS lines.page_idx
            AND rows.page_number IS lines.page_number)
        """,
    )
    survey.note(
        Kind.ROW_WITHOUT_RECORD,
        """
        SELECT 'ledger', page_id, NULL, NULL FROM rows WHERE state IN ('done', 'failed')
        AND NOT EXISTS (SELECT 1 FROM lines WHERE lines.page_key = rows.page_key)
        AND NOT ifnull((SELECT rows.offset < lines.offset + lines.length FROM lines
            WHERE fault IS NOT NULL AND lines.offset <= rows.offset ORDER BY lines.offset DESC LIMIT 1), FALSE)
        """,
    )


def texts(survey: Survey, *, ledger: bool) -> None:
    """Every record has one text line: the one that was written with it, or else the one that it says.

    Args:
        survey: With ``text_crc`` of the lines if ``ledger`` is off and this version makes texts as the run did.
        ledger: The ledger is whole and knows what was written.
    """
    survey.note(Kind.TORN_TEXT, f"SELECT {_TEXT_LINE}, NULL, NULL, NULL FROM texts WHERE fault IS NOT NULL")
    survey.note(
        Kind.MISSING_TEXT,
        f"SELECT '{TEXTS}', page_id, NULL, number FROM lines WHERE good"
        " AND NOT EXISTS (SELECT 1 FROM texts WHERE texts.page_id = lines.page_id)",
    )
    survey.note(
        Kind.ORPHANED_TEXT,
        f"""
        SELECT {_TEXT_LINE}, page_id, NULL, NULL FROM texts
        WHERE fault IS NULL AND (EXISTS ({_LATER_TEXT})
            OR NOT EXISTS (SELECT 1 FROM lines WHERE lines.page_id = texts.page_id))
        """,
    )
    if ledger:
        said = (
            "rows.state NOT IN ('done', 'failed') OR (rows.text_offset IS texts.offset AND rows.text_crc IS texts.crc)"
        )
    else:
        said = "lines.text_crc IS NULL OR texts.crc IS lines.text_crc"
    survey.note(
        Kind.OTHER_TEXT,
        f"""
        SELECT {_TEXT_LINE}, texts.page_id, CASE WHEN rows.text_crc = texts.crc
            THEN 'the ledger has it at byte ' || rows.text_offset END, lines.number
        FROM texts JOIN lines ON lines.page_id = texts.page_id
        LEFT JOIN rows USING (page_key)
        WHERE lines.good AND texts.fault IS NULL AND NOT EXISTS ({_LATER_TEXT}) AND NOT ({said})
        """,
    )


def crops(survey: Survey, *, quick: bool) -> None:
    """The crops that records mention are there and what was written; a record whose crops are not is lost."""
    crop = "FROM crops JOIN lines ON lines.number = crops.line LEFT JOIN files ON files.path = crops.path"
    survey.note(
        Kind.MISSING_CROP,
        f"SELECT crops.path, lines.page_id, NULL, lines.number {crop}"
        " WHERE lines.fault IS NULL AND (files.size IS NULL OR files.size < 0)",
    )
    survey.note(
        Kind.CHANGED_CROP,
        f"SELECT crops.path, lines.page_id, crops.size || ' bytes written, ' || files.size || ' there', lines.number"
        f" {crop} WHERE lines.fault IS NULL AND files.size >= 0 AND files.size <> crops.size",
    )
    if not quick:
        same_size = survey.db.execute(
            f"SELECT crops.path, crops.sha256, lines.page_id, lines.number {crop}"
            " WHERE lines.fault IS NULL AND files.size = crops.size ORDER BY lines.number"
        )
        for path, sha256, page_id, number in same_size:
            if _sha256(survey.path / path) != sha256:
                survey.add(Kind.CHANGED_CROP, path, page_id, "same size, other content", number)
    survey.lose(Kind.MISSING_CROP)
    survey.lose(Kind.CHANGED_CROP)


def files(survey: Survey) -> None:
    """Files that nothing mentions: temporary ones, those named after a page or document of this run, and others."""
    unknown = survey.db.cursor().execute(
        """
        SELECT path, size FROM files WHERE NOT EXISTS (SELECT 1 FROM leftovers WHERE leftovers.path = files.path)
        AND NOT EXISTS (SELECT 1 FROM crops WHERE crops.path = files.path) ORDER BY path
        """
    )
    for path, size in unknown:
        folder, _, name = path.rpartition("/")
        if size >= 0 and name.endswith(TEMPORARY_SUFFIX):
            survey.add(Kind.LEFT_OVER, path)
        elif folder == CROPS:
            ours = size >= 0 and _is_crop(survey, name)
            survey.add(Kind.ORPHANED_CROP if ours else Kind.UNKNOWN_FILE, path)
        elif folder == DOCUMENTS:
            stem, _, suffix = name.rpartition(".")
            if size < 0 or suffix not in {"md", "json"} or not survey.belongs(DOCUMENTS, stem):
                survey.add(Kind.UNKNOWN_FILE, path)
            elif not survey.belongs("recorded", stem):
                survey.add(Kind.ORPHANED_DOCUMENT, path)


def _is_crop(survey: Survey, name: str) -> bool:
    """Whether a file is named as a crop of a page of this run, or of a page that one of its documents may have."""
    stem = stem_of_crop(name)
    if stem is None:
        return False
    document, _, number = stem.rpartition("_")
    return survey.belongs(CROPS, stem) or (number.isdecimal() and survey.belongs(DOCUMENTS, document))


def previews(survey: Survey) -> None:
    """The small page images that the ledger points to are what was written."""
    path = survey.path / PREVIEWS
    spans = survey.db.cursor().execute(
        "SELECT page_id, preview_offset, preview_length, preview_crc FROM rows WHERE preview_offset IS NOT NULL"
        " AND state IN ('done', 'failed') ORDER BY preview_offset"
    )
    if not path.exists():
        for page_id, *_ in spans:
            survey.add(Kind.LOST_PREVIEW, PREVIEWS, page_id)
        return
    with reading_errors(path), path.open("rb") as stream:
        for page_id, *place in spans:
            if read_span(stream, Span(*place)) is None:
                survey.add(Kind.LOST_PREVIEW, PREVIEWS, page_id)


def _sha256(path: Path) -> str | None:
    """Digest of a file; None for one that is gone: a run that goes on has taken it back."""
    with reading_errors(path), contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
    return None
