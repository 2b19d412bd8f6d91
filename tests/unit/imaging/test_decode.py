import functools
import io
import os
import re
import struct
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from pagemill.errors import CorruptInputError, EmptyPageError, MissingInputError, TooLargeError, UnsupportedInputError
from pagemill.imaging.decode import decode_image, decode_reduced, plain_jpeg_size, sound_jpeg, stored_pixels
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.tiff import count_pages

RED, BLUE = (200, 30, 40), (20, 40, 210)


def two_colours(width: int = 64, height: int = 48) -> Image.Image:
    """Red with a blue top-left quarter, by which every orientation shows."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (0, 0, width // 2, height // 2))
    return image


def encoded(image: Image.Image, file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def png_with_header(
    width: int, height: int, bit_depth: int = 1, colour: int = 0, data: bytes = b"", *, interlaced: bool = False
) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, bit_depth, colour, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def close(pixel: np.ndarray, colour: tuple[int, int, int], tolerance: int = 6) -> bool:
    return bool(np.abs(pixel.astype(int) - colour).max() <= tolerance)


@pytest.mark.parametrize(
    ("file_format", "options"),
    [
        ("PNG", {}),
        ("JPEG", {"quality": 95, "subsampling": 0}),
        ("WEBP", {"lossless": True}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
    ],
)
def test_every_format_gives_rgb(file_format: str, options: dict[str, object]):
    page = decode_image(encoded(two_colours(), file_format, **options))
    assert page.pixels.shape == (48, 64, 3)
    assert page.pixels.dtype == np.uint8
    assert page.pixels.flags.c_contiguous
    assert close(page.pixels[2, 2], BLUE)
    assert close(page.pixels[40, 60], RED)
    assert page.scale == 1.0


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "TIFF"])
def test_orientation_is_applied_as_pillow_does_it(orientation: int, file_format: str):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(two_colours(), file_format, exif=exif)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
    page = decode_image(data)
    assert page.pixels.shape == expected.shape
    assert np.abs(page.pixels.astype(int) - expected).max() <= 3


def test_orientation_behind_the_pixels_of_a_png_is_applied():
    exif = Image.Exif()
    exif[0x0112] = 6
    png = encoded(two_colours(), "PNG", exif=exif)
    start = png.index(b"eXIf") - 4
    end = start + 12 + int.from_bytes(png[start : start + 4], "big")
    moved = png[:start] + png[end:-12] + png[start:end] + png[-12:]
    assert decode_image(moved).pixels.shape == (64, 48, 3)
    assert np.array_equal(decode_image(moved).pixels, decode_image(png).pixels)


def test_plain_pngs_are_not_decoded_by_pillow(monkeypatch: pytest.MonkeyPatch):
    def load(image: Image.Image) -> None:
        raise AssertionError("Pillow is slower")

    data = encoded(two_colours(), "PNG")
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", load)
    assert decode_image(data).pixels.shape == (48, 64, 3)


def test_transparency_lies_on_white():
    image = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    image.paste((*RED, 255), (0, 0, 5, 10))
    page = decode_image(encoded(image, "PNG"))
    assert page.pixels[5, 8].tolist() == [255, 255, 255]
    assert page.pixels[5, 2].tolist() == list(RED)
    palette = image.convert("P")
    palette.info["transparency"] = palette.getpixel((8, 5))
    page = decode_image(encoded(palette, "PNG", transparency=palette.info["transparency"]))
    assert page.pixels[5, 8].tolist() == [255, 255, 255]


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize(("ink", "alpha", "paper"), [(255, None, 0), (0, None, 255), (90, 0, 255), (0, 255, 255)])
def test_what_white_paper_does_not_show_is_shown(file_format: str, ink: int, alpha: int | None, paper: int):
    letters = np.zeros((40, 60), np.uint8)
    letters[10:20, 10:50] = 255
    if alpha is None:  # ink on nothing
        samples = np.dstack([np.full_like(letters, ink)] * 3 + [letters])
    else:  # a page, all of it opaque or transparent
        samples = np.dstack([np.where(letters, np.uint8(ink), np.uint8(255))] * 3 + [np.full_like(letters, alpha)])
    options = {"lossless": True, "exact": True} if file_format == "WEBP" else {}
    data = encoded(Image.fromarray(samples), file_format, **options)
    for limits in (DecodeLimits(), DecodeLimits(max_pixels=600)):
        pixels = decode_image(data, limits=limits).pixels
        assert pixels[0, 0].tolist() == [paper] * 3
        assert pixels.reshape(-1, 3).tolist().count([ink] * 3) > 50


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
@pytest.mark.parametrize(
    ("many", "few", "panel", "paper"),
    [(255, 60, None, 0), (60, 255, None, 255), (200, 60, None, 255), (60, 60, 255, 255), (255, 255, 60, 255)],
    ids=["light text", "dark text", "grey text", "dark text on a white panel", "light text on a dark panel"],
)
def test_transparency_lies_on_the_paper_on_which_more_text_is_seen(
    mode: str, many: int, few: int, panel: int | None, paper: int
):
    samples = np.zeros((80, 120, 2), np.uint8)
    if panel is not None:
        samples[4:76, 4:116] = (panel, 255)
    for row in range(8, 72, 16):
        for column in range(8, 112, 16):
            samples[row : row + 8, column : column + 8] = (few if row == 8 else many, 255)
    data = encoded(Image.fromarray(samples).convert(mode), "PNG")
    for limits in (DecodeLimits(), DecodeLimits(max_pixels=2_400)):
        pixels = decode_image(data, limits=limits).pixels
        assert pixels[0, 0].tolist() == [paper] * 3
        assert len(np.unique(pixels)) >= len({many, few, paper})


def test_an_image_without_opaque_pixels_is_white():
    palette = Image.new("P", (16, 16))
    assert decode_image(encoded(palette, "PNG", transparency=0)).pixels.min() == 255


def test_cmyk_jpeg_is_not_inverted():
    white = Image.new("CMYK", (16, 16), (0, 0, 0, 0))
    page = decode_image(encoded(white, "JPEG"))
    assert page.pixels.min() > 250


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA"])
def test_other_modes(mode: str):
    image = Image.new("L", (12, 9), 255).convert(mode)
    page = decode_image(encoded(image, "PNG"))
    assert page.pixels.shape == (9, 12, 3)
    assert page.pixels.min() == 255


def test_deep_samples_keep_their_brightness():
    ramp = np.linspace(0, 65535, 256, dtype=np.uint16)[None, :].repeat(4, axis=0)
    for data in (encoded(Image.fromarray(ramp), "PNG"), encoded(Image.fromarray(ramp), "TIFF")):
        page = decode_image(data)
        assert np.abs(page.pixels[0, :, 0].astype(int) - np.arange(256)).max() <= 1
    unit = Image.fromarray((ramp / 65535).astype(np.float32))
    assert np.abs(decode_image(encoded(unit, "TIFF")).pixels[0, :, 0].astype(int) - np.arange(256)).max() <= 1


def test_frames_of_a_tiff():
    frames = [Image.new("RGB", (20 + 5 * i, 10), (i * 50, 0, 0)) for i in range(4)]
    data = encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    assert count_pages(data) == (4, None)
    assert [stored_pixels(data, frame=frame) for frame in range(4)] == [200, 250, 300, 350]
    assert decode_image(data, frame=3).pixels.shape == (10, 35, 3)
    with pytest.raises(CorruptInputError):
        decode_image(data, frame=4)
    few = DecodeLimits(max_stored_pixels=210)
    with pytest.raises(TooLargeError):
        stored_pixels(data, frame=1, limits=few)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_big_images_of_32_bit_samples_are_shrunk_before_anything_else(mode: str, monkeypatch: pytest.MonkeyPatch):
    sizes = []
    monkeypatch.setattr("pagemill.imaging.samples._stretch", lambda samples: sizes.append(samples.shape) or samples)
    page = decode_image(encoded(Image.new(mode, (400, 300), 7), "TIFF"), limits=DecodeLimits(max_pixels=10_000))
    assert sizes == [(100, 134)]
    assert (page.pixels == 7).all()


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "TIFF"])
def test_big_images_are_shrunk_and_say_so(file_format: str):
    limits = DecodeLimits(max_pixels=10_000)
    page = decode_image(encoded(two_colours(400, 300), file_format), limits=limits)
    height, width = page.pixels.shape[:2]
    assert width * height <= 10_100
    assert page.scale == pytest.approx(width / 400)
    assert abs(width / height - 4 / 3) < 0.03
    assert close(page.pixels[5, 5], BLUE, 12)
    assert "400 x 300" in page.notes[0]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_big_image_may_have_a_name_that_is_no_utf8(tmp_path: Path):
    path = tmp_path / os.fsdecode(b"\xff.png")
    path.write_bytes(encoded(two_colours(400, 300), "PNG"))
    page = decode_image(path, limits=DecodeLimits(max_pixels=10_000))
    assert close(page.pixels[5, 5], BLUE, 12)


@functools.cache
def huge_images() -> dict[str, bytes]:
    """A gradient in what libvips reads row by row and in what it does not, larger than twice ``HUGE_LIMITS``."""
    grey = Image.linear_gradient("L").resize((400, 300))
    colours = Image.merge("RGB", (grey, grey.rotate(180), Image.new("L", grey.size, 90)))
    alpha = grey.rotate(90).resize(grey.size)
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    palette = colours.quantize(16)
    return {
        "grey": encoded(grey, "PNG"),
        "bilevel": encoded(grey.convert("1", dither=Image.Dither.NONE), "TIFF", compression="group4"),
        "rgb": encoded(colours, "PNG"),
        "rgba": encoded(Image.merge("RGBA", (*colours.split(), alpha)), "PNG"),
        "grey and alpha": encoded(Image.merge("LA", (grey, alpha)), "PNG"),
        "16 bits": encoded(deep, "PNG"),
        "16 bits, TIFF": encoded(deep, "TIFF"),
        "12 bits in 16": encoded(Image.fromarray(np.asarray(grey).astype(np.uint16) << 4), "TIFF"),
        "palette": encoded(palette, "PNG"),
        "palette with transparency": encoded(palette, "PNG", transparency=3),
        "CMYK": encoded(colours.convert("CMYK"), "TIFF"),
        "CMYK, JPEG": encoded(colours.convert("CMYK"), "JPEG", quality=95),
        "floats": encoded(Image.fromarray(np.asarray(grey).astype(np.float32) * 3.5), "TIFF"),
        "WebP": encoded(colours, "WEBP", lossless=True),
        "second frame": encoded(grey, "TIFF", save_all=True, append_images=[colours]),
        "turned TIFF": encoded(colours, "TIFF", exif=exif(6)),
        "turned PNG": encoded(colours, "PNG", exif=exif(6)),
        "BMP": encoded(colours, "BMP"),
    }


def exif(orientation: int) -> Image.Exif:
    data = Image.Exif()
    data[0x0112] = orientation
    return data


HUGE_LIMITS = DecodeLimits(max_pixels=10_000)


@pytest.mark.parametrize("name", huge_images())
def test_an_image_that_is_shrunk_while_it_is_read_looks_like_one_that_is_shrunk_whole(name: str):
    data, frame = huge_images()[name], int(name == "second frame")
    shrunk = decode_image(data, frame=frame, limits=HUGE_LIMITS)
    whole = decode_image(data, frame=frame).pixels
    height, width = shrunk.pixels.shape[:2]
    assert (width < height) == (whole.shape[1] < whole.shape[0])
    assert 8_000 < height * width <= 10_100
    expected = np.asarray(Image.fromarray(whole).resize((width, height), Image.Resampling.BOX), dtype=int)
    assert np.abs(shrunk.pixels.astype(int) - expected).mean() < 6
    assert shrunk.notes


@pytest.mark.parametrize("cut", [0.3, 0.9])
@pytest.mark.parametrize("name", ["rgb", "16 bits", "16 bits, TIFF", "WebP", "BMP"])
def test_a_truncated_image_that_would_be_shrunk_fails(name: str, cut: float):
    data = huge_images()[name]
    with pytest.raises(CorruptInputError):
        decode_image(data[: int(len(data) * cut)], limits=HUGE_LIMITS)


def test_resolution_is_told_where_believable():
    assert decode_image(encoded(two_colours(), "PNG", dpi=(300, 300))).dpi == pytest.approx(300, abs=0.1)
    assert decode_image(encoded(two_colours(), "JPEG", dpi=(72, 72))).dpi is None


def test_a_bomb_is_refused_by_its_header():
    bomb = png_with_header(100_000, 100_000, data=zlib.compress(b"\0" * 1_000_000))
    for function in (decode_image, stored_pixels):
        with pytest.raises(TooLargeError, match=r"100,000 x 100,000") as caught:
            function(bomb)
        assert caught.value.remedy


def test_bytes_over_the_limit_are_refused():
    with pytest.raises(TooLargeError, match="bytes"):
        decode_image(encoded(two_colours(), "PNG"), limits=DecodeLimits(max_stored_bytes=20))


def test_an_image_without_pixels_is_named_as_such():
    with pytest.raises((EmptyPageError, CorruptInputError)):
        decode_image(png_with_header(0, 10))


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "BMP", "TIFF"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_images_never_give_half_a_page(file_format: str, share: float):
    rng = np.random.default_rng(1)
    noisy = Image.fromarray(rng.integers(0, 255, (80, 100, 3), dtype=np.uint8))
    data = encoded(noisy, file_format)
    with pytest.raises(CorruptInputError):
        decode_image(data[: int(len(data) * share)])


def test_a_progressive_jpeg_cut_off_is_an_error_too():
    data = encoded(two_colours(300, 300), "JPEG", progressive=True)
    with pytest.raises(CorruptInputError):
        decode_image(data[: len(data) // 2])


def with_half_its_data(tiff: bytes) -> bytes:
    """A TIFF whose directory says that its one strip is half as long."""
    with Image.open(io.BytesIO(tiff)) as image:
        (length,) = image.tag_v2[279]
    entry = struct.pack("<HHII", 279, 4, 1, length)
    assert entry in tiff
    return tiff.replace(entry, struct.pack("<HHII", 279, 4, 1, length // 2))


@pytest.mark.parametrize(
    ("compression", "mode"),
    [("tiff_ccitt", "1"), ("group3", "1"), ("group4", "1"), ("jpeg", "L"), ("jpeg", "RGB"), ("jpeg", "CMYK")],
)
def test_damaged_data_that_libtiff_decodes_all_the_same_never_give_half_a_page(compression: str, mode: str):
    noise = Image.effect_noise((320, 240), 90).convert(mode)
    tiff = encoded(noise, "TIFF", compression=compression, tiffinfo={278: 240})
    assert decode_image(tiff).pixels.shape == (240, 320, 3)
    with pytest.raises(CorruptInputError):
        decode_image(with_half_its_data(tiff))


def tiled(compression: str) -> bytes:
    """A TIFF of 3 by 2 tiles."""
    import pyvips

    page = pyvips.Image.new_from_array(np.asarray(Image.effect_noise((320, 240), 90)))
    page = (page > 128 if compression == "ccittfax4" else page).copy(interpretation="b-w")
    bits = {"bitdepth": 1} if compression == "ccittfax4" else {}
    return page.tiffsave_buffer(compression=compression, tile=True, tile_width=128, tile_height=128, **bits)


@pytest.mark.parametrize("compression", ["none", "lzw", "jpeg", "ccittfax4"])
def test_a_tile_that_is_missing_from_the_directory_never_leaves_a_hole(compression: str):
    data = tiled(compression)
    assert decode_image(data).pixels.shape == (240, 320, 3)
    entry = struct.pack("<HHI", 324, 4, 6)
    assert entry in data
    with pytest.raises(CorruptInputError):
        decode_image(data.replace(entry, struct.pack("<HHI", 324, 4, 5)))


def test_damaged_fax_data_in_a_tile_are_an_error():
    data = tiled("ccittfax4")
    with pytest.raises(CorruptInputError):
        decode_image(data[:2000] + bytes(200) + data[2200:])


def deflated(**options: object) -> bytes:
    page = Image.effect_noise((320, 240), 90)
    return encoded(page, "TIFF", **{"compression": "tiff_adobe_deflate", "tiffinfo": {278: 50}} | options)


def strips(tiff: bytes) -> list[tuple[int, int]]:
    """Places and lengths of the strips or tiles."""
    with Image.open(io.BytesIO(tiff)) as image:
        places, lengths = (273, 279) if 273 in image.tag_v2 else (324, 325)
        return list(zip(image.tag_v2[places], image.tag_v2[lengths], strict=True))


DEFLATED = {
    "strips": deflated(),
    "old number": deflated(compression="tiff_deflate"),
    "BigTIFF": deflated(big_tiff=True),
    "predictor": deflated(tiffinfo={278: 50, 317: 2}),
    "fill order": deflated(tiffinfo={278: 50, 266: 2}),
    "one strip": deflated(tiffinfo={278: 2**32 - 1}),
    "bilevel": encoded(Image.effect_noise((321, 240), 90).convert("1"), "TIFF", compression="tiff_adobe_deflate"),
    "tiles": tiled("deflate"),
}


@pytest.mark.parametrize("kind", DEFLATED)
def test_a_flipped_bit_of_deflate_data_is_an_error(kind: str):
    tiff = DEFLATED[kind]
    with Image.open(io.BytesIO(tiff)) as image:
        expected = np.asarray(image.convert("RGB"))
    assert np.array_equal(decode_image(tiff).pixels, expected)
    for place, length in strips(tiff):
        for position in (place + length // 2, place + length - 12, place + length - 2):
            damaged = bytearray(tiff)
            damaged[position] ^= 16
            with pytest.raises(CorruptInputError):
                decode_image(bytes(damaged))


def with_last_strip(tiff: bytes, data: bytes) -> bytes:
    """A little-endian TIFF whose last strip is replaced."""
    places, lengths = zip(*strips(tiff), strict=True)
    for numbers, last in ((places, len(tiff)), (lengths, len(data))):
        table = struct.pack(f"<{len(numbers)}I", *numbers)  # at least 8 bytes: no compressed data are like it by chance
        assert len(table) >= 8
        assert tiff.count(table) == 1
        tiff = tiff.replace(table, table[:-4] + struct.pack("<I", last))
    return tiff + data


def test_strips_that_libtiff_takes_for_whole_are_whole():
    tiff = deflated()
    place, length = strips(tiff)[-1]
    last = tiff[place : place + length]
    whole = zlib.decompress(last)
    rows_of_another = zlib.compress(whole + bytes(10 * 320))
    for data in (last + b"\0", last + b"more", last[:-4], last[:-1], rows_of_another):
        assert np.array_equal(decode_image(with_last_strip(tiff, data)).pixels, decode_image(tiff).pixels)
    too_much = zlib.compress(whole + bytes(320))[:-4]
    for data in (last[: length // 2], too_much, zlib.compress(whole + bytes(10_000_000))):
        with pytest.raises(CorruptInputError):
            decode_image(with_last_strip(tiff, data))


def test_deflate_data_are_checked_in_little_memory():
    noise = Image.effect_noise((1000, 1000), 90)
    bomb = encoded(noise, "TIFF", compression="tiff_adobe_deflate", tiffinfo={278: 600})
    damaged = with_last_strip(bomb, zlib.compress(bytes(20_000_000)))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptInputError):
            decode_image(damaged)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", ["group4", "jpeg"])
@pytest.mark.parametrize("options", [{"tiffinfo": {278: 16}}, {"big_tiff": True}])
def test_odd_tags_are_no_damage(compression: str, options: dict[str, object]):
    tiff = encoded(
        Image.effect_noise((320, 240), 90).convert("1" if compression == "group4" else "L"),
        "TIFF",
        compression=compression,
        **options,
    )
    if "big_tiff" not in options:  # two tags in the wrong order
        (place,) = struct.unpack("<I", tiff[4:8])
        first, second = tiff[place + 2 : place + 14], tiff[place + 14 : place + 26]
        tiff = tiff[: place + 2] + second + first + tiff[place + 26 :]
    assert decode_image(tiff).pixels.shape == (240, 320, 3)


@pytest.mark.parametrize(("tag", "count"), [(259, 2), (266, 0), (266, 2)])
def test_a_number_of_a_fax_that_is_given_twice_or_not_at_all_is_no_damage(tag: int, count: int):
    tiff = encoded(Image.effect_noise((320, 240), 90).convert("1"), "TIFF", compression="group4", tiffinfo={266: 1})
    (place,) = [place for place in range(len(tiff)) if tiff.startswith(struct.pack("<HHI", tag, 3, 1), place)]
    odd = tiff[: place + 4] + struct.pack("<I", count) + tiff[place + 8 :]
    assert np.array_equal(decode_image(odd).pixels, decode_image(tiff).pixels)


@pytest.mark.parametrize("compression", ["group4", "jpeg"])
def test_a_page_of_a_big_tiff_takes_no_memory_for_the_others(compression: str):
    noise = Image.effect_noise((320, 240), 90).convert("1" if compression == "group4" else "L")
    tiff = encoded(noise, "TIFF", compression=compression) + bytes(20_000_000)
    tracemalloc.start()
    try:
        decode_image(tiff)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_truncated_jpeg_of_four_colours_with_an_end_marker_is_an_error():
    data = encoded(Image.effect_noise((320, 240), 90).convert("CMYK"), "JPEG")
    assert decode_image(data).pixels.shape == (240, 320, 3)
    with pytest.raises(CorruptInputError):
        decode_image(data[: len(data) // 2] + b"\xff\xd9")


@pytest.mark.parametrize("file_format", ["PNG", "TIFF"])
@pytest.mark.parametrize("bits", [8, 10, 12, 16])
def test_samples_of_fewer_bits_stored_in_16_do_not_turn_black(file_format: str, bits: int):
    samples = np.full((20, 30), 2**bits - 1, np.uint16)
    samples[5:10] = 0
    pixels = decode_image(encoded(Image.fromarray(samples), file_format)).pixels
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[7, 7].tolist() == [0, 0, 0]


def test_a_file_that_lacks_only_its_end_marker_is_read():
    jpeg = encoded(two_colours(), "JPEG", quality=95, subsampling=0)
    assert jpeg.endswith(b"\xff\xd9")
    assert close(decode_image(jpeg[:-2]).pixels[2, 2], BLUE)
    png = encoded(two_colours(), "PNG")
    assert close(decode_image(png[:-12]).pixels[2, 2], BLUE)


def test_a_hole_in_a_png_is_an_error():
    data = bytearray(encoded(Image.effect_noise((200, 200), 50), "PNG"))
    data[len(data) // 2 : len(data) // 2 + 500] = bytes(500)
    with pytest.raises(CorruptInputError):
        decode_image(bytes(data))


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_plain_pngs_are_decoded_exactly(mode: str):
    noise = np.random.default_rng(0).integers(0, 256, (57, 83, 3), np.uint8)
    image = Image.fromarray(noise).convert(mode)
    pixels = decode_image(encoded(image, "PNG")).pixels
    assert np.array_equal(pixels, np.asarray(image.convert("RGB")))
    assert pixels.flags.c_contiguous
    assert pixels.flags.writeable


def test_interlaced_pngs_are_decoded_exactly():
    noise = np.random.default_rng(0).integers(0, 256, (37, 53, 3), np.uint8)
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = [row for x, y, step_x, step_y in passes for row in noise[y::step_y, x::step_x]]
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    assert np.array_equal(decode_image(png_with_header(53, 37, 8, 2, data, interlaced=True)).pixels, noise)


@given(st.sampled_from([0, 2]), st.binary(max_size=400), st.booleans())
def test_hostile_png_data_is_an_error_or_a_whole_page(colour: int, data: bytes, interlaced: bool):
    try:
        pixels = decode_image(png_with_header(9, 7, 8, colour, zlib.compress(data), interlaced=interlaced)).pixels
    except CorruptInputError:
        return
    assert pixels.shape == (7, 9, 3)


def test_what_is_no_image_says_so(tmp_path: Path):
    with pytest.raises(UnsupportedInputError):
        decode_image(b"hello, world")
    with pytest.raises(CorruptInputError, match="0 bytes"):
        decode_image(b"")
    with pytest.raises(MissingInputError):
        decode_image(tmp_path / "none.png")


def test_a_path_is_read(tmp_path: Path):
    path = tmp_path / "wrong-suffix.txt"
    path.write_bytes(encoded(two_colours(), "PNG"))
    assert decode_image(path).pixels.shape == (48, 64, 3)


def test_the_process_wide_limit_of_pillow_is_left_alone():
    before = Image.MAX_IMAGE_PIXELS
    decode_image(encoded(two_colours(), "TIFF"))
    assert before == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize(
    ("file_format", "size", "reduced"),
    [
        ("JPEG", (801, 400), (101, 50)),
        ("JPEG", (401, 399), (101, 100)),
        ("JPEG", (401, 199), (201, 100)),
        ("JPEG", (99, 800), (99, 800)),
        ("PNG", (801, 400), (801, 400)),
    ],
)
def test_reduced_decoding_keeps_both_sides_above_the_least(
    file_format: str, size: tuple[int, int], reduced: tuple[int, int]
):
    pixels, full = decode_reduced(encoded(two_colours(*size), file_format), 50)
    assert (pixels.shape[1], pixels.shape[0]) == reduced
    assert full == size
    assert close(pixels[0, 0], tuple(two_colours(*size).getpixel((0, 0))))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_reduced_decoding_tells_the_size_that_whole_decoding_gives(orientation: int):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(two_colours(640, 480), "JPEG", exif=exif)
    for limits in (DecodeLimits(), DecodeLimits(max_pixels=90_001), DecodeLimits(max_side=333)):
        page = decode_image(data, limits=limits).pixels
        pixels, full = decode_reduced(data, 100, limits=limits)
        assert full == (page.shape[1], page.shape[0])
        assert pixels.shape[0] * pixels.shape[1] < 640 * 480 / 8
        for corner in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
            assert close(pixels[corner], tuple(page[corner]))


def test_only_a_whole_upright_rgb_or_grey_jpeg_is_plain():
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(two_colours(), "JPEG")
    assert plain_jpeg_size(data) == plain_jpeg_size(encoded(two_colours().convert("L"), "JPEG")) == (64, 48)
    for other in (
        encoded(two_colours(), "JPEG", exif=exif),
        encoded(two_colours().convert("CMYK"), "JPEG"),
        encoded(two_colours(), "PNG"),
        data[:-2],
        data[:20] + data[-2:],
        b"",
    ):
        assert plain_jpeg_size(other) is None


def test_a_jpeg_that_another_decoder_may_decode_is_whole_and_undamaged(tmp_path: Path):
    """What this decoder refuses, or tells beside the pixels, is not lost with one that notices less."""
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8))
    data = encoded(noise, "JPEG", dpi=(300, 300))
    (tmp_path / "page.jpg").write_bytes(data)
    for source in (data, tmp_path / "page.jpg"):
        assert sound_jpeg(source) == (data, (640, 480), 300.0, ())
    middle = len(data) // 2
    for other in (data[:-2], data[:middle] + data[-2:], encoded(noise, "PNG"), b"", tmp_path / "absent.jpg"):
        assert sound_jpeg(other) is None
    both = encoded(noise, "MPO", save_all=True, append_images=[noise])
    sound = sound_jpeg(both)
    assert sound is not None
    assert sound.warnings == decode_image(both).warnings != ()


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "MPO"])
def test_frames_behind_the_first_one_are_a_warning(file_format: str):
    frames = [Image.new("RGB", (64, 48), colour) for colour in (RED, BLUE, RED)]
    page = decode_image(encoded(frames[0], file_format, save_all=True, append_images=frames[1:]))
    assert close(page.pixels[20, 20], RED)
    (warning,) = page.warnings
    assert (warning.component, warning.category) == ("decode", "frames")
    assert warning.message == "only the first of 3 frames is read; 2 left out"


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "JPEG", "BMP"])
def test_an_image_of_one_frame_has_no_warning(file_format: str):
    assert decode_image(encoded(two_colours(), file_format)).warnings == ()


def test_images_behind_a_photograph_that_are_no_pages_have_no_warning():
    whole = encoded(two_colours(), "MPO", save_all=True, append_images=[two_colours()])
    gain_map = encoded(two_colours(), "MPO", save_all=True, append_images=[two_colours(32, 24)])
    cut = whole[: whole.index(b"\xff\xd8", 2)]
    marked = whole + b"urn:com:apple:photo:2020:aux:hdrgainmap"
    for data in (gain_map, cut, marked):
        assert decode_image(data).warnings == ()


def png_of(rows: int, mode: str, *, interlaced: bool = False) -> bytes:
    """A PNG of 30 x 20 pixels whose data have so many rows, with right checksums of its chunks."""
    colours, depth = {"L": (0, 1), "RGB": (2, 3), "RGBA": (6, 4)}[mode]
    row = b"\0" + bytes(range(30 * depth))
    data = zlib.compress((bytes(2 * 20 * 31 * depth) if interlaced else row * 20)[: rows * len(row)])

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 30, 20, 8, colours, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_a_png_whose_data_end_before_its_last_row_fails(mode: str):
    assert decode_image(png_of(20, mode)).pixels.shape == (20, 30, 3)
    assert decode_image(png_of(40, mode, interlaced=True)).pixels.shape == (20, 30, 3)
    for data in (png_of(19, mode), png_of(10, mode), png_of(10, mode, interlaced=True)):
        with pytest.raises(CorruptInputError, match="before its last row"):
            decode_image(data)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_progressive_jpeg_without_its_last_scans_fails(mode: str):
    data = encoded(Image.effect_noise((80, 60), 60).convert(mode), "JPEG", progressive=True)
    assert decode_image(data).pixels.shape == (60, 80, 3)
    scans = [match.start() for match in re.finditer(rb"\xff\xda", data)]
    for cut in (scans[1], scans[-1]):
        with pytest.raises(CorruptInputError, match="last scan"):
            decode_image(data[:cut] + data[-2:])


@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
def test_an_image_behind_another_one_is_left_out_with_a_warning(file_format: str):
    first, thumbnail = Image.effect_noise((80, 60), 60), Image.effect_noise((20, 15), 60)
    data = encoded(first, file_format)
    (warning,) = decode_image(data + data + data).warnings
    assert (warning.category, "2 left out" in warning.message) == ("frames", True)
    if file_format == "JPEG":
        assert not decode_image(data + encoded(thumbnail, "JPEG")).warnings


@pytest.mark.parametrize(("white", "found"), [(8, ["unseen"]), (0, []), (1, [])])
def test_a_transparent_image_with_text_in_black_and_white_has_a_warning(white: int, found: list[str]):
    samples = np.zeros((80, 160, 2), np.uint8)
    for number in range(16):
        samples[10:20, 10 * number : 10 * number + 6] = (0, 255)
    for number in range(white):
        samples[40:50, 10 * number : 10 * number + 6] = (255, 255)
    data = encoded(Image.fromarray(samples), "PNG")
    for limits in (DecodeLimits(), DecodeLimits(max_pixels=3_200)):
        assert [warning.category for warning in decode_image(data, limits=limits).warnings] == found
