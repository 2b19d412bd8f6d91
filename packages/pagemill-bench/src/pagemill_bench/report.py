"""Reports of levels and sweeps: a table, the knee, the best setting, what failed."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagemill.config.hardware import Profile, profile_text

if TYPE_CHECKING:
    from pagemill_bench.saturation import Knee, Level
    from pagemill_bench.sweep import Row

_TABLE_WIDTH = 150
_CLOSE = 0.05
"""Throughputs nearer to each other than this share may swap places when they are measured again."""
FLAGS = {
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_num_seqs": "--max-num-seqs",
    "memory_share": "--gpu-mem-util",
    "max_model_len": "--max-model-len",
}
"""What can be swept, by the names of the wishes and of the fields of a profile."""


def levels_text(title: str, levels: Sequence[Level], notes: Sequence[str]) -> str:
    """A table of levels, and notes."""
    return _text(title, [{"in flight": f"{level.in_flight:,}"} | dict(_figures(level)) for level in levels], notes)


def rows_text(title: str, rows: Sequence[Row], swept: Sequence[str], notes: Sequence[str]) -> str:
    """A table of the rows of a sweep, why some of them failed, and notes."""
    shown = []
    for row in rows:
        cells = {FLAGS[name]: f"{row.setting[name]:,}" for name in swept}
        if row.start_s is not None:
            cells["start s"] = f"{row.start_s:.0f}"
        if row.best:
            cells |= {"in flight": f"{row.best.in_flight:,}"} | dict(_figures(row.best))
        shown.append(cells)
    failures = [f"Failed: {named(row)}: {row.failure}" for row in rows if row.failure]
    return _text(title, shown, [*failures, *notes])


def _figures(level: Level) -> Iterator[tuple[str, str]]:
    """Cells of a table by their columns; only what is known."""
    server = level.server
    yield "requests/s", f"{level.requests_per_s:.2f}"
    if level.prompt_tokens_per_s is not None:
        yield "prompt tok/s", f"{level.prompt_tokens_per_s:,.0f}"
    yield "output tok/s", f"{level.output_tokens_per_s:,.0f}"
    if level.latency_s:
        for name in ("p50", "p95", "p99"):
            yield f"{name} s", f"{getattr(level.latency_s, name):.2f}"
    if level.first_token_s:
        yield "first token p50 s", f"{level.first_token_s.p50:.2f}"
    if server:
        figures = {
            "computed": (server.running, "{:.1f}"),
            "queued": (server.waiting, "{:.1f}"),
            "queue s": (server.queue_s, "{:.2f}"),
            "KV cache": (server.kv_cache, "{:.0%}"),
            "pre- empted": (server.preemptions, "{:,}"),
            "prefix hits": (server.prefix_cache_hits, "{:.0%}"),
            "image hits": (server.image_cache_hits, "{:.0%}"),
        }
        yield from ((name, form.format(value)) for name, (value, form) in figures.items() if value is not None)
    if level.gpus:
        busiest = max(level.gpus, key=lambda gpu: gpu.busy)
        yield "GPU busy", f"{busiest.busy:.0%}"
        yield "GPU mem. busy", f"{busiest.memory_busy:.0%}"
        yield "GPU GiB", f"{busiest.memory_gib:.1f}"
    if level.failed:
        yield "failed", f"{level.failed:,}"


def _text(title: str, rows: Sequence[Mapping[str, str]], notes: Sequence[str]) -> str:
    """A table with the columns of all rows, whose titles take a line for each word; then the notes."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns.sort(key=lambda name: name == "failed")  # only some rows have it, and it comes last
    table = Table(title=Text(title), box=None)  # a text: the title may hold brackets
    for name in columns:
        table.add_column(name.replace(" ", "\n"), justify="right", vertical="bottom")
    for row in rows:
        table.add_row(*(row.get(name, "-") for name in columns))
    width = max(_TABLE_WIDTH, shutil.get_terminal_size().columns)
    console = Console(record=True, file=io.StringIO(), highlight=False, width=width)
    console.print(table)
    for note in notes:
        console.print(note, markup=False, soft_wrap=True)
    return console.export_text()


def sentence(level: Level) -> str:
    """A level in a line."""
    latency = f", p50 {level.latency_s.p50:.2f} s, p95 {level.latency_s.p95:.2f} s" if level.latency_s else ""
    failed = f", {level.failed:,} failed" if level.failed else ""
    return f"{level.in_flight:,} in flight: {level.requests_per_s:.2f} requests/s{latency}{failed}"


def named(row: Row) -> str:
    """A setting as options."""
    return " ".join(f"{FLAGS[name]} {value}" for name, value in row.setting.items())


def outcome(row: Row) -> str:
    """The outcome of a row, in a line."""
    return row.failure or (sentence(row.best) if row.best else "nothing was measured")


def knee_notes(knee: Knee | None) -> Iterator[str]:
    """What a knee means."""
    if knee is None:
        return
    yield (
        f"Knee: {knee.in_flight:,} in flight with {knee.requests_per_s:.2f} requests/s, {knee.rule} "
        f"({knee.highest:.2f}). For a run: --workers {knee.in_flight}"
    )
    if not knee.reached:
        yield "The throughput still grows at the last level: more in flight may bring more."


def level_notes(levels: Sequence[Level]) -> Iterator[str]:
    """Omissions in the figures of levels, and failures."""
    if all(level.server is None for level in levels):
        yield "The server's queue, cache and preemptions are left out: it has no /metrics of vLLM."
    if not any(level.gpus for level in levels):
        yield "The use of GPUs is left out: it takes an NVIDIA GPU on this machine and a server that runs here."
    for level in levels:
        for message, times in level.failures.items():
            yield f"Failed with {level.in_flight:,} in flight, {times:,} times: {message}"


def sweep_notes(rows: Sequence[Row], index: int | None, found: Profile | None, swept: Sequence[str]) -> Iterator[str]:
    """The best setting of a sweep, and what to put into a profile."""
    if index is None or found is None or (best := rows[index].best) is None:
        return
    yield f"Best: {named(rows[index])}: {best.requests_per_s:.2f} requests/s with {best.in_flight:,} in flight."
    rates = [(row, row.best.requests_per_s) for row in rows if row.best and row is not rows[index]]
    near = [named(row) for row, rate in rates if rate >= (1 - _CLOSE) * best.requests_per_s]
    if near:
        yield f"Within {_CLOSE:.0%} of it, which another measurement may turn round: {'; '.join(near)}."
    yield "For a profile:"
    wanted = {*swept, "workers"}
    yield from (f"  {line}" for line in profile_text(found).splitlines() if line.split(" = ")[0] in wanted)
