"""Line images read by Tesseract: by its library in this process, or by its program where the library is not there.

The library comes with the package ``tesserocr``, which has no wheels for some platforms. Lines are read as single lines
(page segmentation mode 7), and where Tesseract sees no line in them as *raw lines* (13): the detector has found them
already.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pagemill.computing.cpu_time import Limit, process_clock
from pagemill.document.direction import runs_leftwards
from pagemill.document.shown import count
from pagemill.errors import PageTimeoutError, WorkerCrashError
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.recognition.base import RecognizedText, RecognizerOffer
from pagemill.recognition.languages import TESSDATA_NAMES
from pagemill.recognition.tessdata import find_data

NAME = "tesseract"

_SINGLE_LINE, _RAW_LINE = 7, 13
_LINE_HEIGHT = 64  # lower loses commas and strokes of short table cells, higher only time
_MAX_WIDTH = 8000
_LEAST_CONTRAST = 24  # grey levels
_WORD_ROW = "5"  # level column of Tesseract's TSV


PROGRAM = "tesseract"
SECONDS_PER_LINE, START_SECONDS = 5.0, 10.0
"""Time limit of a process: for each line it reads, and to start."""
_MIN_CONFIDENCE = 0.3


@functools.cache
def library() -> Any:
    """The package ``tesserocr``; None where it is not installed or does not load."""
    try:
        import tesserocr
    except ImportError:
        return None
    # Leptonica complains on standard error about what Tesseract itself hands it.
    tesserocr.set_leptonica_log_level(tesserocr.LeptLogLevel.NONE)
    return tesserocr


@functools.cache
def installed_languages() -> frozenset[str]:
    """BCP-47 primary subtags for which language data is installed; empty with neither library nor program."""
    if library() is None and shutil.which(PROGRAM) is None:
        return frozenset()
    return frozenset(language for language, name in TESSDATA_NAMES.items() if find_data(name))


class TesseractRecognizer:
    """Reads line images with Tesseract.

    Args:
        language: BCP-47 primary subtag, one of :func:`installed_languages`.
    """

    max_batch = 32

    def __init__(self, language: str) -> None:
        data = find_data(TESSDATA_NAMES[language])
        assert data is not None
        self._tesseract: _Tesseract = _Program(data) if library() is None else _Library(data)

    def recognize(self, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images.

        Raises:
            PageTimeoutError: The process took too long and was ended.
            WorkerCrashError: Tesseract failed.
        """
        inked = [index for index, line in enumerate(lines) if _has_ink(line)]  # on blank paper it reads figures
        read: dict[int, RecognizedText] = {}
        for mode in (_SINGLE_LINE, _RAW_LINE):
            left = [index for index in inked if index not in read or not read[index].text]
            images = [_enlarged(cv2.cvtColor(lines[index], cv2.COLOR_RGB2GRAY)) for index in left]
            if left:
                results = self._tesseract.read(images, mode)
                read |= {
                    index: _assemble(plain, _words(tsv, image.shape[1])).if_sure(_MIN_CONFIDENCE)
                    for index, image, (plain, tsv) in zip(left, images, results, strict=True)
                }
        return [read.get(index, RecognizedText(text="", confidence=0.0)) for index in range(len(lines))]

    def close(self) -> None:
        """Free the library's models."""
        self._tesseract.close()


class _Tesseract(Protocol):
    @abstractmethod
    def read(self, images: Sequence[NDArray[np.uint8]], mode: int) -> list[tuple[str, list[str]]]:
        """Plain text and rows of TSV of each grey image."""

    @abstractmethod
    def close(self) -> None:
        """Free models."""


class _Library:
    """The library in this process. An instance of its API serves one thread, and is kept for the next call.

    It releases the interpreter lock. It has no time limit of its own: the runtime leaves a call behind that hangs.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._idle: list[Any] = []  # as many as there were calls at once; popping and appending are atomic

    def read(self, images: Sequence[NDArray[np.uint8]], mode: int) -> list[tuple[str, list[str]]]:
        try:
            api = self._idle.pop()
        except IndexError:
            api = library().PyTessBaseAPI(path=f"{self._data.parent}/", lang=self._data.stem)
            api.SetVariable("debug_file", os.devnull)  # it writes guesses of the resolution to standard error
        api.SetPageSegMode(mode)
        read = []
        for image in images:
            height, width = image.shape
            api.SetImageBytes(image.tobytes(), width, height, 1, width)
            if not api.Recognize():  # its state is unknown now: this instance is dropped
                raise WorkerCrashError(f"tesseract could not read a line of {width} x {height} pixels")
            read.append((api.GetUTF8Text(), api.GetTSVText(0).split("\n")))
        api.Clear()
        self._idle.append(api)
        return read

    def close(self) -> None:
        while self._idle:
            self._idle.pop().End()


class _Program:
    """The program, one short-lived process a batch, with a limit of CPU time."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def read(self, images: Sequence[NDArray[np.uint8]], mode: int) -> list[tuple[str, list[str]]]:
        with tempfile.TemporaryDirectory(prefix="pagemill-") as folder:  # mode 0700
            paths = [Path(folder, f"{index}.pgm") for index in range(len(images))]
            for path, image in zip(paths, images, strict=True):
                path.write_bytes(cv2.imencode(".pgm", image)[1].tobytes())
            listing = Path(folder, "lines.txt")
            listing.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
            limit = START_SECONDS + SECONDS_PER_LINE * len(images)
            arguments = [str(listing), str(Path(folder, "read")), "--tessdata-dir", str(self._data.parent)]
            arguments += ["-l", self._data.stem, "--psm", str(mode)]
            # Its options "txt tsv" name files that are beside the system's data only.
            arguments += ["-c", "tessedit_create_txt=1", "-c", "tessedit_create_tsv=1"]
            try:
                ended = _tesseract(arguments, limit)
            except subprocess.TimeoutExpired as error:
                raise PageTimeoutError(
                    f"tesseract took longer than {limit:.0f} s for {count(len(images), 'line')}"
                ) from error
            if ended.returncode:
                output = ended.stderr.decode("utf-8", "replace").strip()[-300:]
                raise WorkerCrashError(f"tesseract exited with status {ended.returncode}: {output}")
            texts = Path(folder, "read.txt").read_text(encoding="utf-8").split("\f")
            rows = Path(folder, "read.tsv").read_text(encoding="utf-8").split("\n")[1:]
        pages: list[list[str]] = [[] for _ in images]
        for row in filter(None, rows):
            pages[int(row.split("\t", 2)[1]) - 1].append(row)
        return list(zip(texts[: len(images)], pages, strict=True))

    def close(self) -> None:
        """Nothing is kept between calls."""


def _tesseract(arguments: Sequence[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run the program with a limit of CPU time."""
    environment = os.environ | {"OMP_THREAD_LIMIT": "1"}  # parallelism comes from pages
    command, pipe = [PROGRAM, *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment) as process:
        limit, left = Limit(seconds, process_clock(process.pid)), seconds
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    output = process.communicate(timeout=left)
                    return subprocess.CompletedProcess(command, process.returncode, *output)
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


def _words(rows: Sequence[str], width: int) -> list[_Word]:
    """The words of a line image of some width in pixels, from rows of TSV without their head."""
    words = []
    for row in filter(None, rows):
        level, *_, left, _, extent, _, confidence, word = row.split("\t")
        if level == _WORD_ROW and (text := _without_joiners("".join(word.split()))):
            start = float(left) / width
            words.append(_Word(text, start, start + float(extent) / width, max(0.0, float(confidence) / 100)))
    return words


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
    """What this engine reads: one recognizer for each language whose data is installed."""
    return [
        RecognizerOffer(
            name=f"{NAME}:{language}",
            languages=frozenset({language}),
            create=functools.partial(TesseractRecognizer, language),
        )
        for language in sorted(installed_languages())
    ]
