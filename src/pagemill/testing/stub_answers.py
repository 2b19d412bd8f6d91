"""What the stub server says: error bodies as vLLM writes them, answers good and bad, vectors."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from enum import StrEnum
from io import BytesIO
from typing import Any

import msgspec
import numpy as np
from PIL import Image

TEXT = "The quick brown fox jumps over the lazy dog. 다람쥐 헌 쳇바퀴에 타고파."
TABLE = "<table><tr><td>Item</td><td>Price</td></tr><tr><td>Apple</td><td>1.50</td></tr></table>"
FORMULA = "\\frac{a + b}{2}"

_MARKER = b";base64,"
_PIXELS_A_TOKEN = 28 * 28


class Fault(StrEnum):
    """What may go wrong with a chat completion."""

    SERVER_ERROR = "500"
    UNAVAILABLE = "503"
    RATE_LIMITED = "429"  # with Retry-After
    RESET = "reset"  # the connection is cut instead of an answer
    HANG = "hang"  # no answer, ever
    TRUNCATED = "truncated"  # the first half, finish_reason "length"
    LOOP = "loop"  # the same words until finish_reason "length"


def error_body(status: int, message: str) -> bytes:
    """The body of an error as vLLM 0.32 writes it."""
    kind = {400: "BadRequestError", 404: "NotFoundError", 429: "TooManyRequestsError", 503: "ServiceUnavailableError"}
    error = {"message": message, "type": kind.get(status, "InternalServerError"), "param": None, "code": status}
    return msgspec.json.encode({"error": error})


def too_large_message(pixels: int, limit: int) -> str:
    """What vLLM says of an image that does not fit into its encoder cache."""
    return (
        f"The decoder prompt contains a(n) image item with {pixels // _PIXELS_A_TOKEN} embedding tokens, which exceeds "
        f"the pre-allocated encoder cache size {limit // _PIXELS_A_TOKEN}. Please reduce the input size or increase "
        "the encoder cache size by setting --limit-mm-per-prompt at startup."
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


def spoiled(fault: Fault | None, text: str) -> tuple[str, str]:
    """An answer's text and ``finish_reason`` with a fault, of the kinds that come with HTTP 200."""
    if fault is Fault.TRUNCATED:
        return text[: len(text) // 2], "length"
    if fault is Fault.LOOP:
        return "and so on " * 800, "length"
    return text, "stop"


def completion(model: str, number: int, text: str, finish_reason: str) -> bytes:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    tokens = len(text) // 3 + 1  # about as many as a model would need
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


def embeddings(conversations: list[Any], dimension: int) -> list[dict[str, Any]]:
    """The ``data`` of ``/v1/embeddings``, in base64: one vector for each conversation.

    Vectors are L2-normalised random numbers, seeded by the conversation: the same in every process.
    """
    data = []
    for index, conversation in enumerate(conversations):
        seed = int.from_bytes(hashlib.sha256(msgspec.json.encode(conversation)).digest()[:8], "little")
        vector = np.random.default_rng(seed).standard_normal(dimension, dtype=np.float32)
        vector /= np.linalg.norm(vector)
        data.append({"index": index, "object": "embedding", "embedding": b64encode(vector.tobytes()).decode("ascii")})
    return data
