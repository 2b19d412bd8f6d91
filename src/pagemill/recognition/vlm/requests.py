"""From a crop to the body of a request: shrunk to the model's budget, encoded as JPEG and base64 once."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import simplejpeg

from pagemill.config.model_cards import ModelCard, Sampling
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.labels import Task
from pagemill.errors import lacks_extra
from pagemill.imaging.encode import encode_jpeg
from pagemill.imaging.transforms import at_least, resize
from pagemill.imaging.types import Pixels
from pagemill.inference.chat import ChatClient
from pagemill.inference.client import API_KEY

try:
    import pybase64  # SIMD: 4 to 10 times as fast as the standard library, which holds the interpreter lock
except ImportError as error:
    raise lacks_extra("requests for models need pybase64", "vlm") from error

MAX_ASPECT = 200
"""Longest ratio of sides that image processors of the Qwen2-VL family (GLM-OCR, PaddleOCR-VL) accept."""
_MIN_SMALLER_PIXELS = 100_000
"""About 130 tokens: an image this small is not refused for its size."""
LEAST_ANSWER = 256
"""Tokens of an answer, a paragraph: where less room is left, the image has to be smaller. Not measured."""
_TEMPLATE_TOKENS = 64
"""What the chat template puts around image and prompt; some 20 in GLM-OCR's and Qwen3-VL's."""
_PROMPT_BYTES = 2
"""Bytes of a prompt to a token: English has about 4, other scripts 2 to 3."""


def chat_client(servers: Sequence[str], settings: RecognitionSettings) -> ChatClient:
    """Asks the servers of a model, within the limits of the settings. Reaches out to nothing yet.

    Raises:
        UsageError: No server is named.
    """
    return ChatClient(
        servers,
        workers=settings.workers,
        request_timeout_s=settings.request_timeout_s,
        server_wait_s=settings.server_wait_s,
        api_key=os.environ.get(API_KEY) or None,
    )


class PreparedRegion(NamedTuple):
    """A region ready to be sent any number of times; its pixels are no longer needed."""

    task: Task
    image: str
    """The JPEG in base64."""
    tokens: int = 0
    """About how many the image has."""
    longest_answer: int | None = None
    """In tokens, after a server refused the request as too long; None: as long as there is room."""


class RequestBuilder:
    """Builds requests for one model. Thread-safe.

    Args:
        card: Card of a recognition model.
        served_model: The model's name on the server.
        context: Tokens of the longest request, answer included, if the server reports it.
    """

    def __init__(self, card: ModelCard, served_model: str, context: int | None = None) -> None:
        self._card = card
        self._served_model = served_model
        self._context = context

    def prepare(self, crop: Pixels, task: Task) -> PreparedRegion:
        """Shrink, encode, base64: 2 ms for a region of 0.3 million pixels. Runs on a computing thread.

        Args:
            crop: Shape (height, width, 3), uint8 RGB.
            task: A task without a prompt of its own uses the prompt for text.

        Raises:
            ValueError: The crop has no pixels.
        """
        pixels = shrink(within_aspect(crop), self._card.image.max_pixels)
        return self._encode(pixels, task if task.value in self._card.prompts else Task.TEXT)

    def smaller(self, prepared: PreparedRegion) -> PreparedRegion | None:
        """The same region with half of its pixels, for a server that refused it; None if it is already small.

        Made from the JPEG, since the page's pixels are released. Runs on a computing thread.
        """
        decoded: Pixels = simplejpeg.decode_jpeg(pybase64.b64decode(prepared.image), colorspace="RGB")
        pixels = decoded.shape[0] * decoded.shape[1]
        if pixels < 2 * _MIN_SMALLER_PIXELS:
            return None
        return self._encode(shrink(decoded, pixels // 2), prepared.task)

    def shorter(self, prepared: PreparedRegion) -> PreparedRegion | None:
        """The same region with less room for the answer, for a server that refused the request as too long.

        Twice as much as before is left for image and prompt, or half of the answer if that is less; None if little is
        left for the answer.
        """
        now = self._answer_tokens(prepared, self._card.sampling.max_tokens)
        taken = now if self._context is None else self._context - now
        least = now - min(now // 2, taken)
        return None if least < LEAST_ANSWER else prepared._replace(longest_answer=least)

    def body(self, prepared: PreparedRegion, sampling: Sampling) -> bytes:
        """The JSON body of a chat completion."""
        card = self._card
        longest = self._answer_tokens(prepared, sampling.max_tokens)
        if longest != sampling.max_tokens:
            sampling = msgspec.structs.replace(sampling, max_tokens=longest)
        text = {"type": "text", "text": card.prompts[prepared.task.value]}
        image = image_part(prepared)
        content = [image, text] if card.image_first else [text, image]
        return chat_body(card, self._served_model, content, sampling)

    def _answer_tokens(self, prepared: PreparedRegion, most: int) -> int:
        """The longest answer to ask for: vLLM refuses requests whose image, prompt and answer exceed its context."""
        if prepared.longest_answer is not None:
            return min(most, prepared.longest_answer)
        if self._context is None:
            return most
        words = (self._card.system or "") + self._card.prompts[prepared.task.value]
        room = self._context - prepared.tokens - len(words.encode()) // _PROMPT_BYTES - _TEMPLATE_TOKENS
        return min(most, max(room, LEAST_ANSWER))

    def _encode(self, pixels: Pixels, task: Task) -> PreparedRegion:
        image = self._card.image
        pixels = at_least(pixels, image.min_side)
        jpeg = encode_jpeg(pixels, quality=image.quality, subsampling="420")
        tokens = image.tokens(pixels.shape[0] * pixels.shape[1])
        return PreparedRegion(task, pybase64.b64encode_as_string(jpeg), tokens)


def chat_body(
    card: ModelCard,
    served_model: str,
    content: list[dict[str, Any]],
    sampling: Sampling,
    wanted: dict[str, Any] | None = None,
) -> bytes:
    """The JSON body of a chat completion.

    Args:
        card: Of the model.
        served_model: Its name on the server.
        content: Texts and images of the user's message.
        sampling: Of this attempt.
        wanted: Name and JSON Schema of the answer, for a server that is to enforce it while it decodes.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if card.system is not None:
        messages.insert(0, {"role": "system", "content": card.system})
    fields = {"model": served_model, "messages": messages} | msgspec.structs.asdict(sampling)
    fields |= fields.pop("extra")
    if wanted is not None:
        fields["response_format"] = {"type": "json_schema", "json_schema": wanted}
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})


def image_part(prepared: PreparedRegion) -> dict[str, Any]:
    """An image as a part of a message."""
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{prepared.image}"}}


def shrink(crop: Pixels, max_pixels: int) -> Pixels:
    """Shrink to at most ``max_pixels`` by area averaging; smaller images are returned unchanged.

    Sides are not rounded to the model's multiples: the server does that anyway, and resampling text twice blurs it.
    """
    height, width = crop.shape[:2]
    if height * width <= max_pixels:
        return crop
    factor = math.sqrt(max_pixels / (height * width))
    # A side of one pixel cannot shrink further; the other one compensates.
    new_height = max(1, math.floor(height * factor))
    new_width = max(1, min(math.floor(width * factor), max_pixels // new_height))
    return resize(crop, new_width, min(new_height, max_pixels // new_width))


def within_aspect(crop: Pixels) -> Pixels:
    """Pad a narrow image by repeating its edge until the ratio of its sides is below :data:`MAX_ASPECT`."""
    height, width = crop.shape[:2]
    if not height or not width:
        raise ValueError("crop without pixels")
    return at_least(crop, math.ceil(max(height, width) / (0.9 * MAX_ASPECT)))  # sides are rounded when it is shrunk
