"""``pagemill profile``."""

from __future__ import annotations

from pathlib import Path

import click

from pagemill.app.options import ParseOptions
from pagemill.cli.options import GroupedCommand, Name, json_option, quiet_option, takes, under
from pagemill.config.headings import OUTPUT


@click.command(name="profile", cls=GroupedCommand)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=Name(str))
@takes(options=ParseOptions)
@click.option(
    *("-o", "--output"),
    type=Name(Path),
    default="profile",
    show_default=True,
    help="Directory for profile.html, profile.json and trace.json.",
    **under(OUTPUT),
)
@click.option(
    "--project",
    type=click.IntRange(min=1),
    metavar="PAGES",
    help="Estimate how long this many pages like these would take.",
    **under(OUTPUT),
)
@click.option(
    "--free/--no-free",
    default=True,
    show_default=True,
    help="Measure what would be gained if the bottleneck took no time: parses the first pages three times more.",
    **under(OUTPUT),
)
@quiet_option
@json_option
def command(
    inputs: tuple[str, ...],
    output: Path,
    project: int | None,
    free: bool,
    quiet: bool,
    as_json: bool,
    options: ParseOptions,
) -> int:
    """Parse documents, throw the result away, and show where the time went.

    \b
    pagemill profile scans/ --limit 50
    pagemill profile report.pdf --schedule staged -o staged
    pagemill profile corpus.parquet --limit 200 --project 40781

    `pagemill parse --profile-to DIR` profiles a run whose result is kept.
    """  # noqa: D301 - click wants the control character
    import asyncio

    import msgspec

    from pagemill.app.profile import Profiler, require_folder
    from pagemill.cli.parse_progress import ParseProgress
    from pagemill.cli.progress import messages
    from pagemill.runtime.supervisor import Life
    from pagemill_bench.profile_page import stage_lines, summary_lines
    from pagemill_bench.profiles import free_stage, parse_and_forget

    require_folder(output)
    console = messages(quiet=quiet or as_json)
    title = ", ".join(inputs)
    with Profiler(options.runtime) as profiler, ParseProgress(console, Life()) as progress:
        outcome = asyncio.run(parse_and_forget(inputs, options, progress))
    profile = profiler.profile()
    if free and profile.bottleneck is not None:
        freed = asyncio.run(free_stage(inputs, options, profile.bottleneck[1]))
        profile = msgspec.structs.replace(profile, freed=freed)
    if project is not None:
        profile = msgspec.structs.replace(profile, projection=profile.project(project))
    profiler.write(output, profile, title)
    if as_json:
        click.echo(msgspec.json.encode(profile))
    elif not quiet:
        for line in (*summary_lines(profile), "", *stage_lines(profile), "", f"Open {output / 'profile.html'}"):
            click.echo(line)
    return outcome.exit_code
