"""``pagemill verify``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from pagemill.app.exporters import default_exporters
from pagemill.cli.options import json_option, run_directory
from pagemill.cli.progress import LenientConsole
from pagemill.cli.wording import indented_json
from pagemill.document.shown import count
from pagemill.errors import ExitCode
from pagemill.store.repair import Repairs, repair
from pagemill.store.verify import FindingGroup, Verdict, verify


@click.command(name="verify")
@run_directory
@click.option(
    "--repair",
    "repairing",
    is_flag=True,
    help="Repair what is damaged; lost pages are parsed by the next 'pagemill parse'.",
)
@click.option("--quick", is_flag=True, help="Check only the size of crops, and that documents and report exist.")
@json_option
def command(out: Path, repairing: bool, quick: bool, as_json: bool) -> int:
    """Check that what 'pagemill parse' wrote in OUT is complete and consistent.

    Vectors and the index are checked by the commands that read them, such as 'pagemill index'. Needs neither the inputs
    nor a network. The exit status is 0 if nothing is damaged, even if the run is unfinished, and 13 if something is
    damaged and was not repaired.

    \b
    pagemill verify out
    pagemill verify out --repair
    """  # noqa: D301 - click wants the control character
    exporters = default_exporters()
    repairs: Repairs | None = None
    if repairing:
        verdict, repairs = repair(out, exporters=exporters, quick=quick)
    else:
        verdict = verify(out, exporters=exporters, quick=quick)
    # After a repair the exit status says whether the run is sound now, not whether it was.
    left = repairs.left if repairs else verdict
    if as_json:
        click.echo(indented_json({"damaged": left.damaged, "verdict": verdict, "repairs": repairs}))
    else:
        _print(out, verdict, repairs, quick=quick)
    return int(ExitCode.DAMAGED if left.damaged else ExitCode.OK)


def _print(directory: Path, verdict: Verdict, repairs: Repairs | None, *, quick: bool) -> None:
    console = LenientConsole(file=sys.stdout)
    for group in verdict.groups:
        console.print_line((group.kind.value, "red" if group.kind.is_damage else "yellow"), _examples(group))
    if repairs:
        for line in _repaired(repairs):
            console.print_line(("repaired", "green"), f": {line}")
        for group in repairs.left.groups:
            if group.kind.is_damage:
                console.print_line(("not repaired", "red"), f": {group.kind.value}", _examples(group))
    for line in _summary(directory, repairs.left if repairs else verdict, quick=quick):
        console.print_line(line)


def _examples(group: FindingGroup) -> str:
    more = group.count - len(group.examples)
    return ": " + "; ".join(map(str, group.examples)) + (f"; and {more} more" if more else "")


def _repaired(repairs: Repairs) -> Iterator[str]:
    if repairs.database_rebuilt:
        yield "database rebuilt from the records that can still be read"
    if repairs.pages_reset:
        yield f"{count(repairs.pages_reset, 'page')} lost: the next 'pagemill parse' parses them again"
    if repairs.files_deleted:
        yield f"{count(repairs.files_deleted, 'file')} deleted"
    if repairs.derived_written:
        yield "ocr_results.jsonl, parsed_texts.jsonl, documents, report and run.json brought up to date"


def _summary(directory: Path, verdict: Verdict, *, quick: bool) -> Iterator[str]:
    out = shlex.quote(str(directory))
    states = ", ".join(f"{pages} {state}" for state, pages in verdict.states.items() if pages)
    pages = count(sum(verdict.states.values()), "page") + (f" ({states})" if states else "")
    found = sum(group.count for group in verdict.groups if group.kind.is_damage)
    judgement = f"damaged in {count(found, 'place')}" if found else "clean"
    yield f"{judgement}: {pages}, {count(verdict.crops, 'crop')}, {count(verdict.documents, 'document')}"
    if verdict.in_use_by is not None:
        owner = verdict.in_use_by
        yield (
            f"In use by process {owner.pid} on {owner.host}: what it has committed was checked, "
            "not the documents, the report and pages in flight."
        )
    elif verdict.waiting:
        yield f"Unfinished: {count(verdict.waiting, 'page')} left; to resume: pagemill parse INPUT... -o {out}"
    if verdict.other_version is not None:
        yield (
            f"Written by pagemill {verdict.other_version}: texts, documents and report were not compared, "
            "as this version may make them otherwise."
        )
    if quick:
        yield "Quick: the contents of crops and documents were not compared."
    if found and verdict.in_use_by is None:
        yield f"Repair it with: pagemill verify {out} --repair"
