"""Parse a folder, embed and index it, and search it.

python examples/search_pages.py [QUERY] [INPUT] [RUN_DIRECTORY]
"""

import subprocess
import sys
from pathlib import Path

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


def main(
    query: str = "loss of fibre", source: Path | str = SAMPLES / "report.pdf", out: Path | str = "search-out"
) -> None:
    """Make or resume the run in ``RUN_DIRECTORY``, then print the pages that answer the query."""
    for command in (["parse", str(source), "--recursive", "-o", str(out)], ["embed", str(out)], ["index", str(out)]):
        # Commands resume: a second start does only what is new. Exit code 3: some pages failed, the rest is searchable.
        if (status := subprocess.run([sys.executable, "-m", "pagemill", *command, "--quiet"]).returncode) not in (0, 3):
            sys.exit(status)
    for hit in pagemill.search(out, query, top=5):
        print(f"{hit.page_id} ({hit.label or 'page'}): {' '.join(hit.snippet.split())[:100]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
