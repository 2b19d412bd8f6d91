"""Which pages of a run are exported."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagemill.document.page import PageResult, Status


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter of pages; all that is given must hold. Patterns are those of file names: ``*``, ``?``, ``[...]``."""

    documents: tuple[str, ...] = ()
    """Patterns of document ids; none stands for all."""
    pages: tuple[str, ...] = ()
    """Patterns of page ids; none stands for all."""
    status: Status | None = None

    def wants_document(self, doc_id: str) -> bool:
        """Whether pages of a document are wanted at all."""
        return not self.documents or any(fnmatchcase(doc_id, pattern) for pattern in self.documents)

    def wants(self, page: PageResult) -> bool:
        """Whether a page is wanted."""
        if self.status is not None and page.status is not self.status:
            return False
        if self.pages and not any(fnmatchcase(page.page_id, pattern) for pattern in self.pages):
            return False
        return self.wants_document(page.doc_id)
