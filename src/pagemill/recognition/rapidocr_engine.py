"""Text lines found and read with PP-OCRv6's models as the ``rapidocr`` package has them.

The build takes the two files; sessions and decoding are our own, because on a CPU the time goes into padding and
oversized pages, which RapidOCR's page-by-page loop spends freely. Nothing is downloaded.
"""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagemill.checkpoints.onnx_file import metadata, with_classes
from pagemill.checkpoints.onnx_session import cpu_session, load, require
from pagemill.config.model_cards import ModelKind
from pagemill.config.model_files import downloaded_files
from pagemill.document.geometry import as_array, shared_areas
from pagemill.errors import CorruptInputError
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.model_cache import cached, version_of
from pagemill.recognition.base import DetectedLine, RecognizedText, RecognizerOffer
from pagemill.recognition.decoding import decode_greedy, in_logical_order, lines_from_map
from pagemill.recognition.ink import MOST_GROUPS, letter_groups, letter_height, letters_of, share_inside
from pagemill.recognition.languages import languages_covered_by

NAME = "rapidocr"
LATIN = f"{NAME}:latin"
"""The recognizer that has no ideographs to choose from: as exact on Latin text, and a fifth faster."""
DOWNLOADED = "pp-ocrv5"
"""Engine of the recognizers that are downloaded, in records."""
DETECTION_MODEL = Path(__file__).parent / "models" / "PP-OCRv6_det_small.onnx"
RECOGNITION_MODEL = DETECTION_MODEL.with_name("PP-OCRv6_rec_small.onnx")
"""Put here by the build (Apache-2.0, see NOTICE)."""

_LINE_HEIGHT = 48
_SHARP, _COARSE = 44.0, 26.0
_SHARP_FILL = 0.8
"""How much of the input's height a line image fills: the cost of reading is in its columns, so a line that is scaled
less is read sooner. Lines of at least ``_SHARP`` pixels lose next to nothing at ``_SHARP_FILL``, those under
``_COARSE`` need all of it; in between it goes linearly (measured on 16 to 31 pixel Latin and Chinese type). Scraps
cost little."""
_SCRAP = 8.0
"""Lines less than this many times as wide as high fill the input: there is little context to read them by."""
_STEP = 8  # input columns per output step
# The narrowest input: the width of PaddleOCR's training samples, to which its own reader pads. On a narrower one the
# Latin model takes a Hangul syllable for a digit ("20명" for "205").
_MIN_COLUMNS = 320
_WIDTH_GRAIN = 32
_STRIDE = 32  # the detector halves its input five times
_TILE, _OVERLAP = 1024, 96
"""Pixels of a tile that are kept, and around them on every side; multiples of the stride. With the overlap an inference
is about as large as that of an ordinary page."""


LONG_SIDE, _MOST_ENLARGED = 1280, 2.0
"""Pages are scaled to this many pixels on their long side for detection, and never enlarged by more."""
_SMALL_LETTERS = 5.75
"""Height in pixels, after that scaling, under which letters are too small to be found: the page is scaled by what its
letters need instead. Newspapers at 150 to 450 dpi have 4, blurred ones, whose letters measure larger, up to 5.5; the
smallest type of 60 ordinary pages has 5.8, of as many drawn ones 6.5."""
_LETTER_HEIGHT = 8.0
"""Height that small letters are scaled to: 300 dpi newspaper lines are all found from 6 on. Never enlarged."""
_SPARSE = 0.67
"""Share of the page's longer side from which a closer look at a group of letters would show little more."""
_SEEN, _CLOSER = 0.6, 2.5
"""Share of the letters in lines below which a page is detected again, and how much larger it is then. Of 80 drawn pages
0.94 and more are in lines, also of photographs of severity 1, of a cover with pictures 0.8; 0.32 where most lines were
lost. Close lines of Hangul were all found where they are 24 pixels apart, which a page of 100 dpi has at its
largest."""
_MAX_DETECTION_PIXELS = 16_000_000
"""Most pixels of a page that is scaled so: its map of probabilities takes 4 bytes for each."""
_MIN_CONFIDENCE = 0.5
_MAX_LINE_COLUMNS = 4096
"""A longer line image is squeezed to this width."""


@functools.cache
def dictionary(model: Path | None = None) -> tuple[str, ...]:
    """A recognizer's characters, one a class; the first class, the blank, is empty.

    Args:
        model: Its file; None for the packaged one.

    Raises:
        CorruptInputError: The file is not a recognizer.
        MissingDependencyError: The packaged one is not there.
    """
    path = model or RECOGNITION_MODEL
    if model is None:
        require(path)
    try:
        return ("", *metadata(path)["character"].splitlines(), " ")
    except Exception as error:  # protobuf's own among them
        raise CorruptInputError(
            f"{path} is not a model that reads lines: {error!r}", remedy="Remove the file, and download it again."
        ) from error


class RapidOcrDetector:
    """Finds text lines with PP-OCRv6's detector."""

    name = NAME

    def __init__(self) -> None:
        self._session = cpu_session(DETECTION_MODEL)
        self._input = self._session.get_inputs()[0].name

    def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find all lines of text on a page, in no particular order.

        The network misses words in ordinary type on a page that is nearly empty: these are detected again, enlarged. It
        merges small lines that stand close to each other, or misses them: a page most of whose letters are in no line
        is detected as a whole again, enlarged.
        """
        letters, size = letters_of(page), (page.shape[1], page.shape[0])
        scale = self._scale(page, letters)
        found = self._find(page, scale)
        seen = share_inside(letters, [line.polygon for line in found], size)
        larger = min(_CLOSER * scale, _MOST_ENLARGED, _largest_scale(page))
        if seen < _SEEN and larger > scale:
            again = self._find(page, larger)
            if share_inside(letters, [line.polygon for line in again], size) > seen:
                found = again
        if len(found) >= MOST_GROUPS:  # an ordinary page
            return found
        groups = letter_groups(page)
        lines = as_array(line.box for line in found)
        unread = shared_areas(as_array(groups), lines) == 0
        for left, top, right, bottom in compress(groups, unread):
            if max(right - left, bottom - top) < _SPARSE * max(page.shape):
                part = page[top:bottom, left:right]
                found += self._find(part, self._scale(part, letters_of(part)), (left, top))
        return found

    def _find(self, page: Pixels, scale: float, origin: tuple[int, int] = (0, 0)) -> list[DetectedLine]:
        height, width = page.shape[:2]
        size = tuple(max(_STRIDE, round(side * scale / _STRIDE) * _STRIDE) for side in (width, height))
        # The area filter keeps thin strokes when the page is made smaller.
        resized = cv2.resize(page, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
        probability = self._probability(np.asarray(resized, np.uint8))
        return lines_from_map(probability, (width / size[0], height / size[1]), origin)

    def _scale(self, page: Pixels, letters: NDArray[np.float64]) -> float:
        """The scale at which to look for text."""
        scale: float = min(LONG_SIDE / max(page.shape[:2]), _MOST_ENLARGED)
        height = letter_height(letters) if scale < 1 else None
        if height is None or height * scale >= _SMALL_LETTERS:
            return scale
        return max(scale, min(_LETTER_HEIGHT / height, _largest_scale(page), 1.0))

    def _probability(self, page: Pixels) -> NDArray[np.float32]:
        """Probability of text for every pixel, computed tile by tile where the page is larger than one inference takes.

        Tiles overlap, and only their middles are kept, so that lines run on across their borders.
        """
        height, width = page.shape[:2]
        if max(height, width) <= LONG_SIDE:
            return self._infer(page)
        probability = np.empty((height, width), np.float32)
        for top in range(0, height, _TILE):
            for left in range(0, width, _TILE):
                bottom, right = min(top + _TILE, height), min(left + _TILE, width)
                y, x = max(0, top - _OVERLAP), max(0, left - _OVERLAP)
                tile = self._infer(page[y : bottom + _OVERLAP, x : right + _OVERLAP])
                probability[top:bottom, left:right] = tile[top - y : bottom - y, left - x : right - x]
        return probability

    def _infer(self, page: Pixels) -> NDArray[np.float32]:
        (maps,) = self._session.run(None, {self._input: _in_blue_green_red(page)})
        probability: NDArray[np.float32] = maps[0, 0]
        return probability


def _largest_scale(page: Pixels) -> float:
    """The scale at which a page has as many pixels as are detected at once."""
    return math.sqrt(_MAX_DETECTION_PIXELS / (page.shape[0] * page.shape[1]))


class RapidOcrRecognizer:
    """Reads line images with a recognizer of the PP-OCR family: PP-OCRv6's own, unless another is named.

    Args:
        latin: Read Latin letters, digits, punctuation and symbols alone, no ideographs and no kana.
        model: File of another recognizer.
    """

    max_batch = 64

    def __init__(self, *, latin: bool = False, model: Path | None = None) -> None:
        file = model or RECOGNITION_MODEL
        kept = _classes(latin=True) if latin else range(len(dictionary(model)))
        self._session = (
            cached(("latin", version_of(file)), lambda: load(with_classes(file, kept))) if latin else cpu_session(file)
        )
        self._input = self._session.get_inputs()[0].name
        self._alphabet = [dictionary(model)[index] for index in kept]
        self._sharp_fill = 1.0 if model else _SHARP_FILL

    def recognize(self, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images; what is read in one does not depend on the others, to the last bit."""
        return [self._read(line) for line in lines]

    def close(self) -> None:
        """Free the model."""
        del self._session

    def _read(self, line: Pixels) -> RecognizedText:
        """Read one line in an inference of its own.

        The network pools over the whole width, padding included, and the sums inside ONNX Runtime differ in their last
        bits with the number of rows: in a batch, a line would read differently beside other neighbours. A batch gains
        nothing on lines of 128 columns and more, and 15 % on shorter ones (measured), which its padding costs again.
        """
        height, width = line.shape[:2]
        coarseness = 1.0 if width < _SCRAP * height else min(1.0, max(0.0, (_SHARP - height) / (_SHARP - _COARSE)))
        rows = round(_LINE_HEIGHT * (self._sharp_fill + (1 - self._sharp_fill) * coarseness))
        columns = min(max(_STEP, round(width * rows / height)), _MAX_LINE_COLUMNS)
        resized = cv2.resize(line, (columns, rows), interpolation=cv2.INTER_LINEAR)
        above = (_LINE_HEIGHT - rows) // 2
        resized = cv2.copyMakeBorder(resized, above, _LINE_HEIGHT - rows - above, 0, 0, cv2.BORDER_REPLICATE)
        blob = np.zeros((1, 3, _LINE_HEIGHT, max(_MIN_COLUMNS, -(-columns // _WIDTH_GRAIN) * _WIDTH_GRAIN)), np.float32)
        blob[..., :columns] = _in_blue_green_red(resized)
        (probabilities,) = self._session.run(None, {self._input: blob})
        steps = columns * probabilities.shape[1] / blob.shape[3]
        return in_logical_order(decode_greedy(probabilities[0], self._alphabet, steps)).if_sure(_MIN_CONFIDENCE)


def _in_blue_green_red(image: NDArray[Any]) -> NDArray[np.float32]:
    """The input of both networks: shape (1, 3, height, width), in -1..1, channels from blue to red."""
    blob = cv2.dnn.blobFromImage(image, 1 / 127.5, mean=(127.5, 127.5, 127.5), swapRB=True)
    return np.asarray(blob, np.float32)


create_detector = RapidOcrDetector
"""The entry point of the line detector."""


def offers() -> list[RecognizerOffer]:
    """What this engine reads: one recognizer for all scripts in its dictionary, a quicker one for Latin alone.

    After them, one for each recognizer that was downloaded. They come before other engines, as they read better.
    """
    found = []
    for name, latin in ((NAME, False), (LATIN, True)):
        languages = languages_covered_by(frozenset(dictionary()[index] for index in _classes(latin=latin)))
        make = functools.partial(RapidOcrRecognizer, latin=latin)
        found.append(RecognizerOffer(name=name, languages=languages, create=make))
    for card, model in downloaded_files(ModelKind.LINES):
        name = f"{DOWNLOADED}:{card.name.removeprefix(DOWNLOADED + '-')}"
        languages = languages_covered_by(frozenset(dictionary(model)))
        make = functools.partial(RapidOcrRecognizer, model=model)
        found.append(RecognizerOffer(name=name, languages=languages, create=make))
    return found


def _classes(*, latin: bool) -> list[int]:
    """The classes of a recognizer, the blank first; for Latin none as wide as an ideograph and no half-width kana."""
    left_out = ("W", "F", "H") if latin else ()
    widths = [unicodedata.east_asian_width(character or " ") for character in dictionary()]
    return [index for index, width in enumerate(widths) if width not in left_out]
