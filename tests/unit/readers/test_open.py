"""OpenDocument, from files written by hand."""

from __future__ import annotations

import zipfile
from pathlib import Path

import made_documents as made
import pytest

from pagemill.document.labels import Label
from pagemill.document.page import Furniture
from pagemill.errors import CorruptInputError, EncryptedError
from pagemill.readers.base import Block, Document
from pagemill.readers.opendocument import read
from pagemill.readers.reading import kind_of

_SPACES = (
    "".join(
        f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for short, name in (
            *(("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style")),
            *(
                ("fo", "xsl-fo-compatible"),
                ("svg", "svg-compatible"),
                ("presentation", "presentation"),
                ("meta", "meta"),
            ),
        )
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def style(name: str, kind: str, properties: str, parent: str = "") -> str:
    above = f' style:parent-style-name="{parent}"' if parent else ""
    return f'<style:style style:name="{name}"{above}><style:{kind}-properties {properties}/></style:style>'


def odf(path: Path, kind: str, body: str, styles: str = "", running: str = "", manifest: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        package.writestr("META-INF/manifest.xml", manifest)
        package.writestr(
            "content.xml",
            f"<office:document-content{_SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        )
        package.writestr("styles.xml", f"<office:document-styles{_SPACES}>{running}</office:document-styles>")
        package.writestr(
            "meta.xml",
            f"<office:document-meta{_SPACES}><office:meta><dc:title>Report</dc:title>"
            "<meta:initial-creator>Kim</meta:initial-creator></office:meta></office:document-meta>",
        )
        package.writestr("Pictures/a.png", made.png().read())
        package.writestr(
            "Object 1/content.xml",
            '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mi>a</mi><annotation encoding="StarMath 5.0">'
            "a over b</annotation></semantics></math>",
        )
    return path


def blocks(document: Document) -> list[Block]:
    return [block for part in document.parts for block in part.blocks]


def test_a_text_with_everything(tmp_path: Path):
    styles = style("B", "text", 'fo:font-weight="bold"') + style("BI", "text", 'fo:font-style="italic"', "B")
    styles += style("Low", "text", 'style:text-position="sub 58%"') + style("Gone", "text", 'text:display="none"')
    styles += (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1"/>'
        '<text:list-level-style-bullet text:level="2"/></text:list-style>'
    )
    item = "<text:list-item><text:p>{}</text:p>{}</text:list-item>"
    inner = f"<text:list>{item.format('one a', '')}</text:list>"
    body = (
        '<text:tracked-changes><text:changed-region text:id="c"><text:deletion><text:p>deleted</text:p></text:deletion>'
        "</text:changed-region></text:tracked-changes>"
        '<text:p text:style-name="Title">Annual report</text:p><text:h text:outline-level="1">First part</text:h>'
        '<text:p>Plain <text:span text:style-name="B">bold</text:span>, '
        '<text:span text:style-name="BI">both</text:span>'
        ' H<text:span text:style-name="Low">2</text:span>O<text:s text:c="3"/>and <text:a xlink:href="https://example.org/a"'
        '>a link</text:a><text:span text:style-name="Gone">unseen</text:span><text:change text:change-id="c"/></text:p>'
        f'<text:list text:style-name="L">{item.format("one", inner)}</text:list><text:p>Between</text:p>'
        f'<text:list text:style-name="L" text:continue-numbering="true">{item.format("two", "")}</text:list>'
        "<text:p>A claim<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Source</text:p>"
        "</text:note-body></text:note><office:annotation><dc:creator>Lee</dc:creator><text:p>Is it?</text:p>"
        "</office:annotation></text:p>"
        '<table:table><table:table-header-rows><table:table-row><table:table-cell table:number-columns-spanned="2">'
        "<text:p>Head</text:p></table:table-cell><table:covered-table-cell/></table:table-row></table:table-header-rows>"
        "<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p>"
        "</table:table-cell></table:table-row></table:table>"
        '<text:p><draw:frame><draw:image xlink:href="Pictures/a.png"/><svg:desc>A red field</svg:desc></draw:frame>'
        '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></text:p>'
    )
    running = "<style:master-page><style:header><text:p>Running head</text:p></style:header></style:master-page>"
    document = read(odf(tmp_path / "a.odt", "text", body, styles, running))
    found = blocks(document)
    assert (document.info.title, document.info.author) == ("Report", "Kim")
    assert [(each.level, each.content) for each in found if each.level] == [(1, "Annual report"), (2, "First part")]
    assert [each.content for each in found if each.list_item] == ["1. one", "  • one a", "2. two"]
    plain = next(each for each in found if (each.content or "").startswith("Plain"))
    assert plain.content == "Plain bold, both H2O and a link"
    assert {(span.mark.value, plain.content[span.start : span.end]) for span in plain.spans} == {
        *(("bold", "bold"), ("bold", "both"), ("italic", "both"), ("subscript", "2"), ("link", "a link")),
    }
    (table,) = (each.content for each in found if each.label is Label.TABLE)
    head, body = '<tr><th colspan="2">Head</th></tr>', "<tr><td>a</td><td>b</td></tr>"
    assert table == f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
    assert [each.content for each in found if each.label is Label.ASIDE_TEXT] == ["deleted", "Lee: Is it?"]
    assert [each.content for each in found if each.label is Label.FOOTNOTE] == ["1 Source"]
    assert [each.content for each in found if each.furniture is Furniture.PROVEN] == ["Running head"]
    (picture,) = (each.picture for each in found if each.picture)
    assert picture.alternative == "A red field" and picture.data.startswith(b"\x89PNG")
    assert "a over b" in [each.content for each in found]
    assert document.parts[0].notes == ["1 runs of hidden text are not read"]


def test_sheets_with_rows_to_the_edge_of_the_sheet(tmp_path: Path):
    cells = (
        '<table:table-cell><text:p>{}</text:p></table:table-cell><table:table-cell table:number-columns-repeated="{}"/>'
    )
    row = "<table:table-row{}>{}</table:table-row>"
    last = ' table:number-rows-repeated="1048000"'
    body = f'<table:table table:name="A">{row.format("", cells.format("1,204.50 €", 16000))}'
    body += row.format("", cells.format("x", 1) + cells.format("far", 9)) + row.format(last, cells.format("", 9))
    body += '</table:table><table:table table:name="B" table:style-name="Off">'
    body += f"{row.format('', cells.format('y', 1))}</table:table>"
    document = read(odf(tmp_path / "a.ods", "spreadsheet", body, style("Off", "table", 'table:display="false"')))
    first, second = document.parts
    assert first.metadata == {"sheet": "A"} and second.notes == ["the sheet 'B' is hidden"]
    assert (first.blocks[0].content, first.blocks[0].level) == ("A", 2)
    assert first.blocks[1].content == (
        "<table><tr><td>1,204.50 €</td><td></td><td></td></tr><tr><td>x</td><td></td><td>far</td></tr></table>"
    )


def test_slides_with_notes(tmp_path: Path):
    frame = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    notes = f"<presentation:notes>{frame.format('', 'Say it')}</presentation:notes>"
    title = frame.format(' presentation:class="title"', "Plan")
    body = f"<draw:page>{title}{frame.format('', 'Text')}{notes}</draw:page>"
    body += f'<draw:page draw:style-name="Off">{frame.format("", "Hidden")}</draw:page>'
    styles = style("Off", "drawing-page", 'presentation:visibility="hidden"')
    first, second = read(odf(tmp_path / "a.odp", "presentation", body, styles)).parts
    assert [(block.label, block.content) for block in first.blocks] == [
        *((Label.PARAGRAPH_TITLE, "Plan"), (Label.TEXT, "Text"), (Label.FOOTNOTE, "Say it")),
    ]
    assert second.notes == ["the slide is hidden"]


def test_the_content_tells_which_kind_it_is(tmp_path: Path):
    path = odf(tmp_path / "a.bin", "spreadsheet", "<table:table/>")
    assert kind_of(path, ".docx") == ".ods"


def test_encrypted_and_damaged_files_are_refused(tmp_path: Path):
    with pytest.raises(EncryptedError):
        read(odf(tmp_path / "a.odt", "text", "", manifest="<manifest:encryption-data/>"))
    with pytest.raises(CorruptInputError):
        read(odf(tmp_path / "b.odt", "text", "<text:p>"))
    entity = "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
    path = tmp_path / "c.odt"
    with zipfile.ZipFile(path, "w") as package:
        content = f"<office:document-content{_SPACES}><office:body><office:text><text:p>a&x;b</text:p></office:text>"
        package.writestr("content.xml", f"{entity}{content}</office:body></office:document-content>")
    assert [block.content for block in blocks(read(path))] == ["ab"]
