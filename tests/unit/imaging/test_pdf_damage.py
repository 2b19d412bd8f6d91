"""Damage that PDFium does not tell of: cut content, pages beyond the count."""

from __future__ import annotations

import io
import re
import zlib
from typing import TYPE_CHECKING

import pikepdf
import pytest
from made_pdfs import pdf
from PIL import Image

from pagemill.imaging import pdf_damage
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import describe, open_pdf, render_page

if TYPE_CHECKING:
    from pathlib import Path

LINES = b"\n".join(b"BT /F1 12 Tf 72 %d Td (line %d) Tj ET" % (700 - 12 * i, i * 7919) for i in range(50))


def flate(data: bytes, share: float = 1.0, *, flip: int | None = None, checksum: bool = True) -> bytes:
    """Compressed data, cut off or with a bad byte."""
    packed = bytearray(zlib.compress(data))
    if flip is not None:
        packed[flip] ^= 0x55
    return bytes(packed[: int(len(packed) * share) - (0 if checksum else 4)])


def one_page(
    path: Path, content: bytes, filters: str | None = "/FlateDecode", *, image: bytes | None = None, **given: object
) -> Path:
    """A PDF of one page with this content stream as it is, and an image on it, a JPEG unless its entries say else."""
    pdf = pikepdf.new()
    page = pdf.add_blank_page().obj
    page.Contents = pdf.make_stream(content)
    if filters:
        page.Contents.Filter = pikepdf.Name(filters)
    if image is not None:
        picture = pdf.make_stream(image)
        picture.update(
            {
                "/Type": pikepdf.Name.XObject,
                "/Subtype": pikepdf.Name.Image,
                "/Filter": pikepdf.Name.DCTDecode,
                "/Width": 200,
                "/Height": 200,
                "/BitsPerComponent": 8,
                "/ColorSpace": pikepdf.Name.DeviceGray,
                **{f"/{name}": value for name, value in given.items()},
            }
        )
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(I=picture))
    pdf.save(path, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return path


def warnings(path: Path) -> list[str]:
    """Categories of what is wrong with the first page."""
    document = open_pdf(path, None)
    try:
        return [warning.category for warning in render_page(document, 0, DecodeLimits()).warnings]
    finally:
        document.close()


@pytest.mark.parametrize(
    ("content", "filters"),
    [
        (flate(LINES, 0.5), "/FlateDecode"),
        (flate(LINES, flip=5), "/FlateDecode"),
        (flate(LINES, flip=0), "/FlateDecode"),
        (LINES, "/NoSuchDecode"),
    ],
    ids=["cut", "bad byte", "bad header", "unknown filter"],
)
def test_content_that_cannot_be_read_to_its_end_is_a_warning(tmp_path: Path, content: bytes, filters: str):
    assert warnings(one_page(tmp_path / "a.pdf", content, filters)) == ["corrupt"]


@pytest.mark.parametrize(
    ("content", "filters"),
    [(flate(LINES), "/FlateDecode"), (flate(LINES, checksum=False), "/FlateDecode"), (LINES, None), (b"", None)],
    ids=["whole", "without a checksum", "plain", "empty"],
)
def test_sound_content_is_none(tmp_path: Path, content: bytes, filters: str | None):
    assert warnings(one_page(tmp_path / "a.pdf", content, filters)) == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (b"", b"", []),
        (b"0000000185 ", b"0000000009 ", ["corrupt"]),  # PDFium takes it for one that does not exist
        (b"4 0 obj\n<<", b"4 0 obj\n}}", ["corrupt"]),
    ],
    ids=["sound", "not at its place", "damaged"],
)
def test_content_that_is_no_object_for_pdfium_is_a_warning(
    tmp_path: Path, before: bytes, after: bytes, found: list[str]
):
    stream = b"<</Length %d>>stream\n%s\nendstream" % (len(LINES), LINES)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R>>"
    data = pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, stream)
    assert before in data
    (tmp_path / "a.pdf").write_bytes(data.replace(before, after, 1))
    assert warnings(tmp_path / "a.pdf") == found


def test_an_empty_page_without_resources_is_sound(tmp_path: Path):
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>"
    tree = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    (tmp_path / "a.pdf").write_bytes(pdf(b"<</Type/Catalog/Pages 2 0 R>>", tree, page))
    assert warnings(tmp_path / "a.pdf") == []


@pytest.mark.parametrize(("share", "found"), [(1.0, []), (0.5, ["corrupt"])])
def test_an_image_that_breaks_off_is_a_warning(tmp_path: Path, share: float, found: list[str]):
    buffer = io.BytesIO()
    Image.effect_noise((200, 200), 90).save(buffer, "JPEG")
    jpeg = buffer.getvalue()
    content = b"q 500 0 0 500 50 50 cm /I Do Q"
    assert warnings(one_page(tmp_path / "a.pdf", content, None, image=jpeg[: int(len(jpeg) * share)])) == found


def test_an_image_that_lacks_only_its_end_marker_is_whole(tmp_path: Path):
    buffer = io.BytesIO()
    Image.effect_noise((200, 200), 90).save(buffer, "JPEG")
    content = b"q 500 0 0 500 50 50 cm /I Do Q"
    assert warnings(one_page(tmp_path / "a.pdf", content, None, image=buffer.getvalue()[:-2])) == []


@pytest.mark.parametrize("filters", ["/JPXDecode", "/JBIG2Decode", "/DCTDecode"])
@pytest.mark.parametrize("stamp", [b"", b" 72 60 90 12 re f"], ids=["empty", "stamped"])
def test_an_image_that_cannot_be_decoded_is_a_warning(tmp_path: Path, filters: str, stamp: bytes):
    content = b"q 500 0 0 500 50 50 cm /I Do Q" + stamp
    image = b"\xff\x00garb" * 300 + b"\xff\xd9"
    page = one_page(tmp_path / "a.pdf", content, None, image=image, Filter=pikepdf.Name(filters))
    assert warnings(page) == ["corrupt"]


@pytest.mark.parametrize(
    ("lost", "parameters", "found"),
    [
        (0, {}, []),
        (3, {"EndOfBlock": False}, []),
        (500, {}, ["corrupt"]),
    ],
    ids=["whole", "without an end marker, as announced", "cut"],
)
def test_an_image_in_group_4_ends_with_its_marker(
    tmp_path: Path, lost: int, parameters: dict[str, object], found: list[str]
):
    buffer = io.BytesIO()
    Image.effect_noise((200, 200), 90).convert("1").save(buffer, "TIFF", compression="group4", strip_size=2**20)
    with Image.open(buffer) as tiff:
        start, length = tiff.tag_v2[273][0], tiff.tag_v2[279][0]
    fax = buffer.getvalue()[start : start + length - lost]
    page = one_page(
        tmp_path / "a.pdf",
        b"q 500 0 0 500 50 50 cm /I Do Q",
        None,
        image=fax,
        Filter=pikepdf.Name.CCITTFaxDecode,
        BitsPerComponent=1,
        DecodeParms=pikepdf.Dictionary(K=-1, Columns=200, Rows=200, **parameters),
    )
    assert warnings(page) == found


def test_pages_beyond_the_page_count_are_announced(tmp_path: Path):
    pdf = pikepdf.new()
    for _ in range(4):
        pdf.add_blank_page()
    buffer = io.BytesIO()
    pdf.save(buffer, object_stream_mode=pikepdf.ObjectStreamMode.disable)
    path = tmp_path / "a.pdf"
    path.write_bytes(re.sub(rb"/Count 4", b"/Count 2", buffer.getvalue()))
    document = open_pdf(path, None)
    try:
        info = describe(document)
    finally:
        document.close()
    assert (info.page_count, info.announced) == (2, 4)


@pytest.mark.parametrize("error", [RuntimeError("INTERNAL ERROR"), MemoryError()])
@pytest.mark.parametrize(("owner", "name"), [(pikepdf, "open"), (pdf_damage, "_is_sound")])
def test_a_page_is_rendered_whatever_becomes_of_the_check(
    tmp_path: Path, owner: object, name: str, error: Exception, monkeypatch: pytest.MonkeyPatch
):
    path = one_page(tmp_path / "page.pdf", flate(LINES))

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(owner, name, fail)
    with open_pdf(path, None) as document:
        assert describe(document).page_count == 1
        assert not render_page(document, 0, DecodeLimits()).warnings
