"""Accuracy of the embedded engines on the samples and on public data with truth: the tables of docs/accuracy.md.

    python benchmarks/data_accuracy.py [--data DATA] [--out FILE]

DATA holds ``pubtabnet/``, ``korean/`` and ``olmocr-bench-sample/``; what is not there is named. Samples are
in this repository. CER: NFC, runs of white space folded, spaces count.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium

import pagemill
from pagemill.document.page import PageResult
from pagemill_eval.text import character_error_rate
from sample_truth import BAR, SAMPLES, body, true_body, truth_of

KOREAN_DPI = 200


@dataclass(frozen=True, slots=True)
class Score:
    """A row of the table."""

    data: str
    language: str
    metric: str
    value: float
    pages: int
    note: str = ""


def sample_scores() -> Iterator[Score]:
    """Character error rate of the samples, from the text layer and recognized."""
    for name, text_layer in BAR:
        truth = truth_of(name)
        document = pagemill.parse(SAMPLES / name, languages=tuple(truth["languages"]), text_layer=text_layer)
        rate = character_error_rate(body(document.pages), true_body(truth["pages"]))
        how = "text layer" if name in ("report.pdf", "notice-ko.pdf") and text_layer == "auto" else "recognized"
        yield Score(name, ", ".join(truth["languages"]), "CER", rate, len(document.pages), how)


def korean_scores(data: Path) -> Iterator[Score]:
    """Character error rate of a rasterised Korean PDF against its text layer."""
    path = data / "korean-text-with-tables.pdf"
    # By the layout model, as the scan: what is measured is recognition, not the order of reading.
    truth = pagemill.parse(path, text_layer="always", structure="pixels")
    with tempfile.TemporaryDirectory() as scratch:
        with pdfium.PdfDocument(path) as document:
            images = [page.render(scale=KOREAN_DPI / 72).to_pil().convert("RGB") for page in document]
        scan = Path(scratch) / "scan.tiff"
        images[0].save(scan, save_all=True, append_images=images[1:], dpi=(KOREAN_DPI, KOREAN_DPI))
        read = pagemill.parse(scan, languages=("ko",))
    rate = character_error_rate(_all_text(read.pages), _all_text(truth.pages))
    yield Score("korean-text-with-tables.pdf", "ko", "CER", rate, len(images), f"recognized at {KOREAN_DPI} dpi")


def _all_text(pages: list[PageResult]) -> str:
    """All text, also that of tables, as characters: two readings may place cells differently."""
    return "\n".join(re.sub(r"<[^>]*>", " ", region.content or "") for page in pages for region in page.regions)


def figures_of(benchmark: str, data: Path, *options: str) -> dict[str, Any]:
    """Figures of ``pagemill eval run``."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "pagemill", "eval", "run", benchmark, str(data), "-o", out, *options]
        ended = subprocess.run([*command, "--json", "--quiet", "--no-html"], capture_output=True, text=True)
    if ended.returncode not in (0, 3):
        raise RuntimeError(ended.stderr)
    figures: dict[str, Any] = json.loads(ended.stdout)["figures"]
    return figures


def table_scores(data: Path) -> Iterator[Score]:
    """PubTabNet."""
    figures = figures_of("pubtabnet", data, "--lang", "en")
    for name, label in (("teds", "TEDS"), ("teds_s", "TEDS-S")):
        yield Score("PubTabNet examples", "en", label, figures[name]["value"], figures[name]["samples"], "table images")


def olmocr_scores(data: Path) -> Iterator[Score]:
    """olmOCR-bench; tests of formulas count where they can be judged without a browser."""
    figures = figures_of("olmocr-bench", data, "--lang", "en", "--furniture", "likely")
    pages = len(list((data / "pdfs").rglob("*.pdf")))
    yield Score("olmOCR-bench sample", "en", "tests passed", figures["overall"]["value"], pages, "PDFs")


SETS: dict[str, Callable[[Path], Iterator[Score]]] = {
    "korean": korean_scores,
    "pubtabnet": table_scores,
    "olmocr-bench-sample": olmocr_scores,
}
"""By the folder of DATA."""


def all_scores(data: Path | None) -> Iterator[Score]:
    """All scores, one after the other."""
    yield from sample_scores()
    for name, scores in SETS.items() if data is not None else ():
        if data is not None and (data / name).is_dir():
            yield from scores(data / name)
        else:
            print(f"{name} is not there", file=sys.stderr)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, help="write the scores as JSON")
    arguments = parser.parse_args()
    scores = []
    print("| data | language | metric | score | pages | |\n|---|---|---|--:|--:|---|")
    for score in all_scores(arguments.data):
        scores.append(asdict(score))
        value = f"{score.value:.2%}" if score.metric in ("CER", "tests passed") else f"{score.value:.3f}"
        print(
            f"| {score.data} | {score.language} | {score.metric} | {value} | {score.pages} | {score.note} |", flush=True
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(scores, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
