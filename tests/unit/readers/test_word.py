"""Word documents: nothing is lost, and nothing is said twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import made_documents as made
import pytest
from docx.oxml.ns import nsdecls
from test_formats import blocks, read, texts

from pagemill.document.labels import Label
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
    from docx.oxml import parse_xml
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
