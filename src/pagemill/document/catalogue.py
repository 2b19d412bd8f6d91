"""Known sources across runs, and assigned names."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pagemill.document.identity import KnownSource
from pagemill.document.page import DocumentInfo


class Catalogue:
    """Starts empty and is not stored; the catalogue of a run directory is.

    Thread-safe; the calls may block. Memory grows by some 200 bytes a source, and by as much an open name.
    """

    temporary: Path | None = None
    """Folder for copies of files, which the next run clears when a process is killed; None for that of the system."""
    is_part = False
    """The stream reads some pages of a larger input, which is counted elsewhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copies: Counter[str] = Counter()
        self._document_ids: dict[str, str] = {}
        self._given: set[tuple[str, str]] = set()
        self._tried: dict[tuple[str, str], int] = {}  # last number given to a name that more than one wanted

    def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
        """The digest of a file that has kept its path, size and time of modification; None for any other."""
        return None

    def remember_digest(self, path: Path, size: int, modified_ns: int, digest: str) -> None:
        """Keep a digest for :meth:`remembered_digest`."""

    def register(self, digest: str, uri: str, skip: str | None = None) -> KnownSource:
        """Register a source of the input, and return what is known of it; once a source, in input order.

        A known source of the same ``uri`` and other content is replaced: its pages and their names are given up. One
        that cannot be read, whose digest is that of its ``uri``, replaces none.
        Pages that were skipped have ended only where ``skip`` is the reason.
        """
        with self._lock:
            self._copies[digest] += 1
            return KnownSource(copy=self._copies[digest])

    def counted(self, digest: str, copy: int, pages: int) -> None:
        """Store the total number of pages of a source."""

    def document_id(self, key: str, wanted: str) -> str:
        """The id of a document: the one it has (``key`` says which document), else ``wanted`` made unique."""
        with self._lock:
            if key not in self._document_ids:
                self._document_ids[key] = self._unique("documents", wanted)
            return self._document_ids[key]

    def describe(self, doc_id: str, info: DocumentInfo) -> None:
        """Store the metadata of a document."""

    def page_id(self, wanted: str) -> str:
        """A new page id: ``wanted`` made unique."""
        with self._lock:
            return self._unique("pages", wanted)

    def _unique(self, kind: str, wanted: str) -> str:
        """An unused name; case is ignored."""
        name = next(name for name in self._candidates(kind, wanted) if (kind, name.casefold()) not in self._given)
        self._given.add((kind, name.casefold()))
        return name

    def _candidates(self, kind: str, wanted: str) -> Iterator[str]:
        """``wanted``, ``wanted-2``, ``wanted-3`` and so on, without those that were tried before."""
        place = (kind, wanted.casefold())
        number = self._tried.get(place, 1)
        while True:
            yield wanted if number == 1 else f"{wanted}-{number}"
            number += 1
            self._tried[place] = number
