"""Every threshold of the typographic reading of a page on one screen.

In font sizes of the text concerned (em) unless a unit is given. Chosen on the development documents of
``benchmarks/roundtrip.py``; what says «not measured» is a matter of shape that no document came near.
"""


class TypographyThresholds:
    """Thresholds by the question that they answer."""

    # Rows and columns.
    same_baseline = 0.35
    """Distance of two baselines within which pieces of text stand on one row."""
    other_size, other_gap = 1.4, 2.0
    """Size of one piece over that of the next on its baseline, and gap between them in the larger size, from which they
    are on different rows. Not measured."""
    block_gap = 1.0
    """Space above a row from which it is not of the block above it in a letterhead. Not measured."""
    gutter = 0.8
    """Least width of the gap between two columns of text."""
    column_width = 8.0
    """Least width of a column of running text."""
    column_rows = 3
    """Least rows of a column."""
    common_baseline, aligned_rows = 0.12, 0.6
    """Distance of two baselines within which they are one, and share of such rows on both sides of a gutter from which
    it may be that of a table."""
    lowered = 0.25
    """Share of the difference of two font sizes by which baselines differ where cells are centred."""
    full_rows = 0.35
    """Share of rows that fill a column of running text; cells of a table seldom do."""
    fills = 0.8
    """Share of the column's width from which a row fills it."""
    column_density = 0.55
    """Share of a column's height that its rows take up; the short column of a table is sparse."""
    prose_width, prose_lines, prose_rows = 15.0, 5, 0.6
    """Least width and rows of running text beside which there may be notes, and share of its rows that fill it, and
    that go on."""
    note_width, note_density = 3.0, 0.8
    """Least width of a note in the margin, and share of its height that rows take up if each is a paragraph. Not
    measured."""
    most_turned = 0.2
    """Share of a page's characters in turned lines from which pixels decide."""
    least_slant, head_to_column, most_heads = 20.0, 3.0, 400
    """Least angle of turned heads of columns, in degrees, how far below them the columns may begin, in font sizes, and
    most turned lines of a page that are compared. Not measured."""

    # Paragraphs.
    parted_gap, centred_inset = 6.0, 4.0
    """Gap in a row from which its ends are apart, and space on both sides of a row that is centred. Not measured."""
    same_size = 0.06
    """Difference of two font sizes, as a share of the larger one, within which they are one."""
    leading = 0.12
    """Share of the distances between baselines from which the smallest such distance is that of a paragraph's rows."""
    scaled = 0.02
    """Difference of two font sizes, as a share, up to which their rows tell a leading: a heading 5 % larger than the
    text does not."""
    widest_leading = 1.6
    """Leading, in font sizes, from which rows count only where the next word had no room. Not measured."""
    double, full_spaced = 3.4, 0.7
    """Widest leading of double-spaced text, in font sizes, and share of its rows without room for the next word."""
    looser = 1.16
    """Distance of baselines, in those of a paragraph's rows, from which a paragraph ends."""
    indent = (0.8, 4.0)
    """Indent of a paragraph's first row."""
    aligned = 0.5
    """Distance within which the starts of two rows are one edge."""
    word_fits = 0.35
    """Room left beside the first word of the next row from which a row was ended on purpose."""

    narrower = 2.0
    """More room where the sentence goes on in small letters: its paragraph may be narrower than the column."""

    drop_cap = 1.6
    """Size of an initial over that of running text from which the rows beside it begin with it. Not measured."""

    code_inset = 2.0
    """Distance from the edge of the text within which code from left to right begins on a page read from the right, and
    from the other edge beyond which it ends, in font sizes. Not measured."""

    # Lists.
    bullet_size = (0.12, 0.9)
    """Side of a bullet that is drawn as a shape."""
    bullet_gap = 2.6
    """Most room between such a bullet and its text."""
    bare_number_gap = 0.6
    """Least room between the number of an item without a sign behind it and its text: ReportLab leaves 1.0."""
    nested = 0.6
    """Indent of an item's marker from which it is nested in the item above."""

    # Code.
    blank_line = 0.2
    """Difference of the distance between two rows of code from a whole number of rows, within which there are blank
    lines between them."""
    mixed_lines = 2.6
    """The same at rows with letters of a larger font: LibreOffice has 2.4 with a blank line."""
    code_bridge = 4.5
    """Distance of two rows of code, in distances of rows, over which blank lines are bridged."""

    heading_code_rows, solid = 2, 1.5
    """Most rows of a heading that is all code, and distance of two rows in font sizes below which they are set solid:
    more such rows in bold are code. Not measured."""

    # Headings.
    larger = 1.09
    """Size of a heading over that of running text from which size alone tells."""
    slightly_larger = 1.035
    """The same of a row with space around it: headings in Korean fonts without a bold cut are set 5 % larger."""
    heading_run = 3
    """Rows in the style of a heading, each ended on purpose and as close as those of a paragraph, from which they are
    none. Not measured."""
    heading_gap = 1.25
    """Distance of the baseline above a heading, in those of a paragraph's rows, from which it is set off."""
    quad = (0.95, 1.1)
    """Room between a heading that runs in and the text behind it: LaTeX sets one em, measured as 1.00 to 1.03."""
    heading_rows = 4
    heading_characters = 250
    opening_words = 15
    """Words of several rows in larger letters beyond which they are no heading if they end like a sentence."""
    smallest_heading = 0.62
    """Size of a bold heading over that of running text: the sixth level of HTML has 0.67."""

    sentence_words = 5
    """Words of a line from which it is no lettering of a picture; labels of drawn diagrams have up to four."""

    # Furniture.
    margin = 0.115
    """Share of the page's height at its head and foot in which running heads and feet stand."""
    furniture_gap, number_gap = 1.5, 1.15
    """Gap between furniture and the body, and between a page number and it, in distances of rows."""
    number_margin = 0.18
    """The same of page numbers: LaTeX sets them 0.175 above the edge of A4."""
    foot = 0.075
    """Share of the page's height at its foot in which rows may be furniture whatever their size."""
    edge = 0.03
    """Share of the page's height within which rows are furniture whatever their gap."""
    note_size = 0.94
    """Size of a footnote over that of running text."""

    margin_numbers = 3
    """Ascending numbers in a margin from which they are those of paragraphs or lines. Not measured."""
    even_steps = 0.7
    """Share of them with the same step from one to the next; a page that begins a chapter may count again."""

    # Tables.
    beside = 0.9
    """Distance of baselines below which two lines are beside each other."""
    column_gap = 0.2
    """Least gap between two words that a column may end in; spaces are wider."""
    cell_gap = 1.0
    """Least gap between two cells of a row."""
    narrow_gap = 0.5
    """The same of cells that begin where those of the row above do. Not measured."""
    table_rows = 2
    """Least rows of a table without rules; two rows need three columns."""
    wrapped_cell = 1.35
    """Distance of baselines within a cell, in those of a paragraph's rows."""
    set_off = 1.6
    """Distance of a row from a table, in the widest of its rows, from which other places of cells end the table."""
    same_pitch = 1.09
    """Quotient of two distances of lines within which they are one; rows of tables are 10 % and more apart."""
    cell_lines = 6
    """Lines of text that cells seldom have. Not measured."""
    written_on = 2.0
    """Most distance of two lines of a cell that were written one after the other. Not measured."""
    ended = 0.1
    """Share of pairs of lines, with room for the next word, above which they are those of different cells."""


TYPOGRAPHY = TypographyThresholds()


class ScannedThresholds:
    """Thresholds of the measures of recognised lines (:mod:`pagemill.parsing.typography.measured`)."""

    contrast = 24
    """Grey levels between ink and ground below which a line is not measured. Not measured."""
    rule = 0.9
    """Share of inked pixels of a row or column of a line's box from which it is a rule."""
    stroke = 1.5
    """Length of a level stroke in font sizes above which it is a rule: a dash of one em is the longest sign."""
    capital, flat, square = 0.73, 0.53, 0.92
    """Height of capitals and ascenders, of letters without, and of East Asian characters, in font sizes."""
    one_size = 0.07
    """Difference of two sizes, as a share, within which they are one: a pixel is 4 % of 10 pt at 200 dpi."""
    of_body = 0.12
    """The same of lines that are not bold and running text."""
    most_lines = 400
    """Lines of a page up to which they are measured: some are compared with all others. Not measured."""
    most_slope, same_slope, sloping = 0.04, 0.0015, 4
    """Greatest fall of rows per pixel, difference of two falls that are one, and pairs of lines that tell it."""
    long_line = 10
    """Width in font sizes from which a line tells its skew: half a degree is a tenth of its height. Not measured."""
    bold = 1.25
    """Width of strokes, in that of most text of the page, from which a line is bold."""
    high = 0.02
    """Least ink of a row of ascenders and capitals, in font sizes for each of them."""
    mono, mono_range = 0.6, (0.45, 0.8)
    """Usual width of a character of fixed pitch in font sizes, and what measures make of it."""
    told = 8
    """Characters of a line from which it tells whether it is of fixed pitch."""
    one_pitch = 0.012
    """Difference of two pitches, as a share, within which they are one."""
    on_grid, fixed = 0.25, 0.75
    """Characters by which a word of fixed pitch may be wider or narrower, and least share of such words in a line."""
    off_row = 0.25
    """Share of a row by which the baseline of a row of code is measured wrongly."""
    shade = 3.0
    """Grey levels between two grounds from which one is shaded."""
    code_rows = 2.6
    """Most distance of two rows of code in font sizes."""
    level = 0.3
    """Distance of two baselines on one level in font sizes. Not measured."""
    typewritten = 0.6
    """Share of a page in letters of fixed pitch from which these are no code without a program's signs."""
    bearing = 0.05
    """Room beside the ink of a letter that belongs to it, in font sizes."""
    leader_dots = 4
    """Least dots of a leader between what was read of its row."""
    cut = 1.0
    """Gap between two words, in font sizes, at which a line is cut in two."""


SCANNED = ScannedThresholds()
