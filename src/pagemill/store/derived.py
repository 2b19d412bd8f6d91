"""What is made from the records - documents and the report - compared with what it would be if it were made now."""

from __future__ import annotations

import filecmp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from pagemill.errors import DamagedRunError
from pagemill.store.files import encoded, reading_errors
from pagemill.store.findings import Kind
from pagemill.store.paths import REPORT, RESULTS, document_files
from pagemill.store.reading import RunReader
from pagemill.store.records import decode_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pagemill.document.page import PageResult
    from pagemill.store.exporters import Exporters, ReportWriter
    from pagemill.store.summary import RunSummary
    from pagemill.store.survey import Survey
    from pagemill.store.survey_ledger import LedgerFacts


def check_documents(survey: Survey, exporters: Exporters, facts: LedgerFacts | None, *, compare: bool) -> None:
    """Every document that is said to be up to date is there, and says what its records say.

    Args:
        survey: Of a directory that nobody works on.
        exporters: The formats that the documents were written in.
        facts: None for a directory without a ledger: then every document is expected.
        compare: Also compare the content.

    Raises:
        OutputError: A file cannot be read.
    """
    every = facts is None or facts.summary.finished is not None
    documents = survey.db.cursor().execute(
        "SELECT DISTINCT doc_id FROM lines LEFT JOIN documents USING (doc_id) WHERE fault IS NULL AND (? OR written)",
        (every,),
    )
    for (doc_id,) in documents:
        markdown, docjson = document_files(survey.path, doc_id)
        for path, export in ((markdown, exporters.document_markdown), (docjson, exporters.document_json)):
            if not path.is_file():
                kind = Kind.MISSING_DOCUMENT
            elif compare and not _same(path, encoded(export(records(survey, doc_id)))):
                kind = Kind.OTHER_DOCUMENT
            else:
                continue
            survey.add(kind, path.relative_to(survey.path).as_posix())
            survey.db.execute("INSERT OR IGNORE INTO stale VALUES (?)", (doc_id,))


def check_report(survey: Survey, write_report: ReportWriter, run_json: RunSummary, *, compare: bool) -> None:
    """The report is there if the run kept page images for one, and shows the records and the counts of ``run.json``.

    Args:
        survey: Of a finished run that nobody works on and whose ledger is whole.
        write_report: As the run did.
        run_json: Content of that file.
        compare: Also compare the content.

    Raises:
        OutputError: A file cannot be read.
    """
    path = survey.path / REPORT
    if not path.is_file():
        if survey.db.execute("SELECT 1 FROM rows WHERE preview_offset IS NOT NULL").fetchone():
            survey.add(Kind.OTHER_REPORT, REPORT, detail="missing")
    elif compare:
        with TemporaryDirectory(prefix="pagemill-") as folder, RunReader.open(survey.path) as reader:
            try:
                write_report(Path(folder), reader.pages(), reader.preview, msgspec.to_builtins(run_json))
            except DamagedRunError:  # which is told of the record
                survey.add(Kind.OTHER_REPORT, REPORT)
            else:
                if not filecmp.cmp(Path(folder) / REPORT, path, shallow=False):
                    survey.add(Kind.OTHER_REPORT, REPORT)


def records(survey: Survey, doc_id: str) -> Iterator[PageResult]:
    """The records of a document in page order, doubled ones left out, one at a time."""
    spans = survey.db.cursor().execute(
        "SELECT offset, length FROM lines WHERE doc_id = ? AND fault IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM findings WHERE kind = ? AND line = number) ORDER BY page_number, page_idx",
        (doc_id, Kind.DOUBLED_RECORD),
    )
    path = survey.file(RESULTS)
    with reading_errors(path), path.open("rb") as stream:
        for offset, length in spans:
            stream.seek(offset)
            yield decode_page(stream.read(length))


def _same(path: Path, chunks: Iterable[bytes]) -> bool:
    with reading_errors(path), path.open("rb") as stream:
        return all(stream.read(len(chunk)) == chunk for chunk in chunks) and not stream.read(1)
