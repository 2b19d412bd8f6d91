"""Page rates of the machines of a cluster, stored for observers of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pagemill.store.files import output_errors, write_whole
from pagemill.store.paths import NODES


def write_node_rates(out: Path, rates: Mapping[str, float]) -> None:
    """Store the recent pages per second by machine; delete the file if there are none.

    Raises:
        OutputError: It cannot be written.
    """
    if rates:
        write_whole(out / NODES, [msgspec.json.encode(rates)])
    else:
        with output_errors(out / NODES):
            (out / NODES).unlink(missing_ok=True)


def read_node_rates(out: Path) -> dict[str, float]:
    """The rates stored last; empty if the run is on no cluster."""
    try:
        # Damaged or half written is as good as missing: the next look is seconds away.
        return msgspec.json.decode((out / NODES).read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}
