"""The border to the engines: what is refused, what is mended, and how it is said."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.checkpoints.loading import no_memory
from pagemill.document.labels import Label
from pagemill.errors import EngineError, PageTimeoutError, is_out_of_memory
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import DetectedLine, RecognizedText
from pagemill.runtime.contract import (
    checked,
    checked_lines,
    checked_regions,
    checked_text,
    engine_error,
)

PAGE = np.full((400, 300, 3), 255, np.uint8)
NAN, INF = math.nan, math.inf


def region(box=(10.0, 10.0, 50.0, 40.0), label=Label.TEXT, **more) -> DetectedRegion:
    return DetectedRegion(box=box, label=label, **{"score": 0.5, "source": "test", **more})


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        (None, "Expected `array`, got `null`"),
        ([(1, 2, 3, 4)], "Expected `object`, got `array`"),
        ([region((NAN, 0.0, 1.0, 1.0))], "inverted"),
        ([region((0.0, 0.0, INF, 1.0))], "outside of the page"),
        ([region((0.0, 0.0, 1.0))], "Expected `array` of length 4, got 3"),
        ([region(None)], "Expected `array`, got `null`"),
        ([region(("a", 0, 1, 1))], "Expected `float`, got `str`"),
        ([region((50.0, 10.0, 10.0, 40.0))], "inverted"),
        ([region((10.0, 40.0, 50.0, 10.0))], "inverted"),
        ([region((10.0, 10.0, 307.0, 40.0))], "outside of the page of 300 x 400 pixels"),
        ([region((10.0, -9.0, 50.0, 40.0))], "outside of the page"),
        ([region((1000.0, 10.0, 1050.0, 40.0))], "outside of the page"),
        ([region(label="texts")], "Invalid enum value 'texts'"),
        ([region(label=3)], "Expected `str`, got `int`"),
        ([region(score=NAN)], "the score nan"),
        ([region(score=1.5)], "the score 1.5"),
        ([region(), region(polygon=((0, 0), (1, NAN), (1, 1)))], "not a finite number"),
        ([region(polygon=((0, 0), (1, 1)))], "fewer than three points"),
        ([region(polygon=3)], "Expected `array | null`, got `int`"),
        ({}, "Expected `array`, got `object`"),
        ("", "Expected `array`, got `str`"),
    ],
)
def test_regions_that_are_refused(regions, message):
    with pytest.raises(EngineError, match=re.escape(message)) as caught:
        checked("the layout engine 'x'", checked_regions, PAGE, regions)
    assert caught.value.message.startswith("the layout engine 'x' returned ")
    assert caught.value.retryable


def test_good_regions_stay_and_what_sticks_out_a_little_is_clipped():
    good = region(score=None, polygon=((0.0, 0.0), (5.0, 0.0), (5.0, 5.0)))
    wide = region((-1.5, -3.0, 305.0, 407.5))
    assert checked("x", checked_regions, PAGE, [good, wide]) == [good, region((0.0, 0.0, 300.0, 400.0))]
    assert checked("x", checked_regions, PAGE, ()) == []


def test_numbers_of_arrays_become_floats():
    (mended,) = checked("x", checked_regions, PAGE, [region(np.array([1, 2, 3, 4], np.float32), score=np.float32(1.0))])
    assert mended.box == (1.0, 2.0, 3.0, 4.0)
    assert {type(number) for number in mended.box} == {float}
    assert type(mended.score) is float


@given(st.tuples(*[st.floats(width=32) | st.integers(-(10**9), 10**9)] * 4))
def test_a_box_is_refused_or_lies_in_the_page(box):
    try:
        (kept,) = checked("x", checked_regions, PAGE, [region(box)])
    except EngineError:
        return
    x1, y1, x2, y2 = kept.box
    assert 0 <= x1 <= x2 <= 300
    assert 0 <= y1 <= y2 <= 400


SQUARE = ((0.0, 0.0), (9.0, 0.0), (9.0, 5.0), (0.0, 5.0))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "Expected `array`, got `null`"),
        ((line for line in [DetectedLine(polygon=SQUARE, score=1.0)]), "'generator' object has no attribute"),
        ([SQUARE], "Expected `object`, got `array`"),
        ([DetectedLine(polygon=SQUARE[:3], score=1.0)], "Expected `array` of length 4, got 3"),
        ([DetectedLine(polygon=((NAN, 0.0), *SQUARE[1:]), score=1.0)], "far outside of the page"),
        ([DetectedLine(polygon=((1e9, 0.0), *SQUARE[1:]), score=1.0)], "far outside of the page"),
    ],
)
def test_detected_lines_that_are_refused(lines, message):
    with pytest.raises(EngineError, match=f"the detector returned .*{re.escape(message)}"):
        checked("the detector", checked_lines, PAGE, lines)
    line = DetectedLine(polygon=SQUARE, score=1.0)
    assert checked("the detector", checked_lines, PAGE, [line]) == [line]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text", "Expected `object`, got `str`"),
        (None, "Expected `object`, got `null`"),
        (RecognizedText(text=None, confidence=0.5), "Expected `str`, got `null`"),
        (RecognizedText(text="a", confidence=NAN), "the confidence nan"),
        (RecognizedText(text="a", confidence=None), "Expected `float`, got `null`"),
        (RecognizedText(text="a", confidence=-0.5), "the confidence -0.5"),
        (RecognizedText(text="a", confidence=1.0, centers=(NAN,)), "not a finite number"),
        (RecognizedText(text="ab", confidence=1.0, centers=(0.5,)), "1 positions of 2 characters"),
    ],
)
def test_texts_that_are_refused(text, message):
    with pytest.raises(EngineError, match=f"the reader returned .*{re.escape(message)}"):
        checked("the reader", checked_text, PAGE, text)


def test_good_texts_stay():
    for text in (RecognizedText(text="", confidence=0.0), RecognizedText(text="a", confidence=1.0, centers=(0.5,))):
        assert checked("x", checked_text, PAGE, text) == text
    assert checked("x", checked_text, PAGE, RecognizedText(text="a", confidence=1.0000001)).confidence == 1.0


class OutOfMemoryError(RuntimeError):
    """By its name alone."""


class CudaOutOfMemoryError(OutOfMemoryError):
    pass


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (OutOfMemoryError("CUDA"), True),
        (CudaOutOfMemoryError(), True),
        (RuntimeError("bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 1073741824"), True),
        (RuntimeError("Non-zero status code returned while running Conv node: std::bad_alloc"), True),
        (RuntimeError("CUDA failure 2: out of memory ; GPU=0"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"), True),
        (RuntimeError("OpenCV(4.10.0) error: (-4:Insufficient memory) Failed to allocate 12 bytes"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("memory layout is odd"), False),
    ],
)
def test_what_means_out_of_memory(error, expected):
    assert is_out_of_memory(error) is expected


def test_what_an_engine_raises_gets_its_name():
    assert engine_error("the engine", ValueError("bad")).message == "the engine failed: ValueError: bad"
    assert engine_error("the engine", MemoryError()).message.startswith("the engine ran out of memory")
    for ours in (PageTimeoutError("late"), no_memory("the model", RuntimeError("CUDA out of memory"))):
        assert engine_error("the engine", ours) is ours
