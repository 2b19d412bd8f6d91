import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.joining import HyphenatedWords, KoreanWords, goes_on, join_pair


def joined(lines):
    pieces = [" ".join(line.split()) for line in lines if line.split()]
    return functools.reduce(join_pair, pieces) if pieces else ""


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["the corpo-", "ration was"], "the corporation was"),
        (["for Ein-", "und Ausgang"], "for Ein- und Ausgang"),
        (["pre-", "and post-war"], "pre- and post-war"),
        (["wis-", "y matematica"], "wis- y matematica"),
        (["in the Nether-", "land"], "in the Netherland"),
        (["use-", "after-free"], "use-after-free"),
        (["DAS PRO-", "GRAMM"], "DAS PROGRAMM"),
        (["a DNA-", "based test"], "a DNA-based test"),
        (["soft\u2010", "ware"], "software"),
        (["die Design-Konsis\u2010", "tenz"], "die Design-Konsistenz"),
        (["everything-clau\u2010", "de-code"], "everything-claude-code"),
        (
            ["a well\u2010known state\u2010of\u2010", "the\u2010art"],
            "a well\u2010known state\u2010of\u2010the\u2010art",
        ),
        (["state-of-the-", "art work"], "state-of-the-art work"),
        (["the Anglo-", "Saxon era"], "the Anglo-Saxon era"),
        (["from 1990-", "1995 on"], "from 1990- 1995 on"),
        (["a dash -", "here"], "a dash - here"),
        (["http://www.a.org/x/", "y.html"], "http://www.a.org/x/y.html"),
        (["汉字在这里换", "行没有空格"], "汉字在这里换行没有空格"),
        (["삼성카드 홈페이지", "에서 확인"], "삼성카드 홈페이지에서 확인"),
        (["일시불 및", "할부 이용금액"], "일시불 및 할부 이용금액"),
        (["  spaces   inside ", "", " and out "], "spaces inside and out"),
        ([], ""),
    ],
)
def test_joining_lines(lines, text):
    assert joined(lines) == text


@pytest.mark.parametrize(
    ("before", "after", "text", "joined"),
    [
        ("a well-", "known man", "the well-known one", "a well-known man"),
        ("a well-", "known man", "the well\u2010read and the known", "a well-known man"),
        ("a well-", "known man", "the man", "a wellknown man"),
        ("an Over-", "View of", "the overview", "an OverView of"),
        ("the Anglo-", "saxon one", "Anglosaxon", "the Anglosaxon one"),
        ("voor-", "en nadelen", "een en ander", "voor- en nadelen"),
        ("Frau-", "en sind", "die Frau ist", "Frauen sind"),
        ("Kin-", "der sind", "der Mann", "Kinder sind"),
        ("so\u2010", "und so", "und", "so\u2010 und so"),
    ],
)
def test_words_of_the_text_show_what_a_hyphen_is(before, after, text, joined):
    words = HyphenatedWords()
    words.add(text)
    assert join_pair(before, after, words.joint(before, after)) == joined


@given(st.lists(st.text(max_size=20), max_size=8))
def test_joining_never_loses_a_letter(lines):
    kept = [char for char in joined(lines) if char.isalnum()]
    assert kept == [char for char in "".join(lines) if char.isalnum()]


@pytest.mark.parametrize(
    ("before", "after", "on"),
    [
        ("no one thing that no", "ledger records", True),
        ("The end.", "Another start", False),
        ("required trans-", "Atlantic trade", True),
        ("그 결과를", "정리하고자 한다", True),
    ],
)
def test_going_on(before, after, on):
    assert goes_on(before, after) == on


@pytest.mark.parametrize(
    ("before", "after", "goes_on"),
    [
        ("공공 데", "이터를 개방한다", True),  # 데이터 stands elsewhere
        ("지원 사", "업을 추진한다", True),
        ("데이터", "개방을 추진", False),  # both stand alone elsewhere
        ("체계를 마련", "하여 시행한다", True),  # 하여 starts no line of its own
        ("수질", "총량을 줄인다", None),
        ("2026", "년부터", False),  # not a word of syllables
    ],
)
def test_words_of_the_text_show_whether_a_korean_word_continues(before: str, after: str, goes_on: bool | None) -> None:
    words = KoreanWords()
    words.add("데이터 개방을 위한 사업은 올해부터 데이터 분석과 함께 추진한다")
    assert words.goes_on(before, after) is goes_on


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("정류장 376", "곳의 설치", "정류장 376곳의 설치"),
        ("2023", "년도 예산", "2023년도 예산"),
        ("제3", "항만 사무소", "제3 항만 사무소"),
        ("총 5", "일반 문의", "총 5 일반 문의"),
    ],
)
def test_korean_counters_stand_tight_behind_figures_also_where_a_line_broke(
    before: str, after: str, joined: str
) -> None:
    assert join_pair(before, after) == joined


def test_a_long_korean_paragraph_shows_how_its_own_words_continue() -> None:
    before = "지역사회의 전통시장은 올해부터 지역사회와 함께 축제를 열고 지역사"
    after = "회의 뜻을 모아 내년 상반기까지 새로운 방안을 마련하여 널리 알린다."
    assert join_pair(before, after) == before + after


KOREAN = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=8)


@given(st.lists(KOREAN, min_size=2, max_size=30), st.data())
def test_joining_loses_nothing_and_words_that_stand_alone_stay_apart(words: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(words) - 1))
    before, after = " ".join(words[:cut]), " ".join(words[cut:])
    joined = join_pair(before, after)
    assert joined in (before + after, f"{before} {after}")
    known = KoreanWords()
    known.add(" ".join(words))
    if known.goes_on(before, after) is False:
        assert words[cut - 1] in words


@given(st.lists(KOREAN.filter(lambda word: len(word) > 2), min_size=1, max_size=30), st.data())
def test_a_word_written_elsewhere_is_whole_again(words: list[str], data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(words))
    cut = data.draw(st.integers(1, len(word) - 1))
    known = KoreanWords()
    known.add(" ".join(words))
    assert known.goes_on(word[:cut], word[cut:])


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("see https://a.org/x-", "y/z", "see https://a.org/x-y/z"),
        ("see https://a.org/x", "/y", "see https://a.org/x/y"),
        ("at www.a.org/?q=", "b now", "at www.a.org/?q=b now"),
        ("see https://a.org/x", "and more", "see https://a.org/x and more"),
    ],
)
def test_an_address_continues_without_a_space(before, after, joined):
    assert join_pair(before, after) == joined
