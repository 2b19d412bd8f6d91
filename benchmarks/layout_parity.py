"""PP-DocLayout: our preprocessing and post-processing against the published processor of transformers.

    python benchmarks/layout_parity.py --pages 50 [--images FOLDER] [--weights FOLDER]

Without ``--weights`` the model has random weights of full size, made by a seed. Pages are those of ``--images``, then
drawn ones. Float32 on the CPU, one to three seconds a page and path. Needs ``pagemill[gpu]`` and torchvision.

Our path through PP-DocLayout against the published processor of ``transformers``, on the same weights.

The published processor needs torchvision, which pagemill itself does not.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from pagemill.imaging.decode import decode_image
from pagemill.layout.pp_doclayout.settings import Interpolation
from pagemill_bench.testing.drawn_pages import draw_page
from pagemill_bench.testing.random_layout_model import save_random_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pagemill.imaging.types import Pixels


from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from pagemill.errors import MissingDependencyError
from pagemill.layout.pp_doclayout.outputs import Reduced
from pagemill.layout.pp_doclayout.postprocess import PostProcessor
from pagemill.layout.pp_doclayout.preprocess import resize_pages
from pagemill.layout.pp_doclayout.settings import FilterSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pagemill.imaging.types import Pixels

THRESHOLD = 0.5
"""Of scores and masks in the comparison; the published processor has one for both."""


@dataclass(frozen=True, slots=True)
class PageParity:
    """How alike two answers for one page are, detection by detection in reading order."""

    detections: int
    """Of the published processor."""
    same_count: bool
    same_labels: bool
    same_order: bool
    score_difference: float
    """Largest, 0-1; 0 without detections."""
    box_difference: float
    """Largest, page pixels."""
    outline_iou: float
    """Smallest overlap of two outlines; 1 without detections."""


@dataclass(frozen=True, slots=True)
class InputParity:
    """What another resize does to the input and to the detections of one page."""

    pixel_difference: float
    """Mean, in 255ths."""
    detections: int
    """Of the published processor."""
    matched: int
    """Of them, those with a detection of the same class, at least 0.95 overlap and a score within 0.02."""
    spurious: int
    """Detections of ours that match none."""


class StockPath:
    """The published processor around a model in float32 on the CPU.

    Args:
        folder: Weights, as the layout engine takes them.

    Raises:
        MissingDependencyError: torchvision is not installed.
    """

    def __init__(self, folder: Path) -> None:
        import torch
        import transformers

        from pagemill.layout.pp_doclayout.weights import load_model

        try:
            import torchvision  # noqa: F401
        except (ImportError, RuntimeError) as error:
            raise MissingDependencyError(
                f"the published processor needs torchvision: {error}", remedy="Install it: pip install torchvision"
            ) from error
        self.model, self.labels = load_model(folder, torch.float32)
        version = 3 if self.model.config.model_type.endswith("v3") else 4
        self.processor: Any = getattr(transformers, f"PPDocLayoutV{version}ImageProcessor")()

    def inputs(self, page: Pixels) -> Any:
        """The published preprocessing: float32 (1, 3, side, side)."""
        return self.processor(images=[page], return_tensors="pt")["pixel_values"]

    def outputs(self, pixels: Any) -> Any:
        """The model's raw outputs."""
        import torch

        with torch.inference_mode():
            return self.model(pixel_values=pixels)

    def detections(self, outputs: Any, page: Pixels, threshold: float = THRESHOLD) -> dict[str, Any]:
        """The published post-processing."""
        import torch

        with torch.inference_mode():
            (found,) = self.processor.post_process_object_detection(
                outputs, threshold=threshold, target_sizes=torch.tensor([page.shape[:2]])
            )
        return {name: value if isinstance(value, list) else value.numpy() for name, value in found.items()}


def postprocess_parity(stock: StockPath, pages: Iterable[Pixels]) -> list[PageParity]:
    """Both post-processings on the same raw outputs, before suppression and merging, which the published one lacks."""
    post = PostProcessor(FilterSettings(threshold=THRESHOLD), stock.labels, "parity")
    rows = []
    for page in pages:
        outputs = stock.outputs(stock.inputs(page))
        theirs = stock.detections(outputs, page)
        size = (page.shape[1], page.shape[0])
        (raw,) = Reduced(outputs, 1, THRESHOLD).pages()
        ours = post.detections(raw, size)
        # A query may give several detections, of the same rank: those are put in order of their classes.
        mine = np.lexsort((ours.classes, ours.order))
        other = np.lexsort((theirs["labels"], theirs["order_seq"]))
        if len(mine) != len(other):
            rows.append(PageParity(len(other), False, False, False, 1.0, float(max(size)), 0.0))
            continue
        outlines = [post.outline(raw, ours, index, size) for index in mine]
        overlaps = [
            max(
                _outline_iou(drawn, theirs["polygon_points"][k], size)
                for drawn in (_rectangles(ours.boxes[index]) if points is None else [points])
            )
            for index, points, k in zip(mine, outlines, other, strict=True)
        ]
        rows.append(
            PageParity(
                detections=len(other),
                same_count=True,
                same_labels=bool((ours.classes[mine] == theirs["labels"][other]).all()),
                same_order=bool((ours.order[mine] == theirs["order_seq"][other]).all()),
                score_difference=_largest(ours.scores[mine] - theirs["scores"][other]),
                box_difference=_largest(ours.boxes[mine] - theirs["boxes"][other]),
                outline_iou=min(overlaps, default=1.0),
            )
        )
    return rows


def input_parity(stock: StockPath, pages: Iterable[Pixels], interpolation: Interpolation) -> list[InputParity]:
    """Both preprocessings, the published post-processing after each."""
    import torch

    rows = []
    for page in pages:
        reference = stock.inputs(page)
        pixels = torch.from_numpy(resize_pages([page], interpolation)).permute(0, 3, 1, 2).float() / 255
        theirs, ours = (stock.detections(stock.outputs(x), page) for x in (reference, pixels))
        matched = _matches(theirs, ours)
        rows.append(
            InputParity(
                pixel_difference=float((pixels - reference).abs().mean() * 255),
                detections=len(theirs["scores"]),
                matched=matched,
                spurious=len(ours["scores"]) - matched,
            )
        )
    return rows


def _matches(theirs: dict[str, Any], ours: dict[str, Any]) -> int:
    """Detections of theirs with a partner among ours, each used once."""
    free = set(range(len(ours["scores"])))
    matched = 0
    for label, score, box in zip(theirs["labels"], theirs["scores"], theirs["boxes"], strict=True):
        partner = next(
            (
                k
                for k in free
                if ours["labels"][k] == label
                and abs(ours["scores"][k] - score) <= 0.02
                and _box_iou(ours["boxes"][k], box) >= 0.95
            ),
            None,
        )
        if partner is not None:
            free.remove(partner)
            matched += 1
    return matched


def _box_iou(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = float(np.prod(np.maximum(sides, 0.0)))
    return shared / max(float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared, 1e-9)


def _outline_iou(a: NDArray[Any], b: NDArray[Any], size: tuple[int, int]) -> float:
    """Overlap of two outlines, drawn on the page."""
    if a.shape == b.shape and np.abs(a - b).max() <= 1.0:
        return 1.0
    drawn = []
    for points in (a, b):
        canvas = np.zeros((size[1], size[0]), dtype=np.uint8)
        cv2.fillPoly(canvas, [np.rint(points).astype(np.int32)], 1)
        drawn.append(canvas)
    union = int((drawn[0] | drawn[1]).sum())
    return int((drawn[0] & drawn[1]).sum()) / union if union else 1.0


def _rectangles(box: NDArray[np.float32]) -> list[NDArray[np.float64]]:
    """A box as the published processor draws it: to its edges without a mask, to its last pixels with a full one."""
    x1, y1, x2, y2 = np.trunc(box).astype(np.float64)
    ends = ((x2, y2), (x2 - 1, y2 - 1))
    return [np.array([[x1, y1], [right, y1], [right, low], [x1, low]]) for right, low in ends]


def _largest(values: NDArray[Any]) -> float:
    return float(np.abs(values).max(initial=0.0))


def summary(rows: Sequence[PageParity]) -> str:
    """One line about all pages."""
    exact = sum(row.same_count and row.same_labels and row.same_order for row in rows)
    return (
        f"{len(rows)} pages, {sum(row.detections for row in rows)} detections: labels and order the same on {exact}; "
        f"largest difference of a score {max(row.score_difference for row in rows):.2g}, "
        f"of a box {max(row.box_difference for row in rows):.2g} px; "
        f"smallest overlap of outlines {min(row.outline_iou for row in rows):.4f}"
    )


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
