"""What was found on a flat page, put back into the photograph that the page was made of."""

import numpy as np
import pytest

from pagemill.config.modes import PhotographMode
from pagemill.document.labels import Label
from pagemill.document.page import ImageCrop, PageResult, Region, TextLine, Word
from pagemill.imaging import unwarping
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.transforms import rotate_quarter
from pagemill.imaging.unwarping import Sheet
from pagemill.parsing import photographs
from pagemill.parsing.photographs import Photograph, level_photograph, unwarp_page
from pagemill.recognition.base import DetectedLine

WIDTH, HEIGHT = 600, 900
"""Of the photograph."""
FLAT = (400, 700)


def mesh(bow: float = 0.0) -> np.ndarray:
    """A page 100 pixels inside of the photograph, whose rows bow upwards in their middle by so many pixels."""
    v, u = np.meshgrid(np.linspace(0, 1, 71), np.linspace(0, 1, 41), indexing="ij")
    x = 100 + u * FLAT[0]
    y = 100 + v * FLAT[1] - bow * np.sin(np.pi * u)
    return np.stack([x, y], axis=2).astype(np.float32)


def photograph(bow: float = 0.0) -> Photograph:
    return Photograph(Sheet(mesh(bow), *FLAT), WIDTH, HEIGHT, np.zeros((90, 60, 3), np.uint8))


def record(box=(40.0, 200.0, 360.0, 230.0), rotation: int = 0, size=FLAT) -> PageResult:
    """One region with one line of two words, which is also a crop."""
    x1, y1, x2, y2 = box
    middle = (x1 + x2) / 2
    words = (Word("left", (x1, y1, middle - 5, y2)), Word("right", (middle + 5, y1, x2, y2)))
    line = TextLine(text="left right", box=box, words=words)
    region = Region(index=0, label=Label.TEXT, bbox=box, bbox_2d=(0, 0, 0, 0), lines=(line,))
    crop = ImageCrop(path="crops/a.jpg", bbox=(0, 0, 0, 0), label=Label.TEXT, region=0)
    return PageResult(
        page_id="a", page_idx=0, doc_id="a", source="a", page_number=1, width=size[0], height=size[1],
        rotation=rotation, regions=[region], image_crops=[crop],
    )  # fmt: skip


def test_boxes_lie_on_the_photograph():
    page = record()
    photograph().restore(page)
    (region,) = page.regions
    (line,) = region.lines
    assert (page.width, page.height, page.unwarped) == (WIDTH, HEIGHT, "uvdoc")
    assert region.bbox == pytest.approx((140, 300, 460, 330), abs=0.1)
    assert region.bbox_2d == (233, 333, 767, 367)
    assert line.box == pytest.approx((140, 300, 460, 330), abs=0.1)
    assert [word.box for word in line.words] == [
        pytest.approx((140, 300, 295, 330), abs=0.1),
        pytest.approx((305, 300, 460, 330), abs=0.1),
    ]
    assert page.image_crops[0].bbox == region.bbox_2d


def test_a_bent_line_is_held_whole_by_its_quadrilateral_and_its_region_by_its_outline():
    page = record()
    photograph(bow=20).restore(page)
    (region,) = page.regions
    (line,) = region.lines
    assert line.polygon is not None and len(line.polygon) == 4
    # The middle of the line's upper edge lies 20 pixels higher, its ends sin(36 degrees) of that.
    top = min(y for _, y in line.polygon)
    assert top == pytest.approx(280, abs=1) == line.box[1]
    assert region.polygon is not None and len(region.polygon) > 8
    assert region.bbox[1] == pytest.approx(280, abs=1)
    assert line.words[0].box == pytest.approx((140, 280, 295, 330 - 20 * np.sin(0.1 * np.pi)), abs=0.2)


@pytest.mark.parametrize("rotation", [90, 180])
def test_a_page_that_was_turned_upright_is_put_into_the_photograph_turned_likewise(rotation):
    """The marked pixels of the photograph, turned, are where the box says."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    taken = photograph(bow=15)
    flat_upright = (FLAT[1], FLAT[0]) if rotation % 180 else FLAT
    box = (50.0, 60.0, 250.0, 90.0)
    # Marked on the flat page as turned, turned back, and seen where the sheet says.
    marked = np.zeros((flat_upright[1], flat_upright[0]), np.uint8)
    marked[60:90, 50:250] = 1
    lying = rotate_quarter(np.repeat(marked[..., None], 3, axis=2), 360 - rotation)[..., 0]
    for row, column in zip(*np.nonzero(lying), strict=True):
        x, y = taken.sheet.place(np.array([(column + 0.5, row + 0.5)]))[0]
        pixels[int(y), int(x)] = 255
    turned = rotate_quarter(pixels, rotation)[..., 0]
    rows, columns = np.nonzero(turned)
    page = record(box, rotation, flat_upright)
    taken.restore(page)
    assert (page.height, page.width) == turned.shape
    assert page.regions[0].bbox == pytest.approx(
        (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1), abs=1.5
    )


def test_a_box_comes_back_from_the_photograph_to_within_a_pixel():
    taken = photograph(bow=25)
    corners = np.array([(33.0, 41.0), (380.0, 55.0), (200.0, 650.0)])
    placed = taken.sheet.place(corners)
    for (x, y), (u, v) in zip(corners, placed, strict=True):
        back = (u - 100, v - 100 + 25 * np.sin(np.pi * (u - 100) / FLAT[0]))
        assert back == pytest.approx((x, y), abs=0.5)


@pytest.fixture
def network(monkeypatch):
    """A network that sees the page in the middle of the photograph; what it was shown."""
    shown = []
    shares = (mesh() / (WIDTH, HEIGHT)).astype(np.float32)
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: shown.append(pixels) or shares)
    return shown


def test_always_unwarps_what_is_no_photograph_and_auto_does_not(network):
    page = DecodedPage(pixels=np.full((HEIGHT, WIDTH, 3), 255, np.uint8), dpi=200.0)
    assert unwarp_page(page, PhotographMode.AUTO, previewed=False) is None
    assert not network
    found = unwarp_page(page, PhotographMode.ALWAYS, previewed=False)
    assert found is not None and found[0].dpi == 200.0
    assert found[0].pixels.shape[:2] != page.pixels.shape[:2]
    assert found[1].small.size == 0


def test_the_photograph_is_kept_small_for_the_report(network, monkeypatch):
    monkeypatch.setattr(photographs, "photographed_area", lambda pixels: (0.0, 0.0, WIDTH, HEIGHT))
    pixels = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    found = unwarp_page(DecodedPage(pixels=pixels), PhotographMode.AUTO, previewed=True)
    assert found is not None
    assert found[1].turned(0).tobytes() == pixels.tobytes()
    assert found[1].turned(90).shape == (WIDTH, HEIGHT, 3)


def test_a_photograph_of_no_page_is_read_as_it_is(monkeypatch):
    monkeypatch.setattr(unwarping, "_predicted", lambda pixels: np.zeros((45, 31, 2), np.float32))
    page = DecodedPage(pixels=np.zeros((HEIGHT, WIDTH, 3), np.uint8))
    assert unwarp_page(page, PhotographMode.ALWAYS, previewed=False) is None


def detected(top: float, left: float = 20, right: float = 380, slope: float = 0.0, middle=()) -> DetectedLine:
    fall = slope * (right - left)
    corners = ((left, top), (right, top + fall), (right, top + fall + 16), (left, top + 16))
    return DetectedLine(polygon=corners, score=1.0, middle=middle)


def test_the_flat_page_is_made_anew_of_the_photograph_where_lines_slope():
    taken = np.random.default_rng(2).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    before = photograph()
    flat = DecodedPage(pixels=before.sheet.flatten(taken))
    lit = np.full((FLAT[1], FLAT[0], 3), 255, np.uint8)
    lines = [detected(top, slope=0.03) for top in range(40, 600, 30)]
    page, after = level_photograph((flat, before), taken, lit, lines)
    # In the middle of the lines nothing moves; their ends come from higher and from lower.
    left, middle, right = after.sheet.place(np.array([(20.0, 300.0), (200.0, 300.0), (380.0, 300.0)]))
    assert right[1] - left[1] == pytest.approx(0.03 * 360, abs=3)
    assert middle == pytest.approx((300, 400), abs=1.5)
    assert page.pixels.tobytes() == after.sheet.flatten(taken).tobytes()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([], id="none"),
        pytest.param([detected(100, 20, 70, slope=0.2)], id="too short to slope"),
        pytest.param([detected(100, middle=((30.0, 108.0), (200.0, 108.0), (370.0, 108.0)))], id="level"),
    ],
)
def test_a_page_whose_lines_are_level_or_tell_nothing_stays(lines):
    flat = (DecodedPage(pixels=np.full((FLAT[1], FLAT[0], 3), 255, np.uint8)), photograph())
    assert level_photograph(flat, np.zeros((HEIGHT, WIDTH, 3), np.uint8), flat[0].pixels, lines) == flat
