"""Publishing a run as a dataset: its files, their page images, and the upload."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pagemill.app.options import ImageSources
from pagemill.app.published_images import PublishedImages
from pagemill.errors import ExitCode, PagemillError, UsageError
from pagemill.publishing.build import LOCK, build
from pagemill.publishing.hub import HubDataset
from pagemill.publishing.manifest import Manifest
from pagemill.publishing.options import BuildOptions
from pagemill.publishing.storage import StoredDataset
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader

_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+\-]{0,63}")
_REPOSITORY = re.compile(r"[\w.\-]{1,96}/[\w.\-]{1,96}")


def check_names(repository: str | None, licence: str, *, option: str) -> None:
    """Refuse what cannot be the name of a repository on the Hub, or the identifier of a licence.

    Raises:
        UsageError: It cannot.
    """
    if repository is not None and not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"{option} is {repository!r}", remedy="It looks like USER/NAME.")
    if not _LICENCE.fullmatch(licence):
        raise UsageError(f"--licence is {licence!r}", remedy="Use an identifier such as cc-by-4.0.")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that was made."""

    folder: Path
    manifest: Manifest
    problems: list[tuple[str, PagemillError]]
    """Pages without an image, and why."""

    @property
    def exit_code(self) -> ExitCode:
        """0, or "some pages failed" if images are missing."""
        return ExitCode.PAGES_FAILED if self.problems else ExitCode.OK


@contextmanager
def made_dataset(
    out: Path,
    options: BuildOptions,
    target: HubDataset | StoredDataset | None,
    sources: ImageSources,
    tell: Callable[[int, int], object],
) -> Iterator[Dataset]:
    """Make the files of a dataset; no other process replaces them within the block.

    Args:
        out: The run directory.
        options: How the dataset is made.
        target: Where it will be published; None after a dry run.
        sources: Where the parsed files are now.
        tell: Called with the number of steps that are done, and that of all.

    Raises:
        PagemillError: The run cannot be read, or the dataset will not be published; the class says why.
    """
    with RunReader.open(out) as reader, RunLock(out / LOCK):
        if target is not None:
            target.check(out)
        # With page images two steps per page: its image is read, its row is written.
        steps = reader.summary.pages * (2 if options.page_images else 1)
        done = count(1)

        def advance(*_: object) -> None:
            tell(next(done), steps)

        images = PublishedImages(reader, advance, sources)
        folder, manifest = build(reader, options, advance, images.opened if options.page_images else None)
        yield Dataset(folder, manifest, images.problems)
