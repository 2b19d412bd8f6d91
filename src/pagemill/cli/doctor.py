"""``pagemill doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import groupby, zip_longest

import click

from pagemill.app.doctor import PURPOSE, Area, CheckResult, Readiness, examine
from pagemill.cli.options import choice, json_option, server_option
from pagemill.cli.wording import indented_json
from pagemill.errors import ExitCode

_SIGNS = {"ok": ("ok", "green"), "warning": ("note", "yellow"), "missing": ("MISSING", "red")}
_OPTIONAL_SIGNS = {**_SIGNS, "missing": ("-", "yellow")}


@click.command(name="doctor")
@click.argument("areas", metavar="[AREA]...", nargs=-1, type=choice(Area))
@server_option("Model server that should answer")
@click.option("--vllm", metavar="PATH", help="Program of vLLM, or the folder of its environment.")
@json_option
def command(areas: tuple[str, ...], servers: tuple[str, ...], vllm: str | None, as_json: bool) -> None:
    """Check that this machine has what a task needs, and how to get what is missing.

    AREA is one of machine, parse, gpu, vlm, serve, mcp, ray, serve-model, embed, search, publish. Areas that are named
    must be complete, else the exit status is 6. Without any, all are checked: what is ready, and what is optional; only
    what parsing needs is required.

    \b
    pagemill doctor
    pagemill doctor gpu vlm --server http://localhost:8000
    """  # noqa: D301 - click wants the control character
    named = [Area(name) for name in areas]
    required = set(named or (Area.MACHINE, Area.PARSE))
    # Everything is shown, but only what every run needs decides about the exit status.
    checked = named or list(Area)
    if servers:
        required.add(Area.VLM)
        checked = list(dict.fromkeys([*checked, Area.VLM]))
    findings = examine(checked, servers=servers, vllm=vllm)
    if as_json:
        listed = list(findings)
        click.echo(indented_json(listed))
        lacking = {each.area for each in listed if each.verdict is Readiness.MISSING}
    else:
        lacking = _print(findings, required, grouped=not named)
    if lacking & required:
        click.get_current_context().exit(ExitCode.MISSING_DEPENDENCY)


def _print(findings: Iterable[CheckResult], required: Set[Area], *, grouped: bool) -> set[Area]:
    """Print findings as they arrive, by area, or grouped with the ready ones first. Returns the incomplete areas."""
    incomplete: dict[Area, list[CheckResult]] = {}
    if grouped:
        click.secho("Ready", bold=True)
    for area, results in groupby(findings, key=lambda finding: finding.area):
        listed = list(results)
        # Areas that are ready appear while the others are still being checked, which takes seconds.
        if any(each.verdict is Readiness.MISSING for each in listed):
            incomplete[area] = listed
            if grouped:
                continue
        _print_area(area, listed, _SIGNS)
    if grouped:
        missing = {area: each for area, each in incomplete.items() if area in required}
        optional = {area: each for area, each in incomplete.items() if area not in required}
        for title, group, signs in (("Missing", missing, _SIGNS), ("Optional", optional, _OPTIONAL_SIGNS)):
            if group:
                click.secho(f"\n{title}", bold=True)
            for area, listed in group.items():
                _print_area(area, listed, signs)
    return set(incomplete)


def _print_area(area: Area, findings: Sequence[CheckResult], signs: Mapping[str, tuple[str, str]]) -> None:
    click.echo(f"{area}: {PURPOSE[area]}")
    for each, after in zip_longest(findings, findings[1:]):
        sign, colour = signs[each.verdict]
        click.echo(f"  {click.style(f'{sign:<8}', fg=colour)} {each.what}: {each.detail}")
        if each.remedy and (after is None or after.remedy != each.remedy):  # a remedy for several is printed once
            click.echo(f"           {each.remedy}")
