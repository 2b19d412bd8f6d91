"""Messages between driver and workers: units of pages, and their records. No pixels."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pagemill._version import __version__
from pagemill.config.machine import RuntimeSettings
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.document.identity import WaitingPage
from pagemill.document.page import PageError
from pagemill.sources.base import PageRef
from pagemill.sources.items import is_url
from pagemill.sources.options import SourceOptions

UNIT_PAGES = 16
"""Pages of a unit: what one Ray task parses, and what is sent back at once. A task costs Ray about 10 ms, which is
nothing against 16 pages; a worker that dies costs the pages of its units in flight."""


class UnitSource(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A source and the pages of it that belong to a unit."""

    uri: str
    digest: str
    copy: int
    size: int | None
    """Size of a local file when it was planned. If it and ``modified_ns`` are unchanged, no digest is computed."""
    modified_ns: int | None
    pages: dict[int, WaitingPage]
    """By their number in it (:attr:`pagemill.document.identity.PageKey.page`), with what the run knows of them."""


class Unit(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Pages that one task of a worker parses."""

    number: int
    """From 0, in the order in which units are offered."""
    sources: list[UnitSource]
    alone: bool = False
    """No other page may be in flight in the worker: this one may have killed another worker."""


class UnitPageResult(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A parsed page."""

    record: bytes
    """JSON."""
    crops: list[tuple[str, bytes]]
    preview: bytes | None
    retryable: bool
    unserved: bool
    log: list[tuple[str, int, str]] = []
    """Log records of the worker about it: logger, level and message."""


class UnitResult(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What came of a unit."""

    number: int
    node: str
    """Name of the machine."""
    died: bool = False
    """The worker that parsed it before has died, and the unit was not parsed again."""
    pages: list[UnitPageResult] = []
    error: PageError | None = None
    """An error that ends the run, such as a server that does not answer or an engine that cannot be loaded."""
    problems: dict[str, PageError] = {}
    """Errors by ``uri`` of sources that the driver could read, or did not open."""
    left: bool = False
    """The worker left its machine: missing pages were not finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTask:
    """What all workers of a run need to know."""

    settings: ParseSettings
    runtime: RuntimeSettings
    layout: LayoutChoice
    source: SourceOptions
    """Options for a single source, without a limit and folders."""
    folder: str
    """Working directory of the driver, in which relative inputs are."""
    out: Path
    """The output directory."""
    log_level: int = logging.WARNING
    """From which level the driver wants what workers log about pages."""
    token: str
    """A file that the driver has created: workers that see it write crops themselves."""
    version: str = __version__


encode = msgspec.msgpack.Encoder().encode
decode_unit = msgspec.msgpack.Decoder(Unit).decode
decode_result = msgspec.msgpack.Decoder(UnitResult).decode


def make_unit(number: int, refs: Iterable[PageRef], *, alone: bool = False) -> Unit:
    """The unit of some pages; those of one source follow one another."""
    sources: list[UnitSource] = []
    for ref in refs:
        uri, digest, copy = identity = (ref.document.uri, ref.key.digest, ref.key.copy)
        # Only the last source is compared: references come in input order, so those of a source are consecutive.
        if not sources or (sources[-1].uri, sources[-1].digest, sources[-1].copy) != identity:
            size, modified_ns = _stat(uri)
            sources.append(UnitSource(uri=uri, digest=digest, copy=copy, size=size, modified_ns=modified_ns, pages={}))
        sources[-1].pages[ref.key.page] = WaitingPage(
            page_id=ref.page_id,
            doc_id=ref.document.doc_id,
            position=ref.position,
            attempts=ref.attempts,
            death=ref.death,
        )
    return Unit(number=number, sources=sources, alone=alone)


def _stat(uri: str) -> tuple[int | None, int | None]:
    if is_url(uri):
        return None, None
    try:
        status = os.stat(os.path.expanduser(uri))  # noqa: PTH111, PTH116 - once a source of a unit
    except OSError:  # the worker reports it
        return None, None
    return status.st_size, status.st_mtime_ns
