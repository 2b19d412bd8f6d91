"""Questions about a run before it starts: whether its inputs exist, and whether there is work left."""

from __future__ import annotations

import asyncio
import fnmatch
import glob
import os
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.reporting import RunOutcome
from pagemill.errors import OutputError, PagemillError, UsageError
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.identity import settings_identity
from pagemill.sources import SourceOptions
from pagemill.sources.download import is_missing
from pagemill.sources.items import is_url, located
from pagemill.sources.locate import missing_inputs, missing_on_hub
from pagemill.sources.stream import InputStream
from pagemill.store.catalogue import RunCatalogue
from pagemill.store.derived import is_complete
from pagemill.store.opening import inspected
from pagemill.store.paths import DATABASE
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageState, plain
from pagemill.store.run_database import RunDatabase

_NAMED = 20
"""Missing inputs that are named."""


def require_inputs(
    out: Path, inputs: Sequence[str | Path], directory: DirectoryOptions, download: Path | None = None
) -> None:
    """Refuse inputs that do not exist before anything is written.

    An input that the run in ``out`` has met is not a misspelling: it was there before, and is a failed page now.

    Inputs on the Hub are looked up before the first run, and not where ``download`` names the folder of their copies.

    Raises:
        UsageError: Inputs do not exist, or match nothing.
    """
    missing: dict[str, PagemillError] = dict(missing_inputs(inputs))
    if not directory.fresh and (out / DATABASE).exists():
        # Inputs of an earlier start may be gone since: its finished pages are kept, and not asked for again.
        missing = _unmet(out, missing) if missing else {}
    # A copy that is fetched first reports what is missing on the Hub itself.
    elif download is None:
        missing |= missing_on_hub(inputs)
    if missing:
        named = [located(error.message, text) for text, error in missing.items()]
        more = f"; and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
        # Remedies about addresses (a login, a revision) differ; those about paths are equal.
        remedies = {error.remedy: None for text, error in missing.items() if is_url(text) and error.remedy}
        remedy = " ".join([*remedies, "Check the names, and quote patterns. Nothing was parsed."])
        raise UsageError("; ".join(named[:_NAMED]) + more, remedy=remedy)


def _unmet(out: Path, missing: dict[str, PagemillError]) -> dict[str, PagemillError]:
    """The missing inputs that the run in ``out`` has never read."""
    try:
        with RunReader.open(out) as run:
            met = [name for (name,) in run.each("SELECT uri FROM sources")]
    except OutputError:
        return {}  # opening the run reports what is wrong with it, or rebuilds its database
    return {text: error for text, error in missing.items() if not fnmatch.filter(met, _address(text))}


def _address(text: str) -> str:
    """The address by which a run knows an input, as a pattern."""
    address = plain(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - keeps links, raises nothing
    return address if glob.has_magic(text) else glob.escape(address)


async def find_nothing_to_do(
    out: Path, inputs: Sequence[str | Path], options: ParseOptions, directory: DirectoryOptions
) -> RunOutcome | None:
    """The outcome of :func:`pagemill.app.parse.parse_into`, where no page is left to parse and no file to write.

    Changes nothing. For those who would start a model server only for pages that need it.

    Args:
        out: The run directory; it need not exist.
        inputs: Inputs, see :class:`pagemill.sources.stream.InputStream`.
        options: Inputs and options of parsing; model servers need not be running.
        directory: How to treat the content of ``out``.

    Returns:
        None if there is work left, or if that is not certain.

    Raises:
        OutputError: The run cannot be opened; see :func:`pagemill.store.opening.inspected`.
        UsageError: See :func:`require_inputs`.
    """
    identity = await asyncio.to_thread(settings_identity, options.settings, options.layout)
    for name in ("served_model", "describe_served_model"):  # only the servers know them
        identity.pop(name, None)
    await asyncio.to_thread(require_inputs, out, inputs, directory, options.source.download)
    with inspected(out, identity=identity, mode=directory.mode(out)) as run:
        if run is None or await asyncio.to_thread(is_missing, inputs, options.source):
            return None
        summary = run.summary
        if summary.finished is None or summary.interrupted or (directory.retry_failed and summary.failed):
            return None
        if not await asyncio.to_thread(is_complete, run, report=directory.report):
            return None
        if await _is_page_left(run, inputs, options.source):
            return None
        return RunOutcome(summary, strict=directory.strict)


async def _is_page_left(run: RunDatabase, inputs: Sequence[str | Path], options: SourceOptions) -> bool:
    """Whether the inputs have an unfinished page, or the run a source that was removed from them.

    Sources that did not open are tried each time, and need no server as long as they do not.
    """
    changed: list[int] = []
    unopened = 0
    async with DecodingService(workers=1) as decoding:
        source = InputStream(inputs, options=options, decoder=decoding, catalogue=RunCatalogue(run, changed.append))
        async with aclosing(source.pages()) as refs:
            async for ref in refs:
                known = await asyncio.to_thread(run.row, ref.key)
                if ref.error is None or known is None or known.state is not PageState.FAILED:
                    return True
                # Page 0 stands for a source that does not open.
                unopened += ref.key.page == 0
    return bool(changed) or (source.complete and unopened != run.unopened())
