"""``pagemill parse``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import click

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.cli.options import (
    GroupedCommand,
    Name,
    given,
    quiet_option,
    require_model_engine,
    takes,
    under,
    verbose_option,
)
from pagemill.config.headings import OUTPUT, RESUME
from pagemill.config.machine import RaySettings
from pagemill.config.modes import VLM, ReadingMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.errors import TooLargeError

STREAM = "-"
"""Name of standard input as an input, and of standard output as the output."""
SILENCE_MARGIN_S = 5.0
"""A process that is silent for a page's time limit and this much longer hangs as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Invocation:
    """What the command line asks for."""

    inputs: tuple[str, ...]
    output: Path
    options: ParseOptions
    directory: DirectoryOptions
    cluster: RaySettings
    quiet: bool
    verbose: int


@click.command(name="parse", cls=GroupedCommand)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=Name(str))
@takes(options=ParseOptions, directory=DirectoryOptions, cluster=RaySettings)
@click.option(
    *("-o", "--output"),
    type=Name(Path),
    required=True,
    help="Directory to write to; - prints the Markdown and keeps nothing.",
    **under(OUTPUT),
)
@quiet_option
@verbose_option
@click.option(
    "--check",
    is_flag=True,
    help="Check only whether there is work left: exit status 15 if there is. Needs no server.",
    **under(RESUME),
)
def command(check: bool, **asked: Any) -> int:
    """Parse documents into text, tables, Markdown and JSON records.

    INPUT is a PDF, an image, an Office, HWP, HTML, Markdown, CSV or text file, a folder, a glob, an Arrow or Parquet
    file of page images, hf://datasets/OWNER/NAME, an http(s) URL or any other that an installed fsspec filesystem
    opens, or - for standard input.

    \b
    pagemill parse report.pdf -o out
    pagemill parse scans/ --recursive --lang ko,en -o out
    pagemill parse corpus.parquet --limit 100 -o out
    curl -s https://example.org/report.pdf | pagemill parse - -o - > report.md
    pagemill parse scans/ -o out --recognition-engine vlm --model glm-ocr --server http://127.0.0.1:8000

    To resume a run that was stopped or killed, repeat the command.
    """  # noqa: D301 - click wants the control character
    invocation = _Invocation(**asked)
    _refuse(invocation.options, needs_server=not check)
    if STREAM in invocation.inputs or str(invocation.output) == STREAM:
        if check:
            raise click.UsageError("--check does not work with -: name the input files and the output directory")
        return _streamed(invocation)
    return _check(invocation) if check else _parse(invocation)


def _parse(invocation: _Invocation) -> int:
    """Parse in a supervised process; returns the exit status."""
    from pagemill.cli import exit_status
    from pagemill.runtime.supervisor import BUSY_DEATHS, RECYCLE, Life, supervise

    start = time.monotonic()
    inputs, output, quiet = invocation.inputs, invocation.output, invocation.quiet
    options, directory = invocation.options, invocation.directory
    recognition = options.settings.recognition
    needs_layout = recognition.reads_regions and recognition.reading_mode() is not ReadingMode.PAGES
    # Said before the run: that regions were missed can be seen only by comparing pages with their images.
    if needs_layout and options.layout.engine == "onnx" and not quiet:
        note = "Note: what the embedded layout model misses is not read; --layout-engine pp-doclayout-v3 finds more."
        click.echo(note, err=True)

    def work(life: Life) -> int:
        """Body of the supervised process; heavy modules are imported only in it."""
        import asyncio
        import gc
        import logging

        gc.disable()  # nothing that is imported is garbage: looking for it takes a tenth of the start
        # The numerical library's threads would do no more than those of the run, and would keep it from forking.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        import numpy.ma  # noqa: F401 - medians import it, in this process and in the one that is forked

        from pagemill.runtime.decoding import fork_ahead

        gc.freeze()  # a collection would copy what both processes share
        fork_ahead(options.runtime.decoder_memory)  # before there are threads; it imports beside this process
        from pagemill.app.parse import parse_into
        from pagemill.app.preflight import require_inputs
        from pagemill.cli.parse_progress import ParseProgress, print_skipped, print_summary
        from pagemill.cli.progress import messages, print_log
        from pagemill.profiling.telemetry import exported
        from pagemill.runtime.pipeline import Pipeline
        from pagemill.runtime.services import Services
        from pagemill.sources.download import fetch_missing
        from pagemill.store.opening import OpenMode
        from pagemill.store.run_directory import PREVIEW_PAGES

        gc.freeze()
        gc.enable()
        console = messages(quiet=quiet)
        print_log(console, invocation.verbose)
        # Once for all processes of a run: inputs may be moved after it has met them.
        if not life.vitals.opened:
            require_inputs(output, inputs, directory, options.source.download)
            fetch_missing(inputs, options.source, console.note, bars=console.is_terminal and not console.failures_only)
        if quiet:
            logging.getLogger("pagemill.sources").setLevel(logging.ERROR)
        # Previews are for the report alone, and cost time on each page.
        settings = replace(options.settings, preview_pages=PREVIEW_PAGES if directory.report else 0)
        services = Services(settings, options.runtime, options.layout)
        pipeline = Pipeline(services)
        if invocation.cluster.address is not None:
            from pagemill.cluster.pipeline import ClusterPipeline

            pipeline = ClusterPipeline(services, invocation.cluster, output)
        if directory.resume and life.number == 0 and directory.mode(output) is OpenMode.AUTO:
            console.note(
                f"Note: {output} contains no run to resume: starting one. --resume=required makes this an error."
            )
        with ParseProgress(console, life) as progress:
            profile = directory.profile_to
            if profile is not None and life.number:  # the worker before has written its own
                profile = profile / f"worker-{life.number + 1}"
            profiling: AbstractContextManager[None] = nullcontext()
            if profile is not None:
                from pagemill.app.profile import profiled  # what makes profiles takes a while to import

                profiling = profiled(profile, options.runtime, ", ".join(inputs))
            with exported(), profiling:
                outcome = asyncio.run(
                    parse_into(output, inputs, options, directory, pipeline=pipeline, life=life, progress=progress)
                )
        if outcome.recycle:
            return RECYCLE
        if not quiet:
            print_summary(outcome, life.vitals, output, time.monotonic() - start)
            print_skipped(outcome, console)
        return outcome.exit_code

    return supervise(
        lambda life: exit_status(lambda: work(life)),
        # A page may kill as many processes as it has attempts, before it is given up and the run continues.
        busy_deaths=max(BUSY_DEATHS, options.max_attempts + 1),
        silence_s=options.settings.page_timeout_s + SILENCE_MARGIN_S,
    )


def _streamed(invocation: _Invocation) -> int:
    """Parse standard input, or print the Markdown."""
    temporary, owner = tempfile.mkdtemp(prefix="pagemill-"), os.getpid()
    try:
        if STREAM in invocation.inputs:
            copied = Path(temporary) / "stdin"
            # A file, because a PDF is read from its end, and a page that fails is read again.
            with copied.open("wb") as file:
                _copy(sys.stdin.buffer, file)
            names = tuple(str(copied) if name == STREAM else name for name in invocation.inputs)
            invocation = replace(invocation, inputs=names)
        if str(invocation.output) != STREAM:
            return _parse(replace(invocation, quiet=False))
        out = Path(temporary) / "out"
        # Nothing but the Markdown is kept, and it names no crops then.
        settings = replace(invocation.options.settings, crops=False)
        options = replace(invocation.options, settings=settings)
        directory = replace(invocation.directory, report=False)
        status = _parse(replace(invocation, output=out, options=options, directory=directory, quiet=True))
        for path in sorted((out / "documents").glob("*.md")):
            sys.stdout.buffer.write(path.read_bytes())
        sys.stdout.buffer.flush()
        return status
    finally:
        if os.getpid() == owner:  # not the supervised process, which leaves this function, too
            shutil.rmtree(temporary, ignore_errors=True)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    """Copy standard input, within the limit of files.

    Raises:
        TooLargeError: It has more bytes.
    """
    from pagemill.imaging.limits import DecodeLimits

    left = most = DecodeLimits().max_stored_bytes
    while chunk := source.read(2**20):
        left -= len(chunk)
        if left < 0:
            raise TooLargeError(f"standard input has more than {most:,} bytes", remedy="Save it to a file.")
        target.write(chunk)


def _check(asked: _Invocation) -> int:
    """Say in one line whether there is work left; returns the exit code for that."""
    import asyncio

    from pagemill.app.preflight import find_nothing_to_do
    from pagemill.document.shown import count
    from pagemill.errors import ExitCode

    outcome = asyncio.run(find_nothing_to_do(asked.output, asked.inputs, asked.options, asked.directory))
    if outcome is None:
        click.echo("there is work left")
        return ExitCode.WORK_LEFT
    pages = outcome.summary.pages
    click.echo(f"all {count(pages, 'page')} are parsed")
    return outcome.exit_code


def _refuse(options: ParseOptions, *, needs_server: bool) -> None:
    """Refuse invalid combinations of options.

    Raises:
        click.UsageError: Something does not.
    """
    recognition = options.settings.recognition
    require_model_engine(recognition, given(RecognitionSettings))
    if recognition.asked and recognition.asked.engine == VLM and not recognition.servers and needs_server:
        flag = "--recognition-engine" if recognition.escalate is None else "--escalate"
        raise click.UsageError(
            f"{flag} vlm needs --server URL, the address of a server with the model; `pagemill serve-model` starts one"
        )
