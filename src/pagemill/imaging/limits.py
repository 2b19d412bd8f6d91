"""How big a page may be, stored and decoded."""

from __future__ import annotations

import math

import msgspec

POINTS_PER_INCH = 72.0


class DecodeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes that decoding keeps to. All pages come out within the working size, whatever they are stored as."""

    max_stored_pixels: int = 500_000_000
    """Images over this are refused by their header, before anything is decoded."""
    max_stored_bytes: int = 2_000_000_000
    """Encoded images over this are refused."""
    max_pixels: int = 25_000_000
    """Decoded pages over this are shrunk to it (A4 at 500 dpi has 24 million pixels)."""
    max_side: int = 16_000
    """The same for the longer side (OpenCV's warps and WebP end at 2**15 and 2**14)."""
    dpi: float = 200.0
    """Rendering resolution of PDF pages."""
    min_side: int = 1_000
    """PDF pages whose longer side would be shorter than this many pixels are rendered at a higher resolution."""
    max_dpi: float = 1_200.0
    """The end of that rise."""

    def factor_for(self, width: int, height: int) -> float:
        """The factor, at most 1, that brings ``width`` x ``height`` pixels within the working size."""
        return min(1.0, math.sqrt(self.max_pixels / (width * height)), self.max_side / max(width, height))

    def working_size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height at which an image of ``width`` x ``height`` pixels is worked on, both at least 1."""
        factor = self.factor_for(width, height)
        return max(1, round(width * factor)), max(1, round(height * factor))

    def render_size(self, width: float, height: float) -> tuple[int, int, float]:
        """Pixels and resolution at which to render a PDF page.

        Args:
            width: Width of the page in points, over 0.
            height: Its height, likewise.

        Returns:
            Width and height in pixels, both at least 1, and the resolution in dots per inch.
        """
        longest = max(width, height) / POINTS_PER_INCH
        # A poster at the usual resolution would not fit into memory; a stamp at it could not be read.
        most = min(self.max_side / longest, math.sqrt(self.max_pixels / (width * height)) * POINTS_PER_INCH)
        dpi = min(max(self.dpi, min(self.max_dpi, self.min_side / longest)), most)
        scale = dpi / POINTS_PER_INCH
        return max(1, round(width * scale)), max(1, round(height * scale)), dpi
