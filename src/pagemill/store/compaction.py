"""Cutting lines that belong to no page out of the two JSONL files: either both files change, or none.

The files are written anew under temporary names. One transaction then moves all pages to their new places and says
that the renames are to be done; a process that dies after it leaves them to the next one.
"""

from __future__ import annotations

import bisect
import contextlib
import os
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from pagemill.errors import DamagedRunError
from pagemill.store import paths
from pagemill.store.dropping import RESULTS_FILE, TEXTS_FILE
from pagemill.store.files import cut_file, output_errors, size_of, sync_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pagemill.store.ledger import Ledger

_FILES = ((RESULTS_FILE, paths.RESULTS, "results"), (TEXTS_FILE, paths.TEXTS, "texts"))
_CHUNK = 2**20


class _Cuts(NamedTuple):
    """What is to go from a file."""

    offsets: list[int]
    """Where each piece begins, in ascending order."""
    lengths: list[int]
    size: int
    """Of the file, before."""

    @property
    def new_size(self) -> int:
        return self.size - sum(self.lengths)

    def kept(self) -> Iterator[tuple[int, int]]:
        """Beginning and end of what stays."""
        start = 0
        for offset, length in zip(self.offsets, self.lengths, strict=True):
            if offset > start:
                yield start, offset
            start = offset + length
        if self.size > start:
            yield start, self.size


def compact(out: Path, ledger: Ledger) -> bool:
    """Take the dropped lines out of both files, which nobody may have open for writing.

    Returns:
        Whether the files were replaced; cutting off their ends does not replace them.

    Raises:
        OutputError: A file cannot be written; nothing has changed then. NoSpaceError when the disk is full.
    """
    _cut_ends(out, ledger)
    cuts = [_cuts(ledger, file, column) for file, _, column in _FILES]
    if not any(each.offsets for each in cuts):
        return False
    for (_, name, _), each in zip(_FILES, cuts, strict=True):
        _copy(out / name, each)
    sync_directory(out)
    _record(ledger, *cuts)  # when it fails, the next opening sees whether it took effect, and does what follows
    finish_renames(out, ledger)
    return True


def finish_renames(out: Path, ledger: Ledger) -> None:
    """Do the renames that a compaction has recorded, or clear away the files of one that has not come so far.

    Raises:
        OutputError: The directory cannot be changed.
        DamagedRunError: Somebody has taken the new files away.
    """
    ((renaming,),) = ledger.database.query("SELECT renaming FROM run")
    for file, name, _ in _FILES:
        temporary = out / (name + paths.TEMPORARY_SUFFIX)
        with output_errors(temporary):
            if not renaming:
                temporary.unlink(missing_ok=True)
            elif temporary.exists():
                temporary.replace(out / name)
            elif size_of(out / name) > ledger.sizes()[file]:
                raise DamagedRunError(f"{temporary}, which was to take the place of {name}, is gone")
    if renaming:
        sync_directory(out)
        with ledger.database.transaction() as connection:
            connection.execute("UPDATE run SET renaming = 0")


def _cut_ends(out: Path, ledger: Ledger) -> None:
    """Cut dropped lines off the ends of the files: the common case after a power cut, at no cost."""
    for file, name, column in _FILES:
        cuts = _cuts(ledger, file, column)
        size = cuts.size
        while cuts.offsets and cuts.offsets[-1] + cuts.lengths[-1] == size:
            size = cuts.offsets.pop()
            cuts.lengths.pop()
        if size != cuts.size:
            with ledger.database.transaction() as connection:
                connection.execute("DELETE FROM dropped WHERE file = ? AND offset >= ?", (file, size))
                connection.execute(f"UPDATE written SET {column} = ?", (size,))
                if file == RESULTS_FILE:
                    connection.execute("UPDATE run SET synced_results = min(synced_results, ?)", (size,))
            cut_file(out / name, size)


def _cuts(ledger: Ledger, file: int, column: str) -> _Cuts:
    rows = ledger.database.query("SELECT offset, length FROM dropped WHERE file = ? ORDER BY offset", (file,))
    ((size,),) = ledger.database.query(f"SELECT {column} FROM written")
    return _Cuts([row[0] for row in rows], [row[1] for row in rows], size)


def _copy(path: Path, cuts: _Cuts) -> None:
    """Write the file anew, without the cuts, under its temporary name."""
    target = path.with_name(path.name + paths.TEMPORARY_SUFFIX)
    try:
        with output_errors(target), path.open("rb") as source, target.open("wb") as copy:
            for start, end in cuts.kept():
                source.seek(start)
                while start < end and (chunk := source.read(min(_CHUNK, end - start))):
                    start += len(chunk)
                    copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            target.unlink(missing_ok=True)
        raise


def _record(ledger: Ledger, results: _Cuts, texts: _Cuts) -> None:
    """Say in the ledger that the new files are the ones that count."""
    with ledger.database.durable_transaction() as connection:
        for name, cuts in (("moved_record", results), ("moved_text", texts)):
            gone = [0, *accumulate(cuts.lengths)]

            def moved(offset: int, offsets: list[int] = cuts.offsets, gone: list[int] = gone) -> int:
                return offset - gone[bisect.bisect_right(offsets, offset)]

            connection.create_function(name, 1, moved, deterministic=True)
        connection.execute(
            "UPDATE pages SET offset = moved_record(offset), text_offset = moved_text(text_offset)"
            " WHERE offset IS NOT NULL AND text_offset IS NOT NULL"
        )
        connection.execute("DELETE FROM dropped")
        connection.execute("UPDATE written SET results = ?, texts = ?", (results.new_size, texts.new_size))
        # As far as before, and no further: crops of the pages behind it may not be on the disk yet.
        ((synced,),) = connection.execute("SELECT synced_results FROM run").fetchall()
        synced -= sum(results.lengths[: bisect.bisect_left(results.offsets, synced)])
        connection.execute("UPDATE run SET generation = generation + 1, renaming = 1, synced_results = ?", (synced,))
