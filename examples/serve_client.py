"""Send documents to a server, print each page as it finishes, and search them.

pagemill serve &
python examples/serve_client.py [URL] [FILE...]
"""

import sys
from pathlib import Path

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


def main(url: str = "http://127.0.0.1:8080", *files: Path | str) -> None:
    """One job of all files, in a collection of its own."""
    with pagemill.Client(url) as client:
        job = client.submit(*(files or (SAMPLES / "report.pdf", SAMPLES / "notice-ko.pdf")), collection="example")
        for page in client.stream(job.id):
            print(f"{page.page_id}: {page.status}, {len(page.regions)} regions")
        for document in client.wait(job.id).documents:
            print(f"\n{document.name}\n{client.document(job.id, document.id)[:300]}")
        for hit in client.search("paper", collection="example"):
            print(f"{hit.name}, page {hit.page_number}: {hit.snippet.text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
