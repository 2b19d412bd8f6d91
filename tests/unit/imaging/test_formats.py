import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pagemill.imaging.formats import SUFFIXES, FileFormat, sniff


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


@given(st.binary(max_size=64))
def test_any_bytes_get_an_answer(head: bytes):
    sniff(head)


def test_every_format_is_an_image_a_table_or_a_pdf():
    assert all(f.is_image + f.is_table + (f is FileFormat.PDF) == 1 for f in FileFormat)
    assert set(SUFFIXES.values()) <= set(FileFormat)


@pytest.mark.parametrize("suffix", [".jfif", ".jpe"])
def test_every_usual_suffix_of_a_jpeg_promises_one(suffix: str):
    assert SUFFIXES[suffix] is FileFormat.JPEG
