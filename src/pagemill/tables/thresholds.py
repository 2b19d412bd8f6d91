"""Every threshold of table recognition on one screen.

Lengths are in text heights (the height of a detected line, about 1.3 em) unless a unit is given. The values were chosen
on the project's samples, PubTabNet's 20 examples and the pages of the olmOCR sample (``pagemill eval run``)
by looking at failures. They were switched off on 284 pages (docs/benchmarks): without
each some page or a drawn test changes.
"""


class TableThresholds:
    """Thresholds by the question that they answer."""

    # Which lines of text belong to the table.
    line_inside = 0.5
    """Share of a line's area inside the region from which the line is part of the table."""
    slanted_title = 0.3
    """Slope from which a column title is set aslant on purpose; beyond its inverse it is upright."""
    same_line = 0.5
    """Words whose middles are closer than this are on one line of text; rules closer than this are one rule."""

    # Ruling lines.
    rule_contrast = 12
    """Grey levels by which a rule is darker than its neighbourhood; less is paper texture and JPEG noise."""
    rule_length = 3.0
    """Shortest rule; below it a stroke may be part of a letter."""
    stroke_upright = 1.2
    """Shortest upright stroke that may be a piece of a rule: taller than a letter."""
    letters_in_stroke = 0.5
    """Share of a stroke inside words from which it is letters that run together."""
    stroke_thickness = 0.4
    """Thickest rule, as a share of the stroke length that was searched for."""
    stroke_height = 0.5
    """Tallest rule with its slope, as a share of the stroke length that was searched for."""
    shaded_area = 0.8
    """Thickness, as a share of the searched stroke length, from which an area is shading and not a rule."""
    link_offset = 0.25
    """Farthest apart two strokes of one (double or broken) rule are across its direction."""
    link_gap = 0.7
    """Longest gap in a broken rule."""
    light_window = 0.25
    """Height of the window in which a white line inside shading is distinguished from its ground."""

    # Ruled tables on a whole page.
    same_table = 0.5
    """Share of a table ruled across that lies in one ruled both ways from which it is part of that one."""
    max_rules = 2000
    """Rules beyond which a page is a drawing: rules are compared with each other and with the lines of text."""
    rule_through = 0.5
    """Share of a grid's height that its sides cover; the left sides of a form's fields cover up to a quarter."""
    crossings = 8
    """Least crossings of connected rules; fewer are a box or a logo."""

    # Lattice: cells bounded by rules.
    border_covered = 0.6
    """Share of a cell's side that rules must cover to be its border."""
    max_slots = 20_000
    """Most slots of a lattice; more are a hatched picture."""
    framed_words = 0.8
    """Least share of the region's words inside the frame; the rest (caption, note) is left out of the table."""
    coarse_cells = 0.2
    """Share of filled cells with several columns or stacked figures above which the rules are not the whole grid."""
    cell_columns_gap = 1.5
    """Gap between words of a cell that separates columns inside it."""
    header_figures = 0.3
    """Share of numeric cells above which the first row of a lattice is not a header."""
    shaded_row = 0.8
    """Least height of a shaded row."""

    # Shading.
    shade = 16
    """Grey levels between two shades of ground."""
    ground_percentile = 67
    """Percentile of grey that is ground: even dense print covers less than a third of its line."""
    shade_returns = 0.1
    """Share of later rows of the header's shade above which the table is striped and the shade is no evidence."""

    # Columns without vertical rules.
    word_space = 0.35
    """Gap up to which neighbouring words are one run of ink."""
    wide_gap = 0.9
    """Gap that no space between words has."""
    gutters = ((4, 0.45), (2, 0.8), (1, 1.2))
    """Least width of a gutter by the least number of rows with text on both of its sides."""
    gutter_crossed = 0.15
    """Share of rows that may cross a gutter: spanning headers, long section titles."""
    inner_gap = 0.55
    """Gap that splits a column in two if it is there in most of its rows."""
    inner_agreement = 0.9
    """Share of those rows whose gaps must overlap."""
    border_distance = 0.6
    """Closest two column borders."""
    rule_is_border = 0.6
    """Share of the table's height from which a vertical rule is a column border."""
    gap_at_border = 0.4
    """Gap that cuts a run of words where a column border crosses it."""
    overhang = 0.15
    """Share of a piece's width that may reach over a border without making it span columns."""

    # Rows and headers without rules.
    rule_divides_rows = 0.7
    """Share of the table's width that a rule must span to divide rows."""
    continues_tighter = 0.92
    """A line belongs to the neighbour whose distance is less than this share of the other's."""
    stub_filled = 0.7
    """Share of rows with a label from which the first row without one begins the body."""
    row_distance = 2.0
    """Farthest apart two lines of one row, or of one header level, are."""
    centring_tie = 0.02
    """Difference of two centrings, as a share of the span's width, below which the wider span is chosen."""

    # Tables with horizontal rules alone.
    open_rule_length = 8.0
    """Shortest rule of such a table."""
    open_rows = 3
    """Least rows between rules of one extent."""
    open_gutter = 0.8
    """Least width of the blank between two columns."""

    # Choice between grids, by their agreement with the words.
    empty_cost = 0.25
    """What a table's share of empty cells takes off its agreement."""
    sure_agreement = 0.995
    """Agreement from which no other grid is looked for."""
    least_agreement = 0.5
    """Agreement below which a predicted structure is not taken."""
    trust_rules, trust_model, trust_text = 0.1, 0.05, 0.0
    """What is added to the agreement by the way in which a grid was found: drawn rules are rarely wrong."""
    trust_groups = 0.045
    """The same for a grid from text that agrees surely, with labels of several rows: only a model that agrees as well
    is believed before it."""
    border_moved = 0.1
    """What a column border costs per text height by which it is moved, in words cut."""
    margins = (0.0, 0.5, -0.25)
    """Margins around the table with which the model is asked, until its answer agrees surely."""

    # Running text.
    prose = 0.7
    """Share of characters in paragraphs from which text is prose and no table: drawn tables have up to .60, those of
    PubTabNet's examples up to .63; columns of prose mostly .8 and more."""
    prose_words, prose_characters = 3, 10
    """Least words, or characters of scripts without spaces, of a line that is evidence."""
    paragraph_lines = 4
    """Least lines of a paragraph; cells wrap into fewer."""
    ruled_prose_rows = 3
    """Least rows that rules draw of a table whose cells are paragraphs: columns and frames have fewer."""
    most_prose_lines = 3000
    """Lines beyond which no region is looked at: each is compared with each."""


TABLES = TableThresholds()
