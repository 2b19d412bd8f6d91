"""Publishing a run as a dataset: its files, their page images, and the upload."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pagemill.app.published_images import PublishedImages
from pagemill.errors import ExitCode, UsageError
from pagemill.publishing.build import LOCK, build
from pagemill.publishing.hub import HubDataset
from pagemill.publishing.storage import StoredDataset
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pagemill.errors import PagemillError
    from pagemill.publishing.build import BuildOptions
    from pagemill.publishing.manifest import Manifest, PublishedFile
    from pagemill.sources import SourceOptions

_LICENCE = re.compile(r"[a-z0-9][a-z0-9.+\-]{0,63}")
_REPOSITORY = re.compile(r"[\w.\-]{1,96}/[\w.\-]{1,96}")


def check_repository(name: str, option: str) -> None:
    """Refuse what cannot be the name of a repository on the Hub.

    Raises:
        UsageError: It cannot.
    """
    if not _REPOSITORY.fullmatch(name):
        raise UsageError(f"{option} is {name!r}", remedy="It looks like USER/NAME.")


def check_licence(name: str) -> None:
    """Refuse what cannot be the identifier of a licence.

    Raises:
        UsageError: It cannot.
    """
    if not _LICENCE.fullmatch(name):
        raise UsageError(f"--licence is {name!r}", remedy="Use an identifier such as cc-by-4.0.")


@dataclass(slots=True)
class PublishOutcome:
    """A dataset that was made."""

    folder: Path
    manifest: Manifest
    problems: list[tuple[str, PagemillError]] = field(default_factory=list)
    """Pages without an image, and why."""
    address: str | None = None
    """Where it was published and verified; None after a dry run."""

    @property
    def exit_code(self) -> ExitCode:
        """0, or "some pages failed" if images are missing."""
        return ExitCode.PAGES_FAILED if self.problems else ExitCode.OK


def publish(
    out: Path,
    options: BuildOptions,
    target: HubDataset | StoredDataset | None,
    *,
    inputs: tuple[str, ...] = (),
    sources: SourceOptions,
    making: Callable[[int], Callable[[], None]],
    made: Callable[[PublishOutcome], Callable[[PublishedFile, int], None]],
) -> PublishOutcome:
    """Make the files of a dataset and upload them.

    Args:
        out: The run directory.
        options: How the dataset is made.
        target: Where to publish; None makes the files only.
        inputs: Current paths of the parsed files; empty if they have not moved.
        sources: What reading page images needs: password, image column.
        making: Called with the number of steps before the files are made; returns what is called after each step.
        made: Called when the files are made; returns what is called with each uploaded file and its number of bytes.

    Raises:
        PagemillError: The run cannot be read or the dataset not be published; the class says why.
    """
    with ExitStack() as stack:
        reader = stack.enter_context(RunReader.open(out))
        stack.callback(RunLock(out / LOCK).release)
        if target is not None:
            target.check(out)
        images = PublishedImages(reader, out, inputs, sources)
        pages = reader.summary.pages
        # With page images two steps per page: its image is read, its row is written.
        images.tell = advance = making(2 * pages if options.page_images else pages)
        opened = images.opened if options.page_images else None
        folder, manifest = build(reader, out, options, lambda page: advance(), opened)
        outcome = PublishOutcome(folder, manifest, images.problems)
        uploaded = made(outcome)
        if target is not None:
            outcome.address = target.publish(folder, manifest, uploaded)
        return outcome
