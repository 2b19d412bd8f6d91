"""What happens to servers, on standard error: a line that changes on a terminal, plain lines in a log."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from pagemill.serving.spec import What

if TYPE_CHECKING:
    from pagemill.serving.spec import Event

_LOG_EVERY_S = 15.0
_ERASE = "\r\x1b[2K"


class ServerDisplay:
    """Tells of servers; an instance is what :class:`pagemill.serving.servers.ModelServers` calls.

    Args:
        quiet: Say only what went wrong.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._starts: dict[str, float] = {}
        self._last_progress = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event.what:
            case What.STARTING:
                self._starts[event.url] = self._last_progress = time.monotonic()
                self._say(f"Starting {event.url}: {event.text}", minor=True)
            case What.PROGRESS:
                self._progress(event)
            case What.READY:
                self._say(f"Ready after {self._seconds(event):.0f} s: {event.url} ({event.text})", minor=True)
            case What.REUSED:
                self._say(f"Already there, and used: {event.url} ({event.text})", minor=True)
            case What.DIED:
                self._say(f"Server {event.url}: {event.text}")
            case What.GIVEN_UP:
                self._say(f"Server {event.url}: given up.")
            case What.CLEARED:
                self._say(f"Killed {event.text}: its pagemill had been killed.")

    def note(self, text: str) -> None:
        """Say something about the servers that is no trouble."""
        self._say(text, minor=True)

    def _progress(self, event: Event) -> None:
        if self._quiet:
            return
        passed = f"{self._seconds(event):4.0f} s  {event.text}"
        if self._terminal:
            self._write(_ERASE + passed[: shutil.get_terminal_size().columns - 1])
        elif time.monotonic() - self._last_progress >= _LOG_EVERY_S:
            self._last_progress = time.monotonic()
            self._write(passed + "\n")

    def _seconds(self, event: Event) -> float:
        """Since the server of an event was started."""
        return time.monotonic() - self._starts.get(event.url, self._last_progress)

    def _say(self, text: str, *, minor: bool = False) -> None:
        if not (minor and self._quiet):
            self._write((_ERASE if self._terminal else "") + text + "\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it: no reason to end a server
            sys.stderr.write(text)
            sys.stderr.flush()
