"""Commands that add to this installation of pagemill, for the way in which it was installed."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pagemill.late import Late

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = Late("importlib.metadata")


def install_extra(extra: str) -> str:
    """The shell command that installs an extra of pagemill, such as ``gpu``."""
    return pip_install(*_pagemill(extra))


def install_tool(package: str) -> str:
    """The shell command that installs one of the packages beside pagemill, such as ``pagemill-eval``."""
    return pip_install(*_tool(package))


def reinstall() -> str:
    """The shell command that installs pagemill again."""
    return pip_install("--force-reinstall", "--no-deps", *_pagemill(None))


def pip_install(*arguments: str) -> str:
    """The shell command that installs something into the environment in which this process runs."""
    python = Path(sys.executable)
    found = shutil.which("pip")
    if found and Path(found).parent == python.parent:
        words = ["pip", "install"]
    elif find_spec("pip"):
        words = [str(python), "-m", "pip", "install"]
    else:  # environments that uv makes
        words = ["uv", "pip", "install", "--python", str(python)]
    return shlex.join([*words, *arguments])


def _pagemill(extra: str | None) -> list[str]:
    """What to name to pip: where pagemill came from, or the extra's requirements where that is gone."""
    suffix = f"[{extra}]" if extra else ""
    try:
        installed = metadata.distribution("pagemill")
    except metadata.PackageNotFoundError:  # run from a source tree
        return _folder(Path(__file__).parents[2], suffix, editable=True)
    origin = _origin(installed)
    if origin is None:
        return [f"pagemill{suffix}"]
    from urllib.request import url2pathname  # imports the client of HTTP: 40 ms that every start would take

    url = str(origin["url"])
    path = Path(url2pathname(urlsplit(url).path)) if url.startswith("file:") else None
    if path is not None and not path.exists():
        return _requirements(installed, extra) or [f"pagemill{suffix}"]
    if path is not None and "dir_info" in origin:
        return _folder(path, suffix, editable=bool(origin["dir_info"].get("editable")))
    if vcs := origin.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    if folder := origin.get("subdirectory"):
        url += f"#subdirectory={folder}"
    return [f"pagemill{suffix} @ {url}"]


def _tool(package: str) -> list[str]:
    """What to name to pip: the package's folder in what pagemill came from, or its name."""
    below = f"packages/{package}"
    try:
        origin = _origin(metadata.distribution("pagemill")) or {}
    except metadata.PackageNotFoundError:
        return _folder(Path(__file__).parents[2] / below, "", editable=True)
    url = str(origin.get("url", ""))
    from urllib.request import url2pathname  # imports the client of HTTP: 40 ms that every start would take

    if "dir_info" in origin and (path := Path(url2pathname(urlsplit(url).path)) / below).exists():
        return _folder(path, "", editable=bool(origin["dir_info"].get("editable")))
    if vcs := origin.get("vcs_info"):
        folder = "/".join(filter(None, (origin.get("subdirectory"), below)))
        return [f"{package} @ {vcs['vcs']}+{url}@{vcs['commit_id']}#subdirectory={folder}"]
    return [package]


def _origin(installed: metadata.Distribution) -> dict[str, Any] | None:
    """What the installer recorded: a folder, a file or a URL; None for a package index.

    https://packaging.python.org/en/latest/specifications/direct-url/
    """
    recorded = installed.read_text("direct_url.json")
    return json.loads(recorded) if recorded else None


def _folder(path: Path, suffix: str, *, editable: bool) -> list[str]:
    place = "." if path == Path.cwd() else str(path)
    return [*(["--editable"] if editable else []), f"{place}{suffix}"]


def _requirements(installed: metadata.Distribution, extra: str | None) -> list[str]:
    """The requirements of an extra."""
    marked = (requirement.replace('"', "'").partition(";") for requirement in installed.requires or ())
    return [name.strip() for name, _, marker in marked if extra and f"extra == '{extra}'" in marker]
