"""A profile as one HTML file: no script, no font, no other file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from pagemill.profiling.gpu_use import GpuSample
from pagemill.profiling.profile import CPU, RESOURCES, Profile, StageFigures
from pagemill.profiling.trace import Trace, tracks
from pagemill.tracing import Span

_DRAWN = 4_000
"""Spans in the timeline: a browser still scrolls them."""
_WIDTH, _LEFT, _ROW, _BUCKETS = 1080, 190, 14, 240
_PLOT = 110
_COLOURS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#ff9da6", "#9d755d", "#bab0ac", "#eeca3b"),
    *("#439894", "#d67195"),
)
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--faint:#d7dbe0;--back:#fff;--soft:#f4f6f8}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--faint:#3c4249;--back:#16191d;--soft:#1f242a}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back)}
body{max-width:1120px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--faint)}
th:first-child,td:first-child{text-align:left}th{font-weight:600;vertical-align:bottom}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em}
.legend span.item{margin-right:1.1em;white-space:nowrap}
svg{display:block;max-width:none}svg text{font:11px system-ui,sans-serif;fill:var(--ink)}
.lead{background:var(--soft);padding:.8rem 1rem;border-radius:6px}
"""


def profile_html(profile: Profile, trace: Trace, gpus: Mapping[str, Sequence[GpuSample]], title: str) -> Iterator[str]:
    """The profile in pieces of a file.

    Args:
        profile: The figures.
        trace: The spans.
        gpus: Samples, by the GPU's name.
        title: Title of the page: what was parsed.
    """
    colours = {each.name: _COLOURS[at % len(_COLOURS)] for at, each in enumerate(profile.stages)}
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
    yield '<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
    yield f"content=\"default-src 'none'; style-src 'unsafe-inline'\"><style>{_STYLE}</style>"
    yield f"<h1>Profile of {escape(title)}</h1>"
    yield f'<p class="lead">{"<br>".join(map(escape, summary_lines(profile)))}</p>'
    yield "<h2>Resources</h2>"
    rows = [
        (
            resource.name,
            "adaptive" if resource.workers is None else str(resource.workers),
            f"{resource.busy_s:.2f}",
            "" if resource.busy is None else f"{resource.busy:.0%}",
            f"{resource.concurrency:.2f}",
        )
        for resource in profile.resources
    ]
    yield from _table(("", "workers", "busy s", "busy", "at once"), rows)
    yield "<h2>Stages</h2>"
    yield from _table(_STAGE_COLUMNS, [_stage_cells(stage) for stage in profile.stages], colours)
    yield "<h2>Operations</h2>"
    yield from _table(_STAGE_COLUMNS, [_stage_cells(operation) for operation in profile.operations])
    if profile.projection is not None:
        yield f"<h2>Projection to {profile.projection.pages:,} pages</h2>"
        yield f"<p>{profile.projection.hours:.2f} hours at the rate of this run. Hours of work, on all workers:</p>"
        yield from _table(
            ("stage", "hours"), [(name, f"{hours:.2f}") for name, hours in profile.projection.stages.items()]
        )
    yield "<h2>Workers in use</h2>"
    yield from _legend(colours)
    yield from _occupancy(trace, colours)
    for name, samples in gpus.items():
        yield f"<h2>{escape(name)}</h2>"
        yield from _gpu_plot(trace, samples)
    yield "<h2>Timeline</h2>"
    yield from _timeline(trace.spans, trace.started, colours)
    yield "</html>\n"


def summary_lines(profile: Profile) -> Iterator[str]:
    """The summary of a profile, for people."""
    first = "" if profile.first_page_s is None else f", the first page after {profile.first_page_s:.2f} s"
    failed = f" ({profile.failed} failed)" if profile.failed else ""
    yield (
        f"{profile.pages:,} pages{failed} in {profile.wall_s:.2f} s: {profile.pages_per_s:.2f} pages/s{first}; "
        f"schedule {profile.schedule}"
    )
    cpu = next(resource for resource in profile.resources if resource.name == CPU)
    yield f"CPU: {cpu.busy:.0%} of {cpu.workers} cores; peak memory of this process {profile.peak_memory_mib:,.0f} MiB"
    if profile.bottleneck is not None:
        resource, stage = profile.bottleneck
        busy = next((each.busy for each in profile.resources if each.name == resource), None)
        share = "" if busy is None else f", busy {busy:.0%} of the time"
        yield f"Bottleneck: {resource}{share}, most of it in {stage}"
    if profile.freed is not None:
        freed = profile.freed
        yield (
            f"Without the time of {freed.stage}, {freed.pages} pages took {freed.freed_s:.2f} s instead of "
            f"{freed.seconds:.2f} s: {freed.times:.2f} times as fast; the next bottleneck is {freed.next_bottleneck}"
        )
    for gpu in profile.gpus:
        use = f"SMs busy {gpu.busy:.0%}, memory busy {gpu.memory_busy:.0%}"
        yield f"{gpu.name}: {use}, at most {gpu.memory_gib:.1f} GiB"
    if profile.projection is not None:
        yield f"Projection: {profile.projection.pages:,} pages in {profile.projection.hours:.2f} hours"


def stage_lines(profile: Profile) -> Iterator[str]:
    """The table of stages, for a terminal."""
    rows = [_STAGE_COLUMNS, *map(_stage_cells, profile.stages)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        yield first.ljust(widths[0]) + "".join(
            f"  {cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)
        )


_STAGE_COLUMNS = (
    "stage",
    "calls",
    "busy s",
    "share",
    "mean ms",
    "p95 ms",
    "at once",
    "queued s",
    "s a page",
    "CPU s",
    "MB",
)


def _stage_cells(each: StageFigures) -> tuple[str, ...]:
    return (
        each.name,
        f"{each.calls:,}",
        f"{each.busy_s:.2f}",
        f"{each.share:.1%}",
        f"{each.mean_ms:.1f}",
        f"{each.p95_ms:.1f}",
        f"{each.concurrency:.2f}",
        f"{each.queued_s:.2f}",
        "" if each.page_s is None else f"{each.page_s:.3f}",
        f"{each.cpu_s:.2f}",
        f"{each.bytes / 1e6:,.1f}" if each.bytes else "",
    )


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], colours: Mapping[str, str] | None = None
) -> Iterator[str]:
    yield '<div class="wide"><table><tr>' + "".join(f"<th>{escape(name)}" for name in columns)
    for first, *cells in rows:
        key = f'<span class="key" style="background:{colours[first]}"></span>' if colours else ""
        yield f"<tr><td>{key}{escape(first)}" + "".join(f"<td>{escape(cell)}" for cell in cells)
    yield "</table></div>"


def _legend(colours: Mapping[str, str]) -> Iterator[str]:
    yield '<p class="legend">'
    for name, colour in colours.items():
        yield f'<span class="item"><span class="key" style="background:{colour}"></span>{escape(name)}</span>'
    yield "</p>"


def _occupancy(trace: Trace, colours: Mapping[str, str]) -> Iterator[str]:
    """For each resource its busy workers over time, by stage."""
    if not trace.spans:
        return
    end = max(span.ended for span in trace.spans)
    step = max(end - trace.started, 1e-6) / _BUCKETS
    busy: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(
        lambda: defaultdict(lambda: [0.0] * (_BUCKETS + 1))
    )
    for span in trace.spans:
        series = busy[span.resource][span.stage]
        first, last = int((span.started - trace.started) / step), int((span.ended - trace.started) / step)
        for at in range(max(first, 0), min(last, _BUCKETS) + 1):
            started, ended = trace.started + at * step, trace.started + (at + 1) * step
            series[at] += max(0.0, min(span.ended, ended) - max(span.started, started)) / step
    width = (_WIDTH - _LEFT) / _BUCKETS
    for resource, stages in sorted(busy.items()):
        most = max(sum(series[at] for series in stages.values()) for at in range(_BUCKETS)) or 1.0
        yield f'<div class="wide"><svg width="{_WIDTH}" height="{_PLOT + 24}" role="img">'
        yield f'<text x="0" y="{_PLOT / 2}">{escape(RESOURCES.get(resource, resource))}</text>'
        yield f'<text x="0" y="{_PLOT / 2 + 16}">at most {most:.1f} at once</text>'
        base = [float(_PLOT)] * _BUCKETS
        for stage in colours:
            if stage not in stages:
                continue
            top = [base[at] - stages[stage][at] / most * (_PLOT - 8) for at in range(_BUCKETS)]
            edge = [f"{_LEFT + at * width:.1f},{top[at]:.1f}" for at in range(_BUCKETS)]
            edge += [f"{_LEFT + at * width:.1f},{base[at]:.1f}" for at in reversed(range(_BUCKETS))]
            yield f'<polygon points="{" ".join(edge)}" fill="{colours[stage]}"><title>{escape(stage)}</title></polygon>'
            base = top
        yield from _axis(_PLOT, 0.0, end - trace.started)
        yield "</svg></div>"


def _gpu_plot(trace: Trace, samples: Sequence[GpuSample]) -> Iterator[str]:
    """SMs and memory bandwidth over time."""
    started, end = trace.started, max(sample.time for sample in samples)
    span = max(end - started, 1e-6)
    yield f'<div class="wide"><svg width="{_WIDTH}" height="{_PLOT + 24}" role="img">'
    for at, (name, value) in enumerate((("SMs busy", "busy"), ("memory busy", "memory_busy"))):
        scale = (_WIDTH - _LEFT) / span
        places = (
            (_LEFT + (sample.time - started) * scale, _PLOT - getattr(sample, value) * (_PLOT - 8))
            for sample in samples
        )
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<text x="16" y="{30 + 18 * at}">{name}</text>'
        yield f'<rect x="0" y="{21 + 18 * at}" width="10" height="10" fill="{_COLOURS[at]}"/>'
        yield f'<polyline points="{points}" fill="none" stroke="{_COLOURS[at]}" stroke-width="1.5"/>'
    yield from _axis(_PLOT, 0.0, span)
    yield "</svg></div>"


def _timeline(spans: Sequence[Span], started: float, colours: Mapping[str, str]) -> Iterator[str]:
    """The first spans, a row a worker."""
    drawn = sorted(spans, key=lambda span: span.started)[:_DRAWN]
    if not drawn:
        return
    if len(drawn) < len(spans):
        yield f"<p>The first {_DRAWN:,} of {len(spans):,} spans; trace.json has them all, for ui.perfetto.dev.</p>"
    rows: dict[tuple[str, int], int] = {}
    placed = [(rows.setdefault((span.resource, track), len(rows)), span) for track, span in tracks(drawn)]
    order = {place: at for at, place in enumerate(sorted(rows))}
    at_row = {row: order[place] for place, row in rows.items()}
    start, end = started, max(span.ended for span in drawn)
    scale = (_WIDTH - _LEFT) / max(end - start, 1e-6)
    height = len(rows) * _ROW + 26
    yield f'<div class="wide"><svg width="{_WIDTH}" height="{height}" role="img">'
    for (resource, track), at in order.items():
        yield f'<text x="0" y="{at * _ROW + 11}">{escape(RESOURCES.get(resource, resource))} {track + 1}</text>'
    for row, span in placed:
        x, width = _LEFT + (span.started - start) * scale, max((span.ended - span.started) * scale, 0.3)
        what = f"{span.stage}: {span.operation} {span.page or f'({span.items})'}"
        words = f"{what} {1000 * (span.ended - span.started):.1f} ms"
        yield (
            f'<rect x="{x:.1f}" y="{at_row[row] * _ROW + 1}" width="{width:.1f}" height="{_ROW - 2}" '
            f'fill="{colours.get(span.stage, "#888")}"><title>{escape(words)}</title></rect>'
        )
    yield from _axis(len(rows) * _ROW, start - started, end - started)
    yield "</svg></div>"


def _axis(y: float, first: float, last: float) -> Iterator[str]:
    yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y}" y2="{y}" stroke="var(--faint)"/>'
    for part in range(5):
        anchor = "start" if part == 0 else "end" if part == 4 else "middle"
        x = _LEFT + part * (_WIDTH - _LEFT) / 4
        yield f'<text x="{x:.0f}" y="{y + 16}" text-anchor="{anchor}">{first + part * (last - first) / 4:.1f} s</text>'
