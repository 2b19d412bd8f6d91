"""PP-DocLayout step by step and as a whole stage, on this machine: everything of docs/layout.md that needs a GPU.

    python benchmarks/layout_inference.py --device cuda --pages 64 --batch 64 --threads 16

Weights are random, of full size, unless ``--weights`` names a folder. Prints three tables: the model alone (float32,
inference mode, mixed, bfloat16, each of the last two also compiled), preprocessing on one core against the published
processor (with ``--stock``, which needs torchvision), and the stage from encoded A4 pages to regions.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from pagemill.bench.layout_inference import inference_rows, stage_rows
from pagemill.bench.layout_preprocess import preprocess_rows
from pagemill.bench.random_layout_model import save_random_model
from pagemill.layout.pp_doclayout.settings import Device

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pagemill.bench.layout_inference import Row


def show(title: str, rows: Iterable[Row]) -> None:
    """Print one table."""
    print(title)
    for row in rows:
        print(f"  {row.name:44} {row.milliseconds:10.1f} ms {row.pages_per_second:9.1f} pages/s", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=Device, choices=[Device.CUDA, Device.MPS, Device.CPU], default=Device.CPU)
    parser.add_argument("--weights", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("--pages", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64, help="pages of one call of the model alone")
    parser.add_argument("--stage-batch", type=int, default=16, help="pages of one call in the whole stage")
    parser.add_argument("--threads", type=int, default=8, help="threads that decode and resize in the whole stage")
    parser.add_argument("--repeats", type=int, default=5, help="the fastest counts")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--stock", action="store_true", help="measure the published processor, too")
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, {arguments.device}", end="")
    print(f" ({torch.cuda.get_device_name()})" if arguments.device is Device.CUDA else "")
    with tempfile.TemporaryDirectory() as folder:
        weights = arguments.weights or save_random_model(Path(folder))
        common = {"pages": arguments.pages, "repeats": arguments.repeats}
        compiled = not arguments.no_compile
        rows = inference_rows(weights, arguments.device, batch=arguments.batch, compile=compiled, **common)
        show(f"the model alone, {arguments.pages} pages in batches of {arguments.batch}", rows)
        show("preprocessing, one core", preprocess_rows(pages=min(arguments.pages, 16), stock=arguments.stock))
        rows = stage_rows(weights, arguments.device, threads=arguments.threads, batch=arguments.stage_batch, **common)
        show("from encoded A4 pages at 300 dpi to regions", rows)


if __name__ == "__main__":
    main()
