"""Opening the ledger of a run directory: start a run, go on with one, or say why not."""

from __future__ import annotations

import errno
import os
import re
from contextlib import closing, suppress
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.errors import DamagedRunError, DifferentRunError, OutputError
from pagemill.store import paths
from pagemill.store.files import output_errors, size_of
from pagemill.store.ledger import Ledger
from pagemill.store.lock import RunLock
from pagemill.store.previous import Holding, clear, examine, is_fruitless, refuse_earlier_version
from pagemill.store.rebuilding import rebuild_ledger
from pagemill.store.recovery import Recovery
from pagemill.store.summary import RunSummary
from pagemill.store.view import LedgerView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pagemill.document.page import PageResult

_MAX_SETTING = 200
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_DIGITS = 12
"""Of a digest, that are shown."""
_START = "Leave out --resume and --retry-failed to start one."


class OpenMode(Enum):
    """What to do with what an output directory holds."""

    AUTO = "auto"
    """Go on with a run of the same settings; start one where there is none."""
    RESUME = "resume"
    """Go on; an error where there is no run."""
    FRESH = "fresh"
    """Delete what a run wrote, and start."""


def refuse(out: Path, mode: OpenMode) -> None:
    """Say, before anything is written, why a run cannot be opened in a directory, where that shows from outside.

    Raises:
        OutputError: It holds files by our names that are not ours, the run of a version that kept no ledger, or no
            run to resume.
    """
    holding = examine(out)
    if mode is not OpenMode.FRESH and holding is Holding.RECORDS:
        raise OutputError(
            f"{out} holds records of pagemill without the {paths.RUN_JSON} and the ledger of their run",
            remedy="Replace them with --fresh or choose another directory with -o.",
        )
    if holding is Holding.EARLIER_VERSION and (
        mode is OpenMode.RESUME or (mode is OpenMode.AUTO and not is_fruitless(out))
    ):
        refuse_earlier_version(out)
    if mode is OpenMode.RESUME and holding is not Holding.RUN:
        raise OutputError(f"{out} holds no run to resume", remedy=_START)


def preflight(out: Path, *, identity: Mapping[str, Any], mode: OpenMode) -> None:
    """Say why a run cannot be opened in a directory, as opening it would, and change nothing there.

    For those who do something dear before: start a server for the run, say.

    Args:
        out: The directory; it need not be there.
        identity: The settings that decide about results, as far as they are known.
        mode: What is to be done with what the directory holds.

    Raises:
        LockedError: Another process works on it.
        DifferentRunError: It holds a run with other settings.
        OutputError: It cannot be written, holds files by our names that are not ours, or no run to resume.
    """
    with output_errors(out):
        place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    refuse(out, mode)
    if (out / paths.LOCK).exists():
        RunLock(out / paths.LOCK).release()
    if mode is OpenMode.FRESH or not (out / paths.LEDGER).exists():
        return
    with suppress(DamagedRunError), closing(LedgerView(out / paths.LEDGER)) as view:  # which opening it mends
        rows = view.all("SELECT identity FROM run")
        before = msgspec.json.decode(rows[0][0]) if rows else {}
        differences = list(_differences({name: before.get(name) for name in identity}, identity)) if rows else []
        fruitless = not view.all("SELECT 1 FROM pages WHERE page > 0 AND offset IS NOT NULL LIMIT 1")
        if differences and not (fruitless and mode is OpenMode.AUTO):
            raise _different(out, differences)


def open_ledger(
    out: Path,
    *,
    identity: Mapping[str, Any],
    settings: Mapping[str, Any],
    mode: OpenMode,
    embedding_text: Callable[[PageResult], str],
    retry_failed: bool,
    parse_duplicates: bool,
    death: str | None,
) -> tuple[Ledger, RunSummary]:
    """Open the ledger of a directory that this process has locked, and put right what is not; see
    :meth:`pagemill.store.run_directory.RunDirectory.open`.

    Returns:
        The ledger and the counts of the run so far.
    """  # noqa: D205 - one sentence
    refuse(out, mode)
    holding = examine(out)
    if holding is Holding.EARLIER_VERSION or mode is OpenMode.FRESH:
        clear(out)
    elif holding is Holding.RUN and (
        opened := _resume(out, identity, mode, embedding_text, retry_failed, parse_duplicates, death)
    ):
        ledger, summary = opened
        return _sit_down(ledger, summary, settings), summary
    ledger, summary = _start(out, identity)
    return _sit_down(ledger, summary, settings), summary


def _resume(
    out: Path,
    identity: Mapping[str, Any],
    mode: OpenMode,
    embedding_text: Callable[[PageResult], str],
    retry_failed: bool,
    parse_duplicates: bool,
    death: str | None,
) -> tuple[Ledger, RunSummary] | None:
    """Open and recover a run that is there; None when it is as good as none, and then nothing is left of it."""
    for last_try in (False, True):
        try:
            ledger = Ledger(out / paths.LEDGER)
            try:
                summary = ledger.summary()
                if summary is None and (size_of(out / paths.RESULTS) or size_of(out / paths.RUN_JSON)):
                    raise DamagedRunError(f"{out / paths.LEDGER} is empty")
                differences = list(_differences(summary.identity, identity)) if summary else []
                if summary is None and mode is OpenMode.RESUME:
                    raise OutputError(f"{out} holds no run to resume", remedy=_START)
                if summary is None or (differences and mode is OpenMode.AUTO and ledger.is_fruitless()):
                    ledger.close()
                    clear(out)
                    return None
                if differences:
                    raise _different(out, differences)
                Recovery(out, ledger, summary, embedding_text).run(
                    death=death, retry_failed=retry_failed, parse_duplicates=parse_duplicates
                )
            except BaseException:
                ledger.close()
                raise
        except DamagedRunError:
            if last_try:
                raise
            if mode is OpenMode.AUTO and not size_of(out / paths.RESULTS):  # nothing that anybody would miss
                clear(out)
                return None
            rebuild_ledger(out)
        else:
            return ledger, summary
    raise AssertionError("the last try returns or raises")


def _start(out: Path, identity: Mapping[str, Any]) -> tuple[Ledger, RunSummary]:
    summary = RunSummary(started=datetime.now(UTC), identity=dict(identity))
    ledger = Ledger(out / paths.LEDGER)
    try:
        ledger.begin(summary)
    except BaseException:
        ledger.close()
        raise
    return ledger, summary


def _sit_down(ledger: Ledger, summary: RunSummary, settings: Mapping[str, Any]) -> Ledger:
    try:
        ledger.session(settings)
    except BaseException:
        ledger.close()
        raise
    summary.settings, summary.finished, summary.interrupted = dict(settings), None, False
    return ledger


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """What is set otherwise, setting by setting."""
    new = msgspec.to_builtins(new)  # as it comes back from JSON: tuples are lists
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            yield from _differences(before, now, f"{prefix}{name}.")
        elif before != now:
            yield f"{prefix}{name} was {_shown(name, before)} and is {_shown(name, now)}"


def _different(out: Path, differences: list[str]) -> DifferentRunError:
    return DifferentRunError(
        f"{out} holds a run with other settings: {'; '.join(differences)}",
        remedy="Go on with the settings of that run, choose another directory with -o, or start over with --fresh.",
    )


def _shown(name: str, value: Any) -> str:
    """A setting as people know it from the command line."""
    if value is None:
        return "auto" if name == "languages" else "the default"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = ", ".join(value)
    else:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = _DIGEST.sub(lambda digest: digest[0][:_DIGITS], text)
    return text if len(text) <= _MAX_SETTING else f"{text[:_MAX_SETTING]}..."
