"""Tiny checkpoints of recognition models as generators, and requests for them."""

from pathlib import Path
from typing import Any

import msgspec

from pagemill.config.model_cards import load_card
from pagemill.config.recognition import LocalModelSettings
from pagemill.document.labels import Task
from pagemill.recognition.local.generation import Generator
from pagemill.recognition.local.model import load_shared
from pagemill.recognition.local.requests import LocalRequest, read_request
from pagemill.recognition.vlm.requests import RequestBuilder
from pagemill_bench.testing.drawn_pages import draw_page

MODELS = ["glm-ocr", "paddleocr-vl", "got-ocr2", "deepseek-ocr-2"]
SIZES = [(300, 200), (400, 200), (500, 300)]


def generator(name: str, folder: Path, **options: Any) -> Generator:
    """What answers requests for a model card with the checkpoint in a folder."""
    card = load_card(name)
    return Generator(load_shared(card, LocalModelSettings(weights=str(folder), **options)), card)


def requests_of(name: str, sizes: list[tuple[int, int]] = SIZES, **sampling: Any) -> list[LocalRequest]:
    """A request for each of some drawn pages, with the sampling of the card but for what is given."""
    card = load_card(name)
    builder = RequestBuilder(card, name)
    chosen = msgspec.structs.replace(card.sampling, **{"max_tokens": 60, **sampling})
    pages = [draw_page(seed, size) for seed, size in enumerate(sizes)]
    return [read_request(builder.body(builder.prepare(page, Task.TEXT), chosen)) for page in pages]
