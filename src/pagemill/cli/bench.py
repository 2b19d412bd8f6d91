"""``pagemill bench``: parts of pagemill measured on this machine, against others where they are at hand."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pagemill.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagemill.bench.table import Cell, Table

_PACKAGES = (
    "pagemill",
    "numpy",
    "simplejpeg",
    "kornia-rs",
    "opencv-python-headless",
    "pillow",
    "torch",
    "torchvision",
    "transformers",
    "nvidia-ml-py",
)
_GLMOCR_LEFT_OUT = "glmocr is left out: --glmocr-python names the interpreter of an environment that has it."

_BUSY_LEFT_OUT = "The GPU's busy share is left out: it takes an NVIDIA GPU and nvidia-ml-py."

_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
_glmocr_option = click.option(
    "--glmocr-python",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="PATH",
    help="Compare with glmocr: the interpreter of an environment of its own, with glmocr 0.1.5.",
)


def _pages_option(default: int = 64) -> Callable[[Any], Any]:
    return click.option("--pages", type=click.IntRange(min=1), default=default, show_default=True, help="How many.")


@click.group(name="bench", short_help="Measure parts of pagemill.")
def command() -> None:
    """Measure parts of pagemill on this machine, on pages and boxes made from a seed.

    \b
    pagemill bench crops --glmocr-python glm/bin/python
    pagemill bench layout-inference --device cuda --json
    """  # noqa: D301 - click wants the control character


@command.command("crops", short_help="Encoded pages to encoded crops.")
@_pages_option()
@click.option("--seed", type=int, default=0, show_default=True, help="Of the pages.")
@_glmocr_option
@_json_option
def crops(pages: int, seed: int, glmocr_python: Path | None, as_json: bool) -> None:
    """CPU time from an encoded page to its encoded crops, JPEG and PNG, page by page in turn."""
    from pagemill.bench.crops import crop_tables

    tables = crop_tables(pages=pages, seed=seed, glmocr_python=glmocr_python)
    _show("crops", tables, as_json, notes=[] if glmocr_python else [_GLMOCR_LEFT_OUT])


@command.command("request-build", short_help="Crops to requests for a model.")
@click.option("--crops", type=click.IntRange(min=1), default=200, show_default=True, help="How many.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the pages.")
@_glmocr_option
@_json_option
def request_build(crops: int, seed: int, glmocr_python: Path | None, as_json: bool) -> None:
    """CPU time from a crop to the request for a vision-language model, crop by crop in turn."""
    from pagemill.bench.request_build import request_tables

    tables = request_tables(crops=crops, seed=seed, glmocr_python=glmocr_python)
    _show("request-build", tables, as_json, notes=[] if glmocr_python else [_GLMOCR_LEFT_OUT])


@command.command("layout-postprocess", short_help="Boxes of a layout model to regions.")
@_pages_option()
@click.option("--boxes", type=click.IntRange(1, 300), default=120, show_default=True, help="On every page.")
@click.option(
    "--sets", type=click.IntRange(min=0), default=100, show_default=True, help="Random sets to compare the results of."
)
@_glmocr_option
@_json_option
def layout_postprocess(pages: int, boxes: int, sets: int, glmocr_python: Path | None, as_json: bool) -> None:
    """From boxes that a layout model proposes to those that are kept: time, and whether all agree."""
    from pagemill.bench.layout_postprocess import equality, timings
    from pagemill.bench.table import Table

    times = timings(pages, boxes, glmocr_python)
    agreement = equality(sets, glmocr_python) if sets else {}
    tables = [
        Table(
            f"{pages} pages of {boxes} boxes",
            ("all pages", "ms", "ratio"),
            tuple((row.name, row.milliseconds, row.ratio) for row in times),
        ),
        Table(
            "The same boxes in the same order",
            ("ours and", "equal", "sets"),
            tuple((name, found.equal, found.sets) for name, found in agreement.items()),
        ),
    ]
    notes = [f"{name}: {difference}" for name, found in agreement.items() for difference in found.differences]
    _show("layout-postprocess", tables, as_json, notes=notes if glmocr_python else [*notes, _GLMOCR_LEFT_OUT])


@command.command("layout-preprocess", short_help="Pages to the input of a layout model.")
@_pages_option()
@_json_option
def layout_preprocess(pages: int, as_json: bool) -> None:
    """From a page to the layout model's input: CPU time of ours and of the published processor, in turn."""
    from pagemill.bench.layout_preprocess import preprocess_rows

    missing = [name for name in ("torch", "torchvision", "transformers") if not importlib.util.find_spec(name)]
    rows = preprocess_rows(pages=pages, stock=not missing)
    left_out = f"The published processor is left out: it needs {' and '.join(missing)}."
    table = _speed_table(f"{pages} pages of 2480 x 3508 pixels", rows)
    _show("layout-preprocess", [table], as_json, notes=[left_out] if missing else [])


@command.command("layout-inference", short_help="The layout model, and encoded pages to regions.")
@_pages_option()
@click.option("--batch", type=click.IntRange(min=1), default=16, show_default=True, help="Pages of one call.")
@click.option("--device", type=click.Choice(["auto", "cuda", "mps", "cpu"]), default="auto", show_default=True)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    show_default="all cores",
    help="That decode pages for the whole stage.",
)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="The fastest counts.")
@click.option("--compile/--no-compile", "compiled", default=True, show_default=True, help="With the compiled model.")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="config.json and model.safetensors of PP-DocLayoutV3 or V4  [default: random weights of full size]",
)
@_json_option
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
    """PP-DocLayoutV3 step by step, from float32 with gradients to compiled bfloat16, and the whole stage."""
    if missing := [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]:
        from pagemill.layout.pp_doclayout.weights import INSTALL

        raise MissingDependencyError(f"layout-inference needs {' and '.join(missing)}", remedy=INSTALL)
    from pagemill.bench.layout_inference import inference_rows, stage_rows
    from pagemill.bench.table import Table
    from pagemill.layout.pp_doclayout.settings import Device
    from pagemill.testing.random_layout_model import save_random_model

    with tempfile.TemporaryDirectory() as folder:
        model, place = weights or save_random_model(Path(folder)), Device(device)
        alone = inference_rows(model, place, pages=pages, batch=batch, repeats=repeats, compile=compiled)
        stage = stage_rows(model, place, pages=pages, threads=threads, batch=batch, repeats=repeats)
    tables = [
        _speed_table(f"Model alone, {pages} pages, {batch} a call", alone),
        Table(
            f"Layout stage from encoded pages, {pages} pages, {batch} a call",
            ("way", "ms", "pages/s", "GPU busy"),
            tuple((row.name, row.milliseconds, row.pages_per_second, row.busy_share) for row in stage),
        ),
    ]
    unknown = all(row.busy_share is None for row in stage)
    _show("layout-inference", tables, as_json, notes=[_BUSY_LEFT_OUT] if unknown else [])


def _speed_table(title: str, rows: Sequence[Any]) -> Table:
    from pagemill.bench.table import Table

    return Table(
        title, ("way", "ms", "pages/s"), tuple((row.name, row.milliseconds, row.pages_per_second) for row in rows)
    )


def _show(benchmark: str, tables: Sequence[Table], as_json: bool, *, notes: Sequence[str] = ()) -> None:
    if as_json:
        answer = {
            "benchmark": benchmark,
            "machine": _machine(),
            "tables": [
                {"title": table.title, "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows]}
                for table in tables
            ],
            "notes": list(notes),
        }
        click.echo(json.dumps(answer, indent=2))
        return
    for table in tables:
        if table.rows:
            click.echo("\n".join([table.title, *_lines(table), ""]))
    for note in notes:
        click.echo(note)


def _lines(table: Table) -> list[str]:
    texts = [list(table.columns), *[[_text(cell) for cell in row] for row in table.rows]]
    widths = [max(len(row[column]) for row in texts) for column in range(len(table.columns))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]]
        )
        for row in texts
    ]


def _text(cell: Cell) -> str:
    """A number with three digits or all before the point."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.{0 if cell >= 100 else 1 if cell >= 10 else 2}f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _machine() -> dict[str, Any]:
    """What a figure depends on."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    machine: dict[str, Any] = {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": versions,
    }
    if (torch := sys.modules.get("torch")) and torch.cuda.is_available():  # what did not use it need not wait for it
        machine["gpu"] = torch.cuda.get_device_name()
    return machine
