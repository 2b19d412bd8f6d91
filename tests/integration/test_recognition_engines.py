"""Real engines on pages made here: what they read, in which languages, and how turned pages come upright."""

import functools
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from pagemill.errors import LanguageError, PageTimeoutError
from pagemill.imaging.transforms import crop_quad
from pagemill.recognition import rapidocr_engine, reader, tesseract_engine
from pagemill.recognition.languages import plan
from pagemill.recognition.reader import PageReader
from pagemill.recognition.verdict import POORLY_READ
from pagemill_eval.text import character_error_rate

pytestmark = pytest.mark.integration

FONTS = {
    "latin": ("dejavu/DejaVuSans.ttf", "liberation/LiberationSerif-Regular.ttf"),
    "korean": ("nanum/NanumMyeongjo.ttf", "nanum/NanumGothic.ttf"),
}
ENGLISH = [
    "The mill turns slowly in spring when water is high",
    "and paper dries on long racks beside the river.",
    "Every sheet carries a mark that tells who made it,",
    "in 1871 for 3.50 a ream (see page 12).",
]
KOREAN = [
    "모든 국민은 법 앞에 평등하다.",
    "신청서는 2026년 3월 31일까지 시장에게 제출한다.",
    "인공지능(AI) 사업에 320억 원을 배정한다.",
    "국가는 이를 보장할 의무를 진다.",
]
ACCENTED = [
    "Größe, Übermaß und Straßenlärm: 1.204,50 €",
    "Où l’été naît, déjà le garçon reçoit des œufs",
    "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "Zażółć gęślą jaźń; el niño está aquí (2019)",
]
RUSSIAN = [
    "Все люди рождаются свободными и равными",
    "в своем достоинстве и правах. Они наделены",
    "разумом и совестью и должны поступать",
    "в отношении друг друга в духе братства.",
]
needs_korean = pytest.mark.skipif(
    "ko" not in tesseract_engine.installed_languages(), reason="tesseract with Korean data is not installed"
)


def render(lines: list[str], script: str = "latin") -> np.ndarray:
    paths = [Path("/usr/share/fonts/truetype", name) for name in FONTS[script]]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        pytest.skip("a font is missing")
    font = ImageFont.truetype(str(path), 32)
    image = Image.new("RGB", (1200, 100 + 70 * len(lines)), "white")
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        draw.text((80, 50 + 70 * row), line, font=font, fill=(30, 30, 30))
    noisy = np.asarray(image, np.float32) + np.random.default_rng(0).normal(0, 6, (image.height, image.width, 1))
    return noisy.clip(0, 255).astype(np.uint8)


def offers():
    return [*rapidocr_engine.offers(), *tesseract_engine.offers()]


class Engines:
    """Every engine, called in place."""

    def __init__(self, *, korean: bool = True) -> None:
        self.detector, primary = loaded()
        self.recognizers = {"rapidocr": primary}
        if korean:
            self.recognizers["tesseract:ko"] = tesseract_engine.TesseractRecognizer("ko")

    async def detect(self, page):
        return self.detector.detect(page)

    async def recognize(self, engine, lines):
        return self.recognizers[engine].recognize(lines)

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)

    async def read(self, page, languages=None):
        coverage = {offer.name: offer.languages for offer in offers() if offer.name in self.recognizers}
        return await PageReader(plan(languages, coverage, "rapidocr"), self).read(page)


@functools.cache
def loaded():
    return rapidocr_engine.RapidOcrDetector(), rapidocr_engine.RapidOcrRecognizer()


def text_of(result) -> str:
    return "\n".join(line.text for line in sorted(result.lines, key=lambda line: line.box[1]))


async def test_english_reads_without_error_and_words_lie_on_their_ink():
    page = render(ENGLISH)
    result = await Engines(korean=False).read(page)
    assert character_error_rate(text_of(result), "\n".join(ENGLISH)) < 0.01
    for word in (word for line in result.lines for word in line.words):
        x1, y1, x2, y2 = (round(side) for side in word.box)
        assert (page[max(0, y1) : y2, max(0, x1) : x2] < 128).any(), word


@needs_korean
@pytest.mark.parametrize(
    "languages", [None, *(pytest.param(names, marks=pytest.mark.slow) for names in (["ko", "en"],))]
)
async def test_korean_reads_by_detection_and_by_name(languages):
    result = await Engines().read(render(KOREAN, "korean"), languages)
    assert character_error_rate(text_of(result), "\n".join(KOREAN)) < 0.05
    assert "(AI)" in text_of(result)
    assert "ko" in result.languages


@needs_korean
@pytest.mark.slow
async def test_korean_and_english_on_one_page():
    result = await Engines().read(render(KOREAN[:2] + ENGLISH[:2], "korean"))
    assert character_error_rate(text_of(result), "\n".join(KOREAN[:2] + ENGLISH[:2])) < 0.05
    assert {line.engine for line in result.lines} == {"rapidocr", "tesseract"}


@needs_korean
@pytest.mark.slow
@pytest.mark.parametrize(
    ("degrees", "lines", "script"), [(90, KOREAN, "korean"), (180, ENGLISH, "latin"), (270, KOREAN, "korean")]
)
async def test_turned_pages_come_upright(degrees, lines, script):
    turned = np.ascontiguousarray(np.rot90(render(lines, script), degrees // 90))
    result = await Engines().read(turned)
    assert result.rotation == degrees
    assert character_error_rate(text_of(result), "\n".join(lines)) < 0.05


@pytest.mark.slow
async def test_a_script_without_an_engine_is_an_error_and_never_garbage():
    with pytest.raises(LanguageError):
        await Engines(korean=False).read(render(KOREAN, "korean"))
    with pytest.raises(LanguageError):
        await Engines(korean="ko" in tesseract_engine.installed_languages()).read(render(RUSSIAN))


HEBREW = [
    "כל בני האדם נולדו בני חורין",
    "ושווים בערכם ובזכויותיהם כולם",
    "חוננו בתבונה ובמצפון לפיכך חובה",
    "עליהם לנהוג איש ברעהו ברוח",
]
ARMENIAN = [
    "Բոլոր մարդիկ ծնվում են ազատ ու",
    "հավասար իրենց արժանապատվությամբ",
    "ու իրավունքներով Նրանք ունեն",
    "բանականություն ու խիղճ և միմյանց",
]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [HEBREW, ARMENIAN])
async def test_look_alikes_are_of_poor_quality_also_without_script_detection(lines, monkeypatch):
    monkeypatch.setattr(reader, "script_shares", lambda images: {})
    try:
        result = await Engines(korean=False).read(render(lines))
    except LanguageError:
        return
    assert result.quality is not None and result.quality < POORLY_READ


@pytest.mark.slow
def test_latin_alone_reads_latin_text_the_same():
    _, full = loaded()
    latin = rapidocr_engine.RapidOcrRecognizer(latin=True)
    lines = [render([line])[46:94, 70:] for line in [*ENGLISH, *ACCENTED]]
    texts = [one.text for one in latin.recognize(lines)]
    assert texts == [one.text for one in full.recognize(lines)]
    assert character_error_rate("\n".join(texts), "\n".join([*ENGLISH, *ACCENTED])) < 0.02
    languages = {offer.name: offer.languages for offer in rapidocr_engine.offers()}
    assert languages["rapidocr:latin"] == languages["rapidocr"] - {"zh", "ja"}


def test_coverage_follows_from_the_dictionary():
    offer = rapidocr_engine.offers()[0]
    assert offer.languages >= {"en", "de", "fr", "zh", "ja"}
    assert not offer.languages & {"ko", "ru", "ar", "hi", "th", "el"}


@pytest.mark.slow
def test_odd_line_images_are_answered_in_order():
    _, recognizer = loaded()
    odd = [np.full(shape, 255, np.uint8) for shape in ((1, 1, 3), (3, 900, 3), (900, 3, 3), (48, 9000, 3))]
    line = render(ENGLISH[:1])[46:94, 70:]
    read = recognizer.recognize([odd[0], line, *odd[1:]])
    assert read[1].text.startswith("The mill")
    assert [one.text for one in (read[0], *read[2:])] == [""] * 4
    assert recognizer.recognize([]) == []


@pytest.mark.slow
def test_small_type_on_a_large_page_is_found():
    """Two columns of 22 pixel type on a strip of 6,000 pixels: shrunk to 1,280, an em is 4.7 pixels high."""
    words = [f"{word}{number % 7}" for number, word in enumerate((" ".join(ENGLISH).split() * 5)[:150])]
    image = Image.new("RGB", (1200, 6000), (235, 235, 235))
    draw = ImageDraw.Draw(image)
    path = next(Path("/usr/share/fonts/truetype", name) for name in FONTS["latin"])
    for row, start in enumerate(range(0, 150, 5)):
        # At the scale that such letters need, a border of tiles runs through the rows.
        place = (60 + 560 * (row // 15), 1400 + 25 * (row % 15))
        draw.text(place, " ".join(words[start : start + 5]), font=ImageFont.truetype(str(path), 22), fill=(30, 30, 30))
    draw.text((60, 1000), "THE COURIER", font=ImageFont.truetype(str(path), 130), fill=(30, 30, 30))
    detector, recognizer = loaded()
    page = np.asarray(image)
    read = recognizer.recognize([crop_quad(page, line.polygon) for line in detector.detect(page)])
    found = Counter(word for one in read for word in one.text.split())
    drawn = Counter(["THE", "COURIER", *words])
    assert (found & drawn).total() >= 0.97 * drawn.total()
    assert found["COURIER"] == 1


@pytest.mark.slow
def test_small_blurred_type_in_close_lines_is_found():
    """A newspaper's column of a photograph: shrunk to 1,280 pixels, its lines run into each other."""
    image = Image.new("RGB", (500, 2560), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.truetype(str(next(Path("/usr/share/fonts/truetype", name) for name in FONTS["latin"])), 14)
    rows = range(40, 2500, 17)
    for row, y in enumerate(rows):
        text = " ".join(ENGLISH).split()
        start = row % len(text)
        draw.text((20, y), " ".join([*text[start:], *text[:start]])[:54], font=font, fill=(40, 40, 40))
    page = np.asarray(image.filter(ImageFilter.GaussianBlur(1.5)))
    assert len(loaded()[0].detect(page)) >= 0.97 * len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0, 6])
def test_a_few_words_on_an_empty_page_are_found(noise: int):
    path = next(Path("/usr/share/fonts/truetype", name) for name in FONTS["latin"])
    image = Image.new("RGB", (1700, 2200), (248, 248, 248))
    draw = ImageDraw.Draw(image)
    for place, words in {(700, 900): "Part Two", (840, 2100): "47"}.items():
        draw.text(place, words, font=ImageFont.truetype(str(path), 32), fill=(30, 30, 30))
    grain = np.random.default_rng(0).normal(0, noise, (2200, 1700, 1)) if noise else 0
    page = (np.asarray(image, np.float32) + grain).clip(0, 255).astype(np.uint8)
    detector, recognizer = loaded()
    found = detector.detect(page)
    read = recognizer.recognize([crop_quad(page, line.polygon) for line in found])
    assert sorted(text.text for text in read) == ["47", "Part Two"]
    for line in found:  # the ink of each lies in its polygon
        (left, top), _, (right, bottom), _ = line.polygon
        image.paste((248, 248, 248), (int(left), int(top), int(right) + 1, int(bottom) + 1))
    assert np.asarray(image).min() > 200


@pytest.mark.slow
def test_a_word_that_is_found_does_not_hide_the_others_of_an_empty_page():
    image = Image.new("RGB", (2480, 3508), "white")
    draw = ImageDraw.Draw(image)
    for place, words in {(900, 1500): "Yes", (1500, 1900): "No", (1100, 1700): "12"}.items():
        draw.text(place, words, font=ImageFont.load_default(24), fill="black")
    page = np.asarray(image)
    detector, recognizer = loaded()
    read = recognizer.recognize([crop_quad(page, line.polygon) for line in detector.detect(page)])
    assert sorted(text.text for text in read) == ["12", "No", "Yes"]


@pytest.mark.slow
def test_a_page_without_text_and_a_tiny_page_have_no_lines():
    detector, _ = loaded()
    assert detector.detect(np.full((3, 16_000, 3), 255, np.uint8)) == []
    assert detector.detect(np.full((800, 600, 3), 255, np.uint8)) == []
    assert detector.detect(np.full((1, 1, 3), 0, np.uint8)) == []


@needs_korean
def test_syllables_that_published_korean_data_does_not_list_are_read():
    page = render(["낡은 전선을 바꾸고 땀을 닦았다.", "춥고 배고픈 밤에 닭을 샀다."], "korean")
    read = tesseract_engine.TesseractRecognizer("ko").recognize([page[46:94, 70:800], page[116:164, 70:800]])
    assert [line.text for line in read] == ["낡은 전선을 바꾸고 땀을 닦았다.", "춥고 배고픈 밤에 닭을 샀다."]


@needs_korean
def test_odd_line_images_do_not_break_tesseract():
    odd = [np.full(shape, 255, np.uint8) for shape in ((1, 1, 3), (3, 900, 3), (900, 3, 3), (40, 12000, 3))]
    line = render(KOREAN[:1], "korean")[46:94, 70:700]
    read = tesseract_engine.TesseractRecognizer("ko").recognize([odd[0], line, *odd[1:]])
    assert read[1].text == KOREAN[0]
    assert len(read[1].centers) == len(read[1].text)
    assert [one.text for one in (read[0], *read[2:])] == [""] * 4


@pytest.mark.slow
@needs_korean
@pytest.mark.skipif(shutil.which("tesseract") is None, reason="the program tesseract is not installed")
def test_library_and_program_read_the_same(monkeypatch, capfd):
    page = render(KOREAN, "korean")
    lines = [page[46 + 70 * row : 94 + 70 * row, 70:1100] for row in range(len(KOREAN))]
    library = tesseract_engine.TesseractRecognizer("ko")
    read = library.recognize(lines)
    assert library.recognize(lines[::-1])[::-1] == read, "a line is read the same whatever was read before"
    library.close()
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(tesseract_engine, "library", lambda: None)
    by_program = tesseract_engine.TesseractRecognizer("ko").recognize(lines)
    assert [line.text for line in by_program] == [line.text for line in read]
    # Releases of Tesseract differ by a pixel.
    assert np.allclose(by_program[0].centers, read[0].centers, atol=0.01)


@needs_korean
def test_a_hanging_program_is_ended(tmp_path, monkeypatch):
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    tesseract_engine.installed_languages()
    monkeypatch.setattr(tesseract_engine, "library", lambda: None)
    for name, value in (("PROGRAM", str(program)), ("START_SECONDS", 0.2), ("SECONDS_PER_LINE", 0.1)):
        monkeypatch.setattr(tesseract_engine, name, value)
    with pytest.raises(PageTimeoutError):
        tesseract_engine.TesseractRecognizer("ko").recognize([render(ENGLISH[:1])])
