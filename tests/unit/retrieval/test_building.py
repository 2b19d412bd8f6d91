import sqlite3
from pathlib import Path

import msgspec
import numpy as np
import pytest
import retrieval_runs as runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_run import damage_record
from synthetic_run import failed_page, open_run, page, region, write, write_run

import pagemill
from pagemill.document.labels import Label
from pagemill.embedding.contents import chunk_content, document_digest, text_digests
from pagemill.embedding.vectors import FOLDER, Part, VectorPaths, VectorsInfo
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import DamagedRunError, DifferentRunError, LockedError, OutputError
from pagemill.retrieval import building, database
from pagemill.retrieval.building import build_index
from pagemill.retrieval.hits import IndexPart
from pagemill.retrieval.index import SearchIndex
from pagemill.store.database import delete_database
from pagemill.store.lock import RunLock
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader


def contents_of(out: Path) -> dict[str, object]:
    """All of an index but the numbers in it."""
    with sqlite3.connect(out / database.FILE) as connection:
        pages = connection.execute("SELECT page_id, doc_id, language, text_digest FROM pages ORDER BY 1").fetchall()
        regions = connection.execute(
            "SELECT page_id, region, label, text FROM regions JOIN pages USING (page) ORDER BY 1, 2"
        ).fetchall()
        connection.execute("CREATE VIRTUAL TABLE temp.page_vocabulary USING fts5vocab(main, page_words, row)")
        connection.execute("CREATE VIRTUAL TABLE temp.region_vocabulary USING fts5vocab(main, region_words, row)")
        words = [
            connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
            for name in ("page_vocabulary", "region_vocabulary")
        ]
        for name in ("page_words", "region_words"):
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
    connection.close()
    return {"pages": pages, "regions": regions, "words": words}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run", [*runs.pages(), failed_page("mill", 3)])
    return tmp_path / "run"


def test_words_alone_make_an_index(run: Path) -> None:
    report = build_index(run)
    assert (report.pages, report.regions, report.added, report.failed) == (4, 7, 4, 1)  # with a running head
    assert not report.parts
    with SearchIndex(run) as index:
        assert index.parts == [IndexPart.FULL_TEXT]
        assert index.behind is None


def test_nothing_is_done_twice(run: Path) -> None:
    build_index(run)
    before = contents_of(run)
    assert build_index(run).added == 0
    assert contents_of(run) == before


def test_only_what_is_new_or_changed_is_read_again(run: Path) -> None:
    build_index(run)
    with open_run(run, OpenMode.RESUME) as store:
        write(store, msgspec.structs.replace(runs.pages()[0], doc_id="new", page_id="new_1"), 5)
        store.finish(interrupted=False, complete=True)
    with SearchIndex(run) as index:
        assert "after the index was made" in (index.behind or "")
    report = build_index(run)
    assert (report.pages, report.added) == (5, 1)


def test_a_changed_page_leaves_nothing_of_its_words_behind(run: Path, tmp_path: Path) -> None:
    build_index(run)
    changed = runs.pages()
    changed[0].regions = [region(0, Label.TEXT, "entirely different")]
    write_run(tmp_path / "other", changed)
    with sqlite3.connect(run / database.FILE) as connection:  # as if the first page had been another one
        connection.execute("UPDATE pages SET crc = 1 WHERE page_id = 'mill_1'")
        connection.execute("UPDATE pages SET page_id = 'gone_1' WHERE page_id = 'mill_2'")
    connection.close()
    report = build_index(run)
    assert (report.added, report.removed) == (2, 1)
    fresh = tmp_path / "fresh"
    write_run(fresh, runs.pages())
    build_index(fresh)
    assert contents_of(run) == contents_of(fresh)


def test_a_build_that_is_cut_off_is_gone_on_with(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_PAGES_A_TRANSACTION", 1)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(run, progress=stop)
    with SearchIndex(run) as index:
        assert "incomplete" in (index.behind or "")
        assert len(index.page_ids()) == 2
    assert build_index(run).added == 2
    with SearchIndex(run) as index:
        assert index.behind is None
    before = contents_of(run)
    delete_database(run / database.FILE)
    build_index(run)
    assert contents_of(run) == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(4)), kept=st.sets(st.integers(0, 3)))
def test_each_vector_is_bound_to_its_page_and_region(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], kept: set[int]
) -> None:
    out = tmp_path_factory.mktemp("bound") / "run"
    pages = runs.pages()
    write_run(out, [pages[place] for place in order])
    names = {pages[place].page_id for place in kept}
    for part in (Part.TEXT, Part.REGIONS):
        runs.embed(out, part, only=lambda page_id: page_id in names)
    report = build_index(out)
    assert report.parts[Part.TEXT].vectors == len(kept)
    assert report.parts[Part.TEXT].missing == 4 - len(kept)
    with SearchIndex(out) as index:
        for place in kept:
            for each in pages[place].regions:
                if not each.content or each.label is Label.HEADER or each.caption_of is not None:
                    continue
                vector = runs.letters(each.content)
                hit = index.search(None, vectors={IndexPart.REGIONS: vector})[0]
                assert (hit.page_id, hit.region) == (pages[place].page_id, each.index)
                assert hit.parts[IndexPart.REGIONS].score == pytest.approx(1, abs=1e-5)


def test_vectors_of_an_earlier_content_are_refused(run: Path, tmp_path: Path) -> None:
    runs.embed(run, Part.TEXT)
    changed = runs.pages()
    changed[0].regions[1].content = "The wheel stands still."
    other = tmp_path / "other"
    write_run(other, changed)
    (run / FOLDER).rename(other / FOLDER)
    with pytest.raises(DifferentRunError, match=r"1 vector of page texts .* mill_1") as caught:
        build_index(other)
    assert "pagemill embed" in (caught.value.remedy or "")
    with SearchIndex(other) as index:
        assert "incomplete" in (index.behind or "")


def test_vectors_of_pages_that_are_gone_are_refused(run: Path, tmp_path: Path) -> None:
    runs.embed(run, Part.REGIONS)
    other = tmp_path / "other"
    write_run(other, runs.pages()[1:])
    (run / FOLDER).rename(other / FOLDER)
    with pytest.raises(DifferentRunError, match="mill_1, region 0; mill_1, region 1"):
        build_index(other)


def test_until_vectors_are_bound_again_words_alone_are_searched(run: Path, tmp_path: Path) -> None:
    """Numbers of pages and regions are used again: those of vectors from before may be of others by now."""
    runs.embed(run, Part.TEXT)
    runs.embed(run, Part.REGIONS)
    build_index(run)
    other = tmp_path / "other"
    write_run(other, [*runs.pages()[:2], page("later", 1, [region(0, Label.TEXT, "Nothing of the kind")])])
    for name in (FOLDER, database.FOLDER):
        (run / name).rename(other / name)
    with pytest.raises(DifferentRunError, match="changed or removed pages"):
        build_index(other)
    with SearchIndex(other) as index:
        assert index.parts == [IndexPart.FULL_TEXT]
        vector = runs.letters("수강료는 30,000원입니다.")
        assert index.search(None, vectors={IndexPart.TEXT: vector, IndexPart.REGIONS: vector}) == []
        assert [hit.page_id for hit in index.search("nothing wheel")] == ["later_1", "mill_1"]


def test_shuffled_vectors_are_found_out(run: Path) -> None:
    import numpy as np

    runs.embed(run, Part.TEXT)
    path = run / FOLDER / "corpus_ocr_text.npy"
    np.save(path, np.load(path)[::-1])
    with pytest.raises(DamagedRunError):
        build_index(run)


@pytest.mark.parametrize("suffix", [".npy", ".ids.parquet"])
def test_half_of_a_pair_of_files_is_named(run: Path, suffix: str) -> None:
    runs.embed(run, Part.TEXT)
    build_index(run)
    (run / FOLDER / f"{Part.TEXT}{suffix}").unlink()
    with (
        SearchIndex(run) as index,
        pytest.raises(DifferentRunError, match="have changed since the index was built"),
    ):
        index.search("wheel", vectors={IndexPart.TEXT: runs.letters("wheel")})
    with pytest.raises(DamagedRunError, match=f"{Part.TEXT}{suffix} is missing"):
        build_index(run)


def test_damaged_records_are_named_and_the_others_indexed(run: Path) -> None:
    damage_record(run, "mill_2")
    report = build_index(run)
    assert (report.pages, len(report.damages)) == (3, 1)


def test_a_damaged_index_is_rebuilt(run: Path) -> None:
    build_index(run)
    before = contents_of(run)
    (run / database.FILE).write_bytes(b"no database" * 1000)
    with pytest.raises(DamagedRunError) as caught:
        SearchIndex(run)
    assert "pagemill index" in (caught.value.remedy or "")
    build_index(run)
    assert contents_of(run) == before


def test_an_index_that_is_damaged_inside_is_rebuilt(run: Path) -> None:
    build_index(run)
    before = contents_of(run)
    with sqlite3.connect(run / database.FILE) as connection:  # all of it into the one file
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    path = run / database.FILE
    data = bytearray(path.read_bytes())
    data[2 * 4096 :] = bytes(len(data) - 2 * 4096)  # the schema is whole, the tables are not
    path.write_bytes(data)
    assert build_index(run).added == 4
    assert contents_of(run) == before


def test_an_index_of_another_version_is_rebuilt(run: Path) -> None:
    build_index(run)
    with sqlite3.connect(run / database.FILE) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(DamagedRunError, match="another version"):
        SearchIndex(run)
    assert build_index(run).added == 4


def test_one_process_at_a_time(run: Path) -> None:
    build_index(run)
    lock = RunLock(run / database.LOCK)
    try:
        with pytest.raises(LockedError):
            build_index(run)
    finally:
        lock.release()


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="contains no run"):
        build_index(tmp_path)
    assert not list(tmp_path.iterdir())


def test_lone_surrogates_and_nul_do_no_harm(tmp_path: Path) -> None:
    bad = runs.pages()[:1]
    bad[0].regions[0].content = "mill\ud800 \0 stone"
    write_run(tmp_path / "run", bad)
    assert build_index(tmp_path / "run").pages == 1


def embed_chunks(out: Path, documents: set[str]) -> int:
    """Vectors of the chunks of some documents."""
    info = VectorsInfo(part=Part.CHUNKS, identity=runs.IDENTITY, dtype="float32")
    found = []
    with RunReader.open(out) as reader, VectorWriter(VectorPaths(out / FOLDER, Part.CHUNKS), info) as writer:
        for doc_id, listed in ((doc_id, list(pages)) for doc_id, pages in reader.documents()):
            digest = document_digest(text_digests(listed))
            for chunk in pagemill.chunks(listed) if doc_id in documents else ():
                found.append(chunk_content(chunk, digest))
        writer.append([each.row for each in found], np.stack([runs.letters(each.text) for each in found]))
        writer.publish([each.row for each in found])
    return len(found)


def test_chunks_are_found_by_the_page_and_region_in_which_they_begin(run: Path) -> None:
    count = embed_chunks(run, {"mill"})
    report = build_index(run)
    assert report.parts[Part.CHUNKS][:2] == (count, 1)  # a document lacks chunks
    text = "The paper mill\n\nWater turns the wheel."
    with SearchIndex(run) as index:
        assert IndexPart.CHUNKS in index.parts
        hit = index.search(None, vectors={IndexPart.CHUNKS: runs.letters(text)})[0]
        assert (hit.page_id, hit.region) == ("mill_1", 0)


@pytest.mark.parametrize("later", [0, 1])
def test_chunks_of_an_earlier_content_are_refused(run: Path, tmp_path: Path, later: int) -> None:
    """Also where the page on which they begin is as it was."""
    embed_chunks(run, {"mill", "공고"})
    changed = runs.pages()
    mill = [page for page in changed if page.doc_id == "mill"]
    mill[-later].regions[-1].content = "The wheel does not turn."
    other = tmp_path / "other"
    write_run(other, changed)
    (run / FOLDER).rename(other / FOLDER)
    with pytest.raises(DifferentRunError, match=r"vectors? of chunks .* mill_1, chunk "):
        build_index(other)
