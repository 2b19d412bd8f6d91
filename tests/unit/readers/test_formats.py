"""What each format's reader makes of a document: the cells of the table in docs/documents.md."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_documents as made
import old_files
import pytest
from dochan.model.document import Paragraph, TextRun
from dochan.model.table import Cell, Table
from hostile import repacked

from pagemill.document.labels import Label
from pagemill.document.page import Furniture
from pagemill.errors import PagemillError
from pagemill.readers import hangul as reader_of_sheets
from pagemill.readers.base import Block, Document
from pagemill.readers.reading import kind_of, load


def read(path: Path, reader: str) -> Document:
    return load(reader)(path, None)


def blocks(document: Document) -> list[Block]:
    return [block for part in document.parts for block in part.blocks]


def texts(document: Document, label: Label = Label.TEXT) -> list[str | None]:
    return [block.content for block in blocks(document) if block.label is label]


def headings(document: Document) -> list[tuple[int | None, str | None]]:
    return [(block.level, block.content) for block in blocks(document) if block.level]


def items(document: Document) -> list[str | None]:
    return [block.content for block in blocks(document) if block.list_item]


def marks(document: Document) -> set[tuple[str, str]]:
    return {
        (span.mark.value, (block.content or "")[span.start : span.end])
        for block in blocks(document)
        for span in block.spans
    }


def targets(document: Document) -> set[str | None]:
    return {span.target for block in blocks(document) for span in block.spans if span.target}


@pytest.fixture(scope="module")
def word(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return read(made.word(tmp_path_factory.mktemp("word") / "a.docx"), "docx:read")


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return read(made.slides(tmp_path_factory.mktemp("slides") / "a.pptx"), "pptx:read")


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return read(made.sheets(tmp_path_factory.mktemp("sheets") / "a.xlsx"), "hangul:read")


@pytest.fixture(scope="module")
def hangul(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return read(made.hangul(tmp_path_factory.mktemp("hangul") / "a.hwpx"), "hangul:read")


def test_docx_headings_are_below_the_title(word: Document):
    assert headings(word) == [(1, "Annual report"), (2, "First part"), (3, "Table")]


def test_docx_lists_are_nested_and_numbered_as_displayed(word: Document):
    assert items(word) == ["• one", "  • one a", "• two", "1. First", "2. Second", "  1. Second a", "3. Third"]


def test_docx_marks_and_links(word: Document):
    assert {("bold", "bold"), ("italic", "italic"), ("subscript", "2"), ("link", "a link")} <= marks(word)
    assert targets(word) == {"https://example.org/a"}
    assert "Plain bold, italic H2O and a link" in texts(word)


def test_docx_shows_the_final_text_and_keeps_what_was_deleted(word: Document):
    assert "Tracked inserted" in texts(word)
    assert texts(word, Label.ASIDE_TEXT) == ["deleted", "Lee: Is it so?"]


def test_docx_formulas_are_latex(word: Document):
    assert "So $\\frac{a}{b+1}$" in texts(word)
    assert texts(word, Label.DISPLAY_FORMULA) == ["\\frac{a}{b+1}"]


def test_docx_footnotes_have_their_number(word: Document):
    assert "A claim1" in texts(word)
    assert texts(word, Label.FOOTNOTE) == ["1 The source of it."]


def test_docx_tables_have_spans(word: Document):
    (table,) = texts(word, Label.TABLE)
    assert table is not None and '<th colspan="2">c00<br>c01</th>' in table
    assert '<td rowspan="2">c12<br>c22</td>' in table


def test_docx_pictures_have_their_alternative_text(word: Document):
    (picture,) = (block.picture for block in blocks(word) if block.picture)
    assert picture.alternative == "A red field" and picture.data.startswith(b"\x89PNG")


def test_docx_running_heads_are_furniture_and_hidden_text_is_named(word: Document):
    (head,) = (block for block in blocks(word) if block.label is Label.HEADER)
    assert (head.content, head.furniture) == ("Running head", Furniture.PROVEN)
    assert "Seen" in texts(word)
    assert word.parts[0].notes == ["not read: 1 hidden run"]


def test_docx_links_of_notes_are_those_of_their_part(tmp_path: Path):
    import docx
    from docx.oxml.ns import nsdecls

    word = docx.Document()
    noted = word.add_paragraph("A claim")
    made.add(noted, f'<w:r {nsdecls("w")}><w:footnoteReference w:id="2"/></w:r>')
    link = '<w:hyperlink r:id="{}"><w:r><w:t>source</w:t></w:r></w:hyperlink>'
    part = made.footnotes(word, f"x</w:t></w:r>{link.format('rId1')}<w:r><w:t>.")
    part.relate_to("https://example.org/note", made.LINK, is_external=True)
    word.save(str(tmp_path / "a.docx"))
    found = read(tmp_path / "a.docx", "docx:read")
    assert texts(found, Label.FOOTNOTE) == ["1 xsource."]
    assert targets(found) == {"https://example.org/note"}


def test_docx_ruby_is_its_base_text(tmp_path: Path):
    import docx
    from docx.oxml.ns import nsdecls

    word = docx.Document()
    ruby = "<w:ruby><w:rt><w:r><w:t>とう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r></w:rubyBase></w:ruby>"
    made.add(word.add_paragraph("A "), f"<w:r {nsdecls('w')}>{ruby}</w:r>")
    word.save(str(tmp_path / "a.docx"))
    assert texts(read(tmp_path / "a.docx", "docx:read")) == ["A 東"]


def test_docx_text_boxes_of_a_header_are_read_once(tmp_path: Path):
    import docx
    from docx.oxml.ns import nsdecls

    word = docx.Document()
    head = word.sections[0].header.paragraphs[0]
    head.text = "Head"
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    made.add(
        head,
        f'<w:r {nsdecls("w")} xmlns:mc="{made.ALTERNATIVES}"><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>'
        f"{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r>",
    )
    word.save(str(tmp_path / "a.docx"))
    assert texts(read(tmp_path / "a.docx", "docx:read"), Label.HEADER) == ["Head\nboxed"]


def test_docx_rows_that_were_deleted_are_deleted_text(tmp_path: Path):
    import docx
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    word = docx.Document()
    table = word.add_table(3, 2)
    for row in range(3):
        for column in range(2):
            table.cell(row, column).text = f"c{row}{column}"
    gone = parse_xml(f'<w:del {nsdecls("w")} w:id="1" w:author="a"/>')
    table.rows[1]._tr.get_or_add_trPr().append(gone)
    word.save(str(tmp_path / "a.docx"))
    found = read(tmp_path / "a.docx", "docx:read")
    (markup,) = texts(found, Label.TABLE)
    assert markup is not None and "c10" not in markup and markup.count("<tr>") == 2
    assert texts(found, Label.ASIDE_TEXT) == ["c10\tc11"]


def test_docx_diagrams_are_named(tmp_path: Path):
    import docx
    from docx.oxml.ns import nsdecls

    word = docx.Document()
    drawing = f"<w:drawing><wp:inline>{made.SMART_ART}</wp:inline></w:drawing>"
    made.add(word.add_paragraph("Text"), f"<w:r {nsdecls('w', 'wp')}>{drawing}</w:r>")
    word.save(str(tmp_path / "a.docx"))
    assert read(tmp_path / "a.docx", "docx:read").parts[0].notes == ["not read: 1 SmartArt diagram"]


def test_docx_metadata(word: Document):
    assert (word.info.title, word.info.author) == ("Field report", "Kim")


def test_pptx_slides_are_pages_with_places(slides: Document):
    assert headings(slides) == [(1, "Deck title"), (2, "Points"), (2, "Numbers")]
    assert [(part.width, part.height) for part in slides.parts] == [(960, 720)] * 3
    assert all(block.box for block in blocks(slides) if block.level)
    assert slides.info.title == "Deck"


def test_pptx_lists_links_notes(slides: Document):
    assert items(slides) == ["• First", "  • Nested", "• link"]
    assert targets(slides) == {"https://example.org"}
    assert texts(slides, Label.FOOTNOTE) == ["Say hello"]


def test_pptx_formulas(tmp_path: Path):
    import pptx
    from lxml import etree

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "So "
    math = f'<m:oMath xmlns:m="{made.MATH}"><m:r><m:t>x+1</m:t></m:r></m:oMath>'
    slide.shapes.title.text_frame.paragraphs[0]._p.append(etree.fromstring(math))
    deck.save(str(tmp_path / "a.pptx"))
    assert headings(read(tmp_path / "a.pptx", "pptx:read")) == [(2, "So $x+1$")]


def test_pptx_text_boxes_with_formulas_are_read(tmp_path: Path):
    """PowerPoint writes them as the first of two alternatives."""
    import pptx
    from lxml import etree
    from pptx.util import Inches

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
    box.text_frame.text = "Boxed text"
    group = etree.fromstring(
        f'<mc:AlternateContent xmlns:mc="{made.ALTERNATIVES}"><mc:Choice Requires="a14"/><mc:Fallback/>'
        "</mc:AlternateContent>"
    )
    box._element.addprevious(group)
    group[0].append(box._element)
    deck.save(str(tmp_path / "a.pptx"))
    (block,) = blocks(read(tmp_path / "a.pptx", "pptx:read"))
    assert block.content == "Boxed text" and block.box == (96, 96, 384, 192)


def test_pptx_diagrams_are_named(tmp_path: Path):
    import pptx
    from pptx.oxml import parse_xml
    from pptx.oxml.ns import nsdecls

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    frame = (
        f'<p:graphicFrame {nsdecls("p", "a")}><p:nvGraphicFramePr><p:cNvPr id="2" name="D"/><p:cNvGraphicFramePr/>'
        '<p:nvPr/></p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="9" cy="9"/></p:xfrm>'
        f"{made.SMART_ART}</p:graphicFrame>"
    )
    slide.shapes._spTree.append(parse_xml(frame))
    deck.save(str(tmp_path / "a.pptx"))
    assert read(tmp_path / "a.pptx", "pptx:read").parts[0].notes == ["not read: 1 SmartArt diagram"]


def test_pptx_links_to_the_next_slide_have_no_target(tmp_path: Path):
    import pptx
    from lxml import etree
    from pptx.oxml.ns import nsdecls

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    run = slide.shapes.title.text_frame.paragraphs[0].add_run()
    run.text = "Next"
    jump = f'<a:hlinkClick {nsdecls("a", "r")} r:id="" action="ppaction://hlinkshowjump?jump=nextslide"/>'
    run._r.get_or_add_rPr().append(etree.fromstring(jump))
    deck.save(str(tmp_path / "a.pptx"))
    found = read(tmp_path / "a.pptx", "pptx:read")
    assert headings(found) == [(2, "Next")] and not targets(found)


def test_pptx_tables_charts_pictures_hidden_slides(slides: Document):
    table, chart = texts(slides, Label.TABLE)
    assert table is not None and 'colspan="2"' in table
    assert chart is not None and "<td>East</td><td>8.5</td>" in chart
    (picture,) = (block.picture for block in blocks(slides) if block.picture)
    assert picture.alternative == "A red field"
    assert slides.parts[2].notes == ["the slide is hidden"]


def test_xlsx_cells_are_as_displayed(sheets: Document):
    sales, secret = texts(sheets, Label.TABLE)
    assert sales is not None and secret is not None
    assert "<td>2026-03-01</td><td>1,234.50</td><td>25.6%</td>" in sales
    assert '<td colspan="2">Merged</td>' in sales
    assert '<a href="https://example.org">Pen</a>' in sales
    assert "<thead><tr><th>Item</th>" in sales
    assert sheets.info.title == "Prices"


@pytest.mark.slow
def test_large_sheets_are_read_whole(tmp_path: Path):
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Large")
    for row in range(20_000):
        sheet.append([f"{row}", "a", 1])
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx", "hangul:read")
    assert not found.parts[0].warnings
    assert sum((table or "").count("<tr>") for table in texts(found, Label.TABLE)) == 20_000


def test_xlsx_charts_and_pictures(tmp_path: Path):
    from openpyxl import Workbook
    from openpyxl.chart import BarChart, Reference
    from openpyxl.comments import Comment
    from openpyxl.drawing.image import Image

    book = Workbook()
    for row in (("Town", "Sales"), ("East", 5), ("West", 7)):
        book.active.append(row)
    chart = BarChart()
    chart.title = "By town"
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    chart.set_categories(Reference(book.active, min_col=1, min_row=2, max_row=3))
    book.active.add_chart(chart, "D1")
    book.active["A2"].comment = Comment("Check this", "Lee")
    book.active.add_image(Image(made.png()), "D20")
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx", "hangul:read")
    assert len(texts(found, Label.TABLE)) == 2
    assert texts(found, Label.ASIDE_TEXT) == ["Lee: Check this"]
    assert "By town" in "".join(block.content or "" for block in blocks(found))
    (picture,) = (block.picture for block in blocks(found) if block.picture)
    assert picture.data.startswith(b"\x89PNG")


def test_hidden_rows_and_comments_are_found_in_linear_time():
    """With the square of the text these take minutes."""
    assert not reader_of_sheets._HIDDEN.search(b"<row " * 200_000 + b">")
    cells = [[Cell([Paragraph([TextRun("x" + " " * 200_000 + "y [comment: Lee: so]")])])]]
    table, comment = reader_of_sheets._table(Table(cells))
    assert comment.content == "Lee: so" and "comment" not in (table.content or "")


def test_xlsx_sheets_are_pages_and_hidden_ones_are_named(sheets: Document):
    assert [part.metadata for part in sheets.parts] == [{"sheet": "Sales"}, {"sheet": "Secret"}]
    assert headings(sheets) == [(2, "Sales"), (2, "Secret")]
    assert sheets.parts[0].notes == ["hidden in the sheet: 1 row"]
    assert sheets.parts[1].notes == ["the sheet 'Secret' is hidden"]


def test_hwpx_headings_marks_tables_formulas_notes_metadata(hangul: Document):
    assert headings(hangul) == [(1, "공고 제목")]
    assert ("bold", "굵게") in marks(hangul)
    (table,) = texts(hangul, Label.TABLE)
    assert table is not None and '<td colspan="2">항목</td>' in table and '<td rowspan="2">나</td>' in table
    assert texts(hangul, Label.DISPLAY_FORMULA) == ["\\frac{a}{b}"]
    assert "각주 본문1" in texts(hangul) and texts(hangul, Label.FOOTNOTE) == ["1 각주 내용"]
    assert (hangul.info.title, hangul.info.author, hangul.info.language) == ("공고", "김", "ko")


HTML = """<html lang="ko"><head><title>Doc title</title><meta name="author" content="Lee">
<script>alert(1)</script></head>
<body><nav>menu</nav><h1>Head</h1><p>Text <b>bold</b> <code>x</code> <a href="https://example.org">link</a>
H<sub>2</sub>O <a href="javascript:alert(1)">no</a></p>
<ol start="3"><li>three<ul><li>n1</li></ul></li><li>four</li></ol>
<table><tr><th colspan=2>h</th></tr><tr><td>1</td><td rowspan=2>2 <b>b</b></td></tr><tr><td>3</td></tr></table>
<pre>a
  b</pre><img src="http://evil.example/x.png" alt="pic">
<p hidden>hid</p><div>loose <p>and block</p></div></body></html>"""


def test_html(tmp_path: Path):
    (tmp_path / "a.html").write_text(HTML, encoding="utf-8")
    page = read(tmp_path / "a.html", "html:read_html")
    assert headings(page) == [(1, "Head")]
    assert items(page) == ["3. three", "  • n1", "4. four"]
    assert texts(page)[0] == "Text bold x link H2O no"
    assert {("bold", "bold"), ("code", "x"), ("link", "link"), ("subscript", "2")} <= marks(page)
    assert targets(page) == {"https://example.org"}
    assert texts(page)[-2:] == ["loose", "and block"]
    assert texts(page, Label.ALGORITHM) == ["a\n  b"]
    (table,) = texts(page, Label.TABLE)
    assert table is not None and '<td rowspan="2">2 <b>b</b></td>' in table
    assert texts(page, Label.HEADER) == ["menu"]
    (picture,) = (block.picture for block in blocks(page) if block.picture)
    assert (picture.data, picture.alternative) == (b"", "pic")
    assert (page.info.title, page.info.author, page.info.language) == ("Doc title", "Lee", "ko")


def test_html_code_in_cells_keeps_its_lines(tmp_path: Path):
    (tmp_path / "a.html").write_text("<table><tr><td>Code<pre>a\nb  <b>c</b>\n</pre>end</td></tr></table>", "utf-8")
    (table,) = texts(read(tmp_path / "a.html", "html:read_html"), Label.TABLE)
    assert table is not None and "<td>Code<br>a<br>b <b>c</b><br>end</td>" in table


MARKDOWN = """---
title: Front
author: "Kim"
---
# Title

Para with *em*, **strong**, `code`, [link](https://example.org), ~~gone~~ and $a^2$.

1. one
   - nested
2. two

   second

```python
x = 1
```

| a | b |
|---|---|
| 1 | **2** |

$$
E = mc^2
$$
"""


def test_markdown(tmp_path: Path):
    (tmp_path / "a.md").write_text(MARKDOWN, encoding="utf-8")
    page = read(tmp_path / "a.md", "html:read_markdown")
    assert headings(page) == [(1, "Title")]
    assert items(page) == ["1. one", "  • nested", "2. two"]
    assert {("italic", "em"), ("bold", "strong"), ("code", "code"), ("strike", "gone")} <= marks(page)
    assert texts(page, Label.DISPLAY_FORMULA) == ["E = mc^2"]
    assert texts(page, Label.ALGORITHM) == ["x = 1"]
    assert [block.list_depth for block in blocks(page) if block.content == "second"] == [1]
    assert (page.info.title, page.info.author) == ("Front", "Kim")


def test_markdown_formulas_stay_as_they_are_written(tmp_path: Path):
    text = r"So $a\_b \{x\} * y *$ and $\alpha_1 [x](y)$, *not* \$5."
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    page = read(tmp_path / "a.md", "html:read_markdown")
    assert texts(page) == [r"So $a\_b \{x\} * y *$ and $\alpha_1 [x](y)$, not $5."]
    assert marks(page) == {("italic", "not")}


def test_markdown_lists_may_be_deep(tmp_path: Path):
    text = "".join(f"{'  ' * level}- level {level}\n" for level in range(12))
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    found = items(read(tmp_path / "a.md", "html:read_markdown"))
    assert [item and item.strip() for item in found] == [f"• level {level}" for level in range(12)]


def test_headings_alone_are_cut_into_parts(tmp_path: Path):
    text = "".join(f"## Heading {number} {'word ' * 20}\n\n" for number in range(3_000))
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    parts = read(tmp_path / "a.md", "html:read_markdown").parts
    assert len(parts) > 10
    assert sum(len(part.blocks) for part in parts) == 3_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b'name,qty\nPen,"1,5"\n'),
        ("a.csv", "name;qty\nPen;1,5\n".encode("utf-16")),
        ("a.tsv", b"\xef\xbb\xbfname\tqty\r\nPen\t1,5\r\n"),
    ],
)
def test_separated_values_are_one_table(tmp_path: Path, name: str, data: bytes):
    (tmp_path / name).write_bytes(data)
    found = read(tmp_path / name, "text:read_separated")
    assert texts(found, Label.TABLE) == [
        "<table><thead><tr><th>name</th><th>qty</th></tr></thead><tbody><tr><td>Pen</td><td>1,5</td></tr></tbody></table>"
    ]


def test_a_field_may_hold_a_line_separator(tmp_path: Path):
    (tmp_path / "a.csv").write_text("name,qty\nPen\u2028red,1\n", encoding="utf-8")
    (table,) = texts(read(tmp_path / "a.csv", "text:read_separated"), Label.TABLE)
    assert table is not None and table.count("<tr>") == 2 and "<td>1</td>" in table


def test_the_separator_is_guessed_from_the_first_lines_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The time of the sniffer grows with the square of the text."""
    import csv

    seen: list[int] = []

    def sniff(_: object, sample: str, delimiters: str | None = None) -> type[csv.Dialect]:
        seen.append(len(sample))
        return csv.excel

    monkeypatch.setattr(csv.Sniffer, "sniff", sniff)
    (tmp_path / "a.csv").write_text("1,2\n" * 5_000, encoding="utf-8")
    read(tmp_path / "a.csv", "text:read_separated")
    assert seen == [8 * 1024]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp949"])
def test_text_is_paragraphs_in_any_usual_encoding(tmp_path: Path, encoding: str):
    (tmp_path / "a.txt").write_bytes("첫 문단\n둘째 줄\n\n\n다음".encode(encoding))
    assert texts(read(tmp_path / "a.txt", "text:read_text")) == ["첫 문단\n둘째 줄", "다음"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("It’s a test.", "cp1252"), ("Ärger mit Ämtern", "cp1252"), ("점검 결과는 4월 말까지 “통보”한다. 쎼", "cp949")],
)
def test_text_of_western_windows_is_not_taken_for_korean(tmp_path: Path, text: str, encoding: str):
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert texts(read(tmp_path / "a.txt", "text:read_text")) == [text]


@pytest.mark.parametrize(
    ("head", "encoding", "text"),
    [
        ('<meta charset="shift_jis">', "cp932", "漢字とかな①"),
        ('<meta charset="no-such">', "cp949", "한글"),
        ('<meta charset="undefined">', "cp949", "한글"),
        ('<meta charset="iso-8859-1">', "cp1252", "It’s “Ärger”"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=gb2312">', "gb18030", "汉字镕"),
        ('<?xml version="1.0" encoding="shift_jis"?>', "cp932", "漢字とかな①"),
    ],
)
def test_a_web_page_says_how_it_is_encoded(tmp_path: Path, head: str, encoding: str, text: str):
    (tmp_path / "a.html").write_bytes(f"{head}<p>{text}".encode(encoding))
    assert texts(read(tmp_path / "a.html", "html:read_html")) == [text]


def test_chapters_of_a_book_are_pages_in_the_order_of_its_spine(tmp_path: Path):
    found = read(made.book(tmp_path / "a.epub"), "epub:read")
    assert [part.blocks[0].content for part in found.parts] == ["First", "Second"]
    (picture,) = (block.picture for block in blocks(found) if block.picture)
    assert picture.data.startswith(b"\x89PNG")
    assert (found.info.title, found.info.author) == ("A book", "Park")


def test_a_chapter_that_is_a_drawing_is_named(tmp_path: Path):
    changed = lambda name, data: b"<svg><text>axis</text></svg>" if name == "OPS/a.xhtml" else data  # noqa: E731
    path = repacked(made.book(tmp_path / "a.epub"), tmp_path / "b.epub", changed)
    assert read(path, "epub:read").parts[0].notes == ["not read: 1 drawing with text"]


@pytest.mark.parametrize(
    ("make", "suffix"),
    [
        (made.word, ".docx"),
        (made.slides, ".pptx"),
        (made.sheets, ".xlsx"),
        (made.hangul, ".hwpx"),
        (made.book, ".epub"),
    ],
)
def test_content_shows_the_kind_of_a_package(tmp_path: Path, make, suffix: str):
    path = make(tmp_path / "document")
    assert {kind_of(path, each) for each in ("", ".bin", ".txt", suffix)} == {suffix}


def test_long_documents_are_cut_into_parts_with_headings_before_their_text(tmp_path: Path):
    text = "".join(f"<h2>Chapter {number}</h2><p>{'word ' * 1500}</p>" for number in range(8))
    (tmp_path / "a.html").write_text(text, encoding="utf-8")
    parts = read(tmp_path / "a.html", "html:read_html").parts
    assert len(parts) == 4
    assert all(part.blocks[0].level == 2 and not part.blocks[-1].level for part in parts)


def test_long_tables_are_cut_between_rows(tmp_path: Path):
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 5000, encoding="utf-8")
    parts = read(tmp_path / "a.csv", "text:read_separated").parts
    tables = [part.blocks[0] for part in parts]
    assert [table.continues for table in tables] == [True, True, False]
    assert sum((table.content or "").count("<tr>") for table in tables) == 5001


def test_doc_is_read_with_its_heading_and_table():
    found = read(Path(__file__).parent / "files" / "notice.doc", "hangul:read")
    assert headings(found) == [(1, made.NOTICE_TITLE)]
    assert texts(found) == list(made.NOTICE_TEXTS)
    (table,) = texts(found, Label.TABLE)
    assert all(each in (table or "") for row in made.NOTICE_ROWS for each in row)


def test_text_that_looks_like_a_picture_stays_text(tmp_path: Path):
    body = made._p("![a](b.png)") + made._p("![image](media/image1.png)")
    assert texts(read(made.hangul(tmp_path / "a.hwpx", body), "hangul:read")) == [
        "![a](b.png)",
        "![image](media/image1.png)",
    ]


def test_xls_sheets_are_tables(tmp_path: Path):
    found = read(old_files.xls(tmp_path / "a.xls", (("품목", "Price"), ("Pen", 1.5))), "hangul:read")
    (table,) = texts(found, Label.TABLE)
    assert re.findall(r"<t[hd]>(.*?)<", table or "") == ["품목", "Price", "Pen", "1.5"]
    assert found.parts[0].metadata == {"sheet": "Prices"}


def test_ppt_slides_are_pages(tmp_path: Path):
    found = read(old_files.ppt(tmp_path / "a.ppt", (("제목", "First text"), ("Second", "More"))), "hangul:read")
    assert [[block.content for block in part.blocks] for part in found.parts] == [
        ["제목", "First text"],
        ["Second", "More"],
    ]


def test_hwp_5_paragraphs_and_tables(tmp_path: Path):
    path = old_files.hwp(tmp_path / "a.hwp", made.NOTICE_TITLE, made.NOTICE_TEXTS, made.NOTICE_ROWS)
    found = read(path, "hangul:read")
    assert texts(found) == [made.NOTICE_TITLE, *made.NOTICE_TEXTS]
    (table,) = texts(found, Label.TABLE)
    cells = re.findall(r"<t[hd]>(.*?)<", table or "")
    assert cells == [each for row in made.NOTICE_ROWS for each in row]


@pytest.mark.parametrize("make", [old_files.xls, old_files.ppt])
def test_old_files_that_are_cut_off_are_no_success(tmp_path: Path, make: Callable[[Path, Any], Path]):
    path = make(tmp_path / "a", (("a", "b"), ("c", "d")))
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(PagemillError):
        read(path, "hangul:read")


def test_what_hangul_and_sheets_hold_and_dochan_leaves_out_is_counted(tmp_path: Path):
    body = made._in_paragraph('<hp:textart text="art"/>') + made._in_paragraph("<hp:ole/>")
    notes = read(made.hangul(tmp_path / "a.hwpx", body), "hangul:read").parts[0].notes
    assert notes == ["not read: 1 word art text", "not read: 1 embedded object"]
    memo = f"<hp:ctrl><hp:fieldBegin type='MEMO'><hp:subList>{made._p('Is it?')}</hp:subList></hp:fieldBegin></hp:ctrl>"
    found = read(made.hangul(tmp_path / "b.hwpx", made._in_paragraph(f"{memo}<hp:t>text</hp:t>")), "hangul:read")
    assert (texts(found), texts(found, Label.ASIDE_TEXT)) == (["text"], ["Is it?"])
    with zipfile.ZipFile(made.sheets(tmp_path / "a.xlsx"), "a") as archive:
        archive.writestr("xl/embeddings/a.docx", "")
    assert "not read: 1 embedded object" in read(tmp_path / "a.xlsx", "hangul:read").parts[0].notes
