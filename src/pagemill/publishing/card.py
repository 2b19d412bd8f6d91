"""The dataset card: contents, provenance, and how to read it, generated from the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill._version import __version__
from pagemill.document.shown import count
from pagemill.publishing.manifest import ROWS
from pagemill.publishing.options import BuildOptions

if TYPE_CHECKING:
    from pagemill.store.summary import RunSummary

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
UNDETERMINED = "und"
"""Language of a page whose text is in an unknown language."""
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_COLUMNS = (
    ("image", "the page, unchanged if it was stored as an image of this size; null if it could not be read"),
    ("page_id", "identity of the page in this dataset"),
    ("doc_id, page_number", "its document, and its number in it from 1"),
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


def dataset_card(
    options: BuildOptions,
    summary: RunSummary,
    languages: Mapping[str, int],
    pages: int,
    vectors: Mapping[str, int],
    *,
    page_images: bool,
) -> str:
    """The card as Markdown with the metadata block that the Hub reads.

    Args:
        options: Options of the dataset.
        summary: The run.
        languages: Pages by language.
        pages: Pages in the dataset.
        vectors: Names of the arrays in ``embeddings/``, each with the number of pages without a vector in it.
        page_images: Whether the dataset has a column of them.
    """
    parts = [
        f"---\n{_metadata(options, sorted(languages), pages)}---",
        f"# {_plain(options.title)}",
        f"{count(pages, 'page')} parsed with pagemill {__version__}: layout"
        " regions in reading order, text, HTML tables, formulas and Markdown, one row per page.",
        "## How to read it\n\n" + _sample_code(options),
        "## What is in it\n\n" + _counts(summary, languages, crops=options.crops),
        "## How it was made\n\n" + _settings(summary),
    ]
    if options.shape == "parquet":
        hidden = {"image": not page_images, "crops, crop_images": not options.crops}
        shown = [(f"`{name}`", text) for name, text in _COLUMNS if not hidden.get(name)]
        parts.append("## Columns\n\n" + _table(("column", "what"), shown))
    if vectors:
        parts.append(
            "## Vectors\n\n"
            "`embeddings/` contains NumPy arrays with one row per vector; the `.ids.parquet` beside each"
            " maps each row to its page and region. Join by these ids, never by position.\n\n"
            + "\n".join(
                f"- {_plain(name)}" + (f" (pages without a vector: {lacking:,})" if lacking else "")
                for name, lacking in vectors.items()
            )
        )
    parts.append(
        "## Whole and unchanged?\n\n`pagemill.json` lists every file with its size and SHA-256. Problems of a page"
        " are in its `errors`; text was recognised by machines and contains their mistakes."
    )
    return "\n\n".join(parts) + "\n"


def _metadata(options: BuildOptions, languages: list[str], pages: int) -> str:
    """The metadata block. Values are JSON, which is YAML too and needs no rules for quoting."""
    # JSON records have no fixed schema (empty fields are left out), and `datasets` infers one from the first megabytes.
    # So it is pointed to the texts, which always have the same four columns.
    files = ROWS if options.shape == "parquet" else "parsed_texts.jsonl"
    values: dict[str, Any] = {
        "license": options.licence,
        "pretty_name": _printable(options.title),
        "language": _codes(languages),
        "size_categories": [next((name for limit, name in _SIZES if pages < limit), "n>1M")],
        "task_categories": ["image-to-text"],
        "tags": ["document-parsing", "ocr", "layout-detection", "pagemill"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": files}]}],
    }
    return "".join(f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in values.items() if value != [])


def _codes(languages: list[str]) -> list[str]:
    """ISO 639 codes, with ``und`` (undetermined) if there are also pages of unknown language."""
    known = [code for code in languages if _LANGUAGE.fullmatch(code) and code != UNDETERMINED]
    return [*known, UNDETERMINED] if known and len(known) < len(languages) else known


def _sample_code(options: BuildOptions) -> str:
    load = f'load_dataset("{options.repository or "PATH/OF/THIS/FOLDER"}", split="train")'
    if options.shape == "parquet":
        code = f"""
from datasets import load_dataset  # pip install datasets pillow

pages = {load}
print(pages[0]["markdown"])
"""
    else:
        code = f"""
import json

with open("ocr_results.jsonl", encoding="utf-8") as file:
    for line in file:
        page = json.loads(line)
        print(page["page_id"], page["markdown"])

from datasets import load_dataset

texts = {load}  # of parsed_texts.jsonl
"""
    return f"```python{code}```"


def _counts(summary: RunSummary, languages: Mapping[str, int], *, crops: bool) -> str:
    rows = [
        ("pages", f"{summary.pages:,}"),
        ("of them failed", f"{summary.failed:,}"),
        ("skipped (not in the dataset)", f"{summary.skipped:,}"),
        ("regions", f"{summary.regions:,}"),
        ("pictures and charts", f"{summary.crops:,}" if crops else "left out"),
    ]
    for what, counts in (
        ("pages in ", languages),
        ("regions: ", summary.regions_by_label),
        ("failed pages: ", summary.failures_by_kind),
        ("incomplete: ", summary.warnings_by_kind),
    ):
        rows += [(what + _plain(name), f"{number:,}") for name, number in sorted(counts.items())]
    return _table(("what", "number"), rows)


def _settings(summary: RunSummary) -> str:
    rows = [
        (_plain(name), "default" if value is None else _plain(msgspec.json.encode(value).decode()))
        for name, value in summary.identity.items()
    ]
    return "The settings that change results:\n\n" + _table(("setting", "value"), rows)


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text escaped for Markdown and HTML, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", _printable(text))


def _printable(text: str) -> str:
    """Text on one line, valid in YAML and UTF-8: without control characters and lone surrogates."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
