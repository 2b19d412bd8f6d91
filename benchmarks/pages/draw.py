"""Draws pages with a headless Chromium: a PDF, a scan of it at 200 dpi, photographs, and the truth; kept by seed."""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Self

import cv2
import numpy as np
import pypdfium2

from chromium_pipe import CHROMIUM, Chromium
from pagemill.errors import MissingDependencyError
from pages.camera import photograph
from pages.forms import FORMS
from pages.languages import LANGUAGES, WORDS
from pages.layouts import COMMON, Block, Sheet, build

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

DPI = 200
HELD_BACK = 1_000_000
"""From this seed on pages serve for reported figures only; those below are for development."""
PRESS_SEEDS = 500_000
"""From this seed of each million on pages are those of the press."""
FORM_SEEDS = 400_000
"""From this seed of each million on, up to those of the press, pages are forms and the like."""
_FORM_LANGUAGES = ("en", "ko", "de", "ja", "ru", "es", "fr", "zh")
_PRESS = (
    ("magazine", ("en", "zh", "fr", "ko")),
    ("tiers", ("ja",)),
    ("tabloid", ("de", "en", "ru", "es")),
    ("tiers", ("zh-Hant",)),
    ("broadsheet", ("en", "es", "de", "fr")),
)
CACHE = Path(tempfile.gettempdir()) / "pagemill-pages"

_FINISH = Path(__file__).with_name("finish.js")


@dataclass(frozen=True, slots=True)
class Page:
    """One drawn page and what is true of it."""

    seed: int
    language: str
    layout: str
    blocks: tuple[Block, ...]
    """In reading order."""
    folder: Path

    @property
    def pdf(self) -> Path:
        """The born-digital page."""
        return self.folder / f"{self.seed}.pdf"

    @property
    def scan(self) -> Path:
        """The page as a clean scan."""
        return self.folder / f"{self.seed}.png"

    def photograph(self, severity: float, scene: str = "") -> Path:
        """The page as a photograph, in one of the camera's scenes; made when it is first asked for."""
        camera = hashlib.sha256(Path(photograph.__code__.co_filename).read_bytes()).hexdigest()[:8]
        path = self.folder / f"{self.seed}-{severity:.2f}{scene}-{camera}.jpg"
        if not path.exists():
            image = cv2.imread(str(self.scan))
            assert image is not None
            taken = photograph(image, severity, self.seed, scene)
            partial = path.with_suffix(".partial")
            partial.write_bytes(taken.jpeg)
            partial.rename(path)
        return path


def composition(seed: int) -> tuple[str, str]:
    """Language and layout of a seed.

    Of 16 pages in a row each language has one; then come a Korean plan or mixed script, and vertical text. The layouts
    of one language change from row to row, and differ between languages. The upper half of each million is the press,
    and the tenth before it are forms, whose languages change fastest.
    """
    if FORM_SEEDS <= seed % HELD_BACK < PRESS_SEEDS:
        row, place = divmod(seed % HELD_BACK - FORM_SEEDS, len(FORMS))
        return _FORM_LANGUAGES[(row + place) % len(_FORM_LANGUAGES)], list(FORMS)[place]
    if seed % HELD_BACK >= PRESS_SEEDS:
        row, place = divmod(seed % HELD_BACK - PRESS_SEEDS, len(_PRESS))
        layout, languages = _PRESS[place]
        return languages[row % len(languages)], layout
    row, place = divmod(seed, len(LANGUAGES) + 2)
    if place == len(LANGUAGES):
        return "ko", ("plan", "plan", "hanja")[row % 3]
    if place == len(LANGUAGES) + 1:
        return ("ja", "zh-Hant", "zh")[row % 3], "vertical"
    return LANGUAGES[place], list(COMMON)[(row + 5 * place) % len(COMMON)]


def compose(seed: int) -> tuple[Sheet, str]:
    """The sheet of a seed and its HTML, before the browser drops what does not fit."""
    return build(*composition(seed), Random(seed))


def edition() -> str:
    """Digest of everything that decides how a page is drawn: pages of other editions are not used again."""
    here = Path(__file__).parent
    sources = [here / f"{name}.py" for name in ("draw", "formulas", "forms", "languages", "layouts", "press", "tables")]
    digest = hashlib.sha256()
    for path in (*sources, _FINISH, *sorted(WORDS.glob("*.toml"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class Press:
    """Draws pages into a cache folder, and takes from it what is there. The browser starts when it is needed."""

    def __init__(self, cache: Path = CACHE) -> None:
        self._folder = cache / edition()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._browser: Chromium | None = None
        self._profile: tempfile.TemporaryDirectory[str] | None = None

    def page(self, seed: int) -> Page:
        """The page of a seed.

        Raises:
            MissingDependencyError: There is no Chromium, or a font is not installed.
        """
        truth = self._folder / f"{seed}.json"
        if not truth.exists():
            self._draw(seed, truth)
        return _read(truth, self._folder)

    def pages(self, seeds: Iterable[int]) -> list[Page]:
        """The pages of some seeds."""
        return [self.page(seed) for seed in seeds]

    def _draw(self, seed: int, truth: Path) -> None:
        sheet, source = compose(seed)
        width, height = sheet.size
        browser = self._start()
        html = self._folder / f"{seed}.html"
        html.write_text(source, encoding="utf-8")
        browser.resize(width, height)
        browser.open(html)
        browser.evaluate("document.fonts.ready.then(() => true)")
        found: dict[str, list[list[float]]] = browser.evaluate(f"({_function()})({seed})")
        options: dict[str, Any] = {"printBackground": True, "preferCSSPageSize": True}
        printed = browser.call("Page.printToPDF", **options)["data"]
        pdf = base64.b64decode(printed)
        (self._folder / f"{seed}.pdf").write_bytes(pdf)
        _rasterise(pdf, self._folder / f"{seed}.png", sheet, seed)
        blocks = []
        for index, block in enumerate(sheet.blocks):
            if rectangles := found.get(str(index)):
                block.boxes = [(x1 / width, y1 / height, x2 / width, y2 / height) for x1, y1, x2, y2 in rectangles]
                blocks.append(asdict(block))
        language, layout = composition(seed)
        record = {"seed": seed, "language": language, "layout": layout, "blocks": blocks}
        partial = truth.with_suffix(".partial")
        partial.write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
        partial.rename(truth)
        html.unlink()

    def _start(self) -> Chromium:
        if self._browser is None:
            if CHROMIUM is None:
                raise MissingDependencyError(
                    "drawing pages needs Chromium", remedy="Install it: apt-get install chromium"
                )
            self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            self._browser = Chromium(Path(self._profile.name))
        return self._browser

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._browser is not None and self._profile is not None:
            self._browser.__exit__()
            self._profile.cleanup()
            self._browser = None


def _function() -> str:
    return "".join(line for line in _FINISH.read_text(encoding="utf-8").splitlines(True) if not line.startswith("//"))


def _rasterise(pdf: bytes, path: Path, sheet: Sheet, seed: int) -> None:
    document = pypdfium2.PdfDocument(pdf)
    assert len(document) == 1, "a drawn page runs over"
    pixels = document[0].render(scale=sheet.dpi / 72).to_numpy()
    document.close()
    done, data = cv2.imencode(".png", _scanned(np.ascontiguousarray(pixels[..., :3]), sheet, seed))
    assert done
    path.write_bytes(bytes(data))


def _scanned(pixels: NDArray[np.uint8], sheet: Sheet, seed: int) -> NDArray[np.uint8]:
    """A drawn page with the skew, contrast and noise of its scan."""
    if sheet.skew:
        height, width = pixels.shape[:2]
        turn = cv2.getRotationMatrix2D((width / 2, height / 2), sheet.skew, 1)
        turned = cv2.warpAffine(pixels, turn, (width, height), flags=cv2.INTER_CUBIC, borderValue=(255, 255, 255))
        pixels = np.asarray(turned, dtype=np.uint8)
    if sheet.ink == 1 and not sheet.grain:
        return pixels
    paper = 235.0  # that of thermal printers is no pure white
    noise = np.random.default_rng(seed).normal(0, sheet.grain, pixels.shape[:2])[..., None]
    grey = paper - (255.0 - pixels) * sheet.ink * paper / 255 + noise
    return np.clip(grey, 0, 255).astype(np.uint8)


def _read(truth: Path, folder: Path) -> Page:
    record = json.loads(truth.read_text(encoding="utf-8"))
    blocks = tuple(Block(**{**block, "boxes": [tuple(box) for box in block["boxes"]]}) for block in record["blocks"])
    return Page(record["seed"], record["language"], record["layout"], blocks, folder)
