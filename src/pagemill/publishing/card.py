"""The dataset card: contents, provenance, and how to read it; all from the run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill._version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pagemill.store.summary import RunSummary

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_COLUMNS = (
    ("image", "the page, as it was stored where it was an image of this size; null where it could not be had"),
    ("page_id", "identity of the page in this dataset"),
    ("doc_id, page_number", "its document, and its place in it from 1"),
    ("status, errors", "`done` or `failed`; what went wrong on the page or in a region"),
    ("text", "plain text, tables row by row: what is embedded"),
    ("markdown", "the page as Markdown"),
    (
        "regions",
        "layout regions in reading order: `label`, `bbox_2d` (thousandths of the page), `bbox` (pixels), `content`, "
        "`content_format` (`text`, `markdown`, `html`, `latex`, `formula_text`), `score`",
    ),
    ("crops, crop_images", "pictures and charts: where they were on the page, and the images"),
    ("width, height, dpi", "of the page image that boxes refer to"),
    ("languages, text_source", "languages found; whether the text was read or came with the document"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """Facts for the card."""

    title: str
    licence: str
    repository: str | None
    parquet: bool
    crops: bool
    page_images: bool
    vectors: list[str]
    """Names of the arrays in ``embeddings/``."""
    languages: Mapping[str, int]
    """Pages by language."""
    summary: RunSummary
    pages: int


def dataset_card(facts: CardFacts) -> str:
    """The card as Markdown with the metadata block that the Hub reads."""
    return f"---\n{_metadata(facts)}---\n\n{_body(facts)}"


def _metadata(facts: CardFacts) -> str:
    """The metadata block. Values are JSON, which is YAML too and needs no rules for quoting."""
    values: dict[str, Any] = {"license": facts.licence, "pretty_name": _printable(facts.title)}
    languages = sorted(code for code in facts.languages if _LANGUAGE.fullmatch(code))
    if languages:
        values["language"] = languages
    values["size_categories"] = [next((name for limit, name in _SIZES if facts.pages < limit), "n>1M")]
    values["task_categories"] = ["image-to-text"]
    values["tags"] = ["document-parsing", "ocr", "layout-detection", "pagemill"]
    # Records as JSON lines have no fixed schema (what is empty is left out), and the library guesses one from the
    # first megabytes: it is given the texts, whose columns are four everywhere.
    files = "data/train-*.parquet" if facts.parquet else "parsed_texts.jsonl"
    values["configs"] = [{"config_name": "default", "data_files": [{"split": "train", "path": files}]}]
    return "".join(f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in values.items())


def _body(facts: CardFacts) -> str:
    parts = [
        f"# {_plain(facts.title)}",
        f"{facts.pages:,} pages parsed with pagemill {__version__}: layout"
        " regions in reading order, text, HTML tables, formulas and Markdown, one row per page.",
        "## How to read it\n\n" + _sample_code(facts),
        "## What is in it\n\n" + _counts(facts),
        "## How it was made\n\n" + _settings(facts.summary),
    ]
    if facts.parquet:
        hidden = {"image"} if not facts.page_images else set()
        hidden |= {"crops, crop_images"} if not facts.crops else set()
        shown = [(name, text) for name, text in _COLUMNS if name not in hidden]
        parts.append("## Columns\n\n" + _table(("column", "what"), [(f"`{name}`", text) for name, text in shown]))
    if facts.vectors:
        parts.append(
            "## Vectors\n\n"
            "`embeddings/` contains NumPy arrays with one row per vector; the `.ids.parquet` beside each"
            " maps each row to its page and region. Join by these ids, never by position.\n\n"
            + "\n".join(f"- {_plain(name)}" for name in facts.vectors)
        )
    parts.append(
        "## Whole and unchanged?\n\n`pagemill.json` lists every file with its size and SHA-256. Problems of a page"
        " are in its `errors`; text was recognised by machines and contains their mistakes."
    )
    return "\n\n".join(parts) + "\n"


def _sample_code(facts: CardFacts) -> str:
    place = facts.repository or "PATH/OF/THIS/FOLDER"
    if facts.parquet:
        lines = [
            "from datasets import load_dataset  # pip install datasets pillow",
            "",
            f'pages = load_dataset("{place}", split="train")',
            'print(pages[0]["markdown"])',
        ]
    else:
        lines = [
            "import json",
            "",
            'with open("ocr_results.jsonl", encoding="utf-8") as file:',
            "    for line in file:",
            "        page = json.loads(line)",
            '        print(page["page_id"], page["markdown"])',
            "",
            "from datasets import load_dataset",
            "",
            f'texts = load_dataset("{place}", split="train")  # of parsed_texts.jsonl',
        ]
    return "```python\n" + "\n".join(lines) + "\n```"


def _counts(facts: CardFacts) -> str:
    summary = facts.summary
    rows = [
        ("pages", f"{summary.pages:,}"),
        ("of them failed", f"{summary.failed:,}"),
        ("skipped (not in the dataset)", f"{summary.skipped:,}"),
        ("regions", f"{summary.regions:,}"),
        ("pictures and charts", f"{summary.crops:,}" if facts.crops else "left out"),
    ]
    rows += [(f"pages in {_plain(code)}", f"{number:,}") for code, number in sorted(facts.languages.items())]
    rows += [(f"regions: {_plain(label)}", f"{number:,}") for label, number in sorted(summary.regions_by_label.items())]
    rows += [(f"failed pages: {_plain(kind)}", f"{n:,}") for kind, n in sorted(summary.failures_by_kind.items())]
    rows += [(f"incomplete: {_plain(kind)}", f"{n:,}") for kind, n in sorted(summary.warnings_by_kind.items())]
    return _table(("what", "number"), rows)


def _settings(summary: RunSummary) -> str:
    rows = [
        (_plain(name), "default" if value is None else _plain(msgspec.json.encode(value).decode()))
        for name, value in summary.identity.items()
    ]
    return "The settings that decide about results:\n\n" + _table(("setting", "value"), rows)


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text escaped for Markdown and HTML, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", _printable(text))


def _printable(text: str) -> str:
    """Text on one line, valid in YAML and UTF-8: without control characters and lone surrogates."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
