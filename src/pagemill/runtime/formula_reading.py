"""The formula service: display formulas of all pages in flight, read by the installed engine that has a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pagemill.errors import PagemillError
from pagemill.imaging.types import Pixels
from pagemill.recognition.base import FormulaOffer, FormulaRecognizer, RecognizedFormula
from pagemill.runtime import engines
from pagemill.runtime.contract import checked_formula, engine_error
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.once import Once
from pagemill.runtime.threads import ComputeThreads

_OWN = "formulanet"
"""The embedded engine comes last: an installed one is preferred."""


class FormulaReading:
    """Reads crops of formulas with one engine, which loads on first use.

    Args:
        threads: Threads on which the engine computes.
        lanes: Calls of the engine that may run at once.
    """

    def __init__(self, *, threads: ComputeThreads, lanes: int) -> None:
        self._threads = threads
        self._lanes = lanes
        self._offers: Once[list[FormulaOffer]] = Once(lambda: threads.run(formula_offers))
        self._engine: Once[MicroBatcher[Pixels, RecognizedFormula]] = Once(self._load, lambda batcher: batcher.close())

    async def engine(self) -> str | None:
        """The name of the engine that reads formulas; None where there is none, or none has a model.

        Raises:
            MissingDependencyError: An engine's package cannot be imported.
            EngineError: An engine cannot list what it offers.
        """
        return next((offer.name for offer in await self._offers.get()), None)

    async def read(self, crops: Sequence[Pixels]) -> list[RecognizedFormula | PagemillError]:
        """Read crops, in microbatches with other pages; one that fails has its error in its place.

        Raises:
            PagemillError: The engine cannot be loaded.
        """
        engine = await self._engine.get()
        # All are waited for: an error of one crop must not cancel the others of the page.
        answers = await asyncio.gather(*map(engine.submit, crops), return_exceptions=True)
        results: list[RecognizedFormula | PagemillError] = []
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, PagemillError):
                raise answer
            results.append(answer)
        return results

    async def close(self) -> None:
        """Stop all calls and free the model."""
        await self._offers.close()
        await self._engine.close()

    async def _load(self) -> MicroBatcher[Pixels, RecognizedFormula]:
        offer = (await self._offers.get())[0]
        name = f"the formula engine {offer.name!r}"
        try:
            engine: FormulaRecognizer = await self._threads.run(offer.create)
        except Exception as error:
            raise engine_error(name, error) from error
        return MicroBatcher(
            engine.recognize,
            name=name,
            threads=self._threads,
            max_batch=engine.max_batch,
            concurrency=self._lanes,
            check=checked_formula,
            free=engine.close,
        )


def formula_offers() -> list[FormulaOffer]:
    """What all installed formula engines offer; the first reads.

    Raises:
        MissingDependencyError: An engine's package cannot be imported.
        EngineError: An engine cannot list what it offers.
    """
    found: list[FormulaOffer] = []
    for name in sorted(engines.names(engines.FORMULA_ENGINES), key=lambda name: (name == _OWN, name)):
        offers = engines.load(engines.FORMULA_ENGINES, name)
        try:
            found += offers()
        except Exception as error:
            raise engine_error(f"the formula engine {name!r}", error) from error
    return found
