"""The files of a dataset, built from a run and cached in the run directory until the run changes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from pagemill._version import __version__
from pagemill.document.page import PageResult, Status
from pagemill.document.shown import count as counted
from pagemill.embedding.contents import chunk_row, contents, document_digest, text_digests
from pagemill.embedding.vectors import Part, VectorFile, VectorPaths, VectorsInfo
from pagemill.embedding.writing import write_vectors
from pagemill.errors import DifferentRunError, InputError, MissingInputError, OutputError
from pagemill.export.embedding_text import embedding_text
from pagemill.export.parquet import page_schema, row_groups
from pagemill.publishing.card import UNDETERMINED, dataset_card
from pagemill.publishing.manifest import MANIFEST, Manifest, described, read_manifest
from pagemill.publishing.options import BuildOptions, Shape
from pagemill.publishing.public import public_page, public_values
from pagemill.store import paths
from pagemill.store.files import output_errors, write_whole
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.records import text_line
from pagemill.store.summary import RunSummary

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    from pagemill.config.arrow import pa, pq

STAGING = f"{paths.FOLDER}/publish"
"""Folder below the run directory."""
LOCK = f"{paths.FOLDER}/publish.lock"
"""Held while the files are built or uploaded: another process would delete them."""
EMBEDDINGS = "embeddings"
_RUN_FILE = "run.json"

OpenImages = Callable[[], contextlib.AbstractContextManager[Callable[[PageResult], bytes | None]]]
"""Opens a lookup of encoded page images; None for an image that cannot be read."""


def build(
    reader: RunReader,
    options: BuildOptions,
    report: Callable[[PageResult], None] = lambda page: None,
    open_images: OpenImages | None = None,
) -> tuple[Path, Manifest]:
    """Build the dataset's files, or find those of an earlier call for the same run state and options.

    Files that lacked page images are rebuilt: a disk may be back, or ``--input`` corrected. The caller holds ``LOCK``
    while it needs the files.

    Args:
        reader: The run.
        options: Options of the dataset.
        report: Called with each page written.
        open_images: For ``page_images``; not called if the files exist.

    Returns:
        The folder with the files, and its manifest.

    Raises:
        OutputError: The run is unfinished or has unreadable sources and ``partial`` is off; or the files cannot be
            written (NoSpaceError when the disk is full).
        DifferentRunError: There are vectors of earlier contents of pages, and ``partial`` is off.
        InputError: The run has no page.
        DamagedRunError: A record or crop is damaged.
    """
    _refuse_unfinished(reader, options)
    fingerprint = _fingerprint(reader, options)
    staging = reader.path / STAGING
    folder = staging / fingerprint
    with contextlib.suppress(OSError):
        manifest = read_manifest((folder / MANIFEST).read_bytes())
        if manifest is not None and manifest.fingerprint == fingerprint and not manifest.pages_without_image:
            return folder, manifest
    with output_errors(staging):
        shutil.rmtree(staging, ignore_errors=True)
        folder.mkdir(parents=True)
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, staging, ignore_errors=True)
            builder = _DatasetBuilder(reader, options, folder, report)
            # First, as it may refuse the run: decoding all pages for their images can take hours.
            vectors = builder.copy_embeddings()
            with contextlib.nullcontext() if open_images is None else open_images() as builder.image:
                manifest = builder.build(fingerprint, vectors)
            stack.pop_all()
    return folder, manifest


@dataclass
class _DatasetBuilder:
    """Writes the files of one dataset."""

    reader: RunReader
    options: BuildOptions
    folder: Path
    report: Callable[[PageResult], None]
    image: Callable[[PageResult], bytes | None] | None = None
    languages: Counter[str] = field(default_factory=Counter)
    pages: int = 0
    without_image: int = 0

    def build(self, fingerprint: str, vectors: dict[str, int]) -> Manifest:
        if self.options.shape is Shape.PARQUET:
            self._write_shards()
        else:
            self._write_files()
        if not self.pages:
            raise InputError(f"{self.reader.path} has no pages to publish", remedy="Parse something first.")
        summary = _public(self.reader.summary)
        (self.folder / _RUN_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
        card = dataset_card(
            self.options, summary, self.languages, self.pages, vectors, page_images=self.image is not None
        )
        (self.folder / "README.md").write_bytes(card.encode("utf-8", "replace"))
        written = sorted(path for path in self.folder.rglob("*") if path.is_file())
        manifest = Manifest(
            fingerprint=fingerprint,
            pages=self.pages,
            pages_without_image=self.without_image,
            files=tuple(described(self.folder, written)),
        )
        write_whole(self.folder / MANIFEST, [manifest.encoded()])
        return manifest

    def _write_shards(self) -> None:
        """``data/train-*.parquet``, each of about the wanted size: a shard ends with the row group that fills it."""
        schema = with_features(page_schema(pictures=self.options.crops, images=self.image is not None))
        data = self.folder / "data"
        data.mkdir()
        shards: list[Path] = []
        picture = self.reader.crop if self.options.crops else None
        stream: BinaryIO | None = None
        with contextlib.ExitStack() as shard:
            for rows in row_groups(self._all_pages(), picture, self._image_of if self.image is not None else None):
                # By the compressed size, which is what readers download; known only after a row group is written.
                if stream is None or stream.tell() >= self.options.shard_bytes:
                    shard.close()
                    shards.append(data / f"shard-{len(shards)}")
                    # A stream: pyarrow rejects paths that are not valid Unicode.
                    stream = shard.enter_context(shards[-1].open("wb"))
                    writer = shard.enter_context(pq.ParquetWriter(stream, schema, compression="zstd"))
                writer.write_table(pa.Table.from_pylist(rows, schema))
        # Each name has the number of all shards, which is known only now.
        for number, path in enumerate(shards):
            path.rename(data / f"train-{number:05d}-of-{len(shards):05d}.parquet")

    def _write_files(self) -> None:
        """The reference layout. Crops go into tar files: the Hub handles a hundred thousand small files badly."""
        tar: tarfile.TarFile | None = None
        numbers = count()
        with (
            (self.folder / paths.RESULTS).open("wb") as results,
            (self.folder / paths.TEXTS).open("wb") as texts,
            contextlib.ExitStack() as last,
        ):
            for page in self._all_pages():
                results.write(msgspec.json.encode(page) + b"\n")
                texts.write(text_line(page, embedding_text))
                for crop in page.image_crops if self.options.crops else ():
                    if tar is None or tar.offset >= self.options.shard_bytes:
                        last.close()
                        (self.folder / paths.CROPS).mkdir(exist_ok=True)
                        path = self.folder / paths.CROPS / f"crops-{next(numbers):05d}.tar"
                        tar = last.enter_context(tarfile.open(path, "w"))
                    data = self.reader.crop(crop)
                    # Without owner and time, so that the same run gives the same file, which is not uploaded again.
                    entry = tarfile.TarInfo(crop.path)
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))

    def _all_pages(self) -> Iterator[PageResult]:
        for page in self.reader.pages():
            self.pages += 1
            self.languages.update(page.languages or ([UNDETERMINED] if page.text_source else ()))
            self.report(page)
            yield public_page(page)

    def _image_of(self, page: PageResult) -> bytes | None:
        assert self.image is not None
        data = self.image(page)
        self.without_image += data is None and page.status is Status.DONE
        return data

    def copy_embeddings(self) -> dict[str, int]:
        """Add arrays, their ids and an engine's corpus statistics, if any.

        Returns:
            For each array, how many pages lack a vector in it.

        Raises:
            DamagedRunError: Arrays or ids are damaged.
            DifferentRunError: They are not those of the current pages.
        """
        source = self.reader.path / EMBEDDINGS
        if not self.options.embeddings or not source.is_dir():
            return {}
        target = self.folder / EMBEDDINGS
        target.mkdir()
        arrays = {}
        lock = self.reader.path / paths.EMBEDDINGS_LOCK
        # Locked against pagemill embed, which replaces an array and its ids one after the other.
        with RunLock(lock, wait_s=1):
            for part in Part:
                files = VectorPaths(source, part)
                try:
                    file = VectorFile.open_in(files)
                except MissingInputError:  # not every part is embedded
                    continue
                current, lacking = (range(len(file)), 0) if part is Part.QUERIES else self._current_rows(file)
                # Without a model path of this machine.
                public = msgspec.convert(public_values(msgspec.to_builtins(file.info)), VectorsInfo)
                rows, vectors = [file.rows[i] for i in current], (file.vectors[i].tobytes() for i in current)
                write_vectors(VectorPaths(target, part), public, rows, vectors)
                arrays[files.vectors.name] = lacking
            for statistics in source.glob("*.npz"):
                shutil.copyfile(statistics, target / statistics.name)
        return arrays

    def _current_rows(self, file: VectorFile) -> tuple[list[int], int]:
        """Ascending positions of vectors of current contents, and the number of pages without one.

        Raises:
            DifferentRunError: There are outdated vectors, and ``partial`` is off.
        """
        part = file.info.part
        current: list[int] = []
        lacking = 0
        if part is Part.CHUNKS:
            current, lacking = self._current_chunks(file)
        for page in self.reader.pages() if part is not Part.CHUNKS else ():
            wanted = [content.row for content in contents(page, part, images=file.info.images)]
            places = [file.place(row) for row in wanted]
            current += [place for place in places if place is not None]
            lacking += None in places
        stale = len(file) - len(current)
        if stale and not self.options.partial:
            raise DifferentRunError(
                f"the vectors of {part.plural} in {self.reader.path} are not up to date: {counted(stale, 'vector')} of"
                f" changed or removed pages, and {counted(lacking, 'page')} without a vector",
                remedy=f"Update them: pagemill embed {self.reader.path}, or publish those that fit with --partial,"
                " or none with --no-embeddings.",
            )
        return sorted(current), lacking

    def _current_chunks(self, file: VectorFile) -> tuple[list[int], int]:
        """The same for chunks; a page lacks a vector if a chunk of earlier content starts on it."""
        documents: dict[str, str] = {}
        for _, pages in self.reader.documents():
            listed = list(pages)
            documents |= dict.fromkeys((page.page_id for page in listed), document_digest(text_digests(listed)))
        current, outdated = [], set()
        for place, row in enumerate(file.rows):
            page_id = row.key.page_id
            if page_id in documents and chunk_row(row.key, documents[page_id]) == row:
                current.append(place)
            elif page_id in documents:
                outdated.add(page_id)
        return current, len(outdated)


def _refuse_unfinished(reader: RunReader, options: BuildOptions) -> None:
    if options.partial:
        return
    if not reader.is_finished:
        raise OutputError(
            f"the run in {reader.path} is not finished",
            remedy="Finish it with the same pagemill parse command, or publish what exists with --partial.",
        )
    if missing := reader.summary.missing:
        raise OutputError(
            f"the run in {reader.path} lacks at least {missing:,}"
            f" {'page or row' if missing == 1 else 'pages or rows'} that its sources did not yield",
            remedy="Repair the sources (pagemill status names them) and run pagemill parse again, or publish what"
            " exists with --partial.",
        )


def _fingerprint(reader: RunReader, options: BuildOptions) -> str:
    """A fingerprint that changes with the records, the vectors, the options and the version."""
    run = (reader.summary.started.isoformat(), reader.stamp(), reader.summary.counters())
    state: list[Any] = [__version__, msgspec.to_builtins(options), *run]
    # By size and time: hashing gigabytes of vectors would take longer than building the dataset.
    for path in sorted((reader.path / EMBEDDINGS).glob("*")):
        with contextlib.suppress(OSError):
            status = path.stat()
            state.append([path.name, status.st_size, status.st_mtime_ns])
    return hashlib.sha256(repr(state).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _public(summary: RunSummary) -> RunSummary:
    """The summary without paths and addresses of this machine."""
    return msgspec.structs.replace(summary, settings={}, identity=public_values(summary.identity))


def with_features(schema: pa.Schema) -> pa.Schema:
    """The schema with the metadata that marks columns of images.

    Source: the ``huggingface`` key of the Parquet metadata, as ``datasets`` writes it: features under ``info``.
    """
    features = json.dumps({"info": {"features": {field.name: _feature(field.type) for field in schema}}})
    return schema.with_metadata({**(schema.metadata or {}), b"huggingface": features.encode()})


def _feature(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]  # one element: the form that all versions of the library read
    if kind == pa.struct({"bytes": pa.binary(), "path": pa.string()}):
        return {"_type": "Image"}
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    return {"dtype": str(kind).replace("double", "float64"), "_type": "Value"}
