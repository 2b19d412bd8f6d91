"""Lines of labels and values at their places on a page, and the rows that are found in them."""

from collections.abc import Sequence

import numpy as np

from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.pairs.regions import with_pairs

GOODS = (("番茄", "9.48"), ("2 x 17,660", "35,320"), ("奶酪", "29.70"), ("合计", "1,258.77"))
LEFT, RIGHT = 50, 520


FIELDS = (("성명", "김영희"), ("발급 장소", "박물관"), ("신청 사유", "기한 연기"), ("시설", "이민정"), ("합계", "2227"))


def blank() -> np.ndarray:
    return np.full((900, 600, 3), 255, np.uint8)


def line(text: str, x1: float, y: float, x2: float | None = None) -> TextLine:
    """A line 30 pixels high, of characters 15 wide; it ends at the second place where there is one."""
    width = 15 * len(text)
    x1, x2 = (x1, x1 + width) if x2 is None else (x2 - width, x2)
    return TextLine(text=text, box=(x1, y, x2, y + 30), engine="drawn")


def row_of(y: float, *parts: tuple[str, float]) -> TextLine:
    """A line of words far apart, as detection joins them."""
    words = tuple(Word(text, (x, y, x + 15 * len(text), y + 30)) for text, x in parts)
    box = (words[0].box[0], y, words[-1].box[2], y + 30)
    return TextLine(text=" ".join(word.text for word in words), box=box, words=words, engine="drawn")


def pairs_of(goods: tuple[tuple[str, str], ...] = GOODS, top: float = 150.0, pitch: float = 38.0) -> list[TextLine]:
    lines = [line(label, LEFT, top + pitch * row) for row, (label, _) in enumerate(goods)]
    return lines + [line(value, 0, top + pitch * row + 7, RIGHT) for row, (_, value) in enumerate(goods)]


def written(rows: Sequence[tuple[tuple[str, float], ...]], pitch: float = 38) -> list[TextLine]:
    """A line for each text at its place."""
    return [line(text, x, 150 + pitch * row) for row, parts in enumerate(rows) for text, x in parts]


def detected_columns() -> list[DetectedRegion]:
    """What a layout model makes of rows: a column of labels and one of numbers."""
    boxes = ((LEFT - 5, 140, 300, 400), (380, 140, RIGHT + 5, 400))
    return [DetectedRegion(box=box, label=Label.TEXT, score=0.8, source="onnx") for box in boxes]


def found_in(
    lines: list[TextLine], regions: list[DetectedRegion], pixels: np.ndarray | None = None
) -> list[tuple[Label, list[list[str]]]]:
    kept, tables = with_pairs(regions, {}, lines, blank() if pixels is None else pixels)
    assert all(kept[index].source == "pairs" for index in tables)
    return [(kept[index].label, table.grid()) for index, table in tables.items()]


def fields_of(lines: list[TextLine]) -> list[list[list[str]]]:
    """Rows where typography does not tell them."""
    region = DetectedRegion(box=(40, 140, 990, 600), label=Label.TEXT, score=0.8, source="onnx")
    return [table.grid() for table in with_pairs([region], {}, lines, blank(), with_fields=True)[1].values()]
