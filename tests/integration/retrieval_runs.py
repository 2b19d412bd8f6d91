"""Run directories with vectors that say what they are of."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from synthetic_run import page, region

from pagemill.document.labels import Label
from pagemill.document.page import Furniture, PageResult
from pagemill.embedding.base import EngineIdentity, normalised
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import FOLDER, Part, VectorPaths, VectorsInfo
from pagemill.embedding.writing import VectorWriter
from pagemill.store.reading import RunReader

DIMENSION = 64
IDENTITY = EngineIdentity(engine="test", model="letters", dimension=DIMENSION)


def letters(text: str) -> np.ndarray:
    """A vector of the letters of a text, in which order plays no part."""
    counts = np.zeros(DIMENSION)
    for character in text or "?":
        counts[ord(character) % DIMENSION] += 1
    return normalised(counts[np.newaxis])[0]


def pages() -> list[PageResult]:
    return [
        page(
            "mill", 1, [region(0, Label.DOC_TITLE, "The paper mill"), region(1, Label.TEXT, "Water turns the wheel.")]
        ),
        page(
            "mill",
            2,
            [
                region(0, Label.TEXT, "The loft has shutters."),
                region(1, Label.IMAGE),
                region(2, Label.FIGURE_TITLE, "Figure 1: The tail race", caption_of=1),
            ],
        ),
        page(
            "공고",
            1,
            [
                region(0, Label.TEXT, "전통 한지 체험교실 참가자 모집"),
                region(1, Label.HEADER, "물레시 공보", furniture=Furniture.PROVEN),
            ],
        ),
        page("공고", 2, [region(0, Label.TEXT, "수강료는 30,000원입니다.")], languages=("ko",)),
    ]


def embed(
    out: Path,
    part: Part,
    *,
    dtype: str = "float32",
    vector: Callable[[str], np.ndarray] = letters,
    only: Callable[[str], bool] = lambda page_id: True,
    identity: EngineIdentity = IDENTITY,
) -> None:
    info = VectorsInfo(part=part, identity=identity, dtype=dtype)
    with RunReader.open(out) as reader, VectorWriter(VectorPaths(out / FOLDER, part), info) as writer:
        found = [each for each_page in reader.pages() for each in contents(each_page, part, images=False)]
        found = [each for each in found if only(each.row.key.page_id)]
        new = [each for each in found if not writer.has(each.row)]
        if new:
            writer.append([each.row for each in new], np.stack([vector(each.text or each.row.digest) for each in new]))
        writer.publish([each.row for each in found])
