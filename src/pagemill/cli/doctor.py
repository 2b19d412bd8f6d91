"""``pagemill doctor``."""

from __future__ import annotations

import click

from pagemill.cli.options import server_option
from pagemill.errors import ExitCode

_AREAS = ("machine", "parse", "gpu", "vlm", "serve", "embed", "search", "publish")
_SIGNS = {"ok": ("ok", "green"), "warning": ("note", "yellow"), "missing": ("MISSING", "red")}


@click.command(name="doctor", short_help="Check that this machine has what a task needs.")
@click.argument("areas", metavar="[AREA]...", nargs=-1, type=click.Choice(_AREAS))
@server_option("Model server that should answer")
@click.option("--vllm", metavar="PATH", help="vLLM's program or environment.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def command(areas: tuple[str, ...], servers: tuple[str, ...], vllm: str | None, as_json: bool) -> None:
    """Check that this machine has what a task needs, and say how to mend what is missing.

    AREA is one of machine, parse, gpu, vlm, serve, embed, search, publish. Without any, all are looked at, and only
    what parsing needs must be there; areas that are named must be complete, else the exit status is 6.

    \b
    pagemill doctor
    pagemill doctor gpu vlm --server http://localhost:8000
    """  # noqa: D301 - click wants the control character
    from pagemill.app.doctor import PURPOSE, Area, Verdict, examine

    wanted = [Area(name) for name in areas] or list(Area)
    if servers and Area.VLM not in wanted:
        wanted.append(Area.VLM)
    required = {Area(name) for name in areas} or {Area.MACHINE, Area.PARSE}
    required |= {Area.VLM} if servers else set()
    findings = []
    shown: Area | None = None
    for finding in examine(wanted, servers=servers, vllm=vllm):
        findings.append(finding)
        if as_json:
            continue
        if finding.area is not shown:
            shown = finding.area
            click.echo(click.style(f"{shown}: {PURPOSE[shown]}", bold=True))
        sign, colour = _SIGNS[finding.verdict]
        click.echo(f"  {click.style(f'{sign:<8}', fg=colour)} {finding.what}: {finding.detail}")
        if finding.remedy:
            click.echo(f"           {finding.remedy}")
    lacking = [each for each in findings if each.verdict is Verdict.MISSING and each.area in required]
    if as_json:
        import json
        from dataclasses import asdict

        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    if lacking:
        click.get_current_context().exit(ExitCode.MISSING_DEPENDENCY)
