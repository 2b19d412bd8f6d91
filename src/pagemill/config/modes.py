"""The ways of reading a page, as the command line, settings and model cards name them."""

from __future__ import annotations

from enum import StrEnum

LINES = "lines"
"""The embedded way of reading: lines of text, not regions."""
VLM = "vlm"
"""The region engine that model cards are for."""


class ReadingMode(StrEnum):
    """What a region engine is given at a time."""

    REGIONS = "regions"  # what a layout engine found, cut out
    PAGES = "pages"  # the page, of which it tells the regions itself


class TextLayerMode(StrEnum):
    """Whether the text that a PDF page carries is taken instead of recognition."""

    AUTO = "auto"  # where it is present and sound
    ALWAYS = "always"  # wherever there is one, sound or not
    NEVER = "never"
