import io
import struct
import tracemalloc
from pathlib import Path

import pytest
from PIL import Image

from pagemill.errors import CorruptInputError
from pagemill.imaging.decode import decode_image
from pagemill.imaging.tiff import count_pages

PAGES = 5


def tiff(*, big: bool = False) -> bytes:
    buffer = io.BytesIO()
    first, *others = [Image.new("L", (30 + number, 20)) for number in range(PAGES)]
    first.save(buffer, "TIFF", save_all=True, append_images=others, big_tiff=big)
    return buffer.getvalue()


def directories(data: bytes) -> list[int]:
    """Places of the image file directories of a little-endian TIFF."""
    places = [*struct.unpack_from("<I", data, 4)]
    while True:
        (entries,) = struct.unpack_from("<H", data, places[-1])
        (place,) = struct.unpack_from("<I", data, places[-1] + 2 + 12 * entries)
        if not place:
            return places
        places.append(place)


@pytest.mark.parametrize("big", [False, True])
def test_whole_files(tmp_path: Path, big: bool):
    data = tiff(big=big)
    assert count_pages(data) == (PAGES, None)
    (tmp_path / "x.tiff").write_bytes(data)
    assert count_pages(tmp_path / "x.tiff") == (PAGES, None)


def test_a_truncated_file_has_the_pages_before_the_cut():
    data = tiff()
    places = directories(data)
    for size in range(places[0] + 1, len(data)):
        whole = sum(place < size for place in places)
        try:
            pages, problem = count_pages(data[:size])
        except CorruptInputError:
            assert whole == 1
            continue
        assert pages in (whole, whole - 1)
        assert pages == PAGES or problem is not None
        if size % 50 == 0 and pages > 1:
            decode_image(data[:size], frame=pages - 2)


@pytest.mark.parametrize("target", [8, 1, 2**32 - 1, 100])
def test_a_chain_that_leads_astray_breaks_off(target: int):
    data = bytearray(tiff())
    place = directories(data)[2]
    (entries,) = struct.unpack_from("<H", data, place)
    struct.pack_into("<I", data, place + 2 + 12 * entries, target)
    pages, problem = count_pages(bytes(data))
    assert (pages, problem is None) == (3, False)


@pytest.mark.parametrize("entries", [0, 3, 0xFFFF])
def test_a_damaged_directory_breaks_the_chain_off(entries: int):
    data = bytearray(tiff())
    struct.pack_into("<H", data, directories(data)[2], entries)
    assert count_pages(bytes(data))[1] is not None


def test_a_file_without_a_page_is_corrupt():
    for data in (b"II*\0", b"II*\0\0\0\0\0", b"MM\0*\0\0\0\x08", b"II+\0\x08\0\0\0"):
        with pytest.raises(CorruptInputError):
            count_pages(data)


def test_strips_that_overlap_do_not_fill_the_memory():
    """Each of 400 strips is all of the file, by its tags."""
    strips = 400
    buffer = io.BytesIO()
    Image.effect_noise((200, strips), 90).convert("1").save(buffer, "TIFF", compression="group4")
    data = bytearray(buffer.getvalue()) + bytes(100_000)
    (first,) = directories(bytes(data))
    (entries,) = struct.unpack_from("<H", data, first)
    tags = {tag: rest for tag, *rest in struct.iter_unpack("<HHII", data[first + 2 : first + 2 + 12 * entries])}
    for tag, value in ((273, 8), (279, 100_000)):
        tags[tag] = [4, strips, len(data)]
        data += struct.pack(f"<{strips}I", *[value] * strips)
    tags[278] = [4, 1, 1]
    struct.pack_into("<I", data, 4, len(data))
    data += struct.pack("<H", entries) + b"".join(struct.pack("<HHII", tag, *rest) for tag, rest in tags.items())
    tracemalloc.start()
    try:
        decode_image(bytes(data + bytes(4)))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("big", [False, True])
def test_a_page_without_a_width_costs_no_other(big: bool):
    data = bytearray(tiff(big=big))
    number, offset, entry = ("<Q", "<Q", 20) if big else ("<H", "<I", 12)
    place = struct.unpack_from(offset, data, 8 if big else 4)[0]
    for _ in range(2):
        (entries,) = struct.unpack_from(number, data, place)
        behind = place + struct.calcsize(number) + entry * entries
        (place,) = struct.unpack_from(offset, data, behind)
    struct.pack_into("<H", data, place + struct.calcsize(number), 255)  # the tag of the width is another one
    assert count_pages(bytes(data)) == (PAGES, None)
    with pytest.raises(CorruptInputError):
        decode_image(bytes(data), frame=2)
    assert decode_image(bytes(data), frame=4).pixels.shape == (20, 34, 3)


@pytest.mark.parametrize("between", [b"", b"\n", bytes(4096)])
def test_a_tiff_behind_another_one_is_named(between: bytes):
    assert count_pages(tiff() + between + tiff(big=True)) == (PAGES, "another TIFF follows its end")
    buffer = io.BytesIO()
    Image.new("L", (30, 20)).save(buffer, "TIFF")
    assert count_pages(tiff() + b"Exif\0\0" + buffer.getvalue()).problem is None
    assert count_pages(tiff() + b"II*\0" * 9).problem is None


@pytest.mark.parametrize("length", [0, 100, None])
def test_short_byte_counts_of_uncompressed_data_are_a_warning(length: int | None):
    buffer = io.BytesIO()
    Image.effect_noise((50, 40), 90).save(buffer, "TIFF")
    data = bytearray(buffer.getvalue())
    (first,) = directories(bytes(data))
    (entries,) = struct.unpack_from("<H", data, first)
    for place in range(first + 2, first + 2 + 12 * entries, 12):
        if struct.unpack_from("<H", data, place)[0] == 279 and length is not None:
            struct.pack_into("<I", data, place + 8, length)
    found = [warning.category for warning in decode_image(bytes(data)).warnings]
    assert found == ([] if length is None else ["corrupt"])
