"""The one folder whose files may be read."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

from pagemill.errors import InputError, MissingInputError, UsageError
from pagemill.imaging.formats import promised
from pagemill.sources.items import natural_key

MAX_BYTES = 2 * 2**30
"""Maximum size of a file."""
_LISTED = 100


def folder_of(root: Path) -> Path:
    """The folder, with all links resolved.

    Raises:
        UsageError: There is no such folder.
    """
    resolved = root.expanduser().resolve()
    if not resolved.is_dir():
        raise UsageError(f"{root} is not a folder", remedy="Pass a folder with --root.")
    return resolved


def entries_of(root: Path, folder: str) -> list[str]:
    """The documents of a folder below the root and the folders in it, as paths from the root; folders end with a slash.

    Raises:
        InputError: It is not below the root, or no folder.
    """
    try:
        path = (root / folder).resolve()
        if not path.is_relative_to(root):
            raise InputError(f"{folder!r} is outside the folder that may be read", remedy="Name a folder in it.")
        found = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    except (OSError, ValueError, RuntimeError) as error:
        raise MissingInputError(f"{folder!r} cannot be listed", remedy="Check the path.") from error
    names = []
    for each in found:
        with contextlib.suppress(OSError, RuntimeError):
            if not each.resolve().is_relative_to(root):
                continue  # a link that leads out of it
            name = each.relative_to(root).as_posix()
            if each.is_dir():
                names.append(f"{name}/")
            elif each.is_file() and promised(each) is not None:
                names.append(name)
    return sorted(names, key=natural_key)


def file_below(root: Path, source: str) -> Path:
    """The file that a path names, with all links resolved.

    Raises:
        InputError: It is not below the root (without revealing whether it exists), does not exist, or is not a file.
    """
    try:
        # Links are resolved first: one inside the folder may lead out of it.
        path = (root / source).resolve()
        inside = path.is_relative_to(root)
        mode = path.stat().st_mode if inside else 0
    except (OSError, ValueError, RuntimeError) as error:  # a null byte, a loop of links, an endless name
        raise MissingInputError(f"{source!r} cannot be opened", remedy="Check the path.") from error
    if not inside:
        raise InputError(f"{source!r} is outside the folder that may be read", remedy="Name a file in that folder.")
    if stat.S_ISDIR(mode):
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in path.iterdir())
        more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
        listed = ", ".join(names[:_LISTED])
        raise InputError(f"{source!r} is a folder", remedy=f"Name a file. It contains: {listed}{more}")
    if not stat.S_ISREG(mode):
        raise InputError(f"{source!r} is not a file", remedy="Name a document or an image.")
    if path.stat().st_size > MAX_BYTES:
        raise InputError(f"{source!r} has more than {MAX_BYTES // 2**30} GiB", remedy="Split it.")
    return path
