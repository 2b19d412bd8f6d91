"""Tesseract's library in this process against its program: the same lines of Korean pages, seconds and texts.

python benchmarks/tesseract_ways.py [PDF...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pypdfium2

from pagemill.imaging.transforms import crop_quad
from pagemill.imaging.types import Pixels
from pagemill.recognition import tesseract_engine
from pagemill.recognition.base import RecognizedText
from pagemill.recognition.rapidocr_engine import RapidOcrDetector
from pagemill.recognition.tesseract_engine import TesseractRecognizer

SAMPLES = Path(__file__).parent.parent / "samples"
DPI = 200
ROUNDS = 3


def lines_of(paths: Sequence[Path]) -> list[Pixels]:
    """Images of the lines of all pages."""
    detector, lines = RapidOcrDetector(), []
    for path in paths:
        with pypdfium2.PdfDocument(path) as document:
            for page in document:
                pixels = np.ascontiguousarray(page.render(scale=DPI / 72, rev_byteorder=True).to_numpy()[..., :3])
                lines += [crop_quad(pixels, line.polygon) for line in detector.detect(pixels)]
    return lines


def read(recognizer: TesseractRecognizer, lines: list[Pixels]) -> tuple[float, list[RecognizedText]]:
    """The shortest of some rounds in seconds, and what was read."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        texts = [
            text
            for start in range(0, len(lines), recognizer.max_batch)
            for text in recognizer.recognize(lines[start : start + recognizer.max_batch])
        ]
        seconds.append(time.perf_counter() - began)
    return min(seconds), texts


def main() -> None:
    """Print the ratio of both, and how many lines read the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdfs", metavar="PDF", nargs="*", type=Path, default=sorted(SAMPLES.glob("notice-ko*.pdf")))
    lines = lines_of(parser.parse_args().pdfs)
    library_s, by_library = read(TesseractRecognizer("ko"), lines)
    with mock.patch.object(tesseract_engine, "library", lambda: None):
        program_s, by_program = read(TesseractRecognizer("ko"), lines)
    same = sum(mine.text == other.text for mine, other in zip(by_library, by_program, strict=True))
    print(f"{len(lines)} lines: library {library_s:.2f} s, program {program_s:.2f} s")
    print(f"program / library {program_s / library_s:.2f}; {same} of {len(lines)} lines read the same")


if __name__ == "__main__":
    main()
