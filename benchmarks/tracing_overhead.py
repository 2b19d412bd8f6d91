"""What tracing costs a run: CPU and wall time with and without ``--profile-to``, and the cost of one span.

Runs alternate, so that both sides see the same machine. Two runs of the same kind differ by a few percent on a machine
that does other things as well; so the cost is also computed, from the time of one span measured here and the number of
spans of a page.

    python benchmarks/tracing_overhead.py samples/report-scan.pdf --rounds 5
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pagemill import tracing
from pagemill.profiling.trace import Trace

SPANS = 20_000


def run(document: Path, profile: Path | None, folder: Path) -> tuple[float, float]:
    """CPU and wall seconds of one run with all its processes."""
    command = [sys.executable, "-m", "pagemill", "parse", str(document), "-o", str(folder), "--quiet", "--no-report"]
    if profile is not None:
        command += ["--profile-to", str(profile)]
    before, begun = os.times(), time.perf_counter()
    subprocess.run(command, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.perf_counter() - begun


def span_seconds() -> float:
    """What one span costs: the call that is timed, and the note of it."""

    def calls(listener: tracing.Listener | None) -> float:
        token = tracing.LISTENER.set(listener)
        begun = time.perf_counter()
        for _ in range(SPANS):
            with tracing.stage("layout"):
                tracing.timed(int, "pagemill.compute")()
        spent = time.perf_counter() - begun
        tracing.LISTENER.reset(token)
        return spent

    return max(0.0, min(calls(Trace()) for _ in range(5)) - min(calls(None) for _ in range(5))) / SPANS


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    plain, traced = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number in range(options.rounds):
            plain.append(run(options.document, None, folder / f"plain-{number}"))
            traced.append(run(options.document, folder / f"profile-{number}", folder / f"traced-{number}"))
        events = json.loads((folder / "profile-0" / "trace.json").read_text())["traceEvents"]
        pages = json.loads((folder / "profile-0" / "profile.json").read_text())["pages"]
    spans = sum(event.get("ph") == "X" for event in events)
    each = span_seconds()
    cpu = statistics.median(cpu for cpu, _ in plain)
    print(f"{options.rounds} runs of each kind, {pages} pages, {spans} spans")
    for name, index in (("CPU", 0), ("wall", 1)):
        before, after = (statistics.median(times[index] for times in runs) for runs in (plain, traced))
        print(f"{name}: {before:.2f} s without, {after:.2f} s with tracing: {100 * (after / before - 1):+.2f} %")
    print(f"computed: {spans} spans of {1e6 * each:.1f} us are {100 * spans * each / cpu:.3f} % of the CPU time")


if __name__ == "__main__":
    main()
