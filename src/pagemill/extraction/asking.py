"""Asks a model for the values on some pages: checks the answer, retries, and shows it less at once where it fails."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pagemill.config.model_cards import ModelCard, Sampling
from pagemill.document.labels import Task
from pagemill.errors import UsageError
from pagemill.extraction.answers import values_of
from pagemill.extraction.prompting import PagePart, instruction, request_body, text_tokens
from pagemill.extraction.result import ExtractionProblem, ModelRequest
from pagemill.extraction.schema import ExtractionSchema
from pagemill.extraction.thresholds import THRESHOLDS
from pagemill.imaging.types import Pixels
from pagemill.inference.chat import ChatClient
from pagemill.inference.exchange import RequestFailedError, RequestRefusedError
from pagemill.recognition.vlm.asking import Asker, Question, card_for_json
from pagemill.recognition.vlm.guard import Flaw
from pagemill.recognition.vlm.requests import PreparedRegion, RequestBuilder

_SMALLEST_BUDGET = 400


@dataclass(slots=True)
class PartResult:
    """Answers of the model about consecutive pages."""

    parts: list[PagePart]
    values: dict[str, Any] | None
    """None also where the pages were asked about again, in parts."""
    request: ModelRequest
    problem: ExtractionProblem | None = None


@dataclass(slots=True)
class ValueReader:
    """Reads values with one model behind servers. Used on one event loop.

    Args:
        card: Card of the model.
        client: Client of its servers.
        schema: Schema of the values.
        served_model: The name that the user gave for it, if any.
        max_tokens: Most tokens of an answer, if the user gave a number.
    """

    card: ModelCard
    client: ChatClient
    schema: ExtractionSchema
    served_model: str | None = None
    max_tokens: int | None = None
    budget: int = 0
    """Tokens of pages in one request; known after :meth:`check`."""
    most_pages: int = THRESHOLDS.max_pages_per_request
    """Lowered when the servers take fewer."""
    model: str = field(default="", init=False)
    """Its name on the servers, known after :meth:`check`."""
    _asker: Asker = field(init=False)

    async def check(self) -> None:
        """Reach the servers, find the model, and divide its context.

        Raises:
            NetworkError: No server answers.
            UsageError: None serves the model, or its context is too short for the schema.
        """
        served = await self.client.find_model(self.served_model, [self.card.name, self.card.repository])
        self.model = served.name
        context = served.max_model_len or self.card.server.max_model_len
        answer = self.max_tokens or min(self.card.sampling.max_tokens, int(context * THRESHOLDS.answer_share))
        self.budget = context - answer - text_tokens(instruction(self.schema)) - 100
        if self.budget < _SMALLEST_BUDGET:
            raise UsageError(
                f"the context of {served.name}, {context:,} tokens, leaves no room for a page beside the schema and an "
                f"answer of {answer:,} tokens",
                remedy="Lower --max-tokens, shorten the schema, or start the server with a longer --max-model-len.",
            )
        room = int(self.budget * THRESHOLDS.image_share) * self.card.image.token_pixels
        self.card = card_for_json(self.card, room, answer)
        self._asker = Asker(self.client, RequestBuilder(self.card, served.name), self.card.sampling)

    def with_image(self, part: PagePart, pixels: Pixels) -> PagePart:
        """A page with its image as the model gets it. Runs on a computing thread."""
        image = self._asker.builder.prepare(pixels, Task.PAGE)
        return replace(part, image=image, image_tokens=image.tokens)

    async def read(self, parts: list[PagePart], pages: int) -> list[PartResult]:
        """The values on some pages: one result, or several where the pages had to be shown apart.

        Args:
            parts: Consecutive pages that fit into one request.
            pages: Number of pages of the document.

        Raises:
            NetworkError: No server was reachable.
            UsageError: The servers do not serve the model.
        """
        if len(parts) > self.most_pages:
            return await self._halves(parts, pages)
        question = self._question(parts, pages)
        try:
            values, flaw, message, _ = await values_of(self._asker, question, self.schema.problems)
        except (RequestRefusedError, RequestFailedError) as error:
            is_refused = isinstance(error, RequestRefusedError)
            if is_refused and len(parts) > 1:
                if "image" in error.message.lower():  # vLLM names the limit of images for each prompt
                    self.most_pages = min(self.most_pages, max(1, len(parts) // 2))
                return [_shown(parts, question), *await self._halves(parts, pages)]
            return [_result(parts, question, None, error.category, error.message, error.remedy)]
        if values is None and flaw in (Flaw.TRUNCATED, Flaw.REPETITION) and len(parts) > 1:
            return [_shown(parts, question), *await self._halves(parts, pages)]  # fewer pages have fewer values
        return [_result(parts, question, values, flaw, message)]

    async def _halves(self, parts: list[PagePart], pages: int) -> list[PartResult]:
        middle = len(parts) // 2
        # One half after the other: the second may profit from a lower `most_pages` that the first has found.
        return await self.read(parts[:middle], pages) + await self.read(parts[middle:], pages)

    def _question(self, parts: list[PagePart], pages: int) -> Question:
        def write(sampling: Sampling, image: PreparedRegion | None, *, is_guided: bool) -> bytes:
            return request_body(
                parts if len(parts) > 1 else [replace(parts[0], image=image)],
                self.schema,
                card=self.card,
                served_model=self.model,
                sampling=sampling,
                pages=pages,
                is_guided=is_guided,
            )

        return Question(write, parts[0].image if len(parts) == 1 else None, needs_image=False)


def _result(
    parts: list[PagePart],
    question: Question,
    values: dict[str, Any] | None,
    category: str | None,
    message: str,
    remedy: str | None = None,
) -> PartResult:
    result = _shown(parts, question)
    result.values = values
    if values is None or category == Flaw.REPEATED_KEY:
        result.problem = ExtractionProblem(
            pages=result.request.pages,
            category=category or "internal",
            message=message + question.after,
            remedy=remedy,
        )
    return result


def _shown(parts: list[PagePart], question: Question) -> PartResult:
    """What asking about some pages has cost, without values."""
    request = ModelRequest(
        pages=tuple(dict.fromkeys(part.number for part in parts)),
        images=sum(part.image is not None for part in parts),
        attempts=question.attempts,
        prompt_tokens=question.prompt_tokens,
        completion_tokens=question.completion_tokens,
    )
    return PartResult(parts, None, request)
