"""The reader against engines made of rules: dark lines hold Latin text, darker ones Korean."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pagemill.errors import LanguageError
from pagemill.recognition import reader
from pagemill.recognition.base import DetectedLine, RecognizedText
from pagemill.recognition.handwriting import Shapes
from pagemill.recognition.languages import Plan
from pagemill.recognition.reader import PageReader, reads_in_mirror_alone
from pagemill.recognition.show_through import is_paler
from pagemill.recognition.stamps import Ink
from pagemill.recognition.verdict import POORLY_READ

LATIN_INK, CHINESE_INK, KOREAN_INK, LOOKALIKE_INK = 100, 140, 20, 160
LIKE_IDEOGRAPHS_INK, HANJA_INK = 80, 120  # the primary reads both as ideographs, and Tesseract both as Hangul
THAI_INK = 50
STAMP_INK = 30
MIRRORED_INK = 90  # shines through from the back
PALE_INK = 180  # the same, as it should be: paler than the front
MIXED_INK = 40  # Hanja among Hangul: each engine reads a part
KOREAN = Plan("rapidocr", (("ko", "tesseract:ko"),))
QUICKER = Plan("rapidocr", (("ko", "tesseract:ko"),), latin="rapidocr:latin")


@pytest.fixture(autouse=True)
def script(monkeypatch):
    """What the detector of scripts says of every line, set as its ``shares``; nothing unless a test says otherwise."""
    found = SimpleNamespace(shares={})
    monkeypatch.setattr(reader, "script_shares", lambda images: found.shares if len(images) else {})
    return found


def page_of(*inks: int) -> np.ndarray:
    """One line a row of 40 pixels; the first stroke of a line is twice as wide, so that its start can be told."""
    page = np.full((60 * len(inks) + 20, 620, 3), 255, np.uint8)
    for row, ink in enumerate(inks):
        top = 20 + 60 * row
        page[top + 8 : top + 32, 20:600:8] = ink
        page[top + 8 : top + 32, 10:30] = ink
        page[top + 13 : top + 15, 30:600] = 255  # letters, unlike strokes, are crossed twice
    return page


class RuleEngines:
    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.thai_confidence = 0.9

    async def detect(self, page):
        rows = np.flatnonzero((page[:, :, 0] < 200).any(axis=1))
        columns = np.flatnonzero((page[:, :, 0] < 200).any(axis=0))
        if not len(rows):
            return []
        tall = page.shape[0] == 620
        places = columns if tall else rows
        groups = np.split(places, np.flatnonzero(np.diff(places) > 10) + 1)
        lines = []
        for group in groups:
            low, high = float(group[0] - 4), float(group[-1] + 5)
            if tall:
                quad = ((low, 0.0), (high, 0.0), (high, 620.0), (low, 620.0))
            else:
                quad = ((0.0, low), (620.0, low), (620.0, high), (0.0, high))
            lines.append(DetectedLine(polygon=quad, score=1.0))
        return lines

    async def recognize(self, engine, lines):
        self.calls[engine] = self.calls.get(engine, 0) + len(lines)
        return [self._read(engine, line) for line in lines]

    def _read(self, engine, line):
        ink = int(line.min())
        upright = line[:, :31].mean() < line[:, -31:].mean()
        if ink == MIXED_INK:
            text, confidence = ("民法平等", 0.73) if engine == "rapidocr" else ("모든 떨보은 중 앞에 수쪽하다", 0.65)
            return RecognizedText(text=text, confidence=confidence, centers=tuple(np.linspace(0.01, 0.99, len(text))))
        if ink in (LIKE_IDEOGRAPHS_INK, HANJA_INK):
            real = ink == HANJA_INK
            text, confidence = ("月是" * 20, 0.99 if real else 0.94) if engine == "rapidocr" else ("구분" * 20, 0.96)
            return RecognizedText(text=text, confidence=confidence, centers=tuple(np.linspace(0.01, 0.99, 40)))
        if ink == MIRRORED_INK:
            text, confidence = ("jx9j nijsl", 0.6) if upright else ("latin text", 0.98)
            return RecognizedText(text=text, confidence=confidence)
        if ink == THAI_INK:
            text = "กขคงจฉช ญฐณดต" * 3 if engine.endswith("th") else ""
            return RecognizedText(text=text, confidence=self.thai_confidence if text else 0.0)
        knows = (ink > 60) == engine.startswith("rapidocr")
        if not upright or not knows:
            return RecognizedText(text="", confidence=0.0)
        if ink == LOOKALIKE_INK:
            return RecognizedText(text="CUCLIU UXLO CC", confidence=0.7, centers=tuple(np.linspace(0.01, 0.99, 40)))
        if ink == CHINESE_INK:
            text = "mill" if engine == "rapidocr:latin" else "古老的手艺和纸张的制造" * 3
            centers = tuple((index + 0.5) / 33 for index in range(len(text)))
            return RecognizedText(text=text, confidence=0.9, centers=centers)
        text = ("latin text " if engine.startswith("rapidocr") else "한글 문서 ") * 6
        text = text.strip()
        centers = tuple((index + 0.5) / len(text) for index in range(len(text)))
        return RecognizedText(text=text, confidence=0.98, centers=centers)

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)


async def read(page, plan=KOREAN):
    engines = RuleEngines()
    return await PageReader(plan, engines).read(page), engines.calls


async def test_lines_that_read_well_in_a_mirror_shine_through_from_the_back():
    result, _ = await read(page_of(*[LATIN_INK] * 3, *[MIRRORED_INK] * 4))
    assert (len(result.lines), result.mirrored) == (3, 4)
    result, _ = await read(page_of(LATIN_INK, *[MIRRORED_INK] * 6))  # no page of ours
    assert (len(result.lines), result.mirrored) == (7, 0)


class PaleBack(RuleEngines):
    """The back is paler ink here; it crosses a line until it is gone."""

    def _read(self, engine, line):
        if int(line.min()) == LATIN_INK:
            return super()._read(engine, line)
        upright = line[:, :31].mean() < line[:, -31:].mean()
        text, confidence = ("jx9j nijsl", 0.6) if upright else ("latin text", 0.98)
        return RecognizedText(text=text, confidence=confidence)


async def test_a_pale_back_is_taken_off_the_page_even_where_most_lines_are_its_own():
    result = await PageReader(KOREAN, PaleBack()).read(page_of(LATIN_INK, *[PALE_INK] * 6))
    assert (len(result.lines), result.mirrored) == (1, 6)
    dark = [page_of(ink)[20:60] for ink in (0, 100)]
    assert not is_paler(dark[:1], dark[1:]) and not is_paler([], dark)


async def test_the_words_of_a_stamp_are_read_beside_the_page_without_it(monkeypatch):
    stamps = page_of(LATIN_INK, LOOKALIKE_INK)
    monkeypatch.setattr(reader, "without_stamps", lambda page: (page, stamps))
    result, _ = await read(page_of(LATIN_INK, LATIN_INK))
    assert ([line.text[:5] for line in result.lines], result.stamps) == (["latin"] * 3, 1)


async def test_lines_that_stand_on_their_heads_are_read_on_an_upright_page(monkeypatch):
    page = page_of(*[LATIN_INK] * 4)
    page[200:260] = page[200:260][::-1, ::-1]
    assert len((await read(page))[0].lines) == 3  # it looks like nothing
    monkeypatch.setattr(
        reader,
        "script_shares",
        lambda images: {"~LATIN": float(images[0][:, :31].mean() > images[0][:, -31:].mean())},
    )
    result, _ = await read(page)
    assert [line.text[:5] for line in result.lines] == ["latin"] * 4
    assert [line.polygon is not None for line in result.lines] == [False, False, False, True]
    assert result.lines[3].polygon[0][0] > result.lines[3].polygon[1][0]
    assert result.rotation == 0


async def test_lines_that_stand_on_their_heads_are_read_on_a_page_without_its_back(monkeypatch):
    page = page_of(*[LATIN_INK] * 12, *[PALE_INK] * 3)
    page[200:260] = page[200:260][::-1, ::-1]
    monkeypatch.setattr(
        reader,
        "script_shares",
        lambda images: {"~LATIN": float(images[0][:, :31].mean() > images[0][:, -31:].mean())},
    )
    result = await PageReader(KOREAN, PaleBack()).read(page)
    assert ([line.text[:5] for line in result.lines], result.mirrored) == (["latin"] * 12, 3)


async def test_lines_across_a_page_are_read_once_its_back_is_gone():
    class Engines(PaleBack, OneAcross):
        """Lines across a page of which the back shines through."""

    page = np.full((620, 680 + 200, 3), 255, np.uint8)
    page[:, :680] = np.rot90(page_of(*[LATIN_INK] * 5, *[PALE_INK] * 6))
    page[104:120, 700:860:8] = LATIN_INK
    page[104:120, 694:710] = LATIN_INK
    result = await PageReader(KOREAN, Engines(680)).read(page)
    assert (result.rotation, result.mirrored) == (90, 6)
    assert sum(line.polygon is not None for line in result.lines) == 1


@pytest.mark.parametrize(
    ("text", "in_mirror", "expected"),
    [
        ("oxoxoxoxo vowwoV", "vowwov oxoxoxoxo", False),
        (".t92 19Jj9l 6 b9viec9r", "received a letter set.", True),
        ("7i", "OTTO", False),
    ],
)
def test_symmetrical_letters_do_not_shine_through(text: str, in_mirror: str, *, expected: bool):
    assert (
        reads_in_mirror_alone(
            RecognizedText(text=text, confidence=0.7), RecognizedText(text=in_mirror, confidence=0.95)
        )
        is expected
    )


async def test_a_snippet_is_turned_though_it_is_too_short_for_a_verdict(script):
    script.shares = {"~LATIN": 0.9}
    result, _ = await read(np.rot90(page_of(LATIN_INK, LATIN_INK), 2))
    assert (result.rotation, {line.text[:5] for line in result.lines}) == (180, {"latin"})


async def test_a_stamp_of_which_the_primary_reads_the_number_alone_goes_to_the_other_engine(monkeypatch):
    class Engines(RuleEngines):
        def _read(self, engine, line):
            if int(line.min()) != STAMP_INK:
                return super()._read(engine, line)
            text, place = ("2026", 0.9) if engine == "rapidocr" else ("접수 한글 2026", 0.1)
            return RecognizedText(text=text, confidence=0.98, centers=tuple(np.linspace(place, 0.99, len(text))))

    def inks_of(line):
        inks = (page_of(each)[20:60] for each in (LATIN_INK, STAMP_INK))
        return tuple(Ink(each, (0, 0, 1, 1)) for each in inks) if line.min() == LOOKALIKE_INK else None

    monkeypatch.setattr(reader, "inks_of", inks_of)
    result = await PageReader(KOREAN, Engines()).read(page_of(LATIN_INK, LOOKALIKE_INK))
    assert ([line.text for line in result.lines][2:], result.stamps) == (["접수 한글 2026"], 0)
    monkeypatch.setattr(Engines, "_read", lambda self, engine, line: RuleEngines._read(self, engine, line))
    result = await PageReader(KOREAN, Engines()).read(page_of(LATIN_INK, LOOKALIKE_INK))  # a seal
    assert (len(result.lines), result.stamps) == (2, 1)


@pytest.mark.parametrize(
    ("read_with_stamp", "kept"), [("dueA150", "due: 1,250"), ("due: 1,250 in red", "due: 1,250 in red")]
)
async def test_a_sure_line_under_a_stamp_is_read_without_it_where_that_adds_text(read_with_stamp, kept, monkeypatch):
    readings = {LOOKALIKE_INK: (read_with_stamp, 0.975), LATIN_INK: ("due: 1,250", 0.998), STAMP_INK: ("", 0.0)}

    class Engines(RuleEngines):
        def _read(self, engine, line):
            text, confidence = readings[int(line.min())]
            centers = tuple(np.linspace(0.1, 0.9, len(text)))
            return RecognizedText(text=text, confidence=confidence, centers=centers)

    inks = tuple(Ink(page_of(each)[20:60], (0, 0, 1, 1)) for each in (LATIN_INK, STAMP_INK))
    monkeypatch.setattr(reader, "inks_of", lambda line: inks)
    result = await PageReader(KOREAN, Engines()).read(page_of(LOOKALIKE_INK))
    assert [line.text for line in result.lines] == [kept]


async def test_a_picture_that_is_detected_as_a_line_is_no_text(monkeypatch):
    looked_at = []
    monkeypatch.setattr(reader, "inks_of", lambda line: looked_at.append(line.shape[0]))
    page = page_of(*[LOOKALIKE_INK] * 4)
    picture = np.full((500, 620, 3), LOOKALIKE_INK, np.uint8)
    result, _ = await read(np.concatenate([page, picture]))
    assert len(looked_at) == 4 and max(looked_at) < 60
    assert (len(result.lines), result.illegible) == (4, 0)


async def test_an_upright_page_the_primary_reads_costs_one_pass():
    result, calls = await read(page_of(*[LATIN_INK] * 5))
    assert calls == {"rapidocr": 5}
    assert (result.rotation, result.languages, result.illegible) == (0, ("und-Latn",), 0)
    assert {line.engine for line in result.lines} == {"rapidocr"}
    assert result.lines[0].words[1].box[0] == pytest.approx(620 * 6 / 65, abs=0.1)


async def test_what_the_primary_cannot_read_goes_to_the_other_engine():
    result, calls = await read(page_of(*[KOREAN_INK] * 4, LATIN_INK))
    assert calls["tesseract:ko"] == 4
    assert sorted(line.engine for line in result.lines) == ["rapidocr"] + ["tesseract"] * 4
    assert result.languages == ("ko", "und-Latn")


async def test_hangul_read_as_ideographs_goes_to_the_surer_engine_and_hanja_stays():
    result, _ = await read(page_of(*[KOREAN_INK] * 4, LIKE_IDEOGRAPHS_INK, HANJA_INK))
    texts = [line.text for line in sorted(result.lines, key=lambda line: line.box[1])]
    assert texts[4:] == ["구분" * 20, "月是" * 20]


async def test_hanja_among_hangul_is_counted_and_misread_hangul_is_not():
    result, _ = await read(page_of(*[KOREAN_INK] * 4, MIXED_INK, MIXED_INK))
    assert result.hanja == 2
    result, _ = await read(page_of(*[KOREAN_INK] * 4, LIKE_IDEOGRAPHS_INK))
    assert result.hanja == 0


async def test_a_line_that_runs_down_the_page_is_not_called_hanja():
    upright = page_of(*[KOREAN_INK] * 4)
    page = np.vstack([upright, np.full((420, 620, 3), 255, np.uint8)])
    page[300:640:8, 110:130] = MIXED_INK

    class WithTallLine(RuleEngines):
        async def detect(self, page):
            tall = ((104.0, 296.0), (136.0, 296.0), (136.0, 644.0), (104.0, 644.0))
            return [*await super().detect(upright), DetectedLine(polygon=tall, score=1.0)]

    result = await PageReader(KOREAN, WithTallLine()).read(page)
    (line,) = (line for line in result.lines if line.box[3] > 600)
    assert line.box[3] - line.box[1] > line.box[2] - line.box[0]
    assert result.hanja == 0


async def test_a_script_no_engine_reads_is_an_error():
    with pytest.raises(LanguageError) as caught:
        await read(page_of(*[KOREAN_INK] * 4), Plan("rapidocr"))
    assert "docs/languages.md" in (caught.value.remedy or "")


async def test_handwriting_is_no_script_that_no_engine_reads(monkeypatch):
    monkeypatch.setattr(reader, "shapes_of", lambda judged, others: [Shapes(20, 0)] * len(judged))
    result, _ = await read(page_of(*[KOREAN_INK] * 4), Plan("rapidocr"))
    assert (len(result.handwritten), result.script) == (4, None)
    assert result.handwritten[0] == (0.0, 24.0, 620.0, 56.0)
    result, _ = await read(page_of(*[LATIN_INK] * 3, KOREAN_INK))
    assert result.handwritten == ()  # it is read well


async def test_an_unread_script_is_named_where_it_is_known(script):
    script.shares = {"DEVANAGARI": 0.9}
    with pytest.raises(LanguageError, match="Devanagari") as caught:
        await read(page_of(*[KOREAN_INK] * 4), Plan("rapidocr"))
    assert "tesseract-ocr-hin" in (caught.value.remedy or "")


async def test_look_alikes_of_a_script_that_is_detected_fail(script):
    script.shares = {"HEBREW": 0.6}
    with pytest.raises(LanguageError, match="Hebrew") as caught:
        await read(page_of(*[LOOKALIKE_INK] * 4))
    assert "tesseract-ocr-heb" in (caught.value.remedy or "")


async def test_look_alikes_that_read_well_fail_where_the_detector_is_sure(script):
    script.shares = {"HEBREW": 0.9}
    with pytest.raises(LanguageError, match="Hebrew"):
        await read(page_of(*[LATIN_INK] * 4))


async def test_a_page_that_reads_well_is_not_given_up_for_a_doubtful_look(script):
    script.shares = {"HEBREW": 0.6, "LATIN": 0.4}
    result, _ = await read(page_of(*[LATIN_INK] * 5))
    assert len(result.lines) == 5


async def test_a_line_or_two_that_read_well_may_look_like_anything(script):
    script.shares = {"HEBREW": 0.9}
    result, _ = await read(page_of(*[LATIN_INK] * 2))
    assert (len(result.lines), result.script) == (2, None)


async def test_chinese_that_looks_like_another_script_is_chinese(script):
    script.shares = {"KANNADA": 0.9}
    result, _ = await read(page_of(*[CHINESE_INK] * 4), Plan("rapidocr"))
    assert (len(result.lines), result.script) == (4, None)


async def test_look_alikes_of_an_unknown_script_are_of_poor_quality():
    result, _ = await read(page_of(*[LOOKALIKE_INK] * 4))
    assert len(result.lines) == 4
    assert result.quality is not None and result.quality < POORLY_READ
    assert result.script is None


async def test_look_alikes_in_a_named_language_are_told(script):
    script.shares = {"THAI": 0.9}
    result, _ = await read(page_of(*[LOOKALIKE_INK] * 4), Plan("rapidocr", (), ("en",)))
    assert (result.script, result.foreign) == ("THAI", 4)


async def test_look_alikes_are_given_to_the_engine_of_the_script_that_they_look_like(script):
    """Confidence tells nothing here: the primary takes Cyrillic letters for Latin ones and is sure of it."""
    script.shares = {"HANGUL": 0.9}
    plan = Plan("rapidocr", (("th", "tesseract:th"), ("ko", "tesseract:ko"), ("ru", "tesseract:ru")))
    result, calls = await read(page_of(*[KOREAN_INK] * 4), plan)
    assert calls.keys() == {"rapidocr", "tesseract:ko"}
    assert {line.engine for line in result.lines} == {"tesseract"}


async def test_a_page_that_looks_like_a_wrong_script_is_read_by_the_engine_that_can(script):
    script.shares = {"HANGUL": 0.4}
    plan = Plan("rapidocr", (("ko", "tesseract:ko"), ("th", "tesseract:th")))
    result, calls = await read(page_of(*[THAI_INK] * 4), plan)
    assert {line.engine for line in result.lines} == {"tesseract"}
    assert len(result.lines) == 4
    assert calls["tesseract:th"] == 4  # the sample is not read again


@pytest.mark.parametrize(
    ("shares", "confidence"), [({"KHMER": 0.9}, 0.9), ({"MYANMAR": 0.4, "~MYANMAR": 0.4}, 0.9), ({"TELUGU": 0.4}, 0.76)]
)
async def test_another_script_s_engine_does_not_read_a_script_that_is_sure_or_reads_badly(shares, confidence, script):
    script.shares = shares
    engines = RuleEngines()
    engines.thai_confidence = confidence
    with pytest.raises(LanguageError):
        await PageReader(Plan("rapidocr", (("th", "tesseract:th"),)), engines).read(page_of(*[THAI_INK] * 4))


async def test_two_scripts_beside_the_primary_s_are_both_read(monkeypatch):
    def shares_of(images):
        inks = {int(image.min()) for image in images}
        return {"HANGUL": 0.9} if inks == {KOREAN_INK} else {"THAI": 0.9} if inks == {THAI_INK} else {}

    monkeypatch.setattr(reader, "script_shares", shares_of)
    plan = Plan("rapidocr", (("ko", "tesseract:ko"), ("th", "tesseract:th")))
    result, calls = await read(page_of(*[KOREAN_INK] * 4, *[THAI_INK] * 3), plan)
    assert calls["tesseract:th"] >= 3
    assert sum("\u0e01" in line.text for line in result.lines) == 3
    assert sum("한글" in line.text for line in result.lines) == 4


async def test_vietnamese_goes_to_its_engine_and_is_told_without_one(script):
    script.shares = {"VIETNAMESE": 0.8, "LATIN": 0.2}
    result, calls = await read(page_of(*[LATIN_INK] * 4), Plan("rapidocr", vietnamese="rapidocr:vi"))
    assert calls == {"rapidocr": 4, "rapidocr:vi": 4}
    result, _ = await read(page_of(*[LATIN_INK] * 4), Plan("rapidocr"))
    assert result.script == "VIETNAMESE"


async def test_a_page_of_an_unread_script_is_turned_by_its_looks_alone(monkeypatch):
    """Letters of an unknown script may well read better upside down."""

    def shares_of(images):
        upright = all(image[:, :31].mean() < image[:, -31:].mean() for image in images)
        return {"GEORGIAN": 0.9, "~GEORGIAN": 0.1} if upright else {"GEORGIAN": 0.1, "~GEORGIAN": 0.9}

    monkeypatch.setattr(reader, "script_shares", shares_of)
    plan = Plan("rapidocr", (), ("en",))
    result, _ = await read(page_of(*[KOREAN_INK] * 4), plan)
    assert (result.rotation, result.script) == (0, "GEORGIAN")
    turned = np.ascontiguousarray(np.rot90(page_of(*[KOREAN_INK] * 4), 2))
    assert (await read(turned, plan))[0].rotation == 180


async def test_a_blurred_page_is_not_turned_for_a_few_letters_that_it_seems_to_hold_head_down(monkeypatch, script):
    """The noise in which an engine saw a letter or two on one side made the page illegible."""
    script.shares = {"~LATIN": 0.9}
    monkeypatch.setattr(RuleEngines, "_read", lambda self, engine, line: noise(line))
    result, _ = await read(page_of(*[LATIN_INK] * 6))
    assert result.rotation == 0


def noise(line: np.ndarray) -> RecognizedText:
    is_upright = line[:, :31].mean() < line[:, -31:].mean()
    return RecognizedText(text="o" if is_upright else "oh", confidence=0.4)


async def test_a_user_who_named_the_language_gets_what_there_is():
    result, _ = await read(page_of(*[KOREAN_INK] * 4), Plan("rapidocr", (), ("en",)))
    assert (result.lines, result.illegible, result.languages) == ([], 4, ("en",))


async def test_what_has_not_the_shape_of_a_line_is_not_called_illegible():
    photograph = np.full((300, 620, 3), 255, np.uint8)
    photograph[20:280] = KOREAN_INK
    result, calls = await read(photograph, Plan("rapidocr", (), ("en",)))
    assert calls == {"rapidocr": 1}
    assert (result.lines, result.illegible) == ([], 0)


@pytest.mark.parametrize("ink", [LATIN_INK, KOREAN_INK])
@pytest.mark.parametrize("degrees", [90, 180, 270])
async def test_a_turned_page_is_read_upright(degrees, ink):
    turned = np.ascontiguousarray(np.rot90(page_of(*[ink] * 5), degrees // 90))  # counter-clockwise
    result, _ = await read(turned)
    assert result.rotation == degrees
    assert len(result.lines) == 5


class OneAcross(RuleEngines):
    """Finds a level line at the right of lines on their side, and nothing there once the page is turned."""

    def __init__(self, width: int = 320) -> None:
        super().__init__()
        self.width = width

    async def detect(self, page):
        left, right = self.width + 10.0, self.width + 190.0
        if page.shape[0] != 620:
            return [line for line in await super().detect(page) if line.box[1] < self.width]
        found = await super().detect(page[:, : self.width])
        level = ((left, 100.0), (right, 100.0), (right, 124.0), (left, 124.0))
        return [*found, DetectedLine(polygon=level, score=1.0)]


async def test_lines_across_a_page_that_was_turned_tell_their_direction():
    page = np.full((620, 520, 3), 255, np.uint8)
    page[:, :320] = np.rot90(page_of(*[LATIN_INK] * 5))
    page[104:120, 340:500:8] = LATIN_INK
    page[104:120, 334:350] = LATIN_INK
    result = await PageReader(KOREAN, OneAcross()).read(page)
    assert result.rotation == 90
    (line,) = [line for line in result.lines if line.polygon]
    (x1, y1), (x2, y2) = line.polygon[:2]
    assert abs(y2 - y1) > 10 * abs(x2 - x1)


@pytest.mark.parametrize("degrees", [90, 180, 270])
async def test_chinese_on_its_side_is_turned_by_its_text_whatever_it_looks_like(script, degrees):
    script.shares = {"ETHIOPIC": 0.6}
    turned = np.ascontiguousarray(np.rot90(page_of(*[CHINESE_INK] * 5), degrees // 90))
    result, _ = await read(turned)
    assert (result.rotation, len(result.lines), result.script) == (degrees, 5, None)


async def test_an_empty_page_has_no_lines():
    result, _ = await read(np.full((300, 620, 3), 255, np.uint8))
    assert (result.lines, result.rotation, result.languages) == ([], 0, ())


async def test_a_long_latin_page_goes_to_the_quicker_recognizer_after_a_sample():
    result, calls = await read(page_of(*[LATIN_INK] * 20), QUICKER)
    assert calls == {"rapidocr": 6, "rapidocr:latin": 14}
    assert len(result.lines) == 20


async def test_what_the_quicker_recognizer_leaves_unread_is_read_with_all_scripts():
    inks = [LATIN_INK] * 20
    inks[1] = CHINESE_INK  # not among the lines of the sample
    result, calls = await read(page_of(*inks), QUICKER)
    assert calls == {"rapidocr": 7, "rapidocr:latin": 14}
    assert sum("古老的手艺" in line.text for line in result.lines) == 1


@pytest.mark.parametrize("ink", [CHINESE_INK, KOREAN_INK])
async def test_a_page_in_another_script_never_meets_the_quicker_recognizer(ink):
    result, calls = await read(page_of(*[ink] * 20), QUICKER)
    assert calls["rapidocr"] == 20
    assert "rapidocr:latin" not in calls
    assert len(result.lines) == 20


def quad(x1: float, y1: float, x2: float, y2: float):
    return ((x1, y1), (x2, y1), (x2, y2), (x1, y2))


async def test_a_headline_across_vertical_text_is_read_as_it_lay():
    """The page, 620 x 400, was turned by 270 degrees: what was level runs up; what held a long line was no text."""
    page = np.ascontiguousarray(np.rot90(page_of(*[CHINESE_INK] * 6)))
    long = DetectedLine(polygon=quad(100, 200, 350, 230), score=1.0)
    pieces = [DetectedLine(polygon=quad(28, y, 52, y + 24), score=1.0) for y in (40, 300)]
    headline, across = (DetectedLine(polygon=quad(*box), score=1.0) for box in ((0, 20, 620, 60), (380, 260, 430, 290)))
    found = await PageReader(KOREAN, RuleEngines())._with_level(page, [long, *pieces], [headline, across], 270)
    assert [line.polygon for line in found] == [long.polygon, ((20, 620), (20, 0), (60, 0), (60, 620))]


async def test_a_headline_down_the_page_that_is_found_before_it_is_turned_alone_is_read_from_its_top():
    """The page, 400 x 620, was turned by 270 degrees, so that its right edge is the top of what is 620 x 400 now."""
    page = page_of(*[CHINESE_INK] * 6)
    height, width = page.shape[:2]
    text = DetectedLine(polygon=quad(100, 200, 350, 230), score=1.0)
    headline = DetectedLine(polygon=quad(height - 60, 0, height - 20, width), score=1.0)
    same = DetectedLine(polygon=quad(height - 230, 100, height - 200, 350), score=1.0)
    found = await PageReader(KOREAN, RuleEngines())._with_tall(page, [text], [headline, same], 270)
    assert [line.polygon for line in found] == [text.polygon, quad(0, 20, width, 60)]


class BlurredEngines(RuleEngines):
    """Whose line is bent, and is read surely where it is wider than it was detected."""

    async def detect(self, page):
        middle = tuple((float(x), 40.0) for x in range(20, 600, 20))
        return [replace(line, middle=middle, height=40.0) for line in await super().detect(page)]

    def _read(self, engine, line):
        wide = line.shape[1] > 620
        return RecognizedText(text="latin text" if wide else "lat tex", confidence=0.98 if wide else 0.6)


@pytest.mark.parametrize(("bends", "text", "calls"), [(True, "latin text", 2), (False, "lat tex", 1)])
async def test_a_doubtful_line_of_a_photograph_is_read_again_wider(bends: bool, text: str, calls: int):
    engines = BlurredEngines()
    result = await PageReader(Plan("rapidocr", ()), engines).read(page_of(LATIN_INK), bends=bends)
    assert [line.text for line in result.lines] == [text]
    assert engines.calls["rapidocr"] >= calls


async def test_a_second_reading_that_is_less_sure_is_not_taken():
    class Engines(BlurredEngines):
        def _read(self, engine, line):
            wide = line.shape[1] > 620
            return RecognizedText(text="wide" if wide else "latin text", confidence=0.7 if wide else 0.9)

    result = await PageReader(Plan("rapidocr", ()), Engines()).read(page_of(LATIN_INK), bends=True)
    assert [line.text for line in result.lines] == ["latin text"]


async def test_ideographs_that_only_the_wide_reading_sees_are_drawn_out_letters():
    class Engines(BlurredEngines):
        def _read(self, engine, line):
            wide = line.shape[1] > 620
            return RecognizedText(text="水道" if wide else "latin text", confidence=0.93 if wide else 0.9)

    result = await PageReader(Plan("rapidocr", ()), Engines()).read(page_of(LATIN_INK), bends=True)
    assert [line.text for line in result.lines] == ["latin text"]


def test_a_bent_line_is_cut_along_its_middle_without_its_neighbours():
    page = np.full((120, 620, 3), 255, np.uint8)
    x = np.arange(620)
    y = 60 + 20 * np.sin(x / 100)
    for offset in (0, 40):  # a line, and the one below
        for column in x:
            page[round(y[column]) + offset - 8 : round(y[column]) + offset + 8, column] = 100
    quad = ((0.0, 30.0), (620.0, 30.0), (620.0, 100.0), (0.0, 100.0))
    middle = tuple((float(column), float(y[column])) for column in x[::10])
    line = DetectedLine(polygon=quad, score=1.0, middle=middle, height=30.0)
    other = np.zeros((1, 1, 3), np.uint8)
    bent, straight = reader._straightened(page, [line, replace(line, middle=())], [other, other])
    assert straight is other
    assert bent.shape[1] == 620
    assert bent[bent.shape[0] // 2].max() < 120
    assert min(bent[0].min(), bent[-1].min()) > 200


class CertainEngines(RuleEngines):
    """The primary is certain of a word that another engine reads as look-alikes."""

    def __init__(self, confidence: float) -> None:
        super().__init__()
        self.confidence = confidence

    def _read(self, engine, line):
        text, confidence = ("Appendix", self.confidence) if engine == "rapidocr" else ("Аррепа!х", 0.87)
        text = " ".join([text] * 6)
        centers = tuple((index + 0.5) / len(text) for index in range(len(text)))
        return RecognizedText(text=text, confidence=confidence, centers=centers)


@pytest.mark.parametrize(("confidence", "text"), [(0.9999, "Appendix"), (0.99, "Аррепа!х")])
async def test_a_lone_word_that_reads_certainly_is_in_no_script_that_it_looks_like(confidence, text, script):
    script.shares = {"CYRILLIC": 0.61, "LATIN": 0.33}
    reader = PageReader(Plan("rapidocr", (("ru", "tesseract:ru"),)), CertainEngines(confidence))
    result = await reader.read(page_of(LATIN_INK))
    assert {word for line in result.lines for word in line.text.split()} == {text}
