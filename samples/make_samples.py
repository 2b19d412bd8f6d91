"""Make every file of this folder: documents, their scans, dataset shards, and the exact truth about each page.

Needs the dependency group ``samples`` and Debian's fonts-liberation and fonts-nanum. Seeds and dates are fixed: with
the same versions of the libraries, another run gives the same bytes.

    python samples/make_samples.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from makers import images, ledger, notice, report

if TYPE_CHECKING:
    from makers.typesetting import Element


def write_truth(
    path: Path, documents: list[str], languages: list[str], pages: list[list[Element]], **more: Any
) -> None:
    """Write what is true about the pages of one or more sample files that show the same pages."""
    truth = {
        "documents": documents,
        "languages": languages,
        "pages": [{"page_number": number, "elements": page} for number, page in enumerate(pages, start=1)],
        **more,
    }
    path.write_text(json.dumps(truth, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    """Write all samples into a folder."""
    truth = folder / "truth"
    truth.mkdir(parents=True, exist_ok=True)

    pages = report.make(folder / "report.pdf")
    images.write_scan(folder / "report.pdf", folder / "report-scan.pdf")
    joined = report.joined_paragraphs(pages)
    write_truth(truth / "report.json", ["report.pdf", "report-scan.pdf"], ["en"], pages, joined_paragraphs=joined)

    notice_pages = notice.make(folder / "notice-ko.pdf")
    images.write_scan(folder / "notice-ko.pdf", folder / "notice-ko-scan.pdf")
    write_truth(truth / "notice-ko.json", ["notice-ko.pdf", "notice-ko-scan.pdf"], ["ko"], notice_pages)

    with tempfile.TemporaryDirectory() as scratch:
        book = Path(scratch, "daybook.pdf")
        book_pages = ledger.make(book)
        images.write_tiff(book, folder / "pages.tiff")
        small = images.render(book, 150)
    write_truth(truth / "pages.json", ["pages.tiff"], ["en"], book_pages)

    notice_image = images.render(folder / "notice-ko.pdf", 150)[0]
    rows = [
        images.corpus_row("notice", 1, notice_image, "JPEG", notice_pages[0]),
        images.corpus_row("daybook", 1, small[0], "PNG", book_pages[0]),
        images.corpus_row("daybook", 2, small[1], "JPEG", book_pages[1]),
    ]
    images.write_corpus(rows, folder / "corpus.arrow", folder / "corpus.parquet")
    write_truth(
        truth / "corpus.json", ["corpus.arrow", "corpus.parquet"], ["ko", "en"], [notice_pages[0], *book_pages[:2]],
        ids=[row["id"] for row in rows],
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
