"""Pages whose rows share baselines: receipts, menus, forms, tables of contents, statements of accounts.

A ``field`` is a label and, far from it on the same baseline, its value: both belong into one row of the Markdown.
Scans of receipts are 560 pixels wide, pale and slightly turned; statements are scanned at 75 to 100 dpi.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

from pages.languages import CODE_FONTS, check_font
from pages.tables import Cell, true_html

if TYPE_CHECKING:
    from pages.layouts import Sheet

_CSS = (
    ".pair{display:flex;gap:.5em;align-items:baseline;white-space:nowrap}.pair>.label{white-space:pre}"
    ".dots{flex:1;overflow:hidden;white-space:pre;text-align:end}.gap{flex:1}.pair .fill{flex:1;padding:0 4px}"
    ".underlined .fill{border-bottom:1px solid #444}.boxed .fill{border:1px solid #444}"
    ".mid{text-align:center}.small{font-size:.82em;margin:0}.bold{font-weight:bold}"
    "table.cells{border-collapse:collapse;width:100%}table.cells td{border:1px solid #444;padding:3px 6px}"
)
_LEADERS = (".", ". ", "·", "․ ")


@dataclass(frozen=True, slots=True)
class Money:
    """How amounts are written."""

    sign: str
    before: bool
    decimals: int
    point: str
    thousand: str

    def text(self, cents: int, signed: bool = False) -> str:
        """An amount.

        Args:
            cents: In hundredths; in hundreds where the currency has no small coins.
            signed: With the sign of the currency.
        """
        whole, rest = divmod(cents, 100) if self.decimals else (cents * 10, 0)
        shown = f"{whole:,}".replace(",", self.thousand) + (f"{self.point}{rest:02}" if self.decimals else "")
        if not signed:
            return shown
        return f"{self.sign}{shown}" if self.before else f"{shown} {self.sign}"


_EURO = Money("€", False, 2, ",", ".")
_MONEY = {
    "en": Money("$", True, 2, ".", ","), "de": _EURO, "fr": Money("€", False, 2, ",", " "), "es": _EURO,
    "ru": Money("₽", False, 2, ",", " "), "ko": Money("원", False, 0, "", ","), "ja": Money("円", False, 0, "", ","),
    "zh": Money("¥", True, 2, ".", ","),
}  # fmt: skip


def _field(sheet: Sheet, label: str, value: str, style: str, between: str, bold: bool = False) -> str:
    """A label and its value.

    Args:
        sheet: The page.
        label: The label.
        value: What is at the row's other end.
        style: ``gap``, ``leader``, ``underlined`` or ``boxed``.
        between: The sign of a leader.
        bold: In bold type.
    """
    attributes = sheet.mark_field(label, value, style)
    name = f"pair {style}{' bold' if bold else ''}"
    first = f'<span class="label">{html.escape(label)}</span>'
    last = f"<span>{html.escape(value)}</span>"
    match style:
        case "leader":
            first += f'<span class="dots" data-sign="{between}"></span>'
        case "gap":
            first += '<span class="gap"></span>'
        case _:
            last = f'<span class="fill">{html.escape(value)}</span>'
    return f'<div class="{name}" {attributes}>{first}{last}</div>'


def receipt(sheet: Sheet) -> None:
    """A receipt from a thermal printer: goods with prices, sums, how it was paid."""
    random, words = sheet.random, sheet.words
    money = _MONEY[words.code]
    sheet.size = (280, 640)
    sheet.dpi = 192  # 560 pixels, as printers of 72 mm at 203 dpi have
    sheet.skew, sheet.ink, sheet.grain = random.uniform(-1.2, 1.2), random.uniform(0.35, 0.9), random.uniform(2, 9)
    style = random.choice(("gap", "gap", "gap", "leader"))
    sign, signed, tax = random.choice(_LEADERS), random.random() < 0.25, random.choice(("", "", " A", " *"))
    content = [sheet.text("text", random.choice(words.shops), "div", 'class="mid bold" style="font-size:1.3em"')]
    content.append(sheet.text("text", f"{random.choice(words.headings)} {random.randint(2, 90)}", "div", 'class="mid"'))
    content.append("<br>")

    def row(label: str, cents: int, mark: str = "", bold: bool = False) -> None:
        content.append(_field(sheet, label, money.text(cents, signed) + mark, style, sign, bold))

    total = 0
    quantities = random.choice(("none", "none", "before", "below"))
    for name in random.sample(words.goods, random.randint(3, 9)):
        count, cents = random.randint(1, 4), random.randint(40, 1900)
        total += count * cents
        match quantities:
            case "none":
                row(name, count * cents, tax)
            case "before":
                row(f"{count} {name}", count * cents, tax)
            case _:
                content.append(sheet.text("text", name, "div"))
                row(f"   {count} x {money.text(cents)}", count * cents, tax)
    rule = random.choice(('<div style="border-top:1px dashed #222;margin:4px 0"></div>', "<br>", ""))
    content.append(rule)
    label, vat, all_of_it, cash, change = words.sums
    paid = (total // 1000 + 1) * 1000
    row(label, total)
    row(vat, total // 6)
    row(all_of_it, total, bold=random.random() < 0.6)
    content.append(rule)
    row(cash, paid)
    row(change, paid - total)
    content.append("<br>")
    when = f"{random.randint(1, 28):02}.{random.randint(1, 12):02}.20{random.randint(24, 32)}"
    content.append(sheet.text("text", f"{when} {random.randint(8, 21):02}:{random.randint(0, 59):02}", "div"))
    content.append(sheet.text("text", words.terms["thanks"], "div", 'class="mid"'))
    margin = random.randint(10, 24)
    sheet.flow(content, f"left:{margin}px;width:{280 - 2 * margin}px;top:16px;height:610px")
    fixed = words.code in ("en", "de", "fr", "es", "ru") and random.random() < 0.6
    family = f"font-family:'{check_font(random.choice(CODE_FONTS))}'!important;" if fixed else ""
    size, leading = random.uniform(9.2, 11.2 if fixed else 12.5), random.choice((1.2, 1.35, 1.6))
    sheet.css = _CSS + f"body{{{family}font-size:{size:.1f}px!important;line-height:{leading}!important}}"


def menu(sheet: Sheet) -> None:
    """A menu: courses, dishes with prices, now and then a line below a dish; in one or two columns."""
    random, words = sheet.random, sheet.words
    money = _MONEY[words.code]
    wide = random.random() < 0.5
    sheet.size = (794, 1123) if wide else (559, 794)
    sheet.dpi = random.choice((110, 150, 200))
    style, sign, signed = random.choice(("gap", "leader", "leader")), random.choice(_LEADERS), random.random() < 0.3
    described = random.random() < 0.4
    content = [sheet.text("title", random.choice(words.shops), "h1", 'class="mid"')]
    dishes = random.sample(words.dishes, len(words.dishes))
    courses = []
    for course in words.courses:
        rows = [sheet.text("heading", course, "h2")]
        for _ in range(random.randint(2, 3)):
            rows.append(_field(sheet, dishes.pop(), money.text(random.randint(80, 3900), signed), style, sign))
            if described and random.random() < 0.6:
                said = ", ".join(random.sample(words.goods, 2))
                rows.append(sheet.text("text", said, "div", 'class="small"'))
        courses.append(f'<div style="break-inside:avoid">{"".join(rows)}</div>')
    two = wide and random.random() < 0.4
    column = "columns:2;column-gap:40px;column-fill:balance" if two else ""
    content.append(f'<div style="{column}">{"".join(courses)}</div>')
    margin = random.randint(60, 180) if wide and not two else random.randint(40, 70)
    sheet.flow(content, f"left:{margin}px;width:{sheet.size[0] - 2 * margin}px;top:60px;height:{sheet.size[1] - 120}px")
    leading = random.uniform(1.4, 2.1)
    sheet.css = _CSS + f"body{{line-height:{leading:.2f}!important;font-size:{random.uniform(13, 17):.1f}px!important}}"


def _answers(sheet: Sheet) -> list[tuple[str, str]]:
    """Labels with what was filled in."""
    random, words = sheet.random, sheet.words
    born = f"{random.randint(1, 28):02}.{random.randint(1, 12):02}.{random.randint(1950, 2005)}"
    telephone = f"0{random.randint(20, 99)} {random.randint(1000000, 9999999)}"
    person, other, place, town, _ = random.sample(words.names, 5)
    item, second = random.sample(words.items, 2)
    account = f"{random.randint(10, 99)} {random.randint(1000, 9999)} {random.randint(1000, 9999)}"
    values = (person, born, f"{item} {random.randint(2, 180)}", telephone, random.choice(words.remarks), other,
              account, second)  # fmt: skip
    pairs = list(zip(words.fields, values, strict=True))
    extra = random.sample(words.columns, 3)
    pairs += [(extra[0], place), (extra[1], str(random.randint(10, 9999))), (extra[2], town)]
    random.shuffle(pairs)
    return pairs


def pairs(sheet: Sheet) -> None:
    """A form in one or two columns of labels and values: on lines, in boxes, in cells or on free paper."""
    random = sheet.random
    sheet.dpi = random.choice((100, 150, 200))
    sheet.skew = random.uniform(-0.6, 0.6)
    columns = random.choice((1, 2, 2))
    style = random.choice(("gap", "underlined", "boxed", "cells"))
    colon = random.choice(("", ":")) if style != "underlined" else ":"
    filled = [(label + colon, value) for label, value in _answers(sheet)]
    rows = [filled[start : start + columns] for start in range(0, len(filled) - columns + 1, columns)]
    content = [sheet.title(), sheet.paragraph(1)]
    bold = random.random() < 0.5
    drawn = []
    width = round(random.uniform(130, 190)) if columns == 2 else round(random.uniform(170, 300))
    for row in rows:
        cells = ""
        for label, value in row:
            attributes = sheet.mark_field(label, value, style)
            if style == "cells":
                tint = "background:#eee;" if bold else ""
                cells += f'<td {attributes} style="{tint}width:{width}px">{html.escape(label)}</td>'
                cells += f"<td>{html.escape(value)}</td>"
                continue
            name = " class='bold'" if bold else ""
            first = f'<span class="label" style="width:{width}px"{name}>{html.escape(label)}</span>'
            last = f'<span class="fill"{name if style == "gap" else ""}>{html.escape(value)}</span>'
            cells += f'<div class="pair {style}" style="flex:1" {attributes}>{first}{last}</div>'
        kind = f"<tr>{cells}</tr>" if style == "cells" else f'<div style="display:flex;gap:24px">{cells}</div>'
        drawn.append(kind)
    content.append(f'<table class="cells">{"".join(drawn)}</table>' if style == "cells" else "".join(drawn))
    content += ["<br>", sheet.paragraph(2)]
    sheet.flow(content, "left:60px;width:674px;top:70px;height:980px")
    space = random.uniform(2, 12)
    sheet.css = _CSS + f".pair{{margin:{space:.1f}px 0}}.label{{white-space:normal!important}}"


def contents(sheet: Sheet) -> None:
    """A table of contents: titles of two levels, leaders, page numbers."""
    random, words = sheet.random, sheet.words
    sheet.dpi = random.choice((100, 150, 200))
    sheet.skew = random.uniform(-0.5, 0.5)
    style = random.choice(("leader", "leader", "leader", "gap"))
    sign = random.choice(_LEADERS)
    numbered, bold = random.random() < 0.7, random.random() < 0.4
    content = [sheet.text("title", random.choice(words.titles), "h1")]
    page = random.randint(1, 9)
    sections = cycle(random.sample((*words.points, *words.items), len(words.points) + len(words.items)))
    for chapter, heading in enumerate(random.sample(words.headings, len(words.headings)), start=1):
        label = f"{chapter}. {heading}" if numbered else heading
        content.append(_field(sheet, label, str(page), style, sign, bold))
        for section in range(1, random.randint(1, 5)):
            page += random.randint(1, 14)
            label = f"{chapter}.{section} {next(sections)}" if numbered else next(sections)
            drawn = _field(sheet, label, str(page), style, sign)
            content.append(f'<div style="margin-inline-start:24px">{drawn}</div>')
        page += random.randint(1, 14)
    margin = random.randint(70, 130)
    sheet.flow(content, f"left:{margin}px;width:{794 - 2 * margin}px;top:90px;height:940px")
    sheet.css = _CSS + f"body{{line-height:{random.uniform(1.5, 2.2):.2f}!important}}"


_STATEMENT = (
    "table.accounts{border-collapse:collapse;width:100%;font-size:.95em}table.accounts td{padding:1px 4px;"
    "vertical-align:bottom}.accounts .amount{text-align:end;white-space:nowrap}.accounts .over{text-align:center}"
    ".accounts .sum{border-top:1px solid #222}.accounts .double{border-bottom:3px double #222}"
    ".accounts .headed{border-bottom:1px solid #222}.accounts .sign{padding:0 0 0 12px;width:8px}"
    ".unit{margin:0 0 .5em}"
)


def statement(sheet: Sheet) -> None:
    """A statement of accounts: units, heads over columns, signs in columns of their own, indented rows, sums."""
    random, words = sheet.random, sheet.words
    sheet.dpi = random.randint(75, 100)
    unit = words.terms["units"]
    content = [sheet.text("text", random.choice(words.shops), "p", 'class="mid"')]
    content.append(sheet.text("title", words.terms["statement"], "h1", 'class="mid"'))
    place = random.choice(("centre", "end", "cell"))
    if place != "cell":
        content.append(sheet.text("caption", unit, "p", f'class="unit" style="text-align:{place}"'))
    grid, drawn = _accounts(sheet, unit if place == "cell" else "")
    attributes = sheet.mark_table(true_html(grid), "accounts")
    content.append(f'<table class="accounts" {attributes}>{drawn}</table><br>')
    content += [sheet.paragraph(2), sheet.paragraph(2)]
    sheet.flow(content, "left:70px;width:654px;top:80px;height:960px")
    tint = ".accounts tr:nth-child(even):not(.top){background:#e6eff8}" if random.random() < 0.3 else ""
    sheet.css = _CSS + _STATEMENT + tint + f".accounts td{{padding-block:{random.uniform(0.5, 4):.1f}px!important}}"


def _accounts(sheet: Sheet, unit: str) -> tuple[list[list[Cell]], str]:
    """The cells of a statement, and its rows as they are drawn."""
    random, words = sheet.random, sheet.words
    period = words.terms["period"]
    years = random.choice((2, 2, 3))
    first = random.randint(2024, 2031)
    signs = random.random() < 0.6
    noted = random.random() < 0.35
    rules = random.random() < 0.7
    span = years * (2 if signs else 1)
    note = [Cell("", rows=2)] if noted else []
    grid = [[Cell(unit, rows=2), *note, Cell(period, columns=years)], [Cell(str(first - i)) for i in range(years)]]
    empty = '<td rowspan="2"></td>' if noted else ""
    line = " headed" if rules else ""
    drawn = [f'<tr class="top"><td rowspan="2">{html.escape(unit)}</td>{empty}<td class="over{line}" colspan="{span}">'
             f"{html.escape(period)}</td></tr>"]  # fmt: skip
    heads = "".join(f'<td class="amount{line}" colspan="{2 if signs else 1}">{first - i}</td>' for i in range(years))
    drawn.append(f'<tr class="top">{heads}</tr>')
    for row, name in enumerate(words.accounts):
        is_sum, share = row in (2, 6, 9), row >= 10
        group = row == 3
        if group:  # a head among the rows, without amounts
            grid.append([Cell(f"{words.headings[3]}:"), *([Cell("")] if noted else []), *[Cell("")] * years])
            drawn.append(f"<tr><td>{html.escape(grid[-1][0].text)}</td>{'<td></td>' * (span + noted)}</tr>")
        cells = [Cell(name)]
        indent = 18 if row in (3, 4, 5) else 0
        name_of = f'<td style="padding-left:{4 + indent}px">{html.escape(name)}</td>'
        if noted:
            number = str(random.randint(2, 30)) if random.random() < 0.4 else ""
            cells.append(Cell(number))
            name_of += f'<td class="over">{number}</td>'
        kind = (" sum" if is_sum else "") + (" double" if row == 9 else "")
        amounts = ""
        for _ in range(years):
            value = random.randint(120, 98000)
            text = f"{random.randint(0, 9)}.{random.randint(10, 99)}" if share else f"{value:,}"
            if not is_sum and not share and random.random() < 0.15:
                text = random.choice((f"({text})", "—"))
            sign = "$" if signs and (row in (0, 9) or share) else ""
            cells.append(Cell(f"{sign} {text}".strip()))
            amounts += f'<td class="sign{kind}">{sign}</td>' if signs else ""
            amounts += f'<td class="amount{kind}">{text}</td>'
        grid.append(cells)
        drawn.append(f"<tr{' class=bold' if is_sum else ''}>{name_of}{amounts}</tr>")
    return grid, "".join(drawn)


FORMS = {"receipt": receipt, "menu": menu, "pairs": pairs, "contents": contents, "statement": statement}
