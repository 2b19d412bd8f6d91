"""Word documents: nothing is lost, and nothing is said twice."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import made_documents as made
import pytest
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from test_formats import blocks, read, texts

from pagemill.document.labels import Label
from pagemill.document.page import Furniture
from pagemill.readers.base import Document

NAMES = f'{nsdecls("w", "r", "a", "pic", "wp")} xmlns:v="urn:schemas-microsoft-com:vml" ' + (
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)


def word(folder: Path, markup: str, fill: Callable[[Any], None] = lambda made: None) -> Document:
    document = docx.Document()
    made.add(document.add_paragraph(), markup)
    fill(document)
    document.save(str(folder / "a.docx"))
    return read(folder / "a.docx", "docx:read")


def text_box(inside: str) -> str:
    return (
        f'<w:r {NAMES}><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline><a:graphic><a:graphicData>'
        f"<wps:wsp><wps:txbx><w:txbxContent>{inside}</w:txbxContent></wps:txbx></wps:wsp>"
        "</a:graphicData></a:graphic></wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>"
        f"<w:txbxContent>{inside}</w:txbxContent></v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


@pytest.mark.parametrize(
    ("font", "code", "shown"),
    [
        ("Wingdings", "F0FE", "☑"),
        ("Wingdings", "00FE", "☑"),
        ("Wingdings", "F0A8", "☐"),
        ("Wingdings 2", "F052", "☑"),
        ("Wingdings 2", "F0A3", "☐"),
        ("Symbol", "F0FE", "•"),
    ],
)
def test_check_boxes_keep_their_state(tmp_path: Path, font: str, code: str, shown: str):
    found = word(tmp_path, f'<w:r {NAMES}><w:sym w:font="{font}" w:char="{code}"/><w:t> Yes</w:t></w:r>')
    assert texts(found) == [f"{shown} Yes"]


def fields(*said: str) -> str:
    """Runs: ``{``, ``|`` and ``}`` begin, part and end a field; what begins with ``!`` is of its instruction."""
    kinds = {"{": "begin", "|": "separate", "}": "end"}
    inside = (
        f'<w:fldChar w:fldCharType="{kinds[each]}"/>'
        if each in kinds
        else f"<w:instrText>{each[1:]}</w:instrText>"
        if each[0] == "!"
        else f"<w:t>{each}</w:t>"
        for each in said
    )
    return f"<w:smartTag {NAMES}>" + "".join(f"<w:r>{each}</w:r>" for each in inside) + "</w:smartTag>"


@pytest.mark.parametrize(
    ("said", "shown", "linked"),
    [
        (["{", "!IF ", "{", "!REF a", "|", "x", "}", '!="x" "y"', "|", "y", "}"], ["y"], []),
        (["{", '!HYPERLINK "http://a.b"', "|", "See ", "{", "!REF a", "|", "1", "}", "}"], ["See 1"], ["See 1"]),
        (["{", "!TOC", "|", "{", '!HYPERLINK "http://a.b"', "|", "A", "}", "B", "}"], ["AB"], ["A"]),
        (["{", "!QUOTE ", "{", "!DATE", "|", "today", "}", "}"], ["today"], []),
        (["{", "!IF ", "{", "!REF a", "|", "x", "}", "y"], ["yx"], []),
        (["{", "!MACROBUTTON No Click ", "{", "!REF a", "|", "x", "}", "}"], ["Clickx"], []),
    ],
)
def test_fields_in_fields_show_the_result_of_the_outer_one(
    tmp_path: Path, said: list[str], shown: list[str], linked: list[str]
):
    found = word(tmp_path, fields(*said))
    assert texts(found) == shown
    spans = [(each.content or "")[span.start : span.end] for each in blocks(found) for span in each.spans]
    assert spans == linked


@pytest.mark.parametrize(("said", "linked"), [(["}", "in"], []), (["{", "in"], ["in"])])
def test_a_simple_field_ends_what_begins_in_it_and_nothing_else(tmp_path: Path, said: list[str], linked: list[str]):
    link = ' HYPERLINK "http://a.b" '
    inside = fields(*said).replace("<w:smartTag", f"<w:fldSimple w:instr='{link}'").replace("smartTag>", "fldSimple>")
    found = word(tmp_path, fields("before").replace("</w:smartTag>", f"{inside}{fields('after')}</w:smartTag>"))
    assert "".join(texts(found)).endswith("after")
    spans = [(each.content or "")[span.start : span.end] for each in blocks(found) for span in each.spans]
    assert spans == linked


@pytest.mark.parametrize("kind", ["page", "column"])
def test_breaks_of_pages_part_words(tmp_path: Path, kind: str):
    found = word(
        tmp_path, f'<w:r {NAMES}><w:br w:type="{kind}"/><w:t>one</w:t><w:br w:type="{kind}"/><w:t>two</w:t></w:r>'
    )
    assert texts(found) == ["one\ntwo"]


def test_a_picture_in_a_text_box_is_there_once(tmp_path: Path):
    document = docx.Document()
    document.add_picture(made.png())
    picture = document.paragraphs[0]._p
    from lxml import etree

    box = text_box(f"<w:p>{etree.tostring(picture[0]).decode()}</w:p>")
    picture.replace(picture[0], parse_xml(box))
    document.save(str(tmp_path / "a.docx"))
    assert len([block for block in blocks(read(tmp_path / "a.docx", "docx:read")) if block.picture]) == 1


def test_a_text_box_in_a_footnote_is_there_once(tmp_path: Path):
    def fill(document: Any) -> None:
        made.footnotes(document, "Before. FILLED")
        part = next(rel.target_part for rel in document.part.rels.values() if rel.reltype.endswith("/footnotes"))
        box = text_box("<w:p><w:r><w:t>boxed</w:t></w:r></w:p>")
        part._blob = part.blob.replace(b"</w:p>", box.encode() + b"</w:p>", 1)

    found = word(tmp_path, f'<w:r {NAMES}><w:t>Claim</w:t><w:footnoteReference w:id="2"/></w:r>', fill)
    (note,) = texts(found, Label.FOOTNOTE)
    assert (note or "").count("boxed") == 1


def field_char(inside: str) -> str:
    return f'<w:r {NAMES}><w:fldChar w:fldCharType="begin"><w:ffData>{inside}</w:ffData></w:fldChar></w:r>'


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        ("<w:checkBox><w:default w:val='0'/></w:checkBox>", "☐"),
        ("<w:checkBox><w:default w:val='1'/></w:checkBox>", "☒"),
        ("<w:checkBox><w:default w:val='1'/><w:checked w:val='0'/></w:checkBox>", "☐"),
        ("<w:checkBox><w:checked/></w:checkBox>", "☒"),
        ("<w:ddList><w:result w:val='1'/><w:listEntry w:val='A'/><w:listEntry w:val='B'/></w:ddList>", "B"),
        ("<w:ddList><w:result w:val='7'/><w:listEntry w:val='A'/></w:ddList>", ""),
    ],
)
def test_fields_of_forms_show_what_is_chosen(tmp_path: Path, inside: str, shown: str):
    found = word(
        tmp_path, field_char(inside), lambda made_: made.add(made_.paragraphs[0], f"<w:r {NAMES}><w:t>!</w:t></w:r>")
    )
    assert texts(found) == [f"{shown}!"]


def test_content_controls_are_read_as_they_are_shown(tmp_path: Path):
    control = "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>"
    markup = f"<w:r {NAMES}><w:t>Name: </w:t></w:r>"

    def fill(document: Any) -> None:
        run = control.format("<w:r><w:t>Kim ☒</w:t></w:r>")
        made.add(document.paragraphs[0], run.replace("<w:sdt>", f"<w:sdt {NAMES}>", 1))

    assert texts(word(tmp_path, markup, fill)) == ["Name: Kim ☒"]


def _field(instruction: str) -> str:
    ends = (f'<w:fldChar w:fldCharType="{kind}"/>' for kind in ("begin", "end"))
    return f"<w:r {NAMES}>{f'<w:instrText>{instruction}</w:instrText>'.join(ends)}</w:r>"


MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        (f'<w:r {NAMES}><w:pict><v:shape><v:textpath string="Word art"/></v:shape></w:pict></w:r>', ["Word art"]),
        (
            f"<w:smartTag {NAMES} {MATH}><m:oMath><w:r><w:t>if</w:t></w:r><w:del><m:r><m:t>x</m:t></m:r></w:del>"
            "</m:oMath><w:r><w:tab/><w:sym w:font='Wingdings' w:char='00FE'/></w:r></w:smartTag>",
            ["$\\text{if}$\t☑"],
        ),
        (
            f"<w:r {NAMES}><mc:AlternateContent><mc:Choice Requires='wpi'><w:drawing/></mc:Choice><mc:Fallback>"
            "<w:t>ink</w:t></mc:Fallback></mc:AlternateContent></w:r>",
            ["ink"],
        ),
        (f"<w:r {NAMES}><w:drawing><a:p><a:r><a:t>canvas</a:t></a:r></a:p></w:drawing></w:r>", ["canvas"]),
        (_field(r"EQ \f(a,b)"), ["(a,b)"]),
        (_field("MACROBUTTON x Click here"), ["Click here"]),
        (_field("PAGE"), []),
    ],
)
def test_text_in_odd_places_is_read(tmp_path: Path, markup: str, shown: list[str]):
    assert texts(word(tmp_path, markup)) == shown


def test_what_is_not_read_is_counted(tmp_path: Path):
    ruby = "<w:ruby><w:rt/><w:rubyBase><w:r><w:t>base</w:t></w:r></w:rubyBase></w:ruby>"
    names = f'{NAMES} xmlns:o="urn:schemas-microsoft-com:office:office"'
    gone = '<w:footnoteReference w:id="9"/><w:drawing><c:chart r:id="rId99"/></w:drawing>'
    names += ' xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    markup = f"<w:r {names}>{ruby}<w:object><o:OLEObject/></w:object>{gone}</w:r>"

    def fill(document: Any) -> None:
        merge, text = '<w:tcPr><w:vMerge w:val="{}"/></w:tcPr>', "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
        rows = (f"<w:tr><w:tc>{merge.format(kind)}{text}</w:tc></w:tr>" for kind in ("restart", "continue"))
        document.element.body.insert(0, parse_xml(f"<w:tbl {NAMES}>{''.join(rows)}</w:tbl>"))
        document.element.body.append(parse_xml(f'<w:subDoc {NAMES} r:id="rId99"/>'))

    kinds = ("covered cell", "ruby reading", "embedded object", "footnote", "chart", "embedded document")
    assert word(tmp_path, markup, fill).parts[0].notes == [f"not read: 1 {kind}" for kind in kinds]


@pytest.mark.parametrize("properties", ['<w:framePr w:dropCap="drop"/>', "<w:rPr><w:del/></w:rPr>"])
def test_text_that_continues_in_the_next_paragraph_is_one_text(tmp_path: Path, properties: str):
    def fill(document: Any) -> None:
        paragraph = "<w:p {}><w:pPr>{}</w:pPr><w:r><w:t>{}</w:t></w:r></w:p>"
        document.element.body.insert(0, parse_xml(paragraph.format(NAMES, properties, "O")))
        document.element.body[-1].addprevious(parse_xml(paragraph.format(NAMES, properties, "end")))

    assert texts(word(tmp_path, f"<w:r {NAMES}><w:t>nce upon a time</w:t></w:r>", fill)) == ["Once upon a time", "end"]


def test_a_note_with_a_mark_of_its_own_has_no_number(tmp_path: Path):
    mark = '<w:footnoteReference w:id="2" w:customMarkFollows="1"/><w:t>*</w:t>'
    found = word(tmp_path, f"<w:r {NAMES}>{mark}</w:r>", lambda made_: made.footnotes(made_, "Text."))
    assert (texts(found), texts(found, Label.FOOTNOTE)) == (["*"], ["Text."])


@pytest.mark.parametrize(
    ("kind", "data", "shown"),
    [
        ("text/html", b"a <b>chunk</b>", ["a chunk"]),
        ("text/plain", b"a <b>chunk</b>", ["a <b>chunk</b>"]),
        ("application/rtf", b"{\\rtf1 a \\b chunk}", ["a chunk"]),
        ("text/rtf", b"a chunk", []),
        ("application/xhtml+xml", b"<head><title/><script/></head><body>a chunk</body>", ["a chunk"]),
        (
            "text/html",
            '<meta charset="koi8-r"><p>\u0434\u043e\u0433\u043e\u0432\u043e\u0440'.encode("koi8-r"),
            ["\u0434\u043e\u0433\u043e\u0432\u043e\u0440"],
        ),
        ("message/rfc822", b"MIME-Version: 1.0\nContent-Type: text/html\n\n<p>a chunk", ["a chunk"]),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml", b"", ["a chunk"]),
    ],
)
def test_embedded_documents_are_read_in_their_place(tmp_path: Path, kind: str, data: bytes, shown: list[str]):
    def fill(document: Any) -> None:
        inner = io.BytesIO()
        if not data:
            docx.Document().save(inner)
            chunk = docx.Document(inner)
            chunk.add_paragraph("a chunk")
            chunk.save(inner)
        part = Part(PackURI("/word/chunk"), kind, data or inner.getvalue(), document.part.package)
        name = document.part.relate_to(part, f"{made.LINK.rpartition('/')[0]}/aFChunk")
        document.element.body.insert(0, parse_xml(f'<w:altChunk {NAMES} r:id="{name}"/>'))

    found = word(tmp_path, f"<w:r {NAMES}/>", fill)
    assert (texts(found), bool(found.parts[0].notes)) == (shown, not shown)


def test_feet_and_notes_keep_tables_pictures_and_deleted_text(tmp_path: Path):
    def fill(document: Any) -> None:
        foot = document.sections[0].footer
        foot.paragraphs[0].add_run().add_picture(made.png())
        foot.add_table(1, 2, 100).cell(0, 1).text = "cell"
        made.footnotes(document, "x</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>")

    found = word(tmp_path, f'<w:r {NAMES}><w:footnoteReference w:id="2"/></w:r>', fill)
    (picture,) = (block for block in blocks(found) if block.label is Label.FOOTER_IMAGE)
    assert picture.picture is not None and picture.furniture is Furniture.PROVEN
    assert texts(found, Label.FOOTER) == ["cell"] and texts(found, Label.ASIDE_TEXT) == ["gone"]


def test_cells_that_are_numbered_show_their_number(tmp_path: Path):
    def fill(document: Any) -> None:
        for each in document.add_table(2, 1).column_cells(0):
            each.paragraphs[0].style = "List Number"

    (table,) = texts(word(tmp_path, f"<w:r {NAMES}/>", fill), Label.TABLE)
    assert table is not None and ">1.</th>" in table and ">2.</td>" in table


def test_lists_count_on_as_word_does(tmp_path: Path):
    """Of numbers with one list in common the second counts on, unless it says where it begins; styles have levels."""
    level = '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    numbers = (("51", "51", ""), ("52", "51", ""), ("53", "51", again), ("54", "52", ""))

    def fill(document: Any) -> None:
        part = document.part.numbering_part.element
        for markup in (
            f'<w:abstractNum {NAMES} w:abstractNumId="51"><w:styleLink w:val="L"/>{level}</w:abstractNum>',
            f'<w:abstractNum {NAMES} w:abstractNumId="52"><w:numStyleLink w:val="L"/></w:abstractNum>',
            *(
                f'<w:num {NAMES} w:numId="{number}"><w:abstractNumId w:val="{of}"/>{override}</w:num>'
                for number, of, override in numbers
            ),
        ):
            part.append(parse_xml(markup))
        for number in ("51", "52", "53", "53", "54"):
            properties = document.add_paragraph("x")._p.get_or_add_pPr()
            properties.append(parse_xml(f'<w:numPr {NAMES}><w:numId w:val="{number}"/></w:numPr>'))

    assert texts(word(tmp_path, f"<w:r {NAMES}/>", fill)) == ["1. x", "2. x", "1. x", "2. x", "3. x"]


def test_headings_are_numbered_by_the_levels_of_their_styles(tmp_path: Path):
    def fill(document: Any) -> None:
        part = document.part.numbering_part.element
        levels = "".join(
            f'<w:lvl w:ilvl="{at}"><w:numFmt w:val="{kind}"/>{legal}<w:pStyle w:val="Heading{at + 1}"/>'
            f'<w:lvlText w:val="{text}"/></w:lvl>'
            for at, kind, legal, text in ((0, "upperRoman", "", "Part %1"), (1, "decimal", "<w:isLgl/>", "%1.%2"))
        )
        part.append(parse_xml(f'<w:abstractNum {NAMES} w:abstractNumId="77">{levels}</w:abstractNum>'))
        part.append(parse_xml(f'<w:num {NAMES} w:numId="77"><w:abstractNumId w:val="77"/></w:num>'))
        for level, text in enumerate("ABCD", 1):
            style = document.add_heading(text, 2 - level % 2).style.element.get_or_add_pPr()
            if level < 3:
                style.append(parse_xml(f'<w:numPr {NAMES}><w:numId w:val="77"/></w:numPr>'))

    found = blocks(word(tmp_path, f"<w:r {NAMES}/>", fill))
    assert [each.content for each in found] == ["Part I A", "1.1 B", "Part II C", "2.1 D"]
