"""The structure of a document as an overlay on its regions and records."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pagemill.document.labels import Label
from pagemill.document.page import Furniture, Mark, PageResult, Region, Span
from pagemill.late import re

_TARGET = re.compile(r'(?<=href=")#page=[^"]{1,40}(?=")')


class RegionOverlay(msgspec.Struct, frozen=True, array_like=True):
    """Replacements for a region's own values."""

    label: Label
    level: int | None
    furniture: Furniture | None
    anchor: str | None
    joined_to: str | None


class Overlay(msgspec.Struct, frozen=True, array_like=True):
    """The structure of a document, where it differs from that of its pages."""

    pages: dict[str, dict[int, RegionOverlay]] = {}
    """By page id and index of the region."""
    links: dict[str, str] = {}
    """Anchors of headings, by the places that links name."""


_decoder = msgspec.msgpack.Decoder(Overlay)


def encode_overlay(overlay: Overlay) -> bytes:
    """An overlay as it is stored."""
    return msgspec.msgpack.encode(overlay)


def decode_overlay(data: bytes) -> Overlay:
    """What :func:`encode_overlay` made.

    Raises:
        msgspec.DecodeError: It is damaged.
    """
    return _decoder.decode(data)


def apply(page: PageResult, overlay: Overlay) -> PageResult:
    """A record with the structure of its document; the original is not changed.

    The Markdown is that of the page alone: who shows it writes it again.
    """
    given = overlay.pages.get(page.page_id, {})
    regions = [_region(region, given.get(region.index), overlay.links) for region in page.regions]
    # The record itself, by which callers see that its Markdown need not be written again.
    if all(new is old for new, old in zip(regions, page.regions, strict=True)):
        return page
    return msgspec.structs.replace(page, regions=regions)


def _region(region: Region, given: RegionOverlay | None, links: Mapping[str, str]) -> Region:
    changes = {} if given is None else msgspec.structs.asdict(given)
    if links and any(span.mark is Mark.LINK and span.target in links for span in region.spans):
        changes["spans"] = tuple(_span(span, links) for span in region.spans)
    if links and region.label is Label.TABLE and "#page=" in (region.content or ""):
        found = _TARGET.sub(lambda match: links.get(match[0].replace("&amp;", "&"), match[0]), region.content or "")
        changes["content"] = found
    return msgspec.structs.replace(region, **changes) if changes else region


def _span(span: Span, links: Mapping[str, str]) -> Span:
    anchor = links.get(span.target or "") if span.mark is Mark.LINK else None
    return span if anchor is None else msgspec.structs.replace(span, target=anchor)
