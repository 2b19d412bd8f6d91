"""Our Markdown beside that of GLM-OCR's own pipeline, from the same regions and the same answers of the model.

    python benchmarks/replay.py FOLDER

FOLDER holds a folder an example, with source.png, result.json and result.md as that pipeline writes them. Needs
pagemill[vlm]. docs/recognition.md says why each difference is there.

Layout gives the stored boxes, a stub server the stored contents; all between is what every run does:
crops, requests over HTTP, clean-up, record, Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import hashlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pagemill.config.model_cards import load_card
from pagemill.config.modes import PhotographMode, TextLayerMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.document.labels import TASK_OF_LABEL, Label
from pagemill.document.page import PageResult
from pagemill.export.document import Document
from pagemill.imaging.decode import decode_image
from pagemill.imaging.transforms import crop
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.layout.settings import LayoutSettings
from pagemill.parsing.page import ParsedPage
from pagemill.recognition.vlm.requests import RequestBuilder
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources.options import SourceOptions
from pagemill_bench.testing.stub_answers import image_bytes
from pagemill_bench.testing.stub_server import StubServer, StubSettings

MODEL = "glm-ocr"
_LABELS = {"text": Label.TEXT, "formula": Label.DISPLAY_FORMULA, "table": Label.TABLE, "image": Label.IMAGE}
_TITLES = {"# ": Label.DOC_TITLE, "## ": Label.PARAGRAPH_TITLE}
"""The pipeline puts these before what it found to be titles, and stores them as text."""
_ENTRY_POINT = "[pagemill.layout_engines]\nreplay = replay:create_layout\n"


class StoredRegion(msgspec.Struct, frozen=True):
    """A region of ``result.json``."""

    label: str
    content: str | None
    bbox_2d: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Example:
    """A page that was read."""

    name: str
    image: Path
    regions: tuple[StoredRegion, ...]
    markdown: str

    def layout(self, width: int, height: int) -> list[DetectedRegion]:
        """The stored regions of a page of this size, in their order."""
        found = []
        for order, stored in enumerate(self.regions):
            x1, y1, x2, y2 = stored.bbox_2d
            box = (x1 * width / 1000, y1 * height / 1000, x2 * width / 1000, y2 * height / 1000)
            title = next((label for mark, label in _TITLES.items() if (stored.content or "").startswith(mark)), None)
            label = title or _LABELS[stored.label]
            found.append(DetectedRegion(box=box, label=label, score=None, source="replay", order=order))
        return found


def load_examples(folder: Path) -> list[Example]:
    """All examples in the folders of a folder, by name."""
    examples = []
    for result in sorted(folder.glob("*/result.json")):
        (regions,) = msgspec.json.decode(result.read_bytes(), type=list[tuple[StoredRegion, ...]])
        markdown = result.with_suffix(".md").read_text(encoding="utf-8")
        examples.append(Example(result.parent.name, result.parent / "source.png", regions, markdown))
    return examples


class ReplayedLayout:
    """The stored regions of each example, known by its pixels. A layout engine; its "model" is the examples' folder."""

    name = "replay"
    max_batch = 4

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = {_digest(decode_image(example.image).pixels): example for example in examples}

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page."""
        return [self._examples[_digest(page)].layout(page.shape[1], page.shape[0]) for page in pages]

    def close(self) -> None:
        """Nothing to free."""


def create_layout(settings: LayoutSettings) -> ReplayedLayout:
    """The entry point of the layout engine."""
    assert settings.model_path is not None
    return ReplayedLayout(load_examples(settings.model_path))


def answers(examples: Sequence[Example]) -> dict[str, str]:
    """What the model read, by the SHA-256 of the image that is sent for a region."""
    card = load_card(MODEL)
    builder = RequestBuilder(card, MODEL)
    known: dict[str, str] = {}
    for example in examples:
        pixels = decode_image(example.image).pixels
        for stored, region in zip(example.regions, example.layout(pixels.shape[1], pixels.shape[0]), strict=True):
            cut = crop(pixels, region.box, region.polygon)
            body = builder.body(builder.prepare(cut, TASK_OF_LABEL[region.label]), card.sampling)
            known[hashlib.sha256(image_bytes(body) or b"").hexdigest()] = stored.content or ""
    return known


async def replay(folder: Path) -> dict[str, PageResult]:
    """Run the examples of a folder through the whole pipeline; the record of each by its name."""
    examples = load_examples(folder)
    settings = StubSettings(model=MODEL, text="this region was not stored", by_prompt={}, by_image=answers(examples))
    records: dict[str, PageResult] = {}
    with _installed():
        async with StubServer(settings) as server:
            recognition = RecognitionSettings(engine="vlm", model=MODEL, servers=(server.url,))
            parse = ParseSettings(
                recognition=recognition,
                text_layer=TextLayerMode.NEVER,
                photographs=PhotographMode.NEVER,  # the stored regions lie on the photographs
            )
            async with Pipeline(Services(parse, layout=LayoutChoice(engine="replay", model=folder))) as pipeline:
                await pipeline.prepare()
                images = [example.image for example in examples]
                async for page in pipeline.stream(images, SourceOptions()):
                    assert isinstance(page, ParsedPage)
                    records[Path(page.record.source).parent.name] = page.record
    return dict(sorted(records.items()))


def differences(example: Example, record: PageResult) -> list[str]:
    """Where our Markdown is another than the stored one, as lines of a unified diff without context."""
    ours = Document.from_pages([record]).markdown
    lines = difflib.unified_diff(example.markdown.splitlines(), ours.splitlines(), "theirs", "ours", lineterm="", n=0)
    return list(lines)[2:]


def _digest(pixels: Pixels) -> str:
    return hashlib.sha256(pixels.tobytes()).hexdigest()


@contextmanager
def _installed() -> Iterator[None]:
    """The layout engine as another package would bring it."""
    with tempfile.TemporaryDirectory(prefix="pagemill-replay-") as folder:
        about = Path(folder) / "pagemill_replay-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pagemill-replay\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(_ENTRY_POINT)
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)


def summary(folder: Path, records: dict[str, PageResult]) -> dict[str, Any]:
    """Differences of each example, and how many of its lines are alike."""
    rows: dict[str, Any] = {}
    for example in load_examples(folder):
        record = records[example.name]
        rows[example.name] = {
            "regions": len(example.regions),
            "errors": [error.message for error in record.errors],
            "lines": len(example.markdown.splitlines()),
            "differences": differences(example, record),
        }
    return rows


def main() -> int:
    """Print the differences of each example, and how many lines differ in all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder: Path = parser.parse_args().folder
    if not any(folder.glob("*/result.json")):
        parser.error(f"{folder} holds no folder with a result.json")
    lines = different = 0
    for name, row in summary(folder, asyncio.run(replay(folder))).items():
        lines += row["lines"]
        different += sum(line.startswith("-") for line in row["differences"])
        print(f"{name}: {row['regions']} regions, {row['lines']} lines")
        for line in [*row["errors"], *row["differences"]]:
            print(f"    {line}")
    print(f"{different} of {lines} lines differ ({different / max(1, lines):.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
