"""Names of engines and modes in the command line, settings and model cards."""

from __future__ import annotations

from enum import StrEnum

LINES = "lines"
"""The embedded recognition engine: lines of text, not regions."""
VLM = "vlm"
"""The region engine for the models of model cards."""


class ReadingMode(StrEnum):
    """What a region engine is sent."""

    REGIONS = "regions"  # regions found by a layout engine
    PAGES = "pages"  # whole pages, whose regions it finds itself


class TablesMode(StrEnum):
    """Who finds the rows and columns of tables."""

    AUTO = "auto"  # rules and the text's places; the embedded model where they leave doubt
    RULES = "rules"  # rules and the text's places alone
    MODEL = "model"  # the embedded model, wherever it finds a structure


class TextLayerMode(StrEnum):
    """Whether the text layer of a PDF page is used instead of recognition."""

    AUTO = "auto"  # if it is present and sound
    ALWAYS = "always"  # if it is present, sound or not
    NEVER = "never"


class ScheduleMode(StrEnum):
    """In which order the stages of pages run."""

    SEQUENTIAL = "sequential"  # one page after the other
    CONCURRENT_RENDER = "concurrent-render"  # pages are decoded ahead, all else is done for one at a time
    STAGED = "staged"  # batches of pages, with a barrier before each stage
    STREAMING = "streaming"  # each page goes on as soon as there is room


class PhotographMode(StrEnum):
    """Whether page images are unwarped and lit evenly before they are read."""

    AUTO = "auto"  # photographs, recognized by their light
    ALWAYS = "always"  # every page image
    NEVER = "never"


class Described(StrEnum):
    """Kinds of elements that a model describes."""

    FIGURES = "figures"
    CHARTS = "charts"
    TABLES = "tables"
    FORMULAS = "formulas"  # display formulas
