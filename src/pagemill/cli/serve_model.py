"""``pagemill serve-model``."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import click

from pagemill.app.run_plan import server_commands
from pagemill.cli.options import start_timeout_option, takes, vllm_arguments
from pagemill.cli.plan import summary
from pagemill.cli.progress import LenientConsole, ServerDisplay, messages
from pagemill.config.serving import ServingOptions
from pagemill.errors import ExitCode, PagemillError
from pagemill.serving.replicas import Serving, prepare
from pagemill.serving.spec import Patience

if TYPE_CHECKING:  # they talk to servers, for which a dry run needs no packages
    from pagemill.serving.servers import ModelServers


@click.command(name="serve-model")
@takes(options=ServingOptions, leave_out=("workers", "sequence_tokens", "prefill_tokens"))
@start_timeout_option
@click.option("--dry-run", is_flag=True, help="Print the commands and start nothing; vLLM need not be installed.")
@click.option("-q", "--quiet", is_flag=True, help="Print failures and the addresses only.")
@vllm_arguments
def command(options: ServingOptions, start_timeout: float, dry_run: bool, quiet: bool, extra: tuple[str, ...]) -> int:
    """Serve a model with vLLM until Ctrl-C, and restart its servers when they die.

    The flags are those of 'pagemill plan'. When the servers are ready, their addresses are printed to standard output,
    one per line. A healthy server of the same model that is already running is used, and left running at the end.

    \b
    pagemill serve-model --model glm-ocr --profile l4
    pagemill serve-model --vllm vllm-env --replicas 2 -- --enforce-eager
    """  # noqa: D301 - click wants the control character
    serving = prepare(dataclasses.replace(options, extra=extra), dry=dry_run)
    console = messages(quiet=quiet)
    if dry_run:
        print_plans([serving], console)
        for line in server_commands(serving):
            click.echo(line)
        return ExitCode.OK
    return asyncio.run(_serve(serving, Patience(start_s=start_timeout), console))


def print_plans(servings: list[Serving], console: LenientConsole, others: Sequence[PagemillError] = ()) -> None:
    """Print for a dry run how models fit, and what this machine lacks."""
    for serving in servings:
        console.note(summary(serving.card, serving.plan))
    found = [*others, *(error for serving in servings for error in serving.lacking)]
    lacking = {error.message: error.remedy for error in found}
    for message, remedy in lacking.items():
        console.print_line(f"Note: {message}; an error without --dry-run")
        if remedy:
            console.print_line(f"  {remedy}")


async def _serve(serving: Serving, patience: Patience, console: LenientConsole) -> int:
    """Run the servers until a signal is received (a second one kills them), or all have been given up."""
    from pagemill.serving.servers import ModelServers

    servers = ModelServers(serving.specs, patience=patience, report=ServerDisplay(console))
    ended = await until_stopped(_keep(servers), servers.kill, console)
    return ExitCode.OK if ended or servers.ready else ExitCode.INTERRUPTED


async def until_stopped(work: Coroutine[Any, Any, object], kill: Callable[[], object], console: LenientConsole) -> bool:
    """Run a coroutine around servers until it finishes or a signal cancels it; a second signal kills the servers.

    Returns:
        Whether it was finished.
    """
    task = asyncio.create_task(work)

    def end() -> None:
        # The second request: whoever repeats it does not want to wait for a shutdown in order.
        if task.cancelling():
            kill()
            return
        console.note("Stopping; press Ctrl-C again to kill the servers.")
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        await task
    except asyncio.CancelledError:
        return False
    return True


async def _keep(servers: ModelServers) -> None:
    async with servers:
        for url in servers.urls:
            click.echo(url)
        await servers.wait()
