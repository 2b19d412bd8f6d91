"""Headings of a document and their levels: ranks of styles over all pages, overruled by tags, outline or numbers."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise, permutations

from pagemill.document.labels import FURNITURE_LABELS, TITLES, Label
from pagemill.document.page import Furniture, OutlineEntry, Style
from pagemill.document.structure.book import BESIDE, TEXTS, Book, Draft, letters
from pagemill.document.structure.facts import HEAD
from pagemill.late import re

log = logging.getLogger(__name__)

DEEPEST = 6
"""Levels of Markdown and HTML."""
_TITLE_PAGES = 2
"""Pages at the start among which the title is: it may follow a cover without text."""
_SAME_SIZE = 0.2
"""Points by which sizes of one style differ, as producers round and scale them."""
_MEASURED = 0.04
"""Share by which the size of a font without a name differs, which is measured: slanted letters are 3 % too high."""
_SAME_HEIGHT = 0.8
"""Share of a heading's line height from which a lower one is of the same level, where only pixels show it: ascenders
and descenders change the height of a recognized line by as much. Not measured."""
_MOST_ROWS = 3
"""Lines of a heading."""
_CELL_GAP = 40
"""Thousandths of the page's width up to which what stands beside a text is in its row, not in another column."""
_LONG_SHARE = 0.25
"""Long texts in a style, per heading, up to which it is a style of headings."""
_OWN_STYLES = 2
"""Headings with a style of their own from which one that looks like the body is none."""
_LARGER, _MARKED = 1.03, 3
"""Size of a heading over that of the body, and headings that are larger or set off, from which bold lines that are
neither are none. Not measured."""
_LARGE = 1.09
"""The same of a style that is one of headings by its size, as on pages."""
_SET_OFF, _WIDE_GAP = 2, 60
"""Space above headings beyond that of paragraphs from which they can be distinguished, in thousandths of the page's
height; wider gaps are those of pictures and ends of chapters."""
_EDGE, _INDENT = 10, 90
"""Thousandths of the page's width within which two texts begin at one edge, and up to which one is indented; what is
farther is in another column."""
_SHORT = 60
"""Characters of a heading that only spaces set off. Not measured."""
_MOST_COMPARED = 60
"""Texts of a page that are compared, each with all others."""
_MATCHED = 0.5
"""Share of the outline's entries that must be found on their pages."""
_USUAL_DEPTH = 0.2
"""Share of the headings in one style from which a depth is one of that style."""

_NUMBER = re.compile(r"(?:\d{1,3}|[A-Z]\.\d{1,3})(?:\.\d{1,3})*(?=[.)]?\s)")
_TAGGED = re.compile(r"H([1-6])")
TEXT_TAGS = frozenset(("P", "LI", "LBody", "TD", "Span"))
"""Tags of body text: in a file that also tags headings, such text is not a heading, however it is set."""
_ENDS = re.compile("[.,;:。，、；：]$")

_CODE_SIZE, _UNKNOWN_CODE_SIZE = 0.03, 1.25
"""Share by which the size of code in headings is off, where the size of code in running text is known, and the size of
a heading over that of code in it where that is not. Browsers set code in 13/16 of the size, with some fonts."""
_SAME_ROW = 3
"""Thousandths of the page's height within which a heading and the text behind it begin on one row. Not measured."""
_INDENTED, _CENTRED = 30, 12
"""Space on both sides of a centred heading, and by how much they may differ, in thousandths of the page's width. Not
measured."""
Tier = tuple[float, bool, bool, bool, int, bool, bool]
"""What orders styles of headings: size, weight, slant, pitch, colour, whether their text runs on behind them, and
whether they are centred. Not the family: it changes with the script."""


def mark_headings(book: Book, outline: Sequence[OutlineEntry]) -> None:
    """Mark the regions that are headings, and set their levels."""
    # In order of trust: tags name headings one by one, an outline only their titles; numbers and styles are indirect.
    tags = _tagged(book)
    entries = {} if tags else _outlined(book, outline)
    depths = tags or entries
    if tags:  # a page without tagged headings may have taken bold text for them
        for draft in book.each():
            if draft.is_heading and draft.facts.tag in TEXT_TAGS and book.size(draft) <= _LARGER:
                draft.label, draft.level = Label.TEXT, None
    _promote(book, depths)
    _promote_set_off(book)
    _demote(book, depths)
    _demote_lead_ins(book, depths)
    _demote_below_title(book, depths)
    headings = [draft for draft in book.each() if draft.is_heading]
    if not headings:
        return
    tiers = _tiers(book, headings)
    numbers = {} if depths or not tiers else _numbered(book, headings, tiers)
    if tiers:
        _set_levels(book, headings, tiers, depths or numbers)
    source = "tags" if tags else "outline" if entries else "numbers" if numbers else "style"
    log.info("%s: first of %d headings, levels by %s", book.name(headings[0]), len(headings), source)
    # A book may have thousands of headings: no names are made for lines that nobody sees.
    for draft in headings if log.isEnabledFor(logging.DEBUG) else ():
        by = source if draft in (depths or numbers) else "style"
        log.debug("%s: heading of level %s by %s: %s", book.name(draft), draft.level, by, draft.facts.head)


def _tagged(book: Book) -> dict[Draft, int]:
    """The levels that the file's tags give, where they are sound: there is more than headings."""
    found: dict[Draft, int] = {}
    others = 0
    for draft in book.each():
        match = _TAGGED.fullmatch(draft.facts.tag)
        if match and draft.label in TEXTS and draft.facts.head and draft.furniture is None:
            found[draft] = int(match[1])
        elif draft.facts.tag:
            others += 1
    return found if found and others >= len(found) else {}


def _outlined(book: Book, outline: Sequence[OutlineEntry]) -> dict[Draft, int]:
    """The levels that the outline gives to the texts that it names, if most of its entries are found there."""
    numbers = {page.number: position for position, page in enumerate(book.pages) if page}
    found: dict[Draft, int] = {}
    wanted = 0
    texts: dict[int, list[tuple[str, Draft]]] = {}
    for entry in outline:
        position = numbers.get(entry.page)
        title = letters(entry.title)
        if position is None or entry.page is None or not title:
            continue
        wanted += 1
        if position not in texts:
            here = (draft for draft in book.drafts[position] if draft.label in TEXTS and draft.facts.length <= HEAD)
            texts[position] = [(letters(draft.facts.head), draft) for draft in here]
        for text, draft in texts[position]:
            if draft not in found and (text == title or _is_numbered(text, title) or _is_numbered(title, text)):
                found[draft] = entry.level
                break
    return found if found and len(found) >= _MATCHED * wanted else {}


def _is_numbered(text: str, title: str) -> bool:
    """Whether a text is a title after a number."""
    rest = text.removesuffix(title)
    return len(title) > 1 and len(rest) < len(text) and len(rest) <= 8 and any(map(str.isdigit, rest))


def _numbered(book: Book, headings: Iterable[Draft], tiers: Mapping[Draft, int]) -> dict[Draft, int]:
    """The depths of numbers before headings; none where fewer than two are numbered.

    Numbers of one part in another style than the first such heading has are steps below other headings. Heights of
    lines, measured in pixels, are too coarse to decide.
    """
    matches = ((draft, _NUMBER.match(draft.facts.head)) for draft in headings)
    found = {draft: match[0].count(".") + 1 for draft, match in matches if match}
    if any(book.style(draft) for draft in found):
        highest = min((tiers[draft] for draft in found if found[draft] == 1 and draft in tiers), default=None)
        found = {draft: depth for draft, depth in found.items() if depth > 1 or tiers.get(draft) == highest}
    return found if len(found) > 1 else {}


def _promote(book: Book, depths: Mapping[Draft, int]) -> None:
    """Make headings of texts that look like headings elsewhere in the document, or that tags or outline name."""
    in_style: Counter[Style] = Counter()
    long: Counter[Style] = Counter()
    sure: set[Style] = set()
    sizes: set[float] = set()  # of headings: a script without a bold cut has theirs
    for draft in book.each():
        style = book.style(draft)
        if style is None:
            continue
        if draft.is_heading:
            in_style[style] += 1
            if book.size(draft) >= _LARGE:
                sizes.add(style.size)
            if draft in depths:
                sure.add(style)
        elif draft.label in TEXTS and (draft.facts.rows > _MOST_ROWS or draft.facts.length > HEAD):
            long[style] += 1
    for drafts in book.drafts:
        for draft in drafts:
            if draft.label not in TEXTS - TITLES or not _could_be(draft):
                continue
            style = book.style(draft)
            named = draft in depths
            alike = (
                style is not None
                and style != book.body
                and (not style.fixed_pitch or style.bold or style.italic)  # a row of inline code is not a heading
                and (in_style[style] >= (1 if style in sure else _OWN_STYLES) or _nearest(style, sizes) is not None)
                and long[style] <= _LONG_SHARE * in_style[style]
                and not _ENDS.search(draft.facts.tail)
            )
            if named or (alike and _is_alone(draft, drafts)):
                draft.label, draft.furniture = Label.PARAGRAPH_TITLE, None


def _promote_set_off(book: Book) -> None:
    """Make headings of rows that spaces set off: in a style of their own, or in any where there are no other headings.

    Rows of a style are judged together: verse, captions, signatures and names in dialogues are set off now and then.
    """
    in_any_style = sum(draft.is_heading for draft in book.each()) < 2
    long = sum(draft.label is Label.TEXT and draft.facts.rows > 1 for draft in book.each())
    found: dict[tuple[Style | None, bool], list[tuple[Draft, bool]]] = defaultdict(list)
    others: Counter[tuple[Style | None, bool]] = Counter()
    for drafts in book.drafts:
        texts = [draft for draft in drafts if draft.furniture is None and draft.label not in BESIDE]
        for above, draft, below in zip([None, *texts], texts, [*texts[1:], None], strict=False):
            style = book.style(draft)
            own = style not in (None, book.body)
            if draft.label is not Label.TEXT or not (own or in_any_style):
                continue
            apart = draft.facts.box[1] - above.facts.box[3] if above else _WIDE_GAP
            gap = below.facts.box[1] - draft.facts.box[3] if below else -1
            follows = above is not None and above.is_heading
            look = style, draft.facts.head.isupper()
            heads = below is not None and not below.is_heading and (style == book.style(below)) is not own
            heads = heads and below is not None and _is_short(draft, below, drafts)
            if heads and 0 <= gap <= apart - (0 if own and follows else _SET_OFF):
                is_apart = apart <= _WIDE_GAP and not (own and follows)  # else it is perhaps the caption of a drawing
                is_sure = is_apart and below is not None and below.label is Label.TEXT and below.facts.rows > 1
                found[look].append((draft, is_sure))
            elif gap >= 0 or not own:  # at the end of a column nobody knows
                others[look] += 1
    for (style, capitals), rows in found.items():
        own = style not in (None, book.body)
        sure = [draft for draft, is_sure in rows if is_sure]
        names = len({draft.facts.head for draft in sure})
        # No more than paragraphs: else short lines are an address or a form, not headings.
        enough = max(_MARKED, (1 - _LONG_SHARE) * len(sure)) <= names <= long
        if enough and not (own and others[style, capitals] > _LONG_SHARE * names):
            for draft in (draft for draft, _ in rows) if own else sure:
                draft.label = Label.PARAGRAPH_TITLE


def _is_short(draft: Draft, below: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether a row may be a heading that only spaces set off; a date at the right edge is none."""
    facts = draft.facts
    is_short = facts.rows == 1 and facts.length <= _SHORT and not _ENDS.search(facts.tail) and _could_be(draft)
    return is_short and (facts.box[0] - below.facts.box[0] < _INDENT or _is_centred(draft, drafts))


def _nearest(style: Style, sizes: Iterable[float]) -> float | None:
    """The nearest of some font sizes to that of a style."""
    near = (size for size in sizes if abs(style.size - size) <= (0 if style.family else _MEASURED * size))
    return min(near, key=lambda size: (abs(style.size - size), size), default=None)


def _could_be(draft: Draft) -> bool:
    facts = draft.facts
    if draft.furniture is not None and (draft.label not in FURNITURE_LABELS or draft.furniture is Furniture.PROVEN):
        return False
    is_short = 0 < facts.length <= HEAD and facts.rows <= _MOST_ROWS and any(map(str.isalpha, facts.head))
    return is_short and not (facts.is_list or facts.caption or facts.depth)


def _is_alone(draft: Draft, drafts: Iterable[Draft]) -> bool:
    left, top, right, bottom = draft.facts.box
    for other in drafts:
        x1, y1, x2, y2 = other.facts.box
        beside = 0 <= x1 - right < _CELL_GAP or 0 <= left - x2 < _CELL_GAP
        if other is not draft and beside and min(bottom, y2) - max(top, y1) > (bottom - top) / 2:
            return False
    return True


def _demote(book: Book, depths: Mapping[Draft, int]) -> None:
    """Demote headings that look like the body to text, and those that look like code elsewhere to code.

    A page of notes or references has smaller text, above which the end of a paragraph is as large as a heading.
    """
    headings = [draft for draft in book.each() if draft.is_heading]
    coded: Counter[Style] = Counter()  # rows of code in a style, less its headings
    for draft in book.each():
        style = book.style(draft)
        if style is not None and (draft.label is Label.ALGORITHM or draft.is_heading):
            coded[style] += -1 if draft.is_heading else draft.facts.rows
    for draft in headings:
        style = book.style(draft)
        # What neither weight nor size sets off hangs in the margin, as headings of manual pages do.
        is_set_off = style is not None and style.fixed_pitch and (style.bold or book.size(draft) > 1)
        if style is not None and is_set_off and coded[style] > 0 and draft not in depths:
            draft.label, draft.level = Label.ALGORITHM, None
    own = sum(book.style(draft) not in (None, book.body) for draft in headings)
    if own < _OWN_STYLES:
        return
    for draft in headings:
        capitals = draft.facts.head.isupper() and _is_centred(draft, book.drafts[draft.page])
        named = draft in depths or capitals or _NUMBER.match(draft.facts.head)
        if not named and book.body is not None and book.style(draft) == book.body:
            draft.label, draft.level = Label.TEXT, None


def _demote_lead_ins(book: Book, depths: Mapping[Draft, int]) -> None:
    """Demote bold lines with the spacing of paragraphs to text, if other headings are larger or set off."""
    body = book.body
    if body is None or body.bold:
        return
    extra = _extra_space(book)
    texts = [draft for draft in book.each() if _is_paragraph(book, draft)]
    headings = [draft for draft in book.each() if draft.is_heading]
    long = Counter(style.colour for draft in texts if draft.facts.rows > 1 and (style := book.style(draft)))
    long.subtract(style.colour for draft in headings if (style := book.style(draft)))
    colours = {body.colour, *(colour for colour, count in long.items() if count > 0)}
    bold = [draft for draft in headings if draft not in depths and _is_bold_body(book, draft, colours)]
    marked = [draft for draft in headings if _is_marked(book, draft, colours)]
    set_off = sum(extra.get(draft, 0) >= _SET_OFF for draft in bold)
    paragraphs = min((draft.facts.box[0] for draft in texts), default=0)
    hanging = {draft for draft in bold if draft.facts.box[0] < paragraphs - _EDGE}  # as those of manual pages
    if max(len(marked), len(hanging), set_off) < _MARKED:
        return
    if any("." in match[0] for draft in book.each() if draft.is_heading and (match := _NUMBER.match(draft.facts.head))):
        return  # the last of several levels, which its numbers show
    usual = _median(extra[draft] for draft in bold if draft in extra)
    coloured = len(marked) >= _MARKED and not any((book.style(draft) or body).colour in colours for draft in marked)
    # Gaps are rounded: one thousandth more decides where it is the rule.
    least = 1 if usual is not None and usual > 0 and len(bold) >= _MARKED and not coloured else _SET_OFF
    edges = {draft.facts.box[0] for draft in marked}
    for draft in bold:
        if draft in hanging:
            continue
        drafts = book.drafts[draft.page]
        if (len(hanging) >= _MARKED and not _is_centred(draft, drafts)) or _is_indented(draft, drafts, edges):
            draft.label, draft.level = Label.TEXT, None
            continue
        unknown = 0 if usual is None or not set_off or _ENDS.search(draft.facts.tail) else least
        if usual is not None and extra.get(draft, unknown) < least:
            draft.label, draft.level = Label.TEXT, None


def _demote_below_title(book: Book, depths: Mapping[Draft, int]) -> None:
    """Demote centred lines between the title and the next heading to text: authors, affiliations, a date."""
    headings = [draft for draft in book.each() if draft.is_heading]
    if not headings or not _at_start(book, headings[0]):
        return
    drafts = book.drafts[headings[0].page]
    run: list[Draft] = []
    for draft, below in pairwise(other for other in drafts[headings[0].index :] if other.is_content):
        if not (draft.is_heading and _is_centred(draft, drafts)):
            break
        style = book.style(draft)
        # Where text is below it, a line in regular weight among bold headings is not a heading of it.
        others = [other for heading in headings[len(run) + 1 :] if (other := book.style(heading)) is not None]
        if not below.is_heading and (style is None or style.bold or not any(other.bold for other in others)):
            break
        run.append(draft)
    styles = Counter(book.style(draft) for draft in headings)
    own = Counter(book.style(draft) for draft in run)
    for draft in run[1:]:
        style = book.style(draft)
        if draft not in depths and style is not None and styles[style] == own[style]:  # chapters are elsewhere, too
            draft.label, draft.level = Label.TEXT, None


def _is_marked(book: Book, draft: Draft, colours: Container[int]) -> bool:
    """Whether more than weight and space mark a text as a heading: its size, or a colour that paragraphs lack."""
    style = book.style(draft)
    return book.size(draft) > _LARGER or (style is not None and style.colour not in colours)


def _is_indented(draft: Draft, drafts: Sequence[Draft], edges: Iterable[int]) -> bool:
    """Whether a text begins as paragraphs and quotations do: right of the other headings, or of what is below it."""
    left = draft.facts.box[0]
    below = next((other for other in drafts[draft.index + 1 :] if other.is_content), None)
    if below is None or below.label not in TEXTS or below.facts.box[0] > left + _EDGE:
        return False
    if _is_centred(draft, drafts) or _runs_in(draft, drafts):
        return False
    nearest = max((edge for edge in edges if edge <= left + _EDGE), default=left)
    return any(_EDGE < left - edge < _INDENT for edge in (nearest, below.facts.box[0]))


def _is_bold_body(book: Book, draft: Draft, colours: Container[int]) -> bool:
    style = book.style(draft)
    alike = style is not None and style.colour in colours and not style.fixed_pitch
    return alike and style is not None and style.bold and book.size(draft) <= _LARGER


def _is_paragraph(book: Book, draft: Draft) -> bool:
    """Whether a region is a paragraph of running text: no list, and no row of inline code."""
    style = book.style(draft)
    is_code = style is not None and style.fixed_pitch
    return draft.label is Label.TEXT and not (draft.facts.is_list or draft.facts.depth or is_code)


def _extra_space(book: Book) -> dict[Draft, int]:
    """The space above regions beyond that above paragraphs in such places, in thousandths of the page's height."""
    gaps: dict[Label, list[tuple[Draft, int]]] = defaultdict(list)
    for drafts in book.drafts:
        for above, draft in pairwise(drafts):
            gap = draft.facts.box[1] - above.facts.box[3]
            if not above.is_heading and above.is_content and draft.is_content and 0 <= gap < _WIDE_GAP:
                gaps[above.label].append((draft, gap))
    extra: dict[Draft, int] = {}
    for found in gaps.values():
        usual = _median(gap for draft, gap in found if _is_paragraph(book, draft))
        if usual is not None:
            extra.update((draft, gap - usual) for draft, gap in found)
    return extra


def _median(values: Iterable[int]) -> int | None:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _tiers(book: Book, headings: Sequence[Draft]) -> dict[Draft, int]:
    """The rank of each heading's style, from 0 for the most prominent; none for those whose style is unknown."""
    styled: dict[Draft, Tier] = {}
    measured: dict[Draft, int] = {}
    styles = {draft: book.style(draft) for draft in headings}
    named = {style.size for style in styles.values() if style is not None and style.family}
    for draft, style in styles.items():
        if style is not None:
            bold = style.bold or not style.family  # of fonts without a name the weight is often unknown
            drafts = book.drafts[draft.page]
            size = style.size if style.family else _nearest(style, named) or style.size
            looks = (size, bold, style.italic, style.fixed_pitch, style.colour)
            styled[draft] = (*looks, _runs_in(draft, drafts), _is_centred(draft, drafts))
        elif draft.facts.height and len(book.pages) > 1:
            measured[draft] = draft.facts.height
    if styled:
        return _ranked_styles(book, styled)
    ranks: dict[Draft, int] = {}
    rank, highest, title = -1, 0.0, True
    # What the model takes for the title is above all others: heights differ too little between it and a high line.
    order = sorted(
        measured, key=lambda draft: (draft.label is not Label.DOC_TITLE, -measured[draft], draft.page, draft.index)
    )
    for draft in order:
        if rank < 0 or title != (draft.label is Label.DOC_TITLE) or measured[draft] < _SAME_HEIGHT * highest:
            rank, highest, title = rank + 1, measured[draft], draft.label is Label.DOC_TITLE
        ranks[draft] = rank
    return ranks


def _runs_in(draft: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether the text below a heading begins on its row."""
    below = drafts[draft.index + 1] if draft.index + 1 < len(drafts) else None
    together = below is not None and abs(below.facts.box[1] - draft.facts.box[1]) <= _SAME_ROW
    return together and below is not None and below.label is Label.TEXT


def _is_centred(draft: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether a heading is centred on its page or over the paragraph below it, away from where texts begin."""
    left, _, right, _ = draft.facts.box
    if left - min(other.facts.box[0] for other in drafts if other.is_content) < _INDENTED:
        return False
    texts = (other for other in drafts[draft.index + 1 :] if other.label is Label.TEXT and not other.facts.is_list)
    below = next((other.facts.box for other in texts if other.facts.rows > 1), None)
    if below is not None and abs(left - below[0]) < _INDENTED:
        return False  # it fills its column, which is not the first of the page
    edges = [(0, 1000)] if below is None else [(0, 1000), (below[0], below[2])]
    return any(abs(left - start - (end - right)) <= _CENTRED for start, end in edges)


def _ranked_styles(book: Book, styled: Mapping[Draft, Tier]) -> dict[Draft, int]:
    sizes: dict[float, float] = {}
    for size in sorted({tier[0] for tier in styled.values()}, reverse=True):
        above = min(sizes, default=None)
        sizes[size] = sizes[above] if above is not None and above - size <= _SAME_SIZE else size
    rounded = {draft: (sizes[tier[0]], *tier[1:]) for draft, tier in styled.items()}
    inline, body = _inline_code(book), book.body
    tiers = set(rounded.values())
    alike = {tier: _without_code(tier, tiers, inline, book) for tier in tiers}
    colour = body.colour if body else 0
    led = _slanted_first([alike[tier] for tier in rounded.values()])

    def prominence(tier: Tier) -> tuple[float, ...]:
        size, bold, italic, fixed, own_colour, runs_in, centred = tier
        is_slanted_first = (size, bold, runs_in) in led
        return (
            -size,
            runs_in,
            not centred,
            not bold,
            italic is not is_slanted_first,
            fixed,
            own_colour == colour,
            own_colour,
        )

    order = sorted(set(alike.values()), key=prominence)
    ranks = {tier: rank for rank, tier in enumerate(order)}
    return {draft: ranks[alike[tier]] for draft, tier in rounded.items()}


def _slanted_first(tiers: Iterable[Tier]) -> set[tuple[float, bool, bool]]:
    """Styles (size, weight, run-in) in which slanted headings rank above upright ones.

    Decided by which follows a higher heading more often: slanted ones in word processors, upright ones in TeX.
    """
    votes: Counter[tuple[float, bool, bool]] = Counter()
    above: tuple[float, bool] | None = None
    for size, bold, italic, _, _, runs_in, _ in tiers:
        if above is not None and (size, bold and not runs_in) < above:
            votes[size, bold, runs_in] += 1 if italic else -1
        above = (size, bold and not runs_in)
    return {look for look, count in votes.items() if count > 0}


def _inline_code(book: Book) -> Style | None:
    """Style of most code in running text, or of blocks of code in a document without; None where there is none."""
    coded = Counter[Style | None]()
    headed = Counter[Style | None]()
    for draft in book.each():
        if draft.label is Label.ALGORITHM or draft.is_heading:
            (headed if draft.is_heading else coded)[book.style(draft)] += draft.facts.length
    inline = {
        style: (count > coded[style] + headed[style], count)
        for style, count in book.characters.items()
        if style.fixed_pitch and count > 2 * headed[style]
    }
    return max(inline, key=lambda style: (*inline[style], style.size), default=None)


def _without_code(tier: Tier, tiers: Iterable[Tier], inline: Style | None, book: Book) -> Tier:
    """The heading style that a heading of fixed pitch belongs to: code in headings is often smaller, as in text.

    Code of a colour that neither running text nor code in it has is of a heading of that colour, whatever its size.
    Other code as large as that in running text may be set so everywhere: unless it is bold as headings of the text's
    size are, it is taken for a level of its own.
    """
    size, bold, italic, fixed, colour, runs_in, centred = tier
    if not fixed:
        return tier
    body = book.body
    whole = size * (body.size if body else 0.0) / inline.size if inline else size
    low, high = (whole * (1 - _CODE_SIZE), whole * (1 + _CODE_SIZE)) if inline else (size, _UNKNOWN_CODE_SIZE * size)
    is_scaled = inline is not None and abs(size - inline.size) > _SAME_SIZE
    if body and colour not in (body.colour, inline.colour if inline else body.colour):
        looks, most = (bold, italic, False, colour), high if is_scaled else float("inf")
        sizes = (
            character.size
            for character in book.characters
            if (character.bold, character.italic, character.fixed_pitch, character.colour) == looks
        )
        own = min((found for found in sizes if low <= found <= most), default=whole)
        known = next((other[0] for other in sorted(tiers) if abs(other[0] - own) <= _SAME_SIZE), own)
        return (known, bold, italic, False, colour, runs_in, centred)
    others = [other for other in tiers if not other[3] and low <= other[0] <= high]
    nearest = min(others, key=lambda other: (other[1] != bold, abs(other[0] - whole), other), default=tier)
    return nearest if is_scaled or (nearest[1] == bold and nearest[0] > size) else tier


def _set_levels(book: Book, headings: Sequence[Draft], tiers: Mapping[Draft, int], depths: Mapping[Draft, int]) -> None:
    title = _title(book, headings, tiers)
    first = next(draft for draft in headings if draft in tiers)
    # Without a title of its own style a document begins with a heading of the highest level, or is a part of one.
    level = 0 if not title and tiers[first] == min(tiers.values()) and _at_start(book, first) else 1
    rest = [draft for draft in headings if draft not in title]
    by_tier: dict[int, list[Draft]] = defaultdict(list)
    for draft in rest:
        if draft in tiers:
            by_tier[tiers[draft]].append(draft)
    depth_order = sorted({depths[draft] for draft in rest if draft in depths})
    of_depth: dict[int, int] = {}
    of_tier: dict[int, int] = {}
    for tier in sorted(by_tier):
        counts = Counter(depths[draft] for draft in by_tier[tier] if draft in depths)
        usual = sorted(depth for depth in counts if counts[depth] >= _USUAL_DEPTH * len(by_tier[tier]))
        for depth in (depth for depth in depth_order if usual and depth <= usual[-1] and depth not in of_depth):
            level += 1
            of_depth[depth] = level
        if usual:
            of_tier[tier] = of_depth[max(usual, key=lambda depth: (counts[depth], -depth))]
        elif depths and len(by_tier[tier]) == 1:
            of_tier[tier] = level + 1  # a line of authors, or a signature, is not a level between those with numbers
        else:
            level += 1
            of_tier[tier] = level
    for depth in depth_order:  # a depth that is not usual in any style
        of_depth.setdefault(depth, 1 + max((of_depth[above] for above in of_depth if above < depth), default=level))
    for draft in headings:
        if draft in title:
            draft.label, draft.level = Label.DOC_TITLE, 1
            continue
        if draft in depths:
            draft.level = of_depth[depths[draft]]
        elif draft in tiers:
            draft.level = of_tier[tiers[draft]]
        draft.level = min(draft.level, DEEPEST) if draft.level else draft.level
        if draft.label is Label.DOC_TITLE and draft is not first:
            draft.label = Label.PARAGRAPH_TITLE


def _title(book: Book, headings: Sequence[Draft], tiers: Mapping[Draft, int]) -> list[Draft]:
    """The lines of the title: alone in the largest style, on one of the first pages; empty where there is none."""
    top = min(tiers.values())
    found = [draft for draft in headings if tiers.get(draft) == top]
    first = found[0]
    together = all(draft.page == first.page and draft.index == first.index + at for at, draft in enumerate(found))
    sure = len(set(tiers.values())) > 1 or first.label is Label.DOC_TITLE
    begins = first.page == headings[0].page and _at_start(book, first)
    if begins and first is headings[0] and _spans_columns(first, book.drafts[first.page]):
        return [first]
    return found if together and sure and begins else []


def _spans_columns(title: Draft, drafts: Sequence[Draft]) -> bool:
    """Whether a heading is above all texts of its page, and over two of them that are beside each other."""
    left, _, right, bottom = title.facts.box
    below = [draft.facts.box for draft in drafts if draft is not title and draft.is_content]
    if any(top < bottom for _, top, _, _ in below):
        return False
    return any(
        left < one[2] <= other[0] < right and max(one[1], other[1]) < min(one[3], other[3])
        for one, other in permutations(below[:_MOST_COMPARED], 2)
    )


def _at_start(book: Book, draft: Draft) -> bool:
    page = book.pages[draft.page]
    return page is not None and draft.page < _TITLE_PAGES and (page.number or 1) <= _TITLE_PAGES
