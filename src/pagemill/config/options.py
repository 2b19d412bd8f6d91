"""Options: each is declared once, on a field of a settings class, with its help, default and bounds.

The command line makes its options from these declarations, the Python API takes them as keyword arguments, and both
build the settings with :func:`build`.
"""

from __future__ import annotations

import math
import operator
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pagemill.errors import UsageError

T = TypeVar("T")

_DECLARATION = "pagemill.option"
_METAVARS: dict[type, str] = {str: "NAME", int: "N", float: "SECONDS", Path: "PATH"}
SERVERS: dict[str, Any] = {"metavar": "URL[,URL...]", "comma_separated": True, "results": False}
"""Details of every option that names model servers."""
_known_fields: dict[type, list[tuple[str, Any, Option | None]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a settings class."""

    flags: tuple[str, ...]
    """On the command line, such as ``("-r", "--recursive")``; by default the key, with dashes."""
    help: str
    heading: str | None = None
    """Under which the help of a command lists it; by default the ``HEADING`` of the settings class."""
    metavar: str | None = None
    """Name of the value in the help; by default ``NAME``, ``N``, ``SECONDS`` or ``PATH``, by its type."""
    shown_default: str | None = None
    """Default shown in the help, if the value itself is not clear."""
    environment: str | None = None
    """Variable with the default of the command line."""
    secret: bool = False
    """Neither printed nor passed on a command line."""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    """Values must be larger than this."""
    folder_exists: bool = False
    """On the command line the folder must exist."""
    without_value: str | None = None
    """Value of the option without an argument; other values follow after ``=``."""
    comma_separated: bool = False
    """On the command line one value may hold several, separated by commas."""
    parse: Callable[[Any], Any] | None = None
    """Converts the given value to that of the field; raises UsageError."""
    results: bool | None = None
    """Whether another value may change stored results: what is read, described, extracted or embedded. A run of
    ``pagemill parse`` belongs to these options (:mod:`pagemill.runtime.identity`). Declared by each option, or by the
    ``RESULTS`` of a settings class for all of its options."""
    jobs: bool = False
    """Clients of the server may set it for a job (:mod:`pagemill.rest.options`)."""
    key: str = ""
    """Keyword argument in Python, unique among all options; by default the name of the field."""
    kind: type = str
    default: Any = None
    many: bool = False
    """The value is a tuple."""

    def convert(self, value: Any) -> Any:
        """Check a value and convert it to the type of the field.

        Raises:
            UsageError: It is not valid.
        """
        if self.parse is not None:
            if isinstance(value, self.kind) and not isinstance(value, bool) and not self.many:
                return value
            try:
                return self.parse(value)
            except (AttributeError, TypeError, ValueError):  # of a type that it does not expect
                raise self._wrong(value, self.help) from None
        if not self.many:
            return self._one(value)
        # A string is iterable: languages="ko" would be the languages k and o.
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise self._wrong(value, f"Pass a list: {[value]!r}.")
        return tuple(map(self._one, value))

    def _one(self, value: Any) -> Any:
        """Check a single value. A wrong type is refused: ``bool("no")`` would be true."""
        if issubclass(self.kind, StrEnum):
            try:
                return self.kind(value)
            except ValueError:
                raise self._wrong(value, f"Choose one of {', '.join(self.kind)}.") from None
        if self.kind in (int, float):
            return self._number(value)
        if self.kind is bool:
            if not isinstance(value, bool):
                raise self._wrong(value, "It must be True or False.")
            return value
        if self.kind in (str, Path):
            if not isinstance(value, str | os.PathLike):
                raise self._wrong(value, "It must be a string.")
            return self.kind(value)
        return value

    def _number(self, value: Any) -> Any:
        kinds = int if self.kind is int else (int, float)
        # A bool is an int in Python: threads=True would be one thread.
        if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
            raise self._wrong(value, "It must be a whole number." if self.kind is int else "It must be a number.")
        for bound, holds, relation in (
            (self.minimum, operator.ge, "at least"),
            (self.maximum, operator.le, "at most"),
            (self.above, operator.gt, "larger than"),
        ):
            if bound is not None and not holds(value, bound):
                raise self._wrong(value, f"It must be {relation} {bound:g}.")
        return value

    def _wrong(self, value: Any, remedy: str) -> UsageError:
        return UsageError(f"{self.key} is {'not valid' if self.secret else reprlib.repr(value)}", remedy=remedy)


def option(*flags: str, default: Any = None, help: str, **details: Any) -> Any:
    """Declare an option: the value of a dataclass field. ``details`` are those of :class:`Option`."""
    declared = Option(flags=flags, help=help, **details)
    return field(default=default, repr=not declared.secret, metadata={_DECLARATION: declared})


def servers_option(*flags: str, help: str, **details: Any) -> Any:
    """Declare an option with URLs of model servers; by default ``--server``."""
    return option(*(flags or ("--server",)), default=(), help=f"{help}; may be repeated.", **SERVERS, **details)


def options_of(settings: type) -> Iterator[Option]:
    """The options declared on a settings class and on the settings classes of its fields, in order."""
    for _, kind, declared in fields_of(settings):
        if declared is not None:
            yield declared
        elif isinstance(kind, type) and is_dataclass(kind):
            yield from options_of(kind)


def values_of(settings: Any) -> Iterator[tuple[Option, Any]]:
    """The options of an object of a settings class, and of the settings in it, in order, with their values."""
    for name, _, declared in fields_of(type(settings)):
        value = getattr(settings, name)
        if declared is not None:
            yield declared, value
        elif is_dataclass(value):
            yield from values_of(value)


def build(settings: type[T], values: Mapping[str, Any]) -> T:
    """Make settings from the values of options.

    Args:
        settings: The class.
        values: By key; for a field that is a settings class itself also the whole object, by the field's name. A key
            that is missing, or None, stands for the default. Keys of other classes are ignored.

    Raises:
        UsageError: A value is not valid, or values do not go together.
    """
    arguments: dict[str, Any] = {}
    for name, kind, declared in fields_of(settings):
        value = values.get(name if declared is None else declared.key)
        if value is not None:
            arguments[name] = value
        elif declared is None and isinstance(kind, type) and is_dataclass(kind):
            arguments[name] = build(kind, values)
    return settings(**arguments)


def secrets_of(settings: Any) -> dict[str, str]:
    """The secrets in settings, as an environment: no command line may show them."""
    return {
        each.environment: value for each, value in values_of(settings) if each.secret and each.environment and value
    }


def words(settings: Any, *, leave_out: Collection[str] = ()) -> Iterator[str]:
    """The words of a command line that give the options of settings their values: no defaults, and no secrets.

    Args:
        settings: An object of a settings class.
        leave_out: Keys of further options to leave out.
    """
    for declared, value in values_of(settings):
        if value not in (None, declared.default) and not declared.secret and declared.key not in leave_out:
            yield from _words(declared, value)


def _words(declared: Option, value: Any) -> Iterator[str]:
    # The long flag: these words are printed, and read by people.
    flag = next(flag for flag in declared.flags if flag.startswith("--"))
    if declared.kind is bool:
        yield flag if value else f"--no-{flag.removeprefix('--')}"
    elif declared.without_value is not None:
        yield flag if value == declared.without_value else f"{flag}={value}"
    elif declared.many and declared.parse is None:
        for one in value:
            yield from (flag, str(one))
    else:
        yield from (flag, ",".join(value) if declared.many else str(value))


class Settings:
    """Base of settings classes: checks and converts the values of every new object."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the values of the options and convert them to the types of their fields.

        Raises:
            UsageError: A value is not valid.
        """
        for name, kind, declared in fields_of(type(self)):
            value = getattr(self, name)
            if declared is None:
                if isinstance(kind, type) and issubclass(kind, Settings) and not isinstance(value, kind):
                    raise UsageError(f"{name} is {reprlib.repr(value)}", remedy=f"Pass a {kind.__name__}.")
            elif value is None:  # stands for the default
                object.__setattr__(self, name, declared.default)
            # The text "parquet" equals the default of an enumeration, but is not one of its members.
            elif value != declared.default or type(value) is not type(declared.default):
                object.__setattr__(self, name, declared.convert(value))


def fields_of(settings: type) -> list[tuple[str, Any, Option | None]]:
    """The name, type and option of each field."""
    # Evaluating annotations takes longer than all else about settings, which a server makes for each job.
    if (found := _known_fields.get(settings)) is None:
        hints = get_type_hints(settings)
        found = _known_fields[settings] = [
            (each.name, hints[each.name], _declared(settings, each, hints[each.name])) for each in fields(settings)
        ]
    return found


def _declared(settings: type, each: Field[Any], hint: Any) -> Option | None:
    """The option of a field, completed from the field; None for a field that is not an option."""
    declared: Option | None = each.metadata.get(_DECLARATION)
    if declared is None:
        return None
    # The type of an optional value is that of the value: None stands for the default.
    if NoneType in get_args(hint):
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    many = get_origin(hint) is tuple
    key = declared.key or each.name
    results = getattr(settings, "RESULTS", None) if declared.results is None else declared.results
    if results is None:
        raise TypeError(f"the option {key} does not declare whether it changes results")
    kind = get_args(hint)[0] if many else hint
    return replace(
        declared,
        key=key,
        flags=declared.flags or (f"--{key.replace('_', '-')}",),
        heading=declared.heading or getattr(settings, "HEADING", None),
        results=results,
        metavar=declared.metavar or _METAVARS.get(kind),
        kind=kind,
        default=None if each.default is MISSING else each.default,
        many=many,
    )
