"""Running heads, running feet and page numbers, proven by the same position on other pages."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pagemill.document.labels import FURNITURE_LABELS, PICTURES, TITLES, Label, is_page_number
from pagemill.document.page import Furniture
from pagemill.document.structure.book import TEXTS, Book, Draft, folded
from pagemill.late import re

log = logging.getLogger(__name__)

_MARGIN = 150
"""Height of the bands at the head and foot of a page in which furniture stands, in thousandths: two lines below a
margin of an inch and a half on a letter page. Not measured."""
_NUMBER_MARGIN = 180
"""Likewise of bands in which page numbers alone stand: LaTeX sets them 175 above the edge of A4."""
_SHIFT = 8
"""Maximum vertical offset of furniture between pages, in thousandths: under half a line."""
_SIDE_SHIFT = 15
"""Likewise to the side, where a page number has a digit more."""
_NEAR = 3
"""Pages on either side that are compared: a chapter's running head need not be on more, and every other page may have
another one."""
_ENOUGH = 2
"""Number of these that must show the same, unless there are not that many or a layout model says the same."""
_FIRST, _LAST = re.compile(r"(\d{1,4})\b(.*)"), re.compile(r"(.*)\b(\d{1,4})")
"""A number at the start or at the end of a text."""
_ORDINAL = re.compile(r"\d{1,4}[.)]")
_NUMBER = re.compile("[0-9]{1,9}")
_LONGEST = 200
"""Characters of a running head."""
_HEADING_SIZE = 1.15
"""Times the body from which a text is too large for a running head: the title of a slide, say. Not measured."""
_CLOSE = 1.0
"""Gap to the text below, in heights of its own, up to which a text is set as its heading. Not measured."""
_ENDS_EARLY = 700
"""Thousandths of a page above which its text ends where a new page was asked for. Not measured."""


def mark_furniture(book: Book) -> None:
    """Mark furniture: proven if it repeats at its position, likely if it only looks like it."""
    places: dict[str, dict[int, list[Draft]]] = defaultdict(dict)
    candidates = [draft for position in range(len(book.pages)) for draft in _at_margins(book, position)]
    for draft in candidates:
        places[_key(draft)].setdefault(draft.page, []).append(draft)
    # By the difference to the page's number: page numbers have the same one on all pages, other numbers do not.
    counts: dict[int, dict[int, list[Draft]]] = defaultdict(lambda: defaultdict(list))
    for draft in book.each():
        if _is_inside(draft, _NUMBER_MARGIN):
            for number in _numbers(draft.facts.head):
                counts[number - _number(book, draft)][draft.page].append(draft)
    proofs = ((draft, _proof(book, draft, places[_key(draft)], counts)) for draft in candidates)
    proven = {draft: proof for draft, proof in proofs if proof and not _begins_part(book, draft, places[_key(draft)])}
    for draft in candidates:
        # Of a deck of slides or a form, all text may repeat: such a page would be empty without it.
        says_all = not any(each.is_content and each not in proven for each in book.drafts[draft.page])
        if draft not in proven or (says_all and draft.label not in FURNITURE_LABELS):
            continue  # what a page says alone is not furniture
        draft.furniture, draft.level = Furniture.PROVEN, None
        if draft.label not in FURNITURE_LABELS:
            is_number = not any(map(str.isalpha, draft.facts.head))
            draft.label = Label.NUMBER if is_number else Label.HEADER if draft.facts.box[1] < 500 else Label.FOOTER
        log.info("%s: %s left out: %s", book.name(draft), draft.label, proven[draft])
    for draft in book.each():
        if draft.label in FURNITURE_LABELS and draft.furniture is None:
            is_number = is_page_number(draft.label, draft.facts.head)
            draft.furniture = Furniture.PROVEN if is_number else Furniture.LIKELY
            if not is_number:
                log.info("%s: %s kept: no other page proves that it is one", book.name(draft), draft.label)


def _proof(
    book: Book,
    draft: Draft,
    alike: dict[int, list[Draft]],
    counts: Mapping[int, Mapping[int, Sequence[Draft]]],
) -> str:
    """Evidence on other pages that a text is furniture; empty without."""
    if _repeats(book, draft, alike):
        return "other pages have the same at its place"
    return "its number counts the pages" if _counts_on(book, draft, counts) else ""


def _begins_part(book: Book, draft: Draft, alike: Mapping[int, Sequence[Draft]]) -> bool:
    """Whether a text that is counted like the pages may be the heading of a part: of each question on its page, say.

    It is close to its text, or the pages before such ones end early.
    """
    head, top = draft.facts.head, draft.facts.box[1]
    if top > 500 or len(alike) < _ENOUGH or not (any(map(str.isalpha, head)) and any(map(str.isdigit, head))):
        return False
    if any(other.facts.head == head for others in alike.values() for other in others if other is not draft):
        return False
    below = [other.facts.box[1] for other in book.drafts[draft.page] if other.facts.box[1] > top]
    if min(below, default=1000) - draft.facts.box[3] < _CLOSE * (draft.facts.box[3] - top):
        return True
    before = [book.drafts[page - 1] for page in alike if page > 0 and book.drafts[page - 1]]
    above = [[draft.facts.box[3] for draft in drafts if _is_inside(draft, _NUMBER_MARGIN) >= 0] for drafts in before]
    ends = [max(bottoms, default=1000) for bottoms in above]
    return 2 * sum(end < _ENDS_EARLY for end in ends) > len(ends)


def _at_margins(book: Book, position: int) -> Iterator[Draft]:
    """The outermost texts at the head and foot of a page."""
    drafts = [draft for draft in book.drafts[position] if draft.label not in PICTURES]
    for side in (1, -1):
        for draft in sorted(drafts, key=lambda draft: side * draft.facts.box[2 - side]):
            if draft.furniture is Furniture.PROVEN:
                continue
            margin = _NUMBER_MARGIN if draft.facts.head.isdecimal() and side < 0 else _MARGIN
            if _is_inside(draft, margin) != side or not _may_run(book, draft):
                break
            yield draft


def _is_inside(draft: Draft, margin: int) -> int:
    """Whether a region is in the band at the head (1) or foot (-1) of its page, or in neither (0)."""
    _, top, _, bottom = draft.facts.box
    return 1 if bottom <= margin else -1 if top >= 1000 - margin else 0


def _number(book: Book, draft: Draft) -> int:
    """The number of a region's page in its file."""
    page = book.pages[draft.page]
    return draft.page if page is None or page.number is None else page.number


def _numbers(text: str) -> set[int]:
    """The numbers that a text begins and ends with."""
    first, last = _FIRST.match(text), _LAST.fullmatch(text)
    return {int(found) for found in (first and first[1], last and last[2]) if found and found.isascii()}


def _counts_on(book: Book, draft: Draft, counts: Mapping[int, Mapping[int, Sequence[Draft]]]) -> bool:
    """Whether a text is the page's number, alone or with a running title: numbers nearby continue with the pages.

    At the head of a page a title before its number may be a heading's, unless other pages have another one there.
    """
    text = draft.facts.head
    if draft.label in TITLES and _ORDINAL.match(text):
        return False  # parts of a document with a page each
    first, last = _FIRST.match(text), _LAST.fullmatch(text)
    top, at_foot = draft.facts.box[1], draft.facts.box[1] > 500
    for number in _numbers(text):
        pages = counts[number - _number(book, draft)]
        near = [
            pages[page]
            for page in range(draft.page - _NEAR, draft.page + _NEAR + 1)
            if page != draft.page and page in pages
        ]
        others = [(other, folded(other.facts.head) == folded(text)) for others in near for other in others]
        is_head = first is not None and int(first[1]) == number
        is_head |= any(abs(other.facts.box[1] - top) <= _SHIFT for other, same in others if not same)
        # Notes begin with their numbers; behind a running title stands the page's.
        is_behind = at_foot and last is not None and int(last[2]) == number
        alike = any(_same_place(draft, other) for other, same in others if same or is_behind)
        if len(near) >= _ENOUGH and (text.isdecimal() or (alike and (at_foot or is_head))):
            return True
    return False


def _may_run(book: Book, draft: Draft) -> bool:
    facts = draft.facts
    fits = draft.label in TEXTS and facts.head and facts.length <= _LONGEST and not facts.is_list and not facts.caption
    # Slides of one title: their file calls it a heading. In a tagged PDF the tag may be wrong, and styles are better
    # evidence.
    is_called_heading = facts.style is None and facts.tag.startswith("H")
    return bool(fits) and not is_called_heading and not (draft.label in TITLES and book.size(draft) >= _HEADING_SIZE)


def _key(draft: Draft) -> str:
    """Key of repeating furniture; headings with different numbers differ."""
    text = draft.facts.head
    return text.casefold() if draft.label in TITLES else folded(text)


def _repeats(book: Book, draft: Draft, alike: dict[int, list[Draft]]) -> bool:
    near = range(max(0, draft.page - _NEAR), min(len(book.pages), draft.page + _NEAR + 1))
    others = [page for page in near if page != draft.page and book.pages[page] is not None]
    found = sum(
        any(_same_place(draft, other) and _same_but_number(book, draft, other) for other in alike.get(page, ()))
        for page in others
    )
    few = len(others) <= _ENOUGH or draft.label in FURNITURE_LABELS
    return found >= (1 if few else _ENOUGH)


def _same_but_number(book: Book, one: Draft, other: Draft) -> bool:
    """Whether two texts are the same but for a number that grows from page to page, as those of lists do not."""
    numbers, others = _NUMBER.findall(one.facts.head), _NUMBER.findall(other.facts.head)
    step = _number(book, other) - _number(book, one)
    return numbers == others or any(int(b) - int(a) == step for a, b in zip(numbers, others, strict=False))


def _same_place(one: Draft, other: Draft) -> bool:
    """Whether two regions stand at the same place of their pages, or are mirrored as on the pages of a book."""
    left, top, right, bottom = one.facts.box
    left_too, top_too, right_too, bottom_too = other.facts.box
    if abs(top - top_too) > _SHIFT or abs(bottom - bottom_too) > _SHIFT:
        return False
    shifts = (left - left_too, right - right_too, one.centre - other.centre, left + right_too - 1000)
    return min(map(abs, shifts)) <= _SIDE_SHIFT
