"""Every script with and without its engine: what is not read is said, what is read is right, nothing is turned round.

Pages are drawn; a script is skipped where Debian's font for it is not installed, or Pillow cannot shape it.
"""

import functools
import os
import subprocess

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont, features

from pagemill.errors import LanguageError
from pagemill.recognition import rapidocr_engine
from pagemill.recognition.languages import LANGUAGE_OF_SCRIPT, TESSDATA_NAMES, plan, remedy_for
from pagemill.recognition.reader import PageReader
from pagemill.recognition.scripts import FIGURES, script_shares
from pagemill.recognition.tesseract_engine import TesseractRecognizer, installed_languages
from pagemill.recognition.verdict import POORLY_READ
from pagemill_eval.text import character_error_rate

pytestmark = [pytest.mark.slow, pytest.mark.integration]

PAGES = {
    "LATIN": [
        "The committee met on 14 March 2024.",
        "Most of the equipment was replaced.",
        "Rainfall was below average again.",
        "She walked along the river alone.",
        "Further details follow in section 4.",
    ],
    "CJK": [
        "政府已经向大会提交了明年的预算方案",
        "连日晴好的天气使农产品价格逐渐稳定",
        "委员会依照规定完成了审议工作",
        "孩子们在操场上奔跑老师在树下微笑",
    ],
    "HIRAGANA": [
        "政府は来年度の予算案を国会に提出した",
        "図書館は平日の午前から利用できます",
        "子どもたちは休み時間に校庭で走った",
        "祖母は昔話をしながら栗をむいてくれた",
    ],
    "HANGUL": [
        "정부는 내년도 예산안을 국회에 제출하였다",
        "지역 주민의 의견을 수렴하여 계획을 세웠다",
        "맑은 날씨가 이어지면서 가격이 안정되었다",
        "학생들은 쉬는 시간마다 운동장에서 놀았다",
    ],
    "CYRILLIC": [
        "Правительство внесло проект бюджета",
        "Библиотека открыта по будням с утра",
        "Дети бегали по школьному двору",
        "Бабушка рассказывала старые сказки",
        "Он вышел из дома и не оглядывался",
    ],
    "VIETNAMESE": [
        "Chính phủ đã trình quốc hội ngân sách",
        "Thư viện mở cửa từ sáng đến chiều",
        "Những đứa trẻ chạy nhảy trên sân trường",
        "Bà kể chuyện cổ tích và bóc hạt dẻ",
        "Thời tiết nắng đẹp giúp giá ổn định",
    ],
    "ARABIC": [
        "قدمت الحكومة مشروع ميزانية العام المقبل",
        "تفتح المكتبة أبوابها في الصباح",
        "ركض الأطفال في ساحة المدرسة",
        "كانت الجدة تحكي القصص القديمة",
        "وصل القطار إلى المحطة بعد منتصف الليل",
    ],
    "HEBREW": [
        "הממשלה הגישה את הצעת התקציב לכנסת",
        "הספרייה פתוחה בימי חול מהבוקר",
        "הילדים רצו בחצר בית הספר",
        "סבתא סיפרה סיפורים ישנים",
        "פרטים נוספים מופיעים בפרק הרביעי",
    ],
    "DEVANAGARI": [
        "सरकार ने अगले वर्ष का बजट प्रस्तुत किया",
        "पुस्तकालय सुबह से शाम तक खुला रहता है",
        "बच्चे मैदान में दौड़ते और खेलते हैं",
        "दादी ने पुरानी कहानियाँ सुनाईं",
        "समिति ने विचार पूरा किया",
    ],
    "THAI": [
        "รัฐบาลได้เสนอร่างงบประมาณปีหน้า",
        "ห้องสมุดเปิดให้บริการในวันธรรมดา",
        "เด็กวิ่งเล่นในสนามโรงเรียน",
        "คุณยายเล่านิทานเก่าให้หลานฟัง",
        "รายละเอียดอยู่ในรายงาน",
    ],
    "GREEK": [
        "Η κυβέρνηση κατέθεσε τον προϋπολογισμό",
        "Η βιβλιοθήκη είναι ανοιχτή από το πρωί",
        "Τα παιδιά έτρεχαν στην αυλή του σχολείου",
        "Η γιαγιά έλεγε παλιές ιστορίες",
    ],
    "GEORGIAN": [
        "მთავრობამ ბიუჯეტი პარლამენტს წარუდგინა",
        "ბიბლიოთეკა ღიაა დილიდან საღამომდე",
        "ბავშვები სკოლის ეზოში თამაშობდნენ",
        "ბებია ძველ ამბებს ყვებოდა",
    ],
    "ARMENIAN": [
        "Կառավարությունը ներկայացրեց բյուջեն",
        "Գրադարանը բաց է առավոտից երեկո",
        "Երեխաները վազում էին դպրոցի բակում",
        "Տատիկը պատմում էր հին հեքիաթներ",
    ],
    "BENGALI": [
        "সরকার আগামী বছরের বাজেট পেশ করেছে",
        "গ্রন্থাগার সকাল থেকে খোলা থাকে",
        "শিশুরা মাঠে দৌড়াদৌড়ি করছিল",
        "দাদি পুরানো গল্প শোনাতেন",
    ],
    "TAMIL": [
        "அரசு வரவு செலவுத் திட்டத்தை சமர்ப்பித்தது",
        "நூலகம் காலை முதல் திறந்திருக்கும்",
        "குழந்தைகள் மைதானத்தில் விளையாடினார்கள்",
        "பாட்டி பழைய கதைகளைச் சொன்னார்",
    ],
    "TELUGU": [
        "ప్రభుత్వం బడ్జెట్‌ను సభలో ప్రవేశపెట్టింది",
        "గ్రంథాలయం ఉదయం నుండి తెరిచి ఉంటుంది",
        "పిల్లలు మైదానంలో ఆడుకున్నారు",
        "అమ్మమ్మ పాత కథలు చెప్పేది",
    ],
}
READ_BY_THE_FIRST = {"LATIN", "CJK", "HIRAGANA"}
OTHERS = sorted(PAGES.keys() - READ_BY_THE_FIRST)
LARGE = bool(os.environ.get("PAGEMILL_TEST_LARGE"))
SOME = OTHERS if LARGE else ["ARABIC", "CYRILLIC", "HANGUL", "THAI", "VIETNAMESE"]
"""Of each kind of look-alike one: reading a page takes seconds."""
LEFTWARDS = {"ARABIC", "HEBREW"}


def draw(script: str) -> np.ndarray:
    """A page of some lines, as a scan of 200 dpi holds them."""
    if not features.check("raqm"):
        pytest.skip("Pillow has no libraqm, which shapes text")
    language = {"CJK": "zh-cn", "HIRAGANA": "ja", "LATIN": "en"}.get(script) or LANGUAGE_OF_SCRIPT[script]
    found = subprocess.run(
        ["fc-match", "-f", "%{file}\t%{index}\t%{lang}", f"serif:lang={language}:slant=roman:weight=regular"],
        capture_output=True, text=True, check=False,
    ).stdout.split("\t")  # fmt: skip
    if len(found) != 3 or language not in found[2].split("|"):
        pytest.skip(f"there is no font for {script}")
    font = ImageFont.truetype(found[0], 34, index=int(found[1]) & 0xFFFF)
    options = {"direction": "rtl"} if script in LEFTWARDS else {}
    lines = PAGES[script]
    page = Image.new("RGB", (1100, 240 + 75 * len(lines)), (252, 252, 250))  # short: each page is read in seconds
    pen = ImageDraw.Draw(page)
    for row, line in enumerate(lines):
        x = 1000 - pen.textlength(line, font=font, **options) if script in LEFTWARDS else 100
        pen.text((x, 120 + 75 * row), line, font=font, fill=(30, 30, 30), **options)
    return np.asarray(page)


@functools.cache
def embedded():
    return rapidocr_engine.RapidOcrDetector(), {offer.name: offer.create() for offer in rapidocr_engine.offers()}


class Reading:
    """Reads pages in place, with the embedded engines and some of Tesseract's languages."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        self.detector, recognizers = embedded()
        self.recognizers = recognizers | {f"tesseract:{each}": TesseractRecognizer(each) for each in languages}
        self.coverage = {offer.name: offer.languages for offer in rapidocr_engine.offers()}
        self.coverage |= {f"tesseract:{each}": frozenset({each}) for each in languages}

    async def detect(self, page):
        return self.detector.detect(page)

    async def recognize(self, engine, lines):
        return self.recognizers[engine].recognize(lines)

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)

    async def read(self, page, languages=None):
        return await PageReader(plan(languages, self.coverage, "rapidocr"), self).read(page)


@pytest.fixture(autouse=True)
def no_downloads(monkeypatch, tmp_path):
    monkeypatch.setenv("PAGEMILL_MODELS", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))


def reading(*languages: str) -> Reading:
    """With the packages for some languages alone; skipped where they are not installed."""
    for language in set(languages) - installed_languages():
        pytest.skip(f"tesseract-ocr-{TESSDATA_NAMES[language]} is not installed")
    return Reading(languages)


def test_the_detector_shows_every_script_and_which_way_is_up():
    for script in PAGES:
        page = draw(script)
        rows = [page[112 + 75 * row : 168 + 75 * row] for row in range(4)]
        lines = [row[:, np.flatnonzero((row < 128).any(axis=(0, 2)))[[0, -1]][0] : 1010] for row in rows]
        shares = script_shares(lines)
        shares.pop(FIGURES)
        japanese = {"HIRAGANA", "CJK"}
        best = max(shares, key=shares.__getitem__)
        assert best == script or {best, script} == japanese, (script, shares)
        upside_down = script_shares([line[::-1, ::-1] for line in lines])
        assert sum(share for name, share in upside_down.items() if name[0] == "~") > 0.5, script


@pytest.mark.parametrize("script", SOME)
async def test_a_script_without_its_package_is_never_done_without_a_word(script):
    read = reading()
    try:
        page = await read.read(draw(script), None)
    except LanguageError as error:
        assert script.title() in error.message
        assert error.remedy == remedy_for([LANGUAGE_OF_SCRIPT[script]])
    else:
        assert script == "VIETNAMESE"
        assert (page.script, page.foreign) == (script, len(page.lines))


@pytest.mark.parametrize("script", SOME)
async def test_the_same_with_a_package_for_another_script(script):
    """An engine for another script is not taken for it, however sure it is of what it reads."""
    other = "ko" if script != "HANGUL" else "th"
    read = reading(other)
    try:
        page = await read.read(draw(script), None)
        assert page.script == script or (page.quality or 0) < POORLY_READ
    except LanguageError as error:
        assert script.title() in error.message


@pytest.mark.parametrize("script", OTHERS)
async def test_a_script_with_its_package_is_read(script):
    read = reading(LANGUAGE_OF_SCRIPT[script], "ko" if script != "HANGUL" else "th")
    page = await read.read(draw(script), None)
    lines = sorted(page.lines, key=lambda line: line.box[1])
    expected = "\n".join(PAGES[script])
    assert character_error_rate("\n".join(line.text for line in lines), expected) < 0.06
    assert (page.rotation, page.script) == (0, None)
    if script in LEFTWARDS:
        for line in lines:
            places = [word.box[0] for word in line.words]
            assert places == sorted(places, reverse=True)
            assert [word.text for word in line.words] == line.text.split()


@pytest.mark.parametrize(
    ("script", "degrees"),
    [*((script, 180) for script in (sorted(PAGES) if LARGE else ["LATIN", *SOME])), ("CJK", 0), ("THAI", 0)],
)
async def test_a_page_is_turned_upright_though_nothing_reads_it(script, degrees):
    read = reading()
    page = await read.read(np.ascontiguousarray(np.rot90(draw(script), degrees // 90)), ["en"])
    assert page.rotation == degrees
