"""Zip files, written while they are sent."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

_CHUNK = 1 << 18


def zipped(members: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """A zip file, piece by piece.

    Args:
        members: Name and content of each file.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            with archive.open(name, "w", force_zip64=True) as member:
                for piece in content:
                    member.write(piece)
                    if sink.size >= _CHUNK:
                        yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """An unseekable file that buffers writes until they are taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any, /) -> int:
        """Keep a piece."""
        piece = bytes(data)
        self._pieces.append(piece)
        self.size += len(piece)
        return len(piece)

    def take(self) -> bytes:
        """Return and forget all pieces so far."""
        whole, self._pieces, self.size = b"".join(self._pieces), [], 0
        return whole
