"""How fast each machine of a cluster works on a run, for those who look at the directory meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pagemill.store.files import output_errors, write_whole
from pagemill.store.paths import NODES


def write_node_rates(out: Path, rates: Mapping[str, float]) -> None:
    """Note the recent pages per second by machine; with none the file goes away.

    Raises:
        OutputError: It cannot be written.
    """
    if rates:
        write_whole(out / NODES, [msgspec.json.encode(rates)])
    else:
        with output_errors(out / NODES):
            (out / NODES).unlink(missing_ok=True)


def read_node_rates(out: Path) -> dict[str, float]:
    """What was noted last; nothing where no cluster works on the run."""
    try:
        return msgspec.json.decode((out / NODES).read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}
