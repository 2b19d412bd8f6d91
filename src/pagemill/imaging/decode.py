"""Decoding images: untrusted bytes in, RGB pixels within the working size out.

Sizes are checked by the header before any pixel is decoded. A truncated or damaged image is an error, never half a
page; data that only lacks its end marker is read.
"""

from __future__ import annotations

import io
import math
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import simplejpeg

from pagemill.document.page import PageError
from pagemill.errors import (
    CorruptInputError,
    EmptyPageError,
    InputError,
    TooLargeError,
    UnsupportedInputError,
    unreadable,
)
from pagemill.imaging.formats import HEAD_BYTES, FileFormat, sniff
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.samples import (
    DAMAGED,
    END_OF_JPEG,
    SIDEWAYS,
    decode_jpeg,
    end_of_jpeg,
    is_plain_jpeg,
    lacks_scans,
    orientation_of,
    stored_samples,
    upright,
    whole,
)
from pagemill.imaging.tiff import announces_too_little, is_damaged
from pagemill.imaging.transforms import resize
from pagemill.imaging.types import Pixels
from pagemill.late import Late

if TYPE_CHECKING:
    from PIL import BmpImagePlugin, JpegImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin
    from PIL import Image as PillowImage
else:
    BmpImagePlugin, JpegImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin = (
        Late(f"PIL.{name}ImagePlugin") for name in ("Bmp", "Jpeg", "Png", "Tiff", "WebP")
    )

# The classes themselves, not Image.open: that one has a process-wide pixel limit which a library must not change.
_READERS: dict[FileFormat, Callable[[IO[bytes]], PillowImage.Image]] = {
    FileFormat.PNG: lambda file: PngImagePlugin.PngImageFile(file),
    FileFormat.JPEG: lambda file: JpegImagePlugin.JpegImageFile(file),
    FileFormat.WEBP: lambda file: WebPImagePlugin.WebPImageFile(file),
    FileFormat.BMP: lambda file: BmpImagePlugin.BmpImageFile(file),
    FileFormat.TIFF: lambda file: TiffImagePlugin.TiffImageFile(file),
}
_LIMITS = DecodeLimits()
_REMEDY = "Get the file again, or open it in an image editor and save it again to keep what is left."
_DAMAGED_DATA = "the image data is truncated or damaged"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GAIN_MAPS = (b"hdrgm:Version", b"hdrgainmap")
"""In the metadata of JPEGs whose second image is no page but the brightness of the first one on HDR screens."""
_MP_ENTRIES = 0xB002
_START_OF_JPEG = b"\xff\xd8\xff"
_UNSEEN_PARTS = 3
"""Invisible separate parts of a transparent image from which it is reported: letters, not specks. Not measured."""


def decode_image(
    source: bytes | Path, *, frame: int = 0, limits: DecodeLimits = _LIMITS, name: str = "image"
) -> DecodedPage:
    """Decode a PNG, JPEG, WebP, BMP or TIFF.

    EXIF orientation is applied, transparency laid on white (on black where more is seen there), CMYK, grey, palette,
    16-bit and float samples turned into 8-bit RGB. Of an animation only the first frame is read, and a warning says so.
    Images over the working size are shrunk, most of them while they are read, so that an image of hundreds of
    megapixels does not take gigabytes; ``scale`` and a note say so.

    Args:
        source: Encoded bytes, or the path of a file.
        frame: Page of a multi-page TIFF, from 0.
        limits: Size limits.
        name: How messages call the image.

    Raises:
        MissingInputError: The file does not exist; UnreadableInputError when it cannot be read.
        UnsupportedInputError: These bytes are no image that pagemill reads.
        CorruptInputError: The image is truncated or damaged, or has no such frame.
        TooLargeError: The image is over the limits.
        EmptyPageError: The image has no pixels.
    """
    with _image(source, limits, name, frame) as (image, file):
        try:
            return _decode(image, file, limits)
        except MemoryError as error:
            raise TooLargeError(f"{name} does not fit into memory", remedy=_shrink_remedy(limits)) from error


def decode_reduced(
    data: bytes, at_least: int, *, limits: DecodeLimits = _LIMITS, name: str = "image"
) -> tuple[Pixels, tuple[int, int]]:
    """Decode a page that is only looked at as a whole: as :func:`decode_image`, a JPEG at a part of its size.

    Args:
        data: Encoded bytes.
        at_least: A JPEG is decoded at 1/2, 1/4 or 1/8 where both of its sides have so many pixels then. Other parts
            are slower than the whole: libjpeg-turbo has fast transforms for these.
        limits: Size limits.
        name: How messages call the image.

    Returns:
        The pixels, and the width and height that :func:`decode_image` would have given.

    Raises:
        InputError: As in :func:`decode_image`.
    """
    with _image(data, limits, name) as (image, _):
        part = next((part for part in (8, 4, 2) if min(image.size) >= part * at_least), 1)
        if part > 1 and is_plain_jpeg(image):
            pixels = decode_jpeg(data, (math.ceil(image.width / part), math.ceil(image.height / part)))
            width, height = limits.working_size(*image.size)
            orientation = orientation_of(image)
            return upright(pixels, orientation), (height, width) if orientation in SIDEWAYS else (width, height)
    pixels = decode_image(data, limits=limits, name=name).pixels
    return pixels, (pixels.shape[1], pixels.shape[0])


def plain_jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a JPEG that any decoder shows as :func:`decode_image` does, by its header.

    None for what is no JPEG, is not 8-bit RGB or grey, lies on its side, is over the working size or lacks its end.
    """
    with suppress(InputError), _image(data, _LIMITS, "image") as (image, _):
        return image.size if _is_portable(image, data, _LIMITS) else None
    return None


class SoundJpeg(NamedTuple):
    """A whole JPEG that any decoder shows as :func:`decode_image` does, and what that tells beside the pixels."""

    data: bytes
    size: tuple[int, int]
    """Width and height."""
    dpi: float | None
    warnings: tuple[PageError, ...]


def sound_jpeg(source: bytes | Path, *, limits: DecodeLimits = _LIMITS) -> SoundJpeg | None:
    """Judge a JPEG for a decoder that does not notice all damage; None for any other image.

    All of its data is decoded, at 1/8 of its size, in less than half the time that the whole takes.
    """
    try:
        data = source if isinstance(source, bytes) else _head_or_whole(source, limits)
    except OSError:  # decoding it as usual says why
        return None
    with suppress(InputError), _image(data, limits, "image") as (image, file):
        if _is_portable(image, data, limits) and not lacks_scans(data):
            decode_jpeg(data, (math.ceil(image.width / 8), math.ceil(image.height / 8)))
            return SoundJpeg(data, image.size, _resolution(image), tuple(_warnings(image, file)))
    return None


def _head_or_whole(path: Path, limits: DecodeLimits) -> bytes:
    """All bytes of a JPEG within the limit, of other files the first ones."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        return head + file.read(limits.max_stored_bytes) if sniff(head) is FileFormat.JPEG else head


def _is_portable(image: PillowImage.Image, data: bytes, limits: DecodeLimits) -> bool:
    """Whether any decoder shows a whole image as :func:`decode_image` does: an upright JPEG that is not shrunk."""
    whole = is_plain_jpeg(image) and data.endswith(END_OF_JPEG)
    return whole and limits.factor_for(*image.size) == 1 and orientation_of(image) not in range(2, 9)


def stored_pixels(source: bytes | Path, *, frame: int = 0, limits: DecodeLimits = _LIMITS, name: str = "image") -> int:
    """Number of pixels of an image as it is stored, by its header.

    Raises:
        InputError: As in :func:`decode_image`.
    """
    with _image(source, limits, name, frame) as (image, _):
        return image.width * image.height


@contextmanager
def _image(
    source: bytes | Path, limits: DecodeLimits, name: str, frame: int = 0
) -> Iterator[tuple[PillowImage.Image, IO[bytes]]]:
    """An image within the limits, opened but not decoded, and its file; what Pillow raises becomes ours."""
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    except OSError as error:
        raise unreadable(name, error) from error
    with file:
        reader = _READERS[_image_format(file, name, limits)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow warns of odd metadata; pixels decide
                with reader(file) as image:
                    if frame:
                        image.seek(frame)
                    _check_size(image.size, name, limits)
                    yield image, file
        except DAMAGED as error:
            raise CorruptInputError(f"{name} cannot be decoded: {error}", remedy=_REMEDY) from error


def _image_format(file: IO[bytes], name: str, limits: DecodeLimits) -> FileFormat:
    size = file.seek(0, io.SEEK_END)
    if size > limits.max_stored_bytes:
        message = f"{name} has {size:,} bytes; the limit is {limits.max_stored_bytes:,}"
        raise TooLargeError(message, remedy=_shrink_remedy(limits))
    if not size:
        raise CorruptInputError(f"{name} is empty (0 bytes)", remedy="Get the file again.")
    file.seek(0)
    file_format = sniff(file.read(HEAD_BYTES))
    file.seek(0)
    if file_format is None or not file_format.is_image:
        raise UnsupportedInputError(
            f"{name} is not an image that pagemill reads", remedy="Convert it to PNG, JPEG, WebP, BMP or TIFF."
        )
    return file_format


def _check_size(size: tuple[int, int], name: str, limits: DecodeLimits) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise EmptyPageError(f"{name} has no pixels ({width} x {height})")
    if width * height > limits.max_stored_pixels:
        raise TooLargeError(
            f"{name} has {width:,} x {height:,} pixels; the limit is {limits.max_stored_pixels:,} in all",
            remedy=_shrink_remedy(limits),
        )


def _shrink_remedy(limits: DecodeLimits) -> str:
    return f"Scale it down first (pagemill works on at most {limits.max_pixels / 1e6:.0f} million pixels), or cut it."


def _decode(image: PillowImage.Image, file: IO[bytes], limits: DecodeLimits) -> DecodedPage:
    stored = image.size
    dpi = _resolution(image)
    if image.format == "PNG":
        _check_png(image, whole(file))
    elif image.mode == "CMYK" and image.format == "JPEG":
        # libjpeg-turbo finds fault with damaged data; Pillow does not.
        decode_jpeg(whole(file), (math.ceil(image.width / 8), math.ceil(image.height / 8)), "CMYK")
    elif isinstance(image, TiffImagePlugin.TiffImageFile) and is_damaged(file, image.tag_v2):
        raise ValueError(_DAMAGED_DATA)
    orientation = 1 if image.format == "TIFF" else orientation_of(image)  # Pillow turns TIFFs itself
    pixels, unseen = stored_samples(image, file, limits)
    scale = 1.0
    notes: tuple[str, ...] = ()
    if (size := limits.working_size(*stored)) != stored:
        pixels = resize(pixels, *size)
        scale = size[0] / stored[0]
        notes = (f"decoded at {scale:.3g} of its {stored[0]} x {stored[1]} pixels",)
    found = _warnings(image, file)
    if unseen >= _UNSEEN_PARTS:
        message = f"the image is transparent, and {unseen:,} parts of it have the colour of its new background"
        remedy = "Flatten the image onto a background of another colour."
        found.append(PageError(component="decode", category="unseen", message=message, remedy=remedy))
    return DecodedPage(
        pixels=upright(pixels, orientation),
        dpi=dpi * scale if dpi else None,
        scale=scale,
        notes=notes,
        warnings=tuple(found),
    )


def _warnings(image: PillowImage.Image, file: IO[bytes]) -> list[PageError]:
    """What an image does not show of its file."""
    found = []
    if left_out := _frames_left_out(image, file):
        found.append(frames_warning(left_out))
    if isinstance(image, TiffImagePlugin.TiffImageFile) and announces_too_little(image.tag_v2):
        message = "the image announces less data than its rows take: a part of it may be wrong"
        found.append(PageError(component="decode", category="corrupt", message=message, remedy=_REMEDY))
    return found


def frames_warning(left_out: int) -> PageError:
    """Says how many frames behind the first one are not read."""
    message = f"only the first of {left_out + 1:,} frames is read; {left_out:,} left out"
    remedy = "Save the frames as pages of a TIFF file, or as files of their own."
    return PageError(component="decode", category="frames", message=message, remedy=remedy)


def _frames_left_out(image: PillowImage.Image, file: IO[bytes]) -> int:
    """Frames behind the first one of an animated PNG or WebP or of a JPEG of several images (MPO), and joined files.

    Every frame of a TIFF is a page of its own, or its source warns of it.
    """
    if image.format in ("PNG", "WEBP"):
        joined = whole(file).count(_PNG_SIGNATURE, 1) if image.format == "PNG" else 0
        return max(int(getattr(image, "n_frames", 1)) - 1, 0) + joined
    if isinstance(image, JpegImagePlugin.JpegImageFile):
        return _mpo_frames(image, whole(file)) if "mp" in image.info else _joined_frames(image, whole(file))
    return 0


def _joined_frames(image: PillowImage.Image, data: bytes) -> int:
    """Images behind the end of a JPEG that may be pages: as large as it, about, as in an MPO file."""
    frames, start = 0, data.rfind(_START_OF_JPEG)
    if start > 0 and not any(mark in data for mark in _GAIN_MAPS):
        end = end_of_jpeg(data)
        while end > 0 and (start := data.find(_START_OF_JPEG, end)) >= 0:
            end = start + len(_START_OF_JPEG)
            with suppress(ValueError):
                height, width = simplejpeg.decode_jpeg_header(data[start:])[:2]
                frames += 2 * width * height > image.width * image.height
    return frames


def _mpo_frames(image: JpegImagePlugin.JpegImageFile, data: bytes) -> int:
    """Images behind the first one that may be pages.

    Cameras and phones add thumbnails, gain maps and depth maps, which are smaller: a gain map has half the width and
    height or less. Pages of one file are of similar size.
    """
    if any(mark in data for mark in _GAIN_MAPS):
        return 0
    try:
        entries = (image._getmp() or {}).get(_MP_ENTRIES, [])[1:]
    except DAMAGED:  # the first image is sound all the same
        return 0
    frames = 0
    for entry in entries:
        start = image.info["mpoffset"] + entry["DataOffset"]
        try:
            height, width = simplejpeg.decode_jpeg_header(data[start : start + entry["Size"]])[:2]
        except ValueError:  # editors cut off the images behind the first and leave the index
            continue
        frames += 2 * width * height > image.width * image.height
    return frames


def _check_png(image: PillowImage.Image, data: bytes) -> None:
    """Check the checksums of the image data: decoders do not, and would give noise for damaged parts.

    Metadata behind the pixels, which Pillow has not read, are added.
    """
    view, position = memoryview(data), len(_PNG_SIGNATURE)
    while position + 12 <= len(data):
        end = position + 8 + int.from_bytes(view[position : position + 4], "big")
        kind = bytes(view[position + 4 : position + 8])
        is_sound = zlib.crc32(view[position + 4 : end]).to_bytes(4, "big") == view[end : end + 4]
        if kind == b"IDAT" and not is_sound:
            raise ValueError(_DAMAGED_DATA)
        if kind == b"eXIf" and is_sound:
            image.info.setdefault("exif", b"Exif\0\0" + bytes(view[position + 8 : end]))
        position = end + 4


def _resolution(image: PillowImage.Image) -> float | None:
    """Dots per inch as the file states it, where that is believable for a scan."""
    try:
        dpi = float(image.info["dpi"][0])
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError):
        return None
    return dpi if 72 < dpi <= 2400 else None
