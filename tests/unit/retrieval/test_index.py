import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import retrieval_runs as runs
from synthetic_run import page, region, write_run

from pagemill.document.labels import Label
from pagemill.document.page import Description
from pagemill.embedding.base import EmbeddingInput, EngineSettings, Role, normalised
from pagemill.embedding.ngram_engine import NgramEngine
from pagemill.embedding.vectors import FOLDER, Part
from pagemill.errors import DifferentRunError, MissingInputError, UsageError
from pagemill.retrieval import database, spelling
from pagemill.retrieval import index as search_index
from pagemill.retrieval.building import build_index
from pagemill.retrieval.hits import Filters, IndexPart
from pagemill.retrieval.index import SearchIndex
from pagemill.retrieval.tokens import TOKENIZER


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("indexed") / "run"
    write_run(out, runs.pages())
    build_index(out)
    return out


@pytest.fixture
def run(indexed: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(indexed, tmp_path / "run")


@pytest.fixture
def embedded(run: Path) -> Path:
    for part in (Part.TEXT, Part.REGIONS, Part.IMAGES):
        runs.embed(run, part, dtype="float16")
    build_index(run)
    return run


def found(out: Path, query: str | None, **options) -> list[str]:
    with SearchIndex(out) as index:
        return [hit.page_id for hit in index.search(query, **options)]


@pytest.mark.parametrize(
    ("query", "page_id"),
    [
        ("한지 교실", "공고_1"),
        ("체험 교실", "공고_1"),
        ("한지체험", "공고_1"),
        ("수강료", "공고_2"),
        ("30000원", "공고_2"),
        ("turning wheels", "mill_1"),
        ("SHUTTER", "mill_2"),
        ("tail race", "mill_2"),
    ],
)
def test_words_find_the_page_that_has_them(run: Path, query: str, page_id: str) -> None:
    assert found(run, query)[:1] == [page_id]


@pytest.mark.parametrize("query", ["", "?!", "unheardof", '"', "NEAR(", "a" * 100_000])
def test_what_stands_nowhere_finds_nothing(run: Path, query: str) -> None:
    assert found(run, query) == []


def test_running_heads_that_texts_leave_out_are_found(run: Path) -> None:
    assert found(run, "물레시") == ["공고_1"]


def test_a_hit_shows_where_it_is(run: Path) -> None:
    with SearchIndex(run) as index:
        (hit,) = index.search("the tail race", top=1)
    assert (hit.rank, hit.page_id, hit.doc_id, hit.page_number, hit.source) == (1, "mill_2", "mill", 2, "mill.pdf")
    assert (hit.region, hit.label, hit.bbox_2d) == (1, "image", (100, 0, 190, 90))
    assert hit.crop == "crops/mill_2_crop_1.jpg"
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["The", "tail", "race"]
    assert hit.parts[IndexPart.FULL_TEXT].rank == 1
    assert hit.score == pytest.approx(1 / 61)


def test_words_on_most_pages_are_not_marked(tmp_path: Path) -> None:
    pages = [*runs.pages(), *runs.pages()[:1]]
    pages[-1].doc_id, pages[-1].page_id = "mill-2", "mill-2_1"
    write_run(tmp_path / "run", pages)
    build_index(tmp_path / "run")
    with SearchIndex(tmp_path / "run") as index:  # "the" is on 3 of 5 pages
        (hit,) = index.search("the shutters", top=1)
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["shutters"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(documents=("mi*",)), {"mill_1", "mill_2"}),
        (Filters(documents=("공고", "x")), set()),
        (Filters(documents=("mill",), pages=("공고*",)), set()),
        (Filters(pages=("*_2",)), {"mill_2"}),
        (Filters(documents=("mi*",), pages=("*_1",)), {"mill_1"}),
        (Filters(labels=("image",)), {"mill_2"}),
        (Filters(labels=("doc_title", "image")), {"mill_1", "mill_2"}),
        (Filters(labels=("image",), pages=("*_1",)), set()),
        (Filters(languages=("und-latn",)), {"mill_1", "mill_2"}),
        (Filters(languages=("ko",)), set()),
    ],
)
def test_filters(embedded: Path, filters: Filters, expected: set[str]) -> None:
    assert set(found(embedded, "the", filters=filters)) == expected
    with SearchIndex(embedded) as index:
        vectors = dict.fromkeys(index.vectors, runs.letters("the"))
        by_vectors = index.search(None, vectors=vectors, filters=filters)
    for hit in by_vectors:
        assert not filters.labels or hit.label in filters.labels
        assert not filters.languages or hit.language.lower() in filters.languages


def test_labels_select_and_weigh_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    labels = [Label.TEXT, Label.TABLE, Label.TEXT, Label.TEXT, Label.FIGURE_TITLE, Label.TEXT, Label.TEXT]
    write_run(
        out,
        [page("d", n, [region(0, each, f"{'wheel' if n < 6 else 'mill'} {n}")]) for n, each in enumerate(labels, 1)],
    )
    build_index(out)
    with SearchIndex(out) as index:
        hits = index.search("wheel table", filters=Filters(labels=("table", "Figure title", 'table" OR words')))
        assert [hit.page_id for hit in hits] == ["d_2", "d_5"]
        assert len({hit.parts[IndexPart.FULL_TEXT].score for hit in hits}) == 1


def test_each_label_is_another_token() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE labels USING fts5(label, tokenize='{TOKENIZER}')")
        connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(labels, row)")
        connection.executemany("INSERT INTO labels VALUES (?)", [(database.label_token(label),) for label in Label])
        assert connection.execute("SELECT count(*) FROM vocabulary").fetchone()[0] == len(Label)


@pytest.mark.parametrize(
    "filters",
    [Filters(labels=("tabel",)), Filters(languages=("ru",)), Filters(documents=("mil",)), Filters(pages=("*_9",))],
)
def test_filters_that_name_what_is_not_there_say_what_is(run: Path, filters: Filters) -> None:
    with SearchIndex(run) as index, pytest.raises(UsageError) as caught:
        index.search("the", filters=filters)
    assert "Available: " in (caught.value.remedy or "")


@pytest.mark.parametrize("languages", [("english",), ("en", "english"), ("xx",), ("",)])
def test_a_language_that_is_none_is_refused(run: Path, languages: tuple[str, ...]) -> None:
    with SearchIndex(run) as index, pytest.raises(UsageError, match="not a language code") as caught:
        index.search("the", filters=Filters(languages=languages))
    assert "de, el, en, es" in (caught.value.remedy or "")


def test_parts_are_fused_by_reciprocal_rank(embedded: Path) -> None:
    with SearchIndex(embedded) as index:
        vectors = {part: runs.letters("Water turns the wheel.") for part in (IndexPart.TEXT, IndexPart.REGIONS)}
        rankings = index.rankings("loft shutters", vectors=vectors)
        hits = index.search("loft shutters", vectors=vectors)
    assert set(rankings) == {IndexPart.TEXT, IndexPart.REGIONS, IndexPart.FULL_TEXT}
    for hit in hits:
        assert hit.score == pytest.approx(sum(1 / (60 + place.rank) for place in hit.parts.values()))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_chosen_parts_alone_are_searched(embedded: Path) -> None:
    with SearchIndex(embedded) as index:
        vectors = dict.fromkeys(index.vectors, runs.letters("wheel"))
        hits = index.search("wheel", vectors=vectors, parts=[IndexPart.REGIONS])
    assert {part for hit in hits for part in hit.parts} == {IndexPart.REGIONS}


def test_dense_search_is_exact(tmp_path: Path) -> None:
    write_run(tmp_path / "run", runs.pages())
    random = np.random.default_rng(0)
    known = {}

    def vector(text: str) -> np.ndarray:
        known[text] = random.standard_normal(runs.DIMENSION).astype(np.float32)
        known[text] /= np.linalg.norm(known[text])
        return known[text]

    runs.embed(tmp_path / "run", Part.TEXT, vector=vector)
    build_index(tmp_path / "run")
    query = next(iter(known.values()))
    with SearchIndex(tmp_path / "run") as index:
        ranking = index.rankings(None, vectors={IndexPart.TEXT: query})[IndexPart.TEXT]
    expected = sorted((float(each @ query) for each in known.values() if each @ query > 0), reverse=True)
    assert [ranked.score for ranked in ranking] == pytest.approx(expected)


def test_pages_of_very_many_regions_leave_others_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "DEPTH", 2)
    out = tmp_path / "run"
    many = [region(index, Label.TEXT, "aaaa") for index in range(50)]
    write_run(out, [page("d", 1, many), page("d", 2, [region(0, Label.TEXT, "aaab")])])
    runs.embed(out, Part.REGIONS)
    build_index(out)
    with SearchIndex(out) as index:
        ranked = index.rankings(None, vectors={IndexPart.REGIONS: runs.letters("aaaa")})[IndexPart.REGIONS]
        assert index.names([each.page for each in ranked]) == ["d_1", "d_2"]


def test_vectors_that_were_replaced_are_refused(embedded: Path) -> None:
    path = embedded / FOLDER / "corpus_ocr_text.npy"
    path.write_bytes(path.read_bytes() + b"\0")
    with SearchIndex(embedded) as index:
        assert index.search("wheel")  # words need no vectors
        with pytest.raises(DifferentRunError) as caught:
            index.search("wheel", vectors={IndexPart.TEXT: runs.letters("wheel")})
    assert "pagemill index" in (caught.value.remedy or "")


def test_the_index_of_a_run_that_was_started_over_is_refused(run: Path) -> None:
    with SearchIndex(run):
        pass
    import sqlite3

    with sqlite3.connect(run / "index" / "index.sqlite") as connection:
        connection.execute("UPDATE runs SET started = '2001-01-01'")
    connection.close()
    with pytest.raises(DifferentRunError, match="earlier run"):
        SearchIndex(run)


def test_without_an_index_the_remedy_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError) as caught:
        SearchIndex(tmp_path)
    assert "pagemill index" in (caught.value.remedy or "")


def test_near_duplicates_say_the_same_or_look_the_same(tmp_path: Path) -> None:
    pages = [*runs.pages(), *runs.pages()[:1]]
    pages[-1].doc_id, pages[-1].page_id = "copy", "copy_1"
    write_run(tmp_path / "run", pages)
    build_index(tmp_path / "run")
    with SearchIndex(tmp_path / "run") as index:
        assert index.near_duplicates("mill_1", similarity=0.98) == ["copy_1"]
        assert index.near_duplicates("mill_2", similarity=0.98) == []
        assert index.near_duplicates("unknown", similarity=0.98) == []
    runs.embed(tmp_path / "run", Part.TEXT, vector=lambda text: runs.letters("all the same"))
    build_index(tmp_path / "run")
    with SearchIndex(tmp_path / "run") as index:
        assert len(index.near_duplicates("mill_2", similarity=0.98)) == 4


def test_an_index_is_read_where_nothing_may_be_written(run: Path) -> None:
    folder = run / "index"
    for name in ("index.sqlite-wal", "index.sqlite-shm"):
        (folder / name).unlink(missing_ok=True)
    folder.chmod(0o555)
    try:
        assert found(run, "wheel") == ["mill_1"]
    finally:
        folder.chmod(0o755)


def test_a_copy_is_searched_like_the_run(embedded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(embedded, copy, copy_function=shutil.copy)  # with other times
    vectors = {IndexPart.TEXT: runs.letters("Water turns the wheel.")}
    with SearchIndex(copy) as index, SearchIndex(embedded) as original:
        assert index.behind is None
        found = [hit.page_id for hit in index.search("loft", vectors=vectors)]
        assert found == [hit.page_id for hit in original.search("loft", vectors=vectors)] != []


class TestVectorsOfSpelling:
    """What the vectors of the embedded engine alone find."""

    @pytest.fixture
    def spelt(self, run: Path) -> Path:
        self.embed(run, Part.TEXT, Part.REGIONS)
        return run

    @staticmethod
    def engine(run: Path) -> NgramEngine:
        return NgramEngine(EngineSettings(folder=run / FOLDER))

    def embed(self, run: Path, *parts: Part) -> None:
        engine = self.engine(run)
        for part in parts:
            runs.embed(run, part, vector=lambda text: self.vector(engine, text), identity=engine.identity)
        build_index(run)

    @staticmethod
    def vector(engine: NgramEngine, text: str) -> np.ndarray:
        return normalised(engine.embed([EmbeddingInput(role=Role.PASSAGE, text=text)]))[0]

    def found(self, run: Path, query: str, **options: Any) -> list[str]:
        with SearchIndex(run) as index:
            vectors = dict.fromkeys(index.vectors, self.vector(self.engine(run), query))
            return [hit.page_id for hit in index.search(query, vectors=vectors, **options)]

    @pytest.mark.parametrize("query", ["xqzvw plorth", "qwertyuiop", "뷁쉛", "84629175", "?!"])
    def test_nonsense_finds_nothing(self, spelt: Path, query: str) -> None:
        with SearchIndex(spelt) as index:  # though the vectors are a little like it
            vectors = dict.fromkeys(index.vectors, self.vector(self.engine(spelt), "shutterish"))
            assert any(index.rankings(query, vectors=vectors).values())
            assert index.search(query, vectors=vectors) == []
        assert self.found(spelt, query) == []

    @pytest.mark.parametrize(
        ("query", "page_id"),
        [("shuterss", "mill_2"), ("wheeel", "mill_1"), ("체헙교싈", "공고_1"), ("papermill", "mill_1")],
    )
    def test_misspelt_words_find_their_page_and_no_other(self, spelt: Path, query: str, page_id: str) -> None:
        assert self.found(spelt, query) == [page_id]

    def test_a_page_of_the_tail_is_left_out(self, spelt: Path) -> None:
        assert self.found(spelt, "wheel") == ["mill_1"]
        assert set(self.found(spelt, "wheel 수강료")) == {"mill_1", "공고_2"}

    def test_words_count_when_vectors_alone_are_asked(self, spelt: Path) -> None:
        """Other endings, which the full text knows, and an edit distance would not forgive."""
        assert self.found(spelt, "turned", parts=[IndexPart.TEXT]) == ["mill_1"]
        assert self.found(spelt, "xqzvw", parts=[IndexPart.TEXT]) == []

    def test_with_labels_their_regions_alone_are_looked_at(self, spelt: Path) -> None:
        filters = Filters(labels=("doc_title",))
        assert self.found(spelt, "papper", filters=filters) == ["mill_1"]
        assert self.found(spelt, "wheeel", filters=filters) == []

    def test_the_nearest_are_looked_at(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spelling, "_COMPARED", 2)
        out = tmp_path / "run"
        write_run(out, [page("d", n, [region(0, Label.TEXT, f"shutters{' and so on' * n}")]) for n in range(1, 5)])
        self.embed(out, Part.TEXT)
        assert self.found(out, "shuters", top=1) == ["d_1"]
        assert self.found(out, "shuters", top=2) == ["d_1", "d_2"]
        assert len(self.found(out, "shuters", top=4)) == 4

    def test_a_model_is_believed(self, run: Path) -> None:
        runs.embed(run, Part.TEXT)
        self.embed(run, Part.REGIONS)
        with SearchIndex(run) as index:
            vectors = {IndexPart.TEXT: runs.letters("xqzvw"), IndexPart.REGIONS: self.vector(self.engine(run), "xqzvw")}
            assert index.search("xqzvw", vectors=vectors) != []
            assert index.search("xqzvw", vectors=vectors, parts=[IndexPart.REGIONS]) == []
            assert index.search(None, vectors=vectors) != []  # nothing to compare words with


def test_descriptions_are_found_and_weigh_less_than_the_page(tmp_path: Path) -> None:
    image = region(0, Label.IMAGE)
    image.description = Description(
        summary="A waterwheel beside a mill.", keywords=("wooden aqueduct",), chart=(("Year", "Sheets"), ("1788", "40"))
    )
    pages = [page("shown", 1, [image]), page("said", 1, [region(0, Label.TEXT, "A waterwheel beside a mill.")])]
    pages += [page("other", number, [region(0, Label.TEXT, f"Prose {number}.")]) for number in (1, 2, 3)]
    write_run(tmp_path / "run", pages)
    build_index(tmp_path / "run")
    with SearchIndex(tmp_path / "run") as index:
        assert [hit.page_id for hit in index.search("waterwheel")] == ["said_1", "shown_1"]
        for words in ("aqueduct", "sheets 1788"):
            (hit,) = index.search(words)
            assert (hit.page_id, hit.label, hit.region) == ("shown_1", "image", 0)
        assert "aqueduct" in hit.snippet
        (hit,) = index.search("aqueduct", filters=Filters(labels=("image",)))
        assert hit.page_id == "shown_1"
        assert index.near_duplicates("shown_1", similarity=0.9) == []
