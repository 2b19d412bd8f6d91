import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.retrieval.tokens import TOKENIZER, indexed, match_expression, tokens, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("전통 한지", ["전통", "한지"]),
        ("체험교실", ["체험", "험교", "교실"]),
        ("2층 실습실", ["2", "층", "실습", "습실"]),
        ("Mühle, Größe", ["muhle", "grosse"]),
        ("ＡＢＣ ﬁne", ["abc", "fine"]),
        ("30,000원 1,284.5 12345,678", ["30000", "원", "1284", "5", "12345", "678"]),
        ("東京都の", ["東京", "京都", "都の"]),
        ("ｶﾀｶﾅ", ["カタ", "タカ", "カナ"]),
        ("हिन्दी", ["हिन्दी"]),
        ("snake_case don't", ["snake", "case", "don", "t"]),
        ("¿—…!", []),
    ],
)
def test_tokens_of_each_script(text, expected):
    assert [token.text for token in tokens(text)] == expected


def test_tokens_say_where_they_stand():
    text = "가. 체험교실: Größe"
    assert [text[token.start : token.end] for token in tokens(text)] == ["가", "체험", "험교", "교실", "Größe"]


@given(st.text())
def test_sqlite_takes_each_token_for_one(text):
    words = indexed(text)
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(words, tokenize='{TOKENIZER}')")
        connection.execute("CREATE VIRTUAL TABLE instances USING fts5vocab(texts, instance)")
        connection.execute("INSERT INTO texts VALUES (?)", (words,))
        assert connection.execute("SELECT count(*) FROM instances").fetchone()[0] == len(words.split(" ")) * bool(words)
    connection.close()


@given(st.text(alphabet=st.sampled_from("한지ab\" *^-:(){}NEAROT+\\\0'")))
def test_no_query_is_syntax(query):
    expression = match_expression(query)
    if expression is not None:
        with sqlite3.connect(":memory:") as connection:
            connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(words, tokenize='{TOKENIZER}')")
            connection.execute("INSERT INTO texts VALUES (?)", (indexed(query),))
            assert (
                connection.execute("SELECT count(*) FROM texts WHERE texts MATCH ?", (expression,)).fetchone()[0] == 1
            )
        connection.close()


def test_a_query_without_words_asks_nothing():
    assert match_expression(' "*" -- ') is None


def test_a_single_syllable_finds_the_words_that_begin_with_it():
    assert match_expression("층") == '"층" *'
    assert match_expression("한지") == '"한지"'


def test_a_decomposed_query_is_composed():
    assert match_expression("한지") == match_expression("한지")  # letters (NFD) and syllables


def test_a_very_long_query_is_cut():
    assert match_expression(" ".join(f"word{n}" for n in range(10_000))).count(" OR ") == 127


@pytest.mark.parametrize("text", ["1,111", "가", "'a", "a_"])
def test_hostile_texts_come_to_an_end(text):
    assert sum(1 for _ in tokens(text * 100_000)) >= 1  # quadratic time would be hours


def test_words_are_whole_and_folded() -> None:
    assert list(words("The Mühle: 30,000원, 한지체험")) == ["the", "muhle", "30000", "원", "한지체험"]
