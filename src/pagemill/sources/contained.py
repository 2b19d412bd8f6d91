"""Documents inside of files: of archives their members, of mail the message and its attachments.

``archive.zip#reports/a.docx`` is the address of one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from pagemill.errors import MissingInputError, PagemillError, TooLargeError
from pagemill.imaging.formats import ARCHIVE, CONTAINERS, HEAD_BYTES, ZIP, is_document, promised, sniff
from pagemill.readers.containers import Budget, Member, of_archive
from pagemill.readers.packages import kind_of_package
from pagemill.sources.items import Content, Item, SkippedFiles
from pagemill.sources.remote import copy_to_disk, unreachable

_MARK = "#"
_MOST_DEPTH = 3
"""Nesting depth: mail in an archive that is attached to mail."""
_MOST_BYTES = 2**30
"""Size of a file that is fetched for its contents."""


def container_of(text: str, origin: int) -> Item | None:
    """The file that an address of what is inside of it begins with; None for any other address."""
    starts = (text[:at] for at, char in enumerate(text) if char == _MARK)
    paths = ((start, Path(os.path.expanduser(start))) for start in starts)  # noqa: PTH111 - never raises
    found = next(((start, path) for start, path in paths if _is_container(path.name) and path.is_file()), None)
    return None if found is None else Item(uri=found[0], name=found[1].name, origin=origin, content=found[1])


def _is_container(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in CONTAINERS


def unpacked(item: Item, skipped: SkippedFiles, budget: Budget | None = None, depth: int = 0) -> Iterator[Item]:
    """The documents of a file: of an archive what is in it, of mail itself and its attachments, else itself.

    Args:
        item: The file.
        skipped: Collects the files that are not documents.
        budget: The rest of the limits of the outermost file.
        depth: Number of files around it.
    """
    # Bytes have no name to go by: those of the Python API may be an archive.
    is_archive = isinstance(item.content, bytes) and not item.inside and item.content.startswith(ZIP)
    if item.content is None or not (is_archive or _is_container(item.name)):
        yield item
        return
    budget = budget or Budget()
    found = is_mail = not (is_archive or item.name.lower().endswith(ARCHIVE))
    if is_mail:
        yield item
    try:
        with _on_disk(item.content) as path:
            # An Office file is a ZIP, too: it is a document itself, and may have others inside.
            if is_package := not is_mail and kind_of_package(path) is not None:
                yield item
                found = True
            names = Counter[str]()
            for member in _attached(path) if is_mail else of_archive(path, budget, is_package=is_package):
                inner = _inner(item, member, skipped, names)
                if inner is None:
                    continue
                found = True
                if is_mail:
                    budget.spend(len(member.data))
                # An archive can be built to contain itself: the depth is bounded beside the bytes.
                if depth >= _MOST_DEPTH:
                    raise TooLargeError(
                        f"{inner.name!r} is nested over {_MOST_DEPTH} files deep", remedy="Unpack the outer ones."
                    )
                yield from unpacked(inner, skipped, budget, depth + 1)
        # Without this an archive of programs would yield no page and no error.
        if not found:
            raise MissingInputError(f"{item.name!r} contains no document", remedy="Check what is in it.")
    except PagemillError as error:
        yield replace(item, content=None, error=error)
    except Exception as error:  # filesystems of others raise all sorts
        yield replace(item, content=None, error=unreachable(item.uri, error))


@contextmanager
def _on_disk(content: Content) -> Iterator[Path]:
    """The content as a file."""
    if isinstance(content, Path):
        yield content
    else:
        copy = copy_to_disk(content, None, max_bytes=_MOST_BYTES)  # goes away with the object
        yield copy.path


def _attached(path: Path) -> Iterator[Member]:
    """The attachments of a message; none where it cannot be read, which its own page reports."""
    from pagemill.readers.mail import attached, read_message  # imports much, and few inputs are mail

    try:
        message = read_message(path)
    except PagemillError:
        return iter(())
    return attached(message)


def _address(name: str, names: Counter[str]) -> str:
    """The name of a member, with a number where others before have it: ``a (2).txt``."""
    path, address = PurePosixPath(name), name
    while address in names:
        names[name] += 1
        address = f"{name.removesuffix(path.suffix)} ({names[name]}){path.suffix}"
    names[address] = 1
    return address


def _inner(item: Item, member: Member, skipped: SkippedFiles, names: Counter[str]) -> Item | None:
    """A member as a file to read; None for what is not a document. ``names`` counts those of the members before."""
    name = PurePosixPath(member.name.replace("\\", "/")).name or "document"
    data = member.data
    # Members have no folder to look around in: only what is a document by its name or its first bytes is one.
    if member.error is None and promised(name) is None:
        head = data[:HEAD_BYTES]
        if PurePosixPath(name).suffix not in ("", ".bin") or not (sniff(head) or is_document(head, name)):
            skipped.add(name)
            return None
    return Item(
        uri=f"{item.uri}{_MARK}{_address(member.name, names)}",
        name=name,
        origin=item.origin,
        content=None if member.error else data,
        error=member.error,
        root=item.root,
        inside=True,
    )
