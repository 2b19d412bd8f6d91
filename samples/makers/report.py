"""The two-column English report: our own words about a mill that does not exist."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle

from makers.typesetting import (
    Block,
    Cell,
    Column,
    Element,
    Typesetter,
    build_table,
    new_canvas,
    register_fonts,
    table_html,
)

if TYPE_CHECKING:
    from pathlib import Path

    from reportlab.pdfgen.canvas import Canvas

SERIF, BOLD, ITALIC = "LiberationSerif-Regular", "LiberationSerif-Bold", "LiberationSerif-Italic"

BODY = ParagraphStyle(
    "body", fontName=SERIF, fontSize=10, leading=12.2, alignment=TA_JUSTIFY, firstLineIndent=10,
    hyphenationLang="en_US", hyphenationMinWordLength=7, allowWidows=0, allowOrphans=0,
)  # fmt: skip
FIRST = ParagraphStyle("first", parent=BODY, firstLineIndent=0)
ABSTRACT = ParagraphStyle(
    "abstract", parent=FIRST, fontSize=9.2, leading=11.2, leftIndent=42, rightIndent=42, hyphenationLang=""
)
LIST = ParagraphStyle(
    "list", parent=FIRST, leftIndent=14, bulletIndent=3, bulletFontName=SERIF, bulletFontSize=10, spaceAfter=0
)
TITLE = ParagraphStyle("title", fontName=BOLD, fontSize=18, leading=22, alignment=TA_CENTER, spaceAfter=0)
AUTHORS = ParagraphStyle("authors", fontName=SERIF, fontSize=11, leading=14, alignment=TA_CENTER)
HEADING = ParagraphStyle("heading", fontName=BOLD, fontSize=12, leading=15)
SUBHEADING = ParagraphStyle("subheading", fontName=BOLD, fontSize=10.5, leading=13)
CAPTION = ParagraphStyle("caption", fontName=SERIF, fontSize=9, leading=11, alignment=TA_JUSTIFY)
FOOTNOTE = ParagraphStyle("footnote", fontName=SERIF, fontSize=8, leading=9.6, alignment=TA_JUSTIFY)

LEFT, GUTTER, COLUMN = 54.0, 21.0, 233.0
RIGHT = LEFT + COLUMN + GUTTER
FULL = 2 * COLUMN + GUTTER


def text(words: str, *, first: bool = False, after: float = 0.0, markup: str | None = None) -> Block:
    """A body paragraph; the first one under a heading is not indented."""
    return Block("text", words, FIRST if first else BODY, markup, space_after=after)


def item(words: str, after: float = 2.0) -> Block:
    """A bulleted list item."""
    return Block("text", words, LIST, bullet="•", space_after=after, facts={"list_item": True})


def heading(words: str) -> Block:
    """A section heading."""
    return Block("paragraph_title", words, ParagraphStyle("h", parent=HEADING), space_after=3, facts={"level": 2})


def subheading(words: str) -> Block:
    """A subsection heading."""
    return Block("paragraph_title", words, SUBHEADING, space_after=2, facts={"level": 3})


def gap(height: float) -> Block:
    """White space; never part of the truth."""
    return Block("", height=height, draw=lambda *_: None)


ABSTRACT_TEXT = (
    "Abstract. We followed a small water-powered paper mill through one working year and weighed what went in and what "
    "came out. Of every 100 kg of sorted rag, 71 kg left the loft as finished paper. Most of the loss happens in the "
    "beater and not, as the trade has long held, in the drying loft. A slower roll and a fuller vat recovered almost "
    "half of it without new machinery."
)

INTRODUCTION = [
    heading("1 Introduction"),
    text(
        "A paper mill is a simple machine with a long memory. Rag is cut, washed and beaten until the fibres part; the "
        "pulp is scooped from a vat on a wire mould, turned out upon felt, pressed, and hung up to dry. Each of these "
        "steps was settled before the year 1400, and each has been described many times since. What has rarely been "
        "described is how much is lost on the way.",
        first=True,
    ),
    text(
        "The question is not an idle one. Linen is dear, water is rationed in dry summers, and a mill that makes 40 "
        "reams a month cannot afford to send a third of its stock down the river. Yet most of the figures in print go "
        "back to a handful of surveys, made in large works with steam engines, and tell us little about a house with "
        "one wheel and two vats."
    ),
    text(
        "We were given the run of such a house for twelve months. The Lower Mill at Wheelbridge has worked without a "
        "break since 1788; it employs nine people and sells writing paper, blotting paper and board to binders.1 Its "
        "owners keep careful books, which we compared with our own scales.",
        markup="We were given the run of such a house for twelve months. The Lower Mill at Wheelbridge has worked "
        "without a break since 1788; it employs nine people and sells writing paper, blotting paper and board to "
        "binders.<super size=6.5 rise=3.4>1</super> Its owners keep careful books, which we compared with our own "
        "scales.",
        after=8,
    ),
    heading("2 The mill and its water"),
    text(
        "The wheel is overshot, 4.2 m across and 1.1 m wide, and drives two beaters through wooden gearing. In a wet "
        "month it yields close to 5 kW at the shaft; in August it may stand still for days. Figure 1 shows the house "
        "as seen from the tail race. Four things decide how much work is done on a given day:",
        first=True,
        after=3,
    ),
    item("the flow in the head race, read each morning from a painted staff;"),
    item("the number of beaters in gear, which is never more than two;"),
    item("the kind of rag, since old sailcloth takes twice as long as fine linen; and"),
    item("the air in the loft, for wet paper cannot be stacked.", after=4),
    text(
        "None of the four can be chosen freely. The miller sets the sluice before breakfast and the rest of the day "
        "follows from it, so that a record of the sluice is very nearly a record of the mill. We read the staff 352 "
        "times and missed only the days when the path was under water."
    ),
    text(
        "Washing takes the most water by far. A beater holds 900 litres and is filled and drained six times before the "
        "foreman calls the stock clean, which he judges by wringing a handful of it over a white plate. His judgement "
        "proved better than our instruments: on 18 of 20 trial days he stopped within two minutes of the point at "
        "which the drained water no longer changed colour, although he has never owned a clock and would not look at "
        "ours.",
        after=8,
    ),
    heading("3 What we measured"),
    subheading("3.1 Weighing the stock"),
    text(
        "All rag was weighed twice, once as bought and once after sorting, on a platform scale good to 0.1 kg. Pulp is "
        "mostly water and cannot be weighed in any useful way; instead we drew one litre from the vat every hour, "
        "strained it through silk, and dried the cake at 105 °C until it lost no more. Finished sheets were counted by "
        "the ream and weighed on the day they left the loft, when they still hold about 7 % of moisture. Broken and "
        "spotted sheets go back into the beater, and we counted them with the rag of the following week, as the mill "
        "itself does in its ledgers. Seasons matter, so the year was divided into quarters and every quarter was "
        "treated as a campaign of its own, with its own balance of rag, paper and waste.",
        first=True,
    ),
    text(
        "Table 1 gives the yearly balance for the two vats. The first makes writing paper from linen, the second makes "
        "board from anything that is left. It is plain at a glance that the loss is not shared evenly between the "
        "quarters: the second vat loses least in winter, when the river runs high and the roll can be turned slowly, "
        "and most in late summer.",
    ),
    text(
        "Every quarter closes with a stocktaking of two days, during which no rag is cut and no vat is filled. Both of "
        "us were present each time and kept separate lists, one from the floor and one from the ledger; where they "
        "disagreed by more than a single ream, the loft was counted afresh. The two lists never differed by more than "
        "four parts in a thousand, and we take this as the error of every weight that is given below. Moisture is the "
        "one thing that no ledger records, and for it we have only our own silk cakes, dried and weighed as described.",
        after=8,
    ),
    subheading("3.2 Measuring the wheel"),
    text(
        "The power that reaches the beaters was found with a rope brake on the main shaft. Dividing it by the power of "
        "the falling water gives the efficiency of the wheel,",
        first=True,
        after=4,
    ),
    Block(
        "formula", height=32, draw=lambda canvas, left, bottom, width: draw_formula(canvas, left, bottom, width)
    ),
    text(
        "where the power at the brake is divided by the density of water, the pull of gravity, the flow, and the head "
        "of 4.5 m. Over the year the wheel returned 63 % of what the river offered, "
        "a fair figure for oak that has been in the wet for forty years.",
        first=True,
        after=8,
    ),
    heading("4 Where the fibre goes"),
    text(
        "The losses by step are set out in Table 2. More than half of all that is lost leaves with the wash water as "
        "fibre too short to be held back by the wire. Drying, which the trade blames first, takes barely a tenth. We "
        "therefore asked the foreman to lower the speed of the roll from 180 to 140 turns a minute for one quarter and "
        "to keep the vat one hand fuller than is usual.",
        first=True,
    ),
    text(
        "The change cost him 25 minutes for every charge of the beater. In exchange the wash water ran visibly "
        "clearer, and the yield of the first vat rose from 69 to 76 kg for every 100 kg of sorted rag. Nobody had to "
        "buy anything. The sheets themselves were, if anything, a little stronger; a binder who was not told of the "
        "trial "
        "asked for more of the same.",
        after=8,
    ),
    subheading("4.1 Felts and press"),
    text(
        "The press gives back what it takes. Water from the felts runs down a wooden gutter into the stuff chest, and "
        "with it most of the fibre that the felts have shed, so that the small loss in the table is in truth the fluff "
        "that is brushed off at night. Felts "
        "last for two years in this house, which is twice as long as the maker promises, because they are washed in "
        "cold water only and never wrung.",
        first=True,
        after=8,
    ),
    subheading("4.2 The drying loft"),
    text(
        "The loft deserves better than its name. It runs the whole length of the roof, with 64 shutters on either side "
        "that one boy opens and closes by the feel of the air on his face. Sheets hang in spurs of five over ropes of "
        "cow hair, which leave no stain, and come down again after three to six days, when they "
        "crackle in the hand. What is lost here is lost by handling: corners are torn when the spurs are parted, "
        "and a gust may bring down a whole rope. On 7 October a single squall spoiled 11 kg of good writing paper, "
        "more than the loft had lost in all of the three months before.",
        first=True,
    ),
    text(
        "Torn sheets are not waste, since they return to the beater, but they are work done twice. Counting the hours "
        "and not the fibre, the loft would stand second in our table and the press would vanish from it. We mention "
        "this because a mill is seldom short of rag and always short of hands.",
        after=8,
    ),
    heading("5 Conclusion"),
    text(
        "A mill of this size can save nearly half of its lost fibre by patience alone. The advice is old, and the "
        "foreman’s grandfather is said to have given it, but it had never been weighed. Next year we shall repeat the "
        "measurement with the roll newly dressed, and extend it to the size house, where gelatine is lost in amounts "
        "that no one has yet cared to write down.",
        first=True,
    ),
]  # fmt: skip

FIGURE_CAPTION = "Figure 1: The Lower Mill at Wheelbridge with its overshot wheel, seen from the tail race."
NOTE = "1 The books of the mill from 1788 to 1931 are kept in the county archive and may be read there by appointment."
NOTE_MARKUP = NOTE.replace("1 ", "<super size=5.5 rise=2.6>1</super> ", 1)
TABLE_1_CAPTION = "Table 1: Rag bought and paper made in one year, by vat and quarter. All weights are in kilograms."
TABLE_1 = [
    [Cell("Quarter", rowspan=2), Cell("Vat 1: writing paper", colspan=3), Cell("Vat 2: board", colspan=3)],
    [Cell("Rag"), Cell("Paper"), Cell("Yield"), Cell("Rag"), Cell("Paper"), Cell("Yield")],
    [Cell("January to March"), *map(Cell, ("1,284.5", "899.2", "70.0 %", "612.0", "475.9", "77.8 %"))],
    [Cell("April to June"), *map(Cell, ("1,310.2", "904.0", "69.0 %", "598.4", "440.2", "73.6 %"))],
    [Cell("July to September"), *map(Cell, ("842.7", "564.6", "67.0 %", "401.3", "268.9", "67.0 %"))],
    [Cell("October to December"), *map(Cell, ("1,196.0", "909.0", "76.0 %", "577.8", "441.4", "76.4 %"))],
]
TABLE_2_CAPTION = "Table 2: Fibre lost at each step of the work."
TABLE_2 = [
    list(map(Cell, ("Step", "Loss (kg)", "Share (%)"))),
    list(map(Cell, ("Sorting and dusting", "212.4", "11.1"))),
    list(map(Cell, ("Washing", "1,046.8", "54.5"))),
    list(map(Cell, ("Beating", "398.1", "20.7"))),
    list(map(Cell, ("Pressing", "71.9", "3.7"))),
    list(map(Cell, ("Drying in the loft", "190.5", "9.9"))),
]
LATEX = r"\eta = \frac{P}{\rho g Q H}"


def draw_formula(canvas: Canvas, left: float, bottom: float, width: float) -> None:
    """The efficiency of a water wheel as a displayed fraction, its number at the right margin."""
    middle = bottom + 14
    x = left + width / 2 - 34
    canvas.setFont(ITALIC, 12)
    canvas.drawString(x, middle, "η")
    canvas.setFont(SERIF, 12)
    canvas.drawString(x + 12, middle, "=")
    canvas.setLineWidth(0.6)
    canvas.line(x + 26, middle + 3.5, x + 66, middle + 3.5)
    canvas.setFont(ITALIC, 12)
    canvas.drawCentredString(x + 46, middle + 7.5, "P")
    canvas.drawCentredString(x + 46, middle - 8, "ρ g Q H")
    canvas.setFont(SERIF, 10)
    canvas.drawRightString(left + width, middle, "(1)")


def draw_mill(canvas: Canvas, left: float, bottom: float, width: float) -> None:
    """A mill house, its wheel and the river, as flat shapes."""
    canvas.saveState()
    frame = canvas.beginPath()
    frame.rect(left, bottom + 4, width, 134)
    canvas.clipPath(frame, stroke=0)
    canvas.translate(left, bottom + 4)
    canvas.linearGradient(0, 134, 0, 40, (HexColor("#9fc3df"), HexColor("#eef3f2")), extend=True)

    def polygon(points: list[tuple[float, float]], colour: str) -> None:
        path = canvas.beginPath()
        path.moveTo(*points[0])
        for point in points[1:]:
            path.lineTo(*point)
        path.close()
        canvas.setFillColor(HexColor(colour))
        canvas.drawPath(path, stroke=0, fill=1)

    polygon([(0, 40), (0, 78), (38, 92), (80, 74), (130, 98), (185, 72), (233, 88), (233, 40)], "#8fae8b")
    polygon([(0, 0), (0, 44), (70, 50), (233, 42), (233, 0)], "#6d8a5a")
    polygon([(0, 0), (0, 16), (90, 24), (150, 14), (233, 20), (233, 0)], "#4d7c94")
    polygon([(38, 34), (38, 92), (128, 92), (128, 34)], "#d9c9a8")
    polygon([(30, 90), (83, 124), (136, 90)], "#8a4b3a")
    polygon([(128, 84), (128, 89), (233, 93), (233, 88)], "#7b5b3c")
    for x in (50, 74, 98):
        polygon([(x, 66), (x, 82), (x + 13, 82), (x + 13, 66)], "#4a5a66")
    polygon([(72, 34), (72, 58), (88, 58), (88, 34)], "#5a4030")
    centre, radius = (156.0, 52.0), 34.0
    canvas.setStrokeColor(HexColor("#4e3a26"))
    canvas.setLineWidth(4)
    canvas.circle(*centre, radius, stroke=1, fill=0)
    canvas.setLineWidth(2)
    canvas.circle(*centre, radius - 8, stroke=1, fill=0)
    spokes = ((1, 0), (0.866, 0.5), (0.5, 0.866), (0, 1), (-0.5, 0.866), (-0.866, 0.5))
    for dx, dy in spokes:
        canvas.line(centre[0] - dx * radius, centre[1] - dy * radius, centre[0] + dx * radius, centre[1] + dy * radius)
    canvas.restoreState()


def furniture(setter: Typesetter, number: int) -> None:
    """Header, footer and page number; the truth is put in order afterwards."""
    page = setter.pages[-1]
    body = page[:]
    page.clear()
    setter.line("header", "Notes on Mills and Machines, Volume 4, March 2026", A4[0] / 2, 800, ITALIC, 9, "centre")
    page.extend(body)
    setter.line("footer", "Institute for Hand Papermaking, Wheelbridge", LEFT, 36, SERIF, 8.5)
    setter.line("number", str(number), LEFT + FULL, 36, SERIF, 9, "right")


def make(path: Path) -> list[list[Element]]:
    """Write the report; returns the truth of its two pages."""
    register_fonts([SERIF, BOLD, ITALIC, "LiberationSerif-BoldItalic"])
    canvas = new_canvas(path, A4, "From Rag to Ream: Measuring a Small Paper Mill", "Ada Millward, Tobias Fourdrin")
    setter = Typesetter(canvas)

    setter.start_page()
    title = Block("doc_title", "From Rag to Ream: Measuring a Small Paper Mill", TITLE, facts={"level": 1})
    authors = Block("text", "Ada Millward and Tobias Fourdrin", AUTHORS)
    markup = ABSTRACT_TEXT.replace("Abstract.", f'<font name="{BOLD}">Abstract.</font>', 1)
    abstract = Block("abstract", ABSTRACT_TEXT, ABSTRACT, markup)
    setter.fill(Column(LEFT, 0, FULL, 780), [title, gap(5), authors, gap(9), abstract])
    figure = [
        Block("image", height=142, draw=draw_mill),
        gap(3),
        Block("figure_title", FIGURE_CAPTION, CAPTION, facts={"caption_of": "image"}),
        gap(10),
    ]
    note = Block("footnote", NOTE, FOOTNOTE, NOTE_MARKUP)
    top = 668.0
    rest = setter.fill(Column(LEFT, 62, COLUMN, top), list(INTRODUCTION))
    rest = setter.fill(Column(RIGHT, 62, COLUMN, top, floats=figure, notes=[note]), rest)
    furniture(setter, 1)

    setter.start_page()
    grid = [
        ("FONT", (0, 0), (-1, -1), SERIF, 9), ("FONT", (0, 0), (-1, 1), BOLD, 9),
        ("GRID", (0, 0), (-1, -1), 0.5, HexColor("#000000")),
        ("ALIGN", (1, 0), (-1, -1), "CENTER"), ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
    ]  # fmt: skip
    table_1 = Block("table", table=build_table(TABLE_1, [112, 62, 62, 62, 62, 62, 62], grid, 17),
                    facts={"html": table_html(TABLE_1), "bordered": True})  # fmt: skip
    centred = ParagraphStyle("centred", parent=CAPTION, alignment=TA_CENTER)
    caption_1 = Block("figure_title", TABLE_1_CAPTION, centred, facts={"caption_of": "table"})
    setter.fill(Column(LEFT, 0, FULL, 780), [caption_1, gap(4), table_1])
    plain = [
        ("FONT", (0, 0), (-1, -1), SERIF, 9.5), ("FONT", (0, 0), (-1, 0), BOLD, 9.5),
        ("ALIGN", (1, 0), (-1, -1), "RIGHT"), ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
    ]  # fmt: skip
    table_2 = Block("table", table=build_table(TABLE_2, [105, 64, 64], plain, 15),
                    facts={"html": table_html(TABLE_2), "bordered": False})  # fmt: skip
    floats = [Block("figure_title", TABLE_2_CAPTION, CAPTION, facts={"caption_of": "table"}), gap(3), table_2, gap(12)]
    top = 640.0
    rest = setter.fill(Column(LEFT, 62, COLUMN, top), rest)
    rest = setter.fill(Column(RIGHT, 62, COLUMN, top, floats=floats), rest)
    if rest:
        raise ValueError(f"{len(rest)} blocks do not fit on two pages")
    furniture(setter, 2)
    canvas.save()
    for page in setter.pages:
        _expand_formula(page)
        page[:] = [element for element in page if element["label"]]
    return setter.pages


def _expand_formula(page: list[Element]) -> None:
    for position, element in enumerate(page):
        if element["label"] == "formula":
            formula = {"label": "display_formula", "latex": LATEX}
            page[position : position + 1] = [formula, {"label": "formula_number", "text": "(1)"}]
            return


def joined_paragraphs(pages: list[list[Element]]) -> list[str]:
    """Paragraphs that a column or page break cuts, in one piece."""
    texts = [element for page in pages for element in page if element["label"] == "text"]
    return [
        f"{element['text']} {following['text']}" for element, following in pairwise(texts) if element.get("continues")
    ]
