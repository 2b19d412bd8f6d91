"""Numbers, durations, sizes and lists as the command line prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.document.shown import count

if TYPE_CHECKING:
    from pagemill.describing.describer import DescribeCounts

Line = tuple[str, tuple[str, str]]
"""A line of a table: a name, and a text with its style."""

_MAX_MESSAGE = 500  # characters
_MAX_NODES = 4
_MAX_COUNTS = 30


def duration(seconds: float) -> str:
    """A duration, such as ``3.1 s``, ``4 min 5 s`` or ``2 h 10 min``."""
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(count: int) -> str:
    """Bytes, such as ``512 B``, ``1.2 MB``; 1 kB is 1000 B."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        # From 999.5 on it would be rounded to 1000 of this unit.
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} PB"


def shares(seconds: Mapping[str, float]) -> list[str]:
    """Shares, such as ``layout 64%``, largest first. Stages of pages overlap, so their sum is not elapsed time."""
    total = sum(seconds.values())
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    return [f"{name} {value / total:.0%}" for name, value in ordered if value >= 0.005 * total > 0]


def counts(numbers: Mapping[str, int]) -> list[str]:
    """Counts, such as ``table 12``, largest first."""
    return [f"{name} {count:,}" for name, count in sorted(numbers.items(), key=lambda item: -item[1])[:_MAX_COUNTS]]


def node_rates(rates: Mapping[str, float]) -> str:
    """Pages per second by machine (of many machines only the slowest and fastest); empty without machines."""
    ordered = sorted(rates, key=lambda name: (rates[name], name))
    if len(rates) <= _MAX_NODES:
        return ", ".join(f"{name} {rate:.2f}" for name, rate in sorted(rates.items()))
    ends = (f"{what} {name} {rates[name]:.2f}" for what, name in (("slowest", ordered[0]), ("fastest", ordered[-1])))
    return f"{len(rates)} machines, {', '.join(ends)}"


def row(name: str, items: Iterable[str], width: int, indent: int, style: str = "") -> Iterator[Line]:
    """Items, separated by commas, in lines of at most ``width`` characters behind a name; no item is split."""
    label, line = name.ljust(indent), ""
    for item in items:
        # 3: a comma, a space, and the comma at the end of the line.
        if line and indent + len(line) + len(item) + 3 > width:
            yield label, (printable(line) + ",", style)
            label, line = " " * indent, ""
        line += f", {item}" if line else item
    yield label, (printable(line), style)


def indented_json(value: Any) -> str:
    """JSON for ``--json``."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def short(message: str) -> str:
    """One line of bounded length: messages may quote libraries about untrusted files."""
    line = " ".join(message.split())
    return line if len(line) <= _MAX_MESSAGE else f"{line[:_MAX_MESSAGE]} ..."


def printable(text: str) -> str:
    """Text without control characters, which names of files may hold to control the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def description_lines(counts: DescribeCounts) -> Iterator[str]:
    """Summary of the second pass and its cost."""
    reused = f", {counts.reused:,} of them with an answer that was there" if counts.reused else ""
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    left = f", {counts.left:,} left by --describe-limit" if counts.left else ""
    yield f"{count(counts.described, 'element')} described{reused}{failed}{left}"
    if counts.attempts:
        tokens = f"{counts.prompt_tokens:,} + {counts.completion_tokens:,} tokens"
        yield f"{count(counts.attempts, 'request')}, at most {counts.most_in_flight} at once, {tokens}"
