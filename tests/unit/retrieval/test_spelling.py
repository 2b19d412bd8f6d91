import pytest

from pagemill.retrieval.spelling import SpeltWords

PAGE = (
    "The drying loft has shutters; 30,000 sheets a year. Papiermühlen und Wasserräder."
    " 한지 체험교실 수강료 안내. книгами"
)


@pytest.mark.parametrize(
    "query",
    [
        "shuters",
        "shuttesr",
        "SHUTTERS",
        "ldoft",
        "drying",
        "Muhle",
        "wasserrader",
        "паровоз книга",
        "수강뇨",
        "체험 교싈",
    ],
)
def test_words_with_an_error_are_like_those_of_a_text(query: str) -> None:
    assert SpeltWords(query).are_like_some_of(PAGE)


def test_korean_particles_do_not_count_as_errors() -> None:
    assert SpeltWords("신쳥서").are_like_some_of("신청서는 3월 9일부터")
    assert SpeltWords("누리짐").are_like_some_of("박물관 누리집에서는 알려 드립니다")
    assert not SpeltWords("바둑판").are_like_some_of("신청서는 박물관 누리집에서는 알려 드립니다")
    assert not SpeltWords("shut").are_like_some_of("shuffled")


@pytest.mark.parametrize("query", ["dryingloft", "thedrying", "체험교실수강료", "mühlen", "30000"])
def test_spaces_and_compounds_do_not_matter(query: str) -> None:
    assert SpeltWords(query).are_like_some_of(PAGE)


@pytest.mark.parametrize(
    "query", ["xqzvw plorth", "asdfgh", "30001", "0000", "lfo", "뷁쉛", "", "?!", "🙂", "ㅁㄴㅇㄹ", "a" * 10_000]
)
def test_nonsense_is_like_nothing(query: str) -> None:
    assert not SpeltWords(query).are_like_some_of(PAGE)
    assert not SpeltWords(query).are_like_some_of("")


def test_numbers_may_be_parts_and_are_never_alike() -> None:
    assert SpeltWords("46291").are_like_some_of("invoice 84629175")
    assert not SpeltWords("84629176").are_like_some_of("invoice 84629175")
    assert not SpeltWords("46291").are_like_some_of("846 291")


def test_a_query_of_very_many_words_is_bounded() -> None:
    assert not SpeltWords(" ".join(f"q{number}x" for number in range(1000)) + " loft").are_like_some_of("loft")
