"""Post-processing of layout boxes: ours, a scalar reference, and the ``glmocr`` package from its own environment.

python benchmarks/layout_postprocess.py [--boxes 120] [--sets 100] [--glmocr-python glm/bin/python]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from glmocr_process import LEFT_OUT, add_common_options, glmocr_process
from pagemill.document.labels import Label
from pagemill.layout.filters import BoxFilter
from pagemill.layout.pp_doclayout.outputs import RawPage
from pagemill.layout.pp_doclayout.postprocess import PostProcessor
from pagemill.layout.pp_doclayout.settings import FilterSettings, Merge
from pagemill_bench.table import FigureTable, show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

LABELS = tuple(Label)
CLASS_OF = {label: index for index, label in enumerate(LABELS)}


@dataclass(frozen=True, slots=True)
class BoxSet:
    """Boxes of one page as a model proposes them."""

    boxes: NDArray[np.float32]
    """Shape (n, 4), page pixels."""
    scores: NDArray[np.float32]
    """Shape (n,), all different."""
    classes: NDArray[np.intp]
    order: NDArray[np.intp]
    size: tuple[int, int]
    """Width and height of the page."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    name: str
    milliseconds: float
    """Of the processor, for all pages. All implementations keep to one thread."""
    ratio: float
    """To ours."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How often two implementations keep the same boxes."""

    sets: int
    equal: int
    differences: tuple[str, ...]
    """The first ones, in words."""


def random_boxes(seed: int, count: int, size: tuple[int, int] = (2480, 3508)) -> BoxSet:
    """Boxes of all sizes; some repeat others nearly, lie in others, stick out of the page or fill it."""
    random = np.random.default_rng(seed)
    extent = np.array(size, dtype=np.float64)
    centres = random.uniform(-0.02, 1.02, size=(count, 2)) * extent
    sides = random.beta(1.2, 5.0, size=(count, 2)) * extent + 4
    boxes = np.concatenate([centres - sides / 2, centres + sides / 2], axis=1)
    for i in range(1, count):
        other = boxes[random.integers(0, i)]
        kind = random.random()
        if kind < 0.15:  # nearly the same box once more
            boxes[i] = other + random.normal(0.0, 0.03, size=4) * np.tile(other[2:] - other[:2], 2)
        elif kind < 0.3:  # a box inside, or nearly
            low, high = np.sort(random.uniform(-0.1, 1.1, size=(2, 2)), axis=0)
            boxes[i] = np.concatenate(
                [other[:2] + low * (other[2:] - other[:2]), other[:2] + high * (other[2:] - other[:2])]
            )
        elif kind < 0.31:
            boxes[i] = np.concatenate([-extent * random.uniform(0, 0.02), extent * random.uniform(0.95, 1.02, size=2)])
    scores = random.permutation(np.linspace(0.3, 0.999, max(count, 1)))[:count]
    return BoxSet(
        boxes=boxes.astype(np.float32).reshape(-1, 4),
        scores=scores.astype(np.float32),
        classes=random.integers(0, len(LABELS), size=count),
        order=random.permutation(300)[:count],
        size=size,
    )


def ours(sets: Sequence[BoxSet], settings: FilterSettings) -> list[NDArray[np.intp]]:
    """Indices of the kept boxes of every set, in reading order."""
    box_filter = BoxFilter(settings, LABELS)
    kept = []
    for page in sets:
        boxes = page.boxes.astype(np.float64)
        indices = box_filter.keep(boxes, page.scores, page.classes, page.size)
        kept.append(indices[np.argsort(page.order[indices], kind="stable")])
    return kept


def scalar_reference(page: BoxSet, settings: FilterSettings) -> list[int]:
    """The same rules, box by box in plain Python."""
    boxes = [[float(v) for v in box] for box in page.boxes]
    classes = [int(index) for index in page.classes]
    labels = [LABELS[index] for index in classes]
    waiting = sorted(range(len(boxes)), key=lambda i: -float(page.scores[i]))
    kept: list[int] = []
    while waiting:
        best = waiting.pop(0)
        kept.append(best)
        if settings.nms:
            limits = {True: settings.same_class_iou, False: settings.other_class_iou}
            waiting = [i for i in waiting if _iou(boxes[best], boxes[i]) < limits[classes[best] == classes[i]]]
    width, height = page.size
    limit = (settings.oversized_landscape if width > height else settings.oversized_portrait) * width * height
    if len(kept) > 1:
        small = [i for i in kept if labels[i] is not Label.IMAGE or _visible(boxes[i], page.size) <= limit]
        kept = small or kept
    inside = {
        (i, j)
        for i in kept
        for j in kept
        if i != j and labels[i] not in settings.never_contained and _share(boxes[i], boxes[j]) >= settings.contained
    }
    nested = {i for i, _ in inside}
    drops: set[tuple[int, int]] = set()
    for i, j in inside:
        if settings.merges.get(labels[j], settings.merge) is Merge.LARGE:
            drops.add((j, i))
        same = labels[i] is labels[j] or not settings.merges
        if settings.merges.get(labels[i], settings.merge) is Merge.SMALL and not (same and j in nested):
            drops.add((i, j))
    if settings.spare_stronger:
        drops = {(i, j) for i, j in drops if (j, i) not in drops or page.scores[i] > page.scores[j]}
    dropped = {j for _, j in drops}
    return sorted((i for i in kept if i not in dropped), key=lambda i: int(page.order[i]))


def compare(left: Sequence[Sequence[int]], right: Sequence[Sequence[int]], names: tuple[str, str]) -> Comparison:
    """Count the sets in which both keep the same boxes in the same order."""
    differences = []
    equal = 0
    for number, (a, b) in enumerate(zip(left, right, strict=True)):
        if [int(i) for i in a] == [int(i) for i in b]:
            equal += 1
        else:
            only = [sorted({int(i) for i in x} - {int(i) for i in y}) for x, y in ((a, b), (b, a))]
            differences.append(f"set {number}: only {names[0]} keeps {only[0]}, only {names[1]} keeps {only[1]}")
    return Comparison(len(left), equal, tuple(differences[:10]))


def run_glmocr(python: Path, cases: Sequence[tuple[BoxSet, FilterSettings]]) -> tuple[list[list[int]], float]:
    """Run ``glmocr``'s ``apply_layout_postprocess``; kept indices of every set, and the processor milliseconds for all.

    Args:
        python: Interpreter of an environment with ``glmocr``.
        cases: Boxes and settings. Growth is left out: it does not change which boxes are kept.

    Raises:
        MissingDependencyError: The interpreter does not run, or has no ``glmocr``.
    """
    pages = [
        {
            "boxes": page.boxes.tolist(),
            "scores": page.scores.tolist(),
            "classes": page.classes.tolist(),
            "order": page.order.tolist(),
            "size": page.size,
            "nms": settings.nms,
            "mode": settings.merge.value
            if not settings.merges
            else {str(index): settings.merges.get(label, settings.merge).value for index, label in enumerate(LABELS)},
        }
        for page, settings in cases
    ]
    with glmocr_process(python, _GLMOCR) as ask:
        kept, milliseconds = ask({"labels": LABELS, "pages": pages})
    return kept, milliseconds


_GLMOCR = """
import time
import numpy as np
from glmocr.utils.layout_postprocess_utils import apply_layout_postprocess

class Tensor:
    def __init__(self, values, kind): self.values = np.array(values, dtype=kind)
    def cpu(self): return self
    def numpy(self): return self.values

def call(page, labels):
    mode = page["mode"] if isinstance(page["mode"], str) else {int(k): v for k, v in page["mode"].items()}
    raw = {
        "scores": Tensor(page["scores"], np.float32), "labels": Tensor(page["classes"], np.int64),
        "boxes": Tensor(page["boxes"], np.float32), "order_seq": Tensor(page["order"], np.int64),
    }
    raw["boxes"].values = raw["boxes"].values.reshape(-1, 4)
    return [raw], labels, [tuple(page["size"])], page["nms"], None, mode

def answer(question):
    calls = [call(page, dict(enumerate(question["labels"]))) for page in question["pages"]]
    start = time.process_time()
    answers = [apply_layout_postprocess(*arguments)[0] for arguments in calls]
    milliseconds = (time.process_time() - start) * 1000
    kept = []
    for found, (raws, *_) in zip(answers, calls):
        index = {float(score): i for i, score in enumerate(raws[0]["scores"].values)}
        kept.append([index[region["score"]] for region in found])
    return kept, milliseconds
"""


def random_settings(seed: int, *, spare_stronger: bool = True) -> FilterSettings:
    """The default modes, one mode for all classes, or a mode for every class by the seed."""
    random = np.random.default_rng(seed)
    kind = seed % 5
    if kind == 0:
        return FilterSettings(spare_stronger=spare_stronger)
    if kind < 4:
        return FilterSettings(merge=tuple(Merge)[kind - 1], merges={}, spare_stronger=spare_stronger)
    modes = random.integers(0, 3, size=len(LABELS))
    merges = {label: tuple(Merge)[mode] for label, mode in zip(LABELS, modes, strict=True)}
    return FilterSettings(merges=merges, spare_stronger=spare_stronger)


def equality(sets: int, glmocr: Path | None) -> dict[str, Comparison]:
    """Compare ours with the scalar reference, and with glmocr where its interpreter is given, on random sets.

    Boxes that lie off the page altogether are left out of the comparison with glmocr, which drops them at the end.
    It is made twice: by glmocr's rules, and by the defaults, of which one differs (``FilterSettings.spare_stronger``).
    """
    sizes = [(2480, 3508), (3508, 2480), (600, 800), (1000, 1000)]
    pages = [random_boxes(seed, seed % 121, sizes[seed % 4]) for seed in range(sets)]
    chosen = [random_settings(seed) for seed in range(sets)]
    kept = [ours([page], settings)[0].tolist() for page, settings in zip(pages, chosen, strict=True)]
    reference = [scalar_reference(page, settings) for page, settings in zip(pages, chosen, strict=True)]
    found = {"the scalar reference": compare(kept, reference, ("ours", "the reference"))}
    if glmocr is not None:
        theirs = run_glmocr(glmocr, list(zip(pages, chosen, strict=True)))[0]
        strict = [random_settings(seed, spare_stronger=False) for seed in range(sets)]
        for name, settings in (("glmocr, by its rules", strict), ("glmocr, by our defaults", chosen)):
            visible = [
                [i for i in ours([page], one)[0].tolist() if _on_page(page, i)]
                for page, one in zip(pages, settings, strict=True)
            ]
            found[name] = compare(visible, theirs, ("ours", "glmocr"))
    return found


def timings(pages: int, boxes: int, glmocr: Path | None, *, repeats: int = 20) -> list[Row]:
    """Processor milliseconds for pages of so many boxes each: ours to finished regions, the reference, glmocr."""
    sets = [random_boxes(seed, boxes) for seed in range(pages)]
    settings = FilterSettings()
    post = PostProcessor(settings, LABELS, "pp-doclayout-v3")

    def spent_on(answers: Sequence[RawPage]) -> float:
        def run() -> None:
            for answer, page in zip(answers, sets, strict=True):
                post.regions(answer, page.size)

        return min(_milliseconds(run) for _ in range(repeats))

    raw = [_raw(page) for page in sets]
    mine = spent_on(raw)
    rows = [Row("ours, raw outputs to regions", mine, 1.0)]
    traced = spent_on([replace(answer, masks=_ellipses(page)) for answer, page in zip(raw, sets, strict=True)])
    rows.append(Row("ours, with outlines from masks", traced, traced / mine))
    kept = min(_milliseconds(lambda: ours(sets, settings)) for _ in range(repeats))
    rows.append(Row("ours, which boxes to keep", kept, kept / mine))
    scalar = _milliseconds(lambda: [scalar_reference(page, settings) for page in sets])
    rows.append(Row("scalar reference", scalar, scalar / mine))
    if glmocr is not None:
        for name, chosen in (("per-class modes", settings), ("one mode", FilterSettings(merges={}))):
            spent = run_glmocr(glmocr, [(page, chosen) for page in sets])[1]
            rows.append(Row(f"glmocr, {name}", spent, spent / mine))
    return rows


def _raw(page: BoxSet) -> RawPage:
    """A model's raw outputs for 300 queries that propose just these boxes."""
    queries, count = 300, len(page.boxes)
    scores = np.zeros((queries, len(LABELS)), dtype=np.float32)
    scores[np.arange(count), page.classes] = page.scores
    boxes = np.full((queries, 4), 0.5, dtype=np.float32)
    boxes[:count] = page.boxes / np.tile(np.array(page.size, dtype=np.float32), 2)
    order = np.arange(queries, dtype=np.float32)
    order[:count] = page.order
    return RawPage(scores=scores, boxes=boxes, order=order)


def _ellipses(page: BoxSet) -> NDArray[np.uint8]:
    """Masks as the model gives them, 200 x 200 for the whole page: every box filled by an ellipse."""
    side = 200
    masks = np.zeros((300, side, side), dtype=np.uint8)
    scale = side / np.tile(np.array(page.size), 2)
    for mask, (x1, y1, x2, y2) in zip(masks, (page.boxes * scale).round().astype(int).tolist(), strict=False):
        centre, half = ((x1 + x2) // 2, (y1 + y2) // 2), (max(1, (x2 - x1) // 2), max(1, (y2 - y1) // 2))
        cv2.ellipse(mask, centre, half, 0, 0, 360, 1, -1)
    return np.packbits(masks, axis=2)


def _milliseconds(call: Any) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1000


def _on_page(page: BoxSet, index: int) -> bool:
    x1, y1, x2, y2 = (float(v) for v in page.boxes[index])
    return max(x1, 0) < min(x2, page.size[0]) and max(y1, 0) < min(y2, page.size[1])


def _overlap(a: Sequence[float], b: Sequence[float], extra: float) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]) + extra)
    return width * max(0.0, min(a[3], b[3]) - max(a[1], b[1]) + extra)


def _iou(a: Sequence[float], b: Sequence[float]) -> float:
    shared = _overlap(a, b, 1.0)
    sizes = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b)]
    return shared / (sizes[0] + sizes[1] - shared)


def _share(inner: Sequence[float], outer: Sequence[float]) -> float:
    size = (inner[2] - inner[0]) * (inner[3] - inner[1])
    return _overlap(inner, outer, 0.0) / size if size > 0 else 0.0


def _visible(box: Sequence[float], size: tuple[int, int]) -> float:
    return _overlap(box, (0.0, 0.0, float(size[0]), float(size[1])), 0.0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=64)
    parser.add_argument("--boxes", type=int, default=120, help="on every page")
    parser.add_argument("--sets", type=int, default=100, help="random sets to compare the results of")
    add_common_options(parser)
    arguments = parser.parse_args()
    times = timings(arguments.pages, arguments.boxes, arguments.glmocr_python)
    agreement = equality(arguments.sets, arguments.glmocr_python) if arguments.sets else {}
    tables = [
        FigureTable(
            f"{arguments.pages} pages of {arguments.boxes} boxes",
            ("all pages", "ms", "ratio"),
            tuple((row.name, row.milliseconds, row.ratio) for row in times),
        ),
        FigureTable(
            "The same boxes in the same order",
            ("ours and", "equal", "sets"),
            tuple((name, found.equal, found.sets) for name, found in agreement.items()),
        ),
    ]
    notes = [f"{name}: {difference}" for name, found in agreement.items() for difference in found.differences]
    show("layout-postprocess", tables, arguments.json, notes=notes if arguments.glmocr_python else [*notes, LEFT_OUT])


if __name__ == "__main__":
    main()
