"""Export to a Lance table, which many runs share, in a folder or in object storage: the search index of a cluster.

A row is a page with its vectors. Its id is the name of the run and the page id, so that exporting again replaces the
rows of the run, and leaves those of others. Runs of the same name differ in their start time.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.app.export_content import ExportContent
from pagemill.document.page import PageResult
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import Part, VectorFile
from pagemill.errors import DifferentRunError, MissingInputError, NoSpaceError, OutputError, lacks_extra
from pagemill.export.formats import ExportFormat
from pagemill.export.parquet import page_schema, row_groups
from pagemill.retrieval.tokens import indexed
from pagemill.store.rows import plain

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from pagemill.config.arrow import pa

_VECTORS = {Part.TEXT: "text_vector", Part.IMAGES: "image_vector"}


def export_to_lance(content: ExportContent, uri: str) -> dict[str, int]:
    """Write the selected pages into a table, created if missing.

    A page is replaced by its new version, and a page that the run has no more is removed, last of all. An export that
    was interrupted is completed by the next one.

    Args:
        content: The pages. The run's name is that of its folder.
        uri: A path, or the URL of an object store that Lance knows (``s3://``, ``gs://``, ``az://``).

    Returns:
        For each column of vectors, how many pages have none.

    Raises:
        MissingDependencyError: Lance is not installed.
        DifferentRunError: Vectors were made from earlier contents of the pages.
        NoSpaceError: The disk is full.
        OutputError: The table cannot be written, has other columns, or holds another run of this name and ``overwrite``
            is off.
        InputError: There is no page to export.
    """
    try:
        import lance
    except ImportError as error:
        raise lacks_extra("exports to Lance need the package pylance", "lance") from error

    out = content.reader.path.resolve()
    files = {column: file for part, column in _VECTORS.items() if (file := _opened(content, part)) is not None}
    schema = _schema(files)
    run_name = plain(out.name)
    # The name of a directory comes into a filter in SQL, where a quote would end the string.
    name = run_name.replace("'", "''")
    started = content.reader.summary.started.isoformat()
    stamp = datetime.now(UTC).isoformat()
    missing = dict.fromkeys(files, 0)

    def rows(pages: Iterator[PageResult]) -> Iterator[pa.Table]:
        records: dict[str, PageResult] = {}

        def recorded() -> Iterator[PageResult]:
            for page in pages:
                records[page.page_id] = page
                yield page

        for group in row_groups(recorded(), None):
            for row in group:
                page = records.pop(row["page_id"])
                row |= {"id": f"{run_name}/{page.page_id}", "run": run_name, "started": started, "exported": stamp}
                row["words"] = indexed(row["text"])
                for column, file in files.items():
                    row[column] = vector = _vector(file, page)
                    missing[column] += vector is None
            yield pa.Table.from_pylist(group, schema)

    table = None
    for part in rows(content.pages()):
        with _lance_errors(uri):
            # Once there is a row: an export of nothing must not leave an empty table behind.
            if table is None:
                table = _table(lance, uri, schema)
                # Two runs of one name would overwrite each other's pages, as ids begin with the name.
                others = table.count_rows(f"run = '{name}' AND started != '{started}'")
                if others and not content.options.overwrite:
                    raise OutputError(
                        f"the table {uri} contains {others:,} pages of another run named {run_name}",
                        remedy="Rename the directory of this run; or, if it replaces that one, add --overwrite.",
                    )
            table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(part)
    # Pages that the run has lost since; not after a partial export, which says nothing about the others.
    if table is not None and content.options.selects_all and not content.outcome.damages:
        with _lance_errors(uri):
            table.delete(f"run = '{name}' AND exported != '{stamp}'")
    return missing


def _opened(content: ExportContent, part: Part) -> VectorFile | None:
    try:
        return VectorFile.open(content.reader.path, part)
    except MissingInputError:  # not every run is embedded
        return None


def _schema(files: dict[str, VectorFile]) -> pa.Schema:
    schema = page_schema(pictures=False)
    for name in ("id", "run", "started", "exported", "words"):
        schema = schema.append(pa.field(name, pa.string()))
    for column, file in files.items():
        kind = pa.list_(pa.from_numpy_dtype(file.info.stored), file.info.dimension)
        schema = schema.append(pa.field(column, kind))
    return schema


def _table(lance: Any, uri: str, schema: pa.Schema) -> Any:
    """The table, created if missing.

    Raises:
        OutputError: It has other columns.
    """
    try:
        table = lance.dataset(uri)
    except ValueError as error:  # also of storage that cannot be read
        # Lance has no class of its own for a missing table.
        if "was not found" not in str(error):
            raise
        if "://" not in uri and Path(uri).is_dir() and any(Path(uri).iterdir()):
            raise OutputError(
                f"{uri} contains other files, and no table", remedy="Choose another table with -o."
            ) from None
        table = lance.write_dataset(schema.empty_table(), uri, schema=schema)
        table.create_scalar_index("id", "BTREE")  # without it each merge reads the ids of the whole table
        return table
    there = {field.name: field.type for field in table.schema}
    wanted = {field.name: field.type for field in schema}
    if differing := sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name)):
        raise OutputError(
            f"the table {uri} has other columns than this run: {', '.join(differing)}",
            remedy="All runs of a table need the same version of pagemill and the same embedding model (pagemill "
            "embed). Choose another table with -o.",
        )
    return table


def _vector(file: VectorFile, page: PageResult) -> list[float] | None:
    """The vector of a page; None where it has none.

    Raises:
        DifferentRunError: It is that of an earlier content.
    """
    content = next(contents(page, file.info.part, images=False), None)
    if content is None:
        return None
    place = file.place(content.row)
    # A vector of the earlier content would be found for words that are no longer on the page.
    if place is None and file.find(page.page_id) is not None:
        raise DifferentRunError(
            f"the vector of {page.page_id} belongs to an earlier content of the page",
            remedy=f"Update the vectors: pagemill embed {file.paths.folder.parent}",
        )
    return None if place is None else file.vectors[place]


@contextmanager
def _lance_errors(uri: str) -> Iterator[None]:
    """Lance raises OSError, ValueError and RuntimeError for whatever goes wrong with its storage."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).split(", /", 1)[0].split("\n", 1)[0]
        is_full = os.strerror(errno.ENOSPC) in reason  # no error of Lance has a number
        raise (NoSpaceError if is_full else OutputError)(
            f"the table {uri} cannot be written: {reason}",
            remedy="Check its address, the credentials of the object store in the environment, and the free space. "
            "Repeat the command to complete the export.",
        ) from error


FORMAT = ExportFormat(ending="-lance", to_table=export_to_lance)
