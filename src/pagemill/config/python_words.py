"""Messages that name options of the command line, in the words of Python: ``password="…"`` for ``--password``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import is_dataclass

from pagemill.config.options import Option, fields_of

_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z])(?:[ =]([A-Za-z0-9][\w.,-]*\w|\w))?")
GROUPED = ("recognition", "describing", "local")
"""Fields that are objects in the Python API."""


def in_python(text: str, settings: type) -> str:
    """A message with the keyword arguments of Python instead of the options of the command line.

    Args:
        text: The message. Options that are not of the settings stay.
        settings: The class whose options are meant.
    """
    keywords = dict(_keywords(settings))

    def replacement(match: re.Match[str]) -> str:
        flag, word = match.groups()
        if (found := keywords.get(flag)) is None:
            return match[0]
        pattern, declared = found
        value = _value(declared, flag, word)
        is_part = word is None or all(one in value for one in word.split(","))  # of the value, not of the sentence
        return pattern.format(f"={value}") + ("" if is_part else match[0][len(flag) :])

    return _OPTION.sub(replacement, text)


def _keywords(settings: type, pattern: str = "{}") -> Iterator[tuple[str, tuple[str, Option]]]:
    """The flags of options, each with its keyword argument in Python."""
    for name, kind, declared in fields_of(settings):
        if declared is not None:
            key = declared.key if pattern == "{}" else name
            for flag in declared.flags:
                yield flag, (pattern.format(key + "{}"), declared)
            if declared.kind is bool:
                yield f"--no-{declared.flags[-1].removeprefix('--')}", (pattern.format(key + "{}"), declared)
        elif isinstance(kind, type) and is_dataclass(kind):
            grouped = f"{name}={kind.__name__}({{}})" if name in GROUPED else "{}"
            yield from _keywords(kind, pattern.format(grouped))


def _value(declared: Option, flag: str, word: str | None) -> str:
    """The value behind an option, if it is valid for it."""
    if declared.kind is bool:
        return str(not flag.startswith("--no-"))
    is_number = declared.kind in (int, float)
    given = (word or "…").split(",") if declared.many else [word or "…"]
    # Remedies continue after an option; only a value that its declaration names is one.
    documented = _documented(declared)
    if not all(one.isdecimal() if is_number else re.search(rf"\b{re.escape(one)}\b", documented) for one in given):
        given = ["…"]
    value = ", ".join(one if is_number else f'"{one}"' for one in given)
    return f"[{value}]" if declared.many else value


def _documented(declared: Option) -> str:
    choices = [each.value for each in declared.kind] if hasattr(declared.kind, "__members__") else []  # type: ignore[attr-defined]
    return " ".join([declared.help, declared.metavar or "", *choices])
