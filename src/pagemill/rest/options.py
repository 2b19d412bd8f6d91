"""The options of a job: those of `pagemill parse` that clients choose, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pagemill.app.options import ParseOptions
from pagemill.config.modes import LINES
from pagemill.config.options import build, options_of
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.errors import UsageError
from pagemill.rest.settings import ServeSettings
from pagemill.sources.options import SourceOptions

PASSWORD = "password"
"""The option that is neither shown nor logged."""
ENGINE = "recognition_engine"
DECLARED = [each for kind in (ParseSettings, SourceOptions) for each in options_of(kind) if each.jobs]
"""The options of a job, in order."""
_MAX_TEXT = 1000
_FLAGS = {flag: each.key for each in DECLARED for flag in each.flags}
_FLAG = re.compile(r"--[a-z][a-z-]*[a-z]")


def engines_of(settings: ServeSettings) -> list[str]:
    """The recognition engines that jobs can choose from, the default first."""
    return list(dict.fromkeys((settings.parse.recognition.engine, LINES)))


def job_options(given: Mapping[str, Any], settings: ServeSettings) -> ParseOptions:
    """What a job parses, and how.

    Args:
        given: By key, plain JSON values; None for the default.
        settings: Settings of the server, with its engines and defaults.

    Raises:
        UsageError: There is no such option, or a value is not valid.
    """
    allowed = [each.key for each in DECLARED]
    for key, value in given.items():
        if key not in allowed:
            raise UsageError(f"jobs have no option {key!r}", remedy=f"Available: {', '.join(allowed)}.")
        _check(key, value)
    # None is how JSON says "the default", also for options whose default is something else.
    values = {key: value for key, value in given.items() if value is not None}
    engine = values.pop(ENGINE, settings.parse.recognition.engine)
    if engine not in engines_of(settings):
        raise UsageError(f"{ENGINE} is {engine!r}", remedy=f"This server has: {', '.join(engines_of(settings))}.")
    source = build(SourceOptions, values)
    recognition = settings.parse.recognition
    base = settings.parse
    if engine != recognition.engine:
        # The text layer's default depends on the engine; it is chosen again.
        base = replace(base, recognition=RecognitionSettings(), text_layer=None)  # type: ignore[arg-type]
    chosen = build(ParseSettings, values)
    fields = {key: getattr(chosen, key) for key in values if hasattr(chosen, key)}
    return ParseOptions(
        source=source, settings=replace(base, **fields), layout=settings.layout, runtime=settings.runtime
    )


def for_clients(remedy: str) -> str:
    """A remedy with the options of jobs instead of those of the command line."""
    return _FLAG.sub(lambda match: f"the option {key}" if (key := _FLAGS.get(match[0])) else match[0], remedy)


def _check(key: str, value: Any) -> None:
    """Check the size of a client's JSON before it is converted to the type of the option."""
    parts = value if isinstance(value, list) else [value]
    if len(parts) > _MAX_TEXT or any(
        isinstance(part, str) and (len(part) > _MAX_TEXT or "\0" in part) for part in parts
    ):
        raise UsageError(f"{key} is too long, or contains NUL", remedy=f"At most {_MAX_TEXT} characters or values.")
