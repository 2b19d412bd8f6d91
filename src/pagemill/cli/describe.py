"""``pagemill describe``."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from pagemill.app.describe import describe_run
from pagemill.app.options import ImageSources
from pagemill.cli.options import quiet_option, run_directory, takes
from pagemill.cli.progress import ProgressBar, messages, print_failures
from pagemill.cli.wording import description_lines
from pagemill.config.describing import DescribeSettings


@click.command(name="describe")
@run_directory
@takes(
    settings=DescribeSettings,
    sources=ImageSources,
    leave_out=ImageSources.NOT_NEEDED,
    changes={
        "describe": {"help": "Kinds of elements, comma-separated.  [default: figures,charts,tables]"},
        "describe_servers": {"help": "Server with the model that describes; may be repeated.  [required]"},
        "describe_model": {"help": "Model card of the model that describes.  [default: generic]"},
    },
)
@quiet_option
def command(out: Path, settings: DescribeSettings, sources: ImageSources, quiet: bool) -> int:
    """Describe the figures, charts and tables of a run, as `pagemill parse --describe` does while it reads.

    Nothing is read again: pictures come out of the run, those of tables out of the parsed files. Elements that have a
    description keep it. The descriptions go into the records, the Markdown and the report.

    \b
    pagemill describe out --describe-server http://127.0.0.1:8000 --describe-model qwen3-vl-8b
    """  # noqa: D301 - click wants the control character
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # either ends it in order
    console = messages(quiet=quiet)
    with ProgressBar(console) as bar:
        outcome = asyncio.run(describe_run(out, settings, sources, bar.update))
    for line in description_lines(outcome.counts):
        console.note(line)
    if not outcome.pages:
        console.note("Nothing is left to be described.")
    print_failures(outcome.failures, outcome.counts.failed, console)
    return int(outcome.exit_code)
