"""Producers: the programs that set a document as PDF, each in several styles."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
import unicodedata
import zipfile
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chromium_pipe import CHROMIUM, Chromium
from roundtrips.markdown import BOLD, CODE, ITALIC, STRIKE, SUB, SUP, Block, Run, each_runs, flat, plain, slug

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roundtrips.corpus import Document

LATIN = frozenset({"en", "de"})
ALL = frozenset({"en", "de", "ru", "ko", "ja", "zh", "ar"})
_TIMEOUT_S = 180


@dataclass(frozen=True)
class Job:
    """A document to set in a style, and where."""

    document: Document
    blocks: Sequence[Block]
    pdf: Path


@dataclass(frozen=True)
class Style:
    """A style of a producer.

    Attributes:
        make: Sets documents; what it cannot set is left out.
        languages: What its fonts have.
        charset: Encoding whose characters it can show; None for all.
        loses: Marks and kinds that do not reach the page: ``link``, marks of runs, ``levels`` below 2.
    """

    make: Callable[[Sequence[Job]], None]
    languages: frozenset[str] = ALL
    charset: str | None = None
    loses: frozenset[str] = frozenset()


# What a producer cannot show

_LEFT_OUT = 0.02
"""Share of characters that a style may lack; documents with more are not set in it. Not measured."""


def shown(document: Document, style: Style) -> list[Block] | None:
    """Blocks of a document without the characters that a style cannot show; None where these are many."""
    if document.language not in style.languages:
        return None
    blocks = list(document.blocks)
    if style.charset is None:
        return blocks
    counts = [0, 0]

    def kept(text: str) -> str:
        out = "".join(c for c in text if c.isascii() or c.encode(str(style.charset), "ignore"))
        counts[0] += len(text)
        counts[1] += len(out)
        return out

    def kept_code(some: Sequence[Block]) -> list[Block]:
        return [replace(b, text=kept(b.text), children=kept_code(b.children)) for b in some]

    blocks = each_runs(kept_code(blocks), lambda runs: [replace(run, text=kept(run.text)) for run in runs])
    return blocks if counts[1] >= (1 - _LEFT_OUT) * counts[0] else None


def ceiling(blocks: Sequence[Block], style: Style) -> list[Block]:
    """Blocks after what a style loses: what a perfect reader of its pages would write."""
    lost = style.loses

    def without(runs: list[Run]) -> list[Run]:
        return [replace(run, marks=run.marks - lost, href=None if "link" in lost else run.href) for run in runs]

    def levelled(some: Sequence[Block]) -> list[Block]:
        deepest = 2 if "levels" in lost else 6
        return [replace(b, level=min(b.level, deepest), children=levelled(b.children)) for b in some]

    return each_runs(levelled(blocks), without)


# HTML

_TAGS = ((STRIKE, "s"), (BOLD, "strong"), (ITALIC, "em"), (CODE, "code"), (SUP, "sup"), (SUB, "sub"))


def html_runs(runs: Sequence[Run]) -> str:
    """Runs as HTML."""
    out = ""
    for run in runs:
        text = escape(run.text)
        for mark, tag in reversed(_TAGS):
            if mark in run.marks:
                text = f"<{tag}>{text}</{tag}>"
        out += f'<a href="{escape(run.href)}">{text}</a>' if run.href else text
    return out


def html_blocks(blocks: Sequence[Block]) -> str:
    """Blocks as HTML."""
    return "\n".join(map(_html_block, blocks))


def _html_block(block: Block) -> str:
    match block.kind:
        case "heading":
            name = f"h{block.level}"
            return f'<{name} id="{escape(slug(plain(block.runs)))}">{html_runs(block.runs)}</{name}>'
        case "paragraph":
            return f"<p>{html_runs(block.runs)}</p>"
        case "list":
            tag, start = ("ul", "") if block.start is None else ("ol", f' start="{block.start}"')
            items = "".join(f"<li>{_html_item(item)}</li>" for item in block.children)
            return f"<{tag}{start}>{items}</{tag}>"
        case "code":
            return f"<pre><code>{escape(block.text)}\n</code></pre>"
        case "quote":
            return f"<blockquote>{html_blocks(block.children)}</blockquote>"
        case "table":
            head, *rows = [[html_runs(cell) for cell in row] for row in block.rows]
            body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
            return (
                f"<table><thead><tr>{''.join(f'<th>{c}</th>' for c in head)}</tr></thead><tbody>{body}</tbody></table>"
            )
        case _:
            return ""


def _html_item(item: Block) -> str:
    first, *others = item.children or [Block("paragraph")]
    inside = html_runs(first.runs) if first.kind == "paragraph" else _html_block(first)
    return inside + html_blocks(others)


def html_page(job: Job, css: str) -> str:
    """A page of HTML."""
    language = job.document.language
    direction = ' dir="rtl"' if language == "ar" else ""
    title = next((plain(b.runs) for b in job.blocks if b.kind == "heading"), "")
    return (
        f'<!doctype html><html lang="{language}"{direction}><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{css}</style></head><body>{html_blocks(job.blocks)}</body></html>"
    )


_CJK = '"Noto {0} CJK KR", "Noto {0} CJK JP", "Noto Naskh Arabic"'
_CSS = {
    "web": """
body{font:15px/1.5 "Liberation Sans","DejaVu Sans",%(sans)s,sans-serif;color:#24292f}
h1,h2{border-bottom:1px solid #d0d7de;padding-bottom:.3em} a{color:#0969da;text-decoration:none}
pre{background:#f6f8fa;padding:12px;white-space:pre-wrap;overflow-wrap:anywhere}
code{font-family:"DejaVu Sans Mono",%(sans)s,monospace;font-size:85%%} :not(pre)>code{background:#eff1f3;padding:.2em .4em}
table{border-collapse:collapse} td,th{border:1px solid #d0d7de;padding:6px 13px}
tr:nth-child(even){background:#f6f8fa} blockquote{border-left:4px solid #d0d7de;padding-left:1em;margin-left:0;color:#57606a}
""",
    "book": """
body{font:11pt/1.35 "DejaVu Serif",%(serif)s,serif;text-align:justify;hyphens:auto}
h1{font-size:1.7em;text-align:center} h2{font-size:1.3em} h3{font-size:1.1em;font-style:italic} h4,h5,h6{font-size:1em}
p{margin:0;text-indent:1.5em} li p,td p{text-indent:0} a{color:inherit}
pre{font-size:9pt;white-space:pre-wrap;overflow-wrap:anywhere} code{font-family:"DejaVu Sans Mono",%(serif)s,monospace}
table{border-collapse:collapse;border-top:1.5pt solid;border-bottom:1.5pt solid;margin:1em auto}
th{border-bottom:.5pt solid} td,th{padding:2pt 8pt;text-align:left;border-left:0}
""",
    "columns": """
body{font:9.5pt/1.3 "Liberation Serif","DejaVu Serif",%(serif)s,serif;columns:2;column-gap:8mm;text-align:justify}
h1{column-span:all;text-align:center;font-size:16pt} h2{font-size:12pt} h3,h4,h5,h6{font-size:10pt}
pre,code{font-family:"DejaVu Sans Mono",%(sans)s,monospace;font-size:7pt} pre{white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;font-size:8pt} td,th{padding:1pt 4pt;text-align:left;overflow-wrap:anywhere}
""",
    "report": """
@page{size:A4;margin:25mm 20mm;@top-left{content:string(title);font-size:8pt}@bottom-right{content:counter(page)" / "counter(pages)}}
h1{string-set:title content()} body{font:10.5pt/1.4 "DejaVu Sans",%(sans)s,sans-serif}
h1,h2,h3{color:#134074} pre,code{font-family:"DejaVu Sans Mono",%(sans)s,monospace;font-size:8.5pt}
pre{border:.5pt solid #aaa;padding:4pt;white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%%} th{background:#134074;color:#fff} td,th{padding:4pt;border-bottom:.5pt solid #aaa}
""",
}


def _css(name: str) -> str:
    return _CSS[name] % {"sans": _CJK.format("Sans"), "serif": _CJK.format("Serif")}


def _chromium(css: str, **options: Any) -> Callable[[Sequence[Job]], None]:
    def make(jobs: Sequence[Job]) -> None:
        with tempfile.TemporaryDirectory() as folder, Chromium(Path(folder) / "profile") as browser:
            for job in jobs:
                page = Path(folder) / "page.html"
                page.write_text(html_page(job, _css(css)), encoding="utf-8")
                browser.open(page)
                margins = dict.fromkeys(("marginTop", "marginBottom", "marginLeft", "marginRight"), 0.7)
                paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
                done = browser.call("Page.printToPDF", **paper, **margins, **options)
                job.pdf.write_bytes(base64.b64decode(done["data"]))

    return make


_RUNNING = {
    "displayHeaderFooter": True,
    "headerTemplate": '<div style="font-size:8pt;width:100%;text-align:center"><span class="title"></span></div>',
    "footerTemplate": '<div style="font-size:8pt;width:100%;text-align:center"><span class="pageNumber"></span></div>',
}


def _weasyprint(css: str, **options: Any) -> Callable[[Sequence[Job]], None]:
    def make(jobs: Sequence[Job]) -> None:
        import weasyprint

        for job in jobs:
            weasyprint.HTML(string=html_page(job, _css(css))).write_pdf(job.pdf, **options)

    return make


# Typst


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _typst_runs(runs: Sequence[Run]) -> str:
    parts = []
    names = ((CODE, "raw"), (SUB, "sub"), (SUP, "super"), (ITALIC, "emph"), (BOLD, "strong"), (STRIKE, "strike"))
    for run in runs:
        text = _string(run.text)
        for mark, name in names:
            if mark in run.marks:
                text = f"{name}({text})"
        if run.href:
            anchor = "label(" + _string(run.href[1:]) + ")" if run.href[0] == "#" else _string(run.href)
            text = f"link({anchor}, {text})"
        parts.append(text)
    return "{" + "; ".join(parts or ['""']) + "}"


def _typst_blocks(blocks: Sequence[Block]) -> str:
    return "{" + "; ".join(map(_typst_block, blocks)) + "}"


def _typst_block(block: Block) -> str:
    match block.kind:
        case "heading":
            anchor = _string(slug(plain(block.runs)))
            return f"[#heading(level: {block.level}, {_typst_runs(block.runs)})#anchored({anchor})]"
        case "paragraph":
            return f"par({_typst_runs(block.runs)})"
        case "list":
            items = "".join(", " + _typst_blocks(item.children) for item in block.children)
            return f"enum(start: {block.start}{items})" if block.start is not None else f"list({items[2:]})"
        case "code":
            return f"raw(block: true, {_string(block.text)})"
        case "quote":
            return f"quote(block: true, {_typst_blocks(block.children)})"
        case "table":
            head, *rows = ["".join(", " + _typst_runs(cell) for cell in row) for row in block.rows]
            return f"table(columns: {len(block.rows[0])}, table.header({head[2:]}){''.join(rows)})"
        case _:
            return '""'


_FONTS = '("{0}", "Noto {1} CJK KR", "Noto {1} CJK JP", "Noto Naskh Arabic", "DejaVu Sans")'
_TYPST = {
    "article": """#set page(numbering: "1")
#set text(font: %(serif)s, size: 10pt)
#set par(justify: true)
#set heading(numbering: none)
""",
    "handbook": """#set page(header: context { if counter(page).get().first() > 1 [#emph(title) #h(1fr) #counter(page).display()] })
#set text(font: %(sans)s, size: 10.5pt)
#set table(stroke: none, inset: (x: 8pt, y: 4pt))
#show link: set text(fill: blue)
#show heading: set text(fill: rgb("#134074"))
#show raw.where(block: true): block.with(fill: luma(240), inset: 6pt, width: 100%%)
""",
    "columns": """#set page(columns: 2, margin: 18mm, footer: context align(center, counter(page).display("1 / 1", both: true)))
#set text(font: %(serif)s, size: 9pt)
#set par(justify: true, first-line-indent: 1em)
#set heading(numbering: "1.1")
#set table(stroke: (x: none, y: 0.5pt))
#show raw: set text(size: 7pt)
""",
}


def _typst(template: str) -> Callable[[Sequence[Job]], None]:
    def make(jobs: Sequence[Job]) -> None:
        import typst

        for job in jobs:
            anchors = sorted({slug(plain(b.runs)) for b in flat(job.blocks) if b.kind == "heading"} - {""})
            linked = {r.href[1:] for b in flat(job.blocks) for r in _all_runs(b) if r.href and r.href[0] == "#"}
            # A label stands once: the first heading of a name takes it.
            once = "".join(f"#let seen-{i} = state({_string(name)}, false)\n" for i, name in enumerate(()))
            title = next((plain(b.runs) for b in job.blocks if b.kind == "heading"), "")
            head = f"#set document(title: {_string(title)})\n#let title = {_string(title)}\n#set text(lang: {_string(job.document.language)})\n"
            head += once + "#let anchored(name) = none\n"
            head += _TYPST[template] % {
                "serif": _FONTS.format("Libertinus Serif", "Serif"),
                "sans": _FONTS.format("DejaVu Sans", "Sans"),
            }
            del anchors
            body = _typst_labelled(job.blocks, linked)
            job.pdf.write_bytes(typst.compile((head + body).encode()))

    return make


def _typst_labelled(blocks: Sequence[Block], linked: set[str]) -> str:
    """The document, with a label at the first heading of each name that is linked."""
    source = "#" + _typst_blocks(blocks)
    for name in linked:
        source = source.replace(f"#anchored({_string(name)})]", f"#metadata(none)#label({_string(name)})]", 1)
    return source


def _all_runs(block: Block) -> list[Run]:
    return [*block.runs, *(run for row in block.rows for cell in row for run in cell)]


# Pandoc: groff, LibreOffice, LaTeX


def _pandoc(job: Job, to: str, target: Path, *options: str) -> None:
    subprocess.run(
        ["pandoc", "-f", "html", "-t", to, "-s", "-o", str(target), *options],
        input=html_page(job, "").encode(), check=True, capture_output=True, timeout=_TIMEOUT_S,
    )  # fmt: skip


def _groff(macros: str, device: str) -> Callable[[Sequence[Job]], None]:
    def make(jobs: Sequence[Job]) -> None:
        for job in jobs:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / "source"
                _pandoc(job, macros, source, *(["-V", "section=7"] if macros == "man" else []))
                extra = ["-mpdfmark"] if macros == "ms" and device == "ps" else []
                command = [
                    "groff",
                    "-k",
                    "-t",
                    f"-m{'pdf' if False else ''}{macros}",
                    *extra,
                    f"-T{device}",
                    str(source),
                ]
                done = subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S).stdout
                if device == "ps":
                    (Path(folder) / "source.ps").write_bytes(done)
                    subprocess.run(
                        ["ps2pdf", str(Path(folder) / "source.ps"), str(job.pdf)],
                        check=True, capture_output=True, timeout=_TIMEOUT_S,
                    )  # fmt: skip
                else:
                    job.pdf.write_bytes(done)

    return make


_BORDERS = "<w:tblBorders>" + "".join(
    f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="000000"/>'
    for side in ("top", "left", "bottom", "right", "insideH", "insideV")
) + "</w:tblBorders>"  # fmt: skip


def _libreoffice(*, tagged: bool, rules: bool, font: str) -> Callable[[Sequence[Job]], None]:
    def make(jobs: Sequence[Job]) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number, job in enumerate(jobs):
                _pandoc(job, "docx", folder / f"{number}.docx")
                _restyle(folder / f"{number}.docx", rules=rules, font=font)
            options = {"UseTaggedPDF": {"type": "boolean", "value": str(tagged).lower()}}
            options["ExportBookmarks"] = {"type": "boolean", "value": str(tagged).lower()}
            command = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to"]
            command += ["pdf:writer_pdf_Export:" + json.dumps(options), "--outdir", name]
            command += [str(folder / f"{number}.docx") for number in range(len(jobs))]
            subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S + 20 * len(jobs))
            for number, job in enumerate(jobs):
                if (folder / f"{number}.pdf").exists():
                    shutil.move(folder / f"{number}.pdf", job.pdf)

    return make


def _restyle(path: Path, *, rules: bool, font: str) -> None:
    """Fonts that are installed, and rules around cells."""
    fonts = f'<w:rFonts w:ascii="{font}" w:hAnsi="{font}" w:cs="Noto Naskh Arabic" w:eastAsia="Noto Sans CJK KR"/>'
    mono = '<w:rFonts w:ascii="DejaVu Sans Mono" w:hAnsi="DejaVu Sans Mono" w:eastAsia="Noto Sans CJK KR"/>'
    new = path.with_suffix(".new")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "word/styles.xml":
                xml = data.decode()
                xml = re.sub(r"<w:rFonts[^>]*Consolas[^>]*/>", mono, xml)
                xml = re.sub(r"<w:rFonts[^>]*Theme[^>]*/>", fonts, xml)
                if rules:
                    xml = re.sub(r'(w:styleId="Table">.*?<w:tblPr>)', lambda m: m[1] + _BORDERS, xml, flags=re.DOTALL)
                data = xml.encode()
            out.writestr(item, data)
    new.replace(path)


def _latex(engine: str, *options: str) -> Callable[[Sequence[Job]], None]:
    def make(jobs: Sequence[Job]) -> None:
        for job in jobs:
            fonts: list[str] = []
            if engine == "xelatex":
                fonts = [
                    "-V",
                    "mainfont=DejaVu Serif",
                    "-V",
                    "monofont=DejaVu Sans Mono",
                    "-V",
                    "monofontoptions=Scale=.8",
                ]
                if job.document.language in {"ko", "ja", "zh"}:
                    fonts += ["-V", "CJKmainfont=Noto Serif CJK KR"]
            _pandoc(
                job, "latex", job.pdf, f"--pdf-engine={engine}", "-V", "geometry=a4paper,margin=25mm", *fonts, *options
            )

    return make


# ReportLab


def _reportlab(*, rules: bool, font: str) -> Callable[[Sequence[Job]], None]:
    def make(jobs: Sequence[Job]) -> None:
        from roundtrips import platypus

        for job in jobs:
            platypus.make(job.blocks, job.pdf, rules=rules, font=font, korean=job.document.language == "ko")

    return make


def _has(*needed: str) -> bool:
    return all(shutil.which(name) or importlib.util.find_spec(name) for name in needed)


def producers() -> Mapping[str, Mapping[str, Style]]:
    """Styles by producer, of those that are installed."""
    found: dict[str, dict[str, Style]] = {}
    if CHROMIUM:
        found["chromium"] = {
            "web": Style(_chromium("web")),
            "book": Style(_chromium("book", **_RUNNING, generateTaggedPDF=True, generateDocumentOutline=True)),
            "columns": Style(_chromium("columns", generateTaggedPDF=False)),
        }
    if _has("typst"):
        found["typst"] = {name: Style(_typst(name)) for name in _TYPST}
    if _has("soffice", "pandoc"):
        found["libreoffice"] = {
            "tagged": Style(_libreoffice(tagged=True, rules=False, font="Liberation Serif")),
            "tagged-rules": Style(_libreoffice(tagged=True, rules=True, font="Liberation Sans")),
            "untagged": Style(_libreoffice(tagged=False, rules=False, font="DejaVu Serif")),
            "untagged-rules": Style(_libreoffice(tagged=False, rules=True, font="Liberation Sans")),
        }
    if _has("groff", "pandoc", "ps2pdf"):
        found["groff"] = {
            "ms": Style(_groff("ms", "ps"), LATIN, "latin-1", frozenset({STRIKE})),
            "ms-pdf": Style(_groff("ms", "pdf"), LATIN, "latin-1", frozenset({STRIKE})),
            "man": Style(_groff("man", "ps"), LATIN, "latin-1", frozenset({STRIKE, SUB, SUP, "link", "levels"})),
        }
    if _has("weasyprint"):
        found["weasyprint"] = {
            "report": Style(_weasyprint("report")),
            "book": Style(_weasyprint("book", pdf_tags=True)),
        }
    if _has("reportlab"):
        found["reportlab"] = {
            "rules": Style(_reportlab(rules=True, font="Helvetica"), LATIN, "cp1252"),
            "plain": Style(_reportlab(rules=False, font="DejaVu"), LATIN | {"ru", "ko"}),
        }
    if _has("pdflatex", "pandoc"):
        found["latex"] = {"article": Style(_latex("pdflatex"), LATIN, "latin-1")}
        if _has("xelatex"):
            found["latex"]["report"] = Style(
                _latex("xelatex", "-V", "documentclass=report", "-V", "colorlinks"), LATIN | {"ru", "ko", "ja", "zh"}
            )
    return found


__all__ = ["Job", "Style", "ceiling", "producers", "shown", "unicodedata"]
