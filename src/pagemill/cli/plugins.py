"""Commands of other packages: the entry points ``pagemill.commands``, as the help lists them and as they are loaded.

Read from the files that installers leave. ``importlib.metadata`` gives the same answer, but takes 90 ms for 250
packages, as long as all else that ``pagemill --help`` does; this takes a tenth of it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from functools import cache, reduce
from pathlib import Path
from typing import NamedTuple

import click

from pagemill.errors import MissingDependencyError

GROUP = "pagemill.commands"


class Plugin(NamedTuple):
    """A command that is installed."""

    place: str
    """``module:object``"""
    metadata: str
    """The folder with the metadata of its distribution."""

    def load(self, name: str) -> click.Command:
        """Import the command.

        Raises:
            MissingDependencyError: Its package is broken, in whatever way.
        """
        module, _, attributes = self.place.partition(":")
        try:
            command: object = reduce(getattr, attributes.split("."), importlib.import_module(module))
            if not isinstance(command, click.Command):
                raise TypeError(f"{self.place} is no command")
        except Exception as error:  # must not end in a traceback of ours
            raise MissingDependencyError(
                f"the command {name!r} cannot be loaded: {type(error).__name__}: {error}",
                remedy=f"Install what it needs, or reinstall {Path(self.metadata).name.partition('-')[0]}.",
            ) from error
        return command

    def summary(self) -> str:
        """What the distribution says of itself in a line."""
        for name in ("METADATA", "PKG-INFO"):
            for line in _read(self.metadata, name).splitlines():
                if line.startswith("Summary:"):
                    return line.partition(":")[2].strip()
        return ""


@cache
def installed() -> dict[str, Plugin]:
    """The commands by name, sorted. Where two packages have the same, the first on the path counts."""
    found: dict[str, Plugin] = {}
    for folder in sys.path:
        for metadata in _distributions(folder):
            for name, place in _commands(_read(metadata, "entry_points.txt")):
                found.setdefault(name, Plugin(place, metadata))
    return dict(sorted(found.items()))


def _distributions(folder: str) -> list[str]:
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:  # no folder: an archive, or nothing at all
        return []


def _commands(entry_points: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in map(str.strip, entry_points.splitlines() if GROUP in entry_points else ()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, place = line.partition("=")
            if name.strip():
                yield name.strip(), place.partition("[")[0].strip()  # extras are no longer in use


def _read(metadata: str, name: str) -> str:
    try:
        with open(f"{metadata}/{name}", "rb") as file:  # noqa: PTH123 - paths of pathlib would double the time
            return file.read().decode(errors="replace")
    except OSError:
        return ""
