"""Print the chunks of a document as JSON lines, ready for a retrieval system.

python examples/chunks.py [FILE] > chunks.jsonl
"""

import sys
from pathlib import Path

import msgspec

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


def main(source: Path | str = SAMPLES / "report.pdf") -> None:
    """Print one object per chunk: its text, the headings above it, its pages and boxes."""
    for chunk in pagemill.chunks(pagemill.parse(source, crops=False), max_tokens=256):
        print(msgspec.json.encode(chunk).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
