"""Plots of a benchmark as SVG, without scripts, fonts and other files: panels over the requests in flight, or bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagemill_bench.saturation import Knee, Level

_WIDTH, _PANEL = 760, 250
_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP = 70, 150, 50, 46, 56
_INK, _FAINT, _MARK = "#222", "#ddd", "#c0392b"
_COLOURS = ("#1f77b4", "#e67e22", "#8e44ad", "#2e8b57")
_BAR, _BAR_GAP, _BARS = 22, 10, 360
_CHARACTER = 6.7
"""Approximate width of a character."""
_NOTE_WIDTH = 110
"""Characters of the note beside a bar."""

Points = list[tuple[float, float]]


def saturation_svg(levels: Sequence[Level], knee: Knee | None, title: str) -> str:
    """Throughput above, latencies below, over the requests in flight; the knee is marked."""
    loads = [level.in_flight for level in levels]
    throughput: list[tuple[str, Points]] = [
        ("requests/s", [(level.in_flight, level.requests_per_s) for level in levels])
    ]
    latencies: list[tuple[str, Points]] = [
        (f"latency {name}", [(level.in_flight, getattr(level.latency_s, name)) for level in levels if level.latency_s])
        for name in ("p50", "p95", "p99")
    ]
    first: Points = [(level.in_flight, level.first_token_s.p50) for level in levels if level.first_token_s]
    latencies.append(("first token p50", first))
    low = _TOP + _PANEL + _GAP
    marked = knee.in_flight if knee else None
    height = low + _PANEL + _BOTTOM
    parts = [
        *_panel(_TOP, loads, throughput, "requests/s", marked, logarithmic=False),
        *_panel(low, loads, latencies, "seconds", marked, logarithmic=True),
        _text((_WIDTH - _RIGHT + _LEFT) / 2, height - 10, "requests in flight", anchor="middle"),
    ]
    return _svg(height, title, parts)


def bars_svg(rows: Sequence[tuple[str, float | None, str]], unit: str, title: str) -> str:
    """A bar for each row.

    Args:
        rows: Name, value (None for what failed) and a note beside the bar.
        unit: Unit of the values.
        title: Above all.
    """
    most = max((value for _, value, _ in rows if value), default=1.0)
    left = max(_LEFT, *(_CHARACTER * len(name) + 2 * _BAR_GAP for name, _, _ in rows))
    parts = [_text(left, _TOP - 4, unit)]
    for number, (name, value, note) in enumerate(rows):
        y = _TOP + number * (_BAR + _BAR_GAP)
        parts.append(_text(left - _BAR_GAP, y + _BAR - 6, name, anchor="end"))
        length = _BARS * (value or 0.0) / most
        parts.append(f'<rect x="{left:g}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{_COLOURS[0]}"/>')
        colour = _INK if value is not None else _MARK
        parts.append(_text(left + length + 6, y + _BAR - 6, _shortened(note), colour=colour))
    width = left + max(_BARS * (value or 0) / most + _CHARACTER * len(_shortened(note)) for _, value, note in rows)
    return _svg(_TOP + len(rows) * (_BAR + _BAR_GAP) + 10, title, parts, width=width + 2 * _BAR_GAP)


def _shortened(text: str) -> str:
    return text if len(text) <= _NOTE_WIDTH else f"{text[:_NOTE_WIDTH]} ..."


def page_html(svg: str, title: str, tables: str) -> str:
    """A page with a plot and a preformatted text."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        "<style>body{font:14px/1.4 sans-serif;margin:2em;color:#222}pre{overflow-x:auto}</style></head>\n"
        f"<body>\n{svg}\n<pre>{escape(tables)}</pre>\n</body></html>\n"
    )


def _panel(
    top: float,
    loads: Sequence[int],
    series: Sequence[tuple[str, Points]],
    unit: str,
    marked: float | None,
    *,
    logarithmic: bool,
) -> list[str]:
    """Axes, grid and lines; the x axis is logarithmic."""
    right, bottom = _WIDTH - _RIGHT, top + _PANEL
    values = [y for _, points in series for _, y in points if y > 0] or [1.0]
    ticks = _decades(min(values), max(values)) if logarithmic else _steps(max(values))
    span = math.log2(max(loads) / min(loads)) or 1.0

    def x(load: float) -> float:
        return _LEFT + (right - _LEFT) * math.log2(load / min(loads)) / span

    def y(value: float) -> float:
        if logarithmic:
            share = math.log(max(value, ticks[0]) / ticks[0]) / math.log(ticks[-1] / ticks[0])
        else:
            share = value / ticks[-1]
        return bottom - _PANEL * share

    parts = [_text(_LEFT, top - 8, unit)]
    for tick in ticks:
        parts.append(_line(_LEFT, y(tick), right, y(tick), _FAINT))
        parts.append(_text(_LEFT - 8, y(tick) + 4, f"{tick:g}", anchor="end"))
    for load in loads:
        parts.append(_line(x(load), bottom, x(load), bottom + 4, _INK))
        parts.append(_text(x(load), bottom + 18, str(load), anchor="middle"))
    parts.append(_line(_LEFT, bottom, right, bottom, _INK))
    if marked is not None:
        parts.append(_line(x(marked), top, x(marked), bottom, _MARK, dash=True))
        parts.append(_text(x(marked) + 5, bottom - 8, f"knee: {marked:g}", colour=_MARK))
    parts += _curves(series, x, y, right)
    return parts


def _curves(
    series: Sequence[tuple[str, Points]], x: Callable[[float], float], y: Callable[[float], float], right: float
) -> list[str]:
    """Lines with their points; the name of each is at its end, moved away from other names."""
    parts, names = [], []
    for (name, points), colour in zip(series, _COLOURS, strict=False):
        places = [(x(load), y(value)) for load, value in points]
        if not places:
            continue
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in places]
        names.append((places[-1][1], name, colour))
    free = -math.inf
    for height, name, colour in sorted(names):
        free = max(height + 4, free + 15)
        parts.append(_text(right + 10, free, name, colour=colour))
    return parts


def _steps(most: float) -> list[float]:
    """Four to ten round numbers from 0 to at least ``most``."""
    unit = 10.0 ** math.floor(math.log10(most))
    step = next(unit * factor for factor in (0.1, 0.2, 0.5, 1.0, 2.0) if most / (unit * factor) <= 8)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def _decades(least: float, most: float) -> list[float]:
    """1, 2 and 5 times powers of ten around two positive numbers."""
    exponents = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 1)
    marks = [float(f"{digit}e{exponent}") for exponent in exponents for digit in (1, 2, 5)]
    first = max(index for index, mark in enumerate(marks) if mark <= least)
    last = next(index for index, mark in enumerate(marks) if mark >= most and index > first)
    return marks[first : last + 1]


def _svg(height: float, title: str, parts: Sequence[str], *, width: float = _WIDTH) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
    heading = _text(_LEFT, 20, title, size=15)
    return "\n".join(
        [
            f'{head} font-family="sans-serif">',
            '<rect width="100%" height="100%" fill="white"/>',
            heading,
            *parts,
            "</svg>",
        ]
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dash: bool = False) -> str:
    dashes = ' stroke-dasharray="5 4"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashes}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = _INK, size: int = 12) -> str:
    words = escape(text)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{words}</text>'
