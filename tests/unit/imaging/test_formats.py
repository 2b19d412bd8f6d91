import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pagemill.imaging.formats import SUFFIXES, FileFormat, foreign_format, is_document, sniff


@pytest.mark.parametrize("name", ["png", "jpeg", "webp", "bmp", "tiff"])
def test_images_are_told_by_their_bytes(name: str):
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, name)
    assert sniff(buffer.getvalue()) is FileFormat(name)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"%PDF-1.7\n", FileFormat.PDF),
        (b"\n\njunk before %PDF-1.4", FileFormat.PDF),
        (b"PAR1\x15", FileFormat.PARQUET),
        (b"ARROW1\0\0\xff", FileFormat.ARROW_FILE),
        (b"\xff\xff\xff\xff\x10\0\0\0", FileFormat.ARROW_STREAM),
        (b"BM, a letter about BMW", None),
        (b"", None),
        (b"RIFF0000WAVE", None),
    ],
)
def test_heads(head: bytes, expected: FileFormat | None):
    assert sniff(head) is expected


OLE, ZIP = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PK\x03\x04"


@pytest.mark.parametrize(
    ("head", "suffix", "expected"),
    [
        (b"", ".pages", ".pages"),
        (ZIP + b"...letter.txt", ".dat", ".zip"),
        (b"GIF89a", ".x", ".gif"),
        (b"What is it?", ".dat", None),
    ],
)
def test_formats_of_others_are_told_by_suffix_or_content(head: bytes, suffix: str, expected: str | None):
    assert foreign_format(head, suffix) == expected
    assert sniff(head) is None


@given(st.binary(max_size=64))
def test_any_bytes_get_an_answer(head: bytes):
    sniff(head)


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (OLE, "a.hwp", True),
        (OLE, "a", True),  # which kind its directory tells
        (ZIP + b"...[Content_Types].xml...word/document.xml", "a.tmp", True),
        (ZIP + b"...mimetypeapplication/hwp+zip", "a", True),
        (ZIP + b"...letter.txt", "a.dat", False),
        (b"damaged", "a.docx", True),  # its reader says so
        (b"a,b", "a.CSV", True),
        (b"\xef\xbb\xbf\n<!DOCTYPE html><html>", "document", True),
        (b"What is it?", "a.dat", False),
    ],
)
def test_documents_are_told_by_name_or_content(head: bytes, name: str, expected: bool):
    assert is_document(head, name) is expected


def test_every_format_is_an_image_a_table_a_document_or_a_pdf():
    assert all(f.is_image + f.is_table + (f in (FileFormat.PDF, FileFormat.DOCUMENT)) == 1 for f in FileFormat)
    assert set(SUFFIXES.values()) <= set(FileFormat)


@pytest.mark.parametrize("suffix", [".jfif", ".jpe"])
def test_every_usual_suffix_of_a_jpeg_promises_one(suffix: str):
    assert SUFFIXES[suffix] is FileFormat.JPEG
