"""Fits and checks the confidence of lines: the share of a line's characters that is expected to be right.

Lines are those of drawn pages (`pages/`), read as clean scans and as photographs. A line is compared with the stretch
of the page's truth that is nearest to it, wherever that stands; edits per character of the line, spaces included, are
its share of wrong characters, at most 1.

    python benchmarks/calibration.py --seeds 0-63 --fit     # writes the tables of src/pagemill/recognition
    python benchmarks/calibration.py                        # the reliability table, on seeds that are held back
"""

from __future__ import annotations

import argparse
import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import numpy as np

from accuracy import DEFAULT_SEEDS, file_of, seeds_of, severities_of
from page_scores import element_text, nearest, plain_text
from pagemill.config.machine import RuntimeSettings
from pagemill.config.settings import ParseSettings
from pagemill.parsing.page import ParsedPage
from pagemill.recognition import calibration, reader
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources.options import SourceOptions
from pages.draw import CACHE, Press

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pages.draw import Page

    Sums = NDArray[np.float64]

TABLES = Path(calibration.__file__).with_name("calibration.toml")
SHARES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 0.75, 1.0)
"""Of an engine's characters, by rising score: the borders of the stretches that give one point of its table each."""
LEAST = 100
"""Characters of a stretch; with fewer it is joined to the next."""
BINS = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.94, 0.96, 0.98, 0.99, 1.0)
"""Of the stated confidence, for the reliability table."""


class Line(NamedTuple):
    """A line that was read."""

    seed: int
    severity: str
    engine: str
    score: float
    characters: int
    right: float
    """Share of its characters."""


async def read(pages: Sequence[Page], severity: str, threads: int) -> list[Line]:
    """Read pages; the lines, with the engines' own scores."""
    files = {str(file_of(page, severity)): page for page in pages}
    truths = {page.seed: " ".join(map(element_text, page.blocks)) for page in pages}
    lines: list[Line] = []
    with mock.patch.object(reader, "expected_right", lambda engine, score: score):
        async with Pipeline(Services(ParseSettings(crops=False), RuntimeSettings(threads=threads))) as pipeline:
            async for parsed in pipeline.stream(list(files), SourceOptions()):
                assert isinstance(parsed, ParsedPage)
                page = files[parsed.record.source]
                for line in (line for region in parsed.record.regions for line in region.lines):
                    text = plain_text(line.text)[0].strip()
                    if text and line.confidence is not None and line.engine != "text-layer":
                        edits = 0 if text in truths[page.seed] else nearest(text, truths[page.seed])[1]
                        right = max(0.0, 1 - edits / len(text))
                        lines.append(Line(page.seed, severity, line.engine, line.confidence, len(text), right))
    return lines


def fitted(lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """Scores in rising order and the share of right characters at each, which never falls.

    Both are means over stretches of lines with like scores, weighted by characters; neighbours that fall are pooled.
    Of what has no score at all nothing is taken to be right.
    """
    rows = np.array(sorted((line.score, line.right, line.characters) for line in lines))
    sums = np.column_stack([rows[:, :2] * rows[:, 2:], rows[:, 2]])  # of scores, of right characters, of characters
    borders = np.searchsorted(np.cumsum(sums[:, 2]) / sums[:, 2].sum(), SHARES[1:-1]).tolist()
    points: list[Sums] = []
    start = 0
    for end in (*borders, len(rows)):
        point = sums[start:end].sum(axis=0)
        if point[2] < LEAST and end < len(rows):
            continue
        start = end
        points.append(point)
        while len(points) > 1 and points[-2][1] / points[-2][2] >= points[-1][1] / points[-1][2]:
            points.append(points.pop() + points.pop())
    means = np.array([np.zeros(2), *(point[:2] / point[2] for point in points)]).round(4)
    return means[:, 0].tolist(), means[:, 1].tolist()


def write_tables(lines: Sequence[Line], command: str) -> None:
    """Write the table of each engine, and one of all lines for engines that have none."""
    engines = {name: [line for line in lines if line.engine == name] for name in sorted({x.engine for x in lines})}
    text = f"# Made by: {command}\n"
    for engine, own in (engines | {calibration.OTHER: list(lines)}).items():
        scores, right = fitted(own)
        text += f"\n[{engine}] # {len(own):,} lines\nscore = {scores}\nright = {right}\n"
    TABLES.write_text(text, encoding="utf-8")
    calibration.tables.cache_clear()


def reliability(lines: Sequence[Line]) -> str:
    """A Markdown table: what is stated against what is measured, weighted by characters."""
    stated = np.array([calibration.expected_right(line.engine, line.score) for line in lines])
    right, weights = np.array([line.right for line in lines]), np.array([line.characters for line in lines])
    rows = ["| stated | mean of stated | measured | lines | characters |", "|---|--:|--:|--:|--:|"]
    error = 0.0
    for low, high in pairwise(BINS):
        inside = (stated >= low) & ((stated < high) | (high == BINS[-1]))
        if inside.any():
            means = [float(np.average(values[inside], weights=weights[inside])) for values in (stated, right)]
            error += abs(means[0] - means[1]) * weights[inside].sum() / weights.sum()
            count = f"{inside.sum():,} | {weights[inside].sum():,}"
            rows.append(f"| {low:g} to {high:g} | {means[0]:.3f} | {means[1]:.3f} | {count} |")
    return "\n".join([*rows, "", f"Mean difference (expected calibration error): {error:.4f}"])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=DEFAULT_SEEDS, metavar="A-B", help=f"default {DEFAULT_SEEDS}: held back")
    parser.add_argument("--severity", type=severities_of, default="0,0.5,1", metavar="LIST", help="default 0,0.5,1")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where drawn pages are kept (default {CACHE})")
    parser.add_argument("--lines", type=Path, metavar="JSON", help="keep the lines here, or take them from here")
    parser.add_argument("--jobs", type=int, default=2, help="compute threads (default 2)")
    parser.add_argument("--fit", action="store_true", help="write the tables first, from the same lines")
    arguments = parser.parse_args()

    if arguments.lines and arguments.lines.exists():
        lines = [Line(*row) for row in json.loads(arguments.lines.read_text(encoding="utf-8"))]
    else:
        with Press(arguments.cache) as press:
            pages = press.pages(seeds_of(arguments.seeds))
        lines = [line for each in arguments.severity for line in asyncio.run(read(pages, each, arguments.jobs))]
        if arguments.lines:
            arguments.lines.write_text(json.dumps(lines), encoding="utf-8")
    if arguments.fit:
        severities = ",".join(arguments.severity)
        write_tables(lines, f"python benchmarks/calibration.py --seeds {arguments.seeds} --severity {severities} --fit")
    for engine in [*sorted({line.engine for line in lines}), None]:
        own = [line for line in lines if engine in (None, line.engine)]
        print(f"\n{engine or 'all'}: {len(own):,} lines\n\n{reliability(own)}")


if __name__ == "__main__":
    main()
