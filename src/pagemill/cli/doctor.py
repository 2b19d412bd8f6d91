"""``pagemill doctor``."""

from __future__ import annotations

import click

from pagemill.app.doctor import PURPOSE, Area, Readiness, examine
from pagemill.cli.options import choice, json_option, server_option
from pagemill.cli.wording import indented_json
from pagemill.errors import ExitCode

_SIGNS = {"ok": ("ok", "green"), "warning": ("note", "yellow"), "missing": ("MISSING", "red")}


@click.command(name="doctor")
@click.argument("areas", metavar="[AREA]...", nargs=-1, type=choice(Area))
@server_option("Model server that should answer")
@click.option("--vllm", metavar="PATH", help="Program of vLLM, or the folder of its environment.")
@json_option
def command(areas: tuple[str, ...], servers: tuple[str, ...], vllm: str | None, as_json: bool) -> None:
    """Check that this machine has what a task needs, and say how to get what is missing.

    AREA is one of machine, parse, gpu, vlm, serve, embed, search, publish. Without any, all are checked, and only what
    parsing needs is required. Areas that are named must be complete, else the exit status is 6.

    \b
    pagemill doctor
    pagemill doctor gpu vlm --server http://localhost:8000
    """  # noqa: D301 - click wants the control character
    required = {Area(name) for name in areas} or {Area.MACHINE, Area.PARSE}
    checked = [Area(name) for name in areas] or list(Area)
    if servers:
        required.add(Area.VLM)
        checked = list(dict.fromkeys([*checked, Area.VLM]))
    found = []
    shown: Area | None = None
    for each in examine(checked, servers=servers, vllm=vllm):
        found.append(each)
        if as_json:
            continue
        if each.area is not shown:
            shown = each.area
            click.echo(click.style(f"{shown}: {PURPOSE[shown]}", bold=True))
        sign, colour = _SIGNS[each.verdict]
        click.echo(f"  {click.style(f'{sign:<8}', fg=colour)} {each.what}: {each.detail}")
        if each.remedy:
            click.echo(f"           {each.remedy}")
    if as_json:
        click.echo(indented_json(found))
    if any(each.verdict is Readiness.MISSING and each.area in required for each in found):
        click.get_current_context().exit(ExitCode.MISSING_DEPENDENCY)
