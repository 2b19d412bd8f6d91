"""``pagemill watch``."""

from __future__ import annotations

import dataclasses
import signal
import time
from pathlib import Path
from types import FrameType

import click

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.cli.options import FOLDER, GroupedCommand, Name, quiet_option, takes, under
from pagemill.config.headings import INPUT, OUTPUT
from pagemill.errors import ExitCode, InputError

State = tuple[int, int]
"""Size, and time of the last change, which show that a file is still being written."""


@click.command(name="watch", cls=GroupedCommand)
@click.argument("folder", metavar="FOLDER", type=FOLDER)
@takes(options=ParseOptions, directory=DirectoryOptions, leave_out=("limit", "fresh", "resume", "profile_to"))
@click.option(*("-o", "--output"), type=Name(Path), required=True, help="Directory to write to.", **under(OUTPUT))
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Polling interval. A file is parsed once two polls see the same size and modification time.",
    **under(INPUT),
)
@quiet_option
def command(
    folder: Path, output: Path, interval: float, quiet: bool, options: ParseOptions, directory: DirectoryOptions
) -> int:
    """Parse the documents in FOLDER into one run, then those that arrive.

    A file is parsed once it is complete: it did not change between two looks. Stop with Ctrl-C or SIGTERM: the pages in
    flight are finished. The same command resumes it, and parses the files that arrived meanwhile.

    \b
    pagemill watch inbox/ -o out
    pagemill watch inbox/ --recursive --lang ko,en -o out --interval 30
    """  # noqa: D301 - click wants the control character
    from pagemill.app.parse_process import ParsingStoppedError, parse_inputs

    signal.signal(signal.SIGTERM, _interrupt)
    before: dict[str, State] = {}
    done: dict[str, State] = {}
    is_parsing = False
    try:
        while True:
            seen = _documents(folder, options.source.recursive, output)
            # Unchanged since the poll before, so that nobody still writes it; and not parsed in this state.
            new = [name for name, state in seen.items() if before.get(name) == state != done.get(name)]
            if new:
                is_parsing = True
                try:
                    parse_inputs(new, output, options, directory, quiet=quiet)
                except ParsingStoppedError:
                    # Parsing refuses inputs that are gone; another reason would come again and again.
                    if all(Path(name).exists() for name in new):
                        raise
                    is_parsing = False
                    continue  # one of them went away; those that are left are parsed at once
                is_parsing = False
                done |= {name: seen[name] for name in new}
                directory = dataclasses.replace(directory, retry_failed=False)  # once is enough
            before = seen
            time.sleep(interval)
    except KeyboardInterrupt:
        if not quiet:
            click.echo(f"Stopped. Resume with: pagemill watch {folder} -o {output}", err=True)
        return ExitCode.INTERRUPTED if is_parsing else ExitCode.OK


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _documents(folder: Path, recursive: bool, output: Path) -> dict[str, State]:
    """The documents of a folder now, without those of the output."""
    from pagemill.sources.locate import expand

    found: dict[str, State] = {}
    for item in expand([folder], recursive=recursive):
        if isinstance(item.error, InputError) and not isinstance(item.content, Path):
            continue  # none yet, or one that went away
        path = Path(item.uri)
        try:
            stat = path.stat()
        except OSError:
            continue
        # An empty file is one that is about to be written; and the output may be in the folder.
        if stat.st_size and not path.resolve().is_relative_to(output.resolve()):
            found[str(path)] = (stat.st_size, stat.st_mtime_ns)
    return found
