"""The images of a run's pages for a dataset: taken from the sources once more, kept on disk until they are written."""

from __future__ import annotations

import asyncio
import contextlib
import io
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from PIL import Image

from pagemill.config.settings import RuntimeSettings
from pagemill.document.page import Status
from pagemill.errors import PagemillError
from pagemill.imaging.encode import encode_jpeg
from pagemill.page_images import FoundPage, PageImages, WantedPage
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.flight import FlightControl
from pagemill.sources import SourceOptions
from pagemill.sources.base import EncodedImage
from pagemill.store import paths
from pagemill.store.files import output_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pagemill.document.page import PageResult
    from pagemill.store.reading import RunReader

_AS_STORED = ("JPEG", "PNG")
"""A page that is such a file is published byte for byte."""
_MAX_AS_STORED = 64 * 2**20
"""Bytes over which a page is encoded anew: the Hub's viewer refuses large rows."""
_ORIENTATION = 0x0112  # EXIF: 1 is upright


@dataclass(slots=True)
class PublishedImages:
    """Images by page.

    Args:
        reader: The run.
        out: Its directory.
        inputs: Where the sources lie now; empty for where they lay when they were parsed.
        options: Password, image column and the like.
    """

    reader: RunReader
    out: Path
    inputs: Sequence[str] = ()
    options: SourceOptions = field(default_factory=SourceOptions)
    problems: list[tuple[str, PagemillError]] = field(default_factory=list)
    """Pages without an image, and why."""
    _file: BinaryIO | None = None
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)

    @contextlib.contextmanager
    def opened(self) -> Iterator[PublishedImages]:
        """Take all images from the sources; they are kept until the block ends.

        Raises:
            NoSpaceError: The disk is full.
        """
        folder = self.out / paths.FOLDER
        with output_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
            self._file = file
            asyncio.run(self._take())
            yield self
        self._file = None

    def __call__(self, page: PageResult) -> bytes | None:
        """The image of a page; None where there is none."""
        place = self._places.get(page.page_id)
        if place is None or self._file is None:
            return None
        self._file.seek(place[0])
        return self._file.read(place[1])

    async def _take(self) -> None:
        runtime = RuntimeSettings().resolved()
        flight = FlightControl(max_pages=runtime.pages_in_flight, max_bytes=runtime.bytes_in_flight)
        wanted = [WantedPage.of(page) for page in self.reader.pages() if page.status is Status.DONE]
        async with DecodingService(workers=runtime.decoders) as decoding:
            images = PageImages(self.reader, decoding, flight, options=self.options, inputs=self.inputs or None)
            async with asyncio.TaskGroup() as tasks, contextlib.aclosing(images.find(wanted)) as pages:
                async for found in pages:
                    if isinstance(found, FoundPage):
                        tasks.create_task(self._keep(images, found))
                    else:
                        self.problems.append((found[0].page_id, found[1]))

    async def _keep(self, images: PageImages, found: FoundPage) -> None:
        try:
            data = await asyncio.to_thread(_stored, found)
            if data is None:
                data = await asyncio.to_thread(encode_jpeg, await images.pixels(found))
        except PagemillError as error:
            self.problems.append((found.wanted.page_id, error))
        else:
            assert self._file is not None
            self._places[found.wanted.page_id] = self._file.seek(0, 2), len(data)
            self._file.write(data)
        finally:
            found.ticket.leave()


def _stored(found: FoundPage) -> bytes | None:
    """The bytes of a page that lies in its source as an upright image of a kind that everybody reads; else None."""
    payload = found.ref.payload
    if found.wanted.rotation or not isinstance(payload, EncodedImage):
        return None
    try:
        data = payload.data
        if data is None:
            assert payload.path is not None
            if payload.path.stat().st_size > _MAX_AS_STORED:
                return None
            data = payload.path.read_bytes()
        with Image.open(io.BytesIO(data), formats=_AS_STORED) as image:  # reads the header alone
            upright = image.getexif().get(_ORIENTATION, 1) == 1
    except Exception:  # what is wrong with it, decoding says in our words
        return None
    return data if upright and len(data) <= _MAX_AS_STORED else None
