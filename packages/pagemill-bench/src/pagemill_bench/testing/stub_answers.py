"""What the stub server says: error bodies as vLLM writes them, answers good and bad, vectors."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
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
_PROMPT_TOKENS = 300
_CREATED = 1_700_000_000


class Fault(StrEnum):
    """Faults of a chat completion."""

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
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return msgspec.json.encode(
        {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": _CREATED,
            "model": model,
            "choices": [choice],
            "usage": _usage(text),
        }
    )


def tokens_of(text: str) -> int:
    """About as many as a model would need for it."""
    return len(text) // 3 + 1


def first_pieces(model: str, number: int, text: str) -> bytes:
    """The beginning of a streamed completion: its role, and the first half of its text."""
    role = _event(model, number, {"role": "assistant", "content": ""})
    return role + _event(model, number, {"content": text[: len(text) // 2 + 1]})


def last_pieces(model: str, number: int, text: str, finish_reason: str) -> bytes:
    """The rest of it, and its usage."""
    rest = _event(model, number, {"content": text[len(text) // 2 + 1 :]}, finish_reason)
    usage = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "model": model, "choices": []}
    return rest + b"data: " + msgspec.json.encode(usage | {"usage": _usage(text)}) + b"\n\ndata: [DONE]\n\n"


def metrics(counts: Mapping[str, int], running: int, waiting: int) -> bytes:
    """The body of ``/metrics`` as vLLM writes it, as far as pagemill reads it."""
    answered = counts.get("answered", 0)
    rows = {
        "num_requests_running": running,
        "num_requests_waiting": waiting,
        "kv_cache_usage_perc": min(1.0, running / 100),
        "num_preemptions_total": 0,
        "prefix_cache_queries_total": answered * _PROMPT_TOKENS,
        "prefix_cache_hits_total": 0,
        "prompt_tokens_total": answered * _PROMPT_TOKENS,
        "generation_tokens_total": counts.get("output_tokens", 0),
    }
    return "".join(f'vllm:{name}{{engine="0",model_name="stub"}} {value}\n' for name, value in rows.items()).encode()


def _event(model: str, number: int, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    piece = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": _CREATED, "model": model}
    return b"data: " + msgspec.json.encode(piece | {"choices": [choice]}) + b"\n\n"


def _usage(text: str) -> dict[str, int]:
    tokens = tokens_of(text)
    return {
        "prompt_tokens": _PROMPT_TOKENS,
        "completion_tokens": tokens,
        "total_tokens": _PROMPT_TOKENS + tokens,
    }


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
