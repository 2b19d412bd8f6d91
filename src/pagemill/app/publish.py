"""Publishing a run as a dataset: its files, their page images, and the upload."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from PIL import Image

from pagemill.app.options import ImageSources
from pagemill.app.page_images import FoundPage, PageImages, WantedPage
from pagemill.document.page import PageResult, Status
from pagemill.document.shown import count
from pagemill.errors import ExitCode, NoSpaceError, PagemillError, UsageError, first_of
from pagemill.imaging.encode import encode_jpeg
from pagemill.publishing.build import LOCK, build
from pagemill.publishing.hub import HubDataset
from pagemill.publishing.manifest import Manifest
from pagemill.publishing.options import BuildOptions
from pagemill.publishing.storage import StoredDataset
from pagemill.sources.base import EncodedImage
from pagemill.store import paths
from pagemill.store.files import output_errors
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader

LICENCE = re.compile(r"[a-z0-9][a-z0-9.+\-]{0,63}")
"""Identifier of a licence on the Hub."""
_REPOSITORY = re.compile(r"[\w.\-]{1,96}/[\w.\-]{1,96}")
_AS_STORED = ("JPEG", "PNG")
"""A page that is such a file is published byte for byte."""
_MAX_AS_STORED = 64 * 2**20
"""Larger files, in bytes, are encoded again: the Hub's viewer refuses large rows."""
_SAMPLE = 100
"""Number of images after which the disk space for all is estimated again."""
_ORIENTATION = 0x0112  # EXIF: 1 is upright


def check_names(repository: str | None, licence: str | None, *, option: str) -> None:
    """Refuse what cannot be the name of a repository on the Hub, or the identifier of a licence.

    Raises:
        UsageError: It cannot.
    """
    if repository is not None and not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{option} is {repository!r}", remedy="It looks like USER/NAME.")
    if licence is not None and not LICENCE.fullmatch(licence):
        raise UsageError(f"--licence is {licence!r}", remedy="Use an identifier such as cc-by-4.0.")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that was made."""

    folder: Path
    manifest: Manifest
    problems: list[tuple[str, PagemillError]]
    """Pages without an image, with the reason."""

    @property
    def exit_code(self) -> ExitCode:
        """0, or "some pages failed" if images are missing."""
        return ExitCode.PAGES_FAILED if self.problems else ExitCode.OK


@contextlib.contextmanager
def made_dataset(
    out: Path,
    options: BuildOptions,
    target: HubDataset | StoredDataset | None,
    sources: ImageSources,
    report: Callable[[int, int], object],
) -> Iterator[Dataset]:
    """Make the files of a dataset; no other process replaces them within the block.

    Args:
        out: The run directory.
        options: Options of the dataset.
        target: Target of the publication; None after a dry run.
        sources: Current location of the parsed files.
        report: Called with the number of steps that are done, and that of all.

    Raises:
        PagemillError: The run cannot be read, or the dataset will not be published; its class gives the cause.
    """
    with RunReader.open(out) as reader, RunLock(out / LOCK):
        if target is not None:
            target.check(out)
        # With page images two steps per page: its image is read, its row is written.
        steps = reader.summary.pages * (2 if options.page_images else 1)
        done = itertools.count(1)

        def advance(*_: object) -> None:
            report(next(done), steps)

        images = PublishedImages(reader, advance, sources)
        folder, manifest = build(reader, options, advance, images.opened if options.page_images else None)
        yield Dataset(folder, manifest, images.problems)


@dataclass(slots=True)
class PublishedImages:
    """Images by page.

    Args:
        reader: The run.
        report: Called when the image of a page has been read, or cannot be.
        sources: Current location of the parsed files.
        wants: Whether the image of a page is needed.
    """

    reader: RunReader
    report: Callable[[], object]
    sources: ImageSources
    wants: Callable[[PageResult], bool] = lambda page: True
    problems: list[tuple[str, PagemillError]] = field(default_factory=list)
    """Pages without an image, with the reason."""
    _file: BinaryIO = field(init=False)
    _places: dict[str, tuple[int, int]] = field(default_factory=dict)
    _sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Width and height of the images that boxes refer to."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[PublishedImages]:
        """Read all images from the sources and keep them until the end of the block.

        Raises:
            NoSpaceError: The disk is full, or will be: it has to hold the images twice, here and in the files that
                are made of them.
        """
        # Not in /tmp, which may be memory: the images of a corpus are tens of gigabytes.
        folder = self.reader.path / paths.FOLDER
        with output_errors(folder), tempfile.TemporaryFile(dir=folder) as self._file:
            try:
                asyncio.run(self._collect())
            except BaseExceptionGroup as group:  # of tasks
                raise first_of(group) from group
            yield self

    def __call__(self, page: PageResult) -> bytes | None:
        """The image of a page; None if there is none."""
        if page.page_id not in self._places:
            return None
        start, size = self._places[page.page_id]
        self._file.seek(start)
        return self._file.read(size)

    async def _collect(self) -> None:
        wanted = []
        for page in self.reader.pages():
            if page.status is Status.DONE and self.wants(page):
                wanted.append(WantedPage.of(page))
                self._sizes[page.page_id] = page.width, page.height
        async with (
            PageImages.opened(self.reader, self.sources) as images,
            asyncio.TaskGroup() as tasks,
            contextlib.aclosing(images.find(wanted)) as pages,
        ):
            async for found in pages:
                tasks.create_task(self._keep(images, found))

    async def _keep(self, images: PageImages, found: FoundPage) -> None:
        page_id = found.wanted.page_id
        try:
            with found:
                data = await asyncio.to_thread(_stored, found, self._sizes[page_id])
                if data is None:
                    data = await asyncio.to_thread(encode_jpeg, await images.pixels(found))
        except PagemillError as error:
            self.problems.append((page_id, error))
        else:
            self._places[page_id] = self._file.seek(0, 2), len(data)
            self._file.write(data)
            # Again and again, because other processes fill the disk, and later pages may be larger.
            if len(self._places) % _SAMPLE == 0:
                self._check_space()
        self.report()

    def _check_space(self) -> None:
        """Report a disk that is too small early, not after hours.

        Raises:
            NoSpaceError: It cannot hold the remaining images and the files made of all.
        """
        self._file.flush()
        here, pages = self._file.tell(), len(self._sizes)
        whole = here // len(self._places) * (pages - len(self.problems))
        free = shutil.disk_usage(self.reader.path).free
        # Twice: this file and the rows of the dataset, which are there at the same time.
        if 2 * whole - here > free:
            raise NoSpaceError(
                f"the images of {count(pages, 'page')} take about {2 * whole / 1e9:,.0f} GB below {self.reader.path}"
                f" while the dataset is made, and {free / 1e9:,.0f} GB are free",
                remedy="Free some space, move the run directory to a larger disk, or leave out --page-images.",
            )


def _stored(found: FoundPage, size: tuple[int, int]) -> bytes | None:
    """The bytes of a page stored in its source as an upright JPEG or PNG; else None.

    Args:
        found: The page.
        size: Width and height that the boxes of its record refer to: an image of another size (one that was shrunk to
            be parsed) would not fit them.
    """
    payload = found.payload
    if found.wanted.rotation or not isinstance(payload, EncodedImage):
        return None
    try:
        data = payload.source
        if not isinstance(data, bytes):
            if data.stat().st_size > _MAX_AS_STORED:
                return None
            data = data.read_bytes()
        with Image.open(io.BytesIO(data), formats=_AS_STORED) as image:  # reads the header alone
            fits = image.getexif().get(_ORIENTATION, 1) == 1 and image.size == size
    except Exception:  # decoding reports what is wrong with it
        return None
    return data if fits and len(data) <= _MAX_AS_STORED else None
