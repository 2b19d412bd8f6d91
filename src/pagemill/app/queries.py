"""Queries: those of a file, or with ``auto`` those that come with the dataset whose pages a run holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from pagemill.document.names import safe_name
from pagemill.errors import InputError, MissingInputError, UsageError
from pagemill.imaging.formats import SUFFIXES
from pagemill.retrieval.query_sets import MAX_BYTES, Query, is_qa_table, read_qa_table, read_query_texts
from pagemill.sources.digest import format_of
from pagemill.sources.download import source_of
from pagemill.sources.hub import DatasetAddress
from pagemill.sources.items import Content, Item, RemoteFile, is_url, natural_key, table_of
from pagemill.sources.locate import absolute, folder_of
from pagemill.sources.remote import TemporaryCopy, copy_to_disk, dataset_files, unreachable
from pagemill.sources.shards import column_names
from pagemill.store.reading import RunReader

AUTO = "auto"
"""Instead of a file: the queries of the dataset."""
_NO_FILE = "Name a file of queries with --queries FILE."
_DATASET_INFO = "dataset_info.json"
"""A folder with this file is a configuration in the cache of the ``datasets`` library, two levels deeper."""
_DEPTH = 6
"""Depth of the folders below an input that are searched."""
_MAX_ENTRIES = 20_000
"""Entries of folders that are searched."""
_MAX_TABLES = 200
"""Maximum number of tables whose columns are read."""


@dataclass(frozen=True, slots=True)
class QueryTable:
    """The table of queries of a dataset."""

    name: str
    """Its location: a path or URL, without suffix and shard number."""
    queries: list[Query]


def query_texts(given: str, places: Iterable[str], out: Path | None = None) -> tuple[tuple[tuple[str, str], ...], str]:
    """Ids and texts of queries, for embedding, and where they come from.

    Args:
        given: A file, or ``auto``.
        places: For ``auto``: paths and URLs of the parsed files, or of the inputs that they are in.
        out: For ``auto``: the run, of which a table that is found beside its inputs must name a page.

    Raises:
        InputError: The file cannot be read, or there is no table of queries.
        UsageError: There are several.
        NetworkError: The Hub cannot be reached.
    """
    if given != AUTO:
        return read_query_texts(Path(given)), given
    table = find_query_table(places, out)
    return tuple((query.id, query.query) for query in table.queries), table.name


def places_of(out: Path) -> list[str]:
    """Paths and URLs of the parsed files of a run, or of their folders."""
    with RunReader.open(out) as reader:
        addresses = reader.source_addresses().values()
    return list(dict.fromkeys(addresses))


def find_query_table(places: Iterable[str], out: Path | None = None) -> QueryTable:
    """Find and read the table of queries of the dataset that the pages come from.

    In the dataset on the Hub, or in the folder with the pages, the folders in it and those beside it. The last may be
    another dataset's: they count only with a page of the run.

    Args:
        places: Paths and URLs of the parsed files, or of the inputs that they are in.
        out: The run, if there is one yet.

    Raises:
        InputError: There is none, or it cannot be read.
        UsageError: There are several.
        NetworkError: The Hub cannot be reached.
    """
    places = list(places)
    found: dict[str, list[Item]] = {}
    for tables, beside in _searched(places):
        for name, files in tables.items():
            if is_qa_table(_columns(files[0])) and not (beside and out and not _names_a_page(_read(name, files), out)):
                found[name] = files
        if found:
            break
    if not found:
        where = ", ".join(islice(places, 3)) or "an empty run"
        raise MissingInputError(f"no table of queries (id, query, ground_truth) comes with {where}", remedy=_NO_FILE)
    if len(found) > 1:
        raise UsageError(f"there are several tables of queries: {', '.join(sorted(found))}", remedy=_NO_FILE)
    ((name, files),) = found.items()
    return _read(name, files)


def _read(name: str, files: Iterable[Item]) -> QueryTable:
    """The queries of a table; ids of pages are names of files, too, and so may differ from those in the dataset."""
    with ExitStack() as stack:
        shards = []
        for file in files:
            if isinstance(file.content, Path):
                shards.append((file.uri, file.content))
            elif file.content is not None:
                # Parquet is read from its end and in pieces, each of which would be a request to a remote server.
                copy = _fetched(file.content, file.uri)
                stack.callback(copy.path.unlink, missing_ok=True)
                shards.append((file.uri, copy.path))
        queries = read_qa_table(shards)
    named = [{safe_name(page): grade for page, grade in query.relevant.items()} for query in queries]
    return QueryTable(
        name, [msgspec.structs.replace(query, relevant=pages) for query, pages in zip(queries, named, strict=True)]
    )


def _names_a_page(table: QueryTable, out: Path) -> bool:
    wanted = {page for query in table.queries for page in query.relevant}
    with RunReader.open(out) as reader:
        return any(row.page_id in wanted for row in reader.rows())


def _searched(places: Sequence[str]) -> Iterator[tuple[dict[str, list[Item]], bool]]:
    """Tables that may belong to the dataset, nearest first; whether they are beside what the user named."""
    datasets = dict.fromkeys(address.root for place in places if (address := DatasetAddress.parse(place)) is not None)
    for root in datasets:
        yield _tables(dataset_files(root)), False
    folders = dict.fromkeys(folder_of(place) for place in places if not is_url(place))
    named = {absolute(place) for place in places}
    for folder in folders:
        levels = [(folder, _DEPTH if folder in named else 2), (folder.parent, 2)]
        if (folder / _DATASET_INFO).is_file():
            levels.append((folder.parent.parent.parent, 4))
        for top, depth in levels:
            paths = islice(_walk(top, depth), _MAX_ENTRIES)
            items = (Item(uri=str(path), name=path.name, origin=0, content=path) for path in paths)
            yield _tables(items), top != folder
        if (dataset := source_of(folder)) is not None:  # of which one configuration was fetched
            yield _tables(dataset_files(dataset)), False


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Files of a folder, and of those in it down to a depth; hidden ones and output of runs are left out."""
    with suppress(OSError), os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: natural_key(entry.name))
        # Its Parquet files are pages that were parsed, in which questions may look like a table of queries.
        if any(entry.name == ".pagemill" for entry in entries):
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_file():
                yield Path(entry.path)
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), depth - 1)


def _tables(files: Iterable[Item]) -> dict[str, list[Item]]:
    """Files by the table that they are shards of."""
    tables: dict[str, list[Item]] = {}
    for file in files:
        suffix = SUFFIXES.get(PurePosixPath(file.uri).suffix.lower())
        if suffix is not None and suffix.is_table:
            tables.setdefault(table_of(file.uri), []).append(file)
    return dict(islice(tables.items(), _MAX_TABLES))


def _columns(file: Item) -> list[str]:
    """Columns of a table; none of one that is damaged or, on this machine, not readable: it cannot be used here."""
    assert file.content is not None
    try:
        file_format = format_of(file)
        return column_names(file.content, file_format) if file_format.is_table else []
    except InputError:
        return []
    except Exception as error:
        if isinstance(file.content, RemoteFile):
            raise unreachable(file.uri, error) from error
        if isinstance(error, OSError):
            return []
        raise


def _fetched(content: Content, uri: str) -> TemporaryCopy:
    """A copy on this machine."""
    assert not isinstance(content, Path)
    try:
        if isinstance(content, RemoteFile) and (content.filesystem.size(content.path) or 0) > MAX_BYTES:
            raise InputError(f"{uri} is larger than {MAX_BYTES:,} bytes", remedy=_NO_FILE)
        return copy_to_disk(content, None)
    except Exception as error:
        raise unreachable(uri, error) from error
