import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pikepdf
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageOps
from synthetic_run import page

from pagemill.export.pdf_images import PdfImage, as_stored, is_lossy, of_pixels
from pagemill.export.searchable_pdf import ImagePdf


def picture(mode: str = "RGB") -> Image.Image:
    """Larger than high, and other in every corner."""
    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[:20, :30], pixels[:20, 30:], pixels[20:, :30] = (250, 40, 30), (20, 200, 60), (40, 60, 230)
    pixels[25:38, 35:55] = np.arange(0, 260, 13)[None, :, None]
    image = Image.fromarray(pixels)
    return image.quantize(32) if mode == "P" else image.convert(mode)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def shown(made: PdfImage, path: Path) -> np.ndarray:
    pdf = ImagePdf(path, "x")
    pdf.add(0, made, msgspec.structs.replace(page("d", 1, dpi=72.0), width=0, height=0))
    pdf.save(path / "x.pdf")
    with pikepdf.open(path / "x.pdf") as saved:
        assert saved.check_pdf_syntax() == []
    document = pdfium.PdfDocument(path / "x.pdf")
    width, _ = document[0].get_size()
    return document[0].render(scale=made.upright_size[0] / width).to_pil().convert("RGB")


def near(image: Image.Image, expected: Image.Image, distance: float = 6) -> bool:
    a, b = (np.asarray(each.convert("RGB"), dtype=int) for each in (image, expected))
    return a.shape == b.shape and np.abs(a - b).mean() < distance


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_jpeg_keeps_its_bytes(tmp_path: Path, mode: str) -> None:
    data = encoded(picture(mode), "JPEG", quality=95)
    made = as_stored(data)
    assert made is not None
    assert made.data == data
    # There are many ways from ink to light; one that mixes up both is far off.
    assert near(shown(made, tmp_path), Image.open(io.BytesIO(data)), 50 if mode == "CMYK" else 6)


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "1", "I;16"])
def test_a_png_keeps_its_data(tmp_path: Path, mode: str) -> None:
    if mode == "I;16":
        image = Image.fromarray(np.asarray(picture("L"), dtype=np.uint16) * 257)
        expected = picture("L")
    else:
        image = expected = picture(mode)
    data = encoded(image, "PNG")
    made = as_stored(data)
    assert made is not None
    assert made.data in data
    assert near(shown(made, tmp_path), expected)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_the_orientation_of_a_photograph_is_kept(tmp_path: Path, orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(picture(), kind, exif=exif)
    made = as_stored(data)
    assert made is not None
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    assert made.upright_size == expected.size
    assert near(shown(made, tmp_path), expected)


def test_black_and_white_frames_are_compressed_as_for_a_fax(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).random((300, 203)) > 0.9
    frames = [Image.fromarray(noise), Image.fromarray(~noise)]
    data = encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:], compression="tiff_deflate")
    for index, frame in enumerate(frames):
        made = as_stored(data, index)
        assert made is not None
        assert made.filter == pikepdf.Name.CCITTFaxDecode
        assert near(shown(made, tmp_path), frame)


def test_what_a_pdf_cannot_hold_is_reported(tmp_path: Path) -> None:
    transparent = picture("RGBA")
    transparent.putalpha(100)
    for data in (
        encoded(transparent, "PNG"),
        encoded(picture("P"), "PNG", transparency=0),
        encoded(picture(), "TIFF"),
        encoded(picture(), "WEBP"),
        encoded(picture(), "JPEG")[:50],
        b"",
    ):
        assert as_stored(data) is None
    assert as_stored(encoded(picture("1"), "TIFF"), frame=3) is None


def test_pixels_lose_nothing(tmp_path: Path) -> None:
    for mode, components in (("RGB", 3), ("L", 1)):
        pixels = np.asarray(picture(mode).convert("RGB"))
        made = of_pixels(pixels)
        assert made.components == components
        assert (np.asarray(shown(made, tmp_path)) == pixels).all()


def test_what_has_lost_details_is_not_kept_without_loss(tmp_path: Path) -> None:
    for kind, options, lossy in (
        ("WEBP", {}, True),
        ("TIFF", {"compression": "jpeg"}, True),
        ("TIFF", {"compression": "tiff_lzw"}, False),
        ("BMP", {}, False),
    ):
        path = tmp_path / "image"
        path.write_bytes(encoded(picture(), kind, **options))
        assert is_lossy(path) is is_lossy(path.read_bytes()) is lossy
    made = of_pixels(np.asarray(picture()), lossy=True)
    assert made.filter == pikepdf.Name.DCTDecode
    assert near(shown(made, tmp_path), picture())


def test_colour_profiles_are_kept_where_they_fit(tmp_path: Path) -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for mode, kept in (("RGB", True), ("L", False)):
        made = as_stored(encoded(picture(mode), "JPEG", icc_profile=profile, quality=95))
        assert made is not None
        assert near(shown(made, tmp_path), picture(mode))
        with pikepdf.open(tmp_path / "x.pdf") as pdf:
            (image,) = pdf.pages[0].get_images().values()
            assert (image.ColorSpace != pikepdf.Name.DeviceRGB and mode == "RGB") is kept
