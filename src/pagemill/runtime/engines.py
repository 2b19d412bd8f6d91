"""Engines by name, from entry points: third parties add their own."""

from __future__ import annotations

import os
from typing import Any

from pagemill import plugins
from pagemill.config.modes import EMBEDDED_TABLES, LINES
from pagemill.errors import UsageError

LAYOUT_ENGINES = "pagemill.layout_engines"
TEXT_DETECTORS = "pagemill.text_detectors"
TEXT_ENGINES = "pagemill.text_engines"
FORMULA_ENGINES = "pagemill.formula_engines"
REGION_ENGINES = "pagemill.region_engines"
TABLE_ENGINES = "pagemill.table_engines"
EMBEDDING_ENGINES = "pagemill.embedding_engines"


def names(group: str) -> list[str]:
    """Names of the engines that are installed in a group, sorted."""
    return list(plugins.installed(group))


def load(group: str, name: str) -> Any:
    """Import an engine's factory.

    Raises:
        UsageError: There is no engine of this name.
        MissingDependencyError: The engine's package cannot be imported.
    """
    # ONNX Runtime 1.31 for Linux gathers telemetry in the home directory; its own switch comes too late to stop that.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    if plugin := plugins.installed(group).get(name):
        return plugin.load(f"the {_kind(group)} {name!r}")
    raise _unknown(group, name)


def require(group: str, name: str) -> None:
    """Make sure that an engine of this name is installed; it is not imported.

    Raises:
        UsageError: There is none.
    """
    if name not in names(group):
        raise _unknown(group, name)


def _unknown(group: str, name: str) -> UsageError:
    embedded = {REGION_ENGINES: [LINES], TABLE_ENGINES: [EMBEDDED_TABLES]}.get(group, [])
    known = ", ".join([*embedded, *names(group)]) or "none: is pagemill installed?"
    return UsageError(f"there is no {_kind(group)} {name!r}", remedy=f"Installed: {known}.")


def _kind(group: str) -> str:
    return group.removeprefix("pagemill.").removesuffix("s").replace("_", " ")
