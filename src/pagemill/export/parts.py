"""The parts of a page in any format: omissions, order of parts, and joined paragraphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import Generic, Self, TypeVar

from pagemill.document.joining import goes_on, join_pair
from pagemill.document.labels import FURNITURE_LABELS, TASK_OF_LABEL, Label, Task, is_page_number
from pagemill.document.page import ContentFormat, Furniture, PageResult, Region, Span, Status
from pagemill.document.spans import carried, cut, shifted, tidy
from pagemill.late import re
from pagemill.tables.joining import join_tables
from pagemill.tables.table import Table

_FORMULA_NUMBER = re.compile(r"[($（\s]*([\w.\-–'′*]{1,16})[)$）\s]*")
_MOST_HELD = 50
"""Parts after an open paragraph beyond which it is not held back for its rest."""
_LONGEST_HELD = 100_000
"""Characters of a paragraph that is held back."""


@dataclass(slots=True)
class TextPart:
    """A piece of a document being written."""

    text: str
    flows: bool = False
    """Running text that may be joined with what comes before or after it."""
    open: bool = False
    """The paragraph continues in the next flowing part."""
    is_list: bool = False
    """A list, one item a line."""
    is_code: bool = False
    """The text is code, and shown as it is."""
    spans: tuple[Span, ...] = ()
    """Inline marks of the text."""
    depth: int = 0
    """Number of list items that it is inside of."""
    table: Table | None = None
    """What the text shows, if that is a table."""
    name: str = ""
    """Name of the region that it ends with: the id of its page, a slash and its index."""
    rest_of: str | None = None
    """Name of the region of an earlier page that it continues with."""
    is_note: bool = False
    """A footnote."""

    def take_up(self, rest: Self) -> None:
        """Merge with the part in which this one continues."""
        self.text = join_pair(self.text, rest.text)
        self.open = rest.open
        self._add_spans(rest)

    def _add_spans(self, rest: Self) -> None:
        """Add what is known of the text that this one ends with now; it may have lost a hyphen before that."""
        if self.spans or rest.spans:
            start = len(self.text) - len(rest.text)
            self.spans = tidy(self.text, (*cut(self.spans, 0, start), *shifted(rest.spans, start)))

    def take_in(self, inner: Self) -> bool:
        """Merge a block that is inside the last item of this list; False if it stays a part of its own."""
        return False

    def add_items(self, rest: Self) -> None:
        """Merge a list that layout detection cut off from this one, or the rest of code."""
        self.text += f"\n{rest.text}"
        self._add_spans(rest)

    def indent_list(self) -> None:
        """Indent a list that is inside the items of another one."""
        text = indent(self.text, "  " * self.depth)
        self.text, self.spans, self.depth = text, carried(self.spans, self.text, text), 0

    def add_rows(self, rest: Self, table: Table) -> None:
        """Merge with the part of the table on the next page."""
        self.table = table

    def begin_list(self) -> None:
        """Move the outermost items to the margin, as those above may be elsewhere.

        Markdown takes an indented start for code.
        """
        text = dedent(self.text).lstrip()
        self.text, self.spans = text, carried(self.spans, self.text, text)


PartT = TypeVar("PartT", bound=TextPart)


class PageRenderer(ABC, Generic[PartT]):
    """Writes the regions of a page in one format.

    Args:
        page: The record.
        crops_root: Put before the paths of crops.
    """

    def __init__(self, page: PageResult, crops_root: str) -> None:
        self.page = page
        self.crops = {crop.region: crops_root + crop.path for crop in page.image_crops}
        self.captions = captions_of(page.regions)

    @abstractmethod
    def failure(self, reason: str) -> PartT:
        """Placeholder for a page or region that could not be read."""

    @abstractmethod
    def picture(self, region: Region) -> PartT | None:
        """An image or chart; None where there is nothing to show."""

    @abstractmethod
    def block(self, region: Region, number: str | None) -> PartT | None:
        """Any other region with content, a formula with its number; None where it stands elsewhere."""


def is_in_text(region: Region, leaves_out: Furniture = Furniture.PROVEN) -> bool:
    """Whether a region is part of the text of a page: no running head or foot, page number or marginal note.

    Furniture is left out where it is proven, or likely as well (:attr:`~pagemill.document.page.PageFacts.leaves_out`).
    """
    if region.furniture is not None or region.label in FURNITURE_LABELS:
        return not is_left_out(region, leaves_out)
    return TASK_OF_LABEL[region.label] is not Task.ABANDON or region.label is Label.FOOTNOTE


def is_left_out(region: Region, leaves_out: Furniture) -> bool:
    """Whether a region is furniture that texts leave out. A page number is one without further proof."""
    if region.furniture is None and region.label not in FURNITURE_LABELS:
        return False
    proven = region.furniture is Furniture.PROVEN or (
        region.furniture is None and is_page_number(region.label, region.content or "")
    )
    return proven or leaves_out is Furniture.LIKELY


def page_parts(renderer: PageRenderer[PartT]) -> list[PartT]:
    """The parts of a page in reading order, footnotes at its end; lists that layout cut apart are joined.

    Marginal notes are left out, and the furniture that the page is to leave out.
    """
    page = renderer.page
    if page.status is Status.FAILED:
        reasons = "; ".join(error.message for error in page.errors)
        what = "the document" if page.page_number is None else f"page {page.page_number}"
        return [renderer.failure(f"{what} failed: {reasons}")]
    numbers = formula_numbers(page.regions)
    unread = {error.region: error.message for error in page.errors if error.component != "describe"}
    parts: list[PartT] = []
    notes: list[PartT] = []
    for region in page.regions:
        task = TASK_OF_LABEL[region.label]
        is_note = region.label is Label.FOOTNOTE
        part = renderer.picture(region) if task is Task.SKIP else None
        if part is None and region.content is None and region.index in unread:
            reason = unread[region.index]
            part = renderer.failure(f"region {region.index} ({region.label}) could not be read: {reason}")
        elif region.content and task is not Task.SKIP and is_in_text(region, page.leaves_out):
            # Else the number is written with its formula.
            if region.label is not Label.FORMULA_NUMBER or region.caption_of not in numbers:
                part = renderer.block(region, numbers.get(region.index))
        if part is None:
            continue
        part.name, part.rest_of, part.is_note = f"{page.page_id}/{region.index}", region.joined_to, is_note
        in_list = bool(parts) and (parts[-1].is_list or parts[-1].depth > 0)
        if region.list_depth and in_list:  # of a list that started on another page, it stands by itself
            part.depth, part.flows, part.open = region.list_depth, False, False
            if part.is_list:
                part.indent_list()
        if is_note:
            notes.append(part)
        elif part.depth and parts[-1].take_in(part):
            continue
        elif part.is_list and parts and parts[-1].is_list:
            parts[-1].add_items(part)
            parts[-1].name = part.name
        else:
            if part.is_list and not in_list:
                part.begin_list()
            parts.append(part)
    return parts + notes


def formula_numbers(regions: Sequence[Region]) -> dict[int, str]:
    """The numbers of display formulas, by the formula's index, as far as LaTeX can write them with the formula."""
    numbers: dict[int, str] = {}
    for region in regions:
        if region.label is not Label.FORMULA_NUMBER or region.caption_of is None:
            continue
        formula = regions[region.caption_of]
        number = _FORMULA_NUMBER.fullmatch(region.content or "")
        formats = (ContentFormat.LATEX, ContentFormat.FORMULA_TEXT)
        latex = formula.content if formula.content_format in formats else None
        # A model may have written the number itself, and LaTeX refuses two.
        if number and latex and "\\tag" not in latex:
            numbers[formula.index] = number[1]
    return numbers


def captions_of(regions: Iterable[Region]) -> dict[int, list[Region]]:
    """The captions of figures and tables, by the index of what they belong to."""
    captions: dict[int, list[Region]] = {}
    for region in regions:
        if region.caption_of is not None and region.content:
            captions.setdefault(region.caption_of, []).append(region)
    return captions


def joined(parts: Sequence[PartT]) -> list[PartT]:
    """Join each part with the one in which it continues; what stands between them comes after.

    An open paragraph continues in the next flowing part, if that reads so; a list, table or code where its document
    tells.
    """
    result: list[PartT] = []
    pending: PartT | None = None
    for part in parts:
        before = next((each for each in result if each.name == part.rest_of), None) if part.rest_of else None
        if before is not None and _is_taken_up(before, part):
            before.name = part.name
        elif not part.flows:
            result.append(part)
        elif pending is not None and goes_on(pending.text, part.text):
            pending.take_up(part)
            pending.name = part.name
            pending = pending if part.open else None
        else:
            result.append(part)
            pending = part if part.open else None
    return result


def _is_taken_up(before: PartT, part: PartT) -> bool:
    """Add the rest of a list, a table or code to it; False where it is none."""
    if before.table is not None and part.table is not None:
        before.add_rows(part, join_tables(before.table, part.table))
    elif (before.is_list and part.is_list) or (before.is_code and part.is_code):
        before.add_items(part)
    elif before.is_list and part.flows:
        before.take_up(part)
    else:
        return False
    return True


def stream_joined(pages: Iterable[tuple[PageResult, Sequence[PartT]]]) -> Iterator[PartT]:
    """The parts of a document, page by page, joined over page breaks.

    Only what a page leaves open is held back, and not for long: not past a page that failed, nor past many parts.
    """
    held: list[PartT] = []
    for page, own in pages:
        parts = joined([*held, *own])
        # Over a page that failed nothing is joined: what was on it is unknown.
        held = [] if page.status is Status.FAILED else left_open(parts)
        yield from parts[: len(parts) - len(held)]
    yield from held


def left_open(parts: list[PartT]) -> list[PartT]:
    """The part whose rest may come on the next page and what follows it; bounded in number and size.

    That is an open paragraph, or a list, table or code below which there are only notes.
    """
    keep = next((i for i in range(len(parts) - 1, -1, -1) if parts[i].flows), None)
    last = next((i for i in range(len(parts) - 1, -1, -1) if not parts[i].is_note), None)
    wanted = [keep] if keep is not None and parts[keep].open else []
    wanted += [last] if last is not None and (parts[last].is_list or parts[last].is_code or parts[last].table) else []
    if not wanted:
        return []
    held = parts[min(wanted) :]
    return held if len(held) <= _MOST_HELD and all(len(part.text) <= _LONGEST_HELD for part in held) else []
