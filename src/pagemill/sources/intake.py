"""Intake of the input files, one after the other: finished files are skipped before they are opened."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

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


class _SkippedShard(msgspec.Struct, frozen=True):
    """A shard of a table without images."""

    source: Source
    error: PagemillError
    """Its error, if it should have images."""
    columns: frozenset[str]

    @property
    def table(self) -> tuple[int, str]:
        return _table(self.source.item)


class Intake:
    """The input files in order, and the position in the input. Not thread-safe; used by one thread at a time."""

    def __init__(
        self,
        inputs: Sequence[str | Path | bytes],
        options: SourceOptions,
        catalogue: Catalogue,
        identifier: Identifier,
    ) -> None:
        self.position = 0
        """Pages so far, yielded or skipped."""
        self.skipped_earlier = 0
        self.files = 0
        """Files before the current one."""
        self.exhausted = False
        """Whether all files were read."""
        self.skipped_files = SkippedFiles()
        """Files of other kinds in the folders so far."""
        self._skipped_shards: list[_SkippedShard] = []
        self._with_images: dict[tuple[int, str], str | None] = {}
        """Tables with images so far, and their column; None if no shard was opened, as all its rows are finished."""
        self._ended_shards: dict[tuple[int, str], Source] = {}
        """First shard of each table whose rows are all finished."""
        self._inputs_of_others: set[int] = set()
        """Inputs with anything but tables without images."""
        self._last_skipped: Source | None = None
        self._inputs = inputs
        self.options = options
        self.catalogue = catalogue
        self._identifier = identifier
        self._firsts: dict[str, str] = {}
        """Address of the first file with each digest."""
        self._datasets: dict[tuple[int, bool], str] = {}

    @property
    def left(self) -> int:
        """Pages left until the limit."""
        return max((self.options.limit or sys.maxsize) - self.position, 0)

    def sources(self) -> Iterator[Source]:
        """Yield the unfinished files, each once, until the limit is reached."""
        options = self.options
        files = expand(self._inputs, recursive=options.recursive, skipped=self.skipped_files, download=options.download)
        for item in files:
            # Before the next file is opened: its first page would be one over the limit.
            if self.left == 0 or self._identifier.stopped:
                return
            try:
                source = self._identified(item)
            except StoppedError:
                return
            file_format = _format(source)
            if file_format is not None and file_format.is_table:
                # Before the skip: the first shard names the dataset, also if its rows are finished.
                self.dataset(source, file_format)
            self._last_skipped = None
            if not self.skip_finished(source):
                yield source
            if self._last_skipped is None:
                self._inputs_of_others.add(item.origin)
            self.files += 1
        self.exhausted = True

    def skip_table(self, source: Source, found: TableWithoutImagesError) -> None:
        """Record a shard of a table without images; whether it is a failure is known after all shards."""
        self._last_skipped = source
        self._skipped_shards.append(_SkippedShard(source, found.error, found.columns))
        self._datasets = {each: key for each, key in self._datasets.items() if key != source.document_key}

    def note_images(self, item: Item, column: str) -> None:
        """Record that a shard has images in a column."""
        self._with_images[_table(item)] = column

    @property
    def skipped_tables(self) -> list[str]:
        """Names of the tables without images so far that are not failures, in order."""
        return list(dict.fromkeys(shard.source.item.table for shard in self._skipped_shards))

    def failed_tables(self) -> list[tuple[Source, PagemillError, int]]:
        """Remove the failures from the skipped tables, and return each with its error and the rows known as missing.

        Failures are shards of tables with images in other shards, or with a column of the same name as one with images
        in their input; and, after all files, the first table of each input that holds nothing else.
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
        """Columns with images, by input; shards whose rows are all finished are opened for it."""
        from pagemill.sources.shards import image_column  # importing pyarrow takes a while

        for table, source in self._ended_shards.items():
            if self._with_images.get(table) is None:
                self._with_images[table] = image_column(source.item.content, source.file_format, self.options)
        return {(origin, column) for (origin, _), column in self._with_images.items() if column is not None}

    def skip_finished(self, source: Source) -> bool:
        """Skip a file whose wanted pages are all finished; False, without effect, for any other."""
        known = source.known
        if source.error is not None or known.pages is None:
            return False
        if source.file_format is None and self.options.pages is not None:
            return False  # the format is not known, and --pages does not apply to datasets
        numbers = self.wanted(known.pages, source.file_format)
        if (known.pages and not numbers) or not all(number in known.ended for number in numbers):
            return False
        if known.pages and (file_format := _format(source)) is not None and file_format.is_table:
            table = _table(source.item)
            self._with_images.setdefault(table, None)
            self._ended_shards.setdefault(table, replace(source, file_format=file_format))
        self.skip_pages(len(numbers))
        return True

    def dataset(self, source: Source, file_format: FileFormat) -> str:
        """Key of the dataset of a shard, stable across runs: that of the first shard of its kind in the input."""
        dataset = (source.item.origin, file_format is FileFormat.PARQUET)
        return self._datasets.setdefault(dataset, source.document_key)

    def skip_pages(self, pages: int) -> None:
        """Count pages that were finished by an earlier run."""
        self.position += pages
        self.skipped_earlier += pages

    def wanted(self, pages: int, file_format: FileFormat | None) -> Sequence[int]:
        """The selected pages of a file with ``pages`` pages, ascending from 1, within the limit."""
        return self.options.wanted(pages, file_format)[: self.left]

    def _identified(self, item: Item) -> Source:
        address = _address(item)
        try:
            if item.error is not None:
                raise item.error
            source = self._identifier.identify(item)
        except (OutputError, StoppedError):
            # Of the catalogue, or as the stream ends: not errors of this file, which would become its record.
            raise
        except Exception as error:
            # Identified by its address, as there is no content: each invocation then meets the same source again.
            source = Source(item=item, digest=text_digest(address), error=input_error(item, error))
        skip = None
        if self.options.skip_duplicates and source.error is None:
            # By content, in input order: the first of several stays, whatever their names.
            if source.digest in self._firsts:
                skip = f"duplicate of {self._firsts[source.digest]}"
            else:
                self._firsts[source.digest] = address
        return replace(source, known=self.catalogue.register(source.digest, address, skip), skip=skip)


def _table(item: Item) -> tuple[int, str]:
    """Key of the table of a shard, among those of all inputs."""
    return item.origin, item.table


def _format(source: Source) -> FileFormat | None:
    """The format of a file, by its name if it was not opened."""
    return source.file_format or promised(PurePosixPath(source.item.name))


def _address(item: Item) -> str:
    """The address of a file, independent of the working directory."""
    if isinstance(item.content, Path):
        return os.path.abspath(item.content)  # noqa: PTH100 - Path.resolve would follow links
    if (item.content is None or item.inside) and not is_url(item.uri):
        return os.path.abspath(item.uri)  # noqa: PTH100
    return item.uri


def input_error(item: Item, error: Exception) -> PagemillError:
    """The error of an input for an exception. Other inputs are not affected."""
    if isinstance(error, PagemillError):
        return error
    if isinstance(item.content, RemoteFile):  # fsspec filesystems raise exceptions of any class
        return unreachable(item.uri, error)
    if isinstance(error, OSError):
        return unreadable(repr(item.name), error)
    log.error("input %r failed", item.uri, exc_info=error)
    reason = f"{item.name!r} cannot be read ({type(error).__name__}: {error})"
    return PagemillError(reason, remedy="This is a defect of pagemill; please report.")
