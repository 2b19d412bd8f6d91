"""The engine ``vllm``: a multimodal embedding model (Qwen3-VL-Embedding) behind vLLM's pooling server.

A request is a list of conversations, each of which becomes one vector: the instruction as the system message, the image
and the text as the user's, and an empty answer that is to be gone on with, so that the prompt ends where the model was
trained to be read (last token). The server normalises.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.blocking import LoopThread
from pagemill.config.model_cards import ModelCard, ModelKind, load_card
from pagemill.embedding.base import EmbeddingInput, EngineIdentity, EngineSettings, Modality, Role
from pagemill.embedding.images import within_budget
from pagemill.imaging.encode import encode_jpeg
from pagemill.inference.client import API_KEY, ServerClient

T = TypeVar("T")

DEFAULT_CARD = "qwen3-vl-embedding-2b"
_BATCH = 16
_REQUESTS_A_SERVER = 4
_TEMPLATE_TOKENS = 64
"""Tokens that the chat template adds to instruction, image and text; about 20 in Qwen3-VL's."""


class _EmbeddingReply(msgspec.Struct):
    index: int
    embedding: str


class _Embeddings(msgspec.Struct):
    data: list[_EmbeddingReply]


class _Tokens(msgspec.Struct):
    tokens: list[int]
    max_model_len: int | None = None


class _Text(msgspec.Struct):
    prompt: str


class VllmEngine:
    """Sends requests to servers. Thread-safe.

    Args:
        card: The model card.
        settings: Servers, time limits, batch size.

    Raises:
        NetworkError: No server answers.
        UsageError: No server serves the model for embedding.
    """

    name = "vllm"
    modalities = frozenset({Modality.TEXT, Modality.IMAGE, Modality.IMAGE_WITH_TEXT})

    def __init__(self, card: ModelCard, settings: EngineSettings) -> None:
        self.max_batch = settings.batch_size or _BATCH
        self.image_budget = card.image
        self.cut_texts = 0
        self._card = card
        instructions: dict[str, str] = card.embedding.get("instructions", {})
        self._instructions = {role: text.strip() for role, text in instructions.items() if text.strip()}
        self._max_tokens = int(card.embedding.get("max_tokens", card.server.max_model_len))
        self._client = ServerClient(
            settings.servers,
            request_timeout_s=settings.timeout_s,
            server_wait_s=settings.wait_s,
            api_key=os.environ.get(API_KEY) or None,
        )
        self.concurrency = _REQUESTS_A_SERVER * len(self._client.servers)
        self._thread = LoopThread("pagemill.embedding", self._client.aclose)
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            self._model = self._thread.call(self._client.find_model(None, [card.name, card.repository])).name
            # No endpoint reports the dimension, and a trial finds a server that does not embed before the run starts.
            self._dimension = self.embed([EmbeddingInput(role=Role.PASSAGE, text="pagemill")]).shape[1]
            stack.pop_all()

    @property
    def identity(self) -> EngineIdentity:
        """Identified by the model card: servers do not report the revision of their weights."""
        return EngineIdentity(
            engine=self.name, model=self._card.name, dimension=self._dimension, instructions=self._instructions
        )

    def embed(self, inputs: Sequence[EmbeddingInput]) -> NDArray[np.float32]:
        """Compute one vector per input with one request.

        Raises:
            RequestRefusedError: The server refuses the request because of one of the inputs.
            RequestFailedError: All attempts failed.
            NetworkError: No server answers.
        """
        body = msgspec.json.encode(
            {
                "model": self._model,
                "messages": [self._conversation(each) for each in inputs],
                # The open turn of the assistant ends the input, as in the model's own code: its last token is the
                # vector.
                "continue_final_message": True,
                "add_special_tokens": True,
                # Exact, and less than half the bytes of JSON numbers.
                "encoding_format": "base64",
                "embed_dtype": "float32",
            }
        )
        count = len(inputs)
        return self._thread.call(
            self._client.post("/v1/embeddings", body, lambda reply: (_vectors(reply, count), count))
        )

    def close(self) -> None:
        """Close connections and stop the thread of the event loop."""
        self._thread.close()

    def _conversation(self, each: EmbeddingInput) -> list[dict[str, Any]]:
        instruction = self._instructions.get(each.role, "")
        content: list[dict[str, Any]] = []
        # In bytes, of which a token has at least one: no tokenizer is needed for texts that surely fit.
        room = self._max_tokens - _TEMPLATE_TOKENS - len(instruction.encode())
        if each.image is not None:
            image = within_budget(each.image, self._card.image)
            data = base64.b64encode(encode_jpeg(image, self._card.image.quality)).decode("ascii")
            content.append({"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}})
            room -= image.shape[0] * image.shape[1] // self._card.image.multiple**2 + 2
        if each.text:
            content.append(_text_part(self._within(each.text, max(1, room))))
        messages = [{"role": "user", "content": content}, {"role": "assistant", "content": [_text_part("")]}]
        return [{"role": "system", "content": [_text_part(instruction)]}, *messages] if instruction else messages

    def _within(self, text: str, room: int) -> str:
        """Cut a text to ``room`` tokens of the model. A text of no more bytes than that is not counted."""
        if len(text.encode()) <= room:
            return text
        prompt = {"model": self._model, "prompt": text, "add_special_tokens": False}
        tokens = self._ask("/tokenize", prompt, _Tokens)
        if tokens.max_model_len is not None and tokens.max_model_len < self._max_tokens:
            room -= self._max_tokens - tokens.max_model_len  # the server was started for less than the model can
        if len(tokens.tokens) <= room:
            return text
        self.cut_texts += 1
        kept = {"model": self._model, "tokens": tokens.tokens[: max(1, room)]}
        # The cut may be inside a character of several tokens.
        return self._ask("/detokenize", kept, _Text).prompt.rstrip("\N{REPLACEMENT CHARACTER}")

    def _ask(self, path: str, body: dict[str, Any], answer: type[T]) -> T:
        decoder = msgspec.json.Decoder(answer)
        return self._thread.call(
            self._client.post(path, msgspec.json.encode(body), lambda reply: (decoder.decode(reply), 1))
        )


def create(settings: EngineSettings) -> VllmEngine:
    """The engine; its entry point.

    Raises:
        UsageError: There is no such model card, or its model does not embed.
    """
    return VllmEngine(load_card(settings.model or DEFAULT_CARD, ModelKind.EMBEDDING), settings)


def _text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _vectors(reply: bytes, count: int) -> NDArray[np.float32]:
    """The vectors in a server's answer, in the order of what was asked.

    Raises:
        ValueError: It is invalid: not one vector for each, or of other lengths.
    """
    # The API names the input of each vector, and does not promise their order.
    data = sorted(msgspec.json.decode(reply, type=_Embeddings).data, key=lambda each: each.index)
    if [each.index for each in data] != list(range(count)):
        raise ValueError(f"{len(data)} vectors for {count} inputs")
    rows = [np.frombuffer(base64.b64decode(each.embedding, validate=True), dtype="<f4") for each in data]
    vectors = np.stack(rows).astype(np.float32)
    if not vectors.size:
        raise ValueError("vectors without components")
    return vectors
