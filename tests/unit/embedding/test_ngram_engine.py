import io
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.embedding.base import CorpusEngine, EmbeddingInput, EngineSettings, Role, normalised
from pagemill.embedding.ngram_engine import STATISTICS, NgramEngine, create
from pagemill.errors import DamagedRunError, EngineError, UsageError

PAGES = [
    "The water wheel turns the beam day and night.",
    "Paper is dried in the loft; the shutters are opened in dry weather.",
    "한지 제작 체험 교실 수강료는 무료입니다. 박물관 실습실에서 했습니다.",
    "水車は昼も夜も回る。紙は乾燥室で乾かす。",
    "Бумага сушится на чердаке.",
]


@pytest.fixture
def engine(tmp_path: Path) -> NgramEngine:
    engine = create(EngineSettings(folder=tmp_path))
    engine.fit(PAGES)
    return engine


def vectors(engine: NgramEngine, texts: list[str], role: Role = Role.PASSAGE) -> np.ndarray:
    return normalised(engine.embed([EmbeddingInput(role=role, text=text) for text in texts]))


def found(engine: NgramEngine, query: str) -> int:
    return int(np.argmax(vectors(engine, PAGES) @ vectors(engine, [query], Role.QUERY)[0]))


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("wheels that turned", 0),  # other endings
        ("shuters of the lfot", 1),  # typing errors
        ("체험교실에서 하다", 2),  # other endings, no space
        ("乾燥室の紙", 3),  # no spaces at all
        ("ЧЕРДАК", 4),
        (unicodedata.normalize("NFD", "수강료"), 2),
        ("ＬＯＦＴ", 1),  # full width
    ],
)
def test_it_finds(engine, query, page):
    assert found(engine, query) == page


def test_vectors_of_pages_do_not_depend_on_other_pages(engine, tmp_path):
    alone = create(EngineSettings(folder=tmp_path / "other"))
    np.testing.assert_array_equal(vectors(engine, PAGES[:1]), vectors(alone, PAGES)[:1])
    assert alone.identity == engine.identity


def test_rare_words_of_a_query_weigh_more(tmp_path):
    pages = [f"the mill and the wheel number {number}" for number in range(50)] + ["the sluice"]
    engine = create(EngineSettings(folder=tmp_path))
    query = "the mill and the sluice"
    scores = [vectors(engine, pages) @ vectors(engine, [query], Role.QUERY)[0]]
    engine.fit(pages)
    scores.append(vectors(engine, pages) @ vectors(engine, [query], Role.QUERY)[0])
    assert scores[1][-1] - scores[1][:-1].max() > scores[0][-1] - scores[0][:-1].max()


def test_statistics_are_kept(engine, tmp_path):
    assert isinstance(engine, CorpusEngine)
    again = create(EngineSettings(folder=tmp_path))
    assert again.statistics
    assert again.statistics == engine.statistics
    assert again.changed(PAGES) == 0
    assert again.changed([*PAGES[1:], "another page"]) == 2 / len(PAGES)
    np.testing.assert_array_equal(vectors(engine, ["loft"], Role.QUERY), vectors(again, ["loft"], Role.QUERY))


def npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


@pytest.mark.parametrize("content", [b"", b"noise", b"PK\x03\x04noise", npy()])
def test_damaged_statistics(tmp_path, content):
    (tmp_path / STATISTICS).write_bytes(content)
    with pytest.raises(DamagedRunError) as error:
        create(EngineSettings(folder=tmp_path))
    assert STATISTICS in error.value.message


def test_what_it_does_not_take(tmp_path, engine):
    for wrong in ({"model": "bge"}, {"servers": ("http://x",)}, {"dimension": 1}, {"dimension": 2**20}):
        with pytest.raises(UsageError):
            create(EngineSettings(folder=tmp_path, **wrong))
    with pytest.raises(EngineError, match="empty"):
        vectors(engine, [" \n"])


@given(st.text(min_size=1))
def test_any_text_has_a_vector(text):
    engine = create(EngineSettings(folder=Path("nowhere"), dimension=64))
    if text.split():
        assert np.isfinite(vectors(engine, [text])).all()


def test_dimension(tmp_path):
    engine = create(EngineSettings(folder=tmp_path, dimension=512))
    assert engine.identity.dimension == vectors(engine, PAGES).shape[1] == 512
