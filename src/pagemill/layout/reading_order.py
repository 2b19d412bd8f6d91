"""Reading order of regions: columns from left to right, elements across columns in between, margins apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pagemill.document.geometry import frame_of
from pagemill.document.labels import FIGURES, TITLES, Label
from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.late import re
from pagemill.layout.text_blocks import stand_side_by_side
from pagemill.layout.thresholds import LAYOUT

_BODY = 1
_PARTS = {Label.HEADER: 0, Label.HEADER_IMAGE: 0, Label.FOOTNOTE: 2, Label.ASIDE_TEXT: 3}
_PARTS |= {Label.FOOTER: 4, Label.FOOTER_IMAGE: 4}
"""Parts of a page in reading order."""
_CAPTIONS = frozenset({Label.FIGURE_TITLE, Label.FOOTNOTE, Label.VISION_FOOTNOTE})
_CAPTIONED = FIGURES | {Label.TABLE}
_NUMBER = re.compile(r"^[#\s]*(?:\(?)(\d{1,3})[.)]\s")


def leading_number(text: str) -> int | None:
    """The number a heading or list item starts with ("3. Results" gives 3), or None; see ``reading_order``."""
    match = _NUMBER.match(text)
    return int(match.group(1)) if match else None


def reading_order(
    boxes: Floats,
    labels: Sequence[Label],
    page_size: tuple[float, float],
    numbers: Sequence[int | None] | None = None,
    ranks: Sequence[int | None] | None = None,
    *,
    right_to_left: bool = False,
    line_height: float = 0.0,
) -> list[int]:
    """Indices of the regions as a person reads them.

    Headers come first, then the body, footnotes, marginal text and footers. In the body, of two regions one above the
    other the upper comes first; of two side by side the left one, unless an element across both columns lies between
    them (the partial order of Breuel, "High performance document layout analysis", 2003). Captions travel with their
    figure or table. The result does not depend on the order of the input, nor on where the page lies or how large
    it is.

    Args:
        boxes: Shape (n, 4), any unit.
        labels: n labels.
        page_size: Width and height in the unit of ``boxes``.
        numbers: Leading numbers of the regions' texts, where known. A grid of numbered blocks looks the same whether
            it runs by rows or by columns; the numbers decide.
        ranks: Reading order that a model predicts. Inside each part of the page it goes before geometry; regions
            without a rank follow the region that they follow by geometry.
        right_to_left: Columns run from right to left, as on pages in Arabic or Hebrew.
        line_height: Usual height of lines in the unit of ``boxes``; 0: that of the lowest boxes is taken.

    Returns:
        A permutation of ``range(n)``.
    """
    boxes = np.array(boxes, dtype=np.float64).reshape(-1, 4)
    if right_to_left:
        boxes[:, [0, 2]] = page_size[0] - boxes[:, [2, 0]]
    groups: list[list[int]] = [[], [], [], [], []]
    for index in sorted(range(len(boxes)), key=lambda index: (*boxes[index], labels[index])):  # whatever the input's
        groups[_group(labels[index], boxes[index], page_size)].append(index)
    order: list[int] = []
    for members in groups:
        units = _units(boxes, labels, members, page_size[1])
        frames = np.array([frame_of(boxes[unit]) for unit in units]).reshape(-1, 4)
        titles = np.array([all(labels[index] in TITLES for index in unit) for unit in units], dtype=bool)
        shown = np.array([any(labels[index] in _CAPTIONED for index in unit) for unit in units], dtype=bool)
        press_unit = _press_unit(frames, titles | shown, line_height)
        if not press_unit:
            frames = _with_wide_heads(_with_hanging_heads(frames, titles), titles, shown)
        by_geometry = [
            index for unit in _around_insets(frames, titles, shown, units, numbers, press_unit) for index in units[unit]
        ]
        order += by_geometry if ranks is None else _by_rank(by_geometry, ranks)
    return order


def _by_rank(order: list[int], ranks: Sequence[int | None]) -> list[int]:
    """Regions by rank; those of one rank, and those without, stay where they are among their neighbours."""
    last = min((rank for rank in (ranks[index] for index in order) if rank is not None), default=0)
    keys: list[int] = []
    for index in order:
        rank = ranks[index]
        last = last if rank is None else rank
        keys.append(last)
    return [order[place] for place in sorted(range(len(order)), key=keys.__getitem__)]


def _group(label: Label, box: Floats, page_size: tuple[float, float]) -> int:
    """Which part of the page a region belongs to, in reading order."""
    if label is Label.NUMBER:
        return 0 if box[1] + box[3] < page_size[1] else 4
    return _PARTS.get(label, _BODY)


def _units(boxes: Floats, labels: Sequence[Label], members: list[int], page_height: float) -> list[list[int]]:
    """Regions that travel together: a figure or table with its captions and notes, from top to bottom."""
    owners = [i for i in members if labels[i] in _CAPTIONED]
    units = {i: [i] for i in members}
    for caption in [i for i in members if labels[i] in _CAPTIONS]:
        owner = _owner(boxes, caption, owners, members, page_height)
        if owner is not None:
            units[owner].append(caption)
            del units[caption]
    return [sorted(unit, key=lambda i: (boxes[i, 1] + boxes[i, 3], boxes[i, 0])) for unit in units.values()]


def _owner(boxes: Floats, caption: int, owners: list[int], members: list[int], page_height: float) -> int | None:
    """The figure or table right above or below a caption, with nothing else in the joint frame."""
    found = []
    box = boxes[caption]
    for owner in owners:
        figure = boxes[owner]
        overlap, beside = np.minimum(box[2:], figure[2:]) - np.maximum(box[:2], figure[:2])
        if overlap < 0 or -beside > LAYOUT.caption_gap * page_height:
            continue
        frame = frame_of(boxes[[owner, caption]])
        others = boxes[[i for i in members if i not in (owner, caption)]]
        centres = (others[:, :2] + others[:, 2:]) / 2
        if not ((centres > frame[:2]) & (centres < frame[2:])).all(axis=1).any():
            found.append((max(-beside, 0.0), figure[1], figure[0], owner))
    return min(found)[-1] if found else None


def _with_wide_heads(frames: Floats, titles: Flags, shown: Flags) -> Floats:
    """Frames, those of headings widened over what they head where all columns break at their height.

    The heading of an article in a newspaper may be shorter than the article, whose last columns would follow the
    article above them: such a heading is as wide as the page. A short heading over text across the columns would
    come with the left column: it is as wide as that text.
    """
    result = frames.copy()
    slack = LAYOUT.side_by_side * (frames[:, 3] - frames[:, 1])
    _, same_row = _relations(frames)
    heads = np.flatnonzero(titles)
    for head in heads[np.argsort(-frames[heads, 1], kind="stable")].tolist():  # from the last: one may be over another
        left, top, right, bottom = frames[head]
        crossed = (frames[:, 1] < top - slack) & (frames[:, 3] > top + slack)
        below = np.flatnonzero((frames[:, 1] >= bottom - slack) & (frames[:, 0] < right) & (frames[:, 2] > left))
        if crossed.any() or not len(below):
            continue
        columns = frames[below]
        first = below[np.argmin(columns[:, 1])]
        if ((columns[:, None, 2] <= columns[:, 0]) & same_row[np.ix_(below, below)]).any():
            result[head, [0, 2]] = frames[:, 0].min(), frames[:, 2].max()
        elif not shown[first]:  # over a figure the heading may be the last line of its column
            result[head, [0, 2]] = min(left, result[first, 0]), max(right, result[first, 2])
    return result


def _with_hanging_heads(frames: Floats, titles: Flags) -> Floats:
    """Frames, those of headings that stand in a margin of their own widened over the text beside them.

    Such headings are no column: each is read before the text that begins below or beside it. No drawn page has them;
    curricula vitae do, which would be read headings first.
    """
    if not titles.any() or titles.all():
        return frames
    same_column, _ = _relations(frames)
    hanging = titles & ~(same_column & ~titles).any(axis=1)
    text = frames[~titles]
    hanging &= frames[:, 2] <= text[:, 0].min()
    if hanging.any():
        frames = frames.copy()
        frames[hanging, 2] = text[:, 2].max()
        # Beside its text a heading comes first by where it begins.
        frames[hanging, 3] = frames[hanging, 1]
    return frames


def _around_insets(
    frames: Floats,
    titles: Flags,
    shown: Flags,
    units: list[list[int]],
    numbers: Sequence[int | None] | None,
    press_unit: float,
) -> list[int]:
    """The order of units; figures that two columns flow around part neither, and follow the text at their left."""
    insets = _insets(frames, shown)
    if not len(insets):
        return _best_order(frames, titles, units, numbers, press_unit)
    rest = np.setdiff1d(np.arange(len(frames)), insets)
    left = [units[unit] for unit in rest]
    order = [int(rest[place]) for place in _best_order(frames[rest], titles[rest], left, numbers, press_unit)]
    _, same_row = _relations(frames)
    for inset in insets.tolist():
        beside = [place for place, unit in enumerate(order) if same_row[inset, unit] and not shown[unit]]
        at_left = [place for place in beside if frames[order[place], 0] < frames[inset, 0]]
        order.insert(1 + max(at_left), inset)
    return order


def _insets(frames: Floats, shown: Flags) -> Indices:
    """Figures over the gutter of two columns of text with text of both beside them."""
    if not shown.any() or len(frames) < 3:
        return np.empty(0, dtype=np.intp)
    same_column, same_row = _relations(frames)
    beside = same_row & ~same_column & ~shown
    left = (beside & (frames[:, 0] < frames[:, None, 0])).any(axis=1)
    right = (beside & (frames[:, 2] > frames[:, None, 2])).any(axis=1)
    over = same_column & ~shown  # over[figure, text]
    apart = ~same_column
    np.fill_diagonal(apart, val=False)
    parted = (_by_way_of(over, apart) & over).any(axis=1)
    return np.flatnonzero(shown & left & right & parted)


def _best_order(
    frames: Floats, titles: Flags, units: list[list[int]], numbers: Sequence[int | None] | None, press_unit: float
) -> list[int]:
    """Columns first; by rows only where the leading numbers then run better."""
    if press_unit:
        frames = _with_centred_heads(frames, titles, press_unit)
        by_columns = _article_by_article(frames, titles, LAYOUT.press_slack * press_unit)
    else:
        by_columns = _topological(frames, _before(frames))
    if numbers is None:
        return by_columns
    leading = [next((numbers[i] for i in unit if numbers[i] is not None), None) for unit in units]
    if _descents(by_columns, leading) == 0:
        return by_columns
    by_rows = _card_by_card(frames, leading, by_columns)
    return min(by_columns, by_rows, key=lambda order: _descents(order, leading))


def _card_by_card(frames: Floats, leading: list[int | None], by_columns: list[int]) -> list[int]:
    """Rows first, where a numbered element keeps what follows it: a grid of cards, each with a numbered head."""
    cards: list[list[int]] = []
    for unit in by_columns:
        if leading[unit] is None and cards and leading[cards[-1][0]] is not None:
            cards[-1].append(unit)
        else:
            cards.append([unit])
    heads = frames[[card[0] for card in cards]]
    return [unit for place in _topological(heads, _before_by_rows(heads)) for unit in cards[place]]


def _descents(order: list[int], leading: list[int | None]) -> int:
    """How often a number is smaller than the one before it."""
    run = [number for number in (leading[i] for i in order) if number is not None]
    return sum(later < earlier for earlier, later in pairwise(run))


def _press_unit(frames: Floats, others: Flags, line_height: float) -> float:
    """The height of lines on a page of the press: three columns of text or more side by side somewhere; else 0.

    Args:
        frames: Shape (n, 4).
        others: Those that are no text.
        line_height: Usual height of lines; 0: that of the lowest frames.
    """
    heights = frames[:, 3] - frames[:, 1]
    unit = line_height or (float(np.quantile(heights, 0.1)) if len(frames) else 0.0)
    text = frames[~others & (heights >= LAYOUT.press_lines * unit)]
    return unit if stand_side_by_side(text, unit) >= LAYOUT.press_columns else 0.0


def _with_centred_heads(frames: Floats, titles: Flags, unit: float) -> Floats:
    """Frames, those of headings widened to the left over columns that they head.

    A heading in the middle over columns that begin at one height would come after those at its left: nothing stands
    above these beside the heading, and no other heading is farther left.
    """
    result = frames.copy()
    slack = unit / 2
    for head in np.flatnonzero(titles).tolist():
        left, top, right, bottom = frames[head]
        beside = (frames[:, 1] < bottom - slack) & (frames[:, 3] > top + slack)
        under = (frames[:, 1] >= bottom - slack) & (frames[:, 0] < right) & (frames[:, 2] > left) & ~titles
        if not under.any() or (titles & beside & (frames[:, 0] < left)).any():
            continue
        start = frames[under, 1].min()
        headed = ~titles & (np.abs(frames[:, 1] - start) < unit) & (frames[:, 0] < left)
        above = (frames[:, 1] < start - slack) & (frames[:, 3] > top + slack)
        above[head] = False
        for column in np.flatnonzero(headed)[np.argsort(-frames[headed, 0])].tolist():
            x1, _, x2, _ = frames[column]
            if (above & (frames[:, 0] < x2 - slack) & (frames[:, 2] > x1 + slack)).any():
                break
            result[head, 0] = min(result[head, 0], x1)
    return result


def _article_by_article(frames: Floats, titles: Flags, slack: float) -> list[int]:
    """The order on a page of the press, which is cut at its blanks as articles are laid out (recursive XY-cut).

    Where a headline over columns, or headings side by side, begin below a blank across the page, other articles begin:
    there it is cut first; then between columns; then above and below what else stands over several of them. A blank
    between paragraphs that happen to end at one height in all columns does not cut. What has no such blank is ordered
    as other pages are. Boxes may reach into the blanks by ``slack``.
    """
    tight = frames + np.array([slack, slack, -slack, -slack])
    order: list[int] = []
    waiting = [(np.arange(len(frames)), 0)]
    while waiting:
        members, depth = waiting.pop()
        cut = len(members) > 1 and depth < LAYOUT.press_depth
        parts = _parts(tight[members], titles[members]) if cut else []
        if len(parts) > 1:
            waiting += [(members[part], depth + 1) for part in reversed(parts)]
        else:
            order += [int(members[place]) for place in _topological(frames[members], _before(frames[members]))]
    return order


def _parts(frames: Floats, titles: Flags) -> list[Indices]:
    """The parts of a stretch of the press in reading order; one where no blank cuts it."""
    bands, count = _cuts(frames[:, 1], frames[:, 3])
    columns, _ = _cuts(frames[:, 0], frames[:, 2])
    apart = frames[:, None, 2] <= frames[:, 0]
    same_column = ~(apart | apart.T)
    np.fill_diagonal(same_column, val=False)
    over = same_column & (frames[:, None, 1] < frames[:, 1])
    across: Flags = np.asarray((_by_way_of(same_column, apart) & same_column).any(axis=1))
    headlines: Flags = titles & across
    heads, edges = np.zeros(count + 1, dtype=bool), np.zeros(count + 1, dtype=bool)
    for band in range(1, count + 1):
        below, above = np.flatnonzero(bands == band), np.flatnonzero(bands == band - 1)
        first = below[~over[np.ix_(below, below)].any(axis=0)]
        last = above[~over[np.ix_(above, above)].any(axis=1)]
        starts = int((titles | across)[first].sum())
        alone = band == 1 and len(above) == 1 and titles[above[0]]  # a heading may be shorter than its article
        heads[band] = alone or (starts > 1 and 2 * starts >= len(first)) or headlines[first].any()
        edges[band] = across[first].any() or across[last].any()
    for labels in (np.cumsum(heads)[bands], columns, np.cumsum(heads | edges)[bands]):
        if labels.max() > 0:
            return [np.flatnonzero(labels == label) for label in range(int(labels.max()) + 1)]
    return [np.arange(len(frames))]


def _cuts(start: Floats, end: Floats) -> tuple[Indices, int]:
    """In which part each span is when they are cut at all blanks between them, and the number of blanks."""
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])
    parts = np.empty(len(start), dtype=np.intp)
    parts[order] = np.concatenate([[0], np.cumsum(start[order[1:]] >= reach[:-1])]) if len(start) else 0
    return parts, int(parts.max(initial=0))


def _relations(frames: Floats) -> tuple[Flags, Flags]:
    """Pairs (n, n) that share a column (overlap in x) and pairs that share a row (overlap in y), with slack."""
    size = np.maximum(frames[:, 2:] - frames[:, :2], 1e-9)
    low = np.maximum(frames[:, None, :2], frames[:, :2])
    high = np.minimum(frames[:, None, 2:], frames[:, 2:])
    shared = (high - low) / np.minimum(size[:, None], size)
    return shared[..., 0] > LAYOUT.side_by_side, shared[..., 1] > LAYOUT.side_by_side


def _before(frames: Floats) -> Flags:
    """``before[a, b]``: a must be read before b."""
    same_column, same_row = _relations(frames)
    centre = (frames[:, :2] + frames[:, 2:]) / 2
    left, above = np.moveaxis(centre[:, None] < centre, 2, 0)
    # Boxes that overlap in both directions: the larger displacement decides.
    size = np.maximum(frames[:, 2:] - frames[:, :2], 1e-9)
    shift = np.abs(centre[:, None] - centre) / np.minimum(size[:, None], size)
    sideways = same_column & same_row & (shift[..., 0] > shift[..., 1])
    column_wise = same_column & ~sideways
    before = column_wise & above
    # a left of b, and no c that shares a column with both and lies between them in height
    between = _by_way_of(before, before)
    side_by_side = ~column_wise & left & ~between & ~between.T
    heads = _heads_of_columns(frames, column_wise, before) | _stacked(frames)
    result: Flags = before | heads | (side_by_side & ~heads.T)
    return result


def _stacked(frames: Floats) -> Flags:
    """``stacked[a, b]``: a is above b in a stretch of the page where nothing has anything beside it.

    Such a stretch has one column, also where its elements do not overlap: a centred title over a short heading at the
    left, a date at the right above what follows.
    """
    order = np.argsort(frames[:, 1], kind="stable")
    bottoms = np.maximum.accumulate(frames[order, 3])
    slack = LAYOUT.side_by_side * (frames[order, 3] - frames[order, 1])
    starts = np.concatenate([[True], frames[order[1:], 1] >= bottoms[:-1] - np.minimum(slack[1:], slack[:-1])])
    band = np.cumsum(starts)  # of each element from top to bottom
    alone = np.bincount(band)[band] == 1
    stretch = np.empty(len(frames), dtype=np.intp)
    stretch[order] = np.where(alone, np.cumsum(~alone), -1 - band)
    place = np.empty(len(frames), dtype=np.intp)
    place[order] = np.arange(len(frames))
    result: Flags = (stretch[:, None] == stretch) & (stretch >= 0) & (place[:, None] < place)
    return result


def _heads_of_columns(frames: Floats, column_wise: Flags, over: Flags) -> Flags:
    """``heads[a, b]``: a lies across the gutter of two columns, and above b, which stands in one of them beside a.

    A subtitle in the middle of the page is above both columns, though not over each of their elements.

    Args:
        frames: Shape (n, 4).
        column_wise: Pairs (n, n) that stand in one column.
        over: Those of them of which the first is the upper one.
    """
    apart = ~column_wise
    np.fill_diagonal(apart, val=False)
    crossing = over & _by_way_of(over, apart)  # crossing[a, d]: below a are d and something apart from d
    clear = (frames[:, 1] >= frames[:, None, 3]) & ~column_wise
    return clear & _by_way_of(crossing, column_wise)


def _by_way_of(first: Flags, second: Flags) -> Flags:
    """``result[a, b]``: ``first[a, c] and second[c, b]`` for some c; as a matrix product, n may be some thousand."""
    return first.astype(np.float32) @ second.astype(np.float32) > 0


def _before_by_rows(frames: Floats) -> Flags:
    """``before[a, b]`` when rows are read first: upper first, in one row the left one."""
    _, same_row = _relations(frames)
    centre = (frames[:, :2] + frames[:, 2:]) / 2
    left, above = np.moveaxis(centre[:, None] < centre, 2, 0)
    result: Flags = np.where(same_row, left, above)
    return result


def _topological(frames: Floats, before: Flags) -> list[int]:
    """Order that respects ``before``; ties and circles go to the column of the last region, then up, then left."""
    before = before & ~np.eye(len(frames), dtype=bool)
    waiting = np.ones(len(frames), dtype=bool)
    blockers = before.sum(axis=0)
    position = np.argsort(np.lexsort((frames[:, 3], frames[:, 2], frames[:, 0], frames[:, 1])))
    order: list[int] = []
    while waiting.any():
        candidates = np.nonzero(waiting)[0]
        fewest = candidates[blockers[candidates] == blockers[candidates].min()]
        if order and len(fewest) > 1:
            last = frames[order[-1]]
            overlap = np.minimum(frames[fewest, 2], last[2]) - np.maximum(frames[fewest, 0], last[0])
            below = (overlap > 0) & (frames[fewest, 1] >= (last[1] + last[3]) / 2)
            fewest = fewest[below] if below.any() else fewest
        chosen = int(fewest[np.argmin(position[fewest])])
        order.append(chosen)
        waiting[chosen] = False
        blockers = blockers - before[chosen]
    return order
