"""The files of the benchmark: the corpus, the PDFs set from it, and their variants; made once and kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pikepdf
import pypdfium2

from roundtrips.corpus import Document, digest, documents, sources
from roundtrips.markdown import parse, write
from roundtrips.producers import Job, Style, ceiling, printed, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PRODUCED, STRIPPED, SCAN = "produced", "stripped", "scan"
VARIANTS = (PRODUCED, STRIPPED, SCAN)
MOST_PAGES = 12
"""Documents that a style makes longer than this are left out: they would cost as much as many others."""
SCAN_DPI = 200
_AT_ONCE = 8
_VERSION = 2
"""Of the cleaning: raise it when documents are cut or cleaned in another way."""


@dataclass(frozen=True)
class Sheet:
    """A document set in a style, and its truth.

    Attributes:
        document: The document.
        producer: Name of the producer.
        style: Name of its style.
        path: The PDF as produced.
        pages: Its number of pages.
        truth: What it says, as Markdown.
        ceiling: What a perfect reader would write.
    """

    document: Document
    producer: str
    style: str
    path: Path
    pages: int
    truth: str
    ceiling: str

    @property
    def stem(self) -> str:
        """Name of the files that are made from it."""
        return f"{self.producer}-{self.style}-{self.path.stem}"


def corpus(listed: Path, work: Path) -> list[Document]:
    """Documents of the packages in a list."""
    made = work / "corpus" / (digest(listed.read_text(encoding="utf-8"), _VERSION) + ".json")
    if not made.exists():
        found = documents(sources(listed), work / "packages")
        made.parent.mkdir(parents=True, exist_ok=True)
        rows = [(document.name, document.language, write(document.blocks)) for document in found]
        made.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    rows = json.loads(made.read_text(encoding="utf-8"))
    return [Document(name, language, tuple(parse(markdown))) for name, language, markdown in rows]


def sample(
    found: Sequence[Document], producers: Mapping[str, Mapping[str, Style]], *, seed: int, limit: int, styles: int
) -> list[tuple[Document, str, str]]:
    """Documents, and for each the producers and some styles of each that can show it."""
    chosen = sorted(found, key=lambda document: digest(seed, document.name))[:limit]
    return [
        (document, producer, style)
        for document in chosen
        for producer, its_styles in producers.items()
        for style in sorted(
            (name for name in its_styles if shown(document, its_styles[name]) is not None),
            key=lambda name, document=document, producer=producer: digest(seed, document.name, producer, name),  # type: ignore[misc]
        )[:styles]
    ]


def sheets(
    wanted: Sequence[tuple[Document, str, str]], producers: Mapping[str, Mapping[str, Style]], work: Path
) -> list[Sheet]:
    """Documents set as PDF, those that could be; made once."""
    by_style: dict[tuple[str, str], list[Job]] = {}
    for document, producer, style in wanted:
        blocks = shown(document, producers[producer][style])
        assert blocks is not None
        path = work / "pdf" / f"{producer}-{style}" / f"{document.key}.pdf"
        by_style.setdefault((producer, style), []).append(Job(document, blocks, path))
    found = []
    for (producer, style), jobs in by_style.items():
        how = producers[producer][style]
        missing = [j for j in jobs if not j.pdf.exists() and not j.pdf.with_suffix(".failed").exists()]
        for first in range(0, len(missing), _AT_ONCE):
            print(
                f"  {producer}/{style}: {first + 1} to {min(first + _AT_ONCE, len(missing))} of {len(missing)}",
                flush=True,
            )
            _make(missing[first : first + _AT_ONCE], how)
        for job in jobs:
            if job.pdf.exists() and (pages := _pages(job.pdf)) <= MOST_PAGES:
                set_as = printed(job.blocks, how)
                truth, best = write(set_as), write(ceiling(set_as, how))
                found.append(Sheet(job.document, producer, style, job.pdf, pages, truth, best))
    return found


def _make(jobs: Sequence[Job], style: Style) -> None:
    new = [Job(job.document, job.blocks, job.pdf.with_suffix(".new.pdf")) for job in jobs]
    jobs[0].pdf.parent.mkdir(parents=True, exist_ok=True)
    error: Exception | None = None
    try:
        style.make(new)
    except Exception as failure:  # producers fail in many ways; a failure is shown, and kept
        error = failure
    for job, made in zip(jobs, new, strict=True):
        if made.pdf.exists() and (error is None or _readable(made.pdf)):
            made.pdf.replace(job.pdf)
        elif len(jobs) > 1:
            _make([job], style)
        else:
            said = getattr(error, "stderr", b"") or b""
            message = f"{error or 'no PDF'}\n{said.decode(errors='replace') if isinstance(said, bytes) else said}"
            job.pdf.with_suffix(".failed").write_text(message, encoding="utf-8")
            print(f"  not set: {job.document.name}: {message[:300]}", flush=True)


def _readable(path: Path) -> bool:
    try:
        return _pages(path) > 0
    except pypdfium2.PdfiumError:
        return False


def _pages(path: Path) -> int:
    with pypdfium2.PdfDocument(path) as pdf:
        return len(pdf)


def variant(sheet: Sheet, name: str) -> Path:
    """The file of a variant; made once."""
    path = sheet.path if name == PRODUCED else sheet.path.with_suffix(f".{name}.pdf")
    if not path.exists():
        new = path.with_suffix(".new.pdf")
        (strip if name == STRIPPED else scan)(sheet.path, new)
        new.replace(path)
    return path


def strip(source: Path, target: Path) -> None:
    """Copy a PDF without structure tree, marked content and outline."""
    with pikepdf.open(source) as pdf:
        for key in ("/StructTreeRoot", "/MarkInfo", "/Outlines", "/PageMode"):
            if key in pdf.Root:
                del pdf.Root[key]
        for thing in pdf.objects:
            if isinstance(thing, (pikepdf.Dictionary, pikepdf.Stream)):
                for key in ("/StructParents", "/StructParent"):
                    if key in thing:
                        del thing[key]
                if isinstance(thing, pikepdf.Stream) and thing.get("/Subtype") == "/Form":
                    thing.write(_unmarked(thing))
        for page in pdf.pages:
            page.Contents = pdf.make_stream(_unmarked(page))
        pdf.save(target)


def _unmarked(content: pikepdf.Page | pikepdf.Stream) -> bytes:
    marks = {"BMC", "BDC", "EMC", "MP", "DP"}
    kept = [one for one in pikepdf.parse_content_stream(content) if str(one.operator) not in marks]
    return pikepdf.unparse_content_stream(kept)


def scan(source: Path, target: Path) -> None:
    """Pages of a PDF as images."""
    with pypdfium2.PdfDocument(source) as pdf:
        images = [page.render(scale=SCAN_DPI / 72).to_pil().convert("L") for page in pdf]
    images[0].save(target, "PDF", save_all=True, append_images=images[1:], resolution=SCAN_DPI, quality=90)
