"""Page images for a PDF: the stored bytes if the format supports them, else the pixels without loss."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream
from PIL import Image
from PIL.TiffImagePlugin import TiffImageFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ORIENTATION = 0x0112
_PHOTOMETRIC, _FILL_ORDER, _STRIP_OFFSETS, _STRIP_ROWS, _STRIP_SIZES = 262, 266, 273, 278, 279
_SPACES = {1: (Name.DeviceGray, b"GRAY"), 3: (Name.DeviceRGB, b"RGB "), 4: (Name.DeviceCMYK, b"CMYK")}
_COMPONENTS = {"L": 1, "RGB": 3, "CMYK": 4}
_PNG_COMPONENTS = {0: 1, 2: 3, 3: 1}
"""By the colour type of those PNG images whose data a PDF can hold; the others have transparent parts."""
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LOSSY = frozenset({"jpeg", "tiff_jpeg"})
_QUALITY = 92
_LARGEST_PROFILE = 2**20
_PLACES = {
    1: (1, 0, 0, 1, 0, 0),
    2: (-1, 0, 0, 1, 1, 0),
    3: (-1, 0, 0, -1, 1, 1),
    4: (1, 0, 0, -1, 0, 1),
    5: (0, -1, -1, 0, 1, 1),
    6: (0, -1, 1, 0, 0, 1),
    7: (0, 1, 1, 0, 0, 0),
    8: (0, 1, -1, 0, 1, 0),
}
"""Where an image of each EXIF orientation lies on a page of 1 x 1: a matrix as in the format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfImage:
    """An image in the form of a PDF."""

    data: bytes = field(repr=False)
    filter: Name
    size: tuple[int, int]
    """Width and height as stored."""
    components: int
    bits: int = 8
    orientation: int = 1
    """Orientation by EXIF."""
    parameters: dict[str, Any] = field(default_factory=dict)
    palette: bytes | None = None
    profile: bytes | None = None
    inverted: bool = False

    @property
    def upright_size(self) -> tuple[int, int]:
        """Width and height as shown."""
        width, height = self.size
        return (height, width) if self.orientation > 4 else (width, height)

    def stream(self, pdf: pikepdf.Pdf) -> Stream:
        """The image as an object of a document."""
        width, height = self.size
        stream = Stream(pdf, self.data)
        stream.Type, stream.Subtype, stream.Width, stream.Height = Name.XObject, Name.Image, width, height
        stream.Filter, stream.BitsPerComponent = self.filter, self.bits
        stream.ColorSpace = self._space(pdf)
        if self.parameters:
            stream.DecodeParms = Dictionary(self.parameters)
        if self.inverted:
            stream.Decode = Array([1, 0] * self.components)
        return stream

    def placement(self, width: float, height: float) -> str:
        """The matrix that puts it on a page of this size."""
        a, b, c, d, e, f = _PLACES[self.orientation]
        return f"{a * width:g} {b * height:g} {c * width:g} {d * height:g} {e * width:g} {f * height:g}"

    def _space(self, pdf: pikepdf.Pdf) -> Any:
        space, signature = _SPACES[self.components]
        if self.palette is not None:
            return Array([Name.Indexed, Name.DeviceRGB, len(self.palette) // 3 - 1, self.palette])
        # A profile for another number of components makes viewers refuse the image.
        if self.profile is None or len(self.profile) > _LARGEST_PROFILE or self.profile[16:20] != signature:
            return space
        return Array([Name.ICCBased, Stream(pdf, self.profile, N=self.components, Alternate=space)])


def as_stored(source: bytes | Path, frame: int = 0) -> PdfImage | None:
    """An image with its stored bytes; None where a PDF cannot hold them, or they are not such an image.

    That is so for JPEG, for PNG without transparent parts that is not interlaced, and for black and white TIFF frames,
    which are compressed as for a fax.
    """
    try:
        with _image(source, ("JPEG", "PNG", "TIFF")) as image:
            if image.format == "TIFF":
                image.seek(frame)
                return _fax(image) if image.mode == "1" else None
            data = source if isinstance(source, bytes) else source.read_bytes()
            return _png(data, image) if image.format == "PNG" else _jpeg(data, image)
    except Exception:  # decoding reports whatever is wrong with it
        return None


def is_lossy(source: bytes | Path, frame: int = 0) -> bool:
    """Whether an image that :func:`as_stored` cannot give has lost details already: WebP, and JPEG in a TIFF."""
    try:
        with _image(source, ("TIFF", "WEBP")) as image:
            image.seek(frame)
            return image.format == "WEBP" or image.info.get("compression") in _LOSSY
    except Exception:  # as above
        return False


def of_pixels(pixels: NDArray[Any], *, lossy: bool = False) -> PdfImage:
    """An image of pixels, as JPEG of high quality or without loss."""
    # A grey scan as one channel takes a third of the space.
    shades = (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 1] == pixels[..., 2]).all()
    buffer = io.BytesIO()
    kind, options = ("JPEG", {"quality": _QUALITY}) if lossy else ("PNG", {})
    Image.fromarray(pixels[..., 0] if shades else pixels).save(buffer, kind, **options)
    made = as_stored(buffer.getvalue())
    assert made is not None
    return made


def _image(source: bytes | Path, formats: tuple[str, ...]) -> Image.Image:
    return Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=formats)


def _orientation(image: Image.Image) -> int:
    value = image.getexif().get(_ORIENTATION, 1)
    return value if value in _PLACES else 1


def _jpeg(data: bytes, image: Image.Image) -> PdfImage | None:
    if image.mode not in _COMPONENTS:
        return None
    return PdfImage(
        data=data,
        filter=Name.DCTDecode,
        size=image.size,
        components=_COMPONENTS[image.mode],
        orientation=_orientation(image),
        profile=image.info.get("icc_profile"),
        # Adobe's programs store CMYK inverted, and say so by their marker alone.
        inverted=image.mode == "CMYK" and "adobe" in image.info,
    )


def _png(data: bytes, image: Image.Image) -> PdfImage | None:
    bits, colours, _, _, interlaced = struct.unpack(">5B", data[24:29])
    palette, parts, place = b"", [], len(_PNG_SIGNATURE)
    while place + 12 <= len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        content = data[place + 8 : place + 8 + length]
        # A PDF has transparency in an object of its own: it is simpler to encode the pixels.
        if kind == b"tRNS":
            return None
        if kind == b"PLTE":
            palette = content
        elif kind == b"IDAT":
            parts.append(content)
        place += 12 + length
    if interlaced or colours not in _PNG_COMPONENTS or not parts:
        return None
    components, width = _PNG_COMPONENTS[colours], image.size[0]
    return PdfImage(
        data=b"".join(parts),
        filter=Name.FlateDecode,
        size=image.size,
        components=components,
        bits=bits,
        orientation=_orientation(image),
        parameters={"/Predictor": 15, "/Colors": components, "/BitsPerComponent": bits, "/Columns": width},
        palette=palette if colours == 3 else None,
        profile=image.info.get("icc_profile"),
    )


def _fax(image: Image.Image) -> PdfImage:
    image.load()  # Pillow turns it upright
    buffer = io.BytesIO()
    # One strip, most significant bit first.
    image.save(buffer, "TIFF", compression="group4", tiffinfo={_STRIP_ROWS: image.size[1], _FILL_ORDER: 1})
    buffer.seek(0)
    with TiffImageFile(buffer) as packed:
        tags = packed.tag_v2
        one_is_white = tags[_PHOTOMETRIC] == 1
        (start,), (size,) = tags[_STRIP_OFFSETS], tags[_STRIP_SIZES]
    width, height = image.size
    return PdfImage(
        data=buffer.getvalue()[start : start + size],
        filter=Name.CCITTFaxDecode,
        size=image.size,
        components=1,
        bits=1,
        parameters={"/K": -1, "/Columns": width, "/Rows": height, "/BlackIs1": one_is_white},
    )
