"""Reading a region or a page: ask, judge the answer, ask again with changed sampling, accept the best.

What is wrong with it is told.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from pagemill.document.labels import Task
from pagemill.document.page import ContentFormat
from pagemill.errors import NetworkError, UsageError
from pagemill.inference.errors import RequestFailedError, RequestRefusedError
from pagemill.recognition.base import PageReading, Problem, RegionReading
from pagemill.recognition.vlm.cleanup import STEPS, Cleaned, clean
from pagemill.recognition.vlm.guard import AnswerCheck, Flaw, judge
from pagemill.recognition.vlm.page_answers import PageAnswer, read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.config.model_cards import ModelCard, Sampling
    from pagemill.inference.chat import Answer, Asker
    from pagemill.recognition.vlm.requests import PreparedRegion, RequestBuilder

_ATTEMPTS = {Flaw.TRUNCATED: 2, Flaw.EMPTY: 3}
_MOST_ATTEMPTS = 4
"""Answers to one region at most, by the flaw of the first: a text that is cut off is long, and costs most; nothing at
all is often what there is. What the network loses does not count."""
MAX_SHRINKS = 3
"""Each halves the pixels of a region that a server refuses as too large."""
_LONG = 1500
"""Characters of an answer that is judged and cleaned on a thread: longer than a millisecond's work."""
_TEMPERATURE_STEP = 0.1
_PENALTY_STEP = 0.05
_MAX_PENALTY = 1.3
_RETRY_TOP_P = 0.95
_RETRY_TOP_K = 40
_STANDARD_FIELDS = frozenset({"frequency_penalty", "presence_penalty", "seed", "stop"})
"""Of what a card may have in ``extra``."""

_FORMATS = {Task.TABLE: ContentFormat.HTML, Task.FORMULA: ContentFormat.LATEX}


def changed_sampling(first: Sampling, attempt: int, flaw: Flaw | None) -> Sampling:
    """Sampling of an attempt after the first: warmer each time, and against loops a rising repetition penalty.

    A card that allows only the likeliest token (``top_k`` 1, ``top_p`` 0.00001) is loosened, or the temperature would
    change nothing. A fixed seed makes a run repeatable.

    Args:
        first: Of the card.
        attempt: 1 for the second request.
        flaw: Of the answer before. A penalty on repetition spoils tables, so it rises for loops alone.
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


def standard_sampling(sampling: Sampling) -> Sampling:
    """Without the fields that vLLM and its like take beside those of OpenAI's interface."""
    extra = {name: value for name, value in sampling.extra.items() if name in _STANDARD_FIELDS}
    return msgspec.structs.replace(sampling, top_k=None, repetition_penalty=None, extra=extra)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """The best of all answers."""

    text: str
    """Its sound part."""
    problem: Problem | None
    attempts: int


class _UnansweredError(Exception):
    """There is no answer at all, for a cause that concerns this region or page alone."""

    def __init__(self, cause: RequestRefusedError | RequestFailedError, attempts: int) -> None:
        super().__init__(cause.message)
        self.problem = Problem(cause.category, cause.message, cause.remedy)
        self.attempts = attempts


class Reading:
    """Reads regions and pages with one model.

    Runs on the event loop; what takes longer than a millisecond goes to a thread.
    """

    def __init__(self, card: ModelCard, builder: RequestBuilder, asker: Asker, *, engine: str) -> None:
        """Put together what makes requests and what sends them.

        Args:
            card: Sampling, prompts and clean-up.
            builder: Made of the same card.
            asker: The client.
            engine: Name in the record, such as ``vlm:glm-ocr``.

        Raises:
            UsageError: The card names a clean-up step that does not exist.
        """
        if unknown := [step for step in card.cleanup if step not in STEPS]:
            raise UsageError(
                f"the model card {card.name} names an unknown clean-up step {unknown[0]!r}",
                remedy=f"Known: {', '.join(STEPS)}.",
            )
        self._card = card
        self._builder = builder
        self._asker = asker
        self._engine = engine
        self._standard_only = False
        """Whether servers refused fields of a request that are not OpenAI's."""

    async def read(self, prepared: PreparedRegion) -> RegionReading:
        """Read one region.

        Returns:
            Its content; with a problem where the best of all answers has a flaw; without content where the servers
            refused the region or failed on it alone.

        Raises:
            NetworkError: No server could be reached: the page should fail and be tried again later.
            UsageError: The servers do not serve the model.
        """
        try:
            accepted = await self._accepted(prepared)
        except _UnansweredError as error:
            return RegionReading(
                content=None,
                content_format=_FORMATS.get(prepared.task, ContentFormat.MARKDOWN),
                engine=self._engine,
                attempts=error.attempts,
                problem=error.problem,
            )
        cleaned = await _cleaned(accepted.text, prepared.task, self._card.cleanup)
        problem = accepted.problem or cleaned.problem
        if problem is None and not cleaned.content:
            problem = Problem(Flaw.EMPTY, "nothing is left of the answer after its clean-up")
        return RegionReading(
            content=cleaned.content,
            content_format=cleaned.content_format,
            engine=self._engine,
            attempts=accepted.attempts,
            problem=problem,
        )

    async def read_page(self, prepared: PreparedRegion) -> PageReading:
        """Read one page, prepared with the task ``PAGE``; otherwise as :meth:`read`."""
        try:
            accepted = await self._accepted(prepared)
        except _UnansweredError as error:
            return PageReading(elements=None, engine=self._engine, attempts=error.attempts, problem=error.problem)
        answer = await _page_answer(accepted.text, self._card.cleanup)
        return PageReading(
            elements=answer.elements,
            engine=self._engine,
            attempts=accepted.attempts,
            problem=accepted.problem or answer.problem,
        )

    async def _accepted(self, prepared: PreparedRegion) -> _Accepted:
        """Ask, and ask again, until an answer is good or there have been enough."""
        prompt = self._card.prompts[prepared.task.value]
        prepared, answer, shrinks = await self._first_answer(prepared)
        candidates = [(await _judged(answer, prepared.task, prompt), answer)]
        if candidates[0][0].flaw:
            candidates += await self._again(prepared, prompt, candidates[0][0].flaw)
        verdict, answer = min(candidates, key=_rank)
        attempts = shrinks + len(candidates)
        text = answer.text
        # What several answers say alike, and end by themselves, stands on the page, however often.
        is_said = verdict.sound_again is not None and sum(other.text == text for _, other in candidates) > 1
        if verdict.sound_end is not None and not is_said:
            text = text[: verdict.sound_end] + ("" if verdict.sound_again is None else text[verdict.sound_again :])
        return _Accepted(text, _problem(verdict, attempts, is_cut=text != answer.text), attempts)

    async def _ask(self, prepared: PreparedRegion, sampling: Sampling) -> Answer:
        """Ask once. Servers that refuse fields which are not OpenAI's do without them, from then on."""
        standard = standard_sampling(sampling)
        if not self._standard_only:
            try:
                return await self._asker.ask(self._builder.body(prepared, sampling))
            except RequestRefusedError as error:
                own = {"top_k", "repetition_penalty", *sampling.extra} - _STANDARD_FIELDS
                if standard == sampling or not any(name in error.message for name in own):
                    raise
        answer = await self._asker.ask(self._builder.body(prepared, standard))
        self._standard_only = True
        return answer

    async def _first_answer(self, prepared: PreparedRegion) -> tuple[PreparedRegion, Answer, int]:
        """Ask; a region that a server refuses with status 400 or 413 is made smaller and asked about again."""
        for shrinks in range(MAX_SHRINKS + 1):
            try:
                return prepared, await self._ask(prepared, self._card.sampling), shrinks
            except RequestRefusedError as error:
                if error.status not in (400, 413) or shrinks == MAX_SHRINKS:
                    raise _UnansweredError(error, shrinks + 1) from error
                smaller = await asyncio.to_thread(self._builder.smaller, prepared)
                if smaller is None:
                    raise _UnansweredError(error, shrinks + 1) from error
                prepared = smaller
            except RequestFailedError as error:
                raise _UnansweredError(error, shrinks + 1) from error
        raise AssertionError  # the loop returns or raises

    async def _again(self, prepared: PreparedRegion, prompt: str, flaw: Flaw) -> list[tuple[AnswerCheck, Answer]]:
        """Further answers, until one is good: one by one, or all at once where servers have nothing else to do."""
        found: list[tuple[AnswerCheck, Answer]] = []
        attempt, most = 1, _ATTEMPTS.get(flaw, _MOST_ATTEMPTS)
        while attempt < most:
            together = most - attempt if self._asker.has_idle_capacity() else 1
            samplings = [
                changed_sampling(self._card.sampling, number, flaw) for number in range(attempt, attempt + together)
            ]
            answers, failed = await self._race(prepared, prompt, samplings)
            found += answers
            if failed or any(not verdict.flaw for verdict, _ in answers):
                break
            attempt += together
            flaw = found[-1][0].flaw or flaw
        return found

    async def _race(
        self, prepared: PreparedRegion, prompt: str, samplings: Sequence[Sampling]
    ) -> tuple[list[tuple[AnswerCheck, Answer]], bool]:
        """Ask at the same time; the first good answer cancels the others.

        Returns:
            The answers that came, and whether all requests failed. There is an answer already, so a failure is no
            reason to lose it; nor is one to go on asking.
        """

        async def one(sampling: Sampling) -> tuple[AnswerCheck, Answer]:
            answer = await self._ask(prepared, sampling)
            return await _judged(answer, prepared.task, prompt), answer

        tasks = [asyncio.create_task(one(sampling)) for sampling in samplings]
        found: list[tuple[AnswerCheck, Answer]] = []
        failures = 0
        try:
            for finished in asyncio.as_completed(tasks):
                try:
                    found.append(await finished)
                except (RequestRefusedError, RequestFailedError, NetworkError):
                    failures += 1
                    continue
                if not found[-1][0].flaw:
                    break
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return found, failures == len(tasks)


async def _judged(answer: Answer, task: Task, prompt: str) -> AnswerCheck:
    if len(answer.text) > _LONG:
        return await asyncio.to_thread(judge, answer, task, prompt)
    return judge(answer, task, prompt)


async def _cleaned(text: str, task: Task, steps: Sequence[str]) -> Cleaned:
    if len(text) > _LONG:
        return await asyncio.to_thread(clean, text, task, steps)
    return clean(text, task, steps)


async def _page_answer(text: str, steps: Sequence[str]) -> PageAnswer:
    if len(text) > _LONG:
        return await asyncio.to_thread(read_answer, text, steps)
    return read_answer(text, steps)


def _rank(candidate: tuple[AnswerCheck, Answer]) -> tuple[int, int]:
    """The least flawed first; of two with the same flaw the one that says more before it."""
    verdict, answer = candidate
    return verdict.severity, -len(answer.text[: verdict.sound_end])


def _problem(verdict: AnswerCheck, attempts: int, *, is_cut: bool) -> Problem | None:
    if verdict.flaw is None:
        return None
    after = f" ({attempts} attempts)" if attempts > 1 else ""
    kept = "; all but the first time is left out" if is_cut else ""
    return Problem(verdict.flaw, f"{verdict.message}{kept}{after}")
