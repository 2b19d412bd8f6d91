"""A catalogue for streams that resume nothing."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from pagemill.document.identity import KnownSource
from pagemill.document.names import UniqueNames

if TYPE_CHECKING:
    from pathlib import Path


class NewCatalogue:
    """Knows no source and no name at first, and is gone with the process; a :class:`~pagemill.sources.base.Catalogue`.

    Memory grows by some 200 bytes a source, and by as much an open name.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copies: Counter[str] = Counter()
        self._document_ids: dict[str, str] = {}
        self._documents = UniqueNames()
        self._pages = UniqueNames()

    def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
        """None: nothing is remembered, as every file is met once."""
        return None

    def remember_digest(self, path: Path, size: int, modified_ns: int, digest: str) -> None:
        """Does nothing, for the same reason."""

    def meet(self, digest: str, uri: str, skip: str | None = None) -> KnownSource:
        """Which copy of its content a source is; nothing else is known."""
        with self._lock:
            self._copies[digest] += 1
            return KnownSource(copy=self._copies[digest])

    def counted(self, digest: str, copy: int, pages: int) -> None:
        """Does nothing: nobody asks again."""

    def page_count(self, digest: str) -> int | None:
        """None: nothing is remembered."""
        return None

    def document_id(self, key: str, wanted: str) -> str:
        """The id of a document: the one it has, else ``wanted`` made unique."""
        with self._lock:
            if key not in self._document_ids:
                self._document_ids[key] = self._documents.claim(wanted)
            return self._document_ids[key]

    def page_id(self, wanted: str) -> str:
        """``wanted`` made unique."""
        with self._lock:
            return self._pages.claim(wanted)
