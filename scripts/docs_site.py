"""What the documentation site adds to plain Markdown: MkDocs hooks and one extension for the API reference.

The pages in ``docs/`` stay readable on a Git host. The site adds two pages that live in the root of the repository
(the changelog and the guide for contributors) and the reference of the command line, made from the commands themselves.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import griffe
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files of the repository's root, and what they are called on the site."""

COMMANDS_HERE = "<!-- The site lists the commands here. -->"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root; their links into ``docs/`` become links between pages."""
    root = Path(config.config_file_path).parent
    for name, page in ROOT_PAGES.items():
        text = (root / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_linked_to_pages(text.replace("](docs/", "]("), "")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links to the repository's root links between pages, and fill in the commands."""
    up = "../" * page.file.src_uri.count("/")
    markdown = _linked_to_pages(markdown, up)
    return markdown.replace(COMMANDS_HERE, "\n".join(_commands()))


def _linked_to_pages(markdown: str, up: str) -> str:
    for name, page in ROOT_PAGES.items():
        markdown = re.sub(rf"\]\((\.\./)*{re.escape(name)}", f"]({up}{page}", markdown)
    return markdown


class _Markdown(click.HelpFormatter):
    """Writes help as Markdown: the same sections that ``--help`` prints, options as tables."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.write(f"```text\n{prog} {args}\n```\n\n")

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        self.write(f"**{name}**\n\n")
        yield

    @contextmanager
    def indentation(self) -> Iterator[None]:
        yield

    def write_text(self, text: str) -> None:
        for paragraph in text.strip().split("\n\n"):
            if paragraph.startswith("\b"):
                self.write(f"```sh\n{paragraph.lstrip(chr(8)).strip()}\n```\n\n")
            else:
                self.write(f"{_escaped(' '.join(paragraph.split()))}\n\n")

    def write_paragraph(self) -> None:
        self.write("\n")

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        self.write("| | |\n|---|---|\n")
        for term, text in rows:
            self.write(f"| `{term.rstrip()}` | {_escaped(text)} |\n")
        self.write("\n")


def _escaped(text: str) -> str:
    """Text whose signs are shown as they are, but for what is between back ticks: that is code."""
    parts = re.split(r"(`[^`]+`)", text)  # every second one is code
    return "".join(part if n % 2 else re.sub(r"([|*_<\[\]`])", r"\\\1", part) for n, part in enumerate(parts))


def _commands() -> Iterator[str]:
    """Every command under a heading of its own, as Markdown."""
    from pagemill.cli import cli

    def walk(command: click.Command, context: click.Context) -> Iterator[str]:
        formatter = _Markdown()
        command.format_help(context, formatter)
        name = context.command_path
        yield f"## {name} {{ #{name.replace(' ', '-')} }}\n\n{formatter.getvalue()}"
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                below = command.get_command(context, each)
                if below is not None:
                    settings = {**cli.context_settings, **below.context_settings}
                    yield from walk(below, click.Context(below, info_name=each, parent=context, **settings))

    yield from walk(cli, click.Context(cli, info_name="pagemill", **cli.context_settings))


class Reference(griffe.Extension):
    """What static analysis of the sources does not give the API reference.

    Docstrings name other objects as in Sphinx (``:func:`parse```); the site shows the name as code. Functions that take
    the declared options get their real signature and help, and fields that declare an option its help and default.
    """

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Use the signature and docstring that ``pagemill.api`` composes from the options."""
        if func.module.path != "pagemill.api" or func.name.startswith("_"):
            return
        runtime = getattr(importlib.import_module("pagemill.api"), func.name)
        func.parameters = griffe.Parameters(
            *(
                griffe.Parameter(
                    each.name,
                    annotation=str(each.annotation),
                    kind=griffe.ParameterKind[each.kind.name.lower()],
                    default=None if each.default is each.empty else repr(each.default),
                )
                for each in inspect.signature(runtime).parameters.values()
            )
        )
        func.docstring = griffe.Docstring(_plain(inspect.getdoc(runtime) or ""), parent=func, parser="google")

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Show the help and default of an option instead of the call that declares it."""
        if not str(attr.value).startswith("option("):
            return
        declared = {each.arg: each.value for each in ast.parse(str(attr.value), mode="eval").body.keywords}
        attr.docstring = griffe.Docstring(_constant(declared["help"]), parent=attr, parser="google")
        default = declared.get("shown_default", declared.get("default"))
        attr.value = "None" if default is None else ast.unparse(default)

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of each object."""
        if obj.docstring:
            obj.docstring.value = _plain(obj.docstring.value)


def _plain(docstring: str) -> str:
    return re.sub(r":(?:func|class|meth|attr|mod):`~?([^`]+)`", r"`\1`", docstring)


def _constant(help_text: ast.expr) -> str:
    return help_text.value if isinstance(help_text, ast.Constant) else ast.unparse(help_text)
