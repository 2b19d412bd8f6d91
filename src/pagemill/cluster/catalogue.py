"""The catalogue of a worker: names, positions and attempts of the pages of a unit, as planned by the driver."""

from __future__ import annotations

import os
from pathlib import Path

from pagemill.cluster.units import Unit, UnitSource
from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import AllBut, KnownSource
from pagemill.sources.items import is_url


class UnitCatalogue(Catalogue):
    """Reports all pages as finished except those of the unit, so that an input stream yields just these."""

    is_part = True

    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self._sources: dict[str, list[UnitSource]] = {}
        for source in unit.sources:
            self._sources.setdefault(_address(source.uri), []).append(source)

    def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
        """The digest of a file that was not changed since the driver read it."""
        sources = self._sources.get(os.path.abspath(path), ())  # noqa: PTH100 - Path.resolve would follow links
        return next(
            (source.digest for source in sources if (source.size, source.modified_ns) == (size, modified_ns)), None
        )

    def register(self, digest: str, uri: str, skip: str | None = None) -> KnownSource:
        """The pages of the unit; none of a source whose content has changed since it was planned."""
        sources = self._sources.get(uri)
        source = sources.pop(0) if sources else None  # a file that is twice in the unit is met twice, in this order
        if source is None or source.digest != digest:
            return KnownSource(ended=AllBut(()))
        return KnownSource(copy=source.copy, ended=AllBut(source.pages), waiting=source.pages)


def _address(uri: str) -> str:
    return uri if is_url(uri) else os.path.abspath(os.path.expanduser(uri))  # noqa: PTH100, PTH111 - as above
