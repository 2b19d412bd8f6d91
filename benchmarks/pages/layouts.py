"""Layouts of the drawn pages: each makes the HTML of a page and, with it, the blocks that are true of it.

A page is made of more text than fits: the browser drops what overflows (`draw.py`), and those blocks leave the truth.
"""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import cv2
import numpy as np

from pages import formulas
from pages.forms import FORMS
from pages.languages import CODE_FONTS, FONTS, MATH_FONTS, Language, check_font, language
from pages.press import PRESS
from pages.tables import STYLES, drawn_html, make_table, true_html

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

A4 = (794, 1123)
"""CSS pixels, 96 per inch."""


@dataclass(slots=True)
class Block:
    """Something on a page that a reader reads, or a picture."""

    kind: str
    """title, heading, text, list_item, caption, footnote, margin, field, code, table, formula, picture, furniture."""
    text: str = ""
    """Plain text; inline formulas as ``$…$``. Empty for tables, displayed formulas and pictures."""
    html: str = ""
    latex: str = ""
    style: str = ""
    """Of tables: how they are ruled. Of fields on pages of forms: what is between label and value."""
    value: str = ""
    """Of fields: what the text ends with, at the other end of the row."""
    ordered: bool = True
    """It has a place in the reading order: marginalia and furniture have none."""
    article: int = 0
    """Its article, box or advert: those of a page may be read in any order."""
    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)
    """Its parts (several where it continues in another column), as fractions of the page's width and height."""


@dataclass(slots=True)
class Sheet:
    """A page in the making."""

    words: Language
    random: Random
    size: tuple[int, int] = A4
    blocks: list[Block] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    css: str = ""
    dpi: int = 200
    """Resolution of the scan."""
    skew: float = 0.0
    """Of the scan, in degrees."""
    ink: float = 1.0
    """Contrast of the scan."""
    grain: float = 0.0
    """Noise of the scan, in grey levels."""
    article_number: int = 0
    """The article of the blocks to come."""

    def mark(self, block: Block) -> str:
        """Note a block; the attribute that ties its element to it."""
        block.article = self.article_number
        self.blocks.append(block)
        return f'data-block="{len(self.blocks) - 1}"'

    def mark_field(self, label: str, value: str, style: str) -> str:
        """Note a label and its value, and what is between them."""
        return self.mark(Block("field", f"{label} {value}", style=style, value=value))

    def mark_table(self, true: str, style: str) -> str:
        """Note a table."""
        return self.mark(Block("table", html=true, style=style))

    def text(self, kind: str, text: str, tag: str = "p", extra: str = "", ordered: bool = True) -> str:
        """An element with plain text."""
        return f"<{tag} {self.mark(Block(kind, text, ordered=ordered))} {extra}>{html.escape(text)}</{tag}>"

    def paragraph(self, sentences: int | None = None) -> str:
        """A paragraph."""
        count = sentences or self.random.randint(2, 5)
        return self.text("text", self.words.paragraph(self.random, count))

    def heading(self, number: str = "") -> str:
        """A heading within the text."""
        return self.text("heading", number + self.random.choice(self.words.headings), "h2")

    def title(self) -> str:
        """The page's title."""
        return self.text("title", self.random.choice(self.words.titles), "h1")

    def furniture(self) -> str:
        """A running head and a page number."""
        head = self.text("furniture", self.words.terms["header"], "div", 'class="running"', ordered=False)
        foot = self.text("furniture", str(self.random.randint(2, 320)), "div", 'class="folio"', ordered=False)
        return head + foot

    def picture(self, style: str) -> str:
        """A picture without lettering."""
        data = base64.b64encode(_landscape(self.random)).decode()
        return f'<img {self.mark(Block("picture", ordered=False))} style="{style}" src="data:image/jpeg;base64,{data}">'

    def caption(self, term: str, number: int) -> str:
        """A caption of a figure or table."""
        subject = self.random.choice(self.words.items)
        separator = "：" if self.words.code in ("zh", "zh-Hant", "ja") else ": "
        text = f"{self.words.terms[term]} {number}{separator}{subject}"
        return self.text("caption", text, "p", 'class="caption"')

    def table(self, style: str, columns: int, rows: int, spans: bool) -> str:
        """A table."""
        grid = make_table(self.words, self.random, columns, rows, spans)
        return drawn_html(grid, style, self.random, self.mark_table(true_html(grid), style))

    def formula(self) -> str:
        """A displayed formula."""
        made = formulas.display(self.random)
        attributes = self.mark(Block("formula", latex=made.latex))
        return f'<div class="display"><math display="block" {attributes}>{made.mathml}</math></div>'

    def mixed_paragraph(self) -> str:
        """A paragraph with inline formulas."""
        texts, drawn = [], []
        for _ in range(self.random.randint(2, 4)):
            sentence = self.words.sentence(self.random)
            texts.append(sentence)
            drawn.append(html.escape(sentence))
            if self.random.random() < 0.7:
                made = formulas.inline(self.random)
                texts.append(f"${made.latex}$")
                drawn.append(f"<math>{made.mathml}</math>")
        attributes = self.mark(Block("text", " ".join(texts)))
        return f"<p {attributes}>{' '.join(drawn)}</p>"

    def flow(self, content: list[str], style: str) -> None:
        """Put content into a box of the page: what overflows is dropped. Pages from right to left are mirrored."""
        if self.words.right_to_left:
            style = style.replace("left:", "right:")
        self.body.append(f'<div class="flow" style="{style}">{"".join(content)}</div>')

    def article(self, paragraphs: int, headings: bool = True) -> list[str]:
        """Paragraphs, with a heading now and then."""
        made: list[str] = []
        for index in range(paragraphs):
            if headings and index and index % 3 == 0:
                made.append(self.heading())
            made.append(self.paragraph())
        return made


def _landscape(random: Random) -> bytes:
    """A picture like a photograph: hills, a sky, grain; JPEG."""
    generator = np.random.default_rng(random.getrandbits(32))
    height, width = 240, 360
    noise = cv2.resize(generator.random((12, 18)).astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
    sky = np.linspace(1.0, 0.5, height, dtype=np.float32)[:, None, None] * generator.uniform(90, 255, 3)
    picture = sky + noise[..., None] * 40
    rows = np.arange(height)[:, None]
    for level in np.sort(generator.uniform(0.35, 0.9, 3)):
        waves = sum(np.sin(np.arange(width) / generator.uniform(20, 70) + generator.uniform(0, 6)) for _ in range(3))
        hill = rows > level * height + 12 * np.asarray(waves)[None, :]
        picture[hill] = generator.uniform(20, 170, 3) + noise[hill][:, None] * 60
    picture += generator.normal(0, 6, picture.shape)
    done, data = cv2.imencode(".jpg", np.clip(picture, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 88])
    assert done
    return bytes(data)


# Layouts. Measures are CSS pixels; A4 is 794 x 1123.


def one_column(sheet: Sheet) -> None:
    """A report: title, headings, paragraphs, a list, a footnote."""
    sheet.body.append(sheet.furniture())
    content = [sheet.title(), sheet.paragraph(), sheet.paragraph(), sheet.heading("1. ")]
    content += [sheet.paragraph(), *_bullets(sheet, 4), sheet.heading("2. "), *sheet.article(3, headings=False)]
    content += [sheet.heading("3. "), *_numbered(sheet, 3), *sheet.article(4)]
    sheet.flow(content, "left:80px;width:634px;top:90px;height:860px")
    note = f"1) {sheet.words.paragraph(sheet.random, 1)}"
    sheet.flow([sheet.text("footnote", note, "p", 'class="note"')], "left:80px;width:634px;top:980px;height:60px")


def _bullets(sheet: Sheet, count: int) -> list[str]:
    mark = sheet.random.choice("•–")
    return [
        sheet.text("list_item", f"{mark} {point}", "p", 'class="item"')
        for point in sheet.random.sample(sheet.words.points, count)
    ]


def _numbered(sheet: Sheet, count: int) -> list[str]:
    points = sheet.random.sample(sheet.words.points, count)
    return [sheet.text("list_item", f"{i}. {point}", "p", 'class="item"') for i, point in enumerate(points, start=1)]


def two_columns(sheet: Sheet) -> None:
    """A paper: title and authors over both columns, inline formulas, a figure within a column."""
    sheet.body.append(sheet.furniture())
    authors = ", ".join(sheet.random.sample(sheet.words.names, 3))
    sheet.flow([sheet.title(), sheet.text("text", authors, "p", 'class="centre"')],
               "left:70px;width:654px;top:80px;height:120px")  # fmt: skip
    content = [sheet.heading("1. "), sheet.paragraph(), sheet.mixed_paragraph(), sheet.paragraph()]
    content += [sheet.picture("width:100%;height:170px;margin:8px 0 4px"), sheet.caption("figure", 1)]
    content += [sheet.paragraph(), sheet.heading("2. "), sheet.mixed_paragraph(), *sheet.article(12)]
    sheet.flow(content, "left:70px;width:654px;top:205px;height:830px;columns:2;column-gap:26px")


def three_columns(sheet: Sheet) -> None:
    """A newsletter: a picture in the middle column, text above and below it."""
    sheet.body.append(sheet.furniture())
    sheet.flow([sheet.title()], "left:60px;width:674px;top:75px;height:70px")
    content = [sheet.paragraph(), sheet.heading(), *sheet.article(4)]
    content += [sheet.picture("width:100%;height:200px;margin:6px 0"), *sheet.article(14)]
    sheet.flow(content, "left:60px;width:674px;top:155px;height:890px;columns:3;column-gap:20px")


def newspaper(sheet: Sheet) -> None:
    """Four columns: a masthead, articles of several widths, a picture over two columns, rules between."""
    sheet.size = (900, 1280)
    random = sheet.random
    # The masthead is the largest line of the page, and read.
    sheet.body.append(
        '<div style="position:absolute;top:30px;width:820px;left:40px;border-bottom:3px double #222">'
        + sheet.text("title", sheet.words.terms["header"], "div", 'class="masthead"')
        + "</div>"
    )
    rule = "column-rule:1px solid #555;column-gap:22px" if random.random() < 0.6 else "column-gap:20px"
    first, second, third = random.sample(sheet.words.titles, 3)
    sheet.flow([sheet.text("heading", first, "h1")], "left:40px;width:610px;top:120px;height:90px")
    sheet.flow(
        [sheet.picture("width:400px;height:210px"), sheet.caption("figure", 1)],
        "left:40px;width:400px;top:215px;height:255px",
    )
    sheet.flow(sheet.article(6, False), f"left:40px;width:400px;top:475px;height:200px;columns:2;{rule}")
    sheet.flow(sheet.article(6, False), "left:461px;width:189px;top:218px;height:455px")
    sheet.flow(
        [sheet.text("heading", second, "h2"), *sheet.article(8, False)],
        "left:672px;width:189px;top:125px;height:550px;border-inline-start:1px solid #777;padding-inline-start:8px",
    )
    sheet.body.append('<div style="position:absolute;left:40px;width:820px;top:686px;border-top:1px solid #333"></div>')
    sheet.flow([sheet.text("heading", third, "h1")], "left:40px;width:820px;top:695px;height:50px")
    sheet.flow(sheet.article(26, False), f"left:40px;width:820px;top:748px;height:490px;columns:4;{rule}")
    sheet.css = "body{font-size:11px!important}"


def picture_centre(sheet: Sheet) -> None:
    """Two columns that flow around a picture in the middle of the page."""
    random = sheet.random
    sheet.body.append(sheet.furniture())
    sheet.flow([sheet.title()], "left:70px;width:654px;top:80px;height:70px")
    width, height = random.randint(180, 260), random.randint(170, 260)
    top = random.randint(200, 400)
    gap = 24
    column = (654 - gap) // 2
    float_width = (width - gap) // 2 + 12
    for side, left in (("right", 70), ("left", 70 + column + gap)):
        if sheet.words.right_to_left:
            side = "left" if side == "right" else "right"
        hole = (
            f'<div style="float:{side};width:0;height:{top}px"></div>'
            f'<div style="float:{side};clear:{side};width:{float_width}px;height:{height + 16}px"></div>'
        )
        sheet.flow([hole, *sheet.article(16)], f"left:{left}px;width:{column}px;top:160px;height:880px")
    sheet.body.append(
        sheet.picture(
            f"position:absolute;left:{397 - width // 2}px;top:{168 + top}px;width:{width}px;height:{height}px"
        )
    )


def _table_page(style: str) -> Callable[[Sheet], None]:
    def draw(sheet: Sheet) -> None:
        random = sheet.random
        sheet.body.append(sheet.furniture())
        content = [sheet.heading("1. "), sheet.paragraph(), sheet.caption("table", 1)]
        content.append(sheet.table(style, random.randint(3, 6), random.randint(4, 8), spans=random.random() < 0.6))
        content += [sheet.paragraph(), sheet.heading("2. "), sheet.paragraph(2), sheet.caption("table", 2)]
        content.append(sheet.table(style, random.randint(3, 5), random.randint(3, 7), spans=random.random() < 0.6))
        content += sheet.article(4, False)
        sheet.flow(content, "left:80px;width:634px;top:90px;height:950px")

    draw.__doc__ = f"Text and two {style} tables."
    return draw


def form(sheet: Sheet) -> None:
    """A form: labels with answers on lines or in boxes, check boxes."""
    random, words = sheet.random, sheet.words
    content = [sheet.title(), sheet.paragraph(1)]
    boxed = random.random() < 0.5
    born = f"{random.randint(1950, 2005)}-0{random.randint(1, 9)}-1{random.randint(0, 9)}"
    telephone = f"0{random.randint(20, 99)} {random.randint(1000000, 9999999)}"
    answers = [random.choice(words.names), born, str(random.randint(2, 180)), telephone]
    for index, label in enumerate(words.fields):
        answer = answers[index] if index < len(answers) else random.choice((*words.points, ""))
        text = f"{label}: {answer}".strip()
        attributes = sheet.mark(Block("field", text, value=answer))
        drawn = f'<span class="{"box" if boxed else "line"}">{html.escape(answer) or "&nbsp;"}</span>'
        content.append(f'<div class="field" {attributes}><span>{html.escape(label)}:</span> {drawn}</div>')
    content.append(sheet.heading())
    for point in random.sample(words.points, 5):
        mark = random.choice("☐☑")
        content.append(sheet.text("list_item", f"{mark} {point}", "p", 'class="item"'))
    content.append(sheet.paragraph(2))
    sheet.flow(content, "left:80px;width:634px;top:80px;height:960px")
    sheet.css = (
        ".field{display:flex;margin:14px 0;gap:10px;align-items:baseline}"
        ".line{flex:1;border-bottom:1px solid #444;padding:0 6px}"
        ".box{flex:1;border:1px solid #444;padding:3px 8px;min-height:1.2em}"
    )


def slide(sheet: Sheet) -> None:
    """A slide: a large title, points, a picture."""
    random = sheet.random
    sheet.size = (960, 540)
    dark = random.random() < 0.4
    colour = random.choice(("#1d3557", "#2b2d42", "#264653")) if dark else random.choice(("#fff", "#fafaf5", "#eef4fb"))
    sheet.flow([sheet.title()], "left:60px;width:840px;top:40px;height:90px")
    points = [
        sheet.text("list_item", f"• {point}", "p", 'class="item"') for point in random.sample(sheet.words.points, 5)
    ]
    pictured = random.random() < 0.6
    width = 480 if pictured else 840
    sheet.flow(
        points, f"{'right' if sheet.words.right_to_left else 'left'}:60px;width:{width}px;top:150px;height:320px"
    )
    if pictured:
        side = "left" if sheet.words.right_to_left else "right"
        sheet.body.append(sheet.picture(f"position:absolute;{side}:60px;top:160px;width:320px;height:230px"))
    corner = 'style="position:absolute;right:30px;bottom:16px;font-size:14px"'
    sheet.body.append(sheet.text("furniture", str(random.randint(2, 60)), "div", corner, ordered=False))
    ink = "#f4f4f4" if dark else "#1a1a1a"
    sheet.css = (
        f"html,body{{background:{colour}!important;color:{ink}!important;font-size:21px!important}}"
        "h1{font-size:38px!important;text-align:start!important}.item{margin:12px 0!important}"
    )


def mathematics(sheet: Sheet) -> None:
    """Text with formulas in lines and on lines of their own."""
    sheet.body.append(sheet.furniture())
    content = [sheet.title(), sheet.mixed_paragraph()]
    for index in range(7):
        content += [sheet.formula(), sheet.mixed_paragraph()]
        if index == 2:
            content.append(sheet.heading("2. "))
    sheet.flow(content, "left:80px;width:634px;top:90px;height:950px")


def code(sheet: Sheet) -> None:
    """Text with listings of code."""
    random = sheet.random
    sheet.body.append(sheet.furniture())
    content = [sheet.title(), sheet.paragraph(), _listing(sheet), sheet.paragraph(), sheet.heading("2. ")]
    content += [sheet.paragraph(2), _listing(sheet), *sheet.article(4)]
    sheet.flow(content, "left:80px;width:634px;top:90px;height:950px")
    background = random.choice(("#f3f3f3", "#fff", "#eef"))
    sheet.css = f"pre{{background:{background};padding:8px 12px}}"


def _listing(sheet: Sheet) -> str:
    random = sheet.random
    names = random.sample(("count", "total", "rows", "width", "index", "buffer", "limit", "step", "value"), 4)
    a, b, c, d = names
    lines = [f"def {a}_{b}({c}, {d}={random.randint(1, 99)}):", f"    {a} = []",
             f"    for {b} in range({d}):", f"        if {c}[{b}] > {random.randint(2, 50)}:",
             f"            {a}.append({c}[{b}] * {random.randint(2, 9)})", "        else:",
             f"            {a}.append({b} + 1)", f"    return sum({a}) / len({a})", "",
             f'print({a}_{b}([{random.randint(1, 9)}, {random.randint(10, 99)}], {random.randint(2, 9)}))']  # fmt: skip
    return sheet.text("code", "\n".join(lines), "pre")


def notes(sheet: Sheet) -> None:
    """A book page: marginalia beside the text, several footnotes under a rule."""
    random = sheet.random
    sheet.body.append(sheet.furniture())
    left = random.random() < 0.5
    text_left, margin_left = (230, 60) if left else (70, 600)
    content = [sheet.title(), *sheet.article(10)]
    sheet.flow(content, f"left:{text_left}px;width:500px;top:90px;height:800px")
    for index in range(3):
        note = sheet.text("margin", random.choice(sheet.words.points), "p", 'class="note"', ordered=False)
        sheet.flow([note], f"left:{margin_left}px;width:140px;top:{190 + 220 * index}px;height:120px")
    footnotes = [
        sheet.text("footnote", f"{i}) {sheet.words.paragraph(random, 1)}", "p", 'class="note"') for i in (1, 2, 3)
    ]
    sheet.flow(
        ['<div style="border-top:1px solid #333;width:160px;margin-bottom:6px"></div>', *footnotes],
        f"left:{text_left}px;width:500px;top:905px;height:140px",
    )


def plan(sheet: Sheet) -> None:
    """An official Korean plan: Ⅰ, □, ○, -, ※, ①, 가., some lines in mixed script."""
    random, words = sheet.random, sheet.words
    content = [sheet.title()]
    mixed = random.random() < 0.35
    for number in "ⅠⅡⅢⅣ":
        content.append(sheet.text("heading", f"{number}. {random.choice(words.headings)}", "h2"))
        for _ in range(random.randint(1, 2)):
            content.append(_indented(sheet, "□", random.choice(words.hanja if mixed else words.titles), 0))
            for _ in range(random.randint(1, 2)):
                content.append(_indented(sheet, "○", words.sentence(random), 1))
                if random.random() < 0.5:
                    content.append(_indented(sheet, "-", random.choice(words.points), 2))
            if random.random() < 0.5:
                content.append(_indented(sheet, "※", random.choice(words.points), 2))
        style = random.choice(("①②③", "가나다", "△△△"))
        for mark, point in zip(style, random.sample(words.points, 3), strict=True):
            content.append(_indented(sheet, f"{mark}." if style == "가나다" else mark, point, 1))
    if random.random() < 0.5:
        content.append(sheet.table("ruled", 4, 3, spans=False))
    sheet.flow(content, "left:80px;width:634px;top:80px;height:970px")


def _indented(sheet: Sheet, mark: str, text: str, level: int) -> str:
    style = f'style="margin-left:{level * 18 + 16}px;text-indent:-16px"'
    return sheet.text("list_item", f"{mark} {text}", "p", style)


def hanja(sheet: Sheet) -> None:
    """Korean prose with Hanja among the Hangul."""
    sheet.body.append(sheet.furniture())
    random = sheet.random
    content = [sheet.title()]
    for _ in range(22):
        sentences = [sheet.words.sentence(random), random.choice(sheet.words.hanja) + ".", sheet.words.sentence(random)]
        random.shuffle(sentences)
        content.append(sheet.text("text", " ".join(sentences)))
    sheet.flow(content, "left:80px;width:634px;top:90px;height:950px;columns:2;column-gap:28px")


def vertical(sheet: Sheet) -> None:
    """Vertical text, columns from right to left, in one or two rows."""
    random = sheet.random
    content = [sheet.title(), *sheet.article(9, headings=False)]
    if random.random() < 0.5:
        sheet.flow(content, "left:80px;width:634px;top:90px;height:940px;writing-mode:vertical-rl")
    else:
        sheet.flow(content, "left:80px;width:634px;top:90px;height:455px;writing-mode:vertical-rl")
        more = sheet.article(9, headings=False)
        sheet.flow(more, "left:80px;width:634px;top:580px;height:455px;writing-mode:vertical-rl")
    sheet.css = "h1{margin:0 0 0 24px!important;text-align:start!important}p{margin:0 0 0 6px!important}"


COMMON: dict[str, Callable[[Sheet], None]] = {
    "one-column": one_column,
    "two-columns": two_columns,
    "three-columns": three_columns,
    "newspaper": newspaper,
    "picture-centre": picture_centre,
    **{f"{style}-table": _table_page(style) for style in STYLES},
    "form": form,
    "slide": slide,
    "mathematics": mathematics,
    "code": code,
    "notes": notes,
}
SPECIAL: dict[str, Callable[[Sheet], None]] = {"plan": plan, "hanja": hanja, "vertical": vertical}
LAYOUTS = COMMON | SPECIAL | FORMS | PRESS

_STYLE = """
@page{margin:0}
html,body{margin:0;padding:0;background:#fff;color:#151515}
main{position:relative;overflow:hidden}
.flow{position:absolute;column-fill:auto;overflow:hidden}
p,pre{margin:0 0 .6em}
h1{font-size:1.75em;line-height:1.25;margin:.1em 0 .5em}
h2{font-size:1.2em;line-height:1.3;margin:.7em 0 .35em;break-after:avoid}
.running{position:absolute;top:38px;left:80px;font-size:.85em;color:#444}
.folio{position:absolute;bottom:36px;left:0;width:100%;text-align:center;font-size:.85em}
.masthead{font-size:46px;text-align:center;font-weight:bold;line-height:1.4}
.item{margin:.2em 1.2em}
.centre{text-align:center}
.caption{text-align:center;font-size:.92em;margin:.35em 0}
.note{font-size:.82em;line-height:1.3}
.display{margin:.5em 0;break-inside:avoid}
pre{font-size:.86em;line-height:1.35;direction:ltr;text-align:left;break-inside:avoid}
img{display:block;object-fit:cover}
table.grid{border-collapse:collapse;margin:.4em auto 1em;font-size:.93em;break-inside:avoid;position:relative}
.grid td,.grid th{padding:4px 10px;text-align:start;vertical-align:middle}
.grid th{text-align:center}
.grid .number{text-align:end}
.ruled td,.ruled th{border:1px solid #222}
.half-ruled{border-top:1.5px solid #222;border-bottom:1.5px solid #222}
.half-ruled.book .head:has(+ tr:not(.head)){border-bottom:1px solid #222}
.half-ruled.lines tr{border-bottom:1px solid #888}
.half-ruled.open td,.half-ruled.open th{border:1px solid #333}
.half-ruled.open tr>*:first-child:not([rowspan="1"]),.half-ruled.open tr>*:first-child{border-inline-start:none}
.half-ruled.open tr>*:last-child{border-inline-end:none}
.half-ruled.open tr>*{border-top:none;border-bottom:none}
.half-ruled.open .head>*{border-bottom:1px solid #333}
.shaded .head{background:#e4e8ee}
.hand-ruled td,.hand-ruled th{padding:6px 13px}
"""


def build(code_of_language: str, layout: str, random: Random) -> tuple[Sheet, str]:
    """Make one page.

    Returns:
        The sheet with all its blocks, those included that will not fit; and its HTML.

    Raises:
        MissingDependencyError: A font is not installed.
    """
    words = language(code_of_language)
    families = [check_font(family) for family in FONTS[code_of_language]]
    sheet = Sheet(words, random)
    family = random.choice(families)
    size = random.uniform(12.2, 15.5)
    leading = random.uniform(1.3, 1.65) + (0.15 if words.code in ("ar", "hi", "th") else 0)
    align = "justify" if random.random() < 0.5 and words.code != "th" else "start"
    centred = "h1{text-align:center}" if random.random() < 0.5 else ""
    indent = "p:not([class]):not([style]){text-indent:1.2em;margin:0}" if random.random() < 0.3 else ""
    # Latin words within other scripts come from the script's own font where it has them.
    css = (
        f"body{{font-family:'{family}','DejaVu Sans';font-size:{size:.1f}px}}"
        f"body{{line-height:{leading:.2f};text-align:{align}}}"
        f"pre{{font-family:'{check_font(random.choice(CODE_FONTS))}'}}"
        f"math{{font-family:'{check_font(random.choice(MATH_FONTS))}'}}{centred}{indent}"
    )
    LAYOUTS[layout](sheet)
    width, height = sheet.size
    css += f"@page{{size:{width}px {height}px}}main{{width:{width}px;height:{height}px}}"
    direction = "rtl" if words.right_to_left else "ltr"
    page = (
        f'<!doctype html><html lang="{words.code}" dir="{direction}"><meta charset="utf-8">'
        f"<style>{_STYLE}{css}{sheet.css}</style><body><main>{''.join(sheet.body)}</main></body></html>"
    )
    return sheet, page
