"""Damage that PDFium does not tell of: cut content, pages beyond the count."""

from __future__ import annotations

import io
import re
import zlib
from typing import TYPE_CHECKING

import pikepdf
import pytest
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


def one_page(path: Path, content: bytes, filters: str | None = "/FlateDecode", *, image: bytes | None = None) -> Path:
    """A PDF of one page with this content stream as it is, and a JPEG on it."""
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
