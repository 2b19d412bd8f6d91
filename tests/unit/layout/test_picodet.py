import numpy as np
import pytest

from pagemill.document.labels import Label
from pagemill.layout.label_map import labels_of
from pagemill.layout.onnx_models import PicoDet

STRIDES = (8, 16, 32, 64)
CDLA_NAMES = (
    *("text", "title", "figure", "figure_caption", "table"),
    *("table_caption", "header", "footer", "reference", "equation"),
)


def outputs(size: tuple[int, int], classes: int) -> list[np.ndarray]:
    cells = [(-(-size[0] // s)) * (-(-size[1] // s)) for s in STRIDES]
    scores = [np.zeros((1, n, classes), np.float32) for n in cells]
    return scores + [np.zeros((1, n, 32), np.float32) for n in cells]


def test_a_cell_decodes_to_the_box_its_distributions_describe() -> None:
    reader = PicoDet("image", (800, 608), labels_of(CDLA_NAMES))
    arrays = outputs((800, 608), 10)
    row, column = 10, 7  # of stride 16, centre (7.5 * 16, 10.5 * 16) = (120, 168)
    cell = row * 38 + column
    arrays[1][0, cell, 4] = 0.9
    sharp = np.full((4, 8), -50.0, np.float32)
    sharp[range(4), [1, 2, 3, 4]] = 50.0  # left, top, right, bottom in strides
    arrays[5][0, cell] = sharp.reshape(-1)
    found = reader.decode(arrays, 1216, 1600, 0.4)
    np.testing.assert_allclose(found.boxes, [[2 * (120 - 16), 2 * (168 - 32), 2 * (120 + 48), 2 * (168 + 64)]])
    assert found.classes.tolist() == [4]
    assert found.scores == pytest.approx([0.9])


def test_an_even_distribution_is_the_middle_distance() -> None:
    reader = PicoDet("image", (64, 64), labels_of(CDLA_NAMES))
    arrays = outputs((64, 64), 10)
    arrays[3][0, 0, 0] = 1.0
    found = reader.decode(arrays, 64, 64, 0.4)
    np.testing.assert_allclose(found.boxes, [[32 - 3.5 * 64, 32 - 3.5 * 64, 32 + 3.5 * 64, 32 + 3.5 * 64]])


def test_no_score_gives_no_candidates_and_nan_is_no_score() -> None:
    reader = PicoDet("image", (64, 64), labels_of(CDLA_NAMES))
    arrays = outputs((64, 64), 10)
    arrays[0][:] = np.nan
    assert len(reader.decode(arrays, 64, 64, 0.4).boxes) == 0


def test_the_page_is_stretched_and_normalised() -> None:
    reader = PicoDet("image", (800, 608), labels_of(CDLA_NAMES))
    white = reader.inputs(np.full((100, 300, 3), 255, np.uint8))["image"]
    assert white.shape == (1, 3, 800, 608)
    assert white.dtype == np.float32
    np.testing.assert_allclose(white[0, :, 0, 0], (1 - np.array([0.485, 0.456, 0.406])) / [0.229, 0.224, 0.225], 1e-4)


def test_cdla_names_map_to_our_labels() -> None:
    assert labels_of(CDLA_NAMES)[1] is Label.PARAGRAPH_TITLE
    assert labels_of(CDLA_NAMES)[8] is Label.REFERENCE_CONTENT
    assert labels_of(("List-item", "plain text", "unheard of")) == (Label.TEXT,) * 3
    assert labels_of(tuple(Label)) == tuple(Label)
