"""The schema of the values: from a file or a Python type, as the model gets it, and as the check of the result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from pagemill.document.names import safe_name
from pagemill.errors import InputError, UsageError, lacks_extra, unreadable
from pagemill.extraction.thresholds import THRESHOLDS

try:
    from jsonschema import SchemaError, validators
    from jsonschema.validators import Draft202012Validator
    from referencing import Registry
    from referencing.exceptions import Unresolvable
except ImportError as error:
    raise lacks_extra("extraction needs jsonschema", "vlm") from error

_REMEDY = "Give a JSON Schema whose root is an object with properties; see docs/extract.md."
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "contains", "if", "then", "else", "unevaluatedItems")
_MAX_PROBLEMS = 50

Path_ = tuple[str | int, ...]
"""Keys and indices from the root of the values to one of them."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Values that a schema was checked against."""

    values: dict[str, Any]
    """Without those that the schema does not allow."""
    missing: list[str] = field(default_factory=list)
    """Required fields that have no value, as JSON Pointers."""
    invalid: list[str] = field(default_factory=list)
    """What was left out, and why."""


class ExtractionSchema:
    """What to extract.

    Args:
        name: Name of the folder of the results.
        document: A JSON Schema.

    Raises:
        UsageError: It is not a JSON Schema of an object.
    """

    def __init__(self, name: str, document: Mapping[str, Any]) -> None:
        self.name = safe_name(name)
        self.document = dict(document)
        try:
            validator: Any = validators.validator_for(self.document, default=Draft202012Validator)
            validator.check_schema(self.document)
        except SchemaError as error:
            where = "/".join(map(str, error.absolute_path)) or "its root"
            raise UsageError(
                f"the schema {name} is not valid at {where}: {error.message[:300]}", remedy=_REMEDY
            ) from error
        except RecursionError as error:
            raise UsageError(f"the schema {name} is nested too deeply", remedy=_REMEDY) from error
        # An empty registry: a reference to another document is an error, and never fetched.
        self._validator = validator(self.document, registry=Registry())
        # A part of the document has only some of the values, so in one answer each may be null.
        self.relaxed = _relaxed(self.document, name)
        self._relaxed_validator = validator(self.relaxed, registry=Registry())
        try:
            # The type may be stated behind a $ref or allOf, so an empty object is tried, rather than `type` read.
            if not self._validator.is_valid({}) and any(
                error.validator == "type" and not error.absolute_path for error in self._validator.iter_errors({})
            ):
                raise UsageError(f"the schema {name} does not describe an object", remedy=_REMEDY)
            # References are resolved only when they are followed: a broken one would fail after the model has answered.
            for reference in _references(self.document):
                self._validator.evolve(schema={"$ref": reference}).is_valid({})
        except Unresolvable as error:
            raise UsageError(
                f"the schema {name} refers to what is not in it: {error}", remedy="Put all definitions into $defs."
            ) from error
        except RecursionError as error:
            raise UsageError(
                f"the schema {name} refers to itself without end", remedy="Remove the cycle of $ref."
            ) from error

    @classmethod
    def load(cls, path: Path) -> ExtractionSchema:
        """Read a schema file.

        Raises:
            InputError: It cannot be read.
            UsageError: It is not a JSON Schema of an object.
        """
        try:
            # Each request carries the schema.
            if path.stat().st_size > THRESHOLDS.max_schema_bytes:
                raise InputError(f"{path} is larger than {THRESHOLDS.max_schema_bytes:,} bytes", remedy=_REMEDY)
            document = json.loads(path.read_bytes())
        except OSError as error:
            raise unreadable(str(path), error) from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path} is not JSON: {error}", remedy=_REMEDY) from error
        if not isinstance(document, dict):
            raise UsageError(f"{path} contains no JSON object", remedy=_REMEDY)
        return cls(path.name.removesuffix(".json").removesuffix(".schema"), document)

    @classmethod
    def of(cls, given: Any) -> ExtractionSchema:
        """The schema of a pydantic model, a msgspec struct, a dataclass or a TypedDict; or a schema or its file.

        Raises:
            InputError: A file cannot be read.
            UsageError: It is none of these.
        """
        if isinstance(given, ExtractionSchema):
            return given
        if isinstance(given, str | Path):
            return cls.load(Path(given))
        if isinstance(given, Mapping):
            return cls(str(given.get("title") or "schema"), given)
        if hasattr(given, "model_json_schema"):  # pydantic
            return cls(given.__name__, given.model_json_schema())
        try:
            return cls(getattr(given, "__name__", "schema"), msgspec.json.schema(given))
        except TypeError as error:
            raise UsageError(
                f"{given!r} is not a schema: {error}", remedy="Pass a JSON Schema, its file, or a type."
            ) from error

    @property
    def digest(self) -> str:
        """SHA-256 of the schema, 64 hex digits."""
        return sha256(json.dumps(self.document, sort_keys=True).encode("utf-8", "replace")).hexdigest()

    def problems(self, values: Mapping[str, Any]) -> list[str]:
        """What is wrong with one answer, in which every value may be null. At most :data:`_MAX_PROBLEMS`."""
        found = []
        for error in self._relaxed_validator.iter_errors(values):
            if error.validator == "required":  # a key that is not there means the same as null
                continue
            found.append(f"{pointer(error.absolute_path)}: {error.message[:200]}")
            if len(found) == _MAX_PROBLEMS:
                break
        return found

    def checked(self, values: Mapping[str, Any], beside: Any = None) -> Checked:
        """Keep what the schema allows: nulls and invalid values leave, required fields without a value are listed.

        Args:
            values: Values of one document.
            beside: Objects and lists of the same shape, which lose the same entries.
        """
        kept: dict[str, Any] = deepcopy(dict(values))
        invalid: dict[str, None] = {}
        while True:
            missing: dict[str, None] = {}
            leaving: dict[Path_, None] = {}
            for error in map(_most_telling, self._validator.iter_errors(kept)):
                path: Path_ = tuple(error.absolute_path)
                if error.validator == "required":
                    missing |= dict.fromkeys(
                        pointer((*path, name)) for name in error.validator_value if name not in error.instance
                    )
                    continue
                if error.validator == "uniqueItems":
                    leaving |= dict.fromkeys((*path, index) for index in _doubles(error.instance))
                    continue
                if path:
                    leaving[path] = None
                if error.instance is not None:
                    invalid[f"{pointer(path)}: {error.message[:200]}"] = None
            if not leaving:
                return Checked(kept, list(missing), list(invalid))
            # Of a list from its end, so that the indices of the others stay right.
            for path in sorted(leaving, key=_order, reverse=True):
                for tree in (kept, beside):
                    _remove(tree, path)


def pointer(path: Sequence[str | int]) -> str:
    """A path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _order(path: Path_) -> tuple[int, tuple[tuple[bool, int | str], ...]]:
    return len(path), tuple((isinstance(key, str), key) for key in path)


def _most_telling(error: Any) -> Any:
    """For a choice of schemas that all fail: the error of the one that fails least, if it is in a part of it."""
    branches: dict[Any, list[Any]] = {}
    for each in error.context or ():
        branches.setdefault(each.schema_path[0], []).append(each)
    if error.validator not in ("anyOf", "oneOf") or not branches:
        return error

    def is_harmless(cause: Any) -> bool:
        return cause.instance is None or cause.validator == "required"

    def is_part(cause: Any) -> bool:
        return cause.validator == "required" or len(cause.absolute_path) > len(error.absolute_path)

    best = min(branches.values(), key=lambda causes: sum(not is_harmless(cause) for cause in causes))
    parts = [cause for cause in map(_most_telling, best) if is_part(cause)]
    if len(parts) < len(best):
        return error
    return next((cause for cause in parts if cause.validator != "required"), parts[0])


def _doubles(items: list[Any]) -> list[int]:
    """Indices of items that are equal to an earlier one."""
    seen: set[str] = set()
    found = []
    for index, item in enumerate(items):
        text = json.dumps(item, sort_keys=True)
        if text in seen:
            found.append(index)
        seen.add(text)
    return found


def _remove(values: Any, path: Path_) -> None:
    *parents, last = path
    try:
        for key in parents:
            values = values[key]
        del values[last]
    except (KeyError, IndexError, TypeError):  # gone with what held it
        return


def _relaxed(schema: Any, name: str, depth: int = 0) -> Any:
    """The schema that the model gets: every property is there and may be null, so that nothing has to be invented."""
    if depth > THRESHOLDS.max_schema_depth:
        raise UsageError(f"the schema {name} is nested too deeply", remedy=_REMEDY)
    if not isinstance(schema, dict):
        return schema
    deeper = depth + 1
    found = dict(schema)
    for key in _MAPS:
        if isinstance(found.get(key), dict):
            found[key] = {each: _relaxed(sub, name, deeper) for each, sub in found[key].items()}
    for key in _LISTS:
        if isinstance(found.get(key), list):
            found[key] = [_relaxed(sub, name, deeper) for sub in found[key]]
    for key in _SINGLE:
        if key in found:
            found[key] = _relaxed(found[key], name, deeper)
    if isinstance(properties := found.get("properties"), dict):
        found["properties"] = {each: _nullable(sub) for each, sub in properties.items()}
        found["required"] = list(properties)
    return found


def _references(schema: Any) -> set[str]:
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found |= {each["$ref"]} if isinstance(each.get("$ref"), str) else set()
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return found


def _nullable(schema: Any) -> Any:
    if not isinstance(schema, dict) or "null" in _types(schema):
        return schema
    if any(
        isinstance(sub, dict) and "null" in _types(sub) for key in ("anyOf", "oneOf") for sub in schema.get(key, ())
    ):
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _types(schema: Mapping[str, Any]) -> list[Any]:
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def leaves(values: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """All values that are neither objects nor lists, with their paths, in order."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from leaves(value, (*path, key))
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from leaves(value, (*path, index))
    else:
        yield path, values
