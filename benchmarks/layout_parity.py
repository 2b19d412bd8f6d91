"""PP-DocLayout: our preprocessing and post-processing against the published processor of transformers.

    python benchmarks/layout_parity.py --pages 50 [--images FOLDER] [--weights FOLDER]

Without ``--weights`` the model has random weights of full size, made by a seed. Pages are those of ``--images``, then
drawn ones. Float32 on the CPU, one to three seconds a page and path. Needs ``pagemill[gpu]`` and torchvision.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from pagemill.bench.drawn_pages import draw_page
from pagemill.bench.layout_parity import StockPath, input_parity, postprocess_parity, summary
from pagemill.bench.random_layout_model import save_random_model
from pagemill.imaging.decode import decode_image
from pagemill.layout.pp_doclayout.settings import Interpolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pagemill.imaging.types import Pixels


def pages(images: Path | None) -> Iterator[Pixels]:
    """Pages of a folder, then drawn ones without end."""
    for path in sorted(images.rglob("*")) if images else ():
        if path.suffix.lower() in {".png", ".jpg", ".jpeg"}:
            yield decode_image(path.read_bytes()).pixels
    seed = 0
    while True:
        yield draw_page(seed)
        seed += 1


def main() -> None:
    """Print what is equal, and by how much the rest differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--images", type=Path, help="folder of page images to take first")
    parser.add_argument("--weights", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("--version", type=int, choices=(3, 4), default=3, help="of the random model")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        weights = arguments.weights or save_random_model(Path(folder), version=arguments.version)
        stock = StockPath(weights)
    chosen = list(islice(pages(arguments.images), arguments.pages))
    print(f"post-processing of the same outputs: {summary(postprocess_parity(stock, chosen))}")
    for interpolation in Interpolation:
        rows = input_parity(stock, chosen, interpolation)
        found, matched = sum(row.detections for row in rows), sum(row.matched for row in rows)
        difference = sum(row.pixel_difference for row in rows) / len(rows)
        print(
            f"{interpolation}: input differs by {difference:.3f} of 255 on average; {matched} of {found} detections "
            f"the same, {sum(row.spurious for row in rows)} others"
        )


if __name__ == "__main__":
    main()
