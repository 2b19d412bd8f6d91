"""The settings tree of parsing, shared by ``pagemill parse``, ``pagemill run`` and the Python API."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pagemill.config.headings import MACHINE, OUTPUT, RESUME
from pagemill.config.machine import RuntimeSettings
from pagemill.config.options import Settings, option, servers_option
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.errors import UsageError
from pagemill.sources.options import SourceOptions

if TYPE_CHECKING:
    from pagemill.store.opening import OpenMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseOptions(Settings):
    """What to parse, how, and with which resources."""

    HEADING: ClassVar = RESUME
    RESULTS: ClassVar = False

    source: SourceOptions = SourceOptions()
    settings: ParseSettings = ParseSettings()
    layout: LayoutChoice = LayoutChoice()
    runtime: RuntimeSettings = RuntimeSettings()
    max_attempts: int = option(
        default=2,
        minimum=1,
        help="Attempts at a page that crashes, hangs or raises an error before it counts as failed.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSources(Settings):
    """Where the parsed files are now, to read page images again."""

    RESULTS: ClassVar = False

    NOT_NEEDED: ClassVar = ("pages", "recursive", "limit", "id_column", "download", "skip_duplicates")
    """Keys of options of sources that this does not need."""

    inputs: tuple[str, ...] = option(
        "--input", default=(), metavar="PATH", help="Current path of the parsed files, to read page images."
    )
    """Empty if they have not moved."""
    options: SourceOptions = SourceOptions()
    """Password, image column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEngineSettings(Settings):
    """Location of the engines that made the vectors, if it has changed."""

    servers: tuple[str, ...] = servers_option(
        help="Server that embeds queries, for vectors made by a server",
    )
    model: str | None = option(results=True, help="Path of the vectors' model, if it has moved.")
    device: str | None = option(results=False, help="Device of the model, such as cuda or cpu.")


class Resume(StrEnum):
    """What ``--resume`` means where there is no run."""

    IF_ANY = "if-any"
    """Start a run, as the published pipeline does."""
    REQUIRED = "required"
    """An error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryOptions(Settings):
    """How to treat the output directory and the run in it."""

    HEADING: ClassVar = RESUME
    RESULTS: ClassVar = False

    report: bool = option(default=True, heading=OUTPUT, help="Write report.html, or delete an earlier one.")
    strict: bool = option(
        default=False,
        heading=OUTPUT,
        help="Exit with status 3 also where text was read that may be wrong: low confidence, Hanja, vertical text.",
    )
    profile_to: Path | None = option(
        heading=MACHINE,
        metavar="DIR",
        help="Write a profile of the run: profile.json, trace.json for ui.perfetto.dev, and profile.html where "
        "pagemill-bench is installed.",
    )
    resume: Resume | None = option(
        without_value=Resume.IF_ANY,
        metavar="[=required]",
        help="Resume the run in the output directory. Without one, start it; with =required, fail.",
    )
    fresh: bool = option(default=False, help="Start over: delete the run in the output directory.")
    retry_failed: bool = option(default=False, help="Resume, and parse failed pages again.")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.fresh and (self.resume or self.retry_failed):
            other = "--resume" if self.resume else "--retry-failed"
            raise UsageError(f"--fresh starts over and excludes {other}", remedy="Leave out one of them.")

    def mode(self, out: Path) -> OpenMode:
        """Whether to resume the run in a directory.

        Raises:
            OutputError: The directory holds files by our names that are not ours, or cannot be read.
        """
        from pagemill.store.holding import Holding, examine
        from pagemill.store.opening import OpenMode

        if self.fresh:
            return OpenMode.FRESH
        # Both name a run that must be there: a mistyped path is not a reason to start a new one.
        if self.retry_failed or self.resume is Resume.REQUIRED:
            return OpenMode.RESUME
        # A run that cannot be restored is reported, and not replaced by a new one.
        return OpenMode.RESUME if self.resume and examine(out) is Holding.RUN else OpenMode.AUTO
