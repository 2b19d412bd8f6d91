"""Layout detection: mean average precision as COCO defines it, computed by faster-coco-eval."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from importlib import metadata

import msgspec

from pagemill.errors import InputError

_FAR = 1e7
"""Pixels: no page is as large."""
Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""


class LayoutBox(msgspec.Struct, frozen=True):
    """A region on a page, true or predicted."""

    label: str
    box: Box
    confidence: float = 1.0
    """Score of a predicted region."""


class LayoutScore(msgspec.Struct, frozen=True, kw_only=True):
    """Mean average precision over labels of the truth. None: unavailable, there is no true region."""

    map: float | None
    """Mean over intersections over union of .50, .55, ... .95."""
    map_50: float | None
    map_75: float | None
    by_label: dict[str, float]
    """Average precision of each true label."""
    pages: int
    regions: int
    """True ones."""
    scorer: str


def mean_average_precision(
    predicted: Mapping[str, Sequence[LayoutBox]], truth: Mapping[str, Sequence[LayoutBox]]
) -> LayoutScore:
    """Score predicted layouts. A page without a prediction has none of its regions found.

    Args:
        predicted: Regions by page. Labels that the truth does not have are ignored.
        truth: Regions by page.

    Raises:
        InputError: A page was predicted that the truth does not have, or a box or confidence is not a number.
    """
    from faster_coco_eval import COCO, COCOeval_faster

    if unknown := sorted(set(predicted) - set(truth)):
        raise InputError(f"the truth has no page {unknown[0]!r}", remedy="Score predictions of the same pages.")
    labels = sorted({box.label for boxes in truth.values() for box in boxes})
    regions = sum(map(len, truth.values()))
    stamp = f"faster-coco-eval {metadata.version('faster-coco-eval')} (COCO)"
    if not labels:
        return LayoutScore(map=None, map_50=None, map_75=None, by_label={}, pages=len(truth), regions=0, scorer=stamp)
    images = {page: number for number, page in enumerate(truth, start=1)}
    categories = {label: number for number, label in enumerate(labels, start=1)}
    data = {
        "images": [{"id": number} for number in images.values()],
        "categories": [{"id": number, "name": label} for label, number in categories.items()],
        "annotations": [
            {"id": number, "iscrowd": 0, **_annotation(images[page], categories[each.label], each)}
            for number, (page, each) in enumerate(
                ((page, box) for page, boxes in truth.items() for box in boxes), start=1
            )
        ],
    }
    found = [
        {**_annotation(images[page], categories[box.label], box), "score": box.confidence}
        for page, boxes in predicted.items()
        for box in boxes
        if box.label in categories
    ]
    if not found:
        none = dict.fromkeys(labels, 0.0)
        return LayoutScore(
            map=0.0, map_50=0.0, map_75=0.0, by_label=none, pages=len(truth), regions=regions, scorer=stamp
        )
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(data)
        evaluation = COCOeval_faster(coco, coco.loadRes(found), "bbox", print_function=lambda *_: None)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    precision = evaluation.eval["precision"][:, :, :, 0, 2]  # thresholds, recalls, labels; all areas, 100 a page
    return LayoutScore(
        map=float(evaluation.stats[0]),
        map_50=float(evaluation.stats[1]),
        map_75=float(evaluation.stats[2]),
        by_label={label: float(precision[:, :, number - 1].mean()) for label, number in categories.items()},
        pages=len(truth),
        regions=regions,
        scorer=stamp,
    )


def _annotation(image: int, category: int, region: LayoutBox) -> dict[str, object]:
    left, top, right, bottom = region.box
    width, height = right - left, bottom - top
    # A comparison with NaN is false, so that it is refused, too.
    inside = all(abs(each) < _FAR for each in region.box)
    if not (inside and width >= 0 and height >= 0 and 0 <= region.confidence <= 1):
        raise InputError(f"a region {region.label!r} has the box {region.box} and confidence {region.confidence}")
    return {"image_id": image, "category_id": category, "bbox": [left, top, width, height], "area": width * height}
