"""OpenDocument, from files written by hand."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import made_documents as made
import pytest
from hostile import damaged, repacked

from pagemill.document.labels import Label
from pagemill.document.page import Furniture
from pagemill.errors import CorruptInputError, EncryptedError, PagemillError
from pagemill.readers import opendocument
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
                *(("meta", "meta"), ("form", "form"), ("chart", "chart")),
            ),
        )
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
    + ' xmlns:math="http://www.w3.org/1998/Math/MathML"'
)


def style(name: str, kind: str, properties: str, parent: str = "") -> str:
    above = f' style:parent-style-name="{parent}"' if parent else ""
    return f'<style:style style:name="{name}"{above}><style:{kind}-properties {properties}/></style:style>'


def row(cells: str, many: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{many}">{cells}</table:table-row>'


def odf(
    path: Path,
    kind: str,
    body: str,
    styles: str = "",
    running: str = "",
    manifest: str = "",
    members: Mapping[str, str] = {},
) -> Path:
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
        for name, text in members.items():
            package.writestr(name, text)
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
    assert [each.content for each in found if each.label is Label.DISPLAY_FORMULA] == ["a"]
    assert document.parts[0].notes == ["not read: 1 hidden run"]


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


def cell(text: str, about: str = "") -> str:
    return f"<table:table-cell {about}>{text and f'<text:p>{text}</text:p>'}</table:table-cell>"


def sheet(rows: str) -> str:
    return f'<table:table table:name="A">{rows}</table:table>'


COVERED = "<table:covered-table-cell/>"
TALL, WIDE = (f'table:number-{kind}-spanned="{{}}"' for kind in ("rows", "columns"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            row(cell("", TALL.format(2)) + cell("A")) + row(COVERED + cell("B")),
            '<tr><td rowspan="2"></td><td>A</td></tr><tr><td>B</td></tr>',
        ),
        (
            row(cell("", WIDE.format(2)) + COVERED + cell("A")) + row(cell("B") * 3),
            '<tr><td colspan="2"></td><td>A</td></tr><tr><td>B</td><td>B</td><td>B</td></tr>',
        ),
        (
            row(cell("A", TALL.format(3))) + row(COVERED, 2) + row("", 9) + row(cell("B")),
            "<tr><td>A</td></tr><tr><td>B</td></tr>",
        ),
        (
            row(cell("", 'office:value="4.5"') + cell("", 'office:string-value="a"')),
            "<tr><td>4.5</td><td>a</td></tr>",
        ),
    ],
)
def test_cells_keep_their_places_and_values(tmp_path: Path, rows: str, said: str):
    (block,) = blocks(read(odf(tmp_path / "a.ods", "spreadsheet", sheet(rows))))
    assert block.content == f"<table>{said}</table>"


def test_what_is_left_out_of_a_sheet_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hidden = "<table:covered-table-cell><text:p>a</text:p></table:covered-table-cell>"
    shapes = (
        "<table:shapes><draw:frame><draw:text-box><text:p>Shape</text:p></draw:text-box></draw:frame></table:shapes>"
    )
    repeated = 'table:number-columns-repeated="1100"'
    body = sheet(shapes + row(cell("a"), 1500) + row(cell("b", repeated)) + row(cell("c") + hidden))
    document = read(odf(tmp_path / "a.ods", "spreadsheet", body))
    lost = ["not read: 500 repeated rows", "not read: 100 repeated cells", "not read: 1 covered cell"]
    assert sorted(document.parts[0].notes) == sorted(lost)
    found = blocks(document)
    assert "Shape" in [each.content for each in found]
    # The wide row begins a table of its own: one of 1,000 rows and columns took 11 s.
    assert sum(each.label is Label.TABLE for each in found) == 2
    monkeypatch.setattr(opendocument, "_MOST_MARKUP", 10_000)
    document = read(odf(tmp_path / "b.ods", "spreadsheet", sheet(row(cell("long " * 900, repeated), 1000))))
    assert document.parts[0].notes == ["not read: 1,098 repeated cells", "not read: 999 repeated rows"]


def test_the_first_content_of_a_frame_that_can_be_shown_is_read(tmp_path: Path):
    chart = (
        "<office:chart><chart:chart><chart:title><text:p>Sales</text:p></chart:title><table:table><table:table-rows>"
        f"{row(cell('1'))}</table:table-rows></table:table></chart:chart></office:chart>"
    )
    image = '<draw:image xlink:href="./ObjectReplacements/{}"/>'
    body = "".join(
        f"<text:p>{name}<draw:frame>{inside}</draw:frame></text:p>"
        for name, inside in (
            ("box", "<draw:text-box><text:p>Box</text:p></draw:text-box>" + image.format("a")),
            ("chart", '<draw:object xlink:href="./Object 2"/>' + image.format("a")),
            ("sheet", '<draw:object xlink:href="./Object 3"/>' + image.format("a")),
            ("broken", '<draw:object xlink:href="./Object 4"/>'),
            ("formula", "<draw:object><math:math><math:mi>x</math:mi></math:math></draw:object>"),
            ("inside", "<draw:image><office:binary-data>aGk=</office:binary-data><text:p>Over</text:p></draw:image>"),
        )
    )
    members = {"Object 2/content.xml": f"<a{_SPACES}>{chart}</a>", "Object 3/content.xml": "<a/>"}
    members |= {"Object 4/content.xml": "<a", "ObjectReplacements/a": "picture"}
    document = read(odf(tmp_path / "a.odt", "text", body, members=members))
    assert [each.content or (each.picture and each.picture.data) for each in blocks(document)] == [
        *("box", "Box", "chart", "Sales", "<table><tr><td>1</td></tr></table>", "sheet", b"picture"),
        *("broken", "formula$x$", "inside", b"hi", "Over"),
    ]
    assert document.parts[0].notes == ["not read: 1 embedded object"]


def test_running_heads_forms_hidden_text_and_notes_of_all_kinds(tmp_path: Path):
    kinds = ("header", "header-left", "header-first", "footer-left", "footer-first")
    running = "".join(f"<style:{kind}><text:p>{kind}</text:p></style:{kind}>" for kind in kinds)
    form = '<form:{0} form:id="{0}" form:{1}="{2}"/>'
    body = (
        f"<office:forms><form:form>{form.format('text', 'current-value', 'Kim')}"
        f"{form.format('button', 'label', 'Send')}"
        '<form:checkbox form:id="box" form:label="Yes" form:current-state="checked"/></form:form></office:forms>'
        '<text:tracked-changes><text:changed-region xml:id="c"><text:deletion><text:p>gone</text:p></text:deletion>'
        '</text:changed-region></text:tracked-changes><text:p><draw:control draw:control="text"/>, <draw:control'
        ' draw:control="box"/><text:change text:change-id="c"/></text:p><text:section text:display="none"><text:p>a'
        "</text:p></text:section><text:p>A<text:ruby-text>b</text:ruby-text>"
        '<text:hidden-text text:string-value="b"/><text:note><text:note-citation>1'
        "</text:note-citation><text:note-body><text:p>a<text:line-break/>b</text:p><text:p>c<draw:frame><draw:image "
        'xlink:href="Pictures/a.png"/></draw:frame></text:p></text:note-body></text:note></text:p>'
    )
    document = read(odf(tmp_path / "a.odt", "text", body, running=f"<style:master-page>{running}</style:master-page>"))
    found = blocks(document)
    assert [each.content for each in found if each.furniture] == list(kinds)
    assert [each.content for each in found if not each.furniture] == ["Kim, ☒ Yes", "A1", "gone", "1 a\nb\nc", None]
    assert document.parts[0].notes == [
        f"not read: {each}" for each in ("2 hidden runs", "1 ruby reading", "1 form field")
    ]


def test_slides_show_their_footer_and_their_master(tmp_path: Path):
    text = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    master = text.format("", "Company") + text.format(' presentation:class="title"', "Click to edit")
    body = '<presentation:footer-decl presentation:name="f">Foot</presentation:footer-decl>'
    body += (
        f'<draw:page presentation:use-footer-name="f" draw:master-page-name="M">{text.format("", "Text")}</draw:page>'
    )
    running = f'<style:master-page style:name="M">{master}</style:master-page>'
    (part,) = read(odf(tmp_path / "a.odp", "presentation", body, running=running)).parts
    assert [each.content for each in part.blocks] == ["Foot", "Company", "Text"]


def test_a_damaged_picture_costs_no_text(tmp_path: Path):
    body = '<text:p>Text<draw:frame><draw:image xlink:href="Pictures/a.png"/></draw:frame></text:p>'
    path = odf(tmp_path / "a.odt", "text", body)
    data, picture = path.read_bytes(), made.png().read()
    path.write_bytes(data.replace(picture, picture[:-1] + b"x"))
    document = read(path)
    assert document.parts[0].warnings == ["the picture Pictures/a.png is damaged"]
    assert [each.content for each in blocks(document)] == ["Text", None]


def test_damaged_files_are_read_or_refused(tmp_path: Path):
    whole = Path(__file__).parent / "files" / "notice.odt"
    for seed in range(40):
        if seed % 2:
            (tmp_path / "a.odt").write_bytes(damaged(whole.read_bytes(), seed))
        else:
            repacked(whole, tmp_path / "a.odt", lambda name, data, seed=seed: damaged(data or b" ", seed))
        try:
            read(tmp_path / "a.odt")
        except PagemillError:
            continue


def test_the_content_shows_which_kind_it_is(tmp_path: Path):
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
