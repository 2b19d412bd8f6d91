"""Producers: the programs that set a document as PDF, each in several styles."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chromium_pipe import CHROMIUM, Chromium
from roundtrips import html_page, typst_source
from roundtrips.markdown import ITALIC, STRIKE, SUB, SUP, Block, Run, each_runs, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roundtrips.corpus import Document

LATIN = frozenset({"en", "de"})
ALL = frozenset({"en", "de", "ru", "ko", "ja", "zh", "ar"})
_TIMEOUT_S = 180
_LEFT_OUT = 0.02
"""Share of characters that a style may lack; documents with more are not set in it. Not measured."""


@dataclass(frozen=True)
class Job:
    """A document to set in a style, and where."""

    document: Document
    blocks: Sequence[Block]
    pdf: Path


Maker = Callable[[Sequence[Job]], None]


@dataclass(frozen=True)
class Style:
    """A style of a producer.

    Attributes:
        make: Sets documents; what it cannot set is left out.
        languages: What its fonts have.
        charset: Encoding whose characters it can show; None for all.
        loses: What does not reach the page: ``link``, marks of runs.
        levels: How many levels of headings look different.
        slanted: Whether letters outside Latin, Greek and Cyrillic are slanted where they should be.
        numbered: Whether it numbers headings.
        targets: Whether it prints the targets of links behind their texts.
        columns: Longest line of code that fits.
    """

    make: Maker
    languages: frozenset[str] = ALL
    charset: str | None = None
    loses: frozenset[str] = frozenset()
    levels: int = 6
    slanted: bool = True
    numbered: bool = False
    targets: bool = False
    columns: int | None = None


def shown(document: Document, style: Style) -> list[Block] | None:
    """Blocks of a document without the characters that a style cannot show; None where these are many.

    Lines of code that would leave the page are broken.
    """
    headings = [block for block in document.blocks if block.kind == "heading"]
    if document.language not in style.languages or (style.numbered and not _to_be_numbered(headings)):
        return None
    charset, columns = style.charset, style.columns
    counts = [0, 0]

    def kept(text: str) -> str:
        out = "".join(c for c in text if c.isascii() or c.encode(charset, "ignore")) if charset else text
        counts[0] += len(text)
        counts[1] += len(out)
        return out

    def broken(text: str) -> str:
        return re.sub(f"([^\n]{{{columns}}})(?=[^\n])", "\\1\n", text) if columns else text

    def kept_code(some: Sequence[Block]) -> list[Block]:
        return [replace(b, text=broken(kept(b.text)), children=kept_code(b.children)) for b in some]

    blocks = each_runs(kept_code(document.blocks), lambda runs: [replace(run, text=kept(run.text)) for run in runs])
    return blocks if counts[1] >= (1 - _LEFT_OUT) * counts[0] else None


def _to_be_numbered(headings: Sequence[Block]) -> bool:
    """Whether headings begin with a chapter, and have no numbers of their own."""
    return (
        bool(headings) and headings[0].level == 1 and not any(plain(heading.runs)[:1].isdigit() for heading in headings)
    )


def ceiling(blocks: Sequence[Block], style: Style) -> list[Block]:
    """Blocks after what a style loses: what a perfect reader of its pages would write."""

    def without(runs: list[Run]) -> list[Run]:
        kept = []
        for run in runs:
            upright = not style.slanted and any(char >= "\u0600" for char in run.text)
            marks = run.marks - style.loses - ({ITALIC} if upright else frozenset())
            kept.append(replace(run, marks=marks, href=None if "link" in style.loses else run.href))
        return kept

    def levelled(some: Sequence[Block]) -> list[Block]:
        return [replace(b, level=min(b.level, style.levels), children=levelled(b.children)) for b in some]

    return each_runs(levelled(blocks), without)


def numbered(blocks: Sequence[Block]) -> list[Block]:
    """Blocks with numbers before the headings, as LaTeX and Typst count them."""
    counts = [0] * 6

    def prefixed(some: Sequence[Block]) -> list[Block]:
        out = []
        for block in some:
            runs = block.runs
            if block.kind == "heading":
                counts[block.level - 1] += 1
                counts[block.level :] = [0] * (6 - block.level)
                runs = [Run(".".join(map(str, counts[: block.level])) + " "), *runs]
            out.append(replace(block, runs=runs, children=prefixed(block.children)))
        return out

    return prefixed(blocks)


def printed(blocks: Sequence[Block], style: Style) -> list[Block]:
    """Blocks as a style prints them: with numbers before headings, or with targets behind links."""
    if style.targets:
        return each_runs(blocks, _with_targets)
    return numbered(blocks) if style.numbered else list(blocks)


def _with_targets(runs: list[Run]) -> list[Run]:
    out: list[Run] = []
    for href, group in groupby(runs, lambda run: run.href):
        out += (own := list(group))
        if href and ":" in href and plain(own) != href:
            out.append(Run(f" ({href})"))
    return out


_RUNNING = {
    "displayHeaderFooter": True,
    "headerTemplate": '<div style="font-size:8pt;width:100%;text-align:center"><span class="title"></span></div>',
    "footerTemplate": '<div style="font-size:8pt;width:100%;text-align:center"><span class="pageNumber"></span></div>',
}


def _chromium(css: str, **options: Any) -> Maker:
    margins = dict.fromkeys(("marginTop", "marginBottom", "marginLeft", "marginRight"), 0.7)
    options |= {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True, **margins}

    def make(jobs: Sequence[Job]) -> None:
        with tempfile.TemporaryDirectory() as folder, Chromium(Path(folder) / "profile") as browser:
            for job in jobs:
                source = Path(folder) / "page.html"
                source.write_text(html_page.page(job.blocks, job.document.language, css=css), encoding="utf-8")
                browser.open(source)
                job.pdf.write_bytes(base64.b64decode(browser.call("Page.printToPDF", **options)["data"]))

    return make


def _weasyprint(css: str, **options: Any) -> Maker:
    def make(jobs: Sequence[Job]) -> None:
        import weasyprint

        for job in jobs:
            html = html_page.page(job.blocks, job.document.language, css=css)
            weasyprint.HTML(string=html).write_pdf(job.pdf, **options)

    return make


def _typst(template: str) -> Maker:
    def make(jobs: Sequence[Job]) -> None:
        import typst

        for job in jobs:
            source = typst_source.source(job.blocks, job.document.language, template)
            job.pdf.write_bytes(typst.compile(source.encode()))

    return make


def _reportlab(*, rules: bool, font: str) -> Maker:
    def make(jobs: Sequence[Job]) -> None:
        from roundtrips import platypus

        for job in jobs:
            platypus.make(job.blocks, job.pdf, rules=rules, font=font, korean=job.document.language == "ko")

    return make


def _pandoc(job: Job, to: str, target: Path, *options: str) -> None:
    # LibreOffice sets pandoc's tables without widths in narrow columns; the others set long rows off the page.
    html = html_page.page(job.blocks, job.document.language, wide=0 if to == "docx" else 60)
    command = ["pandoc", "-f", "html", "-t", to, "-s", "-o", str(target), *options]
    subprocess.run(command, input=html.encode(), check=True, capture_output=True, timeout=_TIMEOUT_S)


def _groff(macros: str, device: str) -> Maker:
    def make(jobs: Sequence[Job]) -> None:
        for job in jobs:
            with tempfile.TemporaryDirectory() as folder:
                source, pages = Path(folder) / "source", Path(folder) / "pages.ps"
                title = re.sub(r"\W+", "-", job.document.name.split("/")[-1])
                _pandoc(job, macros, source, *(["-V", "section=7", "-V", f"title={title}"] if macros == "man" else []))
                links = ["-mpdfmark"] if (macros, device) == ("ms", "ps") else []
                command = ["groff", "-k", "-t", f"-m{macros}", *links, f"-T{device}", str(source)]
                done = subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S).stdout
                if device == "pdf":
                    job.pdf.write_bytes(done)
                    continue
                pages.write_bytes(done)
                command = ["ps2pdf", str(pages), str(job.pdf)]
                subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S)

    return make


def _libreoffice(*, tagged: bool, rules: bool, font: str) -> Maker:
    chosen = {"type": "boolean", "value": str(tagged).lower()}
    options = json.dumps({"UseTaggedPDF": chosen, "ExportBookmarks": chosen})

    def make(jobs: Sequence[Job]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            texts = [Path(folder) / f"{number}.docx" for number in range(len(jobs))]
            for job, text in zip(jobs, texts, strict=True):
                _pandoc(job, "docx", text)
                _restyle(text, rules=rules, font=font)
            command = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless"]
            command += ["--convert-to", f"pdf:writer_pdf_Export:{options}", "--outdir", folder, *map(str, texts)]
            subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S + 20 * len(jobs))
            for job, text in zip(jobs, texts, strict=True):
                if text.with_suffix(".pdf").exists():
                    shutil.move(text.with_suffix(".pdf"), job.pdf)

    return make


_SIDES = ("top", "left", "bottom", "right", "insideH", "insideV")
_LINES = "".join(f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="000000"/>' for side in _SIDES)


def _restyle(path: Path, *, rules: bool, font: str) -> None:
    """Fonts that are installed, and rules around cells."""
    fonts = f'<w:rFonts w:ascii="{font}" w:hAnsi="{font}" w:cs="Noto Naskh Arabic" w:eastAsia="Noto Sans CJK KR"/>'
    mono = '<w:rFonts w:ascii="DejaVu Sans Mono" w:hAnsi="DejaVu Sans Mono" w:eastAsia="Noto Sans CJK KR"/>'
    new = path.with_suffix(".new")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        for item in old.infolist():
            xml = old.read(item).decode() if item.filename in {"word/styles.xml", "word/document.xml"} else ""
            if item.filename == "word/styles.xml":
                xml = re.sub(r"<w:rFonts[^>]*Consolas[^>]*/>", mono, xml)
                xml = re.sub(r"<w:rFonts[^>]*Theme[^>]*/>", fonts, xml)
            elif xml and rules:
                borders = rf"\1<w:tblBorders>{_LINES}</w:tblBorders>"
                xml = re.sub(r"(<w:tblPr>.*?<w:tblW[^>]*/>)", borders, xml, flags=re.DOTALL)
            out.writestr(item, xml.encode() or old.read(item))
    new.replace(path)


def _latex(engine: str, *options: str) -> Maker:
    fonts = ["mainfont=DejaVu Serif", "monofont=DejaVu Sans Mono", "monofontoptions=Scale=.8"]

    def make(jobs: Sequence[Job]) -> None:
        for job in jobs:
            variables = ["geometry=a4paper,margin=25mm", *(fonts if engine == "xelatex" else [])]
            if job.document.language in {"ko", "ja", "zh"}:
                variables.append("CJKmainfont=Noto Serif CJK KR")
            chosen = [part for variable in variables for part in ("-V", variable)]
            _pandoc(job, "latex", job.pdf, f"--pdf-engine={engine}", *chosen, *options)

    return make


def _has(*needed: str) -> bool:
    return all(shutil.which(name) or importlib.util.find_spec(name) for name in needed)


def producers() -> Mapping[str, Mapping[str, Style]]:
    """Styles by producer, of those that are installed."""
    found: dict[str, dict[str, Style]] = {}
    if CHROMIUM:
        found["chromium"] = {
            "web": Style(_chromium("web")),
            "book": Style(
                _chromium("book", **_RUNNING, generateTaggedPDF=True, generateDocumentOutline=True), levels=4
            ),
            "columns": Style(_chromium("columns", generateTaggedPDF=False), levels=3),
        }
    if _has("typst"):
        found["typst"] = {
            "article": Style(_typst("article"), levels=3, slanted=False, columns=80),
            "handbook": Style(_typst("handbook"), levels=3, slanted=False, columns=80),
            "columns": Style(_typst("columns"), slanted=False, numbered=True, columns=52),
        }
    if _has("soffice", "pandoc"):
        found["libreoffice"] = {
            "tagged": Style(_libreoffice(tagged=True, rules=False, font="Liberation Serif"), levels=5),
            "tagged-rules": Style(_libreoffice(tagged=True, rules=True, font="Liberation Sans"), levels=5),
            "untagged": Style(_libreoffice(tagged=False, rules=False, font="DejaVu Serif"), levels=5),
            "untagged-rules": Style(_libreoffice(tagged=False, rules=True, font="Liberation Sans"), levels=5),
        }
    if _has("groff", "pandoc", "ps2pdf"):
        lost = frozenset({STRIKE})
        found["groff"] = {
            "ms": Style(_groff("ms", "ps"), LATIN, "latin-1", lost, levels=2, columns=62),
            "ms-pdf": Style(_groff("ms", "pdf"), LATIN, "latin-1", lost, levels=2, columns=62),
            "man": Style(
                _groff("man", "ps"), LATIN, "latin-1", lost | {SUB, SUP, "link"}, levels=2, targets=True, columns=62
            ),
        }
    if _has("weasyprint"):
        found["weasyprint"] = {
            "report": Style(_weasyprint("report")),
            "book": Style(_weasyprint("book", pdf_tags=True), levels=4),
        }
    if _has("reportlab"):
        wide = LATIN | {"ru", "ko"}
        found["reportlab"] = {
            "rules": Style(_reportlab(rules=True, font="Helvetica"), LATIN, "cp1252", levels=5, columns=80),
            "plain": Style(_reportlab(rules=False, font="DejaVu"), wide, levels=5, slanted=False, columns=80),
        }
    if _has("pdflatex", "xelatex", "pandoc"):
        wide = LATIN | {"ru", "ko", "ja", "zh"}
        numbers = _latex("xelatex", "-N", "-V", "colorlinks")
        found["latex"] = {
            "article": Style(_latex("pdflatex"), LATIN, "latin-1", levels=3, columns=76),
            "numbered": Style(numbers, wide, slanted=False, numbered=True, columns=76),
        }
    return found
