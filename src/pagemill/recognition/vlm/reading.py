"""Read a region or page: request, check the answer, retry with changed sampling, accept the best answer.

Flaws of the accepted answer are reported.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from pagemill.document.labels import Task
from pagemill.document.page import ContentFormat
from pagemill.errors import NetworkError, UsageError
from pagemill.inference.exchange import RequestFailedError, RequestRefusedError
from pagemill.recognition.base import PageReading, Problem, RegionReading
from pagemill.recognition.vlm.cleanup import STEPS, Cleaned, clean
from pagemill.recognition.vlm.guard import AnswerCheck, Flaw, judge
from pagemill.recognition.vlm.page_answers import PageAnswer, read_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.config.model_cards import ModelCard, Sampling
    from pagemill.inference.chat import Answer, ChatClient
    from pagemill.recognition.vlm.requests import PreparedRegion, RequestBuilder

_ATTEMPTS = {Flaw.TRUNCATED: 2, Flaw.EMPTY: 3}
_MOST_ATTEMPTS = 4
"""The most answers for one region, by the flaw of the first: a truncated text is long and costs most; an empty answer
is often right. Network failures do not count."""
MAX_SHRINKS = 3
"""Each halves the pixels of a region that a server refused as too large."""
_LONG = 1500
"""Characters from which an answer is checked and cleaned on a thread: more than a millisecond of work."""
_TEMPERATURE_STEP = 0.1
_PENALTY_STEP = 0.05
_MAX_PENALTY = 1.3
_RETRY_TOP_P = 0.95
_RETRY_TOP_K = 40
_STANDARD_FIELDS = frozenset({"frequency_penalty", "presence_penalty", "seed", "stop"})
"""Keys of ``extra`` in a card."""

_FORMATS = {Task.TABLE: ContentFormat.HTML, Task.FORMULA: ContentFormat.LATEX}


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


def standard_sampling(sampling: Sampling) -> Sampling:
    """The sampling without vLLM's extensions of the OpenAI API."""
    extra = {name: value for name, value in sampling.extra.items() if name in _STANDARD_FIELDS}
    return msgspec.structs.replace(sampling, top_k=None, repetition_penalty=None, extra=extra)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """The best of all answers."""

    text: str
    """The sound part of its text."""
    problem: Problem | None
    attempts: int


class _UnansweredError(Exception):
    """There is no answer, for a reason that concerns this region or page only."""

    def __init__(self, cause: RequestRefusedError | RequestFailedError, attempts: int) -> None:
        super().__init__(cause.message)
        self.problem = Problem(cause.category, cause.message, cause.remedy)
        self.attempts = attempts


class Reading:
    """Reads regions and pages with one model.

    Runs on the event loop; work over a millisecond goes to a thread.
    """

    def __init__(self, card: ModelCard, builder: RequestBuilder, asker: ChatClient, *, engine: str) -> None:
        """Combine a request builder and a client.

        Args:
            card: Sampling, prompts and clean-up.
            builder: Built from the same card.
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
        """Whether servers refused request fields that are not OpenAI's."""

    async def read(self, prepared: PreparedRegion) -> RegionReading:
        """Read one region.

        Returns:
            Its content, with a problem if the best answer has a flaw; no content if the servers refused the region or
            failed on it alone.

        Raises:
            NetworkError: No server was reachable: the page should fail and be retried later.
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
            problem = Problem(Flaw.EMPTY, "the answer is empty after clean-up")
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
        """Request answers until one is good or the attempts are used up."""
        prompt = self._card.prompts[prepared.task.value]
        prepared, answer, shrinks = await self._first_answer(prepared)
        candidates = [(await _judged(answer, prepared.task, prompt), answer)]
        if candidates[0][0].flaw:
            candidates += await self._again(prepared, prompt, candidates[0][0].flaw)
        verdict, answer = min(candidates, key=_rank)
        attempts = shrinks + len(candidates)
        text = answer.text
        # If several finished answers agree, the repetition is on the page.
        is_said = verdict.sound_again is not None and sum(other.text == text for _, other in candidates) > 1
        if verdict.sound_end is not None and not is_said:
            text = text[: verdict.sound_end] + ("" if verdict.sound_again is None else text[verdict.sound_again :])
        return _Accepted(text, _problem(verdict, attempts, is_cut=text != answer.text), attempts)

    async def _ask(self, prepared: PreparedRegion, sampling: Sampling) -> Answer:
        """Send one request. Servers that refuse fields that are not OpenAI's no longer get them."""
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
        """Send one request; a region refused with status 400 or 413 is shrunk and sent again."""
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
        """Further answers until one is good: one at a time, or all at once if servers are idle."""
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
        """Send requests at the same time; the first good answer cancels the others.

        Returns:
            The answers, and whether all requests failed. There is an answer already: a failure neither discards it nor
            calls for more requests.
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
    """Sort key: least flawed first; of equal flaws the one with more sound text."""
    verdict, answer = candidate
    return verdict.severity, -len(answer.text[: verdict.sound_end])


def _problem(verdict: AnswerCheck, attempts: int, *, is_cut: bool) -> Problem | None:
    if verdict.flaw is None:
        return None
    after = f" ({attempts} attempts)" if attempts > 1 else ""
    kept = "; repetitions after the first are left out" if is_cut else ""
    return Problem(verdict.flaw, f"{verdict.message}{kept}{after}")
