"""Every threshold of layout post-processing, completion by text lines, and reading order, on one screen.

The settings of PP-DocLayoutV3's own post-processing are apart (:mod:`pagemill.layout.pp_doclayout.settings`): users may
set them, and their values are published ones. Lengths here are in line heights unless a unit is given. The values were
chosen by looking at failures on the samples, the olmOCR sample and the local documents. They were switched off on 284
pages (docs/benchmarks.md): without each some page changes, but for ``min_side``, ``caption_gap`` and the columns of a
region, which are kept for other layout models.
"""

from __future__ import annotations


class LayoutThresholds:
    """Thresholds by the question that they answer."""

    # Candidates of an ONNX model.
    min_side = 2.0
    """Pixels; anything thinner holds no glyph."""
    max_candidates = 1000
    """Bounds the n x n overlap matrix; a page has some tens of regions."""

    # Which region a text line belongs to.
    line_inside = 0.5
    """Share of a line's box inside a region from which it is the region's line."""
    line_cut = 0.25
    """Share from which a text region or table that cuts through a line takes all of it."""
    same_row = 0.5
    """Share of a line's height that must be shared with another line to be in one row with it."""
    nested = 0.8
    """Share of a text region inside a table from which it is part of the table."""
    blocks_overlap = 0.3
    """Share of the smaller block from which overlapping blocks are one: pieces of formulas and ragged lines."""

    # Running heads and headings.
    head_band = 0.12
    """Share of the page height in which running heads are."""
    heading_gap = 1.3
    """Farthest a heading at the top of a page is from its text; running heads keep their distance."""
    title_size = 1.3
    """Height of a heading found without the model, in median line heights."""

    # Formulas that are text.
    big_formula = 0.1
    """Share of the page from which a formula with many lines is a misread paragraph."""
    formula_doubt = 0.6
    """Score below which a formula of a single line is text."""
    formula_line_width = 0.7
    """Share of the formula's width from which a line is part of a paragraph."""

    # Pictures that are text.
    page_filling = 0.6
    """Share of the page from which a figure with text in it is the page itself."""
    dense = 0.35
    """Share of a figure covered by line boxes from which it is text; diagrams stay below 0.2."""
    sparse = 0.15
    """Share covered by line boxes on a poster; a written page has more."""
    paragraph_width = (0.4, 0.6)
    """Share of a figure's width from which a block of three lines, of two lines, is running text."""
    stray_width = 0.5
    """The same for a single line beside running text."""
    text_margin = 0.2
    """Margin around a line, within which ink is the line's own."""
    ink_contrast = 40
    """Grey levels from the background."""
    least_panel, panel_filled = 0.15, 0.97
    """Share of a figure that is a panel of one colour with text on it, and of the panel that has this colour: its
    rounded corners and soft edges have not. Not measured."""
    colour_sample = 100_000
    """Pixels that tell the usual colour of a figure: the median of all of a page takes a second."""
    min_remainder = 0.015
    """Least share of the page of such a remainder."""
    logo = 0.08
    """Share of the page height; a taller picture at the top is a figure."""

    # Tables that are text, text that is a table.
    big_table = 0.4
    """Share of the page from which a table may be columns of text."""
    big_table_lines = 20
    gutter_crossed = 0.1
    """Share of rows that may cross a gutter: headings and wide notes."""
    table_filled = (0.65, 0.85)
    """Share of the width that cells fill above which lines are columns of a newspaper and not of a table; the same
    where they are short: compact tables of drawn pages have up to 0.72, columns of prose 0.9."""
    short_cell = 5.0
    """Width of cells that are short."""
    box_slack = 0.25
    """Margin at both ends of a box that does not count: text detectors draw boxes too wide."""
    table_gutter = 0.5
    """Narrowest gutter of a borderless table."""
    table_gutter_crossed = 0.17
    """Share of its rows that may reach into it: on photographs of drawn pages one of six to eight does."""

    # Lines to blocks.
    word_gap = 0.9
    """Widest gap between pieces of one line."""
    standing = 2.0
    """How many times as high as wide, and as high as the line beside it, a line is that runs down the page."""
    marker_width = 2.5
    """A bullet, list number or label is narrower than this, and no farther from its text."""
    leading = 0.55
    """Largest usual gap between two lines of a paragraph."""
    leading_ratio = 1.4
    """Factor over the page's median leading up to which lines are one paragraph."""
    max_leading = 1.2
    """The same of widely spaced text."""
    over = 0.3
    """Share of the narrower line that must be over the other to be in one column."""
    first_below = 0.5
    """Distance within which several lines are equally the next one below."""
    column_width = 4.0
    """Narrowest column; list numbers and page numbers of a contents list are narrower."""
    gutter = 1.0
    """Narrowest gap between the columns of a region."""
    narrow_gutter = 0.3
    """The same of columns of running text: ``columns_lines`` lines, none of which crosses it."""
    columns_lines = 10
    full_line = 0.75
    """Share of its column that the usual line of running text fills; cells of a table fill less."""
    gutter_reach = (0.5, 3.0)
    """Distance above and below a gap within which it must go on to be a gutter."""
    long_gutter, long_gutter_lines, long_gutter_crossed, long_gutter_slack = 10.0, 4, 0.2, (0.3, 0.15)
    """On pages of the press: distance above or below a gap within which so many lines begin, or end, at one place in
    it; the share of these that may cross it, and how far beginnings, and ends, may be from each other: boxes are
    uneven, and ends of ragged lines stand below each other by chance."""
    gutter_slack = 0.1
    """Margin by which lines may reach into a gutter."""
    least_gutter = 0.25
    """Gap below which no gutter is looked for."""
    paragraph_gap = 0.9
    """Smallest gap between paragraphs of a region."""
    paragraph_gap_ratio = 1.6
    """The same over the region's median gap."""
    paragraph_box_slack = 0.1
    """Share of a box's height at top and bottom that does not count for that gap."""
    clear_gap = 1.5
    """A gap that always separates paragraphs."""
    same_size = 0.6
    """Smallest ratio of heights in one block."""

    # Reading order.
    side_by_side = 0.1
    """Share of the narrower (lower) box that two boxes may overlap and still be side by side (one above the other)."""
    press_columns = 3
    """Columns of text side by side from which a page is read article by article, as the press is."""
    press_line = 0.4
    """Share of the width of all text from which the usual line is too long for that."""
    press_lines, press_width = 3, 6.0
    """Least lines of a column there, and its least width."""
    press_word_gap, press_title_gap, press_wide = 8.0, 3.0, 1.35
    """Widest gap between words of a line there, in narrow justified columns, and of a heading; how many times as wide
    text over several columns is."""
    press_reach = (2.0, 5.0)
    """Distance within which a line across tells that words are of one heading, of one line: the next row; some rows."""
    press_same_size = 0.75
    """Smallest ratio of heights in one block there: small headlines are 1.4 times as high as text."""
    short_line = 3.0
    """Width of a line whose height says little about its size."""
    press_depth = 12
    """Most times that a part of a page is cut again: drawn broadsheets need 5, and each cut takes time."""
    press_slack = 0.2
    """What boxes may reach into the blanks between them."""
    caption_gap = 0.04
    """Share of the page height: the farthest a caption is from its figure."""


LAYOUT = LayoutThresholds
