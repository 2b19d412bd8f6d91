"""Print a line per page of many documents, as soon as each page is finished.

python examples/stream_pages.py [INPUT...]
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


async def main(*inputs: Path | str) -> None:
    """Stream pages in whatever order they finish; memory does not grow with the number of documents."""
    labels: Counter[str] = Counter()
    async for page in pagemill.stream(inputs or [SAMPLES / "report.pdf", SAMPLES / "notice-ko.pdf"]):
        labels.update(region.label for region in page.regions)
        print(f"{page.page_id}: {page.status}, {len(page.regions)} regions")
    print(", ".join(f"{count} {label}" for label, count in labels.most_common(5)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
