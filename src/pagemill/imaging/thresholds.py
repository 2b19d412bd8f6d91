"""Every threshold by which a photograph of a page is recognized, unwarped and evened, on one screen.

Measured on 99 pages of local documents (scans, renderings, screenshots, table images; four of them real photographs)
and on 112 photographs of drawn pages by two simulated cameras at severities 0.25 to 1, seeds below 1,000, and the clean
scans of 96 of these pages.
"""


class ImagingThresholds:
    """Thresholds by the question that they answer."""

    # Is it a photograph (photograph). Levels are grey levels, the brightest paper being 255; blocks are squares of
    # the sampled page.
    sampled_side = 512
    """Pixels of the longer side that are looked at, picked without averaging: 0.5 ms a page."""
    block = 16
    """Side of a block, whose brighter half is the paper."""
    fewest_blocks = 64
    """Blocks below which a page is too small, or too narrow, to tell."""
    paper = 0.45
    """Share of the brightest paper from which a block is paper: tables that photographed pages lie on are darker, or
    lit no more evenly."""
    blown_out = 254.9
    """Grey level from which paper tells nothing: renderings are as bright, and overexposed parts of photographs."""
    shaded_share = 0.28
    """Least share of pairs of neighbouring blocks that are both such paper: photographs have 0.32 and more, however
    overexposed; pages with pictures on white up to 0.25."""
    median_step = 0.5
    """Median difference of neighbouring blocks: photographs have 0.56 to 6.6, scans 0.20 to 0.46, but for one of a
    letter of 1864 (0.65) and one so noisy that its paper is even (0.84)."""
    least_step = 0.22
    """Lower quartile of it: photographs have 0.25 to 3.0; slides with colour gradients, level along one axis, 0; scans
    up to 0.21, but for those two."""
    spread = 0.06
    """Spread of the paper's brightness over the page, from its first to its last decile, as a share of the brightest:
    photographs have 0.07 to 0.53, scans up to 0.06."""

    # Where is the page in it (unwarping).
    least_sheet = 0.1
    """Share of the photograph's area below which what was found is no page: drawn ones fill 0.35 and more."""
    close_up = 0.6
    """Share of the photograph from which a page is near enough: the network was trained on such photographs, and drawn
    ones have 0.62 and more. What lies farther away is looked at again without its surroundings."""
    looks = 3
    """Most times that it is looked at: a page of a quarter of the photograph needs three."""
    surroundings = 0.05
    """Share of the page's width and height that is left around it."""
    border = 1
    """Nodes of the mesh (of 31 x 45) that are added on every side: the network cuts margins off where it sees no edge
    of the paper, and writing may stand in them."""
    focal_length = 0.85
    """Of the camera, over the longer side of its photographs: 0.7 to 0.85 in telephones. On 20 drawn photographs of
    severity 1, whose camera has 1.5, it leaves an error of 7 % in width over height instead of 13 %; with 0.7 to 1.5
    that is 6 to 8 %."""
    least_slant, largest_slant = 1.05, 1.5
    """Least and most by which the page is longer or wider than it looks. Less costs more sharpness than shape, more
    would be seen from over 48 degrees."""
    largest_growth = 2.0
    """Most pixels of an unwarped page over those of its photograph."""

    # Are its lines level (levelling).
    moved_nodes = (24, 18)
    """Rows and columns of the grid on which the page is moved: a fold bends lines within a 20th of the page."""
    mesh_finer = 4
    """Cells of the mesh for one of this grid, along each side."""
    stiff, tight, pull = 0.3, 0.02, 1e-4
    """What it costs to bend the grid, to stretch it, and to move it at all, for what a text height costs by which a
    point of a line is not level."""
    off_curve, fitted_rounds = 0.15, 4
    """Text heights by which a point is off that counts half: letters without ascenders move the middle of a line by
    0.1; rounds in which it does."""
    least_move = 0.1
    """Most text heights by which a page is off that is left as it is."""
    rule_contrast = 12
    """Grey levels by which a rule is darker than its neighbourhood."""
    rule_piece = 0.8
    """Text heights of the shortest level piece of a rule: with a slope of 5 % one 2 pixels thick has pieces of 40."""
    thickest_rule = 0.35
    """Text heights."""
    longest_letter = 6.0
    """Text heights from which a stroke is a rule: no letter has one so long."""
    rule_reach = 2.0
    """Text heights around the text in which rules are looked for."""

    # Is it lit evenly (photograph).
    lamp_side = 128
    """Pixels of the longer side at which the light is estimated."""
    stroke = 5
    """Size in these pixels within which strokes and small type are filled with the paper around them."""
    patch = 21
    """Side of the square, of these pixels, over whose median the light is taken."""

    moire, moire_share, moire_rows = 5.0, 0.1, 8
    """Least grey levels by which the difference of two channels varies within a block, in all but so large a share of
    the blocks: on photographs of displays 10 to 19, on those of paper up to 0.6; one in so many rows is looked at."""
    even_line = 0.97
    """Darkest over brightest light on a line from which it is left as it is: dividing by it costs thin strokes."""

    # Does layout detection take it for a scan (photograph).
    edge = 0.03
    """Share of a side that is white at each edge, where no line of text is near: ``border`` adds some of the table top
    there. With it, the tables on three of four drawn photographs were labelled text or picture."""
    sharpened, sharpened_over = 1.5, 2.5
    """How much of the difference to a blurred page is added to it; sigma of the blur, in pixels."""
    paper_gain = 1.16
    """Factor that makes paper white which its own light did not."""


IMAGING = ImagingThresholds()
