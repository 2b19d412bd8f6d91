"""Asks a model: less where its servers refuse a request, again with changed sampling where an answer has a flaw."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from pagemill.config.model_cards import ModelCard, Sampling
from pagemill.errors import NetworkError
from pagemill.inference.chat import Answer
from pagemill.inference.exchange import RequestFailedError, RequestRefusedError
from pagemill.recognition.vlm.guard import Flaw
from pagemill.recognition.vlm.requests import PreparedRegion, RequestBuilder

_MAX_SHRINKS = 3
"""Each halves the pixels of an image that a server refused as too large."""
_ABOUT_LENGTH = re.compile(
    r"(?i)max_(?:completion_|new_)?tokens|max_model_len|maximum model length|context.(?:length|window|size)"
)
"""Messages of servers about a request that is too long for the model; not those about a large image, which names the
encoder cache or pixels."""
_ABOUT_GUIDING = re.compile(r"(?i)response_format|json.?schema|guided|grammar|structured|schema")
_TEMPERATURE_STEP = 0.1
_PENALTY_STEP = 0.05
_MAX_PENALTY = 1.3
_RETRY_TOP_P = 0.95
_RETRY_TOP_K = 40
_STANDARD_FIELDS = frozenset({"frequency_penalty", "presence_penalty", "seed", "stop"})
"""Keys of ``extra`` in a card."""


class Checked(Protocol):
    """The result of checking an answer."""

    @property
    def flaw(self) -> Flaw | None:
        """What is wrong with it."""


C = TypeVar("C", bound=Checked)


class AsksBody(Protocol):
    """What sends the body of a chat completion."""

    async def ask(self, body: bytes) -> Answer:
        """See :meth:`pagemill.inference.chat.ChatClient.ask`."""


class WriteBody(Protocol):
    """Writes the JSON body of a chat completion."""

    def __call__(self, sampling: Sampling, image: PreparedRegion | None, *, is_guided: bool) -> bytes:
        """With this sampling and image; ``is_guided``: the server is to enforce the schema while it decodes."""


@dataclass(slots=True)
class Question:
    """What is asked, in the form that servers take, and what that has cost."""

    write: WriteBody
    image: PreparedRegion | None = None
    """One that may be made smaller where the servers refuse its size."""
    needs_image: bool = True
    """Without its image the request makes no sense; else it is left out at last."""
    attempts: int = 0
    """Requests."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    _shrinks: int = 0
    _longest: int | None = None
    """Tokens of an answer, for a request without an image that was refused as too long."""

    @property
    def after(self) -> str:
        """For messages: how often it was asked."""
        return f" ({self.attempts} attempts)" if self.attempts > 1 else ""

    def count(self, answer: Answer) -> None:
        """Count an answer's tokens, as far as the server reports them."""
        for name in ("prompt_tokens", "completion_tokens"):
            if (count := getattr(answer, name)) is not None:
                setattr(self, name, (getattr(self, name) or 0) + count)

    def body(self, sampling: Sampling, *, is_guided: bool) -> bytes:
        """The request, with an answer no longer than the servers take."""
        longest = self._longest if self.image is None else self.image.longest_answer
        if longest is not None:
            sampling = msgspec.structs.replace(sampling, max_tokens=min(longest, sampling.max_tokens))
        return self.write(sampling, self.image, is_guided=is_guided)

    async def ask_less(self, refusal: RequestRefusedError, sampling: Sampling, builder: RequestBuilder) -> bool:
        """Ask for a shorter answer, send a smaller image or none; False where nothing is left to give up.

        A smaller image leaves room for a long answer again.
        """
        if refusal.status not in (400, 413):
            return False
        is_long = _ABOUT_LENGTH.search(refusal.message) is not None
        if self.image is None:
            if not is_long or self._longest is not None:
                return False
            self._longest = max(1, sampling.max_tokens // 2)
            return True
        again = builder.shorter(self.image) if is_long else None
        if again is None and self._shrinks < _MAX_SHRINKS:
            again = await asyncio.to_thread(builder.smaller, self.image)
            self._shrinks += 1
        if again is None and self.needs_image:
            return False
        self.image = again
        return True


class Asker:
    """Asks one model. Optional parts of a request that its servers refuse once are not sent to them again.

    Args:
        client: Of the servers, or of the model in this process.
        builder: Of the model's requests.
        sampling: Of a first request.
    """

    def __init__(self, client: AsksBody, builder: RequestBuilder, sampling: Sampling) -> None:
        self.builder = builder
        self._client = client
        self._sampling = sampling
        self._is_guided = True
        self._is_standard = False

    async def answers(
        self, question: Question, check: Callable[[Answer], C], limits: Mapping[Flaw, int], most: int
    ) -> list[tuple[C, Answer]]:
        """Answers until one has no flaw, with the result of their check; at least one.

        A failure after the first answer ends the list: an answer in hand is not lost to it.

        Args:
            question: Counts what this costs.
            check: Called on a thread.
            limits: The most answers, by the flaw of the first.
            most: The most answers for other flaws.

        Raises:
            RequestRefusedError: The servers refuse the request.
            RequestFailedError: No attempt succeeded while servers answered other requests.
            NetworkError: No server was reachable.
            UsageError: The servers do not serve the model.
        """
        found: list[tuple[C, Answer]] = []
        sampling = self._sampling
        while True:
            try:
                answer = await self._ask(question, sampling)
            except (RequestRefusedError, RequestFailedError, NetworkError):
                if not found:
                    raise
                return found
            found.append((await asyncio.to_thread(check, answer), answer))
            first, last = found[0][0].flaw, found[-1][0].flaw
            if first is None or last is None or len(found) >= limits.get(first, most):
                return found
            sampling = changed_sampling(self._sampling, len(found), last)

    async def _ask(self, question: Question, sampling: Sampling) -> Answer:
        while True:
            question.attempts += 1
            # As they were when it was sent: requests in flight together are refused for the same cause.
            is_guided, is_standard = self._is_guided, self._is_standard
            asked = _standard(sampling) if is_standard else sampling
            try:
                answer = await self._client.ask(question.body(asked, is_guided=is_guided))
            except RequestRefusedError as error:
                own = {"top_k", "repetition_penalty", *sampling.extra} - _STANDARD_FIELDS
                if is_guided and _ABOUT_GUIDING.search(error.message):
                    self._is_guided = False
                elif asked != _standard(sampling) and any(name in error.message for name in own):
                    self._is_standard = True
                elif not await question.ask_less(error, sampling, self.builder):
                    raise
                continue
            question.count(answer)
            return answer


def card_for_json(card: ModelCard, max_pixels: int, max_tokens: int) -> ModelCard:
    """A card for answers of JSON, in which keys repeat: a repetition penalty would spoil it."""
    image = msgspec.structs.replace(card.image, max_pixels=min(card.image.max_pixels, max_pixels))
    sampling = msgspec.structs.replace(card.sampling, max_tokens=max_tokens, repetition_penalty=None)
    return msgspec.structs.replace(card, image=image, sampling=sampling)


def changed_sampling(first: Sampling, attempt: int, flaw: Flaw | None) -> Sampling:
    """Sampling of a retry: a rising temperature, and for loops a rising repetition penalty.

    A card that allows only the likeliest token (``top_k`` 1, ``top_p`` 0.00001) is relaxed, since the temperature would
    have no effect. A fixed seed makes a run repeatable.

    Args:
        first: The card's sampling.
        attempt: 1 for the second request.
        flaw: Flaw of the previous answer. A repetition penalty spoils tables, so it rises for loops only.
    """
    penalty = first.repetition_penalty
    if flaw is Flaw.REPETITION:
        penalty = min(_MAX_PENALTY, (penalty or 1.0) + _PENALTY_STEP * attempt)
    return msgspec.structs.replace(
        first,
        temperature=round(first.temperature + _TEMPERATURE_STEP * attempt, 3),
        top_p=max(first.top_p or 0.0, _RETRY_TOP_P),
        top_k=max(first.top_k or 0, _RETRY_TOP_K),
        repetition_penalty=penalty,
        extra={**first.extra, "seed": attempt},
    )


def _standard(sampling: Sampling) -> Sampling:
    """The sampling without vLLM's extensions of the OpenAI API."""
    extra = {name: value for name, value in sampling.extra.items() if name in _STANDARD_FIELDS}
    return msgspec.structs.replace(sampling, top_k=None, repetition_penalty=None, extra=extra)
