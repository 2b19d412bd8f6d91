"""``pagemill bench``: measures parts of pagemill on this machine."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path

import click

from pagemill.bench.table import FigureTable, show
from pagemill.cli.bench_server import server, sweep
from pagemill.cli.options import FOLDER, json_option
from pagemill.errors import lacks_extra

_SPEED = ("way", "ms", "pages/s")
_BUSY_LEFT_OUT = "The GPU's busy share is left out: it takes an NVIDIA GPU and nvidia-ml-py."

_pages_option = click.option(
    "--pages", type=click.IntRange(min=1), default=64, show_default=True, help="Number of pages."
)


@click.group(name="bench")
def command() -> None:
    """Measure parts of pagemill on this machine, on pages made from a seed.

    \b
    pagemill bench layout-preprocess --pages 16
    pagemill bench layout-inference --device cuda --json
    """  # noqa: D301 - click wants the control character


command.add_command(server)
command.add_command(sweep)


@command.command("layout-preprocess", short_help="Measure the input of a layout model.")
@_pages_option
@json_option
def layout_preprocess(pages: int, as_json: bool) -> None:
    """Measure the CPU time from a page to the layout model's input, for pagemill and the published processor."""
    from pagemill.bench.layout import preprocess_rows

    missing = _missing("torch", "torchvision", "transformers")
    rows = preprocess_rows(pages=pages, stock=not missing)
    table = FigureTable(f"{pages} pages of 2480 x 3508 pixels", _SPEED, tuple(rows))
    left_out = f"The published processor is left out: it needs {missing}."
    show("layout-preprocess", [table], as_json, notes=[left_out] if missing else [])


@command.command("layout-inference", short_help="Measure a layout model and the layout stage.")
@_pages_option
@click.option("--batch", type=click.IntRange(min=1), default=16, show_default=True, help="Pages per call of the model.")
@click.option("--device", type=click.Choice(["auto", "cuda", "mps", "cpu"]), default="auto", show_default=True)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    show_default="all cores",
    help="Threads that decode pages for the whole stage.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Number of repetitions; the fastest one counts.",
)
@click.option(
    "--compile/--no-compile", "compiled", default=True, show_default=True, help="Measure the compiled model as well."
)
@click.option(
    "--weights",
    type=FOLDER,
    metavar="FOLDER",
    help="config.json and model.safetensors of PP-DocLayoutV3 or V4  [default: random weights of full size]",
)
@json_option
def layout_inference(
    pages: int,
    batch: int,
    device: str,
    threads: int,
    repeats: int,
    compiled: bool,
    weights: Path | None,
    as_json: bool,
) -> None:
    """Measure PP-DocLayoutV3, from float32 with gradients to compiled bfloat16, and the whole layout stage."""
    if missing := _missing("torch", "transformers"):
        raise lacks_extra(f"layout-inference needs {missing}", "gpu")
    from pagemill.bench.layout import inference_rows, stage_rows
    from pagemill.layout.pp_doclayout.settings import TorchDevice
    from pagemill.testing.random_layout_model import save_random_model

    with tempfile.TemporaryDirectory() as folder:
        model, place = weights or save_random_model(Path(folder)), TorchDevice(device)
        alone = inference_rows(model, place, pages=pages, batch=batch, repeats=repeats, compile=compiled)
        stage = stage_rows(model, place, pages=pages, threads=threads, batch=batch, repeats=repeats)
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


def _missing(*packages: str) -> str:
    """Those that are not installed, in words."""
    return " and ".join(name for name in packages if not importlib.util.find_spec(name))
