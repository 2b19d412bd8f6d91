"""``pagemill serve-model``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pagemill.cli.plan import sizing_options, summary
from pagemill.errors import ExitCode

if TYPE_CHECKING:
    from pagemill.serving.replicas import Serving
    from pagemill.serving.servers import ModelServers
    from pagemill.serving.spec import Patience


@click.command(name="serve-model", short_help="Start, watch and stop vLLM servers of a model.")
@sizing_options
@click.option(
    "--replicas", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Servers, one a GPU."
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
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
    "--with",
    "options",
    multiple=True,
    metavar="OPTION",
    help="A choice of the card's, such as speculative; may be repeated.",
)
@click.option(
    "--start-timeout",
    type=click.FloatRange(min=1),
    default=1800,
    show_default=True,
    metavar="SECONDS",
    help="How long a server may take until it is ready.",
)
@click.option("--dry-run", is_flag=True, help="Print the commands and start nothing; vLLM need not be there.")
@click.option("-q", "--quiet", is_flag=True, help="Say only what goes wrong, and the addresses.")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- VLLM_ARGUMENT...]")
def command(
    model: str,
    weights: Path | None,
    profile: str,
    memory: float | None,
    gpu_mem_util: float | None,
    max_model_len: int | None,
    ocr_dtype: str | None,
    replicas: int,
    host: str,
    port: int | None,
    vllm: str | None,
    options: tuple[str, ...],
    start_timeout: float,
    dry_run: bool,
    quiet: bool,
    extra: tuple[str, ...],
) -> int:
    """Serve a model with vLLM until Ctrl-C, and start its servers again when they die.

    The flags come from 'pagemill plan'. When the servers are ready their addresses are printed to standard output, one
    a line. A healthy server of the same model that is already there is used, and left running at the end.

    \b
    pagemill serve-model --model glm-ocr --profile l4
    pagemill serve-model --vllm vllm-env --replicas 2 -- --enforce-eager
    """  # noqa: D301 - click wants the control character
    import asyncio

    from pagemill.config.hardware import Dtype
    from pagemill.serving.memory import Wishes
    from pagemill.serving.replicas import ServingOptions, prepare
    from pagemill.serving.spec import Patience

    if extra and not extra[0].startswith("-"):
        raise click.UsageError(f"{extra[0]!r} stands alone: the model is named by --model, vLLM's arguments follow --")
    serving = prepare(
        ServingOptions(
            model=model,
            weights=weights,
            profile=profile,
            wishes=Wishes(
                memory_gib=memory,
                memory_share=gpu_mem_util,
                max_model_len=max_model_len,
                dtype=Dtype(ocr_dtype) if ocr_dtype else None,
            ),
            replicas=replicas,
            host=host,
            port=port,
            vllm=vllm,
            options=options,
            extra=extra,
        ),
        dry=dry_run,
    )
    if dry_run:
        tell_plan(serving, quiet=quiet)
        for line in server_commands(serving):
            click.echo(line)
        return ExitCode.OK
    return asyncio.run(_serve(serving, Patience(start_s=start_timeout), quiet=quiet))


def tell_plan(*servings: Serving, quiet: bool) -> None:
    """Say on standard error, for a dry run, how models fit, and what this machine lacks to serve them."""
    for serving in servings:
        if not quiet:
            click.echo(summary(serving.card, serving.plan), err=True)
    lacking = {error.message: error.remedy for serving in servings for error in serving.lacking}
    for message, remedy in lacking.items():
        click.echo(f"Note: {message}; without --dry-run that is an error", err=True)
        if remedy:
            click.echo(f"  {remedy}", err=True)


def server_commands(serving: Serving) -> list[str]:
    """Lines for a shell that start the servers."""
    import os
    import shlex

    lines = []
    for spec in serving.specs:
        device = spec.environment.get("CUDA_VISIBLE_DEVICES")
        chosen = [f"CUDA_VISIBLE_DEVICES={device}"] if device != os.environ.get("CUDA_VISIBLE_DEVICES") else []
        lines.append(shlex.join([*chosen, *spec.command(spec.port or spec.preferred_port)]))
    return lines


async def _serve(serving: Serving, patience: Patience, *, quiet: bool) -> int:
    """Keep the servers until a signal asks for the end, a second one for a quick one, or all have given up."""
    import asyncio
    import signal

    from pagemill.cli.server_display import ServerDisplay
    from pagemill.serving.servers import ModelServers

    display = ServerDisplay(quiet=quiet)
    servers = ModelServers(serving.specs, patience=patience, tell=display)
    work = asyncio.create_task(_keep(servers))
    asked = 0

    def end() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            display.note("Stopping; once more to kill the servers at once.")
            work.cancel()
        else:
            servers.kill()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        await work
    except asyncio.CancelledError:
        return ExitCode.OK if servers.ready else ExitCode.INTERRUPTED
    return ExitCode.OK


async def _keep(servers: ModelServers) -> None:
    async with servers:
        for url in servers.urls:
            click.echo(url)
        await servers.wait()
