"""All benchmarks that need nothing but this machine, each in a process of its own, and what has changed since."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pagemill.errors import InputError, PagemillError
from pagemill.imaging.encode import encode_jpeg
from pagemill.profiling.machine import machine
from pagemill_bench.table import FigureTable
from pagemill_bench.testing.drawn_pages import draw_page

PARSING = "parsing"
COMMANDS = {
    "arrow-extract": ("bench", "arrow-extract"),
    "layout-preprocess": ("bench", "layout-preprocess"),
    "layout-inference": ("bench", "layout-inference"),
    PARSING: ("profile", "--no-free", "--lang", "en"),
}
"""Words of the command of each benchmark; for parsing, drawn pages are added."""
_DRAWN = 4
_SIZE = (1240, 1754)
_HIGHER, _LOWER = ("pages/s", "times"), ("ms", "ms/page", "wall s", "first page s")
"""Columns that can be compared, by what is better."""


def run_all() -> Iterator[dict[str, Any]]:
    """The figures of each benchmark, as soon as they are there; one that fails has its message instead of tables."""
    for name, words in COMMANDS.items():
        with tempfile.TemporaryDirectory(prefix="pagemill-bench-") as folder:
            more = ["--json"]
            if name == PARSING:
                for seed in range(_DRAWN):
                    Path(folder, f"page-{seed}.jpg").write_bytes(encode_jpeg(draw_page(seed, _SIZE)))
                more += ["-o", str(Path(folder, "profile")), folder]
            command = [sys.executable, "-P", "-m", "pagemill", *words, *more]
            ended = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        try:
            figures = json.loads(ended.stdout)
        except ValueError:
            last = ended.stderr.strip().splitlines()[-1:] or [f"exit status {ended.returncode}"]
            yield {"benchmark": name, "tables": [], "notes": [f"{name} failed: {last[0]}"]}
            continue
        if name == PARSING:
            figures = _of_profile(figures)
        yield {key: figures[key] for key in ("benchmark", "tables", "notes")}


def report(benchmarks: list[dict[str, Any]]) -> dict[str, Any]:
    """What ``--json`` writes."""
    return {"machine": machine(), "benchmarks": benchmarks}


def read_report(path: Path) -> dict[str, Any]:
    """A file that ``--json`` has written.

    Raises:
        InputError: It is not one.
    """
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(given["machine"], dict) and all(_figures([each]) is not None for each in given["benchmarks"]):
            return dict(given)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    raise InputError(f"{path} does not contain figures of `pagemill bench all --json`", remedy="Name such a file.")


def table_of(title: str, rows: list[dict[str, Any]]) -> FigureTable:
    """Rows by column as a table."""
    return FigureTable(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))


def compare(old: dict[str, Any], new: dict[str, Any]) -> FigureTable:
    """Speed relative to before, for every method that both have measured."""
    before, now = _figures(old["benchmarks"]), _figures(new["benchmarks"])
    rows = []
    for place in [place for place in now if place in before]:
        benchmark, way, column = place
        times = now[place] / before[place] if column in _HIGHER else before[place] / now[place]
        rows.append((f"{benchmark}: {way}", before[place], now[place], column, times))
    return FigureTable("Compared", ("way", "before", "now", "unit", "times as fast"), tuple(rows))


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Differences between the machines of two reports, for display."""
    keys = sorted({*old["machine"], *new["machine"]})
    return [
        f"{key}: {old['machine'].get(key)} before, {new['machine'].get(key)} now"
        for key in keys
        if old["machine"].get(key) != new["machine"].get(key)
    ]


def require_some(benchmarks: list[dict[str, Any]]) -> None:
    """Refuse empty figures.

    Raises:
        PagemillError: Every benchmark failed.
    """
    if not any(benchmark["tables"] for benchmark in benchmarks):
        raise PagemillError("no benchmark could be run", remedy="See the messages above, and `pagemill doctor`.")


def _figures(benchmarks: list[dict[str, Any]]) -> dict[tuple[str, str, str], float]:
    """One figure for each way: its rate, or else its time."""
    found = {}
    for benchmark in benchmarks:
        for table in benchmark["tables"]:
            for row in table["rows"]:
                way = str(next(iter(row.values())))
                column = next((name for name in (*_HIGHER, *_LOWER) if isinstance(row.get(name), (int, float))), None)
                if column is not None and row[column] > 0:
                    found[f"{benchmark['benchmark']}, {table['title']}", way, column] = float(row[column])
    return found


def _of_profile(profile: dict[str, Any]) -> dict[str, Any]:
    """The figures of a profile in the form of a benchmark."""
    whole = {
        "way": "all stages",
        "pages/s": profile["pages_per_s"],
        "wall s": profile["wall_s"],
        "first page s": profile["first_page_s"],
        "MiB": profile["peak_memory_mib"],
    }
    stages = [
        {"stage": each["name"], "ms": each["mean_ms"], "at once": each["concurrency"]} for each in profile["stages"]
    ]
    size = "{} x {}".format(*_SIZE)
    return {
        "benchmark": PARSING,
        "tables": [
            {"title": f"{profile['pages']} drawn pages of {size} pixels, embedded engines", "rows": [whole]},
            {"title": "Mean time of a call by stage", "rows": stages},
        ],
        "notes": [],
    }
