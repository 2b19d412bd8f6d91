"""Every threshold of page assembly on one screen: text layer, lines, paragraphs, headings, margins, captions, code.

Sizes and gaps are in font sizes of the text concerned unless a unit is given. The values were chosen by looking at
failures on the samples, the olmOCR sample and local documents. They were switched off on 284 pages (docs/benchmarks):
one without which no page changes is here for what it prevents, and its section says so.
"""


class ParsingThresholds:
    """Thresholds by the question that they answer."""

    # Regions that layout detection missed (analyse).
    region_covered = 0.5
    """Share of a table or picture covered by detected regions from which it counts as found."""
    sure_picture = 0.9
    """Score from which a detected picture is believed: screenshots and diagrams have rules too."""
    table_in_picture = 0.8
    """Share of a ruled table inside such a picture from which it is part of the picture."""
    table_is_picture = 0.7
    """Share of a picture's area that a ruled grid covers from which the picture is the table."""
    cell_characters, cells_told = 2, 0.7
    """Letters and digits of a cell that tells something, and the share of such cells in a table; a matrix has fewer."""
    ink = 40
    """Grey levels from the ground that are drawn."""
    text_alone = 0.002
    """Share of drawn pixels beside the lines of text below which a region is text alone, but for specks."""
    ruled_cells = 20
    """Cells, most of them numbers, from which a picture of text and rules is a table; beside charts are fewer."""
    least_fields, fields_below = 3, 0.6
    """Rows of a form that begin below each other, at least, and their share: drawings have their words anywhere."""
    table_filled = 0.5
    """Share of such a grid's cells that hold text; the grid of a chart or a map holds less."""
    picture_side = 0.04
    """Share of the page's shorter side; smaller images are icons, bullets and rules."""
    picture_area = 0.5
    """Share of the page's area; larger images are backgrounds or the scan itself."""
    banner_height = 3.0
    """Height of the bar behind a line of text, in heights of the line."""
    line_in_banner = 0.8
    """Share of a line inside the bar."""
    line_in_table = 0.5
    """Share of a line inside a supposed table."""
    max_lines = 2500
    """Lines beyond which a page is not laid out: lines are compared in pairs. A newspaper page has about 1,000."""
    drawn = 0.1
    """Share of a supposed picture of a born-digital page that images and drawings cover. Not measured."""
    lettering = 0.2
    """Share of a picture's area that text may cover."""

    # What was read.
    low_confidence = 0.9
    """Confidence of a line or region, the share of its characters expected to be right, under which its text is
    doubtful: of 1,146 regions of 86 drawn scans and photographs 20 are below it, 15 of them with an error in 20
    characters or more."""
    low_share = 0.1
    """Share of a page's text in such lines from which the page is doubtful: of 86 pages 4 have as much, and a warning
    of their own besides; 2 to 4 % of their characters are wrong, of all pages 1 %."""
    answer_length, answer_agreement = (0.5, 2.0), 0.6
    """Letters and digits of a model's answer over those of the first reading, and the pairs of letters that both have
    over those to be expected, within which it may take the place of that. Of 1,187 regions of drawn pages 1,174 take
    the truth; of 4,227 texts of other regions, many of the same words, 624 would be taken (length alone: 4,070)."""
    doubtful_length = 4
    """Letters and digits of a region from which its confidence is looked at."""

    # Assembly.
    background = 0.4
    """Share of the page above which a picture is a background: text on it is the page's text."""
    contents_rows = 0.5
    """Share of rows with leaders and page numbers from which text is a table of contents."""
    list_gap = (-0.5, 1.0)
    """Gap between two parts of one list."""
    fills_line = 3.0
    """Distance from the right edge within which a last row is full, so that its paragraph may continue."""

    # Lines to regions and rows (lines).
    own_share = 0.3
    """Least share of a line's area in a region for the line to belong to it without doubt."""
    weak_share = 0.6
    """Handicap of a picture among the regions that hold a line, as a share of the line's area: its frame may reach into
    the text below it."""
    ocr_em = 0.72
    """Font size over the height of a detected line, whose box includes ascenders, descenders and a margin."""
    part_gap = 0.4
    """Gap in line heights within which lines across a vertical newspaper are of one advert: mastheads are 0.5 away."""
    row_distance = 0.55
    """Distance of middles within which lines are one row."""
    row_overlap = 0.5
    """Share of the narrower line over another from which both cannot be in one row."""
    drop_cap = 1.8
    """Least size of an initial over the rows beside it."""
    bold_share = 0.5
    """Share of bold characters from which a row is bold."""
    drawn_spaces = 0.1
    """Least share of rows that end in a drawn space if the producer draws them; others draw none at all."""
    row_full = 0.5
    """Distance from the right edge within which a row is full."""
    right_edge = 0.8
    """Quantile of the rows' right ends that is the right edge."""

    # Skew and orientation (deskew, upright). No page needs the least and most of them: a page wrongly turned is lost.
    min_skew = 0.15
    """Degrees below which straightening changes nothing: 4 pixels over the width of A4 at 200 dpi."""
    max_skew = 10.0
    """Degrees above which lines are slanted on purpose, or are not lines."""
    slender = 5.0
    """Lines at least this many times as long as high tell their angle well."""
    skew_lines = 3
    """Least number of such lines."""
    skew_spread = 0.5
    """Degrees within which lines agree with the median angle."""
    skew_agreement = 0.6
    """Share of the lines, by length, that must agree."""
    turned = 0.8
    """Share of characters that must run one way for the page to be turned."""
    turned_characters = 20
    turned_tolerance = 5.0
    """Degrees off a quarter turn."""

    # Paragraphs.
    edge_quantile = 0.1
    """Quantile of row starts (and, from the other side, of row ends) that is the paragraph's edge."""
    pitch_quantile = 0.4
    """Quantile of distances between rows that is the usual one."""
    hanging_edge = 0.5
    """Distance from the left edge within which a row of a hanging paragraph starts an entry."""
    hanging_followed = 0.5
    """Share of entries with a second row from which indents hang."""
    hanging_spread = 1.5
    """Spread of those indents."""
    pitch_break = 1.35
    """Distance between rows that starts a paragraph, over the usual one."""
    paragraph_gap = 0.3
    """Least free space between two paragraphs."""
    centred = 0.1
    """Share of the width by which a centred row may be off the middle."""
    indent = 0.8
    """Least indent of a first row."""
    no_indent = 0.5
    """Largest indent of other rows."""
    indent_share = 0.25
    """Largest indent of a first row as a share of the width."""
    short_row = 0.15
    """Share of the width that a last row leaves free."""
    word_fits = (1.0, 8.0)
    """Room beyond the next word that shows a deliberate break, before an upper case and a lower case word."""
    word_width = 1.3
    """Factor on a word's estimated width."""
    max_compared = 1000
    """Rows of a region beyond which its numbered paragraphs are not compared with all others."""

    # Headings.
    heading_size = 1.18
    """Least size of a heading's rows inside a text region, over the body."""
    marked_heading_size = 1.05
    """The same for numbered rows whose sizes a text layer states."""
    heading_rows = 3
    same_level = 0.95
    """Least size of headings of one level over the largest of them."""
    same_level_measured = 0.9
    """The same where font sizes are measured on the letters: of one level, they differ by up to a tenth."""
    same_level_read = 0.78
    """The same where the heights of recognised rows are all that is known."""
    press_lines = 8
    """Least lines of a column of the press, on a page with fonts: cells of tables have fewer."""
    title_size = 1.35
    """Size over the body from which the largest heading is the document's title."""
    largest_size = 1.2
    largest_lead = 1.1
    """A title no more than this much larger than the body is clearly larger than any other heading."""
    promoted_size = 1.25
    """Size over the body from which a short text block is a heading."""
    promoted_size_read = 1.5
    """The same for rows measured in pixels."""
    promoted_bold_size = 0.95
    """The same for bold blocks."""
    promoted_rows = 3
    heading_gap = 0.6
    """Gap between two rows from which they are two headings."""
    joined_rows = 4
    """Most rows of one heading."""
    number_gap = (-0.5, 4.0)
    """Gap between a section number and its heading."""
    title_zone = 0.5
    """Share of the page height in which a title is looked for."""

    # Margins: running heads and feet, page numbers, footnotes. No page needs ``body_rows`` or ``apart``: they keep text
    # at the edge of short pages, which would be left out of the Markdown.
    band = 0.12
    """Share of the page height at top and bottom in which running heads, feet and page numbers are."""
    furniture_reach = 0.25
    """Share of the page height beyond which nothing is a running head or foot, whatever layout detection says. It is
    larger than ``band``: photographs of pages have wide borders."""
    outer_band = 0.085
    side_band = 0.1
    """Share of the page width."""
    small_print = 0.92
    """Font size of footnotes over that of running text."""
    small_print_read = 0.97
    """The same for sizes measured in pixels, which differ less."""
    body_rows = 6
    """Rows that a page needs for a lone line at its edge to be a running head by its position alone."""
    edge_rows = 3
    """Rows of a head or foot: text, a second row across a rule, a page number."""
    small_running = (0.85, 60, 1.5)
    """Size over the body, characters and gap of a running head that is one by its small print."""
    running_size = 1.1
    """Largest size over the body of a running head."""
    apart = 0.9
    """Least gap of a running head that is one by its position."""
    running_title_size = 1.02
    """The same for what layout takes for a title."""

    # Captions.
    caption_distance = 0.1
    """Share of the page height: the farthest a caption is from its figure or table."""

    # Formulas.
    formula_words = 0.6
    """Share of words among printed characters from which a supposed formula is text."""
    formula_scripts = 0.3
    """The same for letters of scripts in which formulas are not written."""

    # Formulas of a text layer, in units of their font size; TeX's own distances in brackets.
    max_symbols = 20_000
    """A page of small print with formulas has 8,000."""
    max_formula_elements = 600
    """Each is compared with all others."""
    formula_prose = 0.5
    """Share of letters of a word from which a line is no formula."""
    formula_prose_relation = 0.75
    """The same where there is a relation: ``softmax(x) = `` is a formula."""
    formula_gap = 2.5
    """Farthest that parts of a formula stand apart on a line (``\\qquad``: 2; the cases of a short one: 2.1)."""
    formula_rise = 0.36
    """Farthest that a part stands above another (limits of operators: 0.3; the next line: 0.4 at least)."""
    formula_bar_gap = 0.8
    """Farthest that a part stands from its fraction bar (a digit above it: 0.41; with Times: 0.65), and the label of a
    brace from the brace."""
    formula_limit_gap = 0.5
    """Farthest that a limit stands from its operator (a letter without ascender: 0.4)."""
    formula_apart = 0.8
    """Nearest that words of another column stand (a column gap: 1; a space: 0.33)."""
    formula_set_off = 0.5
    """Least space above a display formula (TeX: 1; between lines of text 0 to 0.4)."""
    formula_aside_words = 4

    # Code blocks.
    code_word = 4
    """Characters of the shortest word whose width per character is evidence."""
    code_characters = 12
    code_spread = 0.03
    """Spread of the width per character below which letters are fixed-width; proportional ones are around 0.12."""
    code_ascii = 0.6
    """Least share of ASCII in a code block; comments may be in any script."""
    code_fixed = 0.85
    """Share of the characters that must have the one width."""
    code_symbols = 0.06
    """Share of punctuation of code among printed characters; prose has 0.01 to 0.02."""
    code_indent = 60
    """Most characters of indent."""
    code_line_symbols = 0.12
    """The same for a single line that ends like code."""
    code_run_gap = 3
    """Rows between two runs of code that are one, and least rows of a run."""
    code_blank = 1.6
    """Distance between rows, over the usual one, that is an empty line."""
    code_near = (-0.5, 1.5)
    """Gap, in heights of the row, of a row that belongs to a code block."""

    # Bullets recognised by their shape. Chosen on 13 drawn plans in nine Korean fonts at 200 dpi.
    bullet_reach = 2.4
    """Farthest that a bullet starts from its text, and the width looked at."""
    bullet_part_gap = 0.09
    """Gap between parts of one glyph, such as the bars of a Roman numeral."""
    bullet_gap = 0.2
    """Least gap between a bullet and its text; that between syllables is under 0.15."""
    bullet_characters = 5
    """Most characters that are read in place of a bullet: ``(01)``."""
    bullet_aspect = 0.8
    """Least ratio of the sides; 0 has 0.7 and less."""
    bullet_solid = 0.1
    """Share of the silhouette that is free in a filled shape."""
    bullet_hole = 0.2
    """The same in an outline."""
    bullet_large = 0.5
    """Size of ○ ● ■ from which they are not ◦ • ▪."""
    bullet_small = 0.2
    """Size of • from which it is no middle dot."""
    bullet_empty = 0.06
    """Share of the middle of an outline that is ink where there is nothing in it."""
    bullet_core = 0.8
    """Ink of the square inside another."""
    square_share = 0.88
    """Least share of its box that a square fills."""
    circle_share = (0.6, 0.87)
    """The same of a circle: 0.79 in theory."""
    uneven = 0.14
    uneven_pixels = 2.2
    """Largest difference between the sides of a circle or triangle, as a share and, of small ones, in pixels."""
    triangle_share = (0.36, 0.68)
    triangle_rise = 0.15
    """Growth of a triangle from third to third: 0.33 in theory."""
    diamond_middle = 0.72
    diamond_ends = 0.55
    """Width of a diamond in its middle third, and in the outer ones: 0.83 and 0.33 in theory."""
    mark_diagonals = 0.45
    mark_dots = 0.4
    mark_free = 0.25
    """Ink of ※ on its diagonals, in its dots, and elsewhere."""
    bar_height = 0.8
    """Least height of an upright bar of a Roman numeral, over that of capitals."""
    numeral_reach, numeral_width = 1.2, 1.6
    """Farthest that a Roman numeral starts before its line, which may lack it, and its greatest width."""
    number_restart, number_jump = 0.4, 1.2
    """Cost, in misread digits, of a list of circled numbers that starts again, and of one that skips a number."""

    # Lists, form fields, check boxes. No drawn page has form fields of its own: kept for what was filled in.
    item_edge = 1.0
    """Farthest that the left edges of items of one kind and level are apart: ``9.`` and ``10.`` differ by half."""
    item_indent = 0.5
    """Least indent of a deeper level. Not measured."""
    bulleted_rows = 0.4
    """Least share of rows that start with a bullet in a list that was detected as a table."""
    field_reach = 25.0
    """Farthest that a form field starts from the end of its label; fields line up behind the longest label."""
    field_label = 60
    """Characters of a label; longer rows are running text with a note beside it."""
    field_leading = 1.0
    """Most space between the rows of one value."""
    field_edge = 0.5
    """Tolerance of a field's left edge."""
    unit_line, unit_gap = 40, 3.0
    """Characters of a line of units without brackets, and how far above its table it stands, in font sizes."""
    pair_gap, known_gap = 1.2, 0.5
    """Least gap between a label and its number without a leader, in heights of lines, and where values begin below each
    other; words are 0.3 apart."""
    pair_edge = 0.6
    """Farthest apart that numbers end which are below each other, in heights of lines."""
    least_pairs = 3
    """Rows of labels and numbers that tell each other; two may be a date and a page number."""
    paired_fields, label_filled, label_width = 4, 0.75, 7
    """Rows of labels with values of any kind; how much of the room before the values usual labels without a colon fill,
    and their width in heights of lines: labels of drawn forms 0.2 to 0.7 and up to 6.4, columns of text from 7."""
    words_of_text = 4, 6
    """Words from which values are what persons say, whose names come again, and those from which they are text. Not
    measured."""
    second_line = 1.4, 0.9
    """Farthest that the second line of a label is below the first one: in heights of lines, and as a share of the least
    distance of two rows."""
    pairs_crossed = 0.5
    """Lines per row that may reach from labels into numbers: headings and descriptions are shorter."""
    pairs_of_picture = 0.7
    """Share of the lines in a picture from which it is rows of labels and numbers; receipts have 0.75 and more."""
    leader_contrast = 40
    """Grey levels of the dots of a leader below the paper."""
    leader_dots, leader_height = 4, 0.4
    """Least dots of a leader, and its height as a share of the row's, skew included; letters have 0.5 and more."""
    mark_reach = 2.5
    """Farthest that a check box is from its label."""
    mark_in_line = 0.5
    """Share of a line in a check box or field from which the line is the mark or the value, read from the pixels."""

    # Soundness of a text layer. No drawn page has an unsound one: kept for the text that would be lost.
    unmapped = 0.05
    """Largest share of characters without a Unicode code."""
    invisible = 0.1
    """Characters of an invisible layer over ink of its own, per visible character, above which the page shows more text
    than the visible layer says."""
    ink_contrast = 48
    """Grey levels off the paper that make ink."""
    line_ink = 0.03
    """Share of a line's box that writing inks; a hairline or a speck in an empty box inks less. Not measured."""
    shown = 8
    """Grey levels between the lightest and the darkest pixel of a line's box from which a reader sees something."""
    text_without_ink = 0.02
    """Share of a layer's characters that a reader does not see from which the page is to be reviewed."""
    sample = 80
    """Characters below which statistics mean nothing."""
    letters = 0.4
    """Least share of letters."""
    ascii_letters = 0.5
    """Share of ASCII letters from which vowels are counted."""
    vowels = (0.2, 0.65)
    """Plausible share of vowels among ASCII letters: 0.35 to 0.5 in European languages, below 0.2 in a text whose codes
    are all shifted by a constant (a subset font without a Unicode map)."""
    word_length = 30
    """Characters of the longest plausible mean word."""
    one_glyph = 0.4
    """Largest share of one character."""
    lone_letters = 0.05
    """Largest share of words of a single letter in Indic scripts: 0 in 3,700 drawn words of Hindi, 0.11 to 0.13 where a
    browser's PDF parts letters from their vowel signs."""
    given_twice = 0.001
    """Largest share of Thai letters that come twice with their marks: 0 in drawn texts, from 0.0024 in a
    browser's PDFs."""
    mojibake = 0.01
    """Largest share of sequences typical of a wrong encoding."""
    unread_ink = 0.35
    """Share of text-like ink outside all lines of the layer; figures with lettering reach a third."""
    row_shared, row_pitch, row_rhythm, row_height = 0.8, 2.2, 1.3, 1.0
    """Of ink that takes the place of a line: share of its width below and above which there are lines, most distance
    of these from it in heights of them, most ratio of both distances, most height in distances. Not measured."""
    sure_text = 0.6
    """Score from which a region of text is believed where the layer has none. Not measured."""
    strip_covered = 0.3
    """Share of the area of a line, a word, a strip or a region that known lines cover from which they hold its text."""
    slanting = 0.5
    """Share of its box that a line takes under which the box holds other text. Not measured."""
    analysis_height = 1400
    """Pixels to which a page is shrunk to look for ink."""
    edge_level = 24
    """Least gradient of an edge: Otsu's threshold splits the noise of an empty page too."""
    rule_length = 60
    """Pixels at the analysis height: strokes as long as a line of the largest text is high are rules, not letters."""
    rule_width = 7
    """Pixels cleared around the edge of a rule: a rule of about 2 points and its far edge."""
    rule_part = 24
    """Length of strokes that are rules only together with others, such as the short sides of a frame."""

    # Pages read by a model.
    open_characters = 40
    """Characters from which a text without a full stop at its end is a paragraph that continues, and not a label."""
    shows_slope = 4.0
    """Heights from which a line shows by its corners how it runs: letters that reach down turn shorter ones."""
    outline_points = 9
    """Points of each side of a box that are put into a photograph: of a side bent as much as severity 1 of the camera
    does, what lies between them is 0.5 pixels off."""
    blank_contrast = 32
    """Least difference of brightness on a page that is not blank."""


PARSING = ParsingThresholds()
