"""Names of engines and modes in the command line, settings and model cards."""

from __future__ import annotations

from enum import StrEnum

LINES = "lines"
"""The embedded recognition engine: lines of text, not regions."""
VLM = "vlm"
"""The region engine for the models of model cards."""
TRANSFORMERS = "transformers"
"""The region engine for the same models in this process."""
EMBEDDED_TABLES = "slanet-plus"
LAYOUT_MODEL = "pp-doclayout-v3"
"""The table engine in the package."""


class ReadingMode(StrEnum):
    """Input of a region engine."""

    REGIONS = "regions"  # regions found by a layout engine
    PAGES = "pages"  # whole pages, whose regions it finds itself


class TablesMode(StrEnum):
    """How rows and columns of tables are found."""

    AUTO = "auto"  # rules and the text's places; the embedded model where they leave doubt
    RULES = "rules"  # rules and the text's places alone
    MODEL = "model"  # the embedded model, wherever it finds a structure


class FurnitureMode(StrEnum):
    """Which running heads, running feet and page numbers are omitted from texts."""

    PROVEN = "proven"  # with evidence besides their place
    LIKELY = "likely"  # also by their place or a model alone


class TextLayerMode(StrEnum):
    """Whether the text layer of a PDF page is used instead of recognition."""

    AUTO = "auto"  # if it is present and sound
    ALWAYS = "always"  # if it is present, sound or not
    NEVER = "never"


class StructureMode(StrEnum):
    """Source of the structure of a page with a sound text layer."""

    FONTS = "fonts"  # fonts, places and drawn lines where they suffice; else as below
    PIXELS = "pixels"  # layout detection


class ScheduleMode(StrEnum):
    """In which order the stages of pages run."""

    SEQUENTIAL = "sequential"  # one page after the other
    CONCURRENT_RENDER = "concurrent-render"  # pages are decoded ahead, all else is done for one at a time
    STAGED = "staged"  # batches of pages, with a barrier before each stage
    STREAMING = "streaming"  # each page continues as soon as there is room


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


class TorchDevice(StrEnum):
    """Where a model of PyTorch runs."""

    AUTO = "auto"  # the first of CUDA, MPS and CPU that is there
    CUDA = "cuda"
    MPS = "mps"
    CPU = "cpu"


class TorchDtype(StrEnum):
    """Data type of a model's weights in this process."""

    AUTO = "auto"  # bfloat16 where the device computes in it, else float32
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
