"""Our Markdown beside that of GLM-OCR's own pipeline, from the same regions and the same answers of the model.

    python benchmarks/replay.py FOLDER

FOLDER holds a folder an example, with source.png, result.json and result.md as that pipeline writes them. Needs
pagemill[vlm]. docs/recognition.md says why each difference is there.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from pagemill.bench.replay import replay, summary


def main() -> int:
    """Print the differences of each example, and how many lines differ in all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder: Path = parser.parse_args().folder
    if not any(folder.glob("*/result.json")):
        parser.error(f"{folder} holds no folder with a result.json")
    lines = different = 0
    for name, row in summary(folder, asyncio.run(replay(folder))).items():
        lines += row["lines"]
        different += sum(line.startswith("-") for line in row["differences"])
        print(f"{name}: {row['regions']} regions, {row['lines']} lines")
        for line in [*row["errors"], *row["differences"]]:
            print(f"    {line}")
    print(f"{different} of {lines} lines differ ({different / max(1, lines):.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
