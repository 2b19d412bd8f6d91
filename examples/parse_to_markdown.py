"""Parse a document and save it as Markdown, with its pictures.

python examples/parse_to_markdown.py [FILE] [FOLDER]
"""

import sys
from pathlib import Path

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


def main(source: Path | str = SAMPLES / "report.pdf", folder: Path | str = "markdown-out") -> None:
    """Write ``FOLDER/<name>.md``, ``FOLDER/<name>.json`` (DocJSON) and ``FOLDER/crops/``."""
    document = pagemill.parse(source)
    print(f"{document.save(folder)}: {len(document.pages)} pages, {len(document.tables)} tables")
    for page_number, error in document.errors:  # a page that failed is part of the document and says why
        print(f"page {page_number}: {error.message}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
