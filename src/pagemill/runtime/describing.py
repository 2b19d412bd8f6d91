"""The describing service of a run: its failures cost an element its description, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagemill.config.settings import ParseSettings
from pagemill.document.page import Description
from pagemill.errors import NetworkError, OutputError, UsageError
from pagemill.recognition.base import Problem
from pagemill.runtime.contract import engine_error
from pagemill.runtime.once import Once
from pagemill.runtime.threads import ComputeThreads

if TYPE_CHECKING:
    from pagemill.describing.describer import Describer
    from pagemill.describing.elements import ElementRequest


def describing(settings: ParseSettings, threads: ComputeThreads) -> Once[Describer]:
    """The describer of a run, made on first use; its package is imported on a thread.

    Making it raises a ``UsageError`` where there is no such model or no server is named, and a
    ``MissingDependencyError`` where requests need packages that are not installed.
    """

    def load() -> Describer:
        from pagemill.describing.describer import Describer

        return Describer(settings.describing, settings.recognition.asked or settings.recognition)

    return Once(lambda: threads.run(load), lambda describer: describer.aclose())


async def describe(describer: Describer, element: ElementRequest) -> Description | Problem | None:
    """The description of an element by a model, or why there is none; None beyond the limit.

    Raises:
        NetworkError: No server was reachable for so long that the page should fail and be tried again later.
        UsageError: The servers do not serve this run.
        OutputError: The answer cannot be kept.
    """
    try:
        return await describer.describe(element)
    # These end the run: every further element would fail in the same way.
    except (NetworkError, OutputError, UsageError):
        raise
    except Exception as raised:
        error = engine_error("the description", raised)
        return Problem(error.category, error.message, error.remedy)
