"""Pages of the press: magazine, tabloid, broadsheet, and vertical newspapers in tiers.

Columns stand about 1 % of the page's width apart, among boxes on tinted and dark grounds, pull quotes, adverts,
pictures and headlines over columns, at 85 to 200 dpi. Every article, box and advert is an ``article`` of the truth:
these may be read in any order, the elements of each may not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pages.layouts import Sheet

_GROUNDS = (("#e9eef5", "#111"), ("#f5ecd9", "#111"), ("#ddd", "#111"), ("#e3f0e2", "#111"), ("#1f3a5f", "#fff"))
_CSS = (
    ".quote{font-size:1.5em;line-height:1.2;font-weight:bold;text-align:center;break-inside:avoid;"
    "border-top:2px solid #a33;border-bottom:2px solid #a33;padding:.3em 0;margin:.5em 0}"
    ".ground{position:absolute;box-sizing:border-box}.deck{font-style:italic;font-size:1.25em;margin:0 0 .4em}"
    ".by{font-weight:bold;margin:0 0 .3em}.big{font-size:2.1em;font-weight:bold;line-height:1.15;margin:.2em 0}"
    "body{font-size:%.1fpx!important;line-height:%.2f!important}p{margin:0!important;text-indent:1em}"
    "p.quote{margin:.5em 0!important}"
    "p.caption{margin:.3em 0!important}p.caption,p.deck,p.by,p.big,p.quote{text-indent:0}"
)


def _headline(sheet: Sheet) -> str:
    words = sheet.words
    text = words.fill(sheet.random.choice(words.subjects) + words.space + sheet.random.choice(words.predicates),
                      sheet.random)  # fmt: skip
    return text[0].upper() + text[1:]


def _title(sheet: Sheet, size: int) -> str:
    """A short headline that the page does not have yet."""
    taken = {block.text for block in sheet.blocks}
    text = sheet.random.choice([title for title in (*sheet.words.titles, *sheet.words.headings) if title not in taken])
    return sheet.text("heading", text, "h1", f'style="font-size:{size}px;line-height:1.25;margin:0"')


def _head(sheet: Sheet, size: int) -> str:
    return sheet.text("heading", _headline(sheet), "h1", f'style="font-size:{size}px;line-height:1.15;margin:0 0 4px"')


def _body(sheet: Sheet, paragraphs: int, quote: bool) -> list[str]:
    made = [sheet.paragraph() for _ in range(paragraphs)]
    if quote:
        place = sheet.random.randint(1, 3)
        said = sheet.text("text", _headline(sheet), "p", 'class="quote"', ordered=False)
        made[place:place] = [said]
    return made


def _article(sheet: Sheet, x: int, y: int, width: int, height: int, columns: int, gutter: int) -> None:
    """Headline over the columns, a deck or a byline, text in columns; now and then a picture over the last two."""
    random = sheet.random
    sheet.article_number += 1
    head = [_head(sheet, random.randint(16, 20) + 5 * columns)]
    if columns > 1 and random.random() < 0.6:
        head.append(sheet.text("text", sheet.words.sentence(random), "p", 'class="deck"'))
    rule = random.choice(("", "", "column-rule:1px solid #777;"))
    pitch = (width + gutter) / columns

    def flow(content: list[str], count: int) -> str:
        wide = f"width:{round(count * pitch - gutter)}px"
        style = f"position:relative;flex:1;min-height:0;{wide};columns:{count};column-gap:{gutter}px;{rule}"
        return f'<div class="flow" style="{style}">{"".join(content)}</div>'

    pictured = columns > 2 and height > 420 and random.random() < 0.6
    by = [sheet.text("text", random.choice(sheet.words.names), "p", 'class="by"')] if random.random() < 0.5 else []
    count = columns - 2 if pictured else columns
    first = flow([*by, *_body(sheet, 16 * count, count > 1 or random.random() < 0.3)], count)
    parts = first
    if pictured:
        picture = sheet.picture(f"width:100%;height:{random.randint(130, 200)}px")
        drawn = picture + sheet.caption("figure", random.randint(1, 9))
        rest = flow(_body(sheet, 20, True), 2)
        stack = "display:flex;flex-direction:column;min-height:0;"
        beside = f"{stack}width:{round(2 * pitch - gutter)}px"
        parts = f'<div style="{stack}">{first}</div><div style="{beside}">{drawn}{rest}</div>'
        parts = f'<div style="display:flex;gap:{gutter}px;flex:1;min-height:0">{parts}</div>'
    place = (
        f"position:absolute;display:flex;flex-direction:column;left:{x}px;top:{y}px;width:{width}px;height:{height}px"
    )
    sheet.body.append(f'<div style="{place}">{"".join(head)}{parts}</div>')


def _ground(sheet: Sheet, x: int, y: int, width: int, height: int, style: str) -> None:
    sheet.body.append(
        f'<div class="ground" style="left:{x}px;top:{y}px;width:{width}px;height:{height}px;{style}"></div>'
    )


def _box(sheet: Sheet, x: int, y: int, width: int, height: int) -> None:
    """A box on a coloured ground, with a heading of its own."""
    sheet.article_number += 1
    ground, ink = sheet.random.choice(_GROUNDS)
    _ground(sheet, x, y, width, height, f"background:{ground}")
    content = [_head(sheet, 19), *_body(sheet, 14, False)]
    sheet.flow(content, f"left:{x + 8}px;width:{width - 16}px;top:{y + 8}px;height:{height - 16}px;color:{ink}")


def _advert(sheet: Sheet, x: int, y: int, width: int, height: int) -> None:
    """An advert: few words in large type within a frame."""
    random = sheet.random
    sheet.article_number += 1
    ground, ink = random.choice((*_GROUNDS, ("#fff", "#111"), ("#b3261e", "#fff")))
    _ground(sheet, x, y, width, height, f"background:{ground};border:2px solid #333")
    made = [sheet.text("text", random.choice(sheet.words.titles), "p", 'class="big centre"')]
    made += [sheet.text("text", point, "p", 'class="centre"') for point in random.sample(sheet.words.points, 3)]
    made.append(sheet.text("text", f"{random.randint(2, 9)}{random.randint(100, 999)} {random.randint(1000, 9999)}",
                           "p", 'class="big centre"'))  # fmt: skip
    sheet.flow(made, f"left:{x + 10}px;width:{width - 20}px;top:{y + 8}px;height:{height - 16}px;color:{ink}")


def _press(sheet: Sheet, size: tuple[int, int], columns: int, dpi: tuple[int, int], masthead: int) -> None:
    """Modules in bands: each band has one to three articles, boxes and adverts side by side."""
    random = sheet.random
    sheet.size = size
    sheet.dpi = random.randint(*dpi)
    width, height = size
    gutter = round(width * random.uniform(0.008, 0.012))
    margin = round(width * 0.05)
    pitch = (width - 2 * margin + gutter) / columns
    y = margin
    if masthead:
        sheet.article_number += 1
        style = f'style="font-size:{masthead}px;line-height:1.2;font-weight:bold;text-align:center"'
        place = f"left:{margin}px;width:{width - 2 * margin}px;top:{y}px;height:{round(masthead * 1.25)}px"
        sheet.flow([sheet.text("title", sheet.words.terms["header"], "div", style)], place)
        y += round(masthead * 1.3) + 8
    bands = 2 if columns < 6 else 3
    tall = (height - margin - y) // bands
    for band in range(bands):
        free = list(range(columns))
        while free:
            count = len(free) if len(free) < 3 else random.randint(2, len(free))
            side = bool(len(free) > 1 and len(free) < columns and random.random() < 0.6)
            count = 1 if side else count
            x, wide = round(margin + free[0] * pitch), round(count * pitch - gutter)
            top, room = y + band * tall, tall - 14
            if side:
                half = room // 2
                kinds = random.choice(((_box,), (_box, _advert), (_advert, _box)))
                for row, kind in enumerate(kinds):
                    kind(sheet, x, top + row * half, wide, (half - 8) if len(kinds) > 1 else room)
            else:
                _article(sheet, x, top, wide, room, count, gutter)
            free = free[count:]
        if band:
            rule = f"left:{margin}px;top:{y + band * tall - 8}px;width:{width - 2 * margin}px;border-top:1px solid #333"
            sheet.body.append(f'<div style="position:absolute;{rule}"></div>')
    points = random.uniform(11.2, 12.6)
    sheet.css = _CSS % (points, random.uniform(1.12, 1.25))


def magazine(sheet: Sheet) -> None:
    """A magazine page in three or four columns."""
    _press(sheet, (794, 1123), sheet.random.choice((3, 3, 4)), (105, 200), 0)


def tabloid(sheet: Sheet) -> None:
    """A tabloid front page in four or five columns."""
    _press(sheet, (1058, 1512), sheet.random.choice((4, 5)), (85, 150), 60)


def broadsheet(sheet: Sheet) -> None:
    """A broadsheet front page in six columns."""
    _press(sheet, (1440, 2184), 6, (85, 150), 84)


def tiers(sheet: Sheet) -> None:
    """A vertical newspaper: text in tiers from right to left, headlines down or across, tables and adverts."""
    random, words = sheet.random, sheet.words
    width, height = sheet.size = random.choice(((794, 1123), (1000, 1400)))
    sheet.dpi = random.randint(100, 200)
    margin = 44
    sheet.article_number += 1
    sheet.flow([sheet.text("title", words.terms["header"], "div", 'style="font-size:44px;line-height:1.2"')],
               f"left:{margin}px;width:{width - 2 * margin}px;top:{margin}px;height:60px")  # fmt: skip
    y = margin + 70
    bands = random.choice((2, 3))
    tall = (height - margin - y) // bands
    for band in range(bands):
        sheet.article_number += 1
        x, wide, top, room = margin, width - 2 * margin, y + band * tall, tall - 24
        aside = random.random() < 0.5
        across = random.random() < 0.4
        if aside:
            x, wide = x + 236, wide - 236
        if across:
            dark = random.choice(("background:#222;color:#fff;", "", "background:#ddd;"))
            _ground(sheet, x, top, wide, 46, dark)
            sheet.flow([_title(sheet, 30)], f"left:{x + 8}px;width:{wide - 16}px;top:{top + 4}px;height:42px;{dark}")
            top, room = top + 54, room - 54
        else:
            wide -= 58
            place = f"left:{x + wide + 6}px;width:54px;top:{top}px;height:{room}px"
            sheet.flow([_title(sheet, random.randint(28, 40))], f"{place};writing-mode:vertical-rl")
        count = max(1, round(room / random.randint(150, 230)))
        rule = random.choice(("", "column-rule:1px solid #888;"))
        sheet.flow([sheet.paragraph() for _ in range(40)],
                   f"left:{x}px;width:{wide}px;top:{top}px;height:{room}px;writing-mode:vertical-rl;columns:{count};"
                   f"column-gap:{random.randint(12, 18)}px;{rule}")  # fmt: skip
        if aside:
            top, room = y + band * tall, tall - 24
            if random.random() < 0.5:
                _advert(sheet, margin, top, 220, min(room, 260))
            else:
                sheet.article_number += 1
                sheet.flow([sheet.table("ruled", 3, random.randint(4, 7), False)],
                           f"left:{margin}px;width:220px;top:{top}px;height:{room}px")  # fmt: skip
        if band:
            line = f"left:{margin}px;top:{y + band * tall - 12}px;width:{width - 2 * margin}px"
            sheet.body.append(f'<div style="position:absolute;{line};border-top:1px solid #333"></div>')
    points = random.uniform(12.5, 14.5)
    sheet.css = _CSS % (points, random.uniform(1.4, 1.7)) + "table.grid{font-size:11px!important}"


PRESS = {"magazine": magazine, "tabloid": tabloid, "broadsheet": broadsheet, "tiers": tiers}
