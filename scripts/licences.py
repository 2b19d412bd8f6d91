"""The licences of all packages that pagemill installs: ``python scripts/licences.py`` writes ``docs/licences.md``.

A test compares the page with what is installed, so that a new dependency is looked at before it is taken.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "licences.md"
EXTRAS = [
    "client",
    "datasets",
    "http",
    "hub",
    "hwp",
    "korean",
    "mcp",
    "office",
    "search",
    "serve",
    "tokenizers",
    "vlm",
    "web",
]
"""Those that pagemill itself needs for a task; other extras connect it to a framework (PyTorch, Ray, LangChain)."""
_SHORT = (
    (r"apache", "Apache-2.0"),
    (r"\bmit\b", "MIT"),
    (r"bsd|redistribution and use in source", "BSD"),
    (r"mozilla|mpl", "MPL-2.0"),
    (r"lgpl|lesser general", "LGPL"),
    (r"psf|python software", "PSF-2.0"),
    (r"isc\b", "ISC"),
    (r"hpnd|historical permission", "HPND"),
    (r"unlicense", "Unlicense"),
    (r"zlib", "Zlib"),
)
_NOT_SAID = {"kiwipiepy": "LGPL"}
"""Of packages that not every machine has; from their repositories."""
INTRO = """# Licences

pagemill is licensed under Apache-2.0. These are the packages that `pip install pagemill` brings, and those of the
extras {extras}, with the licence
that each declares. `NOTICE` has the models and scripts inside of the package. `scripts/licences.py` writes the page,
and a test fails when a package comes that is not here.

All are permissive but those under LGPL and MPL-2.0: LGPL libraries are used as they are, as shared libraries that you
may replace; MPL-2.0 applies to changes of their own files. Nothing is GPL or AGPL.

| package | licence | needed by |
|---|---|---|
"""


def packages() -> dict[str, tuple[str, str]]:
    """The licence of each package that is installed, by name, and for which extras it is there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"": project["dependencies"]} | {name: project["optional-dependencies"][name] for name in EXTRAS}
    needed: dict[str, list[str]] = {}
    for extra, requirements in groups.items():
        for name in _closure(requirements):
            if "" not in needed.setdefault(name, []):
                needed[name].append(extra)
    return {name: (licence_of(name), ", ".join(extras) or "always") for name, extras in sorted(needed.items())}


def _closure(requirements: Iterable[str]) -> set[str]:
    """Names of all packages that requirements bring, on this machine."""
    found: set[str] = set()
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        for wanted in requirement.extras or {""}:
            if f"{name}[{wanted}]" in found:
                continue
            found.add(f"{name}[{wanted}]")
            try:
                requires = distribution(name).requires or []
            except PackageNotFoundError:
                continue
            waiting += [(Requirement(each), wanted) for each in requires]
    return {each.partition("[")[0] for each in found}


def licence_of(name: str) -> str:
    """The licence that a package declares; empty if it is not installed or says nothing."""
    if name in _NOT_SAID:
        return _NOT_SAID[name]
    try:
        metadata = distribution(name).metadata
    except PackageNotFoundError:
        return ""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    told = [each.rpartition("::")[2] for each in metadata.get_all("Classifier") or () if each.startswith("License")]
    told.append(str(metadata.get("License") or "")[:400])
    for text in told:
        for pattern, short in _SHORT:
            if re.search(pattern, text, re.IGNORECASE):
                return short
    return " ".join(told[-1].split())[:60]


def page() -> str:
    """The page."""
    rows = (f"| {name} | {licence} | {extras} |\n" for name, (licence, extras) in packages().items())
    return INTRO.format(extras=", ".join(EXTRAS)) + "".join(rows)


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
