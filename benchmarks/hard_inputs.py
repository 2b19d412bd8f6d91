"""What becomes of hard files: ``pagemill parse`` on each one, in a process of its own with a time limit.

Prints a line for each file: pages, how many were done and failed, exit status, seconds, and the first error. Exits
with 1 when a file hung or ended in a traceback or by a signal, which no input may cause.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one file ended."""

    file: str
    pages: int
    done: int
    failed: int
    exit_code: int | None
    seconds: float
    error: str
    sound: bool

    def row(self) -> str:
        """The outcome as a row of a Markdown table."""
        code = "hung" if self.exit_code is None else self.exit_code
        error = self.error.replace("|", "\\|")
        return f"| {self.file} | {self.pages} | {self.done} | {self.failed} | {code} | {self.seconds:.1f} | {error} |"


def parse(file: Path, limit_s: float, options: list[str]) -> Outcome:
    """Parse one file and look at what it left."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        command = [sys.executable, "-m", "pagemill", "parse", str(file), "-o", str(out), "--quiet", *options]
        start = time.perf_counter()
        code: int | None
        # A session of its own: what hangs is killed together with its worker processes.
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            _, messages = process.communicate(timeout=limit_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, messages = process.communicate()
            code = None
        seconds = time.perf_counter() - start
        records_file = out / "ocr_results.jsonl"
        lines = records_file.read_text(encoding="utf-8").splitlines() if records_file.is_file() else []
        records = [json.loads(line) for line in lines]
    errors = [error for record in records for error in record["errors"]]
    first = f"{errors[0]['category']}: {errors[0]['message']}" if errors else ""
    if not first and code != 0:
        first = next((line.strip() for line in messages.splitlines() if line.strip()), "")
    failed = sum(record["status"] == "failed" for record in records)
    sound = code is not None and code >= 0 and code != 1 and "Traceback" not in messages
    return Outcome(file.name, len(records), len(records) - failed, failed, code, seconds, first[:140], sound)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+", metavar="DATA", help="files or folders")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="time limit of a file")
    parser.add_argument("--options", default="", help="further options for pagemill parse, as one string")
    arguments = parser.parse_args()
    files = [
        file
        for place in arguments.data
        for file in (sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place])
    ]
    print("| file | pages | done | failed | exit | seconds | first error |\n|---|--:|--:|--:|--:|--:|---|")
    outcomes = []
    for file in files:
        outcomes.append(parse(file, arguments.limit, arguments.options.split()))
        print(outcomes[-1].row(), flush=True)
    unsound = [outcome.file for outcome in outcomes if not outcome.sound]
    print(f"\n{len(outcomes)} files, {sum(o.pages for o in outcomes)} pages, {sum(o.failed for o in outcomes)} failed;")
    print(f"crashed or hung: {', '.join(unsound) or 'none'}")
    return 1 if unsound else 0


if __name__ == "__main__":
    sys.exit(main())
