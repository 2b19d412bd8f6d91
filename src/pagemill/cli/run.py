"""``pagemill run``."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import Any

import click

from pagemill.app.doctor import CheckResult
from pagemill.app.run import Step, StepRunner
from pagemill.app.run_plan import EMBEDDING, RunOptions, check, commands, completed, plan
from pagemill.cli.options import (
    GroupedCommand,
    Name,
    given,
    queries_option,
    require_model_engine,
    takes,
    under,
    verbose_option,
)
from pagemill.cli.progress import LenientConsole, ServerDisplay, messages
from pagemill.cli.serve_model import print_plans
from pagemill.config.headings import OUTPUT
from pagemill.config.modes import LINES, TRANSFORMERS, VLM
from pagemill.config.options import secrets_of
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.serving import ServingOptions
from pagemill.errors import ExitCode, UsageError
from pagemill.sources.download import fetch_missing

_STEPS = under("What to do")
_OF_THE_MODEL = {"weights": "--recognition-weights", "dtype": "--recognition-dtype"}
"""Options of servers that mean the recognition model alone, and their counterparts for one in the process."""


@click.command(name="run", cls=GroupedCommand)
@click.argument("inputs", metavar="[INPUT...]", nargs=-1, type=Name(str))
@click.option(
    *("--step", "steps"),
    multiple=True,
    type=click.Choice(["all", "ocr", "embed", "upload"]),
    help="Run this step only; may be repeated.  [default: all; upload only with --hf-repo]",
    **_STEPS,
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the commands of all steps and run none; vLLM need not be installed.",
    **_STEPS,
)
@click.option("-q", "--quiet", is_flag=True, help="Print failures and the upload only.", **_STEPS)
@verbose_option
@takes(
    options=RunOptions,
    leave_out=("host", "with_options", "sequence_tokens", "prefill_tokens"),
    changes={
        "recognition_engine": {
            "type": click.Choice([VLM, LINES, TRANSFORMERS]),
            "default": VLM,
            "help": "Recognition engine: vlm (vision-language model on a server), transformers (such a model in the "
            "process of the step) or lines (CPU OCR).  [default: vlm]",
        },
        "layout_engine": {
            "help": "Installed layout engine.  [default: pp-doclayout-v3; with lines onnx if that is not installed]"
        },
        "servers": {"help": "Use this server and start none; may be repeated."},
    },
)
@click.option(
    *("-o", "--output", "--output-dir", "out"),
    type=Name(Path),
    default=Path("output"),
    help="Directory to write to.  [default: output]",
    **under(OUTPUT),
)
@queries_option(**under(EMBEDDING))
def command(dry_run: bool, options: RunOptions, **more: Any) -> int:
    """Run the whole pipeline: check the machine, start a model server, parse, stop the server, embed, publish.

    Each step is a command of its own (pagemill parse, embed, publish), which is printed and run. To resume, repeat the
    command. A server runs as long as the step that needs it. Without INPUT it takes the reference corpus,
    SDS-KoPub-VDR-Benchmark, and its queries.

    \b
    pagemill run hf://datasets/OWNER/NAME -o output --vllm vllm-env
    pagemill run scans/ -r -o output --server http://gpu-box:8000 --step ocr
    pagemill run corpus.parquet -o output --hf-repo me/pages --licence cc-by-4.0
    """  # noqa: D301 - click wants the control character
    serving_options = {key: each for key, each in given(ServingOptions).items() if key in _OF_THE_MODEL}
    require_model_engine(options.parse.settings.recognition, given(RecognitionSettings) | serving_options)
    if options.parse.settings.recognition.engine == TRANSFORMERS:
        for key, (each, _) in serving_options.items():
            raise click.UsageError(f"{each.flags[0]} requires a server: use {_OF_THE_MODEL[key]}")
    for name in more["inputs"]:
        # After `--` serve-model passes arguments to vLLM; here they are inputs, and would be reported as missing files.
        if name.startswith("-") and not has_magic(name) and not Path(name).exists():
            raise UsageError(
                f"{name} is neither a file nor an option of this command, which passes no arguments to vLLM",
                remedy=f"Start the server with it: pagemill serve-model -- {name}; then name that with --server.",
            )
    wanted = replace(options, **more)
    console = messages(quiet=wanted.quiet)
    if not dry_run:
        os.environ.update(secrets_of(wanted))  # the token also opens datasets of the Hub
    wanted, notes = completed(wanted, dry=dry_run)
    for note in notes:
        console.note(f"Note: {note}")
    steps = plan(wanted, dry=dry_run)
    # Steps may have the same note, such as that this machine has no GPU.
    for note in dict.fromkeys(note for step in steps for note in step.notes):
        console.note(f"Note: {note}")
    if dry_run:
        lacking = [error for step in steps for error in step.lacking]
        print_plans([step.serving for step in steps if step.serving], console, lacking)
        for line in commands(steps):
            click.echo(line)
        return ExitCode.OK
    check(wanted, steps, lambda finding: _print_finding(finding, console))
    if Step.OCR in wanted.chosen:  # before a server waits for it
        fetch_missing(
            wanted.inputs, wanted.parse.source, console.note, bars=console.is_terminal and not console.failures_only
        )
    runner = StepRunner(steps, lambda text: console.note((text, "bold")), ServerDisplay(console))
    return asyncio.run(runner.run())


def _print_finding(finding: CheckResult, console: LenientConsole) -> None:
    if finding.verdict == "ok" or (finding.verdict == "warning" and console.failures_only):
        return
    console.print_line(f"{finding.verdict}: {finding.what}: {finding.detail}")
    if finding.remedy:
        console.print_line(f"  {finding.remedy}")
