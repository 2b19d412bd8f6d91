"""The options that say who reads the regions of a page, shared by the commands that parse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from pagemill.cli.server_option import server_option
from pagemill.config.modes import LINES, VLM, ReadingMode
from pagemill.config.settings import RecognitionSettings

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., Any]")

_DEFAULTS = RecognitionSettings()
_OPTIONS = (
    click.option(
        "--recognition-engine",
        default=LINES,
        show_default=True,
        metavar="NAME",
        help="Who reads: lines (on this machine's processor), vlm (a vision-language model behind --server), or an "
        "installed region engine.",
    ),
    click.option(
        "--model",
        metavar="NAME",
        help=f"Model card: one of `pagemill models list`, or a file CARD.toml.  [default: {_DEFAULTS.model}]",
    ),
    server_option("Base URL of an OpenAI-compatible server with the model, as in http://127.0.0.1:8000"),
    click.option(
        "--reading",
        type=click.Choice([mode.value for mode in ReadingMode]),
        help="What the model is given at a time: regions that a layout engine finds, or whole pages, of which it tells "
        "the regions itself.  [default: what the model is made for]",
    ),
    click.option(
        "--footnotes/--no-footnotes",
        default=None,
        help="Have the model read footnotes as well; they stand at the end of their page.  [default: on]",
    ),
    click.option("--served-model", metavar="NAME", help="The model's name on the servers; found out otherwise."),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Requests in flight at each server  [default: as many as it bears]",
    ),
    click.option(
        "--request-timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help=f"Time limit of one request.  [default: {_DEFAULTS.request_timeout_s:g}]",
    ),
    click.option(
        "--server-wait",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="How long to wait for a server that does not answer before the run ends (it can be resumed).  "
        f"[default: {_DEFAULTS.server_wait_s:g}]",
    ),
)


def recognition_options(command: Command) -> Command:
    """Give a command the options; what they hold goes to :func:`recognition_settings`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def recognition_settings(
    *,
    recognition_engine: str,
    model: str | None,
    servers: tuple[str, ...],
    reading: str | None,
    footnotes: bool | None,
    served_model: str | None,
    workers: int | None,
    request_timeout: float | None,
    server_wait: float | None,
) -> RecognitionSettings:
    """The settings that the options stand for.

    Raises:
        click.UsageError: They do not go together.
    """
    given = {
        "--model": model,
        "--server": servers,
        "--reading": reading,
        "--footnotes": footnotes is not None,
        "--served-model": served_model,
        "--workers": workers,
        "--request-timeout": request_timeout,
        "--server-wait": server_wait,
    }
    if recognition_engine == LINES and (without_use := [name for name, value in given.items() if value]):
        raise click.UsageError(
            f"{' and '.join(without_use)} {'goes' if len(without_use) == 1 else 'go'} with a model behind a server: "
            "say --recognition-engine vlm"
        )
    if recognition_engine == VLM and not servers:
        raise click.UsageError(
            "--recognition-engine vlm needs --server URL, the address of a server with the model; "
            "`pagemill serve-model` starts one"
        )
    return RecognitionSettings(
        engine=recognition_engine,
        model=model or _DEFAULTS.model,
        servers=servers,
        reading=ReadingMode(reading) if reading else None,
        footnotes=_DEFAULTS.footnotes if footnotes is None else footnotes,
        served_model=served_model,
        workers=workers or 0,
        request_timeout_s=request_timeout or _DEFAULTS.request_timeout_s,
        server_wait_s=server_wait or _DEFAULTS.server_wait_s,
    )
