"""Asks a model for JSON: guided decoding where the server has it, checks, retries, less where it refuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from pagemill.config.model_cards import ModelCard, Sampling
from pagemill.extraction.answers import Flaw, read_answer
from pagemill.extraction.thresholds import THRESHOLDS
from pagemill.inference.chat import Answer, ChatClient
from pagemill.inference.exchange import RequestRefusedError
from pagemill.recognition.vlm.guard import Flaw as TextFlaw
from pagemill.recognition.vlm.reading import ABOUT_LENGTH, MAX_SHRINKS, changed_sampling, standard_sampling
from pagemill.recognition.vlm.requests import PreparedRegion, RequestBuilder

_ABOUT_GUIDING = re.compile(r"(?i)response_format|json.?schema|guided|grammar|structured|schema")


@dataclass(slots=True)
class Spent:
    """What asking has cost."""

    attempts: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def add(self, answer: Answer) -> None:
        """Count an answer's tokens, as far as the server says."""
        for name in ("prompt_tokens", "completion_tokens"):
            if (count := getattr(answer, name)) is not None:
                setattr(self, name, (getattr(self, name) or 0) + count)


class WriteBody(Protocol):
    """Writes the JSON body of a chat completion."""

    def __call__(self, sampling: Sampling, image: PreparedRegion | None, *, is_guided: bool) -> bytes:
        """With this sampling and image; ``is_guided``: the server is to enforce the schema while it decodes."""


@dataclass(slots=True)
class GuidedModel:
    """A model that answers with JSON. What its servers refuse once is not asked of them again."""

    card: ModelCard
    client: ChatClient
    builder: RequestBuilder
    keeps_blanks: bool = False
    """Empty texts of an answer are values."""
    needs_image: bool = False
    """Without its image a request makes no sense."""
    _is_guided: bool = True
    _is_standard: bool = False

    async def valid(
        self,
        write: WriteBody,
        problems: Callable[[Mapping[str, Any]], list[str]],
        spent: Spent,
        image: PreparedRegion | None = None,
    ) -> tuple[dict[str, Any] | None, Flaw | None, str]:
        """Values, of the answer with the fewest problems, and the first of these; or the flaw of the last answer.

        Args:
            write: Writes the body of a request.
            problems: What is wrong with an answer's values.
            spent: Counts what it costs.
            image: One that may be made smaller, and left out at last, where the servers refuse its size.

        Raises:
            RequestRefusedError: The servers refuse the request.
            RequestFailedError: No attempt succeeded while servers answered other requests.
            NetworkError: No server was reachable.
            UsageError: The servers do not serve the model.
        """
        best: tuple[list[str], dict[str, Any], Flaw] | None = None
        flaw, message = None, ""
        sampling = self.card.sampling
        for attempt in range(THRESHOLDS.attempts):
            answer = await self._ask(write, sampling, spent, image)
            values, flaw, message = await asyncio.to_thread(read_answer, answer, keep_blanks=self.keeps_blanks)
            if values is not None:
                found = [message] if flaw else []
                found += await asyncio.to_thread(problems, values)
                if not found:
                    return values, None, ""
                if best is None or len(found) < len(best[0]):
                    best = found, values, flaw or Flaw.SCHEMA
            elif flaw in (Flaw.TRUNCATED, Flaw.REPETITION) and attempt:
                break  # a long answer costs most
            penalised = TextFlaw.REPETITION if flaw is Flaw.REPETITION else None
            sampling = changed_sampling(self.card.sampling, attempt + 1, penalised)
        if best is not None:
            return best[1], best[2], best[0][0]
        return None, flaw, message

    async def _ask(self, write: WriteBody, sampling: Sampling, spent: Spent, image: PreparedRegion | None) -> Answer:
        """One answer.

        What the servers refuse is given up, one thing after the other: guided decoding, fields that are not OpenAI's,
        half of the answer's length, the size of the image, the image.
        """
        shrinks, is_shorter = 0, False
        while True:
            spent.attempts += 1
            # As they were when it was sent: requests in flight together are refused for the same cause.
            is_guided, is_standard = self._is_guided, self._is_standard
            asked = standard_sampling(sampling) if is_standard else sampling
            try:
                answer = await self.client.ask(write(asked, image, is_guided=is_guided))
            except RequestRefusedError as error:
                smaller = None
                own = {"top_k", "repetition_penalty", *sampling.extra}
                if is_guided and _ABOUT_GUIDING.search(error.message):
                    self._is_guided = False
                elif not is_standard and any(name in error.message for name in own):
                    self._is_standard = True
                elif error.status == 400 and not is_shorter and ABOUT_LENGTH.search(error.message):
                    sampling = msgspec.structs.replace(sampling, max_tokens=max(1, sampling.max_tokens // 2))
                    is_shorter = True
                elif error.status in (400, 413) and image is not None:
                    if shrinks < MAX_SHRINKS:
                        smaller = await asyncio.to_thread(self.builder.smaller, image)
                    if smaller is None and self.needs_image:
                        raise
                    image = smaller
                    shrinks += 1
                else:
                    raise
                continue
            spent.add(answer)
            return answer
