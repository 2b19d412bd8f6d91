"""The catalogue of a run: digests, finished pages and names of sources, from its database."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import KnownSource, WaitingPage, text_digest
from pagemill.document.page import DocumentInfo
from pagemill.store.rows import PageState, plain
from pagemill.store.run_database import MAX_URI, RunDatabase, short

DEATHS_IN_COMPANY = 3
"""Deaths of the process with a page among those in flight, after which the page is retried in isolation."""

_ENDED = f"(page > 0 AND state >= {PageState.DONE:d} AND (state <> {PageState.SKIPPED:d} OR category IS ?))"
"""SQL condition: a page is finished. A source that did not open is not, nor a page skipped for another reason."""


class Numbers:
    """A set of small numbers, at one byte for each number up to the largest: pages of a source, sources of a run."""

    def __init__(self) -> None:
        self._flags = bytearray()

    def add(self, number: int) -> None:
        """Add a number."""
        if number >= len(self._flags):
            self._flags.extend(bytes(number + 1 - len(self._flags)))
        self._flags[number] = 1

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number < len(self._flags) and self._flags[number] == 1


class RunCatalogue(Catalogue):
    """The catalogue of a run directory. Thread-safe; its calls block.

    Args:
        run: Its database.
        replace: Called with a source (its number in the database) whose content has changed, to remove its pages.
    """

    def __init__(self, run: RunDatabase, replace: Callable[[int], None]) -> None:
        super().__init__()
        self.temporary = run.file.parent
        self._run = run
        self._replace = replace
        self._met = Numbers()  # sources in the input of this process
        self._taken: dict[bytes, int] = {}  # of contents met more than once: the copies up to this one are met

    def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
        """The digest of a file whose path, size and modification time are unchanged; None for any other."""
        known = self._run.one(
            "SELECT digest FROM digests WHERE path = ? AND size = ? AND modified_ns = ?",
            (os.fsencode(path), size, modified_ns),
        )
        return None if known is None else bytes(known).hex()

    def remember_digest(self, path: Path, size: int, modified_ns: int, digest: str) -> None:
        """Store a digest for :meth:`remembered_digest`."""
        self._run.change(
            "INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?)",
            (os.fsencode(path), size, modified_ns, bytes.fromhex(digest)),
        )

    def register(self, digest: str, uri: str, skip: str | None = None) -> KnownSource:
        """Register a source of the input, and return what is known of it. Called once per source, in input order.

        Of several known sources with the same content, the one with this ``uri`` is used, otherwise the first that this
        process has not met. A known source with the same ``uri`` and other content is replaced, but not by one that
        cannot be read: a share that is unavailable for a while, or a lock, must not cost what was parsed. Skipped pages
        count as finished only if ``skip`` is the reason.
        """
        # A file that cannot be read is identified by its address: see Intake.
        can_be_read = digest != text_digest(uri)
        content, uri = bytes.fromhex(digest), plain(uri[:MAX_URI])
        with self._run.lock:
            there = self._run.query("SELECT source, digest, copy, pages FROM sources WHERE uri = ?", (uri,))
            unmet = [row for row in there if row[0] not in self._met]
            for source, known_content, copy, pages in sorted(unmet, key=lambda row: row[1] == content):
                if known_content == content:
                    return self._known(skip, source, copy, pages)
                if can_be_read:
                    self._replace(source)
            with self._run.transaction() as connection:
                found = connection.execute(
                    "INSERT INTO sources (digest, copy, uri) VALUES (?, ?, ?)"
                    " ON CONFLICT (digest, copy) DO UPDATE SET uri = excluded.uri RETURNING source, copy, pages",
                    (content, self._free_copy(content), uri),
                ).fetchone()
            return self._known(skip, *found)

    def counted(self, digest: str, copy: int, pages: int) -> None:
        """Store the number of pages of a source."""
        self._run.change(
            "UPDATE sources SET pages = ? WHERE digest = ? AND copy = ?", (pages, bytes.fromhex(digest), copy)
        )

    def document_id(self, key: str, wanted: str) -> str:
        """The id of the document with this key: the one it has, otherwise ``wanted`` made unique."""
        key, wanted = plain(key), plain(wanted)
        new = self._run.new_documents
        with self._run.lock:
            known = self._run.one("SELECT doc_id FROM documents WHERE key = ?", (key,)) or new.get(key)
            if known is not None:
                return str(known)
            given = {name.casefold() for name in new.values()}
            # Case-folded: on some file systems A.md and a.md are one file.
            for candidate in self._candidates("documents", wanted):
                name = candidate.casefold()
                rows = self._run.query("SELECT key, doc_id FROM documents WHERE name = ?", (name,))
                if not rows and name not in given:
                    new[key] = candidate
                    return candidate
                if rows and rows[0][0] is None:  # its key was lost with an earlier database
                    self._run.change("UPDATE documents SET key = ? WHERE name = ?", (key, name))
                    return str(rows[0][1])
        raise AssertionError("candidates are endless")

    def describe(self, doc_id: str, info: DocumentInfo) -> None:
        """Store the metadata of a document."""
        self._run.set_info(doc_id, info)

    def page_id(self, wanted: str) -> str:
        """Assign an id to a new page: ``wanted`` made unique."""
        wanted = plain(wanted)
        with self._run.lock:
            page_id = next(filter(self._is_free, self._candidates("pages", wanted)))
            self._run.new_names.add(page_id.casefold())
            return page_id

    def _is_free(self, page_id: str) -> bool:
        name = page_id.casefold()
        return name not in self._run.new_names and not self._run.query("SELECT 1 FROM pages WHERE name = ?", (name,))

    def _free_copy(self, content: bytes) -> int:
        """The first copy of a content that this process has not met, or the next number."""
        taken = self._taken.get(content, 0)
        for source, copy in self._run.each(
            "SELECT source, copy FROM sources WHERE digest = ? AND copy > ? ORDER BY copy", (content, taken)
        ):
            if source not in self._met:
                return int(copy)
            taken = self._taken[content] = copy
        return taken + 1

    def _known(self, skip: str | None, source: int, copy: int, pages: int | None) -> KnownSource:
        """Register a source of an earlier invocation, with its finished and waiting pages."""
        self._met.add(source)
        given = (short(skip) or "", source)
        ended = Numbers()
        for (page,) in self._run.each(f"SELECT page FROM pages WHERE {_ENDED} AND source = ?", given):
            ended.add(page)
        waiting = {
            page: WaitingPage(page_id=page_id, attempts=max(attempts, int(deaths >= DEATHS_IN_COMPANY)), death=death)
            for page, page_id, attempts, deaths, death in self._run.each(
                f"SELECT page, page_id, attempts, deaths, death FROM pages WHERE NOT {_ENDED} AND source = ?", given
            )
        }
        return KnownSource(copy=copy, pages=pages, ended=ended, waiting=waiting)
