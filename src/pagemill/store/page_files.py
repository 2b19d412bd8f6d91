"""The three files that grow with every page: records, texts and previews."""

from __future__ import annotations

import contextlib
import zlib
from typing import TYPE_CHECKING

from pagemill.store import paths
from pagemill.store.files import AppendFile
from pagemill.store.rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class PageFiles:
    """The open files of a run directory, each of them made when it is not there.

    Args:
        out: The run directory.

    Raises:
        OutputError: One cannot be opened; NoSpaceError when the disk is full.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        with contextlib.ExitStack() as opened:  # closes what is open when a later one fails
            self.results = AppendFile(out / paths.RESULTS)
            opened.callback(self.results.close)
            self.texts = AppendFile(out / paths.TEXTS)
            opened.callback(self.texts.close)
            self.previews = AppendFile(out / paths.PREVIEWS)
            opened.pop_all()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of records, texts and previews."""
        return self.results.size, self.texts.size, self.previews.size

    @contextlib.contextmanager
    def lines_closed(self) -> Iterator[None]:
        """While entered, the two files of lines are closed, so that others may take their places."""
        self.results.close()
        self.texts.close()
        try:
            yield
        finally:
            self.results = AppendFile(self._out / paths.RESULTS)
            self.texts = AppendFile(self._out / paths.TEXTS)

    def sync(self) -> None:
        """Wait until all of them is on the disk.

        Raises:
            OutputError: The disk does not take it; NoSpaceError when it is full.
        """
        for file in (self.results, self.texts, self.previews):
            file.sync()

    def close(self) -> None:
        """Close them; a second call does nothing."""
        for file in (self.results, self.texts, self.previews):
            file.close()


def append(undo: contextlib.ExitStack, file: AppendFile, data: bytes) -> Span:
    """Append to one of the files, and have ``undo`` take it back."""
    undo.callback(file.truncate, file.size)
    return Span(file.append(data), len(data), zlib.crc32(data))
