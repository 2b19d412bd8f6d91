"""``pagemill bench server`` and ``pagemill bench sweep``."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from pagemill.app.options import ImageSources
from pagemill.cli.options import (
    GroupedCommand,
    json_option,
    server_option,
    start_timeout_option,
    takes,
    vllm_arguments,
)
from pagemill.config.hardware import Profile, profile_text
from pagemill.config.model_cards import ModelCard, ModelKind, load_card
from pagemill.config.modes import ReadingMode
from pagemill.config.serving import ServingOptions
from pagemill.errors import ExitCode, OutputError, ServerError
from pagemill.profiling.machine import machine
from pagemill.serving.addresses import is_loopback
from pagemill_bench.options import LEVELS, LoadOptions, SweepOptions

if TYPE_CHECKING:
    from pagemill_bench.saturation import Level, Load
    from pagemill_bench.sweep import Row

Command = TypeVar("Command", bound=Callable[..., Any])

_MOST_REGIONS = 128
"""Maximum number of regions of a run; the others are not sent."""


def _output_options(command: Command) -> Command:
    """The options that say where results go."""
    file = click.Path(path_type=Path, dir_okay=False)
    command = json_option(command)
    plot = click.option("--plot", type=file, metavar="FILE", help="Draw the result: FILE.svg or FILE.html.")
    output = click.option(*("-o", "--output"), type=file, metavar="FILE", help="Write the result to this file as JSON.")
    decorated: Command = output(plot(command))
    return decorated


@click.command("server", cls=GroupedCommand, short_help="Measure how much model servers can take.")
@server_option("Base URL of a server")
@click.option("--model", default="glm-ocr", show_default=True, help="Model card: a name, or a file CARD.toml.")
@click.option("--served-model", metavar="NAME", help="Name of the model on the servers.  [default: found out]")
@takes(options=LoadOptions, sources=ImageSources, leave_out=ImageSources.NOT_NEEDED)
@_output_options
def server(
    servers: tuple[str, ...],
    model: str,
    served_model: str | None,
    options: LoadOptions,
    sources: ImageSources,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Measure the throughput and latency of running model servers with 1 to 512 requests in flight.

    Every request has a region of its own, so that no cache of the server answers. The knee is the fewest requests in
    flight with 90% of the highest throughput: a good value for --workers. Use and load of GPUs are those of this
    machine.

    \b
    pagemill bench server --server http://127.0.0.1:8000
    pagemill bench server --server URL --from out --in-flight 64,128,256 --plot saturation.html
    """  # noqa: D301 - click wants the control character
    if not servers:
        raise click.UsageError("Missing option '--server'.")
    _check_files(output, plot)
    from pagemill.cli.progress import messages
    from pagemill.inference.servers import server_root
    from pagemill.profiling.gpu_use import sampled_gpus
    from pagemill_bench.report import knee_notes, level_notes, levels_text, sentence
    from pagemill_bench.saturation import knee_of, saturate

    card = load_card(model, ModelKind.RECOGNITION)
    load = _load(options, card, sources, options.in_flight or LEVELS)
    load = dataclasses.replace(load, servers=[server_root(url) for url in servers], served_model=served_model)
    console = messages()
    levels: list[Level] = []
    interrupted = False

    def report(level: Level) -> None:
        levels.append(level)
        console.note(sentence(level))

    hosts = [urlsplit(url).hostname or "" for url in load.servers]
    with ExitStack() as stack:
        gpus = stack.enter_context(sampled_gpus()) if all(map(is_loopback, hosts)) else None
        try:
            asyncio.run(saturate(load, gpus, report))
        except KeyboardInterrupt:
            interrupted = True
    if not levels:
        return ExitCode.INTERRUPTED
    knee = knee_of(levels) if len(levels) > 1 else None
    notes = [*knee_notes(knee), *level_notes(levels)]
    title = f"{card.title} on {', '.join(load.servers)}"
    result = _result("server", load, options, {"servers": load.servers, "levels": levels, "knee": knee}, notes)
    seen = levels_text(title, levels, notes)
    from pagemill_bench.plot import saturation_svg

    _deliver(result, seen, output, plot, lambda: saturation_svg(levels, knee, title), title, as_json)
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.PAGES_FAILED if any(level.failed for level in levels) else ExitCode.OK


@click.command("sweep", cls=GroupedCommand, short_help="Find the best settings of a model server.")
@takes(
    values=SweepOptions,
    load_options=LoadOptions,
    options=ServingOptions,
    sources=ImageSources,
    leave_out=(
        *ImageSources.NOT_NEEDED,
        *("memory_share", "max_model_len", "max_num_seqs", "max_num_batched_tokens"),
        *("workers", "sequence_tokens", "prefill_tokens", "replicas", "host", "port"),
    ),
    changes={
        "in_flight": {"help": "Requests in flight, one level after the other.  [default: as many as the profile has]"}
    },
)
@start_timeout_option
@click.option(
    "--write-profile",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.toml",
    help="Write a hardware profile with the best setting, for --profile of other commands.",
)
@_output_options
@vllm_arguments
def sweep(
    values: SweepOptions,
    load_options: LoadOptions,
    options: ServingOptions,
    sources: ImageSources,
    start_timeout: float,
    write_profile: Path | None,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
    extra: tuple[str, ...],
) -> int:
    """Start a model server for each setting and measure its throughput; print what to put into a profile.

    A setting that does not fit, or with which the server does not start, is a row with the reason. Ctrl-C stops the
    server and shows what has been measured so far.

    \b
    pagemill bench sweep --max-num-batched-tokens 65536,131072,262144 --in-flight 256
    pagemill bench sweep --max-num-seqs 64,128 --gpu-mem-util 0.8,0.9 --write-profile mine.toml
    pagemill run scans/ -o out --profile mine.toml
    """  # noqa: D301 - click wants the control character
    if write_profile and write_profile.suffix != ".toml":
        raise click.UsageError("--write-profile must end in .toml")
    _check_files(output, plot, write_profile)
    from pagemill.cli.progress import ServerDisplay, messages
    from pagemill.cli.serve_model import until_stopped
    from pagemill.profiling.gpu_use import sampled_gpus
    from pagemill.serving.command import find_vllm
    from pagemill.serving.detection import resolve_profile
    from pagemill.serving.spec import Patience
    from pagemill_bench.report import FLAGS, named, outcome, rows_text, sweep_notes
    from pagemill_bench.sweep import Sweep, best_of, measured_profile, settings_of

    chosen = {name: given for name in FLAGS if (given := getattr(values, name))}
    if not chosen:
        raise click.UsageError(f"nothing to measure: pass one of {', '.join(FLAGS.values())}")
    settings = settings_of(chosen)
    options = dataclasses.replace(options, extra=extra)
    for setting in settings:
        dataclasses.replace(options.wishes, **setting)  # an invalid value is reported now
    find_vllm(options.vllm)
    profile = resolve_profile(options.profile)
    card = load_card(options.model, ModelKind.RECOGNITION)
    load = _load(load_options, card, sources, load_options.in_flight or (profile.workers,))
    console = messages()
    numbers = iter(range(1, len(settings) + 1))

    def report(row: Row) -> None:
        console.note(f"{next(numbers)} of {len(settings)}: {named(row)}: {outcome(row)}")
        for line in row.log.splitlines():
            console.print_line(line)

    with sampled_gpus() as gpus:
        work = Sweep(options, load, Patience(start_s=start_timeout), gpus, ServerDisplay(console))
        ended = asyncio.run(until_stopped(work.run(settings, report), work.kill, console))
    if not work.rows:
        return ExitCode.INTERRUPTED
    index = best_of(work.rows)
    found: Profile | None = None
    if index is not None and (plan := work.plans[index]) is not None:
        name = write_profile.stem if write_profile else "mine"
        found = measured_profile(work.rows[index], plan, name=name, of=len(work.rows), swept=list(chosen))
    notes = [*sweep_notes(work.rows, index, found, list(chosen))]
    title = f"{card.title} on {profile.title}"
    details = {"rows": work.rows, "best": index, "profile": found}
    result = _result("sweep", load, load_options, details, notes)
    seen = rows_text(title, work.rows, list(chosen), notes)
    from pagemill_bench.plot import bars_svg

    bars = [
        (named(row), best.requests_per_s, f"{best.requests_per_s:.2f} with {best.in_flight:,} in flight")
        if (best := row.best)
        else (named(row), None, outcome(row))
        for row in work.rows
    ]
    _deliver(result, seen, output, plot, lambda: bars_svg(bars, "requests/s", title), title, as_json)
    if not ended:
        return ExitCode.INTERRUPTED
    if found is None:
        raise ServerError("no setting could be measured", remedy="The table has the reasons; the log their details.")
    if write_profile:
        from pagemill.store.files import write_whole

        write_whole(write_profile, [profile_text(found).encode()])
        console.note(f"Written: {write_profile}. To use it: --profile {write_profile}")
    return ExitCode.OK


def _load(options: LoadOptions, card: ModelCard, sources: ImageSources, in_flight: Sequence[int]) -> Load:
    """The load; its servers are named later."""
    from pagemill.inference.client import API_KEY
    from pagemill_bench.run_regions import run_regions
    from pagemill_bench.saturation import Load, drawn_regions

    pages = card.reads is ReadingMode.PAGES
    if options.run is None:
        regions = drawn_regions(card, options.seed)
    else:
        regions = asyncio.run(run_regions(options.run, sources, pages=pages, most=_MOST_REGIONS))
    return Load(
        servers=(),
        card=card,
        regions=regions,
        in_flight=sorted(in_flight),
        requests=options.requests,
        seconds=options.seconds,
        max_tokens=options.max_tokens,
        api_key=os.environ.get(API_KEY) or None,
    )


def _check_files(*paths: Path | None) -> None:
    """Fail before the work begins if a file cannot be written."""
    plot = paths[1]
    if plot and plot.suffix not in (".svg", ".html"):
        raise click.UsageError("--plot must end in .svg or .html")
    for path in paths:
        if path and not path.absolute().parent.is_dir():
            raise OutputError(f"cannot write {path}: no such folder", remedy="Create it, or name another file.")


def _result(
    benchmark: str, load: Load, options: LoadOptions, details: Mapping[str, Any], notes: Sequence[str]
) -> dict[str, Any]:
    sent = {"regions": len(load.regions), "from": str(options.run) if options.run else f"drawn, seed {options.seed}"}
    sent |= {"requests": load.requests, "seconds": load.seconds, "max_tokens": load.max_tokens}
    return {"benchmark": benchmark, "machine": machine(), "model": load.card.name, "load": sent, **details} | {
        "notes": list(notes)
    }


def _deliver(
    result: dict[str, Any],
    seen: str,
    output: Path | None,
    plot: Path | None,
    draw: Callable[[], str],
    title: str,
    as_json: bool,
) -> None:
    """Print the result, then write its files: if these cannot be written, it has been seen."""
    from pagemill.store.files import write_whole
    from pagemill_bench.plot import page_html

    text = json.dumps(msgspec.to_builtins(result), indent=2)
    click.echo(text if as_json else seen, nl=as_json)
    if output:
        write_whole(output, [text.encode(), b"\n"])
    if plot:
        svg = draw()
        write_whole(plot, [(svg if plot.suffix == ".svg" else page_html(svg, title, seen)).encode()])
