"""Settings that change the result of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pagemill.config.describing import DescribeSettings
from pagemill.config.headings import OUTPUT, RECOGNITION, RESUME
from pagemill.config.modes import (
    EMBEDDED_TABLES,
    FurnitureMode,
    PhotographMode,
    StructureMode,
    TablesMode,
    TextLayerMode,
)
from pagemill.config.options import Settings, option
from pagemill.config.recognition import RecognitionSettings
from pagemill.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChoice(Settings):
    """Which layout engine finds the regions of a page."""

    HEADING: ClassVar = RECOGNITION
    RESULTS: ClassVar = True

    engine: str = option(
        key="layout_engine",
        default="onnx",
        help="Installed layout engine: onnx (embedded), pp-doclayout-v3, or one of another package.",
    )
    model: Path | None = option(
        key="layout_model",
        help="Model of the layout engine: an ONNX file; for pp-doclayout-v3 a folder of weights or a TOML file.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEngineSettings(Settings):
    """Which model finds rows and columns of tables."""

    HEADING: ClassVar = RECOGNITION
    RESULTS: ClassVar = True

    name: str = option(
        key="table_engine",
        default=EMBEDDED_TABLES,
        help="Model that --tables auto and model ask: slanet-plus (embedded), table-transformer (PyTorch), or an "
        "installed table engine.",
    )
    model: str | None = option(
        key="table_model",
        metavar="FOLDER",
        help="Checkpoint of the table engine.",
        shown_default="as `pagemill models download` keeps it",
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.model is not None and self.name == EMBEDDED_TABLES:
            raise UsageError("--table-model requires a table engine", remedy="Add --table-engine table-transformer.")


def _languages(given: Sequence[str]) -> tuple[str, ...] | None:
    if isinstance(given, str):
        raise UsageError(f"languages is {given!r}", remedy=f"Pass a list: {given.split(',')!r}.")
    codes = tuple(code.strip().lower() for code in given if code.strip())
    if not codes:
        raise UsageError("no language is given", remedy="Name at least one language, or auto.")
    if "auto" in codes and len(codes) > 1:
        raise UsageError("auto detects the languages and excludes others", remedy="Name languages, or auto alone.")
    return None if codes == ("auto",) else codes


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseSettings(Settings):
    """Settings that change the result of a page."""

    HEADING: ClassVar = RECOGNITION

    languages: tuple[str, ...] | None = option(
        "--lang",
        metavar="CODES",
        comma_separated=True,
        parse=_languages,
        results=True,
        jobs=True,
        help="Languages to recognize, such as ko,en; auto detects the script of each page.",
        shown_default="auto",
    )
    text_layer: TextLayerMode = option(
        results=True,
        jobs=True,
        help="Use the text layer of PDFs: where it is sound, always, or never.",
        shown_default="auto; never with a region engine",
    )
    structure: StructureMode | None = option(
        results=True,
        help="Structure of a page with a sound text layer: from its fonts and drawn lines, with layout detection where "
        "these do not show it (fonts), or from layout detection alone (pixels).",
        shown_default="fonts; pixels with a layout or table engine of your choice",
    )
    photographs: PhotographMode = option(
        default=PhotographMode.AUTO,
        results=True,
        jobs=True,
        help="Unwarp pages that are recognized, not taken from a text layer: photographs (auto), all (always), or none "
        "(never).",
    )
    tables: TablesMode = option(
        default=TablesMode.AUTO,
        results=True,
        jobs=True,
        help="How rows and columns of tables are found: by drawn rules and the places of the text, with the embedded "
        "model where these leave doubt (auto) or without it (rules), or by the model wherever it finds some (model).",
    )
    furniture: FurnitureMode = option(
        default=FurnitureMode.PROVEN,
        results=True,
        help="Running heads, running feet and page numbers that texts leave out: those that are proven, by other pages "
        "or by the file itself, or those that are likely as well, by their place.",
    )
    crops: bool = option(
        default=True, heading=OUTPUT, results=True, jobs=True, help="Save image, chart and formula regions."
    )
    inline_marks: bool = option(
        default=True,
        heading=OUTPUT,
        results=True,
        jobs=True,
        help="Keep bold, italic, struck-out and fixed-width words, scripts and links of text layers.",
    )
    read_images: bool = option(
        default=False,
        results=True,
        jobs=True,
        help="Recognize the text of pictures inside of Office, HWP, web and mail files.",
    )
    table_choice: TableEngineSettings = TableEngineSettings()
    recognition: RecognitionSettings = RecognitionSettings()
    describing: DescribeSettings = DescribeSettings()
    preview_pages: int = 0
    """Make a small image for the report of this many pages, from the start of the input."""
    page_timeout_s: float = option(
        "--page-timeout",
        default=300.0,
        heading=RESUME,
        above=0,
        results=False,
        help="Limit of CPU time of one page after decoding, requests to servers not counted. A page that makes no "
        "progress has the same limit by the clock.",
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.text_layer is None:  # None: whoever chose a region engine wants it to read
            object.__setattr__(self, "text_layer", self.recognition.text_layer)
        if self.describing != DescribeSettings() and not self.describing.kinds:
            raise UsageError("nothing is to be described", remedy="Name the kinds: --describe figures,charts,tables.")
        if self.table_choice != TableEngineSettings() and self.tables is TablesMode.RULES:
            raise UsageError("--tables rules asks no table engine", remedy="Leave out one of the options.")
        if self.languages and self.recognition.reads_regions:
            raise UsageError(
                f"languages apply to line recognition: {self.recognition.engine} recognizes those of its model",
                remedy="Leave out the languages (--lang).",
            )

    @property
    def reads_fonts(self) -> bool:
        """Whether the structure of pages is read from fonts; by default not if an option about tables is set."""
        is_chosen = self.tables is not TablesMode.AUTO or self.table_choice.name != EMBEDDED_TABLES
        return self.structure is StructureMode.FONTS or (self.structure is None and not is_chosen)
