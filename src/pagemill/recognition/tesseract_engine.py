"""Line images read by the ``tesseract`` program, one short-lived process a batch.

A process of its own keeps a crash on hostile pixels away from the run and can be ended when it takes too long;
loading a language costs about 60 ms, which a batch of lines makes up for. Lines are read as single lines (page
segmentation mode 7), and where Tesseract sees no line in them as *raw lines* (13): the detector has found them already.
"""

from __future__ import annotations

import csv
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from pagemill.computing.cpu_time import Limit, process_clock
from pagemill.document.direction import runs_leftwards
from pagemill.errors import PageTimeoutError, WorkerCrashError
from pagemill.imaging.types import Pixels
from pagemill.recognition.base import RecognizedText, RecognizerOffer
from pagemill.recognition.languages import TESSDATA_NAMES

NAME = "tesseract"

_SINGLE_LINE, _RAW_LINE = "7", "13"
_LINE_HEIGHT = 64  # lower loses commas and strokes of short table cells, higher only time
_MAX_WIDTH = 8000
_LEAST_CONTRAST = 24  # grey levels
_WORD_ROW = "5"  # level column of Tesseract's TSV


PROGRAM = "tesseract"
SECONDS_PER_LINE, START_SECONDS = 5.0, 10.0
"""Time limit of a process: for each line it reads, and to start."""
_MIN_CONFIDENCE = 0.3


@functools.cache
def installed_languages() -> frozenset[str]:
    """BCP-47 primary subtags for which language data is installed; empty when there is no program."""
    if shutil.which(PROGRAM) is None:
        return frozenset()
    names = _tesseract(["--list-langs"], 20).stdout.decode().split()
    return frozenset(language for language, name in TESSDATA_NAMES.items() if name in names)


class TesseractRecognizer:
    """Reads line images with Tesseract.

    Args:
        language: BCP-47 primary subtag, one of :func:`installed_languages`.
    """

    max_batch = 32

    def __init__(self, language: str) -> None:
        self._tessdata = TESSDATA_NAMES[language]

    def recognize(self, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images.

        Raises:
            PageTimeoutError: The process took too long and was ended.
            WorkerCrashError: The process failed.
        """
        inked = [index for index, line in enumerate(lines) if _has_ink(line)]  # on blank paper it reads figures
        read: dict[int, RecognizedText] = {}
        for mode in (_SINGLE_LINE, _RAW_LINE):
            left = [index for index in inked if index not in read or not read[index].text]
            if left:
                read |= zip(left, self._read([lines[index] for index in left], mode), strict=True)
        return [read.get(index, RecognizedText(text="", confidence=0.0)) for index in range(len(lines))]

    def close(self) -> None:
        """Nothing is kept between calls."""

    def _read(self, lines: list[Pixels], mode: str) -> list[RecognizedText]:
        with tempfile.TemporaryDirectory(prefix="pagemill-") as folder:  # mode 0700
            paths = [Path(folder, f"{index}.pgm") for index in range(len(lines))]
            widths = []
            for path, line in zip(paths, lines, strict=True):
                image = _enlarged(cv2.cvtColor(line, cv2.COLOR_RGB2GRAY))
                path.write_bytes(cv2.imencode(".pgm", image)[1].tobytes())
                widths.append(image.shape[1])
            listing = Path(folder, "lines.txt")
            listing.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
            limit = START_SECONDS + SECONDS_PER_LINE * len(lines)
            output = str(Path(folder, "read"))
            try:
                ended = _tesseract([str(listing), output, "-l", self._tessdata, "--psm", mode, "txt", "tsv"], limit)
            except subprocess.TimeoutExpired as error:
                raise PageTimeoutError(f"tesseract took longer than {limit:.0f} s for {len(lines)} lines") from error
            if ended.returncode:
                said = ended.stderr.decode("utf-8", "replace").strip()[-300:]
                raise WorkerCrashError(f"tesseract ended with status {ended.returncode}: {said}")
            texts = Path(folder, "read.txt").read_text(encoding="utf-8").split("\f")
            rows = Path(folder, "read.tsv").read_text(encoding="utf-8").splitlines()
        words: list[list[_Word]] = [[] for _ in lines]
        for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["level"] == _WORD_ROW and (text := _without_joiners("".join(row["text"].split()))):
                page = int(row["page_num"]) - 1
                start, width = float(row["left"]) / widths[page], float(row["width"]) / widths[page]
                words[page].append(_Word(text, start, start + width, max(0.0, float(row["conf"]) / 100)))
        return [_assemble(texts[index], words[index]).if_sure(_MIN_CONFIDENCE) for index in range(len(lines))]


def _tesseract(arguments: Sequence[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run the program with a limit of CPU time."""
    environment = os.environ | {"OMP_THREAD_LIMIT": "1"}  # parallelism comes from pages
    command, pipe = [PROGRAM, *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment) as process:
        limit, left = Limit(seconds, process_clock(process.pid)), seconds
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    said = process.communicate(timeout=left)
                    return subprocess.CompletedProcess(command, process.returncode, *said)
                if not (left := limit.left()):
                    raise subprocess.TimeoutExpired(command, seconds)
        except BaseException:
            process.kill()
            raise


class _Word(NamedTuple):
    """What a row of the TSV calls a word: in Korean, Chinese and Japanese a single character."""

    text: str
    start: float
    end: float
    confidence: float


def _assemble(plain: str, words: list[_Word]) -> RecognizedText:
    """Join the plain text, which alone has the right spaces, with the TSV, which alone has positions."""
    text = " ".join(map(_without_joiners, plain.split()))
    if text.replace(" ", "") != "".join(word.text for word in words):
        text = " ".join(word.text for word in words)
    edges: list[tuple[float, float]] = []  # of each character, its word's width shared out evenly
    confidences: list[float] = []
    for word in words:
        extent = [word.start, word.end]
        if runs_leftwards(word.text[0]):
            extent.reverse()
        edges += itertools.pairwise(np.linspace(extent[0], extent[1], len(word.text) + 1).tolist())
        confidences += [word.confidence] * len(word.text)
    centers: list[float] = []
    of_characters: list[float] = []
    done = 0
    for character in text:
        if character == " ":
            centers.append((edges[done - 1][1] + edges[done][0]) / 2)
            of_characters.append(1.0)
        else:
            centers.append(sum(edges[done]) / 2)
            of_characters.append(confidences[done])
            done += 1
    confidence = float(np.mean(confidences)) if confidences else 0.0
    return RecognizedText(text=text, confidence=confidence, centers=tuple(centers), confidences=tuple(of_characters))


def _without_joiners(word: str) -> str:
    """A word without invisible characters at its end, which it writes after the last consonant of Tamil words."""
    return word.rstrip("\u200c\u200d")


def _has_ink(line: Pixels) -> bool:
    return int(line.max()) - int(line.min()) >= _LEAST_CONTRAST


def _enlarged(line: NDArray[Any]) -> NDArray[Any]:
    """A grey line in the height that Tesseract reads best."""
    height, width = line.shape
    scale = min(_LINE_HEIGHT / height, _MAX_WIDTH / width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    interpolation = cv2.INTER_CUBIC if scale > 1 else cv2.INTER_AREA
    return cv2.resize(line, size, interpolation=interpolation)


def offers() -> list[RecognizerOffer]:
    """What this engine reads: one recognizer for each language whose data is installed; none without Tesseract."""
    return [
        RecognizerOffer(
            name=f"{NAME}:{language}",
            languages=frozenset({language}),
            create=functools.partial(TesseractRecognizer, language),
        )
        for language in sorted(installed_languages())
    ]
