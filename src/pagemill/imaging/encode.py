"""Encoding page images and crops."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import simplejpeg
from PIL import Image

from pagemill.imaging.transforms import fit

if TYPE_CHECKING:
    from pagemill.imaging.types import Pixels

PREVIEW_SIDE = 1000


def encode_jpeg(pixels: Pixels, quality: int = 90) -> bytes:
    """Encode as JPEG without chroma subsampling, which would smear coloured text.

    Raises:
        ValueError: The image has no pixels or a side over 65,535.
    """
    encoded: bytes = simplejpeg.encode_jpeg(
        np.ascontiguousarray(pixels), quality=quality, colorspace="RGB", colorsubsampling="444"
    )
    return encoded


def encode_webp(pixels: Pixels, quality: int = 60) -> bytes:
    """Encode as lossy WebP.

    Raises:
        ValueError: The image has no pixels or a side over 16,383.
    """
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "WEBP", quality=quality, method=2)
    return buffer.getvalue()


def encode_preview(pixels: Pixels) -> bytes:
    """A small WebP of a page for the report, its longer side at most ``PREVIEW_SIDE`` pixels."""
    return encode_webp(fit(pixels, PREVIEW_SIDE))
