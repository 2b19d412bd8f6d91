"""Accuracy of the embedded engines on the samples and on public data with truth: the tables of docs/accuracy.md.

    python benchmarks/data_accuracy.py [--data DATA] [--scorer-python PYTHON_WITH_OLMOCR] [--out FILE]

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

import pypdfium2 as pdfium

import pagemill
from pagemill.document.page import PageResult
from pagemill.evaluation.text import character_error_rate
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
    truth = pagemill.parse(path, text_layer="always")
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


def table_scores(data: Path) -> Iterator[Score]:
    """PubTabNet, by ``pagemill eval run``."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "pagemill", "eval", "run", "pubtabnet", str(data), "-o", out, "--lang", "en"]
        ended = subprocess.run([*command, "--json", "--quiet", "--no-html"], capture_output=True, text=True)
        if ended.returncode not in (0, 3):
            raise RuntimeError(ended.stderr)
    result = json.loads(ended.stdout)
    for name, label in (("teds", "TEDS"), ("teds_s", "TEDS-S")):
        figure = result["figures"][name]
        yield Score("PubTabNet examples", "en", label, figure["value"], figure["samples"], "images of tables")


def olmocr_scores(data: Path, scorer_python: Path) -> Iterator[Score]:
    """olmOCR-bench, by its own scorer."""
    script = Path(__file__).with_name("olmocr_bench.py")
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, str(script), str(data), out, "--text-layer", "auto"]
        ended = subprocess.run([*command, "--scorer-python", str(scorer_python)], capture_output=True, text=True)
    found = re.search(r"[Oo]verall\D+([\d.]+)", ended.stdout)
    if ended.returncode or found is None:
        raise RuntimeError(ended.stdout + ended.stderr)
    value = float(found[1])
    pages = len(list((data / "pdfs").rglob("*.pdf")))
    yield Score("olmOCR-bench sample", "en", "tests passed", value / 100 if value > 1 else value, pages, "PDFs")


def all_scores(data: Path | None, scorer_python: Path | None) -> Iterator[Score]:
    """All scores, one after the other."""
    yield from sample_scores()
    if data is None:
        return
    sets: list[tuple[str, Callable[[Path], Iterator[Score]]]] = [("korean", korean_scores), ("pubtabnet", table_scores)]
    if scorer_python is not None:
        sets.append(("olmocr-bench-sample", lambda path: olmocr_scores(path, scorer_python)))
    for name, scores in sets:
        if (data / name).is_dir():
            yield from scores(data / name)
        else:
            print(f"{data / name} is not there", file=sys.stderr)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--scorer-python", type=Path, help="a Python with olmocr[bench]")
    parser.add_argument("--out", type=Path, help="write the scores as JSON")
    arguments = parser.parse_args()
    scores = []
    print("| data | language | metric | score | pages | |\n|---|---|---|--:|--:|---|")
    for score in all_scores(arguments.data, arguments.scorer_python):
        scores.append(asdict(score))
        value = f"{score.value:.2%}" if score.metric in ("CER", "tests passed") else f"{score.value:.3f}"
        print(
            f"| {score.data} | {score.language} | {score.metric} | {value} | {score.pages} | {score.note} |", flush=True
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(scores, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
