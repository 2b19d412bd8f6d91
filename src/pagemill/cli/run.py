"""``pagemill run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pagemill.cli.directory_name import DirectoryName
from pagemill.cli.grouped_command import GroupedCommand
from pagemill.cli.plan import sizing_options
from pagemill.cli.server_option import server_option
from pagemill.errors import ExitCode

if TYPE_CHECKING:
    from pagemill.app.run import Step

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
_GROUPS = {
    "What to do": ("--output", "--step", "--resume", "--fresh", "--retry-failed", "--dry-run", "--quiet"),
    "Input": ("--recursive", "--limit", "--image-column", "--id-column"),
    "Reading": (
        *("--recognition-engine", "--lang", "--model", "--weights", "--server", "--workers", "--crops"),
        *("--layout-engine", "--layout-model", "--batch-size"),
    ),
    "Servers of our own": (
        *("--vllm", "--replicas", "--port", "--profile", "--memory", "--gpu-mem-util"),
        *("--max-model-len", "--ocr-dtype"),
    ),
    "Embedding": ("--embedding-model", "--embedding-weights", "--embedding-server", "--queries"),
    "Publishing": ("--hf-repo", "--hf-token", "--licence", "--private"),
}


@click.command(
    name="run", short_help="The whole pipeline: recognition, embeddings, upload.", cls=GroupedCommand, groups=_GROUPS
)
@click.argument("inputs", metavar="INPUT...", nargs=-1)
@click.option(
    "-o",
    "--output",
    "--output-dir",
    "out",
    type=DirectoryName(),
    default=Path("output"),
    show_default=True,
    help="Directory to write to.",
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    type=click.Choice(["all", "ocr", "embed", "upload"]),
    help="Do this step only; may be repeated.  [default: all; upload only with --hf-repo]",
)
@click.option("--resume", is_flag=True, help="Only go on with the run in the output directory; an error without one.")
@click.option("--fresh", is_flag=True, help="Start over: delete the run that the output directory holds.")
@click.option("--retry-failed", is_flag=True, help="Go on, and parse the failed pages again.")
@click.option("-r", "--recursive", is_flag=True, help="Go down into folders.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N pages.")
@click.option("--image-column", metavar="NAME", help="Image column of a dataset; found by its type otherwise.")
@click.option("--id-column", metavar="NAME", help="Page id column of a dataset; 'id' or 'page_id' otherwise.")
@click.option(
    "--recognition-engine",
    "recognition",
    type=click.Choice(["vlm", "lines"]),
    default="vlm",
    show_default=True,
    help="Who reads: a model on a server, or the embedded engines on this machine's processor.",
)
@click.option(
    "--lang", metavar="CODES", help="For the embedded engines: languages to read, as in ko,en  [default: auto]"
)
@sizing_options
@server_option("Use this server and start none")
@click.option(
    "--replicas", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Servers, one a GPU."
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="Of the first server, the others follow; else 8000 or any that is free.",
)
@click.option(
    "--vllm", metavar="PATH", help="vLLM: its program, or the folder of its environment.  [env: PAGEMILL_VLLM]"
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Requests in flight at each server  [default: as many as it bears]",
)
@click.option(
    "--layout-engine", metavar="NAME", help="[default: pp-doclayout-v3 where it and its model are installed, else onnx]"
)
@click.option("--layout-model", type=click.Path(path_type=Path), metavar="PATH", help="As for pagemill parse.")
@click.option(
    "--batch-size",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Pages a batch of pp-doclayout-v3  [default: by the profile]",
)
@click.option("--crops/--no-crops", default=True, help="Save image and chart regions  [default: on]")
@click.option(
    "--embedding-model",
    metavar="NAME",
    help="Embedding model: a card, or ngram for the embedded engine  [default: qwen3-vl-embedding-2b where vLLM is "
    "installed, else ngram]",
)
@click.option(
    "--embedding-weights", type=_FOLDER, metavar="PATH", help="Folder of its checkpoint, in place of the card's."
)
@server_option("Use this server for it and start none", name="--embedding-server", parameter="embedding_servers")
@click.option(
    "--queries",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Embed queries, too: .jsonl, .parquet, .csv with an id and a text each.",
)
@click.option("--hf-repo", metavar="USER/NAME", help="Dataset on the Hub to publish to; without it nothing is.")
@click.option(
    "--hf-token",
    envvar="HF_TOKEN",
    metavar="TOKEN",
    help="Token for the Hub; better set HF_TOKEN, or log in with hf auth login.",
)
@click.option("--licence", "--license", "licence", metavar="ID", help="Of the pages, for --hf-repo: cc-by-4.0.")
@click.option("--private", is_flag=True, help="Make the dataset private.")
@click.option("--dry-run", is_flag=True, help="Print the commands of all steps and do nothing; vLLM need not be there.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summaries; failures, and what the upload says.")
def command(dry_run: bool, quiet: bool, **options: Any) -> int:
    """Do all of it: check the machine, start a model server, parse, stop it, embed, publish.

    Each step is a command of its own (pagemill parse, embed, publish) that this one starts and prints. What was stopped
    goes on with the same command. A server lives as long as the step that needs it.

    \b
    pagemill run hf://datasets/OWNER/NAME -o output --vllm vllm-env
    pagemill run scans/ -r -o output --server http://gpu-box:8000 --step ocr
    pagemill run corpus.parquet -o output --hf-repo me/pages --licence cc-by-4.0
    """  # noqa: D301 - click wants the control character
    import asyncio

    from pagemill.app.run import Pipeline
    from pagemill.cli.run_options import RunOptions
    from pagemill.cli.run_plan import check, commands, plan
    from pagemill.cli.serve_model import tell_plan

    wanted = RunOptions(**options, quiet=quiet)
    steps = plan(wanted, dry=dry_run)
    if not quiet:
        for note in (note for each in steps for note in each.notes):
            click.echo(f"Note: {note}", err=True)
    if dry_run:
        tell_plan(*(each.serving for each in steps if each.serving), quiet=quiet)
        for line in commands(steps):
            click.echo(line)
        return ExitCode.OK
    check(wanted, steps)
    return asyncio.run(Pipeline([each.planned for each in steps], _Display(quiet=quiet)).run())


class _Display:
    """Says on standard error which step begins, and that one ends."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def step(self, step: Step, command: str) -> None:
        self._say(click.style(f"[{step}] {command}", bold=True))

    def passed_over(self, step: Step, why: str) -> None:
        self._say(click.style(f"[{step}] Nothing to do, and no server started: {why}.", bold=True))

    def ending(self, step: Step | None) -> None:
        what = f"the step {step} ends in order" if step else "the servers are ended"
        self._say(f"Stopping: {what}; once more to end all at once.")

    def _say(self, text: str) -> None:
        if not self._quiet:
            click.echo(text, err=True)
