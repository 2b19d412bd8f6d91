"""Taking in the files of the input, one after the other: what is finished is skipped before it is opened."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import text_digest
from pagemill.errors import OutputError, PagemillError, unreadable
from pagemill.imaging.formats import FileFormat, promised
from pagemill.sources.digest import Identifier, Source, StoppedError
from pagemill.sources.items import Item, RemoteFile, SkippedFiles, is_url
from pagemill.sources.locate import expand
from pagemill.sources.options import SourceOptions
from pagemill.sources.remote import unreachable

if TYPE_CHECKING:
    from pagemill.sources.shards import TableWithoutImagesError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _SkippedShard:
    """A shard of a table without images."""

    source: Source
    error: PagemillError
    """What is wrong with it if it should have images."""
    columns: frozenset[str]

    @property
    def table(self) -> tuple[int, str]:
        return _table(self.source.item)


class Intake:
    """The files of the input in order, and the place in it. Not thread-safe; used by one thread at a time."""

    def __init__(
        self,
        inputs: Sequence[str | Path | bytes],
        options: SourceOptions,
        catalogue: Catalogue,
        identifier: Identifier,
    ) -> None:
        self.position = 0
        """Pages so far, given or skipped."""
        self.skipped_earlier = 0
        self.files = 0
        """Files before the current one."""
        self.exhausted = False
        """All files were taken in."""
        self.skipped_files = SkippedFiles()
        """Files of folders so far that are of other kinds."""
        self._skipped_shards: list[_SkippedShard] = []
        self._with_images: dict[tuple[int, str], str | None] = {}
        """Tables with images so far, and in which column; None where no shard was opened, as their rows have ended."""
        self._ended_shards: dict[tuple[int, str], Source] = {}
        """Of each table the first shard whose rows have ended."""
        self._inputs_of_others: set[int] = set()
        """Inputs that hold anything but tables without images."""
        self._last_skipped: Source | None = None
        self._inputs = inputs
        self.options = options
        self.catalogue = catalogue
        self._identifier = identifier
        self._firsts: dict[str, str] = {}
        """Address of the first file with a content, by its digest."""
        self._datasets: dict[tuple[int, bool], str] = {}

    @property
    def left(self) -> int:
        """How many pages the limit leaves."""
        return max((self.options.limit or sys.maxsize) - self.position, 0)

    def sources(self) -> Iterator[Source]:
        """Yield the files that have not ended, each once, until the limit is reached."""
        options = self.options
        files = expand(self._inputs, recursive=options.recursive, skipped=self.skipped_files, download=options.download)
        for item in files:
            if self.left == 0 or self._identifier.stopped:
                return
            try:
                source = self._meet(item)
            except StoppedError:
                return
            file_format = _format(source)
            if file_format is not None and file_format.is_table:
                self.dataset(source, file_format)  # also of one that is skipped, which may be the first
            self._last_skipped = None
            if not self.pass_over_ended(source):
                yield source
            if self._last_skipped is None:
                self._inputs_of_others.add(item.origin)
            self.files += 1
        self.exhausted = True

    def skip_table(self, source: Source, found: TableWithoutImagesError) -> None:
        """Note a shard of a table without images; whether it is a failure shows once all shards were met."""
        self._last_skipped = source
        self._skipped_shards.append(_SkippedShard(source, found.error, found.columns))
        self._datasets = {each: key for each, key in self._datasets.items() if key != source.document_key}

    def note_images(self, item: Item, column: str) -> None:
        """Note that a shard has images in a column."""
        self._with_images[_table(item)] = column

    @property
    def skipped_tables(self) -> list[str]:
        """Names of the tables without images so far that are no failures, in order."""
        return list(dict.fromkeys(shard.source.item.table for shard in self._skipped_shards))

    def failed_tables(self) -> list[tuple[Source, PagemillError, int]]:
        """Take the failures out of the skipped tables: each with what is wrong with it, and the rows known as missing.

        These are shards of tables that have images in other shards, or that have a column of the same name as one with
        images in their input; and the first table of each input that holds nothing else, once all files were taken in.
        """
        columns = self._image_columns()
        failed: list[tuple[Source, PagemillError, int]] = []
        skipped: list[_SkippedShard] = []
        lone = set()
        for shard in self._skipped_shards:
            origin = shard.source.item.origin
            is_lone = self.exhausted and origin not in self._inputs_of_others
            has_lost = shard.table in self._with_images or any((origin, name) in columns for name in shard.columns)
            if len(failed) >= self.left or not (has_lost or (is_lone and origin not in lone)):
                skipped.append(shard)
                continue
            if is_lone:
                lone.add(origin)
            failed.append((shard.source, shard.error, int(has_lost)))
        reported = {_table(source.item) for source, _, missing in failed if not missing}
        self._skipped_shards = [shard for shard in skipped if shard.table not in reported]
        return failed

    def _image_columns(self) -> set[tuple[int, str]]:
        """Columns with images, by input; those of shards whose rows have ended are looked up."""
        from pagemill.sources.shards import image_column  # importing pyarrow takes a while

        for table, source in self._ended_shards.items():
            if self._with_images.get(table) is None:
                self._with_images[table] = image_column(source.item.content, source.file_format, self.options)
        return {(origin, column) for (origin, _), column in self._with_images.items() if column is not None}

    def pass_over_ended(self, source: Source) -> bool:
        """Skip a file all of whose wanted pages have ended; False, and nothing done, for any other."""
        known = source.known
        if source.error is not None or known.pages is None:
            return False
        if source.file_format is None and self.options.pages is not None:
            return False  # datasets do not heed the option
        numbers = self.wanted(known.pages, source.file_format)
        if (known.pages and not numbers) or not all(number in known.ended for number in numbers):
            return False
        if known.pages and (file_format := _format(source)) is not None and file_format.is_table:
            table = _table(source.item)
            self._with_images.setdefault(table, None)
            self._ended_shards.setdefault(table, replace(source, file_format=file_format))
        self.pass_over(len(numbers))
        return True

    def dataset(self, source: Source, file_format: FileFormat) -> str:
        """Which dataset a shard belongs to, across runs: the first shard of an input that is of its kind says it."""
        dataset = (source.item.origin, file_format is FileFormat.PARQUET)
        return self._datasets.setdefault(dataset, source.document_key)

    def pass_over(self, pages: int) -> None:
        """Count pages that ended in an earlier run."""
        self.position += pages
        self.skipped_earlier += pages

    def wanted(self, pages: int, file_format: FileFormat | None) -> Sequence[int]:
        """The pages to take of a file that has so many, ascending from 1, as far as the limit goes."""
        return self.options.wanted(pages, file_format)[: self.left]

    def _meet(self, item: Item) -> Source:
        address = _address(item)
        try:
            if item.error is not None:
                raise item.error
            source = self._identifier.identify(item)
        except (OutputError, StoppedError):  # of the catalogue; at the end of the stream
            raise
        except Exception as error:
            source = Source(item=item, digest=text_digest(address), error=input_error(item, error))
        skip = None
        if self.options.skip_duplicates and source.error is None:
            if source.digest in self._firsts:
                skip = f"duplicate of {self._firsts[source.digest]}"
            else:
                self._firsts[source.digest] = address
        return replace(source, known=self.catalogue.meet(source.digest, address, skip), skip=skip)


def _table(item: Item) -> tuple[int, str]:
    """Which table a shard belongs to, among those of all inputs."""
    return item.origin, item.table


def _format(source: Source) -> FileFormat | None:
    """The format of a file that need not have been opened."""
    return source.file_format or promised(PurePosixPath(source.item.name))


def _address(item: Item) -> str:
    """What is the same file next time, whatever the working directory is then."""
    if isinstance(item.content, Path):
        return os.path.abspath(item.content)  # noqa: PTH100 - Path.resolve would follow links
    if (item.content is None or item.inside) and not is_url(item.uri):
        return os.path.abspath(item.uri)  # noqa: PTH100
    return item.uri


def input_error(item: Item, error: Exception) -> PagemillError:
    """What an exception means for an input; the next input is read all the same."""
    if isinstance(error, PagemillError):
        return error
    if isinstance(item.content, RemoteFile):  # filesystems of others raise all sorts
        return unreachable(item.uri, error)
    if isinstance(error, OSError):
        return unreadable(repr(item.name), error)
    log.error("input %r failed", item.uri, exc_info=error)
    reason = f"{item.name!r} cannot be read ({type(error).__name__}: {error})"
    return PagemillError(reason, remedy="This is a defect of pagemill; please report.")
