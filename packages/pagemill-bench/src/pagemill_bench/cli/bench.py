"""``pagemill bench``: measures parts of pagemill on this machine."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from pagemill.cli.options import FILE, FOLDER, json_option
from pagemill.document.shown import count
from pagemill.errors import lacks_extra
from pagemill.export.target import whole_file
from pagemill_bench.cli.bench_server import server, sweep
from pagemill_bench.table import FigureTable, show

Command = TypeVar("Command", bound=Callable[..., Any])

_SPEED = ("way", "ms", "pages/s")
_BUSY_LEFT_OUT = "The GPU's busy share is left out: it takes an NVIDIA GPU and nvidia-ml-py."

LAYOUT_MODEL, EMBEDDED = "pp-doclayout-v3", "onnx"
_PAGES, _PAGES_ON_A_CPU = 64, 8
_ONLY_OF_THE_MODEL = {
    "batch": "--batch",
    "device": "--device",
    "compiled": "--compile",
    "weights": "--weights",
}

_pages_option = click.option(
    "--pages", type=click.IntRange(min=1), default=_PAGES, show_default=True, help="Number of pages."
)


def _threads_option(help: str) -> Callable[[Command], Command]:
    cores = os.cpu_count() or 1
    return click.option("--threads", type=click.IntRange(min=1), default=cores, show_default="all cores", help=help)


@click.group(name="bench")
def command() -> None:
    """Measure parts of pagemill, and model servers, on this machine.

    \b
    pagemill bench server --server http://127.0.0.1:8000
    pagemill bench arrow-extract
    pagemill bench layout-inference --device cuda --json
    """  # noqa: D301 - click wants the control character


command.add_command(server)
command.add_command(sweep)


@command.command("layout-preprocess", short_help="Measure the input of a layout model.")
@_pages_option
@json_option
def layout_preprocess(pages: int, as_json: bool) -> None:
    """Measure the CPU time from a page to the layout model's input, for pagemill and the published processor."""
    from pagemill_bench.layout import preprocess_rows

    missing = _missing("torch", "torchvision", "transformers")
    rows = preprocess_rows(pages=pages, stock=not missing)
    table = FigureTable(f"{pages} pages of 2480 x 3508 pixels", _SPEED, tuple(rows))
    left_out = f"The published processor is left out: it needs {missing}."
    show("layout-preprocess", [table], as_json, notes=[left_out] if missing else [])


@command.command("layout-inference", short_help="Measure a layout model and the layout stage.")
@click.option("--pages", type=click.IntRange(min=1), show_default="64 on a GPU, else 8", help="Number of pages.")
@click.option(
    "--engine",
    type=click.Choice(["auto", LAYOUT_MODEL, EMBEDDED]),
    default="auto",
    show_default=f"{LAYOUT_MODEL} if PyTorch is installed, else {EMBEDDED}",
    help="Layout engine.",
)
@click.option("--batch", type=click.IntRange(min=1), default=16, show_default=True, help="Pages per call of the model.")
@click.option("--device", type=click.Choice(["auto", "cuda", "mps", "cpu"]), default="auto", show_default=True)
@_threads_option("Threads that decode pages for the whole stage.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Number of repetitions; the fastest one is reported.",
)
@click.option(
    *("--compile", "compiled"),
    is_flag=True,
    help="Measure the compiled model as well, and the stage with it.",
)
@click.option(
    "--weights",
    type=FOLDER,
    metavar="FOLDER",
    help="config.json and model.safetensors of PP-DocLayoutV3 or V4  [default: random weights of full size]",
)
@json_option
def layout_inference(
    pages: int | None,
    engine: str,
    batch: int,
    device: str,
    threads: int,
    repeats: int,
    compiled: bool,
    weights: Path | None,
    as_json: bool,
) -> None:
    """Measure the layout model and the whole layout stage on the device that there is.

    PP-DocLayoutV3 is measured from float32 to compiled bfloat16; without PyTorch the embedded ONNX
    engine, on the CPU.
    """
    missing = _missing("torch", "transformers")
    given = [flag for name, flag in _ONLY_OF_THE_MODEL.items() if _is_given(name)]
    if engine == EMBEDDED and given:
        raise click.UsageError(f"{' and '.join(given)}: not for the engine {EMBEDDED}")
    if missing and (engine == LAYOUT_MODEL or given):
        raise lacks_extra(f"layout-inference needs {missing}", "gpu")
    if missing or engine == EMBEDDED:
        from pagemill_bench.layout import embedded_rows

        pages = pages or _PAGES_ON_A_CPU
        rows = embedded_rows(pages=pages, threads=threads, repeats=repeats)
        table = FigureTable(f"Embedded ONNX engine, {count(pages, 'page')} of 2480 x 3508 pixels", _SPEED, tuple(rows))
        left_out = lacks_extra(f"PP-DocLayoutV3 is left out: it needs {missing}", "gpu")
        notes = [f"{left_out.message}. {left_out.remedy}"] if missing else []
        show("layout-inference", [table], as_json, notes=notes)
        return
    from pagemill.config.modes import TorchDevice
    from pagemill_bench.layout import has_gpu, inference_rows, stage_rows
    from pagemill_bench.testing.random_layout_model import save_random_model

    place = TorchDevice(device)
    on_gpu = has_gpu(place)
    pages = pages or (_PAGES if on_gpu else _PAGES_ON_A_CPU)
    with tempfile.TemporaryDirectory() as folder:
        model = weights or save_random_model(Path(folder))
        alone = inference_rows(model, place, pages=pages, batch=batch, repeats=repeats, compile=compiled)
        stage = stage_rows(model, place, pages=pages, threads=threads, batch=batch, repeats=repeats, compile=compiled)
    tables = [
        FigureTable(f"Model alone, {pages} pages, {batch} a call", _SPEED, tuple(alone)),
        FigureTable(
            f"Layout stage from encoded pages, {pages} pages, {batch} a call",
            (*_SPEED, "GPU busy"),
            tuple(stage),
        ),
    ]
    unknown = all(busy is None for *_, busy in stage)
    show("layout-inference", tables, as_json, notes=[_BUSY_LEFT_OUT] if unknown else [])


@command.command("arrow-extract", short_help="Measure how page images come out of a dataset.")
@_pages_option
@_threads_option("Threads of the way that uses some.")
@json_option
def arrow_extract(pages: int, threads: int, as_json: bool) -> None:
    """Measure page images out of Arrow shards into files: the stored bytes as they are, or decoded and encoded again.

    The stored bytes are what a run uses: nothing is lost, and nothing is computed.
    """
    from pagemill_bench.arrow_extract import RECODED, extraction_rows

    with tempfile.TemporaryDirectory() as folder:
        rows = extraction_rows(Path(folder), pages=pages, threads=threads)
    columns = ("way", "pages", "ms/page", "pages/s", "times", "files")
    table = FigureTable(f"{pages} pages of 2480 x 3508 pixels", columns, tuple(rows))
    note = f"At most {RECODED} pages are encoded again. times: as fast as that; files: as stored, or others."
    show("arrow-extract", [table], as_json, notes=[note])


@command.command("all", short_help="Run every benchmark that needs nothing but this machine.")
@click.option("--json", "target", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to a file.")
@click.option("--compare", type=FILE, metavar="OLD.json", help="Compare with figures that --json has written.")
def every(target: Path | None, compare: Path | None) -> None:
    """Measure data sets, layout and parsing on this machine; some minutes.

    Nothing else should run meanwhile. Servers are measured by `pagemill bench server`.
    """
    import json

    from pagemill_bench import every as benchmarks

    old = None if compare is None else benchmarks.read_report(compare)
    found = []
    for each in benchmarks.run_all():
        tables = [benchmarks.table_of(table["title"], table["rows"]) for table in each["tables"] if table["rows"]]
        show(each["benchmark"], tables, False, notes=each["notes"])
        found.append(each)
    benchmarks.require_some(found)
    report = benchmarks.report(found)
    if target is not None:
        with whole_file(target, overwrite=True) as stream:
            stream.write(json.dumps(report, indent=2).encode() + b"\n")
    if old is not None:
        differences = [f"The machine differs: {difference}" for difference in benchmarks.differences(old, report)]
        show("compare", [benchmarks.compare(old, report)], False, notes=differences)


def _is_given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _missing(*packages: str) -> str:
    """Those that are not installed, in words."""
    return " and ".join(name for name in packages if not importlib.util.find_spec(name))
