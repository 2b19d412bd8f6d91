"""What is said of a page's text: confidence, signals, and that review and the warnings are one truth."""

import numpy as np
import pytest
from tests.unit.parsing.test_page import REF, Services

from pagemill.config.modes import TextLayerMode
from pagemill.config.settings import ParseSettings
from pagemill.document.labels import Label
from pagemill.document.page import PageError, PageResult, Region, Status, TextLine
from pagemill.imaging.page import DecodedPage, TextLayer
from pagemill.parsing.page import parse_page
from pagemill.parsing.quality import assess, mean_confidence
from pagemill.recognition.reader import ReadPage

BOX = (2.0, 2.0, 30.0, 10.0)
PROSE = "The mill stands by the river, and its wheel turns day and night."


def line(text: str, confidence: float | None) -> TextLine:
    return TextLine(text=text, box=BOX, confidence=confidence, engine="e")


def region(index: int, *lines: TextLine, label: Label = Label.TEXT, **told) -> Region:
    confidence = mean_confidence((each.confidence, each.text) for each in lines)
    content = "\n".join(each.text for each in lines) or None
    fields = {"content": content, "confidence": confidence, "lines": lines} | told
    return Region(index=index, label=label, bbox=BOX, bbox_2d=(0, 0, 9, 9), **fields)


def page(*regions: Region, **told) -> PageResult:
    record = PageResult(
        page_id="a_1", page_idx=0, doc_id="a", source="a.png", page_number=1, regions=list(regions), **told
    )
    assess(record)
    return record


def test_the_mean_is_weighted_by_length_over_what_is_known():
    assert mean_confidence([(1.0, "abc"), (0.5, "a"), (None, "abcdefgh")]) == 0.875
    assert mean_confidence([(None, "abc")]) is None
    assert mean_confidence([]) is None


def test_a_page_is_as_sure_as_its_lines_the_lettering_of_pictures_left_out():
    record = page(
        region(0, line("a" * 30, 1.0), line("b" * 10, 0.4)), region(1, line("c" * 90, 0.1), label=Label.IMAGE)
    )
    assert record.confidence == 0.85
    assert record.signals == {"low_confidence": 0.25}


def test_nobody_knows_how_sure_a_model_is():
    record = page(region(0, content="read by a model", engine="vlm:glm-ocr"))
    assert (record.confidence, record.review, record.signals) == (None, False, {})


def test_regions_that_were_not_read_are_a_signal():
    record = page(region(0, line("abc", 1.0)), region(1), region(2, label=Label.IMAGE), region(3, label=Label.HEADER))
    assert record.signals == {"unread": 0.5}


@pytest.mark.parametrize(
    ("component", "status", "review"),
    [
        ("recognition", Status.DONE, True),
        ("text_layer", Status.DONE, True),
        ("table", Status.DONE, True),
        ("crops", Status.DONE, False),
        ("recognition", Status.FAILED, False),  # there is nothing to compare
    ],
)
def test_a_page_is_to_be_reviewed_where_a_warning_is_about_what_was_read(component, status, review):
    error = PageError(component=component, category="low_confidence", message="doubtful")
    assert page(region(0, line("abc", 1.0)), errors=[error], status=status).review is review


async def test_what_line_recognition_could_not_read_is_in_the_record():
    read = ReadPage(lines=[line("alpha", 0.99), line("beta", 0.99)], illegible=2, script="THAI", foreign=1)
    record = (await parse_page(REF, Services(read=read), ParseSettings())).record
    assert record.signals == {"unread": 0.5, "unread_script": 0.5}
    assert record.review and record.confidence == 0.99


class LayerServices(Services):
    """A page of 800 x 600 pixels with a text layer; only the first ``shown`` of ten lines are to be seen."""

    def __init__(self, shown: int, **layer):
        super().__init__()
        self.shown, self.layer = shown, layer

    async def decode(self, payload):
        pixels = np.full((800, 600, 3), 255, dtype=np.uint8)
        boxes = [(50.0, 40.0 + 70 * i, 550.0, 60.0 + 70 * i) for i in range(10)]
        for x1, y1, x2, y2 in boxes[: self.shown]:
            pixels[int(y1) + 4 : int(y2) - 4, int(x1) : int(x2) : 3] = 0
        lines = tuple(TextLine(text=PROSE, box=box, engine="text-layer") for box in boxes)
        given = {"lines": lines, "characters": 640, "unmapped": 0} | self.layer
        return DecodedPage(pixels=pixels, text_layer=TextLayer(**given))


@pytest.mark.parametrize(("shown", "share"), [(10, None), (9, 0.1), (5, 0.5)])
async def test_text_that_the_page_does_not_show_is_a_warning(shown, share):
    record = (await parse_page(REF, LayerServices(shown), ParseSettings())).record
    assert (record.text_source, record.confidence) == ("text-layer", 1.0)
    assert record.signals.get("text_without_ink") == share
    assert record.review is (share is not None)
    assert [error.category for error in record.errors] == (["text_layer_mismatch"] if share else [])


async def test_a_layer_that_is_taken_although_it_is_not_sound_has_no_confidence():
    services = LayerServices(10, unmapped=600)
    record = (await parse_page(REF, services, ParseSettings(text_layer=TextLayerMode.ALWAYS))).record
    assert record.regions and record.confidence is None and record.review
    (error,) = record.errors
    assert (error.category, "--text-layer never" in (error.remedy or "")) == ("text_layer_mismatch", True)
