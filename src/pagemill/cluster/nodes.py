"""Page rates of the machines of a cluster."""

from __future__ import annotations

import time
from collections import Counter, deque

WINDOW_S = 60.0


class NodeRates:
    """Pages per second by machine, of the last minute."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._pages: deque[tuple[float, str]] = deque()

    def add(self, node: str) -> None:
        """Count a page of a machine."""
        self._pages.append((time.monotonic(), node))

    def rates(self) -> dict[str, float]:
        """By name; machines that delivered nothing in this time are left out."""
        now = time.monotonic()
        while self._pages and self._pages[0][0] < now - WINDOW_S:
            self._pages.popleft()
        # In the first minute by the time since the start, else early rates would be far too low.
        seconds = max(min(now - self._started, WINDOW_S), 1.0)
        counts = Counter(node for _, node in self._pages)
        return {node: counts[node] / seconds for node in sorted(counts)}
