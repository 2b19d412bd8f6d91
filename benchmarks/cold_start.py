"""What `pagemill parse` of a document takes from a cold start: processor time of all its processes, and wall time.

Give several source trees to compare them: their runs alternate. Bytecode is compiled before.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).parents[1] / "src"


def run(source: Path, document: Path) -> tuple[float, float]:
    """Seconds of processor time and of wall time of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "pagemill", "parse", str(document), "-o", f"{out}/run"]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, check=True)
        wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=Path)
    parser.add_argument("sources", type=Path, nargs="*", default=[SOURCE], help="folders with the package pagemill")
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    for source in arguments.sources:
        compileall.compile_dir(source, quiet=2)
        run(source, arguments.document)
    rounds = [[run(source, arguments.document) for source in arguments.sources] for _ in range(arguments.runs)]
    print("| source | CPU s, least | median | wall s, least | median |\n|---|--:|--:|--:|--:|")
    for source, runs in zip(arguments.sources, zip(*rounds, strict=True), strict=True):
        figures = [figure for times in zip(*runs, strict=True) for figure in (min(times), median(times))]
        print(f"| {source} | {' | '.join(f'{figure:.3f}' for figure in figures)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
