"""Post-processing of layout boxes: equality with glmocr and a scalar reference, and processor time of all three.

    python benchmarks/layout_postprocess.py --glmocr-python glm/bin/python

glmocr lives in an environment of its own (``pip install glmocr==0.1.5``); without it the reference alone is compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pagemill.bench.layout_postprocess import equality, timings


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glmocr-python", type=Path, help="interpreter of an environment with glmocr")
    parser.add_argument("--sets", type=int, default=600, help="random box sets to compare")
    parser.add_argument("--pages", type=int, default=64)
    parser.add_argument("--boxes", type=int, default=120, help="boxes a page")
    arguments = parser.parse_args()
    for name, result in equality(arguments.sets, arguments.glmocr_python).items():
        print(f"same boxes in the same order as {name}: {result.equal} of {result.sets} sets")
        for difference in result.differences:
            print(f"  {difference}")
    print(f"{arguments.pages} pages x {arguments.boxes} boxes, processor time:")
    for row in timings(arguments.pages, arguments.boxes, arguments.glmocr_python):
        print(f"  {row.name:32} {row.milliseconds:10.1f} ms  {row.ratio:8.1f} x")


if __name__ == "__main__":
    main()
