"""Refuse a release whose tag is not its version, or whose addresses are placeholders. ``check_release.py vX.Y.Z``."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(tag: str) -> list[str]:
    """What is wrong with a release of this tag."""
    found = []
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src/pagemill/_version.py").read_text(encoding="utf-8"))
    if version is None or tag != f"v{version[1]}" or "dev" in tag:
        found.append(f"the tag {tag} is not v{version and version[1]}, or that is no release")
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    if version is None or cited is None or cited[1] != version[1]:
        found.append("CITATION.cff has another version")
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    found += [f"[project.urls] {name} is a placeholder" for name, url in urls.items() if ".example" in url]
    return found


if __name__ == "__main__":
    if wrong := problems(sys.argv[1]):
        sys.exit("\n".join(wrong))
