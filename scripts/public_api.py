"""The public interface of all three packages as one text file; ``python scripts/public_api.py`` writes ``docs/schema``.

A test compares the file with the code: a change of the interface shows in a review as a change of this file.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

import pagemill
from pagemill.cli import cli
from pagemill.document.page import PageResult
from pagemill.errors import ExitCode
from pagemill.export.docjson import DocJSON

FILE = Path(__file__).parents[1] / "docs/schema/public-api.txt"


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
    FILE.write_text(public_api(), encoding="utf-8")
