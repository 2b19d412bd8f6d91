"""The describing service of a run: what it does wrong costs an element its description, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagemill.errors import NetworkError, OutputError, UsageError
from pagemill.recognition.base import Problem
from pagemill.runtime.contract import engine_error

if TYPE_CHECKING:
    from pagemill.config.settings import ParseSettings
    from pagemill.describing.describer import Describer
    from pagemill.describing.elements import ElementRequest
    from pagemill.document.page import Description
    from pagemill.runtime.threads import ComputeThreads


async def load_describer(settings: ParseSettings, threads: ComputeThreads) -> Describer:
    """The describer of a run; its package is imported on a thread.

    Raises:
        UsageError: There is no such model, or no server is named.
        MissingDependencyError: Requests need packages that are not installed.
    """
    return await threads.run(_load, settings)


async def describe(describer: Describer, element: ElementRequest) -> Description | Problem | None:
    """What a model says that an element shows, or why it does not; None beyond the limit.

    Raises:
        NetworkError: No server was reachable for so long that the page should fail and be tried again later.
        UsageError: The servers do not serve this run.
        OutputError: The answer cannot be kept.
    """
    try:
        return await describer.describe(element)
    except (NetworkError, OutputError, UsageError):
        raise
    except Exception as raised:
        error = engine_error("the description", raised)
        return Problem(error.category, error.message, error.remedy)


def _load(settings: ParseSettings) -> Describer:
    from pagemill.describing.describer import Describer

    return Describer(settings.describing, settings.recognition.asked or settings.recognition)
