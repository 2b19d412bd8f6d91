"""Streams of several invocations: files of made-up sources, and a catalogue that remembers what of them has ended."""

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import KnownSource, PageKey, WaitingPage
from pagemill.errors import CorruptInputError
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo, PdfRepair
from pagemill.sources import SourceOptions
from pagemill.sources.base import PageRef
from pagemill.sources.stream import InputStream

LONG_AGO = (1.6e9, 1.6e9)


class Pdfs:
    """Says that each PDF has as many pages as its second line states."""

    limits = DecodeLimits()

    def __init__(self) -> None:
        self.opened: list[str] = []

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        self.opened.append(path.name)
        pages = int(path.read_bytes().split(b"\n")[1])
        return PdfInfo(page_count=pages, announced=pages)

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        raise CorruptInputError("it cannot be repaired")


@dataclass
class MetSource:
    digest: str
    copy: int
    uri: str
    pages: int | None = None


@dataclass
class RememberingCatalogue(Catalogue):
    """:meth:`begin` begins an invocation; what was given in the last one and not started is forgotten."""

    digests: dict[tuple[Path, int, int], str] = field(default_factory=dict)
    sources: list[MetSource] = field(default_factory=list)
    ended: dict[PageKey, str] = field(default_factory=dict)
    """Page ids."""
    waiting: dict[PageKey, WaitingPage] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Of :meth:`meet` in this invocation."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.calls.clear()
        self._met: list[MetSource] = []
        super().__init__()
        for name in self.documents.values():
            self._unique("documents", name)
        for name in [*self.ended.values(), *(page.page_id for page in self.waiting.values())]:
            self._unique("pages", name)

    def end(self, ref: PageRef) -> None:
        self.waiting.pop(ref.key, None)
        self.ended[ref.key] = ref.page_id

    def postpone(self, ref: PageRef, attempts: int = 1, death: str | None = None) -> None:
        self.ended.pop(ref.key, None)
        self.waiting[ref.key] = WaitingPage(page_id=ref.page_id, attempts=attempts, death=death)

    def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
        return self.digests.get((path, size, modified_ns))

    def remember_digest(self, path: Path, size: int, modified_ns: int, digest: str) -> None:
        self.digests[path, size, modified_ns] = digest

    def register(self, digest: str, uri: str, skip: str | None = None) -> KnownSource:
        self.calls.append((digest, uri))
        known = [source for source in self.sources if source.digest == digest]
        free = [source for source in known if not any(source is met for met in self._met)]
        source = next((source for source in free if source.uri == uri), free[0] if free else None)
        if source is None:
            source = MetSource(digest, len(known) + 1, uri)
            self.sources.append(source)
        source.uri = uri
        self._met.append(source)
        place = (digest, source.copy)
        waiting = {key.page: page for key, page in self.waiting.items() if (key.digest, key.copy) == place}
        ended = {key.page for key in self.ended if (key.digest, key.copy) == place}
        if 0 in ended:  # what did not open is always tried again
            ended.remove(0)
            waiting[0] = WaitingPage(page_id=self.ended[PageKey(digest, 0, source.copy)])
        return KnownSource(copy=source.copy, pages=source.pages, ended=ended, waiting=waiting)

    def counted(self, digest: str, copy: int, pages: int) -> None:
        next(source for source in self.sources if (source.digest, source.copy) == (digest, copy)).pages = pages

    def document_id(self, key: str, wanted: str) -> str:
        if key not in self.documents:
            self.documents[key] = self._unique("documents", wanted)
        return self.documents[key]


def write(path: Path, data: bytes) -> Path:
    """A file that was not modified just now, so that its digest is remembered."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, LONG_AGO)
    return path


def pdf(path: Path, pages: int, salt: str = "") -> Path:
    return write(path, f"%PDF-1.7\n{pages}\n{salt}".encode())


def image(number: int, kind: str = "PNG", frames: int = 1) -> bytes:
    buffer = io.BytesIO()
    pages = [Image.new("L", (4 + number, 5 + frame)) for frame in range(frames)]
    pages[0].save(buffer, kind, **({"save_all": True, "append_images": pages[1:]} if frames > 1 else {}))
    return buffer.getvalue()


def shard(path: Path, ids: Sequence[str | None], rows_of_group: int = 2) -> Path:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    images = pa.array([{"bytes": image(number), "path": None} for number in range(len(ids))], kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.string()), "image": images}), path, row_group_size=rows_of_group)
    os.utime(path, LONG_AGO)
    return path


async def read(
    inputs: Iterable[str | Path | bytes],
    catalogue: RememberingCatalogue,
    *,
    pdfs: Pdfs | None = None,
    first: int | None = None,
    **options: object,
) -> tuple[list[PageRef], InputStream]:
    """The page references of one invocation, or so many of them."""
    catalogue.begin()
    source = InputStream(
        list(inputs),
        options=SourceOptions(**options),  # type: ignore[arg-type]
        decoder=pdfs or Pdfs(),
        catalogue=catalogue,
    )
    refs: list[PageRef] = []
    pages = source.pages()
    while first is None or len(refs) < first:
        ref = await anext(pages, None)
        if ref is None:
            break
        refs.append(ref)
    await pages.aclose()
    return refs, source
