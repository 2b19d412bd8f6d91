"""What follows from the declarations of options: ``python scripts/public_api.py`` writes both files again.

- The public interface of all three packages as one text file, so that a review shows each change of it.
- The types of the keyword arguments of the Python API, which a type checker does not derive from the declarations.

A test compares the files with the code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
import msgspec

import pagemill
from pagemill.app.options import ParseOptions
from pagemill.cli import cli
from pagemill.config.options import Option, fields_of
from pagemill.config.python_words import GROUPED
from pagemill.document.page import PageResult
from pagemill.errors import ExitCode
from pagemill.export.docjson import DocJSON

FILE = Path(__file__).parents[1] / "docs/schema/public-api.txt"
KEYWORDS = Path(__file__).parents[1] / "src/pagemill/keywords.py"
NOT_OF_STREAMS = ("crops",)
"""Options that change what goes with a record, not the record."""


def public_api() -> str:
    """Names and signatures of the package, commands and options, paths of the server, exit codes, fields of records."""
    parts = {
        "Package": _package(),
        "Commands": _commands(cli, "pagemill"),
        "REST": _paths(),
        "Exit codes": (f"{code.value} {code.name}" for code in ExitCode),
        "Record": _fields(PageResult),
        "DocJSON": _fields(DocJSON),
    }
    return "\n".join("\n".join([f"# {title}", *lines, ""]) for title, lines in parts.items())


def _package() -> Iterator[str]:
    for name in pagemill.__all__:
        value = getattr(pagemill, name)
        if not callable(value):
            yield name
            continue
        yield from _signature(name, value)
        if inspect.isclass(value) and value.__module__.startswith("pagemill.client"):
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if not method.startswith("_"):
                    yield from _signature(f"{name}.{method}", function)


def _signature(name: str, value: Any) -> Iterator[str]:
    yield name
    for parameter in inspect.signature(value).parameters.values():
        if parameter.name != "self":
            yield "  " + re.sub(r"<(\w+)\.\w+: ('?[^>]*'?)>", r"\2", str(parameter)).replace("<factory>", "...")


def _commands(command: click.Command, path: str) -> Iterator[str]:
    yield path
    for parameter in command.params:
        names = "/".join([*parameter.opts, *parameter.secondary_opts])
        if isinstance(parameter, click.Argument):
            yield f"  {parameter.human_readable_name}"
        elif not getattr(parameter, "hidden", False):
            kind = parameter.type
            choices = f" [{'|'.join(map(str, kind.choices))}]" if isinstance(kind, click.Choice) else ""
            yield f"  {names}{'' if getattr(parameter, 'is_flag', False) else ' VALUE'}{choices}"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found, f"{path} {name}")


def keywords() -> str:
    """The module with the keyword arguments of the Python API and their types."""
    typed = dict(_keywords(ParseOptions))
    streams = [f"    {key}: {kind}" for key, kind in typed.items() if key not in NOT_OF_STREAMS]
    parses = [f"    {key}: {typed[key]}" for key in NOT_OF_STREAMS]
    return "\n".join(
        [
            '"""Keyword arguments of the Python API, from the declarations of options: ``scripts/public_api.py``."""\n',
            "from __future__ import annotations\n",
            "from collections.abc import Sequence",
            "from pathlib import Path",
            "from typing import TypedDict\n",
            "from pagemill.config.describing import DescribeSettings",
            "from pagemill.config.recognition import RecognitionSettings\n\n",
            "class StreamKeywords(TypedDict, total=False):",
            '    """Types of the keyword arguments of :func:`pagemill.stream`."""\n',
            *streams,
            "\n\nclass ParseKeywords(StreamKeywords, total=False):",
            '    """Types of the keyword arguments of :func:`pagemill.parse`."""\n',
            *parses,
            "",
        ]
    )


def _keywords(settings: type) -> Iterator[tuple[str, str]]:
    for name, kind, declared in fields_of(settings):
        if declared is not None:
            yield declared.key, _keyword_type(declared)
        elif name in GROUPED:
            yield name, f"{kind.__name__} | None"
        elif is_dataclass(kind):
            yield from _keywords(kind)


def _keyword_type(declared: Option) -> str:
    kind = declared.kind
    name = "str | Path" if kind is Path else kind.__name__ if kind in (bool, int, float) else "str"
    may_be_none = declared.default is None or issubclass(kind, StrEnum)
    return (f"Sequence[{name}]" if declared.many else name) + (" | None" if may_be_none else "")


def _paths() -> Iterator[str]:
    from pagemill.rest.app import create_app
    from pagemill.rest.settings import ServeSettings

    for path, methods in sorted(create_app(ServeSettings()).openapi()["paths"].items()):
        for method, operation in sorted(methods.items()):
            names = " ".join(f"{each['in']}:{each['name']}" for each in operation.get("parameters", ()))
            yield f"{method.upper()} {path} {names}".rstrip()


def _fields(struct: type[msgspec.Struct]) -> Iterator[str]:
    schema = msgspec.json.schema(struct)
    for name, definition in schema["$defs"].items():
        if "enum" in definition:
            yield f"{name}: {' '.join(map(str, definition['enum']))}"
        for field, value in definition.get("properties", {}).items():
            yield f"{name}.{field}: {_kind(value)}{'' if field in definition.get('required', ()) else '?'}"


def _kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "anyOf" in value:
        return " | ".join(map(_kind, value["anyOf"]))
    if value.get("type") == "array":
        inner = [value["items"]] if isinstance(value.get("items"), dict) else value.get("prefixItems", ())
        return f"[{', '.join(map(_kind, inner))}]"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        return f"{{{_kind(inner) if isinstance(inner, dict) else ''}}}"
    return str(value.get("type", "any"))


if __name__ == "__main__":
    KEYWORDS.write_text(keywords(), encoding="utf-8")
    FILE.write_text(public_api(), encoding="utf-8")
