"""Documents in general: kinds, extras, pictures, titles, damage, hostile files, passwords."""

from __future__ import annotations

import builtins
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import made_documents as made
import msgspec
import pytest
from hostile import BOMB, FILE, damaged, repacked
from PIL import Image

from pagemill import plugins
from pagemill.document.labels import Label
from pagemill.document.page import Mark
from pagemill.errors import (
    CorruptInputError,
    EncryptedError,
    MissingDependencyError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
)
from pagemill.readers import packages
from pagemill.readers.base import Block, Document, Inline, Part, cell, tables
from pagemill.readers.html import of_markup as load_markup
from pagemill.readers.reading import load, read_document

MADE = {".docx": made.word, ".pptx": made.slides, ".xlsx": made.sheets, ".hwpx": made.hangul, ".epub": made.book}
READERS = {
    ".docx": "docx:read",
    ".pptx": "pptx:read",
    ".xlsx": "hangul:read",
    ".hwpx": "hangul:read",
    ".epub": "epub:read",
}
MAIN = {
    ".docx": "word/document.xml",
    ".pptx": "ppt/slides/slide1.xml",
    ".xlsx": "xl/worksheets/sheet1.xml",
    ".hwpx": "Contents/section0.xml",
    ".epub": "OPS/a.opf",
}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("documents")
    return {suffix: make(folder / f"a{suffix}") for suffix, make in MADE.items()}


def parts_of(path: Path, name: str | None = None, password: str | None = None) -> list[Part]:
    target = path.with_name("parts")
    target.touch()
    read = read_document(path, target, name or path.name, password)
    data, start, parts = target.read_bytes(), 0, []
    for length in read.lengths:
        parts.append(msgspec.msgpack.decode(data[start : start + length], type=Part))
        start += length
    return parts


def text_of(parts: list[Part]) -> str:
    return "\n".join(block.content or "" for part in parts for block in part.blocks)


@pytest.mark.parametrize("suffix", MADE)
def test_damaged_packages_fail_or_say_the_same(documents: dict[str, Path], tmp_path: Path, suffix: str):
    whole, failed = text_of(parts_of(documents[suffix])), 0
    data = documents[suffix].read_bytes()
    for seed in range(32):
        path = tmp_path / f"{seed}{suffix}"
        path.write_bytes(damaged(data, seed))
        try:
            parts = parts_of(path)
        except PagemillError:
            failed += 1
        else:
            assert text_of(parts) == whole or parts[0].warnings, seed
    assert failed > 16


@pytest.mark.parametrize("suffix", MADE)
def test_damaged_markup_in_a_sound_package_raises_nothing_else(documents: dict[str, Path], tmp_path: Path, suffix: str):
    for seed in range(12):
        path = repacked(
            documents[suffix],
            tmp_path / f"{seed}{suffix}",
            lambda name, data, seed=seed: damaged(data, seed) if name == MAIN[suffix] else data,
        )
        try:
            parts_of(path)
        except PagemillError as error:
            assert error.message


@pytest.mark.parametrize("suffix", MADE)
def test_a_member_with_a_wrong_checksum_fails(documents: dict[str, Path], tmp_path: Path, suffix: str):
    with zipfile.ZipFile(documents[suffix]) as archive:
        member = archive.getinfo(MAIN[suffix])
    data = bytearray(documents[suffix].read_bytes())
    place = data.rindex(member.CRC.to_bytes(4, "little"))  # in the directory
    data[place] ^= 1
    path = tmp_path / f"a{suffix}"
    path.write_bytes(data)
    with pytest.raises(CorruptInputError, match=re.escape(MAIN[suffix])):
        parts_of(path)


@pytest.mark.parametrize("suffix", MADE)
@pytest.mark.parametrize("declared", [BOMB, FILE])
def test_entities_are_not_expanded(documents: dict[str, Path], tmp_path: Path, suffix: str, declared: str):
    def changed(name: str, data: bytes) -> bytes:
        if name != MAIN[suffix]:
            return data
        text = re.sub(r"<\?xml[^>]*\?>", "", data.decode())
        return (declared + re.sub(r">([^<>]+)<", r">\1&i;<", text)).encode()

    path = repacked(documents[suffix], tmp_path / f"a{suffix}", changed)
    host = Path("/etc/hostname").read_text(encoding="utf-8").strip() if Path("/etc/hostname").exists() else "-"
    try:
        said = text_of(parts_of(path))
    except PagemillError:
        return
    assert len(said) < 10_000
    assert host == "-" or host not in said


def test_packages_are_bounded(documents: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = repacked(
        documents[".docx"], tmp_path / "a.docx", lambda name, data: bytes(5_000_000) if name.endswith(".png") else data
    )
    monkeypatch.setattr(packages, "MOST_MEMBER", 1_000_000)
    with pytest.raises(TooLargeError, match="unpacked"):
        parts_of(path)
    monkeypatch.setattr(packages, "MOST_ENTRIES", 3)
    with pytest.raises(TooLargeError, match="members"):
        parts_of(documents[".docx"])


def test_a_damaged_picture_costs_no_text(documents: dict[str, Path], tmp_path: Path):
    path = repacked(documents[".docx"], tmp_path / "a.docx", lambda name, data: b"x" if name.endswith(".png") else data)
    (part,) = parts_of(path)
    assert "A claim1" in text_of([part])
    assert part.notes[-1].startswith("1 picture left out")


def test_further_frames_of_a_picture_are_named(documents: dict[str, Path], tmp_path: Path):
    data = io.BytesIO()
    frame = Image.new("L", (60, 40))
    frame.save(data, "TIFF", save_all=True, append_images=[frame])
    path = repacked(
        documents[".docx"], tmp_path / "a.docx", lambda name, old: data.getvalue() if name.endswith(".png") else old
    )
    (part,) = parts_of(path)
    assert part.notes[-1].endswith("only the first of 2 frames is read; 1 left out")


def test_pictures_become_jpegs_and_ornaments_are_left_out(tmp_path: Path):
    from docx import Document as Word

    word = Word()
    for size in ((60, 40), (4, 4)):
        word.add_picture(made.png(size=size))
    word.save(str(tmp_path / "a.docx"))
    (part,) = parts_of(tmp_path / "a.docx")
    (picture,) = (block.picture for block in part.blocks if block.picture)
    assert picture.data.startswith(b"\xff\xd8")


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.hwp"])
def test_an_empty_or_foreign_file_is_damaged(tmp_path: Path, name: str):
    for data in (b"x", b"PK\x03\x04", packages.OLE + bytes(600)):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(PagemillError):
            parts_of(tmp_path / name)


def test_a_zip_of_something_else_is_named(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.bin", "w") as archive:
        archive.writestr("letter.txt", "x")
    with pytest.raises(UnsupportedInputError):
        parts_of(tmp_path / "a.bin")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (
            "a.xls",
            b"<html><table><tr><td>a<td>b</table>",
            "<table><tr><td>a</td><td>b</td></tr></table>",
        ),
        ("a.doc", '\ufeff<html xmlns:o="urn:schemas-microsoft-com:office:spreadsheet"><p>Text'.encode(), "Text"),
        ("a.xls", b"a\tb\n", "<table><thead><tr><th>a</th><th>b</th></tr></thead></table>"),
        ("a.doc", b"Plain text", "Plain text"),
    ],
)
def test_web_pages_and_text_with_the_names_of_old_office_files_are_read(
    tmp_path: Path, name: str, data: bytes, said: str
):
    (tmp_path / name).write_bytes(data)
    assert text_of(parts_of(tmp_path / name)) == said


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("a.doc", b"Date: x\nMIME-Version: 1.0\n", "no web page"),
        (
            "a.xls",
            b'<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>',
            "XML of Excel",
        ),
        ("a.xls", b"\x09\x04\x06\0\0\0", "not an Office file"),
    ],
)
def test_other_files_with_the_names_of_old_office_files_are_named(tmp_path: Path, name: str, data: bytes, what: str):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(PagemillError, match=what):
        parts_of(tmp_path / name)


@pytest.mark.parametrize(
    ("of", "suffix", "kind"),
    [
        (".docx", ".docm", "ms-word.document.macroEnabled"),
        (".docx", ".dotx", "openxmlformats-officedocument.wordprocessingml.template"),
        (".pptx", ".ppsx", "openxmlformats-officedocument.presentationml.slideshow"),
        (".pptx", ".ppsm", "ms-powerpoint.slideshow.macroEnabled"),
        (".xlsx", ".xltm", "ms-excel.template.macroEnabled"),
    ],
)
def test_files_with_macros_shows_and_templates_are_read(
    documents: dict[str, Path], tmp_path: Path, of: str, suffix: str, kind: str
):
    main = re.compile(rb"openxmlformats-officedocument\.\w+\.(?:document|presentation|sheet)\.main")

    def changed(name: str, data: bytes) -> bytes:
        return main.sub(f"{kind}.main".encode(), data) if name == "[Content_Types].xml" else data

    path = repacked(documents[of], tmp_path / f"a{suffix}", changed)
    assert text_of(parts_of(path)) == text_of(parts_of(documents[of]))


@pytest.mark.parametrize(
    ("target", "warnings"), [("../NULL", []), ("#a", []), ("media/gone.png", ["1 part of the file missing"])]
)
def test_relations_that_lead_nowhere_cost_no_text(
    documents: dict[str, Path], tmp_path: Path, target: str, warnings: list[str]
):
    more = f'<Relationship Id="x" Type="{made.LINK}" Target="{target}"/></Relationships>'.encode()
    changed = lambda name, data: data.replace(b"</Relationships>", more) if "document.xml.rels" in name else data  # noqa: E731
    parts = parts_of(repacked(documents[".docx"], tmp_path / "a.docx", changed))
    assert (text_of(parts), parts[0].warnings) == (text_of(parts_of(documents[".docx"])), warnings)


@pytest.mark.parametrize("suffix", [".docx", ".pptx"])
def test_strict_open_xml_is_named(documents: dict[str, Path], tmp_path: Path, suffix: str):
    old, new = b"http://schemas.openxmlformats.org/officeDocument/2006/", b"http://purl.oclc.org/ooxml/officeDocument/"
    path = repacked(documents[suffix], tmp_path / f"a{suffix}", lambda _, data: data.replace(old, new))
    with pytest.raises(UnsupportedInputError, match="Strict Open XML"):
        parts_of(path)


@pytest.mark.parametrize(
    ("suffix", "package", "extra"),
    [(".docx", "docx.package", "office"), (".hwpx", "dochan", "hwp"), (".html", "selectolax.lexbor", "web")],
)
def test_what_is_not_installed_is_named_with_its_extra(
    documents: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, package: str, extra: str
):
    path = documents.get(suffix) or tmp_path / "a.html"
    if suffix == ".html":
        path.write_text("<p>x</p>", encoding="utf-8")
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError) as raised:
        parts_of(path)
    assert f"[{extra}]" in str(raised.value.remedy)


def test_a_password_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.docx").write_bytes(packages.OLE + bytes(600))

    class Locked:
        def __init__(self, _: str) -> None: ...
        def __enter__(self) -> Locked:
            return self

        def __exit__(self, *_: object) -> None: ...
        def exists(self, name: str) -> bool:
            return name == "EncryptedPackage"

    def decrypt(_: Any, password: str | None) -> bytes:
        from dochan.crypto.ooxml import OOXMLCryptoError

        if password != "right":
            raise OOXMLCryptoError("wrong")
        return made.word(tmp_path / "open.docx").read_bytes()

    monkeypatch.setattr("dochan.cfb.OleFileIO", Locked)
    monkeypatch.setattr("dochan.crypto.ooxml.decrypt_ooxml", decrypt)
    with pytest.raises(EncryptedError, match="protected by a password"):
        parts_of(tmp_path / "a.docx")
    with pytest.raises(EncryptedError, match="does not open"):
        parts_of(tmp_path / "a.docx", password="wrong")
    assert "Annual report" in text_of(parts_of(tmp_path / "a.docx", password="right"))


def test_only_the_first_heading_of_the_highest_level_is_the_title(tmp_path: Path):
    (tmp_path / "a.html").write_text("<h1>A</h1><p>x</p><h1>B</h1>", encoding="utf-8")
    (part,) = parts_of(tmp_path / "a.html")
    assert [block.label for block in part.blocks if block.level] == [Label.DOC_TITLE, Label.PARAGRAPH_TITLE]


def test_readers_of_others_are_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reads = lambda path, password: Document(parts=[Part(blocks=[Block(content=path.read_text())])])  # noqa: E731
    monkeypatch.setattr(plugins.Plugin, "load", lambda *_: reads)
    monkeypatch.setattr(plugins, "installed", lambda group: {"foo": plugins.Plugin("foo:read", "")})
    (tmp_path / "a.foo").write_text("bar", encoding="utf-8")
    assert text_of(parts_of(tmp_path / "a.foo")) == "bar"


@pytest.mark.parametrize("make", [made.notice_docx, made.notice_hwpx, made.notice_html])
def test_one_notice_says_the_same_in_each_format(tmp_path: Path, make: Any):
    suffix = {"notice_docx": ".docx", "notice_hwpx": ".hwpx", "notice_html": ".html"}[make.__name__]
    (part,) = parts_of(make(tmp_path / f"notice{suffix}"))
    said = [block.content for block in part.blocks if block.label is not Label.TABLE]
    assert said == [made.NOTICE_TITLE, *made.NOTICE_TEXTS]
    (table,) = (block.content or "" for block in part.blocks if block.label is Label.TABLE)
    assert re.findall(r"<t[dh]>([^<]*)", table) == [text for row in made.NOTICE_ROWS for text in row]


def test_every_own_reader_is_there():
    assert all(callable(load(name)) for name in {*READERS.values(), "html:read_html", "text:read_text"})


def test_text_of_many_pieces_is_collected_in_linear_time():
    inline = Inline()
    for number in range(300_000):  # with a string that grows this took minutes
        inline.add("ab ", [(Mark.BOLD, None)] if not number else ())
    inline.end_line()
    (block,) = inline.blocks()
    assert len(block.content or "") == 3 * 300_000 - 1
    assert [(span.start, span.end) for span in block.spans] == [(0, 2)]


def test_cells_over_all_rows_are_written_in_linear_time():
    rows = "".join("<tr><td rowspan=300>a</td><td>b</td></tr>" for _ in range(300))
    (part,) = load_markup(f"<table>{rows}</table>").parts
    assert (part.blocks[0].content or "").count("<td") > 600


def test_cells_far_from_each_other_are_in_several_tables():
    pieces = list(tables([cell(Inline("x"), number, number) for number in range(700)]))
    assert 2 < len(pieces) < 10 and all(piece.continues for piece in pieces[:-1])
    tall = [cell(Inline("x"), 0, 0, 1200), *(cell(Inline("x"), number, number + 1) for number in range(1100))]
    with pytest.raises(TooLargeError):
        list(tables(tall))
