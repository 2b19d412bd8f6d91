"""Rich text, from files written by hand."""

from pathlib import Path

import made_documents as made
import pytest
from hostile import damaged

from pagemill.document.labels import Label
from pagemill.document.page import Mark
from pagemill.errors import CorruptInputError, PagemillError, TooLargeError
from pagemill.readers import rich_text
from pagemill.readers.base import Block, Document

HEAD = (
    r"{\rtf1\ansi\ansicpg949{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial;}{\f2\fcharset2 Symbol;}}"
    r"{\stylesheet{\s1\outlinelevel0 heading 1;}{\s9 Title;}}{\info{\title Report}{\creatim\yr2026\mo3\dy4}}"
)
SHAPE = r"{\shp{\*\shpinst{\sp{\sn a}{\sv 1}}{\shptxt %s}}{\shprslt %s}}"
FORMULA = (
    r"{\mmath{\*\moMath{\mf{\mfPr{\mctrlPr\i}}{\mnum{\mr\mscr0\msty2 a}}{\mden{\mr\mscr3\msty0 R}}}}{\mmathPict x}}"
)


def opened(path: Path, body: str, end: str = "}") -> Document:
    path.write_bytes(f"{HEAD}{body}{end}".encode("latin-1"))
    return rich_text.read(path)


def blocks(document: Document) -> list[Block]:
    return [block for part in document.parts for block in part.blocks]


def test_a_document_with_everything(tmp_path: Path):
    about = r"{\*\picprop{\sp{\sn wzDescription}{\sv A field}}}"
    picture = rf"{{\*\shppict{{\pict{about}\pngblip {made.png().read().hex()}}}}}"
    document = opened(
        tmp_path / "a.rtf",
        r"{\header Head\par}{\headerf Head\par}\pard\s9 The title\par\pard\s1 First part\par"
        r"\pard{\listtext \u8226?\tab}\li300 one\par\pard{\pntext 1.\tab}\li600 deeper\par"
        r"\pard Plain {\b bold} H{\sub 2}O {\field{\*\fldinst HYPERLINK {"
        "\"https://example.org/a\"}}{\\fldrslt \\plain a link}} \\'c7\\'d1"
        r"{\super\chftn}{\footnote{\super\chftn} Source}{\*\atnauthor Lee}{\*\annotation Is it?}"
        r"{\deleted gone} {\field{\*\fldinst FORMCHECKBOX{\*\formfield{\fftype1\ffres1}}}}\par"
        + picture
        + r"\par "
        + FORMULA
        + r"\par\pard Last",
    )
    assert (document.info.title, document.info.created) == ("Report", "2026-03-04")
    found = blocks(document)
    assert [(each.label, each.level, each.content) for each in found] == [
        (Label.HEADER, None, "Head"),
        (Label.DOC_TITLE, 1, "The title"),
        (Label.PARAGRAPH_TITLE, 2, "First part"),
        (Label.TEXT, None, "• one"),
        (Label.TEXT, None, "  1. deeper"),
        (Label.TEXT, None, "Plain bold H2O a link 한1 ☒"),
        (Label.FOOTNOTE, None, "1 Source"),
        (Label.ASIDE_TEXT, None, "Lee: Is it?"),
        (Label.ASIDE_TEXT, None, "gone"),
        (Label.IMAGE, None, None),
        (Label.DISPLAY_FORMULA, None, r"\frac{a}{\mathbb{R}}"),
        (Label.TEXT, None, "Last"),
    ]
    assert [each.list_item for each in found[3:6]] == [True, True, False]
    assert {(span.mark, found[5].content[span.start : span.end]) for span in found[5].spans} == {
        *((Mark.BOLD, "bold"), (Mark.SUBSCRIPT, "2"), (Mark.LINK, "a link"), (Mark.SUPERSCRIPT, "1")),
    }
    assert found[9].picture is not None and found[9].picture.alternative == "A field"
    assert found[9].picture.data == made.png().read()
    assert document.parts[0].notes == document.parts[0].warnings == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (r"A \v gone\v0 B\par C {\v gone} D \v gone\plain E\par", ["A B", "C  D E"]),
        (r"A \deleted gone\deleted0 B\par", ["A B", "gone"]),
        (r"C:\\v0.9\\deleted0\par", [r"C:\v0.9\deleted0"]),
        (
            r"\uc1 a\u-10179?\u-8704?b \u8212\emdash c {\uc2\u233\'65\'65x} \u-10179?\u-10179?d\u-10179?",
            ["a😀b —c éx ��d�"],
        ),
        (r"\f1\'cf\'f0\f0 \'c7\'d1 {\f2 a\'b7}", ["Пр한 α•"]),
        (r"A{\bin5 }}}}}b}c\line d\~e\page f", ["Abc\nd\xa0e\nf"]),
        (r"A" + SHAPE % (r"box\par", "twice") + r"{\*\do{\dptxbx{\dptxbxtext old}}}\par B", ["A", "box", "old", "B"]),
        (r"A{\object{\*\objdata 00}{\result shown}}{\upr{twice}{\*\ud one}}{\*\new x}", ["Ashownone"]),
        (r"{\field{\*\fldinst{\*\formfield{\fftype2\ffres1{\*\ffl a}{\*\ffl b}}}}{\fldrslt }}", ["b"]),
        (r"a\column b\pmartabqr c", ["a\nb\tc"]),
        (r"{\field{\*\fldinst MACROBUTTON No [Type here]}} {\field{\*\fldinst EQ \\f(1;2)}}", ["[Type here] (1;2)"]),
        (
            r'{\field{\*\fldinst SYMBOL 163 \\f "Symbol" \\s 9}{\fldrslt\f2\'a3}}{\field{\*\fldinst SYMBOL 0xe9}}'
            r"{\field{\*\fldinst SYMBOL 254 \\f Wingdings \\h}}{\field{\*\fldinst SYMBOL 55357}}",
            ["≤é☑\ufffd"],
        ),
        (r"\pard\outlinelevel0 A\par\pard b{\sp{\sn gtextUNICODE}{\sv draft}}", ["A", "b", "draft"]),
    ],
)
def test_text_that_used_to_get_lost(tmp_path: Path, body: str, said: list[str]):
    assert [each.content for each in blocks(opened(tmp_path / "a.rtf", body))] == said


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (r"\trowd\cellx100\cellx200 a\cell\intbl b\par c\row", "<tr><td>a</td><td>b<br>c</td></tr>"),
        (r"\trowd\cellx9\intbl a\cell\row b\cell\row", "<tr><td>a</td></tr><tr><td>b</td></tr>"),
        (r"\trowd\cellx9\cellx99\intbl a\cell\cell\cell\cell\row", "<tr><td>a</td><td></td></tr>"),
        (r"\trowd\cellx9\intbl a\cell\pard\par ", "<tr><td>a</td></tr>"),
        (
            r"\trowd\trhdr\cellx500\cellx900 a\cell b\cell\row\trowd\cellx910 c\cell\row",
            '<thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td colspan="2">c</td></tr></tbody>',
        ),
        (
            r"\trowd\clvmgf\cellx500\clmgf\cellx900\clmrg\cellx1300 a\cell b\cell c\cell\row"
            r"\trowd\clvmrg\cellx500\cellx900\cellx1300 d\cell e\cell f\cell\row",
            '<tr><td rowspan="2">a<br>d</td><td colspan="2">b<br>c</td></tr><tr><td>e</td><td>f</td></tr>',
        ),
        (
            r"\trowd\cellx100\cellx200{\listtext 1.\tab}\intbl\cell\itap2{\listtext 2.\tab}a\par{\listtext 3.\tab}b"
            r"\nestcell{\*\nesttableprops\nestrow}\itap1\cell\row",
            "<tr><td>1.</td><td>2. a<br>3. b</td></tr>",
        ),
        (
            r"\trowd\cellx1\intbl a\par\itap2 b\nestcell c\nestcell{\*\nesttableprops\trowd\cellx9\nestrow}"
            r"{\nonesttables\par}\itap1{\listtext 1.\tab}d{\footnote e}\cell\row",
            "<tr><td>a<br>b c<br>1. d</td></tr>",
        ),
    ],
)
def test_tables(tmp_path: Path, body: str, rows: str):
    found = blocks(opened(tmp_path / "a.rtf", rf"Before\par {body}\pard After\par"))
    contents = [each.content for each in found if each.label is not Label.FOOTNOTE]
    assert contents == ["Before", f"<table>{rows}</table>", "After"]


def test_what_is_not_read_is_named(tmp_path: Path):
    body = "\0" r"\f1\'98{\v a}{\v b}{\object{\*\objdata 0}}\'8f\par"
    part = opened(tmp_path / "a.rtf", body).parts[0]
    assert part.notes == ["not read: 1 hidden run", "not read: 1 embedded object"]
    assert part.warnings == ["2 characters cannot be decoded", "the file is damaged: 1 control character"]


def test_a_file_that_is_cut_off_or_continues(tmp_path: Path):
    cut, further = ["the file is cut off"], ["text follows the end of the document; it is read, too"]
    for body, end, warnings in (("{\\b A}", "", cut), ("A", "}\0\r\n", []), ("A", "}{\\rtf1 B}", further)):
        document = opened(tmp_path / "a.rtf", body, end)
        assert document.parts[0].warnings == warnings
    assert [each.content for each in blocks(document)] == ["A", "B"]
    assert opened(tmp_path / "a.rtf", "A}B").parts[0].warnings == further
    (tmp_path / "b.rtf").write_bytes(b"no rich text")
    with pytest.raises(CorruptInputError):
        rich_text.read(tmp_path / "b.rtf")
    with pytest.raises(TooLargeError):
        opened(tmp_path / "a.rtf", "{" * 20_000)


def test_damaged_files_are_read_or_refused_and_cut_ones_are_noticed(tmp_path: Path):
    whole = (Path(__file__).parent / "files" / "notice.rtf").read_bytes()
    for seed in range(40):
        data = damaged(whole, seed)
        (tmp_path / "a.rtf").write_bytes(data)
        try:
            document = rich_text.read(tmp_path / "a.rtf")
        except PagemillError:
            continue
        assert whole.rstrip() == data or not whole.startswith(data) or document.parts[0].warnings, seed


def test_the_description_of_a_shape_is_that_of_its_picture(tmp_path: Path):
    picture = rf"{{\sp{{\sn pib}}{{\sv{{\pict\pngblip {made.png().read().hex()}}}}}}}"
    body = rf"{{\shp{{\*\shpinst{picture}{{\sp{{\sn wzDescription}}{{\sv A field}}}}}}}}x\par"
    assert [each.picture.alternative for each in blocks(opened(tmp_path / "a.rtf", body)) if each.picture] == [
        "A field"
    ]
