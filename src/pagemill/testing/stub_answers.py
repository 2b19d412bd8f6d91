"""What the stub server says: error bodies as vLLM writes them, answers good and bad, vectors made from words."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from enum import StrEnum
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

TEXT = "The quick brown fox jumps over the lazy dog. 다람쥐 헌 쳇바퀴에 타고파."
TABLE = "<table><tr><td>Item</td><td>Price</td></tr><tr><td>Apple</td><td>1.50</td></tr></table>"
FORMULA = "\\frac{a + b}{2}"

_MARKER = b";base64,"
_WORDS_KEPT = 1 << 12


class Fault(StrEnum):
    """What may go wrong with a chat completion."""

    SERVER_ERROR = "500"
    UNAVAILABLE = "503"
    RATE_LIMITED = "429"  # with Retry-After
    RESET = "reset"  # the connection is cut instead of an answer
    HANG = "hang"  # no answer, ever
    TRUNCATED = "truncated"  # the first half, finish_reason "length"
    LOOP = "loop"  # the same words until finish_reason "length"
    EMPTY = "empty"
    ECHO = "echo"  # the prompt again


def error_body(status: int, message: str) -> bytes:
    """The body of an error as vLLM 0.32 writes it."""
    kind = {400: "BadRequestError", 404: "NotFoundError", 429: "TooManyRequestsError", 503: "ServiceUnavailableError"}
    error = {"message": message, "type": kind.get(status, "InternalServerError"), "param": None, "code": status}
    return msgspec.json.encode({"error": error})


def too_large_message(tokens: int, limit: int) -> str:
    """What vLLM says of an image that does not fit into its encoder cache."""
    return (
        f"The decoder prompt contains a(n) image item with {tokens} embedding tokens, which exceeds the pre-allocated "
        f"encoder cache size {limit}. Please reduce the input size or increase the encoder cache size by setting "
        "--limit-mm-per-prompt at startup."
    )


def image_bytes(body: bytes) -> bytes | None:
    """The first image file of a request, out of its data URL; None without one."""
    start = body.find(_MARKER)
    if start < 0:
        return None
    start += len(_MARKER)
    return b64decode(body[start : body.index(b'"', start)])


def image_pixels(body: bytes) -> int:
    """Pixels of the first image of a request; 0 without one. Only its header is decoded."""
    content = image_bytes(body)
    if content is None:
        return 0
    with Image.open(BytesIO(content)) as image:
        return image.width * image.height


def prompt_text(body: bytes) -> str:
    """The text of the last message, the images left out."""
    return " ".join(text for _, text in _parts(msgspec.json.decode(body)["messages"][-1:]) if text is not None)


def spoiled(fault: Fault | None, text: str, body: bytes) -> tuple[str, str]:
    """An answer's text and ``finish_reason`` with a fault, of the kinds that come with HTTP 200."""
    if fault is Fault.TRUNCATED:
        return text[: len(text) // 2], "length"
    if fault is Fault.LOOP:
        return "and so on " * 800, "length"
    if fault is Fault.EMPTY:
        return "", "stop"
    if fault is Fault.ECHO:
        return prompt_text(body), "stop"
    return text, "stop"


def completion(model: str, number: int, text: str, finish_reason: str) -> bytes:
    """The body of a chat completion."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "reasoning_content": None, "tool_calls": []},
        "logprobs": None,
        "finish_reason": finish_reason,
        "stop_reason": None,
    }
    tokens = count_tokens(text)
    usage = {"prompt_tokens": 300, "completion_tokens": tokens, "total_tokens": 300 + tokens}
    return msgspec.json.encode(
        {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "choices": [choice],
            "usage": usage,
        }
    )


def count_tokens(text: str) -> int:
    """About as many tokens as a model would need."""
    return len(text) // 3 + 1


def embeddings(request: dict[str, Any], dimension: int) -> list[dict[str, Any]]:
    """The ``data`` of ``/v1/embeddings``: one vector for each conversation or input.

    Vectors come from words, so what shares words is near: L2-normalised sums of a vector a word, a vector an image, and
    a little of every system message.

    Args:
        request: With ``messages`` (one conversation, or a list of them) or ``input`` (a string or a list of strings).
        dimension: Length of the vectors, where the request does not set ``dimensions``.
    """
    if "messages" in request:
        messages = request["messages"]
        conversations = messages if messages and isinstance(messages[0], list) else [messages]
    else:
        given = request["input"]
        texts = [given] if isinstance(given, str) else given
        conversations = [[{"role": "user", "content": text}] for text in texts]
    dimension = request.get("dimensions") or dimension
    half = request.get("embed_dtype") == "float16"
    data = []
    for index, conversation in enumerate(conversations):
        vector = _vector(conversation, dimension)
        if request.get("encoding_format") == "base64":
            raw = vector.astype("<f2" if half else "<f4").tobytes()
            data.append({"index": index, "object": "embedding", "embedding": b64encode(raw).decode("ascii")})
        else:
            data.append({"index": index, "object": "embedding", "embedding": vector.tolist()})
    return data


def _vector(conversation: list[dict[str, Any]], dimension: int) -> NDArray[np.float32]:
    total = np.zeros(dimension, dtype=np.float32)
    for message in conversation:
        weight = 0.1 if message.get("role") == "system" else 1.0
        for image, text in _parts([message]):
            if image is not None:
                total += weight * 3 * _direction("image:" + hashlib.sha256(image.encode()).hexdigest(), dimension)
            for word in (text or "").lower().split():
                total += weight * _direction(word.strip(".,;:!?()\"'«»"), dimension)
    length = float(np.linalg.norm(total))
    return total / length if length else _direction("", dimension)


@lru_cache(maxsize=_WORDS_KEPT)
def _direction(word: str, dimension: int) -> NDArray[np.float32]:
    """The unit vector of a word: the same in every process."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    vector = np.random.default_rng(seed).standard_normal(dimension, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def _parts(messages: list[dict[str, Any]]) -> Iterable[tuple[str | None, str | None]]:
    """The image URLs and texts of messages: pairs of which one is None."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield None, content
            continue
        for part in content or ():
            if part.get("type") == "image_url":
                yield part["image_url"]["url"], None
            elif part.get("type") == "text":
                yield None, part["text"]
