"""The samples of an opened image as RGB pixels: by the fastest decoder that reads it, no larger than asked for."""

from __future__ import annotations

import io
import math
import os
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import simplejpeg

from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.transforms import WHITE
from pagemill.imaging.types import Pixels
from pagemill.late import PillowImage, cv2, kornia_rs, re

DAMAGED = (
    *(OSError, ValueError, SyntaxError, EOFError, TypeError, LookupError, ArithmeticError, RuntimeError),
    *(AttributeError, AssertionError, struct.error, zlib.error),
)
"""What Pillow's plugins raise on damaged files: they were not written for hostile ones."""
_REDUCIBLE = frozenset({"L", "LA", "RGB", "RGBA", "CMYK", "I", "F"})
"""Modes whose samples can be averaged, and that Pillow averages."""
_VIPS_LOADERS = {"PNG": "pngload", "TIFF": "tiffload", "WEBP": "webpload"}
_VIPS_PLAIN = frozenset({"b-w", "srgb", "grey16", "rgb16"})
"""Colours that libvips and Pillow bring to 8-bit RGB in the same way."""
_SOLID, _LIGHT, _DARK = 200, 208, 128
"""Out of 255: alpha from which samples on white show their own colour, levels from which ink hardly shows on white, and
levels below which it is hardly seen on black. Soft edges of white letters have up to 43 levels less than white."""
END_OF_JPEG = b"\xff\xd9"
_JPEG_MARKER = re.compile(rb"\xff+([^\x00\xff])")
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xDA)})
"""Without a segment behind them."""
_PROGRESSIVE, _SEQUENTIAL, _SCAN = (0xC2, 0xCA), (0xC0, 0xC1, 0xC3, 0xC9, 0xCB), 0xDA
"""Markers of headers of images and of scans."""
_PNG_DATA, _PNG_CHUNK = 8, 2**20
"""Where the chunks of a PNG begin, and bytes that are inflated at once."""
_PNG_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Passes of an interlaced PNG: first column and row, and steps."""
_ORIENTATION = 0x0112
SIDEWAYS = frozenset({5, 6, 7, 8})
"""EXIF orientations that swap width and height."""


def is_plain_jpeg(image: PillowImage.Image) -> bool:
    """Whether an image is a JPEG in grey or three colours."""
    return image.format == "JPEG" and image.mode in ("L", "RGB")


class Samples(NamedTuple):
    """Pixels of an image as it is stored, and what they do not show of it."""

    pixels: Pixels
    unseen_parts: int = 0
    """Separate parts of a transparent image that have the colour of the paper that it is laid on."""


def stored_samples(image: PillowImage.Image, file: IO[bytes], limits: DecodeLimits) -> Samples:
    """Samples as stored, not upright yet; of what is over the working size, fewer where that is faster."""
    if is_plain_jpeg(image):
        data = whole(file)
        if lacks_scans(data):
            raise ValueError("it ends before its last scan")
        return Samples(decode_jpeg(data, limits.working_size(*image.size)))
    if (samples := _read_shrunk(image, file, limits)) is not None:
        return samples
    if image.format == "PNG":
        data = whole(file)
        if (pixels := _decode_plain_png(data, image)) is not None:
            return Samples(pixels)
        if lacks_rows(data):  # which the others notice, and Pillow does not
            raise ValueError("its data end before its last row")
    return _to_rgb(_load_within(image, limits))


def lacks_rows(data: bytes) -> bool:
    """Whether the compressed data of a PNG end before its last row. Their checksum need not be there."""
    view, place, stream, rows_left = memoryview(data), _PNG_DATA, zlib.decompressobj(), 0
    while place + 12 <= len(data):
        length = int.from_bytes(view[place : place + 4], "big")
        kind, piece = bytes(view[place + 4 : place + 8]), view[place + 8 : place + 8 + length]
        place += length + 12
        if kind == b"IHDR":
            rows_left = _png_bytes(*struct.unpack(">IIBBBBB", piece))
        elif kind == b"IDAT":
            rest: Any = piece
            while rest and rows_left > 0 and not stream.eof:
                rows_left -= len(stream.decompress(rest, min(rows_left, _PNG_CHUNK)))
                rest = stream.unconsumed_tail
        elif kind == b"IEND":
            break
    return rows_left > 0


def _png_bytes(width: int, height: int, bits: int, colours: int, _: int, __: int, interlaced: int) -> int:
    """Bytes of all rows of a PNG, each with the number of its filter."""
    depth = bits * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colours]
    sides = [
        (-(-(width - x) // across), -(-(height - y) // down))
        for x, y, across, down in (_PNG_PASSES if interlaced else ((0, 0, 1, 1),))
    ]
    return sum(rows * (1 + (columns * depth + 7) // 8) for columns, rows in sides if columns > 0)


def whole(file: IO[bytes]) -> bytes:
    """All bytes of a file, wherever it was read to."""
    file.seek(0)
    return file.read()


def decode_jpeg(data: bytes, at_least: tuple[int, int], colours: Literal["RGB", "CMYK"] = "RGB") -> Pixels:
    """Decode with libjpeg-turbo, at the smallest size that covers this width and height."""
    smallest = {"min_width": at_least[0], "min_height": at_least[1]}
    try:
        return np.asarray(simplejpeg.decode_jpeg(data, colours, **smallest))
    except ValueError:
        # A file that only lacks its end marker is complete; one that ends inside its data still fails here.
        return np.asarray(simplejpeg.decode_jpeg(data + END_OF_JPEG, colours, **smallest))


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Kinds and contents of the segments of a JPEG up to the end of the image, and where each ends."""
    place = 0
    while (marker := _JPEG_MARKER.search(data, place)) is not None:
        kind, place = marker[1][0], marker.end()
        segment = b""
        if kind not in _BARE_MARKERS:
            start, place = place + 2, place + int.from_bytes(data[place : place + 2], "big")
            segment = data[start:place]
        yield kind, segment, place
        if kind == END_OF_JPEG[1]:
            return


def lacks_scans(data: bytes) -> bool:
    """Whether a progressive JPEG ends before all bits of all coefficients: decoders show what there is."""
    left = dict[int, int]()
    for kind, segment, _ in _jpeg_segments(data):
        if kind in _PROGRESSIVE:
            left = dict.fromkeys(segment[6::3], 2**64 - 1)
        elif kind in _SEQUENTIAL:
            return False
        elif kind == _SCAN and segment and len(segment) > (last := 2 * segment[0] + 3) and not segment[last] & 0x0F:
            done = 2 ** (segment[last - 1] + 1) - 2 ** segment[last - 2]
            left.update({each: left.get(each, 0) & ~done for each in segment[1 : last - 2 : 2]})
    return any(left.values())


def end_of_jpeg(data: bytes) -> int:
    """Where the first image of a JPEG ends; 0 where it does not."""
    return next((end for kind, _, end in _jpeg_segments(data) if kind == END_OF_JPEG[1]), 0)


def upright(pixels: Pixels, orientation: int) -> Pixels:
    """Turn and mirror by an EXIF orientation; others than 2 to 8 mean that the page is upright."""
    if orientation in SIDEWAYS:
        pixels = pixels.transpose(1, 0, 2)
    rows, columns = (-1 if orientation in mirrored else 1 for mirrored in ({3, 4, 7, 8}, {2, 3, 6, 7}))
    return np.ascontiguousarray(pixels[::rows, ::columns])


def _decode_plain_png(data: bytes, image: PillowImage.Image) -> Pixels | None:
    """Decode 8-bit RGB or grey without transparency with the png crate, 4 to 8 times as fast as OpenCV and Pillow.

    An A4 page at 200 dpi takes 11 ms of CPU time, 42 with OpenCV, 57 with Pillow: worth its 15 MB.

    None for all others, and where it fails: Pillow reads what only lacks its end, and names other damage.
    """
    raw_mode = image.tile[0][3] if image.tile else None  # type: ignore[attr-defined]
    mode = {"RGB": "rgb", "L": "mono"}.get(raw_mode or "")
    if mode is None or "transparency" in image.info:
        return None
    try:
        pixels = kornia_rs.io.decode_image_png_u8(data, (image.height, image.width), mode)
    except Exception:  # of no narrower class
        return None
    return np.asarray(pixels if mode == "rgb" else cv2.cvtColor(pixels, cv2.COLOR_GRAY2RGB), dtype=np.uint8)


def _read_shrunk(image: PillowImage.Image, file: IO[bytes], limits: DecodeLimits) -> Samples | None:
    """Read an image row by row with libvips and shrink it by a whole factor on the way.

    A PNG of 484 megapixels with 16 bits takes 130 MB and 3 s this way; decoded whole it takes 3.7 GB and 54 s.

    Returns:
        Pixels that are not brought upright yet; None for an image below twice the working size, and for one that
        libvips does not read, or not as Pillow does (other formats and colour spaces, float samples, damage).
    """
    factor = math.floor(1 / limits.factor_for(*image.size))
    loader = _VIPS_LOADERS.get(image.format or "")
    is_turned = image.format == "TIFF" and orientation_of(image) != 1  # Pillow has swapped its sides already
    if factor < 2 or loader is None or is_turned:
        return None
    import pyvips  # importing it takes 0.2 s, and hardly any page needs it

    pyvips.cache_set_max(0)  # nothing is read twice
    options: dict[str, Any] = {"access": "sequential", "fail_on": "error"}
    if image.tell():
        options["page"] = image.tell()
    try:
        if isinstance(file, io.BytesIO):
            read = getattr(pyvips.Image, f"{loader}_buffer")(file.getvalue(), **options)
        else:
            read = getattr(pyvips.Image, loader)(os.fsencode(file.name), **options)  # it takes str for UTF-8
        if read.interpretation not in _VIPS_PLAIN or read.format not in ("uchar", "ushort"):
            return None
        if read.format == "ushort" and read.bands > 1:
            read = read.cast("uchar", shift=True)
        if is_transparent := read.hasalpha():
            read = read.flatten(background=WHITE).bandjoin(read[read.bands - 1])
        shrunk = read.shrink(factor, factor, ceil=True).numpy()
        unseen = 0
        if is_transparent:
            alpha = shrunk[..., -1]
            shrunk = shrunk[..., 0] if shrunk.shape[2] == len("LA") else np.ascontiguousarray(shrunk[..., :-1])
            unseen, seen = _light_and_dark(shrunk, alpha)
            if not alpha.any() or unseen > seen:
                return None  # not to be read on white
    except pyvips.Error:  # Pillow names the damage
        return None
    if shrunk.ndim == 2:
        shrunk = _grey(_eight_bits(shrunk) if shrunk.dtype == np.uint16 else shrunk)
    return Samples(shrunk, unseen)


def _load_within(image: PillowImage.Image, limits: DecodeLimits) -> PillowImage.Image:
    """Load; shrink by a whole factor while still in the stored mode, which takes less memory than RGB."""
    image.draft(None, limits.working_size(*image.size))  # decodes JPEGs of four colours at a part of their size
    image.load()
    if image.mode in ("RGBA", "LA") and not image.getextrema()[-1][1]:  # type: ignore[index]
        image = image.convert(image.mode[:-1])  # as scanners write it that fill the fourth sample with zeros
    factor = math.floor(1 / limits.factor_for(*image.size))
    if factor < 2:
        return image
    if image.mode == "1":
        image = image.convert("L")
    return image.reduce(factor) if image.mode in _REDUCIBLE else image


def _to_rgb(image: PillowImage.Image) -> Samples:
    if image.mode.startswith("I;16"):
        return Samples(_grey(_eight_bits(np.asarray(image).astype(np.uint16))))
    if image.mode in ("I", "F"):
        return Samples(_grey(_stretch(np.asarray(image, dtype=np.float64))))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        return _opaque(image.convert("RGBA"))
    return Samples(np.array(image.convert("RGB")))


def _opaque(image: PillowImage.Image) -> Samples:
    """An image on white, or on black where more of it is seen there."""
    pixels = _on_paper(image, WHITE)
    light, dark = _light_and_dark(pixels, np.asarray(image.getchannel("A")))
    return Samples(_on_paper(image, 0) if light > dark else pixels, min(light, dark))


def _light_and_dark(pixels: np.ndarray, alpha: np.ndarray) -> tuple[int, int]:
    """Number of separate parts of an image that are light throughout, and of those that are dark throughout.

    Parts are counted, not pixels: a white panel is one, and text on it belongs to it.

    Args:
        pixels: The image on white, in grey or RGB.
        alpha: Its opacity.
    """
    if alpha.min() == WHITE:
        return 0, 0
    solid = alpha >= max(min(_SOLID, int(alpha.max())), 1)
    grey = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    count, parts = cv2.connectedComponents(solid.astype(np.uint8), connectivity=8)
    not_light = np.count_nonzero(np.bincount(parts[solid & (grey < _LIGHT)], minlength=count))
    not_dark = np.count_nonzero(np.bincount(parts[solid & (grey >= _DARK)], minlength=count))
    return count - 1 - int(not_light), count - 1 - int(not_dark)


def _on_paper(image: PillowImage.Image, level: int) -> Pixels:
    paper = PillowImage.new("RGBA", image.size, (level, level, level, WHITE))
    return np.array(PillowImage.alpha_composite(paper, image).convert("RGB"))


def _eight_bits(samples: np.ndarray) -> Pixels:
    """Bring 16-bit samples to 8 bits.

    Scanners and cameras store 10, 12 or 14 bits, and some programs 8, in 16 without scaling them up.
    """
    return (samples >> max(int(samples.max()).bit_length() - 8, 0)).astype(np.uint8)


def _grey(samples: np.ndarray) -> Pixels:
    return np.repeat(samples.astype(np.uint8)[:, :, None], 3, axis=2)


def _stretch(samples: np.ndarray) -> np.ndarray:
    """Bring 32-bit or float samples to 0-255: as they are when they fit, 0-1 times 255, else by their extremes."""
    samples = np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(samples.min()), float(samples.max())
    if low >= 0 and high <= 1:
        return samples * WHITE
    if low >= 0 and high <= WHITE:
        return samples
    return (samples - low) * (WHITE / max(high - low, 1e-12))


def orientation_of(image: PillowImage.Image) -> int:
    """The EXIF orientation; 1 where the metadata tell none."""
    try:
        # Of the base class: the one of PNGs would decode all pixels first, for metadata behind them.
        return int(PillowImage.Image.getexif(image).get(_ORIENTATION, 1))
    except DAMAGED:  # broken metadata says nothing about the pixels
        return 1
