"""Wakes tasks that watch jobs."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Changes:
    """Wakes tasks that wait for a change of a job."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def watched(self, id: str) -> Iterator[asyncio.Event]:
        """Subscribe to changes of a job within the block: an event that each change sets."""
        event = asyncio.Event()
        self._waiting[id].add(event)
        try:
            yield event
        finally:
            self._waiting[id].discard(event)
            if not self._waiting[id]:
                del self._waiting[id]

    def notify(self, id: str) -> None:
        """A job has changed."""
        for event in self._waiting.get(id, ()):
            event.set()

    def notify_all(self) -> None:
        """Wake all tasks that wait for a job."""
        for id in list(self._waiting):
            self.notify(id)
