"""The Markdown pages of the project and their code blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted(ROOT.glob("packages/*/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
RUN = "<!-- run -->"
"""Stands above a code block that is executed by a test."""

_BLOCK = re.compile(
    r"^(?P<run><!-- run -->\n)?(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    language: str
    code: str
    runs: bool


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page that name a language."""
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(match["language"], _dedented(match["code"], match["indent"]), bool(match["run"])) for match in found]


def _dedented(code: str, indent: str) -> str:
    return re.sub(f"^{indent}", "", code, flags=re.MULTILINE)


def name(page: Path) -> str:
    """A page by its path in the repository."""
    return page.relative_to(ROOT).as_posix()
