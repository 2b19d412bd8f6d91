"""Print the passages of a document as JSON lines, ready for a retrieval system.

python examples/chunks.py [FILE] > chunks.jsonl
"""

import json
import sys
from pathlib import Path

import pagemill
from pagemill.document.labels import Label

SAMPLES = Path(__file__).parents[1] / "samples"
HEADINGS = {Label.DOC_TITLE, Label.PARAGRAPH_TITLE}
PASSAGES = {Label.TEXT, Label.ABSTRACT, Label.TABLE}


def main(source: Path | str = SAMPLES / "report.pdf") -> None:
    """Print one object per paragraph or table: its text, the heading above it, its page and its box."""
    heading = ""
    for page in pagemill.parse(source, crops=False).pages:
        for region in page.regions:  # in reading order
            if region.label in HEADINGS:
                heading = region.content or ""
            elif region.label in PASSAGES and region.content:
                chunk = {
                    "page": page.page_number,
                    "box": region.bbox_2d,  # in thousandths of the page
                    "heading": heading,
                    "format": region.content_format,
                    "text": region.content,
                }
                print(json.dumps(chunk, ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
