"""One page as data: regions, lines, crops, errors. These structs *are* the record that is written to disk."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from pagemill.document.geometry import Box, Point
from pagemill.document.labels import Label
from pagemill.document.shown import Shown, count
from pagemill.errors import PagemillError, error_class

SCHEMA_VERSION = "1.7"
RESUMABLE_SCHEMA = "1.2"
"""Version of the oldest records that a run may continue: since then fields were added that have a default."""


ANNOTATION = "annotation"
"""``TextLine.engine`` of what a PDF's form fields and annotations show. Somebody filled it in: it is never a running
head, a page number or the lettering of a picture."""


WHOLE_PAGE = "whole-page"
"""``Region.source`` of content without a position: its box is that of the page."""

LOW_CONFIDENCE, UNREAD_SCRIPT, LAYER_MISMATCH = "low_confidence", "unread_script", "text_layer_mismatch"
DOUBTS = frozenset({LOW_CONFIDENCE, UNREAD_SCRIPT, LAYER_MISMATCH})
"""Categories of warnings about text that was read and is probably wrong. Only with ``--strict`` they decide about the
exit status."""
UNRELIABLE = "poorly_read"
"""Category of the warning about a page with unreliable text."""
READING = frozenset({"recognition", "text_layer", "table"})
"""Components whose warnings concern recognized text: a page with one needs review."""


_REPR_WIDTH = 60
"""Characters of a text in a ``repr``, which is one line."""


class Status(StrEnum):
    """How a page ended."""

    DONE = "done"
    FAILED = "failed"


class ContentFormat(StrEnum):
    """How to read ``Region.content``."""

    TEXT = "text"
    HTML = "html"
    LATEX = "latex"
    MARKDOWN = "markdown"  # as a vision-language model writes text: headings, lists, inline formulas
    FORMULA_TEXT = "formula_text"  # best-effort plain text of a formula, no LaTeX


class PageError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error of a page, as data in its record."""

    component: str
    """Stage that failed: ``source``, ``decode``, ``text_layer``, ``unwarping``, ``recognition``, ``deskew``,
    ``layout``, ``analysis``, ``table`` (a region of a page that is otherwise good), ``crops``, ``describe``, or
    ``worker`` for the process as a whole."""
    category: str
    """Machine-readable kind, e.g. ``timeout``, ``crash``, ``encrypted``, ``too_large``, ``corrupt``, ``internal``."""
    message: str
    remedy: str | None = None
    region: int | None = None
    """Index of the region concerned, None for the whole page."""

    def exception(self) -> PagemillError:
        """The error as an exception of its category's class."""
        return error_class(self.category)(self.message, remedy=self.remedy)


class Mark(StrEnum):
    """Style or role of a span of characters."""

    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"
    SUPERSCRIPT = "superscript"
    SUBSCRIPT = "subscript"
    LINK = "link"


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A mark on some characters of a text. Spans of one mark never overlap; those of different marks may."""

    start: int
    """Code-point offset of the first character."""
    end: int
    """Offset behind the last one; beyond ``start``."""
    mark: Mark
    target: str | None = None
    """Target of a link: an http, https, mailto or tel URL; or a place in the document: ``#page=<number from 1>`` with
    ``&top=<thousandths of that page's height>`` where known, until :mod:`pagemill.document.structure` makes it the
    anchor of a heading (``#anchor``)."""


class Style(msgspec.Struct, frozen=True, omit_defaults=True):
    """A style of text on a page of a PDF."""

    family: str
    """Name of the font family, without the tag of its subset, weight and slant."""
    size: float
    """Font size in points, to a tenth."""
    bold: bool = False
    italic: bool = False
    fixed_pitch: bool = False
    colour: int = 0
    """Colour of the fill, as 0xRRGGBB."""
    characters: int = 0
    """Characters of the page in this style, spaces excluded."""


class OutlineEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of a document's outline (its bookmarks)."""

    title: str
    level: int
    """From 1."""
    page: int | None = None
    """Page of the document, from 1; None where it leads nowhere in it."""
    top: int | None = None
    """Thousandths of that page's height, from its top, where known."""


class Furniture(StrEnum):
    """The evidence that a region is a running head, a running foot or a page number."""

    LIKELY = "likely"
    """Position, or a model, alone. It stays in the Markdown unless ``--furniture likely`` leaves it out."""
    PROVEN = "proven"
    """Marked as an artifact by the producer, repeated at its place on other pages, or a page number."""


class DocumentInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata of a document, read once when its file is opened."""

    title: str = ""
    author: str = ""
    created: str = ""
    """Date and time, as ISO 8601; as the file has them where they cannot be read."""
    modified: str = ""
    language: str = ""
    """BCP-47 tag."""
    outline: tuple[OutlineEntry, ...] = ()
    page_labels: tuple[str, ...] = ()
    """Labels of the pages from the first on: ``iv``, ``A-3``; empty where the document has none."""


class Word(msgspec.Struct, frozen=True):
    """A word and its box in page pixels."""

    text: str
    box: Box


class TextLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of text as a recognition engine or the text layer gave it."""

    text: str
    box: Box
    polygon: tuple[Point, ...] | None = None
    """Quadrilateral of a slanted line, clockwise from its top-left corner; None when the box says it all."""
    confidence: float | None = 1.0
    """Expected share of correct characters, 0-1; None where it is unknown: a text layer that was
    taken although it is not sound."""
    engine: str = ""
    words: tuple[Word, ...] = ()
    font_size: float | None = None
    """Font size in page pixels where the text layer has it."""
    bold: bool = False
    spans: tuple[Span, ...] = ()
    """Inline marks of a text layer, ascending; offsets into ``text``."""
    style: int | None = None
    """Index into the page's ``styles`` of most of its characters; None without a text layer."""
    artifact: bool = False
    """The PDF marks it as an artifact: furniture, as its producer says."""
    tag: str = ""
    """Standard type of the structure element that it is part of (``H1``, ``P``, ``LI``, ``TD``); empty in an untagged
    PDF."""


class Description(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's description of an element; see ``docs/describe.md``. As untrusted as the page."""

    summary: str
    """One paragraph."""
    keywords: tuple[str, ...] = ()
    chart: tuple[tuple[str, ...], ...] | None = None
    """The data that a chart shows, row by row, all of the same length, the head first; None for all else, and where the
    values cannot be read off."""
    language: str = ""
    """Language of the description, as the model reports it: ``en``, ``ko``; empty if it does not."""
    engine: str = ""
    """Its author, as in :attr:`Content.engine`: ``vlm:`` and the model card."""
    model: str = ""
    """The model's name on its server."""
    attempts: int = 1
    """How often the model was asked."""
    left_out: tuple[str, ...] = ()
    """What was left out of the answer, in words; the page has an error about it as well."""


class Content(msgspec.Struct, kw_only=True):
    """Fields of a region that records (:class:`Region`) and DocJSON (``pagemill.export.docjson.Element``) share."""

    label: Label
    bbox: Box
    """Box in page pixels."""
    polygon: tuple[Point, ...] | None = None
    content: str | None = None
    """The recognized content; of an image or chart its lettering. None if there is none, or if recognition failed,
    which an error reports."""
    content_format: ContentFormat = ContentFormat.TEXT
    score: float | None = None
    """Score of the layout engine, 0-1; None when the region does not come from a model."""
    source: str = ""
    """Source of the region: the layout engine's name, or ``projection`` / ``orphan-lines`` for fallbacks."""
    engine: str | None = None
    """The recognition engine's name (``rapidocr``, ``vlm:glm-ocr``), ``text-layer``, or ``annotation`` for
    form fields and annotations of a PDF; several are joined by ``+``."""
    other_engine: str | None = None
    """A second engine that read it as well: with the same result, or one that was not kept."""
    structure: str | None = None
    """Source of the rows and columns of a table: ``rules`` (all are drawn), ``text`` (its places, and what rules there
    are), or the name of a model (``slanet-plus``); None for all else, and where the recognition engine did."""
    attempts: int = 1
    """How often a model was asked for the content; more than once where it refused an image as too large, or its answer
    was invalid. For a model that reads whole pages: for the page. What the network lost does not count."""
    confidence: float | None = None
    """Expected share of correct characters, 0-1: the mean over its lines, weighted by length. None where it is unknown,
    as for a model's answer."""
    level: int | None = None
    """Heading level: 1 for a title, 2 and deeper for headings."""
    list_item: bool = False
    """The content's lines are list items, each level below the outermost indented by two spaces."""
    list_depth: int = 0
    """Number of list items that the region is inside of: a paragraph or code block below an item of the outermost list
    has 1."""
    spans: tuple[Span, ...] = ()
    """Inline marks, ascending; offsets into ``content``. Those of tables are tags in their HTML."""
    style: int | None = None
    """Index into the page's ``styles`` of most of its characters."""
    tag: str = ""
    """Standard type of its structure element in a tagged PDF (``H1``, ``P``)."""
    furniture: Furniture | None = None
    """The evidence that it is a running head, a running foot or a page number; None for content."""
    anchor: str | None = None
    """Anchor of a heading: what internal links to it name, unique in the document. Known once the document is read."""
    joined_to: str | None = None
    """The region of an earlier page of which this one is the rest, a paragraph, list or table: its page's id, a slash
    and its index. Known once the document is read."""
    continues: bool = False
    """The text continues in the next text region (column or page break inside a paragraph)."""
    description: Description | None = None
    """Description of a figure, chart, table or formula, if one was requested. An error of component ``describe`` has
    the reason if there is none."""
    lines: tuple[TextLine, ...] = ()


class Region(Content, Shown, kw_only=True):
    """A layout region with its recognized content.

    Its coarse category follows from label and ``list_item``: :func:`pagemill.document.labels.category_of`.
    """

    index: int
    """Position in reading order, from 0."""
    bbox_2d: tuple[int, int, int, int]
    """Box in thousandths of the page width and height."""
    caption_of: int | None = None
    """Index of the figure or table that this caption belongs to, or of the formula that this number belongs to."""

    def __repr__(self) -> str:
        text = " ".join((self.content or "").split())
        text = text if len(text) <= _REPR_WIDTH else f"{text[: _REPR_WIDTH - 1]}…"
        return f"Region({self.index}, {self.label.value}, {text!r})"


class ImageCrop(msgspec.Struct, frozen=True, kw_only=True):
    """A saved crop of an image, chart or formula region."""

    path: str
    """Relative to the output directory, with forward slashes."""
    bbox: tuple[int, int, int, int]
    """Box in thousandths of the page, as in the region."""
    label: Label
    region: int
    size: int = 0
    """Bytes of the file."""
    sha256: str = ""
    """SHA-256 of the file, 64 hex digits: a record can be checked against its pictures."""


class PageFacts(msgspec.Struct, kw_only=True):
    """Fields of a page that records (:class:`PageResult`) and DocJSON (``export.docjson.DocumentPage``) share."""

    page_id: str
    """Unique in the run: ``<doc_id>_<page number>``, or the row's id of a dataset."""
    page_idx: int
    """Position of the page in the run's input, from 0."""
    page_number: int | None
    """Page in the document, from 1; in a dataset the number its id ends in, which may be 0. None where the document
    does not open."""
    width: int = 0
    """Pixels of the page image that all boxes refer to: as decoded (EXIF orientation and /Rotate applied; shrunk where
    the stored image is over the working size, which ``metadata["notes"]`` says), then turned by ``rotation``."""
    height: int = 0
    scale: float = 1.0
    """Pixels of the page image per pixel of the stored image: below 1 where a huge image was shrunk."""
    dpi: float | None = None
    rotation: int = 0
    """Degrees clockwise by which the decoded image was turned upright before layout (0, 90, 180, 270)."""
    unwarped: str = ""
    """The method that unwarped the photograph of a page before recognition (``uvdoc``); empty for a page read as it is.
    Boxes lie on the photograph, ``image_crops`` show the flat page."""
    page_key: str = ""
    """Identity of the page by content (:class:`pagemill.document.identity.PageKey` as text)."""
    status: Status = Status.DONE
    attempts: int = 1
    """Number of attempts, including the last. Attempts of a killed run do not count."""
    errors: list[PageError] = []
    missing: int = 0
    """Pages or rows that the source announces and could not give, for which this failed record stands; at least 1 where
    their number is unknown. 0 for all other records."""
    languages: tuple[str, ...] = ()
    styles: tuple[Style, ...] = ()
    """Styles of the text layer, those with the most characters first."""
    text_source: str = ""
    """``text-layer``, ``ocr``, ``document`` (read without pixels), several joined by ``+``, or empty for a page without
    text."""
    confidence: float | None = None
    """Confidence as of a region: the mean over the lines whose confidence is known, lettering of pictures left out."""
    leaves_out: Furniture = Furniture.PROVEN
    """Running heads, running feet and page numbers left out of exported texts: proven ones, or likely ones as well
    (``--furniture``)."""
    left_out: int = 0
    """Regions whose text is left out for that reason."""
    review: bool = False
    """The page needs a human check; a warning in ``errors`` has the reason."""
    signals: dict[str, float] = {}
    """What speaks against the text, as shares; those that are 0 or unknown are left out. ``low_confidence``: text in
    lines of low confidence. ``unread``: regions, or lines, of which nothing was read. ``unread_script``: lines in a
    script that no engine reads. ``ink_without_text``, ``text_without_ink``: how far a text layer and the pixels
    disagree."""
    timings: dict[str, float] = {}
    """Seconds by stage."""
    metadata: dict[str, Any] = {}
    """Metadata of the source (dataset columns, PDF page label). Plain JSON values."""


class PageResult(PageFacts, Shown, kw_only=True):
    """Everything known about one page: the record in ``ocr_results.jsonl``."""

    doc_id: str
    source: str
    """Source of the document, as the user named it."""
    regions: list[Region] = []
    markdown: str = ""
    image_crops: list[ImageCrop] = []
    schema_version: str = SCHEMA_VERSION

    def __repr__(self) -> str:
        return f"PageResult({self.page_id!r}, {self.status.value}, {count(len(self.regions), 'region')})"

    @property
    def has_image(self) -> bool:
        """Whether there are pixels to show; Office files, web pages and similar documents have none."""
        return self.width > 0 and not self.text_source.startswith("document")
