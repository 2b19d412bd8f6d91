"""Books (EPUB): a page a chapter, and a long chapter in parts."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pagemill.document.page import DocumentInfo
from pagemill.errors import CorruptInputError, EncryptedError
from pagemill.readers.base import Document, Part
from pagemill.readers.html import of_markup
from pagemill.readers.packages import check_package, xml_root
from pagemill.readers.text import text_of

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"
_INFO = {"title": "title", "author": "creator", "created": "date", "language": "language"}


def read(path: Path, password: str | None = None) -> Document:
    """Read a book, in the order of its spine."""
    from lxml import etree

    warnings = check_package(path)

    try:
        with zipfile.ZipFile(path) as archive:
            name = str(xml_root(archive.read(_CONTAINER)).find(".//{*}rootfile").get("full-path"))
            package = xml_root(archive.read(name))
            locked = _locked(archive)
            chapters = list(_chapters(archive, package, posixpath.dirname(name), locked))
            parts = [part for part in chapters if part.blocks] or [Part()]
            parts[0].notes += (note for part in chapters if not part.blocks for note in part.notes)
    except (KeyError, AttributeError, TypeError, etree.XMLSyntaxError) as error:
        raise CorruptInputError(f"the book is damaged: {error}", remedy="Get the file again.") from error
    parts[0].warnings += warnings

    metadata = {key: package.findtext(f".//{_DC}{name}", "").strip() for key, name in _INFO.items()}
    return Document(parts=parts, info=DocumentInfo(**metadata))


def _locked(archive: zipfile.ZipFile) -> set[str]:
    """Members that a shop has encrypted. Fonts are often; a book whose chapters are cannot be read."""
    if _ENCRYPTION not in archive.namelist():
        return set()
    locked = xml_root(archive.read(_ENCRYPTION)).iterfind(".//{*}CipherReference")
    return {unquote(each.get("URI") or "") for each in locked}


def _chapters(archive: zipfile.ZipFile, package: Any, folder: str, locked: set[str]) -> Iterator[Part]:
    items = {each.get("id"): each for each in package.iterfind(".//{*}manifest/{*}item")}
    members = set(archive.namelist())
    for each in package.iterfind(".//{*}spine/{*}itemref"):
        item = items.get(each.get("idref"))
        name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or ""))) if item is not None else ""
        # Not skipped: a book without one of its chapters would pass for whole.
        if name not in members:
            raise CorruptInputError(
                f"the chapter {name or each.get('idref')!r} is missing", remedy="Get the file again."
            )
        if name in locked:
            raise EncryptedError("the book is protected by DRM", remedy="Get a copy without DRM.")
        pictures = _Members(archive, members, posixpath.dirname(name))
        found = text_of(archive.read(name))
        yield from found.annotated(of_markup(found.text, pictures=pictures, is_xml=True)).parts


class _Members(dict[str, bytes]):
    """Pictures of a book by their address in a chapter; read when they are asked for."""

    def __init__(self, archive: zipfile.ZipFile, members: set[str], folder: str) -> None:
        super().__init__()
        self._archive, self._members, self._folder = archive, members, folder

    def get(self, key: str, default: Any = None) -> Any:
        name = posixpath.normpath(posixpath.join(self._folder, unquote(key)))
        return self._archive.read(name) if name in self._members else default
