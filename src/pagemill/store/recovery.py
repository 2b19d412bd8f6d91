"""Putting right what a process that died, or a power cut, left behind in a run directory."""

from __future__ import annotations

import hashlib
import os
import zlib
from itertools import chain
from typing import TYPE_CHECKING

from pagemill.document.identity import DUPLICATE_OF
from pagemill.document.names import file_stem
from pagemill.store import paths
from pagemill.store.compaction import compact, finish_renames
from pagemill.store.dropping import RESULTS_FILE, TEXTS_FILE, delete_leftovers, drop_pages
from pagemill.store.files import AppendFile, cut_file, output_errors, size_of, sync_files
from pagemill.store.lines import open_lines, read_record, read_span
from pagemill.store.records import ParsedText, encode_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pagemill.document.page import PageResult
    from pagemill.store.ledger import Ledger
    from pagemill.store.rows import PageRow
    from pagemill.store.summary import RunSummary

_CHUNK_ROWS = 500


class Recovery:
    """What is done whenever a run directory is opened; costs as much as there is to put right.

    Args:
        out: The run directory.
        ledger: Its ledger.
        summary: Counts of the run, kept in step.
        embedding_text: Makes the text of a page anew.
    """

    def __init__(
        self, out: Path, ledger: Ledger, summary: RunSummary, embedding_text: Callable[[PageResult], str]
    ) -> None:
        self._out = out
        self._ledger = ledger
        self._database = ledger.database
        self._summary = summary
        self._embedding_text = embedding_text

    def run(self, *, death: str | None, retry_failed: bool, parse_duplicates: bool) -> None:
        """Put everything right.

        Args:
            death: How the process died that had the directory open before, where somebody saw it.
            retry_failed: Failed pages are to be tried again.
            parse_duplicates: Pages that were skipped as duplicates are to be parsed after all.

        Raises:
            DamagedRunError: The ledger is damaged.
            OutputError: The directory cannot be changed; NoSpaceError when the disk is full.
        """
        finish_renames(self._out, self._ledger)
        self._cut_records()
        self._cut_texts()
        self._cut_previews()
        self._check_tail()
        self._mend_texts()
        again: list[PageRow] = []
        if retry_failed:
            again += self._ledger.rows("p.state = 4 AND p.state <> 3 AND p.page > 0")
        if parse_duplicates:
            again += self._ledger.rows("p.state = 5 AND p.state <> 3 AND p.category GLOB ?", (f"{DUPLICATE_OF}*",))
        if again:
            drop_pages(self._out, self._ledger, self._summary, again, forget=False)
        self._ledger.doubt_documents(self._summary)
        if self._summary.finished is None:
            self._clear_crops()
            self._clear_temporary(self._out / paths.DOCUMENTS)
        for name in (paths.REPORT, paths.RUN_JSON):
            with output_errors(self._out / name):
                (self._out / (name + paths.TEMPORARY_SUFFIX)).unlink(missing_ok=True)
        self._ledger.wake(death)
        if self._ledger.has_leftovers:
            delete_leftovers(self._out, self._ledger)
        compact(self._out, self._ledger)

    def _cut_records(self) -> None:
        path, size = self._out / paths.RESULTS, self._ledger.sizes()[RESULTS_FILE]
        actual = size_of(path)
        if actual > size:
            cut_file(path, size)
        if actual >= size:
            return
        lost = self._ledger.rows("p.offset + p.length > ?", (actual,))
        dropped = self._database.query(
            "SELECT offset FROM dropped WHERE file = ? AND offset + length > ?", (RESULTS_FILE, actual)
        )
        end = min([actual, *(row.record.offset for row in lost if row.record), *(row[0] for row in dropped)])
        if actual:
            cut_file(path, end)
        drop_pages(self._out, self._ledger, self._summary, [row._replace(record=None) for row in lost], forget=False)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM dropped WHERE file = ? AND offset >= ?", (RESULTS_FILE, end))
            connection.execute("UPDATE written SET results = ?", (end,))
            connection.execute("UPDATE run SET synced_results = min(synced_results, ?)", (end,))

    def _cut_texts(self) -> None:
        path, size = self._out / paths.TEXTS, self._ledger.sizes()[TEXTS_FILE]
        actual = size_of(path)
        if actual > size:
            cut_file(path, size)
        if actual >= size:
            return
        starts = self._database.query(
            "SELECT text_offset FROM pages WHERE text_offset + text_length > ? UNION ALL"
            " SELECT offset FROM dropped WHERE file = ? AND offset + length > ?",
            (actual, TEXTS_FILE, actual),
        )
        end = min([actual, *(row[0] for row in starts)])
        if actual:
            cut_file(path, end)
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE pages SET text_offset = NULL, text_length = NULL, text_crc = NULL WHERE text_offset >= ?",
                (end,),
            )
            connection.execute("DELETE FROM dropped WHERE file = ? AND offset >= ?", (TEXTS_FILE, end))
            connection.execute("UPDATE written SET texts = ?", (end,))

    def _cut_previews(self) -> None:
        path, size = self._out / paths.PREVIEWS, self._ledger.sizes()[2]
        actual = size_of(path)
        if actual > size:
            cut_file(path, size)
        if actual < size:
            with self._database.transaction() as connection:
                connection.execute(
                    "UPDATE pages SET preview_offset = NULL, preview_length = NULL, preview_crc = NULL"
                    " WHERE preview_offset IS NOT NULL AND preview_offset + preview_length > ?",
                    (actual,),
                )
                connection.execute("UPDATE written SET previews = ?", (actual,))

    def _check_tail(self) -> None:
        """Look at what was not known to be on the disk: a power cut may have left anything there."""
        ((synced,),) = self._database.query("SELECT synced_results FROM run")
        bad: list[PageRow] = []
        without_text: list[PageRow] = []
        without_preview: list[PageRow] = []
        crops: list[Path] = []
        with (
            open_lines(self._out / paths.RESULTS) as results,
            open_lines(self._out / paths.TEXTS) as texts,
            open_lines(self._out / paths.PREVIEWS) as previews,
        ):
            for row in chain.from_iterable(self._rows_from(synced)):
                record = read_record(results, row.record) if row.record else None
                if record is None or not self._is_whole(row, record):
                    bad.append(row)
                    continue
                crops += [paths.crop_file(self._out, crop.path) for crop in record.image_crops]
                if row.text is not None and read_span(texts, row.text) is None:
                    without_text.append(row)
                if row.preview is not None and read_span(previews, row.preview) is None:
                    without_preview.append(row)
        sync_files(crops)  # the process that wrote them may have died before it did so
        if bad:
            drop_pages(self._out, self._ledger, self._summary, bad, forget=False)
        if without_text:
            self._give_up_texts(without_text)
        if without_preview:
            self._give_up_previews(without_preview)

    def _rows_from(self, offset: int, condition: str = "TRUE") -> Iterator[list[PageRow]]:
        """Pages whose record is at ``offset`` or behind it, some at a time, in the order of the file."""
        where = f"p.offset IS NOT NULL AND {condition} AND p.offset >= ? ORDER BY p.offset LIMIT ?"
        while rows := self._ledger.rows(where, (offset, _CHUNK_ROWS)):
            yield rows
            last = rows[-1].record
            assert last is not None
            offset = last.offset + 1

    def _is_whole(self, row: PageRow, record: PageResult) -> bool:
        """Whether a page's record and crops are as they were written."""
        if record.page_key != str(row.key):
            return False
        for crop in record.image_crops:
            try:
                content = paths.crop_file(self._out, crop.path).read_bytes()
            except (OSError, ValueError):
                return False
            if len(content) != crop.size or hashlib.sha256(content).hexdigest() != crop.sha256:
                return False
        return True

    def _give_up_texts(self, rows: list[PageRow]) -> None:
        with self._database.transaction() as connection:
            for row in rows:
                assert row.text is not None
                connection.execute(
                    "INSERT INTO dropped VALUES (?, ?, ?)", (TEXTS_FILE, row.text.offset, row.text.length)
                )
                connection.execute(
                    "UPDATE pages SET text_offset = NULL, text_length = NULL, text_crc = NULL WHERE text_offset = ?",
                    (row.text.offset,),
                )

    def _give_up_previews(self, rows: list[PageRow]) -> None:
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE pages SET preview_offset = NULL, preview_length = NULL, preview_crc = NULL"
                " WHERE preview_offset = ?",
                [(row.preview.offset,) for row in rows if row.preview],
            )

    def _mend_texts(self) -> None:
        """Make lost texts anew from their records, in the order of these."""
        without_text = "p.text_offset IS NULL"
        if next(self._rows_from(0, without_text), None) is None:
            return
        lost: list[PageRow] = []
        texts = AppendFile(self._out / paths.TEXTS)
        try:
            with open_lines(self._out / paths.RESULTS) as results:
                for rows in self._rows_from(0, without_text):
                    records = [(row, read_record(results, row.record) if row.record else None) for row in rows]
                    lost += [row for row, record in records if record is None]
                    self._append_texts(texts, [(row, record) for row, record in records if record is not None])
                texts.sync()
        finally:
            texts.close()
        if lost:  # all at once: where a record is lost the counts are taken from all others anew
            drop_pages(self._out, self._ledger, self._summary, lost, forget=False)

    def _append_texts(self, texts: AppendFile, records: list[tuple[PageRow, PageResult]]) -> None:
        places = []
        for row, record in records:
            assert row.record is not None
            line = text_line(record, self._embedding_text)
            places.append((texts.append(line), len(line), zlib.crc32(line), row.record.offset))
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE pages SET text_offset = ?, text_length = ?, text_crc = ? WHERE offset = ?", places
            )
            connection.execute("UPDATE written SET texts = ?", (texts.size,))

    def _clear_crops(self) -> None:
        """Delete crops of pages that have not ended, and files that were not finished."""
        open_pages = self._database.query("SELECT page_id FROM pages WHERE state IN (1, 2) AND state <> 3")
        stems = {file_stem(page_id) for (page_id,) in open_pages}
        self._clear_temporary(self._out / paths.CROPS, stems)

    def _clear_temporary(self, folder: Path, stems: set[str] | frozenset[str] = frozenset()) -> None:
        if not folder.is_dir():
            return
        with output_errors(folder), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(paths.TEMPORARY_SUFFIX) or paths.stem_of_crop(entry.name) in stems:
                    (folder / entry.name).unlink(missing_ok=True)


def text_line(page: PageResult, embedding_text: Callable[[PageResult], str]) -> bytes:
    """The line of ``parsed_texts.jsonl`` that belongs to a record."""
    text = ParsedText(page_id=page.page_id, page_idx=page.page_idx, doc_id=page.doc_id, text=embedding_text(page))
    return encode_line(text)
