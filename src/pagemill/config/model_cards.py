"""Model cards: descriptions of models, as data. To add a model, add a TOML file."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from pagemill.config.builtin import builtin
from pagemill.config.languages import FILES, PREFIX, URL
from pagemill.config.modes import ReadingMode
from pagemill.errors import UsageError

_PROMPTS = ("text", "table", "formula", "page")


class ModelKind(StrEnum):
    """Purpose of a model."""

    RECOGNITION = "recognition"
    EMBEDDING = "embedding"
    LAYOUT = "layout"
    """Runs inside pagemill, not on a server; the card has its download address."""
    LINES = "lines"
    """Reads lines of text inside pagemill, as soon as its file is on this machine."""
    FORMULAS = "formulas"
    """Reads display formulas, likewise."""
    TABLES = "tables"
    """Finds tables or their rows and columns inside pagemill, with the table engine ``table-transformer``."""


class ModelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a model that is not on the Hugging Face Hub."""

    url: str
    sha256: str
    """64 hex digits; a file with another hash is deleted."""

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]

    def __post_init__(self) -> None:
        """Validate what types cannot express."""
        # Cards may come from others, and the name becomes a path on this machine.
        if not self.url.startswith("https://") or not re.fullmatch(r"[\w.-]+", self.name):
            raise ValueError("url must begin with https:// and end in a file name")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise ValueError("sha256 must be 64 hex digits")


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sampling parameters of the first request for a region, as in the OpenAI-compatible API of vLLM."""

    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    max_tokens: int = 8192
    extra: dict[str, Any] = {}
    """Further fields of the request's body, such as ``vllm_xargs`` or ``skip_special_tokens``."""


class ImageBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Image sizes that the model uses. Larger images are shrunk before they are sent; narrower ones are padded."""

    max_pixels: int
    min_pixels: int = 0
    """Smaller crops are padded or enlarged by the server; used to count tokens only."""
    min_side: int = 1
    """Shortest side that the model takes, in pixels: its server refuses narrower images."""
    multiple: int = 1
    """Side of the square that one visual token covers, in pixels; 1 if that is not known."""
    quality: int = 75
    """JPEG quality, 1-100, with chroma subsampling. The packages of GLM-OCR and PaddleOCR-VL send 75."""

    @property
    def token_pixels(self) -> int:
        """Pixels that one visual token covers; at least 28 x 28, as of most models."""
        return max(self.multiple, 28) ** 2

    def tokens(self, pixels: int) -> int:
        """Approximate number of tokens of an image."""
        return max(pixels, self.min_pixels) // self.token_pixels + 1


class Architecture(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers for the memory plan, from the checkpoint's ``config.json``."""

    layers: int
    kv_heads: int
    head_dim: int
    hidden_size: int
    max_position: int
    """Maximum sequence length, in tokens."""
    stored_bits: int = 16
    """Bits of a stored weight: 8 for a checkpoint published in fp8."""


class Server(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How ``vllm serve`` is started for the model."""

    args: tuple[str, ...] = ()
    """Flags that the model always needs."""
    optional: dict[str, tuple[str, ...]] = {}
    """Flags by the name of a choice, such as ``speculative``; off unless asked for."""
    supported: bool = True
    """Whether vLLM has the model's architecture."""
    min_vllm: str | None = None
    max_model_len: int = 16384
    """Maximum number of tokens of a request, image and response together."""


class ModelCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that pagemill can serve and talk to."""

    name: str
    """Name for ``--model`` and on the server, such as ``glm-ocr``."""
    title: str
    kind: ModelKind
    repository: str
    """On the Hugging Face Hub; empty for ``generic``, and for a model with ``files``."""
    files: tuple[ModelFile, ...] = ()
    """Its files, where they are not on the Hub."""
    cpu_best: bool = False
    """Whether ``pagemill models download cpu-best`` fetches it."""
    licence: str
    licence_source: str
    parameters: int
    """Number of weights."""
    download_bytes: int
    """Size of the files needed for serving."""
    languages: str
    """Languages it reads according to its authors, in a sentence."""
    languages_source: str
    """Source of that, and published figures."""
    prompts: dict[str, str] = {}
    """Prompt by task: ``text``, ``table``, ``formula``, and ``page`` for whole pages."""
    reads: ReadingMode = ReadingMode.REGIONS
    """Input of the model: regions found by a layout engine, or whole pages, which needs a prompt ``page``."""
    system: str | None = None
    """System message, if there is one."""
    image_first: bool = True
    """Send the image before the text."""
    sampling: Sampling = Sampling()
    image: ImageBudget = ImageBudget(max_pixels=1)
    """Unused by models that read lines or formulas."""
    cleanup: tuple[str, ...] = ()
    """Names of the clean-up steps for responses (:mod:`pagemill.recognition.vlm.cleanup`), in order."""
    architecture: Architecture | None = None
    server: Server = Server()
    embedding: dict[str, Any] = {}
    """Kind embedding: ``dimension``, ``matryoshka``, ``max_tokens`` and ``instructions`` by role."""

    @property
    def folder(self) -> str:
        """Name of the folder with its files; Tesseract's language data share one."""
        return self.name.partition(":")[0]

    def __post_init__(self) -> None:
        """Check what types do not express; msgspec adds the path of the field."""
        if unknown := self.prompts.keys() - _PROMPTS:
            raise ValueError(f"[prompts] may contain {', '.join(_PROMPTS)}, not {', '.join(sorted(unknown))}")
        if self.kind is ModelKind.RECOGNITION and not self.prompts.get("text"):
            raise ValueError("a recognition model needs a prompt for text")
        if self.reads is ReadingMode.PAGES and not self.prompts.get("page"):
            raise ValueError("a model that reads pages needs a prompt for a page")
        if self.kind in (ModelKind.LINES, ModelKind.FORMULAS) and len(self.files) != 1:
            raise ValueError(f"a model that reads {self.kind} has one file in [[files]]")
        if self.image.max_pixels < 1 or self.image.min_side < 1 or not 1 <= self.image.quality <= 100:
            raise ValueError("[image] max_pixels and min_side must be at least 1, quality 1 to 100")


def card_names() -> list[str]:
    """Names of the built-in cards, sorted."""
    return list(builtin("models"))


def tessdata_names() -> list[str]:
    """Names of the cards of Tesseract's language data, sorted."""
    return [PREFIX + code for code in FILES]


def load_card(name: str | Path, kind: ModelKind | None = None) -> ModelCard:
    """Load a card by its name or by that of its repository, or from a TOML file.

    Args:
        name: Name of a built-in card or of its repository on the Hub, or a path that ends in ``.toml``.
        kind: Required purpose of the model; None for any.

    Raises:
        UsageError: There is no such card, it has another kind, or the file is not valid; the message names the field.
    """
    card = _card(name, kind)
    if kind not in (None, card.kind):
        raise UsageError(f"{card.name} is a model for {card.kind}, not for {kind}", remedy="See: pagemill models list")
    return card


def _card(name: str | Path, kind: ModelKind | None) -> ModelCard:
    if isinstance(name, Path) or name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the model card {name} cannot be read: {error}", remedy="Check --model.") from error
        return _parse(text, str(name))
    if (code := name.removeprefix(PREFIX)) != name and code in FILES:
        return _tessdata_card(code)
    cards = builtin("models")
    if name in cards:
        return _parse(cards[name], name)
    known = [_parse(text, builtin_name) for builtin_name, text in cards.items()]
    for card in known:
        if card.repository and card.repository.lower() == name.lower():
            return card
    choice = ", ".join(card.name for card in known if kind in (None, card.kind))
    raise UsageError(
        f"there is no model card {name!r}",
        remedy=f"Known: {choice}; or pass the path of your own card, MODEL.toml. For a variant of a model, use the "
        "card of that model with the variant's files as its weights: a folder, downloaded with hf download.",
    )


def _tessdata_card(code: str) -> ModelCard:
    size, sha256 = FILES[code]
    return ModelCard(
        name=PREFIX + code,
        title=f"Tesseract's data for {code}",
        kind=ModelKind.LINES,
        repository="",
        files=(ModelFile(url=URL.format(code), sha256=sha256),),
        licence="Apache-2.0",
        licence_source="https://github.com/tesseract-ocr/tessdata_fast",
        parameters=size,  # of 8 bits
        download_bytes=size,
        languages=code,
        languages_source="https://tesseract-ocr.github.io/tessdoc/Data-Files-in-different-versions.html",
    )


def _parse(text: str, name: str) -> ModelCard:
    try:
        return msgspec.toml.decode(text, type=ModelCard)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"the model card {name} is not valid: {error}", remedy="See the cards in pagemill/config/models."
        ) from error
