"""Pages made of their text lines: what becomes of a text layer, and what is said about the text."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.unit.parsing.test_page import REF, Services, failing, lines_of

from pagemill.config.settings import ParseSettings
from pagemill.document.labels import Label
from pagemill.document.page import Status, TextLine
from pagemill.errors import LanguageError
from pagemill.imaging.page import DecodedPage, TextLayer
from pagemill.layout.base import DetectedRegion
from pagemill.parsing import line_reading
from pagemill.parsing.page import parse_page
from pagemill.parsing.text_layer_soundness import holds_unsaid_text, judge, merge_lines
from pagemill.recognition.reader import ReadPage
from pagemill.sources.base import PdfPage


def columns(count: int, *, vertical: bool = False) -> list[TextLine]:
    """Columns of twelve lines each."""
    width, lines = 600 // count, []
    for column in range(count):
        for row in range(12):
            x1, x2, y = column * width, (column + 1) * width - 15, 20 * row
            box = (y, x1, y + 12, x2) if vertical else (x1, y, x2, y + 12)
            lines.append(TextLine(text="words of a line", box=box))
    return lines


def test_pages_of_the_press_are_those_with_articles_below_each_other_in_three_columns():
    def page(label, *boxes):
        return SimpleNamespace(regions=[SimpleNamespace(label=label, bbox=box, furniture=None) for box in boxes])

    frames = [(column * 200.0, 0.0, column * 200.0 + 185, 232.0) for column in range(3)]
    plain, title = page(Label.TEXT, *frames), (100.0, -40.0, 500.0, -10.0)
    stacked = page(Label.TEXT, *frames, (100.0, 240.0, 500.0, 260.0))
    assert not line_reading.is_of_press(columns(2), stacked)
    assert [line_reading.is_of_press(columns(3), record) for record in (plain, stacked)] == [False, True]
    assert not line_reading.is_of_press(columns(3), page(Label.TEXT, title, *frames))
    short = [line for line in columns(3) if line.box[1] < 100]  # five lines each, as in a row of a table
    table = page(Label.TABLE, (0.0, 0.0, 585.0, 232.0))
    assert [line_reading.is_of_press(lines, table) for lines in (columns(3), short)] == [True, False]


async def test_a_text_layer_that_runs_sideways_turns_the_page():
    # Writing that runs downwards, its lines from right to left: upright once the page is turned by 270 degrees.
    lines = tuple(
        TextLine(
            text=f"line {i} of a text that runs down the page",
            box=(340 - 30 * i, 40, 360 - 30 * i, 560),
            polygon=((360 - 30 * i, 40), (360 - 30 * i, 560), (340 - 30 * i, 560), (340 - 30 * i, 40)),
            font_size=18,
        )
        for i in range(6)
    )
    services = Services()
    pixels = np.full((600, 400, 3), 255, dtype=np.uint8)

    async def decode(payload):
        return DecodedPage(
            pixels=pixels,
            text_layer=TextLayer(lines=lines, characters=220, unmapped=0),
        )

    services.decode = decode
    page = await parse_page(REF, services, ParseSettings())
    assert (page.record.rotation, page.record.width, page.record.height) == (270, 600, 400)
    (region,) = page.record.regions
    assert region.content.startswith("line 0 of a text that runs down the page line 1")


@pytest.mark.parametrize(("illegible", "said"), [(0, None), (1, "1 line of text was"), (7, "7 lines of text were")])
async def test_lines_none_of_which_can_be_read_are_said_on_a_page_that_is_done(illegible, said):
    page = await parse_page(REF, Services(read=ReadPage(lines=[], illegible=illegible)), ParseSettings())
    assert page.record.status is Status.DONE
    told = [(error.component, error.category) for error in page.record.errors]
    assert told == ([("recognition", "empty_text")] if said else [])
    assert not said or page.record.errors[0].message.startswith(said)


PDF_REF = replace(REF, payload=PdfPage(path=Path("a.pdf"), page_index=0))


class Told(Services):
    """A page whose text layer tells all: it is drawn when it is asked for with its pixels only."""

    def __init__(self, *lines: TextLine) -> None:
        super().__init__()
        self.layer = TextLayer(lines=lines, characters=sum(len(line.text) for line in lines), unmapped=0)
        self.asked: list[int | None] = []

    async def decode(self, payload):
        self.asked.append(payload.text_only_side)
        page = replace(await super().decode(payload), text_layer=self.layer)
        for line in self.layer.lines:
            x1, y1, x2, y2 = map(round, line.box)
            page.pixels[y1:y2:2, x1:x2:3] = 0
        if payload.text_only_side is None:
            return page
        return replace(
            page, pixels=page.pixels[: payload.text_only_side, : payload.text_only_side], text_only_size=(40, 60)
        )


LEVEL = TextLine(text="Paid in full.", box=(4.0, 4.0, 36.0, 14.0), font_size=8)
UPWARDS = TextLine(
    text="line of a text that runs up the page",
    box=(10, 5, 20, 55),
    polygon=((10, 55), (10, 5), (20, 5), (20, 55)),
    font_size=8,
)


@pytest.mark.parametrize(
    ("lines", "settings", "asked"),
    [
        ([LEVEL], {}, [0]),
        ([LEVEL], {"preview_pages": 9}, [1000]),
        ([LEVEL], {"structure": "pixels"}, [None]),
        ([LEVEL], {"text_layer": "never"}, [None]),
        ([UPWARDS] * 3, {}, [0, None]),
        ([], {}, [0, None]),
    ],
    ids=["told", "with a preview", "pixels", "recognition", "turned", "unsound"],
)
async def test_pixels_are_asked_for_where_they_are_needed(lines, settings, asked):
    services = Told(*lines)
    page = await parse_page(PDF_REF, services, ParseSettings(**settings))
    assert page.record.status is Status.DONE
    assert not page.record.errors
    assert sorted((page.record.width, page.record.height)) == [40, 60]
    assert services.asked == asked


@pytest.mark.parametrize(
    ("lines", "settings", "decided"),
    [
        ([LEVEL], {}, ["text layer used: it is sound", "layout model not asked: the page shows only what its"]),
        (
            [],
            {},
            ["text layer refused: none of its text is visible", "the page is", "text layer refused", "recognized"],
        ),
        ([LEVEL], {"text_layer": "never"}, ["text layer not used: --text-layer never", "recognized: no lines"]),
        ([UPWARDS] * 3, {}, ["text layer used", "turned clockwise by 90 degrees"]),
    ],
)
async def test_each_decision_is_logged_with_its_page(lines, settings, decided, caplog):
    caplog.set_level("INFO", logger="pagemill.parsing")
    await parse_page(PDF_REF, Told(*lines), ParseSettings(**settings))
    assert len(caplog.messages) >= len(decided)
    for message, start in zip(caplog.messages, decided, strict=False):
        assert message.startswith(f"a_1: {start}")


async def test_pages_whose_fonts_cannot_be_made_sense_of_are_read_from_their_pixels(monkeypatch):
    def breaks(*_):
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(line_reading, "analyse_typography", breaks)
    services = Told(LEVEL)
    page = await parse_page(PDF_REF, services, ParseSettings())
    assert page.record.status is Status.DONE
    assert [(error.component, error.category) for error in page.record.errors] == [("analysis", "internal")]
    assert "Paid in full." in page.record.markdown
    assert services.asked == [0, None]


INKED = (4.0, 4.0, 36.0, 14.0)
LETTERS = tuple((4.0 + 4 * place, 5.0, 7.0 + 4 * place, 13.0) for place in range(7))
"""Drawn as shapes."""


@pytest.mark.parametrize(
    ("lines", "hidden", "read", "said"),
    [
        ([("\ufffd\ufffd", INKED)], [], [], "1 line of the text layer was"),
        ([], [("beneath", INKED)], [], "1 line of the text layer was"),
        ([("\ufffd\ufffd", INKED)], [], [("ua", INKED)], None),
        ([("\ufffd\ufffd", INKED)], [], [("else", (4.0, 40.0, 36.0, 50.0))], "1 line of the text layer was"),
        ([("\ufffd\ufffd", (4.0, 20.0, 36.0, 30.0))], [], [("ua", INKED)], None),
        ([("\ufffd", INKED)], [("beneath", INKED)], [("else", (4.0, 40.0, 36.0, 50.0))], None),
    ],
    ids=["unmapped", "hidden", "read", "read elsewhere", "nothing drawn", "bullet"],
)
async def test_lines_of_an_unsound_layer_where_nothing_is_read_are_said(lines, hidden, read, said):
    class Layered(Services):
        async def decode(self, payload):
            page = await super().decode(payload)
            page.pixels[5:13, 5:35:3] = 0
            told = [tuple(TextLine(text=text, box=box) for text, box in each) for each in (lines, hidden)]
            count = sum(len(text) for text, _ in lines)
            layer = TextLayer(lines=told[0], hidden_lines=told[1], characters=count, unmapped=count)
            return replace(page, text_layer=layer)

    found = [TextLine(text=text, box=box, engine="e") for text, box in read]
    page = await parse_page(REF, Layered(read=ReadPage(lines=found)), ParseSettings())
    assert [error.message.partition(" not taken")[0] for error in page.record.errors] == ([said] if said else [])
    assert page.record.review is bool(said)


async def test_characters_without_unicode_values_are_said_also_of_a_layer_that_is_trusted():
    class Layered(Services):
        async def decode(self, payload):
            line = TextLine(text="Rent 1\ufffd\ufffd4", box=INKED)
            layer = TextLayer(lines=(line,), characters=8, unmapped=2)
            return replace(await super().decode(payload), text_layer=layer)

    page = await parse_page(REF, Layered(), ParseSettings(text_layer="always"))
    assert any("output as U+FFFD" in error.message for error in page.record.errors)
    assert page.record.review


@pytest.mark.parametrize(
    ("score", "box", "images", "raised", "rotation", "is_read", "said"),
    [
        (0.7, INKED, (), None, 0, True, []),
        (0.7, (4.0, 4.0, 36.0, 24.5), (), None, 0, True, []),
        (0.7, INKED, (), LanguageError("Thai"), 0, False, ["Thai"]),
        (0.7, INKED, (), None, 90, False, ["recognition takes the page for turned by 90 degrees"]),
        (0.5, INKED, (), None, 0, False, []),
        (0.7, (0.0, 16.0, 40.0, 36.0), (), None, 0, False, []),
        (0.7, INKED, ((0.0, 0.0, 40.0, 18.0),), None, 0, True, []),
    ],
    ids=["letters as shapes", "touches a line", "unread script", "turned", "unsure", "holds a line", "an image"],
)
async def test_text_that_a_sound_layer_lacks_is_read(score, box, images, raised, rotation, is_read, said):
    prose = "A paper mill is a simple machine with a long memory. " * 9

    class Layered(Services):
        async def decode(self, payload):
            line = TextLine(text=prose, box=(2.0, 24.0, 38.0, 34.0), engine="text-layer")
            layer = TextLayer(lines=(line,), characters=len(prose), unmapped=0, drawings=LETTERS)
            return replace(await super().decode(payload), text_layer=layer, image_boxes=images)

        async def detect_regions(self, pixels):
            return [DetectedRegion(box=box, label=Label.TEXT, score=score, source="e")]

    title = TextLine(text="Drawn title", box=INKED, engine="e", confidence=0.95)
    read = ReadPage(lines=[title], rotation=rotation)
    services = Layered(read=read, before_reading=failing(raised) if raised else None)
    page = await parse_page(REF, services, ParseSettings())
    assert page.record.status is Status.DONE
    prefix = "text outside of the text layer was not read: "
    told = [error.message for error in page.record.errors if error.component == "recognition"]
    assert told == [prefix + reason for reason in said]
    assert ("Drawn title" in page.record.markdown) is is_read
    assert "paper mill" in page.record.markdown
    assert page.record.text_source == ("text-layer+ocr" if is_read else "text-layer")


async def test_layer_and_reading_are_compared_on_computing_threads():
    computed = []

    class Layered(Services):
        async def decode(self, payload):
            line = TextLine(text="Mill Lane", box=(2.0, 24.0, 38.0, 34.0))
            layer = TextLayer(lines=(line,), characters=8, unmapped=0, drawings=LETTERS)
            return replace(await super().decode(payload), text_layer=layer)

        async def detect_regions(self, pixels):
            return [DetectedRegion(box=INKED, label=Label.TEXT, score=0.7, source="e")]

        async def compute(self, function, *args, **kwargs):
            computed.append(function)
            return function(*args, **kwargs)

    await parse_page(REF, Layered(), ParseSettings())
    assert {judge, holds_unsaid_text, merge_lines} <= set(computed)


@pytest.mark.parametrize(
    ("raised", "rotation", "text", "source", "said"),
    [
        (None, 0, "8 Mill Lane", "text-layer+ocr", ()),
        (LanguageError("Thai"), 0, "\ufffd\ufffd\ufffd Lane", "text-layer", ("U+FFFD", "Thai")),
        (None, 90, "\ufffd\ufffd\ufffd Lane", "text-layer", ("U+FFFD", "turned by 90")),
    ],
    ids=["read", "unread script", "turned"],
)
async def test_a_word_without_unicode_values_costs_no_other_text(raised, rotation, text, source, said):
    prose = "A paper mill is a simple machine with a long memory. " * 9

    class Layered(Services):
        async def decode(self, payload):
            icons = TextLine(text="\ufffd\ufffd\ufffd Lane", box=INKED, engine="text-layer")
            line = TextLine(text=prose, box=(2.0, 24.0, 38.0, 34.0), engine="text-layer")
            layer = TextLayer(lines=(icons, line), characters=len(prose), unmapped=3)
            return replace(await super().decode(payload), text_layer=layer)

    read = ReadPage(lines=[TextLine(text="8 Mill Lane", box=INKED, engine="e", confidence=0.95)], rotation=rotation)
    services = Layered(read=read, before_reading=failing(raised) if raised else None)
    page = await parse_page(REF, services, ParseSettings())
    assert (page.record.status, page.record.text_source) == (Status.DONE, source)
    assert "paper mill" in page.record.markdown
    assert text in page.record.markdown
    messages = " ".join(error.message for error in page.record.errors)
    assert all(part in messages for part in said)
    assert ("U+FFFD" in messages) is ("U+FFFD" in said)


@pytest.mark.parametrize(("illegible", "said"), [(1, []), (2, ["empty_text"])])
async def test_a_line_left_out_beside_others_is_not_worth_a_word_but_two_are(illegible, said):
    line = TextLine(text="alpha", box=(2.0, 2.0, 30.0, 10.0), engine="e")
    page = await parse_page(REF, Services(read=ReadPage(lines=[line], illegible=illegible)), ParseSettings())
    assert [error.category for error in page.record.errors] == said


async def test_signs_of_vertical_lines_that_were_not_read_are_said():
    line = TextLine(text="alpha", box=(2.0, 2.0, 30.0, 10.0), engine="e")
    page = await parse_page(REF, Services(read=ReadPage(lines=[line], signs=3)), ParseSettings())
    assert [error.message[:12] for error in page.record.errors] == ["3 signs were"]


@pytest.mark.parametrize(
    ("quality", "script", "said"),
    [(0.9, None, None), (0.5, None, "not reliable"), (0.5, "THAI", "Thai"), (0.9, "THAI", "Thai")],
)
async def test_a_page_whose_text_is_not_to_be_relied_upon_is_not_done_without_a_word(quality, script, said):
    line = TextLine(text="CUCLIU", box=(2.0, 2.0, 30.0, 10.0), engine="e")
    read = ReadPage(lines=[line], quality=quality, script=script, foreign=1)
    page = await parse_page(REF, Services(read=read), ParseSettings())
    assert page.record.status is Status.DONE
    assert [error.category for error in page.record.errors] == (["poorly_read"] if said else [])
    assert not said or said in page.record.errors[0].message


@pytest.mark.parametrize(("handwritten", "category"), [(1, "low_confidence"), (3, "poorly_read")])
async def test_handwriting_is_named_as_such(handwritten, category):
    lines = [TextLine(text="CUCLIU", box=(2.0, 2.0 + y, 30.0, 10.0 + y), engine="e") for y in (0.0, 10.0, 20.0)]
    read = ReadPage(lines=lines, quality=0.5, handwritten=tuple(line.box for line in lines[:handwritten]))
    page = await parse_page(REF, Services(read=read), ParseSettings())
    (error,) = page.record.errors
    assert error.category == category and "handwritten" in error.message
    assert error.region == (0 if handwritten == 1 else None)


@pytest.mark.parametrize(
    ("named", "remedy"),
    [
        (False, "pagemill models download tessdata:tha, or: apt-get install "),
        (True, "Add th to --lang. If it is not inst"),
    ],
)
async def test_a_script_outside_of_the_named_languages_is_to_be_named_not_installed(named, remedy):
    line = TextLine(text="CUCLIU", box=(2.0, 2.0, 30.0, 10.0), engine="e")
    read = ReadPage(lines=[line], script="THAI", foreign=1, named=named)
    error = (await parse_page(REF, Services(read=read), ParseSettings())).record.errors[0]
    assert error.remedy.startswith(remedy)
    assert ("the named languages do not use" in error.message) is named


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (lines_of(0.9), None),
        (lines_of(0.5), "low_confidence"),
        (lines_of(0.5, text="-- 7"), None),  # too little to tell
        (lines_of(0.5, box=(2.0, 2.0, 10.0, 50.0)), "unread_script"),  # it runs down the page
    ],
)
async def test_a_region_whose_text_is_doubtful_has_a_warning(lines, said):
    page = await parse_page(REF, Services(read=ReadPage(lines=lines)), ParseSettings())
    assert page.record.status is Status.DONE
    assert [error.category for error in page.record.errors] == ([said] if said else [])
    if said:
        (error,) = page.record.errors
        assert (error.region, "confidence 0.50 of 1" in error.message) == (0, True)
        assert ("vertical" in error.message) == (said == "unread_script")
        assert not list(page.failures())
        assert len(list(page.failures(doubts=True))) == 1


async def test_hanja_in_korean_text_is_a_warning():
    page = await parse_page(REF, Services(read=ReadPage(lines=lines_of(0.9), hanja=2)), ParseSettings())
    (error,) = page.record.errors
    assert (error.category, error.message[:7]) == ("unread_script", "2 lines")
    assert "Hanja" in error.message
