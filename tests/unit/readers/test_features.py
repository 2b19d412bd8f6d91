"""Each cell of the table in docs/documents.md: what a document with everything shows, or does not."""

import base64
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import docx
import made_documents as made
import openpyxl
import pptx
import pytest
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml.ns import nsdecls
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from test_formats import HTML, MARKDOWN
from test_open import _SPACES as SPACES
from test_open import odf, row, style

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Mark
from pagemill.imaging.formats import OWN_DOCUMENTS
from pagemill.readers.base import Block, Document
from pagemill.readers.reading import kind_of, load

PAGE = (Path(__file__).parents[3] / "docs" / "documents.md").read_text(encoding="utf-8")
PICTURE = f"data:image/png;base64,{base64.b64encode(made.png().read()).decode()}"
MATHML = "<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>"


def tables_say(document: Document, pattern: str) -> bool:
    found = [block.content or "" for block in _blocks(document) if block.label is Label.TABLE]
    return any(re.search(pattern, each) for each in found)


def has_label(label: Label, pattern: str = "") -> Callable[[Document], bool]:
    return lambda document: any(
        block.label is label and re.search(pattern, block.content or "") for block in _blocks(document)
    )


def has_mark(mark: Mark) -> Callable[[Document], bool]:
    return lambda document: any(span.mark is mark for block in _blocks(document) for span in block.spans) or tables_say(
        document, f"<{'b' if mark is Mark.BOLD else 'a '}"
    )


def nests(document: Document) -> bool:
    items = [block.content or "" for block in _blocks(document) if block.list_item]
    return any(each.startswith("  ") for each in items) and any(re.match(r"\d\.", each) for each in items)


FEATURES: dict[str, Callable[[Document], bool]] = {
    "headings with levels": lambda document: any(block.level for block in _blocks(document)),
    "nested lists, numbers as displayed": nests,
    "tables": lambda document: tables_say(document, "<td>"),
    "merged cells": lambda document: tables_say(document, "(row|col)span"),
    "numbers and dates as displayed": lambda document: tables_say(document, "2026-03-01.*1,234.50"),
    "formulas as LaTeX": lambda document: any(
        block.content_format is ContentFormat.LATEX or block.content_format is ContentFormat.MARKDOWN
        for block in _blocks(document)
    ),
    "footnotes, speaker notes": has_label(Label.FOOTNOTE),
    "comments (in the record)": has_label(Label.ASIDE_TEXT, "Is it"),
    "deleted text (in the record)": has_label(Label.ASIDE_TEXT, "gone"),
    "links": has_mark(Mark.LINK),
    "bold, italic, scripts": has_mark(Mark.BOLD),
    "code": has_label(Label.ALGORITHM),
    "pictures with alternative text": lambda document: any(
        block.picture and block.picture.data and block.picture.alternative for block in _blocks(document)
    ),
    "charts as tables": lambda document: tables_say(document, "East.*8.5"),
    "title, author": lambda document: bool(document.info.title and document.info.author),
}


def _blocks(document: Document) -> Iterator[Block]:
    return (block for part in document.parts for block in part.blocks)


def chart(folder: Path) -> bytes:
    with zipfile.ZipFile(made.slides(folder / "chart.pptx")) as archive:
        return archive.read(next(name for name in archive.namelist() if name.startswith("ppt/charts/chart")))


def word(folder: Path) -> Path:
    opened = docx.Document(str(made.word(folder / "b.docx")))
    part = Part(PackURI("/word/c.xml"), "application/xml", chart(folder), opened.part.package)
    name = opened.part.relate_to(part, f"{made.LINK.rpartition('/')[0]}/chart")
    space = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    names = nsdecls("w", "r")
    made.add(opened.add_paragraph(), f'<w:r {names} {space}><w:drawing><c:chart r:id="{name}"/></w:drawing></w:r>')
    deleted = f"<w:del {names}><w:r><w:delText>gone</w:delText></w:r></w:del>"
    made.add(opened.add_paragraph(), deleted)
    opened.save(str(folder / "a.docx"))
    return folder / "a.docx"


def slides(folder: Path) -> Path:
    from lxml import etree
    from pptx.opc.package import Part as SlidePart
    from pptx.opc.packuri import PackURI as SlideURI

    opened = pptx.Presentation(str(made.slides(folder / "b.pptx")))
    opened.core_properties.author = "Kim"
    slide = opened.slides[1]
    added = slide.placeholders[1].text_frame.add_paragraph()
    run = added.add_run()
    run.text, run.font.bold = "bold", True
    numbered = slide.placeholders[1].text_frame.add_paragraph()
    numbered.text = "counted"
    space = "http://schemas.openxmlformats.org/drawingml/2006/main"
    numbered._p.get_or_add_pPr().append(etree.fromstring(f'<a:buAutoNum xmlns:a="{space}" type="arabicPeriod"/>'))
    added._p.append(etree.fromstring(f'<m:oMath xmlns:m="{made.MATH}"><m:r><m:t>x</m:t></m:r></m:oMath>'))
    names = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    comments = f"<p:cmLst {names}><p:cm><p:text>Is it so?</p:text></p:cm></p:cmLst>".encode()
    part = SlidePart(SlideURI("/ppt/c.xml"), "application/xml", slide.part.package, comments)
    slide.part.relate_to(part, f"{made.LINK.rpartition('/')[0]}/comments")
    opened.save(str(folder / "a.pptx"))
    return folder / "a.pptx"


def sheets(folder: Path) -> Path:
    from openpyxl.chart import BarChart, Reference
    from openpyxl.comments import Comment
    from openpyxl.drawing.image import Image

    book = openpyxl.load_workbook(made.sheets(folder / "b.xlsx"))
    book.properties.creator = "Kim"
    sheet = book.create_sheet("Towns")
    for line in (("Town", "Sales"), ("East", 8.5), ("West", 7)):
        sheet.append(line)
    bars = BarChart()
    bars.add_data(Reference(sheet, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    bars.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=3))
    sheet.add_chart(bars, "D1")
    sheet["A2"].comment = Comment("Is it so?", "Lee")
    sheet["A5"] = CellRichText("so ", TextBlock(InlineFont(b=True), "bold"))
    sheet.add_image(Image(made.png()), "D20")
    book.save(folder / "a.xlsx")
    return folder / "a.xlsx"


def hangul(folder: Path) -> Path:
    source = made.hangul(folder / "b.hwpx")
    more = made._in_paragraph(
        '<hp:ctrl><hp:fieldBegin id="1" type="HYPERLINK"><hp:parameters><hp:stringParam name="Path">https://example.org'
        "</hp:stringParam></hp:parameters></hp:fieldBegin></hp:ctrl><hp:t>link</hp:t><hp:ctrl><hp:fieldEnd/></hp:ctrl>"
        f"<hp:ctrl><hp:hiddenComment><hp:subList>{made._p('Is it so?')}</hp:subList></hp:hiddenComment></hp:ctrl>"
        '<hp:pic xmlns:hc="http://www.hancom.co.kr/hwpml/2011/core"><hc:img binaryItemIDRef="image1"/>'
        "<hp:shapeComment>A red field</hp:shapeComment></hp:pic>"
    ) + made._in_paragraph('<hp:chart chartIDRef="Chart/chart1.xml"/>')
    target = folder / "a.hwpx"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"</hs:sec>", more.encode() + b"</hs:sec>"))
        new.writestr("BinData/image1.png", made.png().read())
        new.writestr("Chart/chart1.xml", chart(folder))
    return target


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


MARKUP = HTML.replace("</body>", f'<img src="{PICTURE}" alt="A red field">{MATHML}<ol><li>a<ul><li>b</ul></ol></body>')


def book(folder: Path) -> Path:
    source, target = made.book(folder / "b.epub"), folder / "a.epub"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, MARKUP if name == "OPS/a.xhtml" else old.read(name))
    return target


def open_text(folder: Path) -> Path:
    styles = style("B", "text", 'fo:font-weight="bold"') + (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1"/>'
        '<text:list-level-style-bullet text:level="2"/></text:list-style>'
    )
    wide = '<table:table-cell table:number-columns-spanned="2"><text:p>a</text:p></table:table-cell>'
    cells = "<table:table-cell><text:p>b</text:p></table:table-cell>" * 2
    figures = "".join(
        row("".join(f"<table:table-cell><text:p>{each}</text:p></table:table-cell>" for each in line))
        for line in (("East", 8.5), ("West", 3))
    )
    drawn = (
        f"<office:document-content {SPACES}><office:body><office:chart><chart:chart><table:table>{figures}"
        "</table:table></chart:chart></office:chart></office:body></office:document-content>"
    )
    body = (
        '<text:tracked-changes><text:changed-region text:id="c"><text:deletion><text:p>gone</text:p></text:deletion>'
        '</text:changed-region></text:tracked-changes><text:h text:outline-level="1">First part</text:h>'
        '<text:list text:style-name="L"><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep'
        "</text:p></text:list-item></text:list></text:list-item></text:list><text:p>"
        '<text:span text:style-name="B">bold</text:span><text:a xlink:href="https://example.org">link</text:a>'
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Source</text:p></text:note-body>"
        "</text:note><office:annotation><dc:creator>Lee</dc:creator><text:p>Is it so?</text:p></office:annotation>"
        '<text:change text:change-id="c"/></text:p><table:table><table:table-row>'
        f"{wide}<table:covered-table-cell/></table:table-row><table:table-row>{cells}</table:table-row></table:table>"
        '<text:p><draw:frame><draw:image xlink:href="Pictures/a.png"/><svg:desc>A red field</svg:desc></draw:frame>'
        '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
        '<draw:frame><draw:object xlink:href="./Object 2"/></draw:frame></text:p>'
    )
    return odf(folder / "a.odt", "text", body, styles, members={"Object 2/content.xml": drawn})


def rich_text(folder: Path) -> Path:
    picture = (
        rf"{{\*\shppict{{\pict{{\*\picprop{{\sp{{\sn wzDescription}}{{\sv A}}}}}}\pngblip {made.png().read().hex()}}}}}"
    )
    text = (
        r"{\rtf1\ansi{\stylesheet{\s1\outlinelevel0 heading 1;}}{\info{\title T}{\author Kim}}\pard\s1 First\par\pard"
        r"{\listtext 1.\tab}\li300 one\par\pard{\listtext \u8226?\tab}\li600 deep\par\pard{\b bold}"
        r'{\field{\*\fldinst HYPERLINK "https://example.org"}{\fldrslt link}}\chftn{\footnote Source}'
        r"{\*\atnauthor Lee}{\*\annotation Is it?}{\deleted gone}"
        r"{\mmath{\*\moMath{\mf{\mnum{\mr a}}{\mden{\mr b}}}}}\par\trowd\clmgf\cellx9\clmrg\cellx99\intbl a\cell\cell"
        r"\row\trowd\cellx9\cellx99 b\cell c\cell\row\pard " + picture + r"\par}"
    )
    return written(folder, "a.rtf", text)


def markdown(folder: Path) -> Path:
    return written(folder, "a.md", f"{MARKDOWN}\n![A red field]({PICTURE})\n\nA claim[^1].\n\n[^1]: Source.\n")


FORMATS: dict[str, Callable[[Path], Path]] = {
    "DOCX": word,
    "PPTX": slides,
    "XLSX": sheets,
    "HWPX": hangul,
    "HTML": lambda folder: written(folder, "a.html", MARKUP),
    "Markdown": markdown,
    "EPUB": book,
    "ODT": open_text,
    "RTF": rich_text,
    "CSV, text": lambda folder: written(folder, "a.csv", "a,b\n1,2\n"),
}
HEAD, _, *LINES = re.findall(r"^\|(.*)\|$", PAGE[PAGE.index("## What is read") :].split("\n- **")[0], re.MULTILINE)


def test_the_table_has_all_formats_and_features():
    assert [each.strip() for each in HEAD.split("|")][1:] == list(FORMATS)
    assert [line.split("|")[0].strip() for line in LINES] == list(FEATURES)


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_shows_what_the_table_says(tmp_path: Path, name: str):
    path = FORMATS[name](tmp_path)
    document = load(OWN_DOCUMENTS[kind_of(path, path.suffix)][0])(path, None)
    column = list(FORMATS).index(name) + 1
    said = {cells[0]: cells[column] for line in LINES if (cells := [each.strip() for each in line.split("|")])}
    assert {feature: said[feature] not in ("–", "as text") for feature in FEATURES} == {
        feature: shows(document) for feature, shows in FEATURES.items()
    }
