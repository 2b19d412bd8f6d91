"""Pages of odd sizes, content that PDFium leaves out, portfolios: what is read, and what a warning says."""

import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from pagemill.errors import TooLargeError
from pagemill.imaging import pdf, pdf_damage, text_layer
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import DecodedPage, PdfInfo
from pagemill.imaging.pdf import describe, iso_date, open_pdf, render_page

WORDS = "(The mill by the river) Tj"
NOISE = np.random.default_rng(0).integers(0, 255, (90, 100), np.uint8)
"""Samples of a grey image."""


def made(path: Path, content: str, image: dict[str, Any] | None = None, **keys: Any) -> Path:
    """A PDF of one page with this content, /F1 being Helvetica and /I an image of ``NOISE``, and with these keys."""
    with pikepdf.new() as pdf:
        page = pdf.add_blank_page(page_size=(200, 200)).obj
        helvetica = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica)
        noise = {"data": NOISE.tobytes(), "Width": 100, "Height": 90, "BitsPerComponent": 8} | (image or {})
        stream = pdf.make_stream(noise.pop("data"), Type=Name.XObject, Subtype=Name.Image, **noise)
        page.Resources = Dictionary(Font=Dictionary(F1=helvetica), XObject=Dictionary(I=stream))
        page.Contents = pdf.make_stream(content.encode())
        for key, value in keys.items():
            page[f"/{key}"] = value
        pdf.save(path, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return path


def rendered(path: Path) -> tuple[DecodedPage, PdfInfo]:
    document = open_pdf(path, None)
    try:
        return render_page(document, 0, DecodeLimits()), describe(document)
    finally:
        document.close()


def text(size: float = 12, at: str = "40 100") -> str:
    return f"BT /F1 {size} Tf {at} Td {WORDS} ET"


IMAGE = "q 100 0 0 90 20 20 cm /I Do Q"


@pytest.mark.parametrize("unit", [75, 75.5])
def test_a_page_in_large_units_is_rendered_as_large_as_it_is(tmp_path: Path, unit: float):
    page, info = rendered(made(tmp_path / "a.pdf", text(0.2, "1 4"), MediaBox=[0, 0, 8, 10], UserUnit=unit))
    assert info.sizes == ((8 * unit, 10 * unit),)
    assert page.pixels.shape[0] == pytest.approx(10 * unit / 72 * 200, abs=1)
    assert page.dpi == 200
    assert page.warnings == ()


@pytest.mark.parametrize("unit", [-3, 0, 0.5, 1e9, Name.Large, "75"])
def test_a_unit_that_is_none_is_a_point(tmp_path: Path, unit: Any):
    page, info = rendered(made(tmp_path / "a.pdf", text(), UserUnit=unit))
    assert info.sizes == ((200, 200),)
    assert page.warnings == ()


@pytest.mark.parametrize("box", [[0, 0, 9_000_000, 9_000_000], [-9_000_000, -9_000_000, 0, 0], [0, 0, 9_000_000, 200]])
@pytest.mark.parametrize("content", [text(), IMAGE])
def test_a_page_on_which_nothing_can_be_seen_fails(tmp_path: Path, content: str, box: list[float]):
    with pytest.raises(TooLargeError, match="page 1 has 9,000,000 x"):
        rendered(made(tmp_path / "a.pdf", content, MediaBox=box))


@pytest.mark.parametrize(
    ("box", "categories"),
    [
        ([0, 0, 100_000, 100_000], ["too_large"]),
        ([0, 0, 5_000, 5_000], []),
        ([0, 0, 1, 1], ["too_small", "outside"]),
        ([0, 100, 200, 102], ["too_small"]),
        ([5_000, 5_000, 5_200, 5_200], ["outside"]),
        ([200, 200, 0, 0], []),
        ([-200, -200, 200, 200], []),
    ],
)
@pytest.mark.parametrize("content", [text(), IMAGE.replace("20 20", "40 95")])
def test_a_page_whose_box_does_not_fit_its_content_has_a_warning(
    tmp_path: Path, content: str, box: list[float], categories: list[str]
):
    page, _ = rendered(made(tmp_path / "a.pdf", content, MediaBox=box))
    assert [warning.category for warning in page.warnings] == categories
    assert page.text_layer is not None
    if content == text() and not {"too_small", "outside"}.intersection(categories):
        assert [line.text for line in page.text_layer.lines] == ["The mill by the river"]


def test_text_in_the_margins_that_a_crop_box_cuts_off_is_no_loss(tmp_path: Path):
    content = f"{text()} {text(at='40 190')}"
    page, _ = rendered(made(tmp_path / "a.pdf", content, CropBox=[20, 20, 180, 180]))
    assert page.warnings == ()


@pytest.mark.parametrize("box", [[0, 0, 200, 200], [0, 200, 200, 0]])
@pytest.mark.parametrize("content", [text(at="40 190"), IMAGE.replace("20 20", "40 185")])
def test_a_blank_page_with_the_printers_marks_cut_off_is_blank(tmp_path: Path, content: str, box: list[float]):
    page, _ = rendered(made(tmp_path / "a.pdf", content, MediaBox=box, CropBox=[20, 20, 180, 180]))
    assert page.warnings == ()


def test_characters_beyond_the_most_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(text_layer, "_MAX_CHARACTERS", 12)
    page, _ = rendered(made(tmp_path / "a.pdf", text()))
    [warning] = page.warnings
    assert (warning.category, warning.message[:13]) == ("too_large", "9 characters ")


GREY = {"ColorSpace": Name.DeviceGray}
FLATE = {**GREY, "Filter": Name.FlateDecode}
RGB = np.repeat(NOISE, 3, axis=1).tobytes()


@pytest.mark.parametrize(
    ("image", "is_missing"),
    [
        (GREY, False),
        ({**FLATE, "data": zlib.compress(NOISE.tobytes())}, False),
        ({"ColorSpace": Name.DeviceRGB, "data": RGB}, False),
        ({**GREY, "data": NOISE[:-1].tobytes()}, False),
        ({"ImageMask": True, "BitsPerComponent": 1, "data": bytes(13 * 90)}, False),
        ({**GREY, "data": NOISE[:40].tobytes()}, True),
        ({**FLATE, "data": zlib.compress(NOISE[:40].tobytes())}, True),
        ({"ColorSpace": Name.DeviceRGB}, True),
        ({"ColorSpace": Array([Name.Lab, Dictionary(WhitePoint=[1, 1, 1])])}, True),
        ({**GREY, "Filter": Name.JPXDecode, "data": b"\0\0\0\x0cjP  \r\n\x87\n"}, True),
        ({**GREY, "Filter": Name.JBIG2Decode, "data": bytes(40)}, True),
        ({"ColorSpace": Name.Unknown}, True),
    ],
)
def test_an_image_whose_samples_are_missing_is_a_warning(tmp_path: Path, image: dict[str, Any], is_missing: bool):
    page, _ = rendered(made(tmp_path / "a.pdf", f"0 g {IMAGE} {text(at='40 150')}", image))
    assert [warning.category for warning in page.warnings] == ["corrupt"] * is_missing


def test_an_image_that_is_white_is_not_missing(tmp_path: Path):
    white = {**GREY, "data": bytes([255]) * 9000}
    assert rendered(made(tmp_path / "a.pdf", IMAGE, white))[0].warnings == ()


def test_a_huge_image_is_not_decoded_to_tell_whether_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def decoded(_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(pdf, "_MAX_SAMPLES", 8_999)
    monkeypatch.setattr(pdf.pdfium_c, "FPDFImageObj_GetBitmap", decoded)
    white = {**GREY, "data": bytes([255]) * 9000}
    assert not any("AssertionError" in note for note in rendered(made(tmp_path / "a.pdf", IMAGE, white))[0].notes)


def test_the_files_of_a_portfolio_are_not_read_and_a_warning_says_so(tmp_path: Path):
    inner = io.BytesIO(made(tmp_path / "inner.pdf", text()).read_bytes())
    for name, is_portfolio in (("portfolio.pdf", True), ("invoice.pdf", False)):
        with pikepdf.open(made(tmp_path / "cover.pdf", text())) as pdf:
            pdf.attachments["inner.pdf"] = pikepdf.AttachedFileSpec(pdf, inner.getvalue())
            if is_portfolio:
                pdf.Root.Collection = Dictionary(Type=Name.Collection)
            pdf.save(tmp_path / name)
        page, _ = rendered(tmp_path / name)
        said = [warning.message.partition(": ")[2] for warning in page.warnings]
        assert said == ["its 1 attached file is not read"] * is_portfolio


@pytest.mark.parametrize("between", [b"", b"\r\n--B\r\nContent-Disposition: attachment; filename=b.pdf\r\n\r\n"])
def test_a_file_of_two_pdfs_has_a_warning_as_only_one_is_read(
    tmp_path: Path, between: bytes, monkeypatch: pytest.MonkeyPatch
):
    first, second = (made(tmp_path / name, text()).read_bytes() for name in ("a.pdf", "b.pdf"))
    monkeypatch.setattr(pdf_damage, "_CHUNK", len(first) + 3)  # the second one begins in the next chunk or behind it
    joined = tmp_path / "joined.pdf"
    joined.write_bytes(first + between + second)
    (warning,) = rendered(joined)[0].warnings
    assert warning.category == "unsupported"
    assert "only one is read" in warning.message


def test_an_update_in_place_and_embedded_pdfs_are_no_further_files(tmp_path: Path):
    inner = made(tmp_path / "inner.pdf", text()).read_bytes()
    with pikepdf.open(made(tmp_path / "cover.pdf", text())) as pdf:
        for name in ("a.pdf", "b.pdf"):
            pdf.attachments[name] = pikepdf.AttachedFileSpec(pdf, inner)
        pdf.save(tmp_path / "a.pdf", compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    whole = (tmp_path / "a.pdf").read_bytes()
    assert whole.count(inner) == 2
    start = whole[whole.rindex(b"startxref") :].split()[1].decode()
    update = f"99 0 obj\n(an update)\nendobj\nxref\n99 1\n{len(whole):010} 00000 n \n"
    update += f"trailer\n<< /Size 100 /Root 1 0 R /Prev {start} >>\nstartxref\n{len(whole) + 30}\n%%EOF\n"
    (tmp_path / "a.pdf").write_bytes(whole + update.encode())
    assert not rendered(tmp_path / "a.pdf")[0].warnings


def test_outline_labels_language_and_dates_are_read_at_opening(tmp_path):
    path = tmp_path / "document.pdf"
    with pikepdf.new() as pdf:
        for rotation in (0, 90, 0):
            pdf.add_blank_page(page_size=(300, 400)).obj.Rotate = rotation
        name = pikepdf.Name
        with pdf.open_outline() as outline:
            part = pikepdf.OutlineItem("Part\tone", 0, "XYZ", left=0, top=300)
            part.children.append(pikepdf.OutlineItem("Turned", 1, "XYZ", left=150, top=0))
            part.children.append(pikepdf.OutlineItem("Level", 2, "FitH", top=200))
            outline.root.extend([part, pikepdf.OutlineItem("Somewhere", 2)])
        pdf.Root.Lang = pikepdf.String("en-GB")
        style = pikepdf.Dictionary(S=name("/r"))
        pdf.Root.PageLabels = pikepdf.Dictionary(Nums=pikepdf.Array([0, style, 2, pikepdf.Dictionary(S=name("/D"))]))
        pdf.docinfo["/CreationDate"] = "D:20250304050607+01'30'"
        pdf.docinfo["/ModDate"] = "yesterday"
        pdf.save(path)
    with open_pdf(path, None) as document:
        info = describe(document)
    assert [(entry.title, entry.level, entry.page, entry.top) for entry in info.outline] == [
        ("Part one", 1, 1, 250),
        ("Turned", 2, 2, 500),
        ("Level", 2, 3, 500),
        ("Somewhere", 1, 3, None),
    ]
    assert info.page_labels == ("i", "ii", "1")
    assert info.language == "en-GB"
    assert info.metadata["created"] == "2025-03-04T05:06:07+01:30"
    assert "modified" not in info.metadata


def test_an_outline_that_leads_back_into_itself_ends(tmp_path):
    path = tmp_path / "document.pdf"
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        item = pdf.make_indirect(pikepdf.Dictionary(Title=pikepdf.String("Again")))
        item.Next = item.First = item
        pdf.Root.Outlines = pdf.make_indirect(pikepdf.Dictionary(First=item, Last=item))
        pdf.save(path)
    with open_pdf(path, None) as document:
        assert [entry.title for entry in describe(document).outline] == ["Again"]


def test_a_document_without_labels_language_and_outline_tells_none(tmp_path):
    path = tmp_path / "document.pdf"
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        pdf.save(path)
    with open_pdf(path, None) as document:
        info = describe(document)
    assert (info.outline, info.page_labels, info.language) == ((), (), "")


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("D:20250304", "2025-03-04"),
        ("D:2025", "2025"),
        ("20250304050607Z", "2025-03-04T05:06:07Z"),
        ("D:20250304050607-0800", "2025-03-04T05:06:07-08:00"),
        ("D:20251304", ""),
        ("", ""),
    ],
)
def test_dates(written, date):
    assert iso_date(written) == date
