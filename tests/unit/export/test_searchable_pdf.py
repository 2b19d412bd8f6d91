"""PDFs with invisible text, read by PDFium: another program than the one that wrote them."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pikepdf
import pypdfium2 as pdfium
import pytest
from pikepdf import Dictionary, Name, Stream
from synthetic_run import page, region

from pagemill.document.labels import Label
from pagemill.document.page import PageResult, TextLine, Word
from pagemill.errors import CorruptInputError, EncryptedError
from pagemill.export import pdf_content_size
from pagemill.export.pdf_content_size import is_small
from pagemill.export.pdf_images import of_pixels
from pagemill.export.searchable_pdf import CopiedPdf, ImagePdf

WHITE = of_pixels(np.full((700, 500, 3), 255, dtype=np.uint8))
SIZE = 180, 252
"""Of a page of it in points, at 200 dpi."""


def line(text: str, box: tuple[float, float, float, float], **fields: Any) -> TextLine:
    return TextLine(text=text, box=box, **fields)


def record(*lines: TextLine, number: int = 1, **fields: Any) -> PageResult:
    made = page("d", number, [region(0, Label.TEXT, "content", lines=lines)], text_source="ocr", **fields)
    return msgspec.structs.replace(made, width=500, height=700)


def of_images(path: Path, *records: PageResult) -> pdfium.PdfDocument:
    pdf = ImagePdf(path.with_suffix(""), "A title")
    for place, each in enumerate(records):
        pdf.add(place, WHITE, each)
    pdf.save(path)
    return opened(path)


def opened(path: Path, password: str | None = None) -> pdfium.PdfDocument:
    with pikepdf.open(path, password=password or "") as pdf:
        assert pdf.check_pdf_syntax() == []
    return pdfium.PdfDocument(path, password=password)


def text_of(document: pdfium.PdfDocument, index: int = 0) -> str:
    return document[index].get_textpage().get_text_range()


def words(text: str) -> list[str]:
    return text.split()


def place_of(document: pdfium.PdfDocument, text: str) -> tuple[float, ...]:
    """Where a text is marked, in pixels of the record."""
    textpage = document[0].get_textpage()
    start, count = textpage.search(text).get_next()
    boxes = np.array([textpage.get_charbox(start + index, loose=True) for index in range(count)])
    x1, y1, x2, y2 = *boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)
    scale = 500 / SIZE[0]
    return tuple(float(value) for value in (x1 * scale, 700 - y2 * scale, x2 * scale, 700 - y1 * scale))


def test_lines_are_found_where_they_stand_and_show_nothing(tmp_path: Path) -> None:
    parts = (Word("The", (50, 102, 110, 128)), Word("mill", (130, 100, 180, 130)))
    first = line("The mill", (50, 100, 180, 130), words=parts)
    second = line("문서의 단어 𠀋", (50, 200, 350, 240))
    document = of_images(tmp_path / "x.pdf", record(first, second))
    assert words(text_of(document)) == ["The", "mill", "문서의", "단어", "𠀋"]
    assert document[0].get_size() == pytest.approx(SIZE, abs=0.5)
    assert place_of(document, "mill") == pytest.approx((130, 100, 180, 130), abs=2)
    assert place_of(document, "단어") == pytest.approx((200, 200, 275, 240), abs=30)
    assert (document[0].render(scale=1).to_numpy() == 255).all()
    assert document.get_metadata_dict()["Title"] == "A title"


def test_slanted_lines_keep_their_order(tmp_path: Path) -> None:
    """On a page scanned askew a line ends as low as the next one but one begins."""
    slope = math.tan(math.radians(4))
    lines = []
    for number in range(12):
        top = 60 + 20 * number
        corners = ((20, top), (480, top + 460 * slope), (480, top + 18 + 460 * slope), (20, top + 18))
        placed = tuple(
            Word(f"w{number}x{index}", (x, top + (x - 20) * slope, x + 80, top + 18 + (x + 60) * slope))
            for index, x in enumerate(range(20, 480, 92))
        )
        text = " ".join(word.text for word in placed)
        lines.append(line(text, (20, top, 480, top + 18 + 460 * slope), polygon=corners, words=placed))
    document = of_images(tmp_path / "x.pdf", record(*lines))
    assert words(text_of(document)) == [word.text for each in lines for word in each.words]


def test_text_from_right_to_left_is_read_in_logical_order(tmp_path: Path) -> None:
    parts = [("אישר", 400), ("את", 340), ("218", 280), ("תחנות", 180), ("(חדשות).", 60)]
    placed = tuple(Word(text, (x, 100, x + 14 * len(text), 130)) for text, x in parts)
    document = of_images(
        tmp_path / "x.pdf", record(line(" ".join(text for text, _ in parts), (60, 100, 456, 130), words=placed))
    )
    assert words(text_of(document)) == [text for text, _ in parts]
    assert place_of(document, "תחנות") == pytest.approx((180, 100, 250, 130), abs=3)


def test_vertical_lines_run_down_the_page(tmp_path: Path) -> None:
    columns = [line("下流域の水質", (400, 50, 440, 290)), line("地域の図書館", (340, 50, 380, 290))]
    document = of_images(tmp_path / "x.pdf", record(*columns))
    assert words(text_of(document)) == [column.text for column in columns]
    assert place_of(document, "図書館") == pytest.approx((340, 170, 380, 290), abs=3)


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_pages_that_were_turned_to_be_read_look_as_before(tmp_path: Path, rotation: int) -> None:
    lines = [line(f"line {number} here", (50, 50 * number, 250, 50 * number + 30)) for number in range(1, 9)]
    turned = record(*lines, rotation=rotation)
    if rotation != 180:
        turned = msgspec.structs.replace(turned, width=700, height=500)
    document = of_images(tmp_path / "x.pdf", turned)
    assert words(text_of(document)) == " ".join(each.text for each in lines).split()
    assert document[0].get_rotation() == 0
    x1, y1, _, y2 = place_of(document, "line 8")
    assert {90: y1 > 500, 180: x1 > 300, 270: y2 < 200}[rotation]


def test_text_of_any_kind_is_no_danger(tmp_path: Path) -> None:
    wild = ["\x00(\\) Tj ET\n", "\ud800", "", "a" * 10_000, "".join(map(chr, range(0x3000, 0xD000, 7)))]
    lines = [line(text, (10, 10, 400, 20)) for text in wild]
    lines += [line("flat", (10, 10, 10, 10)), line("far", (-1e7, 5, 1e7, 6))]
    document = of_images(tmp_path / "x.pdf", record(*lines))
    assert "(\\)" in text_of(document)


def test_parts_of_a_long_document_are_put_together_in_order(tmp_path: Path) -> None:
    pdf = ImagePdf(tmp_path / "x", "title")
    for place in (2, 0, 3, 1):
        pdf.add(place, WHITE, record(line(f"page {place}", (50, 50, 150, 80))))
        assert pdf.pending
        pdf.flush()
        assert not pdf.pending
    pdf.save(tmp_path / "x.pdf")
    document = opened(tmp_path / "x.pdf")
    assert [text_of(document, index).strip() for index in range(4)] == [f"page {place}" for place in range(4)]
    assert [path.name for path in tmp_path.iterdir()] == ["x.pdf"]


def a_pdf(path: Path, content: bytes, *, pages: int = 2, **save: Any) -> Path:
    with pikepdf.new() as pdf:
        font = pdf.make_indirect(Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica))
        form = Stream(pdf, b"BT 3 Tr /F 9 Tf 20 60 Td (formed) Tj ET")
        form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, [0, 0, 200, 200]
        form.Resources = Dictionary(Font=Dictionary(F=font))
        shared = pdf.make_indirect(Dictionary(Font=Dictionary(F=font), XObject=Dictionary(X=form)))
        for _ in range(pages):
            sheet = pdf.add_blank_page(page_size=(252, 360))
            sheet.obj.Resources = shared
            sheet.obj.Contents = Stream(pdf, content)
        pdf.save(path, **save)
    return path


OWN = b"q 2 0 0 2 0 0 cm BT /F 9 Tf 10 80 Td (shown) Tj ET BT /F 9 Tf 3 Tr 10 50 Td (hidden) Tj 0 Tr ET /X Do"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("text-layer", ["shown", "hidden", "formed"]),
        ("", ["shown", "hidden", "formed"]),
        ("ocr", ["read", "anew"]),
        ("text-layer+ocr", ["anew", "shown"]),
    ],
)
def test_what_is_read_again_is_not_there_twice(tmp_path: Path, source: str, expected: list[str]) -> None:
    path = a_pdf(tmp_path / "in.pdf", OWN)
    before = pdfium.PdfDocument(path)[0].render().to_numpy()
    lines = [line("read", (50, 100, 150, 130), engine="text-layer"), line("anew", (50, 200, 150, 230))]
    pdf = CopiedPdf(path, None)
    pdf.add(0, msgspec.structs.replace(record(*lines), text_source=source))
    pdf.add(1, msgspec.structs.replace(record(), text_source="text-layer"))
    pdf.save(tmp_path / "out.pdf")
    document = opened(tmp_path / "out.pdf")
    assert sorted(words(text_of(document))) == sorted(expected)
    assert words(text_of(document, 1)) == ["shown", "hidden", "formed"]
    assert (document[0].render().to_numpy() == before).all()


@pytest.mark.parametrize(
    "content",
    [
        b"BT 12 TL /F 9 Tf 10 80 Td 3 Tr (hidden) Tj 0 Tr (shown) Tj ET",
        b"BT 12 TL /F 9 Tf 10 80 Td 3 Tr [(hid) -900 (den)] TJ 0 Tr [(sh) 50 (own)] TJ 9 0 Td (below) Tj ET",
        b'BT 12 TL /F 9 Tf 10 80 Td 3 Tr 4 3 (hidden) " 0 Tr ( sh own) Tj T* (be low) Tj ET',
        b"BT 12 TL /F 9 Tf 10 80 Td 3 Tr (hidden) ' 0 Tr (shown) ' 3 Tr (gone) Tj ET",
        b"BT 12 TL /G 9 Tf 10 80 Td 3 Tr <00480049> Tj 0 Tr /F 9 Tf (shown) Tj ET",
    ],
)
def test_visible_text_stays_where_it_is_when_invisible_text_goes(tmp_path: Path, content: bytes) -> None:
    path = a_pdf(tmp_path / "in.pdf", content, pages=1)
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        simple = Dictionary(Type=Name.Font, Subtype=Name.CIDFontType2, BaseFont=Name.Nowhere, DW=700)
        simple.CIDSystemInfo = Dictionary(Registry=b"Adobe", Ordering=b"Identity", Supplement=0)
        composite = Dictionary(Type=Name.Font, Subtype=Name.Type0, BaseFont=Name.Nowhere)
        composite.Encoding, composite.DescendantFonts = Name("/Identity-H"), [pdf.make_indirect(simple)]
        pdf.pages[0].obj.Resources.Font.G = pdf.make_indirect(composite)
        pdf.save(path)
    before = pdfium.PdfDocument(path)[0].render(scale=3).to_numpy()
    expected = "".join(words(text_of(opened(path))))
    for hidden in ("hidden", "gone", "HI"):
        expected = expected.replace(hidden, "")
    pdf = CopiedPdf(path, None)
    there = record(line("there", (50, 200, 150, 230), engine="text-layer"))
    pdf.add(0, msgspec.structs.replace(there, text_source="text-layer+ocr"))
    assert pdf.with_own_text == []
    pdf.save(tmp_path / "out.pdf")
    document = opened(tmp_path / "out.pdf")
    assert (document[0].render(scale=3).to_numpy() == before).all()
    assert "".join(words(text_of(document))) == expected


def test_exporting_an_export_adds_nothing(tmp_path: Path) -> None:
    path, sizes = a_pdf(tmp_path / "0.pdf", b"q BT /F 9 Tf 3 Tr 10 50 Td (old) Tj ET Q /X Do", pages=1), []
    for number in (1, 2, 3):
        pdf = CopiedPdf(path, None)
        pdf.add(0, record(line("anew", (50, 200, 150, 230))))
        pdf.save(path := tmp_path / f"{number}.pdf")
        sizes.append(path.stat().st_size)
        assert words(text_of(opened(path))) == ["anew"]
        with pikepdf.open(path) as written:
            assert "/PagemillText-silent" not in written.pages[0].obj.Resources.Font
    assert max(sizes) - min(sizes) < 100, sizes


def test_a_page_of_huge_content_keeps_its_own_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take gigabytes to decode it, or to take it apart."""
    small = a_pdf(tmp_path / "in.pdf", OWN, pages=1)
    with pikepdf.open(small) as pdf:
        page = pdf.pages[0].obj
        assert is_small(page)
        size = len(OWN) + len(page.Resources.XObject.X.read_bytes())
        for limit in ("_MAX_DECODED", "_MAX_WITH_TEXT"):
            with monkeypatch.context() as patch:
                patch.setattr(pdf_content_size, limit, size)
                assert is_small(page)
                patch.setattr(pdf_content_size, limit, size - 1)
                assert not is_small(page)
    path = a_pdf(tmp_path / "in.pdf", OWN + b" " * 2**23, pages=1)
    pdf = CopiedPdf(path, None)
    pdf.add(0, record(line("anew", (50, 200, 150, 230))))
    assert pdf.with_own_text == [0]
    pdf.save(tmp_path / "out.pdf")
    assert sorted(words(text_of(opened(tmp_path / "out.pdf")))) == ["anew", "formed", "hidden", "shown"]


def test_the_page_may_be_turned_cut_and_anywhere(tmp_path: Path) -> None:
    path = a_pdf(tmp_path / "in.pdf", b"", pages=1)
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        sheet = pdf.pages[0].obj
        sheet.MediaBox, sheet.CropBox, sheet.Rotate = [300, 500, -100, -100], [-50, 0, 202, 180], 270
        pdf.save(path)
    pdf = CopiedPdf(path, None)
    pdf.add(0, record(line("corner", (0, 0, 200, 70))))  # 500 x 700 pixels of 180 x 252 points
    pdf.save(tmp_path / "out.pdf")
    document = opened(tmp_path / "out.pdf")
    textpage = document[0].get_textpage()
    left, bottom, right, top = textpage.get_charbox(0, loose=True)
    assert (right, top) == pytest.approx((202, 180), abs=1)  # the corner that is shown at the top left
    assert (left, bottom) == pytest.approx((202 - 25.2, 180 - 12), abs=1)


def test_pages_that_are_not_added_are_left_out(tmp_path: Path) -> None:
    pdf = CopiedPdf(a_pdf(tmp_path / "in.pdf", OWN, pages=5), None)
    for index in (3, 1):
        pdf.add(index, record(line(f"page{index}", (50, 50, 150, 80))))
    with pytest.raises(CorruptInputError, match="page 6 "):
        pdf.add(5, record())
    pdf.save(tmp_path / "out.pdf")
    document = opened(tmp_path / "out.pdf")
    assert [text_of(document, index).strip() for index in range(len(document))] == ["page1", "page3"]


def test_an_encrypted_document_stays_encrypted(tmp_path: Path) -> None:
    encryption = pikepdf.Encryption(owner="owner", user="user")
    path = a_pdf(tmp_path / "in.pdf", OWN, encryption=encryption)
    for password in (None, "wrong"):
        with pytest.raises(EncryptedError):
            CopiedPdf(path, password)
    pdf = CopiedPdf(path, "user")
    pdf.add(0, record(line("secret", (50, 50, 150, 80))))
    pdf.save(tmp_path / "out.pdf")
    assert text_of(opened(tmp_path / "out.pdf", "user")).strip() == "secret"
    with pytest.raises(pikepdf.PasswordError):
        pikepdf.open(tmp_path / "out.pdf")
    CopiedPdf(a_pdf(tmp_path / "plain.pdf", OWN), "user").close()


def test_what_is_no_pdf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.pdf").write_bytes(b"nothing of the kind")
    with pytest.raises(CorruptInputError):
        CopiedPdf(tmp_path / "in.pdf", None)


def test_forms_that_hold_themselves_have_an_end(tmp_path: Path) -> None:
    path = a_pdf(tmp_path / "in.pdf", OWN, pages=1)
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        form = pdf.pages[0].obj.Resources.XObject.X
        form.Resources.XObject = Dictionary(Self=form)
        pdf.save(path)
    pdf = CopiedPdf(path, None)
    pdf.add(0, record(line("new", (50, 50, 150, 80))))
    pdf.save(tmp_path / "out.pdf")
    assert words(text_of(opened(tmp_path / "out.pdf"))) == ["new"]


def test_the_size_of_a_page_comes_from_its_resolution(tmp_path: Path) -> None:
    shrunk = msgspec.structs.replace(record(), width=250, height=350, scale=0.5, dpi=50.0)
    document = of_images(tmp_path / "x.pdf", shrunk, msgspec.structs.replace(record(), dpi=72.5), record(dpi=1e-3))
    sizes = [document[index].get_size() for index in range(3)]
    assert sizes[0] == pytest.approx((360, 504))  # 500 x 700 pixels at 100 dpi
    assert sizes[1] == pytest.approx((496.6, 695.2), abs=0.1)
    assert max(sizes[2]) == pytest.approx(14_400)


@pytest.mark.parametrize(
    "place",
    [((20, 60, 20, 60), None), ((20, 60, 80, 60), None), ((20, 60, 80, 80), ((20, 60),) * 4)],
    ids=["a point", "no height", "a polygon that is a point"],
)
def test_a_line_without_extent_is_there(tmp_path: Path, place: tuple[Any, Any]) -> None:
    box, polygon = place
    document = of_images(tmp_path / "x.pdf", record(line("mill", box, polygon=polygon)))
    assert words(text_of(document)) == ["mill"]


def test_a_page_without_new_text_gets_no_font(tmp_path: Path) -> None:
    path = a_pdf(tmp_path / "in.pdf", OWN)
    pdf = CopiedPdf(path, None)
    for index in range(2):
        pdf.add(index, msgspec.structs.replace(record(), regions=[]))
    pdf.save(tmp_path / "out.pdf")
    with pikepdf.open(tmp_path / "out.pdf") as saved:
        fonts = [list(page.Resources.get("/Font", pikepdf.Dictionary()).keys()) for page in saved.pages]
    assert "/PagemillText" not in set().union(*fonts)
