"""Removal of private data from a run that is published: paths, credentials and addresses of this machine."""

from __future__ import annotations

import re
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from pagemill.document.page import PageResult

_PATH = re.compile(r"(?<![\w.:/\\~-])(?:file:/+|~?/|[A-Za-z]:[\\/]|\\\\)[^\s'\"`<>|,;()]+")
"""An absolute path in a sentence, up to the next space."""
_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.\-]{0,20}://[^\s'\"`<>|()]+")


def public_page(page: PageResult) -> PageResult:
    """The record without the folders, credentials and addresses of this machine."""
    errors = [
        msgspec.structs.replace(
            error,
            message=public_text(error.message, page.source),
            remedy=error.remedy and public_text(error.remedy, page.source),
        )
        for error in page.errors
    ]
    return msgspec.structs.replace(page, source=public_source(page.source), errors=errors)


def public_source(source: str) -> str:
    """The public form of a source: its address, or its file name.

    An address loses its credentials and its query, which may be a signature; a path loses its folders.
    """
    if "://" not in source or source.startswith("file:"):
        return re.split(r"[/\\]", source.rstrip("/\\"))[-1]
    try:
        parts = urlsplit(source)
    except ValueError:
        return re.split(r"[/\\]", source)[-1]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def public_text(text: str, source: str = "") -> str:
    """A message without paths and addresses.

    Args:
        text: Message of an error.
        source: Source of its page; replaced by its public form.
    """
    if source:
        text = text.replace(source, public_source(source))
        if "://" in source:  # an address may stay
            return _PATH.sub(_base, text)
        folder = source.removesuffix(public_source(source))
        if _is_absolute(folder) and len(folder) > 1:
            text = text.replace(folder, "")  # a path with spaces seems to end early in a sentence
    return _PATH.sub(_base, _ADDRESS.sub("(address)", text))


def public_values(value: Any) -> Any:
    """Settings as plain values: absolute paths are reduced to their last part, addresses lose their secrets.

    Args:
        value: Mappings, lists and plain values.
    """
    if isinstance(value, dict):
        return {key: public_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [public_values(each) for each in value]
    if not isinstance(value, str):
        return value
    if _is_absolute(value) or value.startswith("~"):
        return public_source(value)
    return public_source(value) if re.match(r"[A-Za-z][\w+.\-]*://\S+$", value) else value


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _base(match: re.Match[str]) -> str:
    return PurePath(match[0].replace("\\", "/")).name or "(path)"
