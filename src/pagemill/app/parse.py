"""Parse documents into a run directory, until they are finished or a signal stops the run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.reporting import ParseDisplay, RunOutcome
from pagemill.app.run_writer import opened_run
from pagemill.runtime.supervisor import Life

if TYPE_CHECKING:
    from pagemill.runtime.pipeline import Pipeline


async def parse_into(
    out: Path,
    inputs: Sequence[str | Path],
    options: ParseOptions,
    directory: DirectoryOptions,
    *,
    pipeline: Pipeline,
    life: Life | None = None,
    progress: ParseDisplay | None = None,
) -> RunOutcome:
    """Parse all pages of the inputs that are not finished in ``out``.

    A first SIGINT or SIGTERM drains the run: the pages in flight are finished and written, no other is started, and
    the documents, the report and the summary are written. A second one stops the process at once.

    Args:
        out: The run directory.
        inputs: Inputs, see :class:`pagemill.sources.stream.InputStream`.
        options: Selection of pages, and maximum attempts; the pipeline has the other options.
        directory: How to treat the content of ``out``.
        pipeline: Not entered yet.
        life: State of the supervised process.
        progress: Shows the progress.

    Raises:
        OutputError: ``out`` holds another run, is in use, or cannot be written; NoSpaceError when the disk is full.
            What was written so far is valid and can be resumed.
        PagemillError: No page could be parsed with these settings (a language, the layout model), which is found
            before ``out`` is touched; or the inputs have no page.
    """
    life = life or Life()
    async with pipeline:
        await pipeline.prepare()
        # A process before this one has opened the run, and has decided about --fresh and --retry-failed.
        again = bool(life.vitals.opened)
        async with opened_run(out, directory, pipeline=pipeline, life=life, again=again, progress=progress) as run:
            with _stop_on_signals(run.stop):
                return await run.parse(inputs, options)


@contextmanager
def _stop_on_signals(on_stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGINT or SIGTERM calls ``on_stop``; a second one ends the process at once, as by default.

    Signals that are ignored (``nohup``, background jobs) stay so. Call it in the main thread.
    """
    stopped = False
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heeded = [number for number in before if before[number] is not signal.SIG_IGN]

    def set_handlers(handlers: Mapping[signal.Signals, Any]) -> None:
        for number in heeded:
            loop.remove_signal_handler(number)
            signal.signal(number, handlers[number])

    def on_signal(number: signal.Signals) -> None:
        nonlocal stopped
        if stopped:  # two came before the event loop had a look
            signal.raise_signal(number)
        stopped = True
        # From now on the next signal ends the process, even if the event loop hangs.
        set_handlers(dict.fromkeys(heeded, signal.SIG_DFL))
        on_stop()

    for number in heeded:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        set_handlers(before)
