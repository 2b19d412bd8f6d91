"""Two model servers that fail in every way while pagemill reads pages with them: what happened, and what was lost.

Draws ``--pages`` pages of seven regions to read and one picture, parses them undisturbed, then with two stub servers of
which each fails 5 % of its requests with HTTP 500, resets 2 % of its connections, hangs at 1 %, cuts 1 % of its answers
short and repeats itself in 1 %, while the first of them dies halfway; then with a single server that does all this,
dies again and again and returns. Every region must read as it did undisturbed, or its record must tell its flaw. Exits
with 1 when anything was lost.

    python benchmarks/fault_drill.py --pages 200
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))

from vlm_drill import FAULTS, READ, Outcome, draw_pages, parse, violations

WHAT = {
    "requests": "requests that servers took",
    "500": "answered with HTTP 500",
    "reset": "connection reset",
    "hang": "never answered",
    "truncated": "answer cut short",
    "loop": "answer repeats itself",
    "deaths": "deaths of a server",
    "given_up": "given up by the client (hangs, deaths)",
}


def report(outcomes: dict[str, Outcome]) -> str:
    """What happened in each run, as a table."""
    rows = [["", *outcomes]]
    rows += [[text, *(str(each.happened(name)) for each in outcomes.values())] for name, text in WHAT.items()]
    rows.append(["pages done", *(str(each.pages["done"]) for each in outcomes.values())])
    rows.append(["pages failed", *(str(each.pages["failed"]) for each in outcomes.values())])
    rows.append(["regions read", *(str(sum(map(bool, each.contents.values()))) for each in outcomes.values())])
    rows.append(
        ["of them with an error in the record", *(str(sum(each.errors.values())) for each in outcomes.values())]
    )
    rows.append(["seconds", *(f"{each.seconds:.1f}" for each in outcomes.values())])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def drill(scratch: Path, count: int, seed: int, latency_ms: float, timeout_s: float) -> bool:
    """Run it; whether nothing was lost."""
    pages = draw_pages(scratch / "pages", count)
    faults = [word for name, rate in FAULTS.items() for word in ("--fault", f"{name}={rate}")]
    usual = ["--latency-ms", str(latency_ms)]
    servers = {
        "undisturbed": [usual, usual],
        "two, one dies": [
            [*usual, *faults, "--seed", str(seed), "--dies-after", str(count * READ // 4)],
            [*usual, *faults, "--seed", str(seed + 1)],
        ],
        "one that returns": [
            [
                *(*usual, *faults, "--seed", str(seed + 2)),
                *("--dies-after", str(count * READ // 4), "--returns-after-s", "2"),
            ]
        ],
    }
    outcomes = {name: parse(scratch, name, pages, each, request_timeout_s=timeout_s) for name, each in servers.items()}
    print(report(outcomes))
    undisturbed, lost = outcomes["undisturbed"], []
    if undisturbed.pages != {"done": count} or undisturbed.errors or not all(undisturbed.contents.values()):
        lost.append("the undisturbed run is not as it should be")
    for name, outcome in outcomes.items():
        lost += [f"{name}: {line}" for line in violations(outcome, undisturbed)]
    print(f"\n{len(lost)} pages or regions lost, or other than undisturbed without an error in the record")
    print("\n".join(lost[:50]))
    return not lost


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--latency-ms", type=float, default=100)
    parser.add_argument("--request-timeout", type=float, default=3, metavar="SECONDS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sound = drill(Path(folder), options.pages, options.seed, options.latency_ms, options.request_timeout)
    sys.exit(not sound)


if __name__ == "__main__":
    main()
