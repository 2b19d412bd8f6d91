"""A camera: turns the image of a page into a photograph of the page, and carries points along.

The page is a bent sheet on a table top. Curl bends it about one axis, folds and creases lift it; a pinhole camera above
looks at it from a slant. Light falls from a side, lamps and shadows lie over it; lens, sensor and JPEG do the rest.
A scene adds what people do with pages: `SCENES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_GRID = (161, 121)
"""Nodes of the sheet's displacement, rows and columns."""
SCENES = ("book", "creases", "hand", "pattern", "screen")
"""A page beside the gutter of a thick book; a sheet that was crumpled; one held in front of a room; one far away on a
patterned ground; a page on the display of a computer."""
_ROUNDS = 12
"""Fixed-point rounds that invert the displacement; it is a contraction, so a few suffice."""


@dataclass(frozen=True, slots=True)
class Photograph:
    """What the camera made."""

    jpeg: bytes
    size: tuple[int, int]
    """Width and height in pixels."""
    _homography: Floats = field(repr=False)
    _displacement: Floats = field(repr=False)

    def map(self, points: Sequence[tuple[float, float]]) -> NDArray[np.float64]:
        """Where points of the page are in the photograph.

        Args:
            points: In fractions of the page's width and height.

        Returns:
            Pixels of the photograph, shape (n, 2).
        """
        flat = np.asarray(points, dtype=np.float32).reshape(-1, 1, 2)
        moved = flat + _sample(self._displacement, flat)
        mapped = cv2.perspectiveTransform(moved.astype(np.float64), self._homography.astype(np.float64))
        return np.asarray(mapped, dtype=np.float64).reshape(-1, 2)

    def polygon(self, box: tuple[float, float, float, float], steps: int = 8) -> NDArray[np.float64]:
        """The outline of a box of the page, in pixels of the photograph; its sides are curved.

        Args:
            box: In fractions of the page's width and height.
            steps: Points a side.
        """
        x1, y1, x2, y2 = box
        t = np.linspace(0, 1, steps, endpoint=False)
        sides = [
            (x1 + (x2 - x1) * t, np.full(steps, y1)), (np.full(steps, x2), y1 + (y2 - y1) * t),
            (x2 - (x2 - x1) * t, np.full(steps, y2)), (np.full(steps, x1), y2 - (y2 - y1) * t),
        ]  # fmt: skip
        points = np.concatenate([np.stack(side, axis=1) for side in sides])
        return self.map([(float(x), float(y)) for x, y in points])


def photograph(page: NDArray[Any], severity: float, seed: int, scene: str = "") -> Photograph:
    """Photograph a page.

    Args:
        page: Its pixels, uint8, shape (height, width, 3), BGR.
        severity: 0 hardly disturbs it (flat, straight from above, even light); 1 is as bad as photographs get that a
            person still reads. Text detection and recognition should survive 0.5.
        seed: The same page, severity, seed and scene make the same bytes.
        scene: One of `SCENES`; empty for a page on a table top.

    Raises:
        ValueError: The severity is not between 0 and 1, or the scene is unknown.
    """
    if not 0 <= severity <= 1:
        raise ValueError("severity is between 0 and 1")
    if scene not in ("", *SCENES):
        raise ValueError(f"a scene is one of {', '.join(SCENES)}")
    random = np.random.default_rng((seed, 7919))
    of_scene = np.random.default_rng((seed, 104729, SCENES.index(scene))) if scene else random  # draws nothing without
    height, width = page.shape[:2]
    aspect = height / width
    displacement, shade = _bend(random, severity, aspect, _lift(of_scene, severity, aspect, scene), scene != "screen")
    out_height = int(max(height, width) * 1.12)
    out_width = int(out_height * (0.75 if aspect > 1 else 4 / 3))
    closeness = of_scene.uniform(0.7, 0.85) if scene in ("hand", "pattern") else 1.0
    homography = _view(random, severity, aspect, out_width, out_height, closeness)
    mapping = _inverse(homography, displacement, out_width, out_height)

    # Pixels of the page; outside of it the table top shows, with the page's shadow beside its edge.
    map_x = mapping[..., 0] * width - 0.5
    map_y = mapping[..., 1] * height - 0.5
    sheet = cv2.remap(page, map_x, map_y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE).astype(np.float32)
    paper = random.uniform((0.90, 0.95, 0.97), 1.0).astype(np.float32)  # paper is not quite white, rather yellow
    sheet *= 1 - (1 - paper) * severity
    sheet *= _sample(shade[..., None], mapping)
    inside = _inside(mapping, width)
    table = _table_top(random, out_width, out_height)
    if scene in _GROUNDS:
        table = _GROUNDS[scene](of_scene, out_width, out_height)
    if scene == "screen":
        sheet *= _subpixels(of_scene, severity, mapping, width)
    dark = cv2.GaussianBlur(np.roll(inside, (6, 8), (0, 1)), (0, 0), 9)
    seen = table * (1 - 0.45 * dark[..., None])
    seen += (sheet - seen) * inside[..., None]
    if scene == "hand":
        _hold(of_scene, seen, homography, aspect)

    seen *= _light(random, severity, out_width, out_height)
    seen = _lens(random, severity, seen)
    quality = int(95 - 50 * severity * random.uniform(0.6, 1))
    done, data = cv2.imencode(".jpg", np.clip(seen, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return Photograph(bytes(data), (out_width, out_height), homography, displacement)


def _bend(
    random: np.random.Generator, severity: float, aspect: float, more: Floats | float, bends: bool
) -> tuple[Floats, Floats]:
    """Displacement of the sheet's points as seen from above, in fractions; and its shading.

    Args:
        random: Decides.
        severity: Of the photograph.
        aspect: Height of the page over its width.
        more: Added to its lift.
        bends: Whether it is of paper.
    """
    rows, columns = _GRID
    x, y = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, aspect, rows))  # width is 1
    lift = np.zeros_like(x)
    # Curl: a page of an open book, or a sheet that was rolled; about an axis that is nearly upright or nearly level.
    axis = random.normal(0, 0.12) + (np.pi / 2 if random.random() < 0.3 else 0)
    along = (x - 0.5) * np.cos(axis) + (y - aspect / 2) * np.sin(axis)
    along = (along - along.min()) / np.ptp(along)
    if random.random() < 0.5:
        gutter = along if random.random() < 0.5 else 1 - along
        lift += 0.26 * severity * random.uniform(0.5, 1) * np.sin(np.pi * np.clip(gutter, 0, 1) ** 1.8)
    else:
        lift += 0.18 * severity * random.uniform(0.4, 1) * np.sin(np.pi * along * random.uniform(0.8, 1.6))
    # Folds: a letter folded in two or three does not lie flat again.
    for _ in range(int(random.integers(0, 1 + round(3 * severity)))):
        level = random.random() < 0.6
        distance = (y / aspect if level else x) - random.choice((1 / 3, 1 / 2, 2 / 3)) - random.normal(0, 0.02)
        distance = distance + random.normal(0, 0.03) * ((x if level else y) - 0.5)
        depth = severity * random.uniform(0.012, 0.042) * random.choice((-1, 1))
        lift += depth * np.clip(1 - np.abs(distance) / random.uniform(0.12, 0.3), 0, 1)
    # Creases: short, sharp, in any direction.
    for _ in range(round(12 * severity * random.random())):
        cx, cy, angle = random.uniform(0.05, 0.95), random.uniform(0.05, 0.95) * aspect, random.uniform(0, np.pi)
        u = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
        v = -(x - cx) * np.sin(angle) + (y - cy) * np.cos(angle)
        length = random.uniform(0.05, 0.25)
        ridge = np.clip(1 - np.abs(v) / random.uniform(0.015, 0.04), 0, 1) * np.exp(-((u / length) ** 2))
        lift += 0.009 * severity * ridge * random.choice((-1, 1))
    # Waves of damp or handled paper.
    waves = cv2.resize(random.normal(0, 1, (6, 5)), (columns, rows), interpolation=cv2.INTER_CUBIC)
    lift += 0.016 * severity * waves
    lift = lift * bends + more

    slope_y, slope_x = np.gradient(lift, aspect / (rows - 1), 1 / (columns - 1))
    # A bent sheet keeps its length, so its points move together; in the direction of the slope.
    short_x = np.cumsum(1 - 1 / np.sqrt(1 + slope_x**2), axis=1) / (columns - 1)
    short_y = np.cumsum(1 - 1 / np.sqrt(1 + slope_y**2), axis=0) * aspect / (rows - 1)
    moved_x = x - (short_x - short_x[:, -1:] / 2)
    moved_y = y - (short_y - short_y[-1:] / 2)
    # The camera stands over the middle, or a little beside it: what is lifted moves away from the point below it.
    camera_x = 0.5 + severity * random.uniform(-0.35, 0.35)
    camera_y = aspect / 2 + severity * random.uniform(-0.2, 0.5)
    distance_up = random.uniform(1.6, 2.4)
    factor = lift / (distance_up - lift)
    moved_x += factor * (moved_x - camera_x)
    moved_y += factor * (moved_y - camera_y)
    displacement = np.stack([moved_x - x, (moved_y - y) / aspect], axis=-1).astype(np.float32)

    angle = random.uniform(0, 2 * np.pi)
    light = np.array([np.cos(angle), np.sin(angle), random.uniform(1.0, 1.8)])
    light /= np.linalg.norm(light)
    normal = np.stack([-slope_x, -slope_y, np.ones_like(lift)], axis=-1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    shade = np.clip((normal @ light) / light[2], 0.25, 1.25)
    return displacement, cv2.GaussianBlur(shade.astype(np.float32), (3, 3), 0)


def _lift(random: np.random.Generator, severity: float, aspect: float, scene: str) -> Floats | float:
    """How far a scene lifts the points of the sheet beyond what a table top does."""
    rows, columns = _GRID
    x, y = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, aspect, rows))
    if scene == "book":  # steep at the gutter, flat at the other edge
        from_gutter = (x if random.random() < 0.5 else 1 - x) + random.normal(0, 0.02) * (y - aspect / 2)
        steep = random.uniform(0.12, 0.2)
        return np.asarray(0.3 * severity * np.exp(-from_gutter / steep) * (1 + 0.4 * from_gutter), dtype=np.float32)
    if scene == "creases":  # the facets of a crumpled sheet
        lift = np.zeros_like(x)
        for _ in range(14):
            angle = random.uniform(0, np.pi)
            across = (x - random.random()) * np.cos(angle) + (y - aspect * random.random()) * np.sin(angle)
            lift += np.abs(across) * random.uniform(-0.12, 0.12) * severity
        return np.asarray(lift - lift.mean(), dtype=np.float32)
    return 0.0


def _view(
    random: np.random.Generator, severity: float, aspect: float, width: int, height: int, closeness: float
) -> Floats:
    """Homography from fractions of the page to pixels of the photograph: slant, rotation, place."""
    tilt_x, tilt_y = severity * random.uniform(-0.55, 0.55), severity * random.uniform(-0.55, 0.55)
    roll = severity * random.normal(0, 0.12)
    turn = cv2.Rodrigues(np.array([tilt_x, tilt_y, 0.0]))[0] @ cv2.Rodrigues(np.array([0.0, 0.0, roll]))[0]
    corners = np.array([(-0.5, -aspect / 2, 0), (0.5, -aspect / 2, 0), (0.5, aspect / 2, 0), (-0.5, aspect / 2, 0)])
    seen = corners @ turn.T
    seen = seen[:, :2] / (2.2 + seen[:, 2:]) * 2.2
    low, high = seen.min(axis=0), seen.max(axis=0)
    scale = random.uniform(0.93, 0.98) * min(width / (high[0] - low[0]), height / (high[1] - low[1]))
    scale *= closeness
    if severity == 0:
        scale *= 0.99
    room = np.array([width, height]) - scale * (high - low)
    place = room * (0.5 + severity * random.uniform(-0.4, 0.4, 2))
    target = (seen - low) * scale + place
    source = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=np.float32)
    return np.asarray(cv2.getPerspectiveTransform(source, target.astype(np.float32)), dtype=np.float32)


def _sample(values: Floats, points: Floats) -> Floats:
    """Values of a grid over the page at points in fractions; linear, the border continued."""
    rows, columns = values.shape[:2]
    x = np.ascontiguousarray(points[..., 0] * np.float32(columns - 1), dtype=np.float32)
    y = np.ascontiguousarray(points[..., 1] * np.float32(rows - 1), dtype=np.float32)
    sampled = cv2.remap(values, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(sampled, dtype=np.float32).reshape(*points.shape[:-1], values.shape[2])


def _inverse(homography: Floats, displacement: Floats, width: int, height: int) -> Floats:
    """For every pixel of the photograph the point of the page, in fractions; shape (height, width, 2)."""
    step = 4  # the map is smooth: found on every fourth pixel, then enlarged
    x, y = np.meshgrid(
        np.arange(0, width + step, step, dtype=np.float32), np.arange(0, height + step, step, dtype=np.float32)
    )
    pixels = np.stack([x, y], axis=-1)
    target = cv2.perspectiveTransform(pixels, np.linalg.inv(homography.astype(np.float64)))
    points = start = np.asarray(target, dtype=np.float32)
    for _ in range(_ROUNDS):
        points = start - _sample(displacement, points)
    # Node i of the coarse grid is pixel i * step.
    fine_x, fine_y = np.meshgrid(np.arange(width, dtype=np.float32) / step, np.arange(height, dtype=np.float32) / step)
    return np.asarray(cv2.remap(points, fine_x, fine_y, cv2.INTER_LINEAR), dtype=np.float32)


def _inside(mapping: Floats, width: int) -> Floats:
    """1 on the page, 0 beside it, smooth over a pixel at the edge."""
    edge = np.minimum(
        np.minimum(mapping[..., 0], 1 - mapping[..., 0]), np.minimum(mapping[..., 1], 1 - mapping[..., 1])
    )
    return np.clip(edge * width + 0.5, 0, 1).astype(np.float32)


def _table_top(random: np.random.Generator, width: int, height: int) -> Floats:
    """Wood, cloth or stone."""
    base = random.choice([(60, 85, 120), (95, 95, 95), (40, 45, 50), (150, 170, 185), (110, 80, 60), (35, 60, 45)])
    kind = random.integers(3)
    shape = {0: (height // 180, width // 8), 1: (height // 3, width // 3), 2: (height // 40, width // 40)}[int(kind)]
    grain = cv2.resize(random.normal(0, 1, shape).astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
    strength = {0: 14, 1: 9, 2: 12}[int(kind)]
    return np.asarray(base, dtype=np.float32) + grain[..., None] * strength


def _pattern(random: np.random.Generator, width: int, height: int) -> Floats:
    """Checked or striped cloth, tiles, or floorboards."""
    first, second, third = random.uniform(40, 230, (3, 3)).astype(np.float32)
    angle, pitch = random.uniform(0, np.pi), width / random.uniform(9, 26)
    x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    u, v = ((x * np.cos(angle) + y * np.sin(angle)) / pitch, (y * np.cos(angle) - x * np.sin(angle)) / pitch)
    kind = random.integers(4)
    if kind == 0:  # gingham
        share = ((u % 1 < 0.5).astype(np.float32) + (v % 1 < 0.5)) / 2
    elif kind == 1:  # stripes
        share = (u % 1 < 0.5).astype(np.float32)
    elif kind == 2:  # tiles with joints
        share = ((u % 2 < 0.08) | (v % 2 < 0.08)).astype(np.float32)
    else:  # boards of unequal colour
        board = np.floor(u / 2) * 31 + np.floor((v + u // 2) / 9)
        share = random.random(4096).astype(np.float32)[board.astype(int) % 4096]
    ground = first + (second - first) * share[..., None]
    dots = ((u % 3 - 1.5) ** 2 + (v % 3 - 1.5) ** 2 < 0.16) & (kind < 2)
    ground[dots] = third
    return np.asarray(cv2.GaussianBlur(ground, (0, 0), 1.2), dtype=np.float32)


def _room(random: np.random.Generator, width: int, height: int) -> Floats:
    """A room out of focus: furniture, walls, windows."""
    room = np.empty((height, width, 3), np.float32)
    room[:] = random.uniform(60, 190, 3)
    for _ in range(14):
        x, y = int(random.integers(width)), int(random.integers(height))
        corner = x + int(width * random.uniform(0.1, 0.5)), y + int(height * random.uniform(0.05, 0.4))
        cv2.rectangle(room, (x, y), corner, random.uniform(20, 250, 3).tolist(), -1)
    return np.asarray(cv2.GaussianBlur(room, (0, 0), width / 120), dtype=np.float32)


def _bezel(random: np.random.Generator, width: int, height: int) -> Floats:
    """The dark edge around what a display shows."""
    return np.full((height, width, 3), random.uniform(12, 60), np.float32)


_GROUNDS = {"pattern": _pattern, "hand": _room, "screen": _bezel}


def _subpixels(random: np.random.Generator, severity: float, mapping: Floats, width: int) -> Floats:
    """How bright the stripes of a display are at each pixel of the photograph: they beat with those of the sensor."""
    across = mapping[..., 0] * np.float32(width / random.uniform(0.94, 1.06))
    down = mapping[..., 1] * np.float32(width * mapping.shape[0] / mapping.shape[1] / random.uniform(0.94, 1.06))
    depth = np.float32(severity * random.uniform(0.25, 0.5))
    stripes = [np.sin(2 * np.pi * (across + phase / 3)) for phase in (2, 1, 0)]
    rows = 1 + depth / 2 * np.sin(2 * np.pi * down)
    return np.asarray((1 + depth * np.stack(stripes, axis=-1)) * rows[..., None], dtype=np.float32)


def _hold(random: np.random.Generator, seen: Floats, homography: Floats, aspect: float) -> None:
    """Thumbs and fingers over the margins of a page that is held."""
    skin = np.array(random.choice([(140, 170, 215), (95, 125, 175), (60, 80, 120)]), np.float64)
    for side in random.permutation(3)[: random.integers(1, 3)]:  # left, right, below
        along, reach = random.uniform(0.35, 0.75), random.uniform(0.0, 0.03)
        for finger in range(int(random.integers(1, 4))):
            place, spread = along + 0.075 * finger, random.normal(0, 0.05)
            tip = [(reach, place), (1 - reach, place), (place, 1 - reach / aspect)][side]
            root = [(-0.4, place + spread), (1.4, place + spread), (place + spread, 1.3)][side]
            ends = cv2.perspectiveTransform(np.array([[tip, root]], np.float64), homography.astype(np.float64))[0]
            thick = 0.055 * float(np.linalg.norm(homography[:2, 0]))
            shape = np.zeros(seen.shape[:2], np.float32)
            start, end = (tuple(map(int, point)) for point in ends)
            cv2.line(shape, start, end, 1.0, max(3, int(thick)), cv2.LINE_AA)
            round_off = cv2.GaussianBlur(shape, (0, 0), thick / 4)
            seen *= 1 - 0.35 * np.roll(round_off, (8, 8), (0, 1))[..., None]
            seen += shape[..., None] * (skin * (0.45 + 0.55 * round_off[..., None]) - seen)


def _light(random: np.random.Generator, severity: float, width: int, height: int) -> Floats:
    """How bright each pixel is: a gradient, lamps, shadows, vignetting, the colour of the light."""
    small_w, small_h = width // 8, height // 8
    x, y = np.meshgrid(np.linspace(-1, 1, small_w), np.linspace(-1, 1, small_h))
    angle = random.uniform(0, 2 * np.pi)
    light = 1 + 0.28 * severity * (np.cos(angle) * x + np.sin(angle) * y)
    for _ in range(int(random.integers(0, 3))):  # lamps
        cx, cy, size = random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(0.3, 0.9)
        light += 0.3 * severity * random.random() * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / size**2)
    for _ in range(int(random.integers(0, 1 + round(2.4 * severity)))):  # the shadow of a hand, a head, a telephone
        corners = random.uniform(-1, 1, 2) + random.uniform(-0.9, 0.9, (5, 2))
        hull = cv2.convexHull(((corners + 1) / 2 * (small_w, small_h)).astype(np.float32)).astype(np.int32)
        shadow = cv2.fillConvexPoly(np.zeros((small_h, small_w), np.float32), hull, 1.0)
        soft = cv2.GaussianBlur(shadow, (0, 0), small_w * random.uniform(0.01, 0.07))
        light *= 1 - severity * random.uniform(0.2, 0.6) * soft
    light *= 1 - 0.22 * severity * (x**2 + y**2) / 2
    level = 1 - 0.35 * severity * random.random()
    warmth = random.normal(0, 0.09)  # daylight is blue, lamps are yellow; a camera balances most of it
    colour = 1 + severity * (warmth * np.array([-1.0, 0.0, 1.0]) + random.normal(0, 0.02, 3))
    field_of_light = (light * level).astype(np.float32)[..., None] * colour.astype(np.float32)
    return np.asarray(cv2.resize(field_of_light, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.float32)


def _lens(random: np.random.Generator, severity: float, scene: Floats) -> Floats:
    """Blur of focus and of motion, then noise of the sensor."""
    if (focus := severity * random.uniform(0.3, 1.9)) > 0.15:
        scene = np.asarray(cv2.GaussianBlur(scene, (0, 0), focus), dtype=np.float32)
    length = round(severity * random.uniform(0, 5))
    if length >= 2:
        kernel = np.zeros((length, length), np.float32)
        angle = random.uniform(0, np.pi)
        middle = (length - 1) / 2
        for t in np.linspace(-middle, middle, 4 * length):
            kernel[round(middle + t * np.sin(angle)), round(middle + t * np.cos(angle))] = 1
        scene = np.asarray(cv2.filter2D(scene, -1, kernel / kernel.sum()), dtype=np.float32)
    if severity:
        noise = random.standard_normal(scene.shape, dtype=np.float32)
        scene = scene + noise * np.sqrt(np.clip(scene, 0, 255) / 255 * 40 + 12) * np.float32(severity)
    return scene
