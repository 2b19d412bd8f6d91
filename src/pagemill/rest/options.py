"""The options of a job: those of `pagemill parse` that clients choose, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pagemill.app.options import ParseOptions
from pagemill.config.modes import LINES
from pagemill.config.options import build, options_of
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import ParseSettings
from pagemill.errors import UsageError
from pagemill.sources.options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pagemill.rest.settings import ServeSettings

PASSWORD = "password"
"""The option that is neither shown nor logged."""
ENGINE = "recognition_engine"
_SOURCE = ("pages", PASSWORD, "image_column", "id_column", "skip_duplicates")
_PARSE = ("languages", "text_layer", "photographs", "tables", "crops", "inline_marks", "read_images")
ALLOWED = (*_PARSE, ENGINE, *_SOURCE)
"""Keys of the options of a job."""
_MAX_TEXT = 1000
_FLAGS = {f"--{key.replace('_', '-')}": key for key in ALLOWED} | {"--lang": "languages"}
_FLAG = re.compile(r"--[a-z][a-z-]*[a-z]")
_KINDS: dict[type, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float)}


def engines_of(settings: ServeSettings) -> list[str]:
    """The recognition engines that jobs can choose from, the default first."""
    return list(dict.fromkeys((settings.parse.recognition.engine, LINES)))


def job_options(given: Mapping[str, Any], settings: ServeSettings) -> ParseOptions:
    """What a job parses, and how.

    Args:
        given: By key, plain JSON values; None for the default.
        settings: Of the server: the engines, and the defaults.

    Raises:
        UsageError: There is no such option, or a value is not valid.
    """
    declared = {each.key: each for kind in (ParseSettings, SourceOptions) for each in options_of(kind)}
    for key, value in given.items():
        if key not in ALLOWED:
            raise UsageError(f"jobs have no option {key!r}", remedy=f"There are: {', '.join(ALLOWED)}.")
        _check(key, value, declared[key].kind, many=declared[key].many)
    values = {key: value for key, value in given.items() if value is not None}
    engine = values.pop(ENGINE, settings.parse.recognition.engine)
    if engine not in engines_of(settings):
        raise UsageError(f"{ENGINE} is {engine!r}", remedy=f"This server has: {', '.join(engines_of(settings))}.")
    source = source_options(values)
    recognition = settings.parse.recognition
    base = settings.parse
    if engine != recognition.engine:
        # The text layer's default depends on the engine; it is chosen again.
        base = replace(base, recognition=RecognitionSettings(), text_layer=None)  # type: ignore[arg-type]
    chosen = build(ParseSettings, {key: value for key, value in values.items() if key in _PARSE})
    fields = {key: getattr(chosen, key) for key in _PARSE if key in values}
    return ParseOptions(
        source=source, settings=replace(base, **fields), layout=settings.layout, runtime=settings.runtime
    )


def for_clients(remedy: str) -> str:
    """A remedy with the options of jobs in place of those of the command line."""
    return _FLAG.sub(lambda match: f"the option {key}" if (key := _FLAGS.get(match[0])) else match[0], remedy)


def source_options(given: Mapping[str, Any]) -> SourceOptions:
    """How the files of a job are read, of the options that it was accepted with."""
    return build(SourceOptions, {key: value for key, value in given.items() if key in _SOURCE and value is not None})


def _check(key: str, value: Any, kind: type, *, many: bool) -> None:
    """Refuse values of another type than the option's: they come from a client's JSON."""
    if value is None:
        return
    if many:
        is_good = isinstance(value, list) and len(value) <= _MAX_TEXT and all(_is_text(each) for each in value)
    elif kind in _KINDS:
        is_good = isinstance(value, _KINDS[kind]) and (kind is bool or not isinstance(value, bool))
    else:
        is_good = _is_text(value)
    if not is_good:
        wanted = "a list of strings" if many else {bool: "true or false", int: "a number", float: "a number"}.get(kind)
        raise UsageError(f"{key} has a value of the wrong type", remedy=f"It must be {wanted or 'a string'}.")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and "\0" not in value
