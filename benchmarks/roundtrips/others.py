"""Run another tool on a folder of PDFs, in that tool's own environment: ``python others.py TOOL IN OUT``.

Writes ``OUT/NAME.md`` for each ``IN/NAME.pdf``, empty where the tool failed.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def converter(tool: str) -> Callable[[Path], str]:
    """The function of a tool that turns a PDF into Markdown."""
    name = {"pymupdf4llm": "pymupdf4llm", "cocoapdf": "cocoapdf", "pdf_oxide": "pdf_oxide", "markitdown": "markitdown"}
    module: Any = importlib.import_module(name[tool])
    match tool:
        case "pymupdf4llm":
            return lambda path: str(module.to_markdown(str(path)))
        case "cocoapdf":
            return lambda path: str(module.convert_file(str(path)).markdown)
        case "pdf_oxide":
            return lambda path: str(module.PdfDocument(str(path)).to_markdown_all())
        case _:
            reader = module.MarkItDown()
            return lambda path: str(reader.convert(str(path)).text_content)


def main() -> None:
    """Convert all files."""
    tool, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    convert = converter(tool)
    for path in sorted(source.glob("*.pdf")):
        try:
            text = convert(path)
        except Exception as error:  # of whatever the tool raises; a failure counts as an empty document
            print(f"{path.name}: {error!r}"[:300], file=sys.stderr)
            text = ""
        (target / path.with_suffix(".md").name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
