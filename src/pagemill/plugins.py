"""What other packages add to pagemill: entry points in groups whose names begin with ``pagemill.``.

Read from the files that installers leave. ``importlib.metadata`` gives the same answer, but takes 90 ms for 250
packages, as long as all else that ``pagemill --help`` does; this takes a tenth of it.
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

from pagemill.errors import MissingDependencyError, PagemillError

_GROUPS = "pagemill."


class Plugin(NamedTuple):
    """An entry point that is installed."""

    place: str
    """``module:object``"""
    metadata: str
    """The folder with the metadata of its distribution."""

    def load(self, what: str, kind: type = object) -> Any:
        """Import the object.

        Args:
            what: Names it in the message of an error, such as ``the command 'eval'``.
            kind: Required type of the object.

        Raises:
            MissingDependencyError: Its package is broken, in whatever way.
            PagemillError: As its module raises it.
        """
        module, _, attributes = self.place.partition(":")
        try:
            found = reduce(getattr, attributes.split("."), importlib.import_module(module))
            if not isinstance(found, kind):
                raise TypeError(f"{self.place} is not a {kind.__name__}")
        except PagemillError:
            raise  # of a part of ours that names the extra it lacks
        except Exception as error:  # must not end in a traceback of ours
            raise MissingDependencyError(
                f"{what} cannot be loaded: {type(error).__name__}: {error}",
                remedy=f"Install what it needs, or reinstall {Path(self.metadata).name.partition('-')[0]}.",
            ) from error
        return found

    def summary(self) -> str:
        """What the distribution says of itself in a line."""
        for name in ("METADATA", "PKG-INFO"):
            for line in _read(self.metadata, name).splitlines():
                if line.startswith("Summary:"):
                    return line.partition(":")[2].strip()
        return ""


def installed(group: str) -> dict[str, Plugin]:
    """The entry points of a group by name, sorted. Where two packages have the same, the first on the path counts."""
    return _all(tuple(sys.path)).get(group, {})


@lru_cache(maxsize=4)
def _all(path: tuple[str, ...]) -> dict[str, dict[str, Plugin]]:
    found: dict[str, dict[str, Plugin]] = {}
    for metadata in (distribution for folder in path for distribution in _distributions(folder)):
        section, points = "", _read(metadata, "entry_points.txt")
        for line in map(str.strip, points.splitlines() if _GROUPS in points else ()):
            name, _, place = line.partition("=")
            if line.startswith("["):
                section = line.strip("[] ")
            elif section.startswith(_GROUPS) and place and name.strip() and not line.startswith(("#", ";")):
                # Extras in brackets are no longer in use.
                plugin = Plugin(place.partition("[")[0].strip(), metadata)
                found.setdefault(section, {}).setdefault(name.strip(), plugin)
    return {section: dict(sorted(plugins.items())) for section, plugins in found.items()}


def _distributions(folder: str) -> list[str]:
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:  # no folder: an archive, or nothing at all
        return []


def _read(metadata: str, name: str) -> str:
    try:
        with open(f"{metadata}/{name}", "rb") as file:  # noqa: PTH123 - paths of pathlib would double the time
            return file.read().decode(errors="replace")
    except OSError:
        return ""
