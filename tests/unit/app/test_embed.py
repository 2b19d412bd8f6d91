"""Vectors of a run: each one belongs to its page and region, whatever happened to the run in between."""

import asyncio
import random
import sqlite3
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_run import damage_record
from synthetic_run import JPEG, failed_page, page, region, sample_pages, write_run
from telling_engine import DIMENSION, TellingEngine, run_embed, vector_of

import pagemill
from pagemill.app.embed import EmbedOptions, embed
from pagemill.app.embedding_engine import open_engine
from pagemill.config.chunking import ChunkSettings
from pagemill.document.labels import Label
from pagemill.document.page import PageResult
from pagemill.embedding.base import EmbeddingInput, EngineSettings, Modality, Role, Vectors, normalised
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import FOLDER, Part, RowKey, VectorFile, VectorPaths, VectorRow
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import DifferentRunError, ExitCode, LockedError, NetworkError, UsageError
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A run of the sample pages."""
    write_run(tmp_path / "run", sample_pages())
    return tmp_path / "run"


def check_texts(out: Path, dtype_tolerance: float = 1e-6) -> None:
    """Each vector is that of its page or region as the records have it now, and none is missing."""
    with RunReader.open(out) as reader:
        pages = list(reader.pages())
    for part in (Part.TEXT, Part.REGIONS):
        wanted = [each for page in pages for each in contents(page, part, images=False)]
        with VectorFile.open(out, part) as file:
            assert file.rows == [each.row for each in wanted]
            for each in wanted:
                expected = normalised(vector_of(Role.PASSAGE, each.text)[None])[0]
                np.testing.assert_allclose(file.find(*each.row.key), expected, atol=dtype_tolerance)


def made(out: Path) -> set[str]:
    """The parts that there are vectors of."""
    return {path.stem for path in (out / FOLDER).glob("*.npy")}


def test_pages_regions_and_queries(out: Path) -> None:
    engine = TellingEngine()
    outcome = run_embed(out, engine, queries=(("q1", "who turns the wheel?"), ("q2", "바퀴")))
    assert (outcome.exit_code, outcome.failed) == (ExitCode.OK, 0)
    assert made(out) == {Part.TEXT, Part.REGIONS, Part.QUERIES}
    check_texts(out)
    with VectorFile.open(out, Part.TEXT) as file:
        assert [row.key for row in file.rows] == [RowKey("report_1"), RowKey("report_2"), RowKey("letter_1")]
    with VectorFile.open(out, Part.REGIONS) as file:  # captions go with their figures; a footer says nothing
        assert [row.key[:2] for row in file.rows] == [
            *(("report_1", index) for index in (0, 1, 2)),
            *(("report_2", index) for index in (0, 2)),
            ("letter_1", 0),
        ]
    assert "Figure 1: The mill" in engine.embedded
    assert "Table 1: Weights\nVat | Weight\nin | out\n1 | -4.5 | =1+1" in engine.embedded
    with VectorFile.open(out, Part.QUERIES) as file:
        expected = normalised(vector_of(Role.QUERY, "바퀴")[None])[0]
        np.testing.assert_allclose(file.find("q2"), expected, atol=1e-6)


def test_only_what_changed_is_embedded_again(out: Path) -> None:
    run_embed(out, TellingEngine())
    again = TellingEngine()
    assert run_embed(out, again).parts[Part.TEXT].embedded == 0
    assert not again.embedded
    pages = sample_pages()
    pages[3].regions[0].content = "Dear baker,"
    write_run(out, [*pages[1:], page("new", 1, [region(0, Label.TEXT, "new")])])
    outcome = run_embed(out, again)
    assert sorted(again.embedded) == sorted(["Dear baker,", "new"] * 2)
    text = outcome.parts[Part.TEXT]
    assert (text.rows, text.embedded, text.gone) == (3, 2, 1)
    check_texts(out)


@pytest.mark.parametrize("options", [{"dtype": "float16"}, {"dimension": 4}])
def test_half_precision_and_fewer_components(out: Path, options: dict[str, Any]) -> None:
    run_embed(out, TellingEngine(), **options)
    with VectorFile.open(out, Part.TEXT) as file:
        assert file.vectors.shape == (3, options.get("dimension", DIMENSION))
        assert str(file.vectors.dtype) == options.get("dtype", "float32")
        np.testing.assert_allclose(np.linalg.norm(file.vectors.astype(np.float64), axis=1), 1, atol=1e-3)
        with RunReader.open(out) as reader:
            text = next(contents(next(reader.pages()), Part.TEXT, images=False)).text
        expected = normalised(vector_of(Role.PASSAGE, text)[None], options.get("dimension"))[0]
        np.testing.assert_allclose(file.find("report_1"), expected, atol=1e-3)
    with pytest.raises(DifferentRunError):
        run_embed(out, TellingEngine())
    with pytest.raises(UsageError, match="16 components, not of 17"):
        run_embed(out, TellingEngine(), dimension=17)


def test_another_engine_is_refused_until_fresh(out: Path) -> None:
    run_embed(out, TellingEngine())
    with pytest.raises(DifferentRunError, match="model 'other', not 'm'"):
        run_embed(out, TellingEngine(model="other"))
    check_texts(out)
    assert run_embed(out, TellingEngine(model="other"), fresh=True).parts[Part.TEXT].embedded == 3


def test_a_bad_item_costs_no_other(tmp_path: Path) -> None:
    class Picky(TellingEngine):
        def embed(self, inputs: Sequence[EmbeddingInput]) -> np.ndarray:
            if any("miller" in each.text for each in inputs):
                raise RuntimeError("I do not like millers")
            vectors = super().embed(inputs)
            for vector, each in zip(vectors, inputs, strict=True):
                if "Machines" in each.text:
                    vector[:] = bad
            return vectors

    for bad, said in ((np.nan, "not finite"), (0, "zero")):
        out = tmp_path / f"run-{bad}"
        write_run(out, sample_pages())
        outcome = run_embed(out, Picky())
        assert outcome.exit_code == ExitCode.PAGES_FAILED
        messages = {name: message for name, message, _ in outcome.failures}
        assert set(messages) == {"report_1", "letter_1", "report_1, region 0", "letter_1, region 0"}
        assert said in messages["report_1"]
        assert "I do not like millers" in messages["letter_1"]
        with VectorFile.open(out, Part.TEXT) as file:
            assert [row.key.page_id for row in file.rows] == ["report_2"]
        assert run_embed(out, TellingEngine()).failed == 0
        check_texts(out)


def test_a_server_that_is_gone_ends_it_and_keeps_what_there_is(tmp_path: Path) -> None:
    class Dying(TellingEngine):
        concurrency = max_batch = 1

        def embed(self, inputs: Sequence[EmbeddingInput]) -> np.ndarray:
            if len(self.embedded) == 2:
                deadline = time.monotonic() + 60
                while not kept() and time.monotonic() < deadline:
                    time.sleep(0.01)
                raise NetworkError("no server answers")
            return super().embed(inputs)

    out = tmp_path / "run"

    def kept() -> int:
        with closing(sqlite3.connect(VectorPaths(out / FOLDER, Part.TEXT).partial)) as partial:
            return int(partial.execute("SELECT count(*) FROM vectors").fetchone()[0])

    write_run(out, sample_pages())
    with pytest.raises(NetworkError, match="no server answers"):
        run_embed(out, Dying())
    assert made(out) == set()
    rest = TellingEngine()
    run_embed(out, rest, parts=frozenset({Part.TEXT}))
    assert 1 <= len(rest.embedded) <= 2  # one may have been on its way to the disk
    run_embed(out, rest)
    check_texts(out)


def test_vectors_of_a_batch_are_written_together_and_not_on_the_event_loop(tmp_path: Path, monkeypatch) -> None:
    appended: list[tuple[int, bool]] = []
    all_there = threading.Event()

    class Waiting(TellingEngine):
        concurrency, max_batch = 1, 12

        def embed(self, inputs: Sequence[EmbeddingInput]) -> np.ndarray:
            assert all_there.wait(60)
            return super().embed(inputs)

    def append(self: VectorWriter, rows: Sequence[VectorRow], vectors: Vectors) -> None:
        appended.append((len(rows), threading.current_thread() is threading.main_thread()))
        original(self, rows, vectors)

    original = VectorWriter.append
    monkeypatch.setattr(VectorWriter, "append", append)
    write_run(tmp_path / "run", [page(f"page-{n}", 1, [region(0, Label.TEXT, f"text {n}")]) for n in range(12)])
    options = EmbedOptions(parts=(Part.TEXT,))
    asyncio.run(embed(tmp_path / "run", Waiting(), options, lambda done, total, _: done == total and all_there.set()))
    assert sum(rows for rows, _ in appended) == 12
    assert len(appended) < 6
    assert not any(on_loop for _, on_loop in appended)


def test_an_embedding_that_is_cancelled_waits_for_what_is_being_written(out: Path, monkeypatch) -> None:
    started, go = threading.Event(), threading.Event()

    def append(self: VectorWriter, rows: Sequence[VectorRow], vectors: Vectors) -> None:
        started.set()
        assert go.wait(60)
        original(self, rows, vectors)

    async def cancelled() -> None:
        task = asyncio.create_task(embed(out, TellingEngine(), EmbedOptions(parts=(Part.TEXT,)), lambda *_: None))
        await asyncio.to_thread(started.wait)
        task.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    original = VectorWriter.append
    monkeypatch.setattr(VectorWriter, "append", append)
    asyncio.run(cancelled())
    monkeypatch.setattr(VectorWriter, "append", original)
    rest = TellingEngine()
    run_embed(out, rest, parts=(Part.TEXT,))
    assert len(rest.embedded) < 3  # of three pages: what was being written is there


def test_a_damaged_record_costs_no_other_page(out: Path) -> None:
    damage_record(out, "letter_1")
    outcome = run_embed(out, TellingEngine(), parts=frozenset({Part.TEXT}))
    assert outcome.exit_code == ExitCode.PAGES_FAILED
    assert "is damaged" in outcome.failures[0][1]
    assert outcome.parts[Part.TEXT].rows == 2


def test_two_at_once(out: Path) -> None:
    lock = RunLock(out / ".pagemill" / "embeddings.lock")
    try:
        with pytest.raises(LockedError, match=f"{out} is in use"):
            run_embed(out, TellingEngine())
    finally:
        lock.release()


def test_what_an_engine_cannot_do(tmp_path: Path, out: Path) -> None:
    with pytest.raises(UsageError, match="cannot embed images"):
        run_embed(out, TellingEngine(), parts=frozenset({Part.IMAGES, Part.TEXT}))
    with pytest.raises(UsageError, match="--input is for page images"):
        run_embed(out, TellingEngine(), inputs=(str(tmp_path),))
    with pytest.raises(UsageError, match="there is no embedding engine 'nobody'"):
        open_engine(EngineSettings(engine="nobody", folder=out / FOLDER))


words = st.text("abcdef 가나다", min_size=1, max_size=6)
runs = st.dictionaries(
    st.tuples(st.sampled_from(["one", "two"]), st.integers(1, 4)), st.lists(words, max_size=3), min_size=1, max_size=6
)


@given(st.lists(st.tuples(runs, st.randoms(use_true_random=False)), min_size=1, max_size=3))
def test_each_vector_belongs_to_its_page_and_region(moments: list[tuple[dict[Any, list[str]], random.Random]]) -> None:
    """Pages come, go, change places and are parsed anew with other regions."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        for wanted, chance in moments:
            pages = [
                page(name, number, [region(index, Label.TEXT, text) for index, text in enumerate(texts)])
                for (name, number), texts in wanted.items()
            ]
            chance.shuffle(pages)
            write_run(out, [*pages, failed_page("three", 1)])
            run_embed(out, TellingEngine())
            check_texts(out)


def test_regions_with_their_pictures(tmp_path: Path) -> None:
    out = tmp_path / "run"
    write_run(out, sample_pages())  # its crop is no picture
    both = (Modality.TEXT, Modality.IMAGE, Modality.IMAGE_WITH_TEXT)
    outcome = run_embed(out, TellingEngine(*both), parts=frozenset({Part.REGIONS}))
    assert [name for name, _, _ in outcome.failures] == ["report_1, region 2"]
    (crop,) = out.glob("crops/*.jpg")
    crop.write_bytes(JPEG + b"other")
    outcome = run_embed(out, TellingEngine(*both), parts=frozenset({Part.REGIONS}))
    assert "is not the image that its record names" in outcome.failures[0][1]


def test_the_embedded_engine(tmp_path: Path) -> None:
    out = tmp_path / "run"
    korean = page("ko", 1, [region(0, Label.TEXT, "한지 제작 체험 교실을 열었습니다")])
    write_run(out, [*sample_pages(), korean])
    engine = open_engine(EngineSettings(folder=out / FOLDER))
    assert run_embed(out, engine).exit_code == ExitCode.OK
    again = open_engine(EngineSettings(engine="ngram", folder=out / FOLDER))
    with VectorFile.open(out, Part.TEXT) as file:
        assert not again.identity.differences(file.info.identity)
        for query, page_id in (("체험 교실은 언제 여나요", "ko_1"), ("the wheels turning", "report_1")):
            vector = normalised(again.embed([EmbeddingInput(role=Role.QUERY, text=query)]))[0]
            assert file.rows[int(np.argmax(file.vectors @ vector))].key.page_id == page_id


def test_statistics_follow_the_corpus(tmp_path: Path) -> None:
    """Another corpus of as many pages has other rare words: also where a damaged text is in it."""
    out, other = tmp_path / "run", tmp_path / "other"
    queries = (("q", "the sluice of the mill"),)

    def corpus(words: str) -> list[PageResult]:
        return [page("d", n, [region(0, Label.TEXT, f"{words} {n}")]) for n in range(1, 21)]

    def embed_again() -> tuple[int, np.ndarray]:
        outcome = run_embed(out, open_engine(EngineSettings(folder=out / FOLDER)), queries=queries)
        with VectorFile.open(out, Part.QUERIES) as file:
            return outcome.parts[Part.QUERIES].embedded, np.array(file.find("q"))

    write_run(out, corpus("the mill"))
    made, before = embed_again()
    assert made == 1
    again, same = embed_again()
    assert again == 0
    np.testing.assert_array_equal(same, before)
    write_run(other, corpus("the sluice"))
    (out / FOLDER).rename(other / FOLDER)
    out = other
    path = out / "parsed_texts.jsonl"
    path.write_bytes(path.read_bytes().replace(b"sluice 7", b"sluice 8"))
    made, after = embed_again()
    assert made == 1
    assert np.abs(after - before).max() > 0.01


def test_vectors_of_queries_go_with_the_statistics_that_made_them(tmp_path: Path) -> None:
    out, other = tmp_path / "run", tmp_path / "other"
    for folder, words in ((out, "the mill"), (other, "the sluice")):
        write_run(folder, [page("d", n, [region(0, Label.TEXT, f"{words} {n}")]) for n in range(1, 21)])
    queries = (("q", "the sluice of the mill"),)
    assert not run_embed(out, open_engine(EngineSettings(folder=out / FOLDER)), queries=queries).lost_queries
    assert not run_embed(out, open_engine(EngineSettings(folder=out / FOLDER))).lost_queries
    assert "queries" in made(out)
    (out / FOLDER).rename(other / FOLDER)
    assert run_embed(other, open_engine(EngineSettings(folder=other / FOLDER))).lost_queries
    assert made(other) == {"corpus_ocr_text", "corpus_regions"}


@pytest.mark.parametrize("parts", [(Part.TEXT, Part.QUERIES), (Part.QUERIES,)])
def test_vectors_of_another_engine_are_refused_and_stay(tmp_path: Path, parts: tuple[Part, ...]) -> None:
    out, queries = tmp_path / "run", (("q", "the sluice of the mill"),)
    write_run(out, sample_pages())
    run_embed(out, TellingEngine(), queries=queries)
    before = sorted(path.name for path in (out / FOLDER).iterdir())
    with pytest.raises(DifferentRunError):
        run_embed(out, open_engine(EngineSettings(folder=out / FOLDER)), queries=queries, parts=parts)
    assert sorted(path.name for path in (out / FOLDER).iterdir()) == before


def chunk_texts(out: Path, most: int) -> dict[RowKey, str]:
    with RunReader.open(out) as reader:
        found = [chunk for _, pages in reader.documents() for chunk in pagemill.chunks(pages, max_tokens=most)]
    places = [chunk.places[0].element.rpartition("/") for chunk in found]
    keys = [RowKey(page_id, int(index), chunk.id) for chunk, (page_id, _, index) in zip(found, places, strict=True)]
    return {key: chunk.contextualized for key, chunk in zip(keys, found, strict=True)}


def test_chunks_are_embedded_when_they_are_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "run"
    long = region(0, Label.TEXT, " ".join(f"Sentence {number} of the mill." for number in range(40)))
    write_run(out, [page("mill", 1, [long]), page("mill", 2, [region(0, Label.TEXT, "The end.")])])
    run_embed(out, TellingEngine())
    assert Part.CHUNKS not in made(out)
    chosen = ChunkSettings(max_tokens=64)
    outcome = run_embed(out, TellingEngine(), parts=(Part.CHUNKS,), chunks=chosen)
    wanted = chunk_texts(out, 64)
    assert outcome.parts[Part.CHUNKS].embedded == len(wanted) > 3
    with VectorFile.open(out, Part.CHUNKS) as file:
        assert [row.key for row in file.rows] == list(wanted)
        for key, text in wanted.items():
            np.testing.assert_allclose(file.find(*key), normalised(vector_of(Role.PASSAGE, text)[None])[0], atol=1e-6)
    assert run_embed(out, TellingEngine(), parts=(Part.CHUNKS,), chunks=chosen).parts[Part.CHUNKS].embedded == 0
    other = run_embed(out, TellingEngine(), parts=(Part.CHUNKS,)).parts[Part.CHUNKS]
    assert other.gone == len(wanted) and other.rows == len(chunk_texts(out, 512))


def test_rows_of_chunks_change_with_any_page_of_their_document_and_vectors_with_their_text(tmp_path: Path) -> None:
    said = ("Of the mill.", "Of its wheel.", "Of its loft.")
    headed = [
        [region(0, Label.PARAGRAPH_TITLE, f"{number}."), region(1, Label.TEXT, text)]
        for number, text in enumerate(said, 1)
    ]
    pages = [page("mill", number, regions) for number, regions in enumerate(headed, 1)]
    pages += [page("other", 1, [region(0, Label.TEXT, "Another one.")])]
    rows = []
    for text in ("First as it was.", "Later."):
        pages[2].regions[1].content = text
        out = tmp_path / text.split()[0]
        write_run(out, pages)
        if rows:
            (tmp_path / "First" / FOLDER).rename(out / FOLDER)
        count = run_embed(out, TellingEngine(), parts=(Part.CHUNKS,)).parts[Part.CHUNKS].embedded
        assert count == (1 if rows else 4)  # the other texts are as they were
        with VectorFile.open(out, Part.CHUNKS) as file:
            rows.append({row.key.page_id: row.digest for row in file.rows})
    same = {page_id for page_id in rows[0] if rows[0][page_id] == rows[1][page_id]}
    assert same == {"other_1"}


def test_options_of_chunks_without_chunks_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", sample_pages())
    with pytest.raises(UsageError, match="for chunks"):
        run_embed(tmp_path / "run", TellingEngine(), chunks=ChunkSettings(max_tokens=64))
