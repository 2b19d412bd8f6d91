"""``pagemill serve``."""

from __future__ import annotations

import signal
from importlib.util import find_spec

import click

from pagemill.cli.options import GroupedCommand, takes
from pagemill.errors import lacks_extra
from pagemill.rest.settings import ServeSettings

_SILENCE_S = 60.0
"""Seconds without a heartbeat of the event loop after which the server counts as hung."""
_HEALTHY_S = 60.0
"""Seconds after which a worker counts as started: an earlier death is a failure to start."""


@click.command(name="serve", cls=GroupedCommand)
@takes(settings=ServeSettings, leave_out=("schedule",))
def command(settings: ServeSettings) -> int:
    """Serve parsing over HTTP: jobs, results page by page, search, a web app.

    \b
    pagemill serve
    pagemill serve --port 9000 --data /srv/pagemill
    PAGEMILL_SERVE_KEYS=... pagemill serve --host 0.0.0.0

    Jobs are on the disk before they are acknowledged: whatever ends the server, the next start resumes them.
    Stop it with Ctrl-C or SIGTERM.
    """  # noqa: D301 - click wants the control character
    from pagemill.cli import exit_status
    from pagemill.rest.listening import listen, shown_address
    from pagemill.runtime.supervisor import Life, supervise

    for package in ("fastapi", "uvicorn", "python_multipart"):
        if find_spec(package) is None:
            raise lacks_extra(f"the server needs the package {package}", "serve")
    # Bound before anything else: it belongs to the parent, so clients wait while a worker that died is replaced.
    listening = listen(settings.host, settings.port)
    click.echo(f"pagemill serves at {shown_address(listening)} (jobs in {settings.data})", err=True)

    def work(life: Life) -> int:
        # Until the server handles signals Ctrl-C ends it as SIGTERM does: imports turn KeyboardInterrupt into errors.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from pagemill.profiling.telemetry import exported
        from pagemill.rest.serving import log_to_standard_error, serve

        log_to_standard_error()
        with exported():
            return serve(settings, listening, life)

    return supervise(lambda life: exit_status(lambda: work(life)), silence_s=_SILENCE_S, healthy_s=_HEALTHY_S)
