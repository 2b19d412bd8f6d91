"""The flat page of a photograph: its pixels and places agree, and what is no page is left alone."""

import io

import numpy as np
import pytest
from PIL import Image

from pagemill.errors import MissingDependencyError
from pagemill.imaging import unwarping
from pagemill.imaging.transforms import rotate_quarter
from pagemill.imaging.unwarping import Sheet, find_sheet
from pages.camera import photograph


def page() -> np.ndarray:
    """Rows of short black strokes on white paper."""
    pixels = np.full((1000, 760, 3), 255, dtype=np.uint8)
    for top in range(100, 900, 24):
        for left in range(76, 684, 9):
            pixels[top : top + 10, left : left + 2] = 30
    return pixels


def bent_mesh(width: int, height: int) -> np.ndarray:
    """A mesh over an image of this size, bent by up to 20 pixels and nowhere folded."""
    v, u = np.meshgrid(np.linspace(0, 1, 45), np.linspace(0, 1, 31), indexing="ij")
    x = 40 + u * (width - 80) + 20 * np.sin(3 * v)
    y = 40 + v * (height - 80) + 20 * np.sin(4 * u)
    return np.stack([x, y], axis=2).astype(np.float32)


def test_a_mesh_without_bends_changes_nothing():
    pixels = np.random.default_rng(3).integers(0, 256, (90, 60, 3), dtype=np.uint8)
    corners = np.array([[(0, 0), (60, 0)], [(0, 90), (60, 90)]], dtype=np.float32)
    sheet = Sheet(corners, 60, 90)
    assert sheet.flatten(pixels).tobytes() == pixels.tobytes()
    assert sheet.place(np.array([(12.5, 80.25), (0, 0), (60, 90)])).tolist() == [[12.5, 80.25], [0, 0], [60, 90]]


def test_places_are_those_that_the_pixels_come_from():
    height, width = 700, 500
    y, x = np.mgrid[0:height, 0:width]
    told = np.stack([x // 2, y // 3, x * 0], axis=2).astype(np.uint8)  # each pixel says where it is
    sheet = Sheet(bent_mesh(width, height), 420, 620)
    flat = sheet.flatten(told)
    points = np.random.default_rng(5).integers(0, (420, 620), (200, 2))
    places = sheet.place(points + 0.5) - 0.5
    said = np.array([flat[row, column, :2] for column, row in points], dtype=np.float64) * (2, 3)
    assert np.abs(places - said - (0.5, 1)).max() < 3


def test_places_outside_of_the_flat_page_are_at_its_edge():
    sheet = Sheet(bent_mesh(500, 700), 420, 620)
    far, corner = sheet.place(np.array([(9e9, 9e9), (420.0, 620.0)]))
    assert far.tolist() == corner.tolist()


@pytest.mark.parametrize(
    "lies", [pytest.param(False, id="upright", marks=pytest.mark.slow), pytest.param(True, id="on its side")]
)
def test_a_photographed_page_is_found_in_its_photograph(lies):
    taken = photograph(page(), 0.6, 4)
    pixels = np.asarray(Image.open(io.BytesIO(taken.jpeg)).convert("RGB"))
    inner = np.array([(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.9), (0.5, 0.5)])
    there = taken.map([(x, y) for x, y in inner])
    width = pixels.shape[1]
    if lies:  # turned anticlockwise
        pixels = rotate_quarter(pixels, 270)
        there = np.stack([there[:, 1], width - there[:, 0]], axis=1)
    sheet = find_sheet(pixels, (0, 0, *pixels.shape[1::-1]))
    assert sheet is not None
    assert (sheet.width > sheet.height) == lies
    # Where the corners of the text block lie on the flat page: the nearest of its points.
    v, u = np.mgrid[0 : sheet.height : 4, 0 : sheet.width : 4]
    grid = np.stack([u.ravel(), v.ravel()], axis=1).astype(np.float64)
    placed = sheet.place(grid)
    flat = np.array([grid[np.linalg.norm(placed - point, axis=1).argmin()] for point in there])
    if lies:
        flat = np.stack([sheet.height - flat[:, 1], flat[:, 0]], axis=1)
    (left, top), (right, bottom), size = flat[0], flat[2], max(sheet.width, sheet.height)
    # The block is a rectangle again, to 2 % of the page.
    assert abs(flat[3, 0] - left) < 0.02 * size and abs(flat[1, 0] - right) < 0.02 * size
    assert abs(flat[1, 1] - top) < 0.02 * size and abs(flat[3, 1] - bottom) < 0.02 * size


def seen_from_a_slant(width: int, height: int) -> np.ndarray:
    """The mesh of a sheet of 0.7 by 1, turned by 40 degrees about its upright axis, in shares of its photograph."""
    v, u = np.meshgrid(np.linspace(-0.5, 0.5, 45), np.linspace(-0.35, 0.35, 31), indexing="ij")
    x, z = u * np.cos(0.7), 0.92 + u * np.sin(0.7)
    focal = 0.85 * max(width, height)
    return np.stack([0.5 + focal * x / z / width, 0.5 + focal * v / z / height], axis=2).astype(np.float32)


def test_a_page_seen_from_a_slant_gets_its_own_shape_back(monkeypatch):
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: seen_from_a_slant(1100, 2000))
    sheet = find_sheet(np.zeros((2000, 1100, 3), np.uint8), (0, 0, 1100, 2000))
    assert sheet is not None
    # Of its 30 cells by 44 each has grown by two.
    assert sheet.width / sheet.height == pytest.approx(0.7 * (32 / 30) / (46 / 44), rel=0.03)


def test_only_the_area_is_looked_at(monkeypatch):
    seen = []
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: seen.append(pixels.shape) or straight())
    sheet = find_sheet(np.zeros((900, 600, 3), np.uint8), (100, 200, 400, 700))
    assert seen == [(500, 300, 3)]
    assert sheet is not None
    middle = sheet.place(np.array([(sheet.width / 2, sheet.height / 2)]))
    assert middle[0] == pytest.approx((250, 450), abs=1)


def straight() -> np.ndarray:
    """The mesh of a page that fills all but a tenth on each side."""
    v, u = np.meshgrid(np.linspace(0.1, 0.9, 45), np.linspace(0.1, 0.9, 31), indexing="ij")
    return np.stack([u, v], axis=2).astype(np.float32)


def test_a_page_far_away_is_looked_at_again_from_nearer(monkeypatch):
    """Each time the network sees a page in the middle half of what it is shown: 0.36 of its area, then all of it."""
    seen = []

    def predicted(pixels: np.ndarray) -> np.ndarray:
        seen.append(pixels.shape[:2])
        return (straight() - 0.5) * (0.75 if len(seen) == 1 else 1.0) + 0.5

    monkeypatch.setattr(unwarping, "_predicted", predicted)
    sheet = find_sheet(np.zeros((1000, 600, 3), np.uint8), (0, 0, 600, 1000))
    assert seen == [(1000, 600), (660, 396)]
    assert sheet is not None
    assert sheet.place(np.array([(sheet.width / 2, sheet.height / 2)]))[0] == pytest.approx((300, 500), abs=2)


def test_it_is_not_looked_at_without_end(monkeypatch):
    seen = []
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: seen.append(1) or (straight() - 0.5) * 0.6 + 0.5)
    assert find_sheet(np.zeros((1000, 600, 3), np.uint8), (0, 0, 600, 1000)) is not None
    assert len(seen) == 3


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(straight()[:, ::-1], id="mirrored"),
        pytest.param(straight() * 0.2, id="tiny"),
        pytest.param(np.where(np.arange(45)[:, None, None] == 7, np.nan, straight()), id="not a number"),
        pytest.param(np.concatenate([straight()[:20], straight()[10:35]]), id="folded over"),
    ],
)
def test_what_is_no_page_is_not_unwarped(monkeypatch, nodes):
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: nodes.astype(np.float32))
    assert find_sheet(np.zeros((900, 600, 3), np.uint8), (0, 0, 600, 900)) is None


def test_the_flat_page_is_no_larger_than_twice_its_photograph(monkeypatch):
    v, u = np.meshgrid(np.linspace(-1, 2, 45), np.linspace(-1, 2, 31), indexing="ij")
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: np.stack([u, v], axis=2).astype(np.float32))
    sheet = find_sheet(np.zeros((900, 600, 3), np.uint8), (0, 0, 600, 900))
    assert sheet is not None
    assert sheet.width * sheet.height <= 2.01 * 600 * 900


def test_a_build_without_the_model_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(unwarping, "MODEL", tmp_path / "missing.onnx")
    with pytest.raises(MissingDependencyError) as raised:
        find_sheet(page(), (0, 0, 760, 1000))
    assert "--photographs never" in (raised.value.remedy or "")


def test_writing_beyond_the_mesh_is_kept():
    sheet_nodes = unwarping._with_border(bent_mesh(500, 700))
    assert sheet_nodes.shape == (47, 33, 2)
    assert sheet_nodes[1:-1, 1:-1].tolist() == bent_mesh(500, 700).tolist()
    assert (sheet_nodes[0, :, 1] < sheet_nodes[1, :, 1]).all() and (sheet_nodes[:, 0, 0] < sheet_nodes[:, 1, 0]).all()
