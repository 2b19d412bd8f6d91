"""Documents for tests: made by the libraries that write them, and a HWPX by hand, which is a ZIP of XML."""

import io
import zipfile
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pptx.chart.data
import pptx.enum.chart
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from PIL import Image
from pptx.util import Inches

NOTICE_TITLE = "2026 Notice of the annual inspection"
NOTICE_TEXTS = (
    "All offices are inspected between the 4th and the 9th of March.",
    "점검 대상은 본청과 소속 기관이며, 결과는 4월 말까지 통보한다.",
    "Questions are answered by the audit division, extension 4021.",
)
NOTICE_ROWS = (
    ("Office", "Date", "Rooms"),
    ("Main building", "4 March", "128"),
    ("북부 사무소", "5 March", "46"),
    ("Archive", "9 March", "12"),
)
LINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink"
FOOTNOTES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
ALTERNATIVES = "http://schemas.openxmlformats.org/markup-compatibility/2006"
SMART_ART = (
    '<a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:graphicData uri='
    '"http://schemas.openxmlformats.org/drawingml/2006/diagram"><dgm:relIds xmlns:dgm='
    '"http://schemas.openxmlformats.org/drawingml/2006/diagram"/></a:graphicData></a:graphic>'
)
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def png(colour: str = "red", size: tuple[int, int] = (60, 40)) -> io.BytesIO:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    data.seek(0)
    return data


def word(path: Path, **kinds: Any) -> Path:
    """A Word document with everything that its reader reads."""
    made = docx.Document()
    made.core_properties.title, made.core_properties.author = "Field report", "Kim"
    made.add_heading("Annual report", 0)
    made.add_heading("First part", 1)
    text = made.add_paragraph("Plain ")
    text.add_run("bold").bold = True
    text.add_run(", ")
    text.add_run("italic").italic = True
    text.add_run(" H")
    text.add_run("2").font.subscript = True
    text.add_run("O and ")
    link = made.part.relate_to("https://example.org/a", LINK, is_external=True)
    add(text, f'<w:hyperlink {nsdecls("w", "r")} r:id="{link}"><w:r><w:t>a link</w:t></w:r></w:hyperlink>')
    for item, style in (
        ("one", "List Bullet"),
        ("one a", "List Bullet 2"),
        ("two", "List Bullet"),
        ("First", "List Number"),
        ("Second", "List Number"),
        ("Second a", "List Number 2"),
        ("Third", "List Number"),
    ):
        made.add_paragraph(item, style=style)
    tracked = made.add_paragraph("Tracked ")
    add(tracked, f'<w:ins {nsdecls("w")} w:id="1" w:author="a"><w:r><w:t>inserted</w:t></w:r></w:ins>')
    add(tracked, f'<w:del {nsdecls("w")} w:id="2" w:author="a"><w:r><w:delText>deleted</w:delText></w:r></w:del>')
    fraction = "<m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b+1</m:t></m:r></m:den></m:f>"
    inline = made.add_paragraph("So ")
    add(inline, f'<m:oMath xmlns:m="{MATH}">{fraction}</m:oMath>')
    add(made.add_paragraph(), f'<m:oMathPara xmlns:m="{MATH}"><m:oMath>{fraction}</m:oMath></m:oMathPara>')
    noted = made.add_paragraph("A claim")
    add(noted, f'<w:r {nsdecls("w")}><w:footnoteReference w:id="2"/></w:r>')
    footnotes(made, "The source of it.")
    hidden = made.add_paragraph("Seen").add_run(" unseen")
    hidden.font.hidden = True
    made.add_heading("Table", 2)
    table = made.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"c{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(1, 2).merge(table.cell(2, 2))
    shape = made.add_picture(png())
    shape._inline.docPr.set("descr", "A red field")
    made.sections[0].header.paragraphs[0].text = "Running head"
    made.add_comment(noted.runs, "Is it so?", "Lee")
    made.save(str(path))
    return path


def add(paragraph: Any, markup: str) -> None:
    paragraph._p.append(parse_xml(markup))


def footnotes(made: Any, text: str) -> Any:
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part

    markup = (
        f'<w:footnotes {nsdecls("w", "r")}><w:footnote w:id="2"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t xml:space='
        f'"preserve"> {text}</w:t></w:r></w:p></w:footnote></w:footnotes>'
    )
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = Part(PackURI("/word/footnotes.xml"), kind, markup.encode(), made.part.package)
    made.part.relate_to(part, FOOTNOTES)
    return part


def slides(path: Path) -> Path:
    made = pptx.Presentation()
    made.core_properties.title = "Deck"
    first = made.slides.add_slide(made.slide_layouts[0])
    first.shapes.title.text, first.placeholders[1].text = "Deck title", "Subtitle"
    second = made.slides.add_slide(made.slide_layouts[1])
    second.shapes.title.text = "Points"
    frame = second.placeholders[1].text_frame
    frame.text = "First"
    nested = frame.add_paragraph()
    nested.text, nested.level = "Nested", 1
    run = frame.add_paragraph().add_run()
    run.text, run.hyperlink.address = "link", "https://example.org"
    second.notes_slide.notes_text_frame.text = "Say hello"
    third = made.slides.add_slide(made.slide_layouts[5])
    third.shapes.title.text = "Numbers"
    table = third.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(2)).table
    for row in range(2):
        for column in range(2):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1))
    picture = third.shapes.add_picture(png(), Inches(5), Inches(1))
    picture._element.xpath(".//p:cNvPr")[0].set("descr", "A red field")
    data = pptx.chart.data.CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Sales", (8.5, 3))
    kind = pptx.enum.chart.XL_CHART_TYPE.PIE
    third.shapes.add_chart(kind, Inches(1), Inches(5), Inches(3), Inches(2), data)
    third._element.set("show", "0")
    made.save(str(path))
    return path


def sheets(path: Path) -> Path:
    import datetime

    made = openpyxl.Workbook()
    made.properties.title = "Prices"
    sheet = made.active
    sheet.title = "Sales"
    sheet.append(["Item", "Date", "Price", "Share"])
    sheet.append(["Pen", datetime.date(2026, 3, 1), 1234.5, 0.256])
    sheet.append(["Ink", datetime.date(2026, 3, 2), -99, 0.5])
    for row in (2, 3):
        sheet.cell(row, 2).number_format = "yyyy-mm-dd"
        sheet.cell(row, 3).number_format = "#,##0.00"
        sheet.cell(row, 4).number_format = "0.0%"
    sheet["A4"] = "Merged"
    sheet.merge_cells("A4:B4")
    sheet["A2"].hyperlink = "https://example.org"
    sheet.row_dimensions[3].hidden = True
    other = made.create_sheet("Secret")
    other.append(["hidden text", "b"])
    other.sheet_state = "hidden"
    made.save(str(path))
    return path


_HWPX = " ".join(
    f'xmlns:{prefix}="http://www.hancom.co.kr/hwpml/2011/{name}"'
    for prefix, name in (("hp", "paragraph"), ("hs", "section"), ("hh", "head"), ("hc", "core"))
)


def _p(text: str, style: int = 0, character: int = 0) -> str:
    run = f'<hp:run charPrIDRef="{character}"><hp:t>{text}</hp:t></hp:run>'
    return f'<hp:p id="0" paraPrIDRef="{style}" styleIDRef="{style}">{run}</hp:p>'


def _in_paragraph(markup: str) -> str:
    return f'<hp:p id="0" paraPrIDRef="0" styleIDRef="0"><hp:run charPrIDRef="0">{markup}</hp:run></hp:p>'


def _cell(row: int, column: int, text: str, rows: int = 1, columns: int = 1) -> str:
    return (
        f'<hp:tc><hp:subList>{_p(text)}</hp:subList><hp:cellAddr colAddr="{column}" rowAddr="{row}"/>'
        f'<hp:cellSpan colSpan="{columns}" rowSpan="{rows}"/></hp:tc>'
    )


def _table(rows: tuple[tuple[str, ...], ...]) -> str:
    lines = (
        f"<hp:tr>{''.join(_cell(row, column, text) for column, text in enumerate(line))}</hp:tr>"
        for row, line in enumerate(rows)
    )
    return _in_paragraph(f'<hp:tbl rowCnt="{len(rows)}" colCnt="{len(rows[0])}">{"".join(lines)}</hp:tbl>')


def hangul(path: Path, body: str | None = None) -> Path:
    """A HWPX with a heading, marks, a merged table, a formula and a footnote, or with another body."""
    merged = (
        f'<hp:tbl rowCnt="3" colCnt="2"><hp:tr>{_cell(0, 0, "항목", 1, 2)}</hp:tr>'
        f"<hp:tr>{_cell(1, 0, '가')}{_cell(1, 1, '나', 2, 1)}</hp:tr><hp:tr>{_cell(2, 0, '다')}</hp:tr></hp:tbl>"
    )
    runs = "".join(
        f'<hp:run charPrIDRef="{mark}"><hp:t>{text}</hp:t></hp:run>'
        for mark, text in ((0, "앞 "), (1, "굵게"), (0, " 뒤"))
    )
    note = (
        f'<hp:t>각주 본문</hp:t><hp:ctrl><hp:footNote number="1"><hp:subList>{_p("각주 내용")}'
        "</hp:subList></hp:footNote></hp:ctrl>"
    )
    body = body or (
        _p("공고 제목", 1)
        + f'<hp:p id="0" paraPrIDRef="0" styleIDRef="0">{runs}</hp:p>'
        + _in_paragraph(merged)
        + _in_paragraph("<hp:equation><hp:script>a over b</hp:script></hp:equation>")
        + _in_paragraph(note)
    )
    head = (
        f'<hh:head {_HWPX} version="1.2" secCnt="1"><hh:refList><hh:charProperties itemCnt="2">'
        '<hh:charPr id="0" height="1000"/><hh:charPr id="1" height="1000"><hh:bold/></hh:charPr></hh:charProperties>'
        '<hh:paraProperties itemCnt="2"><hh:paraPr id="0"/><hh:paraPr id="1">'
        '<hh:heading type="OUTLINE" idRef="0" level="0"/></hh:paraPr></hh:paraProperties><hh:styles itemCnt="2">'
        '<hh:style id="0" type="PARA" name="바탕글" paraPrIDRef="0" charPrIDRef="0"/>'
        '<hh:style id="1" type="PARA" name="개요 1" engName="Outline 1" paraPrIDRef="1" charPrIDRef="0"/>'
        "</hh:styles></hh:refList></hh:head>"
    )
    about = (
        '<opf:package xmlns:opf="http://www.idpf.org/2007/opf/"><opf:metadata><opf:title>공고</opf:title>'
        '<opf:language>ko</opf:language><opf:meta name="creator" content="text">김</opf:meta></opf:metadata>'
        '<opf:manifest><opf:item id="header" href="Contents/header.xml" media-type="application/xml"/>'
        '<opf:item id="section0" href="Contents/section0.xml" media-type="application/xml"/></opf:manifest>'
        '<opf:spine><opf:itemref idref="section0"/></opf:spine></opf:package>'
    )
    declaration = '<?xml version="1.0" encoding="UTF-8"?>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/hwp+zip", zipfile.ZIP_STORED)
        archive.writestr("Contents/content.hpf", declaration + about)
        archive.writestr("Contents/header.xml", declaration + head)
        archive.writestr("Contents/section0.xml", f"{declaration}<hs:sec {_HWPX}>{body}</hs:sec>")
    return path


def notice_docx(path: Path) -> Path:
    made = docx.Document()
    made.add_heading(NOTICE_TITLE, 1)
    for text in NOTICE_TEXTS:
        made.add_paragraph(text)
    table = made.add_table(len(NOTICE_ROWS), len(NOTICE_ROWS[0]))
    for row, line in enumerate(NOTICE_ROWS):
        for column, text in enumerate(line):
            table.cell(row, column).text = text
    made.save(str(path))
    return path


def notice_hwpx(path: Path) -> Path:
    return hangul(path, _p(NOTICE_TITLE, 1) + "".join(map(_p, NOTICE_TEXTS)) + _table(NOTICE_ROWS))


def notice_html(path: Path) -> Path:
    rows = ("".join(f"<td>{text}</td>" for text in line) for line in NOTICE_ROWS)
    path.write_text(
        f"<html><body><h1>{NOTICE_TITLE}</h1>{''.join(f'<p>{text}</p>' for text in NOTICE_TEXTS)}"
        f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table></body></html>",
        encoding="utf-8",
    )
    return path


def book(path: Path) -> Path:
    """An EPUB of two chapters."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OPS/a.opf"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>A book</dc:title><dc:creator>Park</dc:creator></metadata><manifest>"
        '<item id="a" href="a.xhtml"/><item id="b" href="b.xhtml"/></manifest>'
        '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("OPS/a.opf", package)
        archive.writestr("OPS/a.xhtml", "<html><body><h1>Second</h1><p>two</p></body></html>")
        archive.writestr("OPS/b.xhtml", '<html><body><h1>First</h1><img src="p.png" alt="red"/></body></html>')
        archive.writestr("OPS/p.png", png().getvalue())
    return path
