"""Read a region or page: have it asked for, check the answers, accept the best one.

Flaws of the accepted answer are reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from pagemill.config.model_cards import ModelCard, ModelKind, Sampling, load_card
from pagemill.config.modes import VLM, ReadingMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.labels import Task
from pagemill.document.page import ContentFormat
from pagemill.errors import UsageError
from pagemill.imaging.types import Pixels
from pagemill.inference.chat import Answer
from pagemill.inference.exchange import RequestFailedError, RequestRefusedError
from pagemill.inference.models import Served
from pagemill.recognition.base import PageReading, Problem, RegionReader, RegionReading
from pagemill.recognition.vlm.asking import Asker, Question
from pagemill.recognition.vlm.cleanup import STEPS, clean
from pagemill.recognition.vlm.guard import MAX_CHARACTERS, AnswerCheck, Flaw, judge
from pagemill.recognition.vlm.page_answers import read_answer
from pagemill.recognition.vlm.requests import PreparedRegion, RequestBuilder

_ATTEMPTS = {Flaw.TRUNCATED: 2, Flaw.EMPTY: 3}
_MOST_ATTEMPTS = 4
"""The most answers for one region, by the flaw of the first: a truncated text is long and costs most; an empty answer
is often right. Network failures do not count."""
_FORMATS = {Task.TABLE: ContentFormat.HTML, Task.FORMULA: ContentFormat.LATEX}


class ChatTransport(Protocol):
    """What answers chat completions: servers, or a model in this process."""

    @property
    def in_flight(self) -> int:
        """The most requests that are in flight."""

    async def find_model(self, wanted: str | None, known: Sequence[str]) -> Served:
        """See :meth:`pagemill.inference.client.ServerClient.find_model`."""

    async def ask(self, body: bytes) -> Answer:
        """See :meth:`pagemill.inference.chat.ChatClient.ask`."""

    def stop_waiting(self) -> None:
        """The run is ending."""

    async def aclose(self) -> None:
        """Close connections."""


def reading_card(settings: RecognitionSettings) -> tuple[ModelCard, ReadingMode]:
    """The card of the model that reads, and what it is sent.

    Raises:
        UsageError: There is no such model card, it has another kind, or it cannot read what it is to.
    """
    card = load_card(settings.model, ModelKind.RECOGNITION)
    reads = settings.reading or card.reads
    if reads is ReadingMode.PAGES and not card.prompts.get("page"):
        raise UsageError(
            f"{card.name} does not read whole pages: its card has no prompt for one",
            remedy="Use --reading regions, or choose another --model.",
        )
    return card, reads


class VlmReader(RegionReader):
    """Reads regions or pages with one model, behind servers or in this process.

    Runs on the event loop; answers are checked and cleaned on threads.

    Args:
        card: Of the model.
        client: Asks it.
        served_model: The name that the user gave for it; None: whatever the servers call it.
        reads: Regions, or pages.
        max_tokens: Of an answer, if the user gave a number; None: the limit of the card.
        engine: For the record, which also names the card.

    Raises:
        UsageError: The card names a clean-up step that does not exist.
    """

    def __init__(
        self,
        card: ModelCard,
        client: ChatTransport,
        served_model: str | None = None,
        reads: ReadingMode = ReadingMode.REGIONS,
        max_tokens: int | None = None,
        *,
        engine: str = VLM,
    ) -> None:
        if unknown := [step for step in card.cleanup if step not in STEPS]:
            raise UsageError(
                f"the model card {card.name} names an unknown clean-up step {unknown[0]!r}",
                remedy=f"Known: {', '.join(STEPS)}.",
            )
        if max_tokens is not None:
            sampling = msgspec.structs.replace(card.sampling, max_tokens=max_tokens)
            card = msgspec.structs.replace(card, sampling=sampling)
        self._asked_tokens = max_tokens or 0
        self.name = f"{engine}:{card.name}"
        self.reads = reads
        self._card = card
        self._client = client
        self._given_name = self._served_model = served_model
        self._asker = self._asker_of(served_model or card.name)

    @property
    def in_flight(self) -> int:  # type: ignore[override]  # a class variable there
        """See :attr:`pagemill.recognition.base.RegionReader.in_flight`; known for a local model once it is loaded."""
        return self._client.in_flight

    @property
    def served_model(self) -> str | None:
        """See :attr:`pagemill.recognition.base.RegionReader.served_model`; empty for a name of the model card."""
        return self._served_model

    async def check(self) -> None:
        """Reach the servers and find the model on them.

        Raises:
            NetworkError: No server answers.
            UsageError: None is an OpenAI-compatible server that takes the API key and serves the model, or it takes
                no answers of the length that is asked for.
        """
        own_names = [self._card.name, self._card.repository]
        served = await self._client.find_model(self._given_name, own_names)
        self._served_model = "" if served.name in own_names else served.name
        longest = served.max_model_len
        if longest is not None and longest <= self._asked_tokens:
            raise UsageError(
                f"answers of {self._asked_tokens:,} tokens are asked for, and the server accepts requests of at most "
                f"{longest:,}, image and answer together",
                remedy=f"Lower --max-tokens, or start the server with --max-tokens {self._asked_tokens}.",
            )
        self._asker = self._asker_of(served.name, longest)

    def _asker_of(self, served_model: str, context: int | None = None) -> Asker:
        return Asker(self._client, RequestBuilder(self._card, served_model, context), self._card.sampling)

    def prepare(self, crop: Pixels, task: Task) -> PreparedRegion:
        """See :meth:`pagemill.recognition.base.RegionReader.prepare`."""
        return self._asker.builder.prepare(crop, task)

    async def read(self, prepared: PreparedRegion) -> RegionReading:
        """Read one region.

        Returns:
            Its content, with a problem if the best answer has a flaw; no content if the servers refused the region or
            failed on it alone.

        Raises:
            NetworkError: No server was reachable: the page should fail and be retried later.
            UsageError: The servers do not serve the model.
        """
        text, problem, attempts = await self._accepted(prepared)
        content, content_format = None, _FORMATS.get(prepared.task, ContentFormat.MARKDOWN)
        if text is not None:
            cleaned = await asyncio.to_thread(clean, text, prepared.task, self._card.cleanup)
            content, content_format = cleaned.content, cleaned.content_format
            problem = problem or cleaned.problem
            if problem is None and not content:
                problem = Problem(Flaw.EMPTY, "the answer is empty after clean-up")
        return RegionReading(
            content=content, content_format=content_format, engine=self.name, attempts=attempts, problem=problem
        )

    async def read_page(self, prepared: PreparedRegion) -> PageReading:
        """Read one page, prepared with the task ``PAGE``; otherwise as :meth:`read`."""
        text, problem, attempts = await self._accepted(prepared)
        elements = None
        if text is not None:
            elements, flaw = await asyncio.to_thread(read_answer, text, self._card.cleanup)
            problem = problem or flaw
        return PageReading(elements=elements, engine=self.name, attempts=attempts, problem=problem)

    def stop_waiting(self) -> None:
        """See :meth:`pagemill.recognition.base.RegionReader.stop_waiting`."""
        self._client.stop_waiting()

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _accepted(self, prepared: PreparedRegion) -> tuple[str | None, Problem | None, int]:
        """Request answers until one is good or the attempts are used up.

        Returns:
            The sound part of the best answer, or None if there is no answer for a reason that concerns this region or
            page only; the problem; the number of attempts.
        """
        builder, prompt = self._asker.builder, self._card.prompts[prepared.task.value]

        def write(sampling: Sampling, image: PreparedRegion | None, *, is_guided: bool) -> bytes:
            assert image is not None
            return builder.body(image, sampling)

        question = Question(write, prepared)
        try:
            candidates = await self._asker.answers(
                question, lambda answer: judge(answer, prepared.task, prompt), _ATTEMPTS, _MOST_ATTEMPTS
            )
        except (RequestRefusedError, RequestFailedError) as error:
            return None, Problem(error.category, error.message, error.remedy), question.attempts
        verdict, answer = min(candidates, key=_rank)
        # If several finished answers agree, the repetition is on the page.
        is_said = verdict.finished and sum(other.text == answer.text for _, other in candidates) > 1
        text = answer.text if verdict.sound is None or is_said else verdict.sound
        problem = None
        if verdict.flaw is not None:
            kept = "; repetitions after the first are left out" if text != answer.text else ""
            problem = Problem(verdict.flaw, f"{verdict.message}{kept}{question.after}")
        return text[:MAX_CHARACTERS], problem, question.attempts


def _rank(candidate: tuple[AnswerCheck, Answer]) -> tuple[int, int]:
    """Sort key: least flawed first; of equal flaws the one with more sound text."""
    verdict, answer = candidate
    return verdict.severity, -len(answer.text if verdict.sound is None else verdict.sound)
