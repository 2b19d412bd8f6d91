"""Requests for a model in this process: the same chat completions that servers get, read back into pixels and text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import simplejpeg

from pagemill.config.model_cards import ModelCard
from pagemill.errors import UsageError, lacks_extra

try:
    import pybase64
except ImportError as error:
    raise lacks_extra("the recognition engine transformers needs pybase64", "gpu") from error

if TYPE_CHECKING:
    from pagemill.imaging.types import Pixels

_DATA = "data:image/jpeg;base64,"


class NGramGuard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The guard against loops, as ``vllm_xargs`` of a model card."""

    ngram_size: int
    window_size: int
    whitelist_token_ids: tuple[int, ...] = ()


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are chosen. Requests that agree in it can share a call of ``generate``."""

    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    max_tokens: int
    seed: int | None = None
    skip_special_tokens: bool = True
    vllm_xargs: NGramGuard | None = None


class LocalRequest(NamedTuple):
    """A chat completion about one image."""

    messages: list[dict[str, Any]]
    """For a chat template; the image is a part without content."""
    image: Pixels
    sampling: Sampling

    @property
    def size(self) -> float:
        """Pixels of its image, which its number of tokens follows."""
        return float(self.image.shape[0] * self.image.shape[1])


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]]


class _Body(msgspec.Struct):
    messages: list[_Message]


def check_card(card: ModelCard) -> None:
    """Make sure that all of a card's sampling is known here.

    Raises:
        UsageError: A field is not.
    """
    known = {"seed", "skip_special_tokens", "vllm_xargs"}
    unknown = sorted(card.sampling.extra.keys() - known)
    unknown += sorted(card.sampling.extra.get("vllm_xargs", {}).keys() - set(NGramGuard.__struct_fields__))
    if unknown:
        raise UsageError(
            f"the model card {card.name} has the sampling field {unknown[0]}, which models in this process do not know",
            remedy="Remove it from [sampling] in a copy of the card, or use a server: --recognition-engine vlm.",
        )


def read_request(body: bytes) -> LocalRequest:
    """The request that the JSON body of a chat completion makes.

    Raises:
        ValueError: It is none with one JPEG in it.
    """
    sampling = msgspec.json.decode(body, type=Sampling)
    images: list[Pixels] = []
    messages: list[dict[str, Any]] = []
    for message in msgspec.json.decode(body, type=_Body).messages:
        parts = message.content
        if not isinstance(parts, str):
            images += [_image(part) for part in parts if part["type"] == "image_url"]
            parts = [{"type": "image"} if part["type"] == "image_url" else part for part in parts]
        messages.append({"role": message.role, "content": parts})
    if len(images) != 1:
        raise ValueError(f"{len(images)} images in a request")
    return LocalRequest(messages, images[0], sampling)


def _image(part: dict[str, Any]) -> Pixels:
    url: str = part["image_url"]["url"]
    if not url.startswith(_DATA):
        raise ValueError("an image that is not in the request")
    pixels: Pixels = simplejpeg.decode_jpeg(pybase64.b64decode(url[len(_DATA) :]), colorspace="RGB")
    return pixels
