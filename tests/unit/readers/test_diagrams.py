"""Diagrams of Office: their texts in order, in Word and on slides."""

from pathlib import Path
from typing import Any

import docx
import made_documents as made
import pptx
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pptx.opc.package import Part as SlidePart
from pptx.opc.packuri import PackURI as SlideURI
from pptx.oxml import parse_xml as parse_slide
from test_formats import items, read

from pagemill.readers.diagrams import diagram_blocks

KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData"
TYPE = "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml"
NAMES = (
    'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)


def point(name: str, text: str = "", kind: str = "node") -> str:
    inside = f"<dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t>" if text else ""
    return f'<dgm:pt modelId="{name}" type="{kind}">{inside}</dgm:pt>'


def link(above: str, below: str, order: int, kind: str = "parOf") -> str:
    return f'<dgm:cxn modelId="x{above}{below}" type="{kind}" srcId="{above}" destId="{below}" srcOrd="{order}"/>'


POINTS = (
    point("0", kind="doc")
    + point("3", "Third")
    + point("1", "First")
    + point("2", "Second")
    + point("4", "Below")
    + point("5", "Loose")
)
LINKS = link("0", "2", 1) + link("0", "1", 0) + link("0", "3", 2) + link("1", "4", 0) + link("1", "3", 0, "presOf")
DATA = f"<dgm:dataModel {NAMES}><dgm:ptLst>{POINTS}</dgm:ptLst><dgm:cxnLst>{LINKS}</dgm:cxnLst></dgm:dataModel>"
SAID = ["• First", "  • Below", "• Second", "• Third", "• Loose"]


def shown(name: str) -> str:
    space = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    return made.SMART_ART.replace("<dgm:relIds ", f'<dgm:relIds {space} r:dm="{name}" ')


def test_diagrams_of_word(tmp_path: Path):
    word: Any = docx.Document()
    data = Part(PackURI("/word/diagrams/data1.xml"), TYPE, DATA.encode(), word.part.package)
    drawing = f"<w:drawing><wp:inline>{shown(word.part.relate_to(data, KIND))}</wp:inline></w:drawing>"
    made.add(word.add_paragraph("Text"), f"<w:r {nsdecls('w', 'wp')}>{drawing}</w:r>")
    word.save(str(tmp_path / "a.docx"))
    found = read(tmp_path / "a.docx", "docx:read")
    assert items(found) == SAID and not found.parts[0].notes


def test_diagrams_of_slides(tmp_path: Path):
    deck: Any = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    data = SlidePart(SlideURI("/ppt/diagrams/data1.xml"), TYPE, slide.part.package, DATA.encode())
    names = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    frame = (
        f'<p:graphicFrame {names}><p:nvGraphicFramePr><p:cNvPr id="9" name="d"/><p:cNvGraphicFramePr/><p:nvPr/>'
        f"</p:nvGraphicFramePr><p:xfrm/>{shown(slide.part.relate_to(data, KIND))}</p:graphicFrame>"
    )
    slide.shapes._spTree.append(parse_slide(frame))
    deck.save(str(tmp_path / "a.pptx"))
    found = read(tmp_path / "a.pptx", "pptx:read")
    assert items(found) == SAID and not found.parts[0].notes


def test_a_diagram_that_holds_itself_ends():
    root = parse_xml(DATA.replace(LINKS, LINKS + link("4", "1", 0)))
    assert [block.content for block in diagram_blocks(root)] == SAID
