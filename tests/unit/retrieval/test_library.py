from pathlib import Path

import pytest
import retrieval_runs as runs
from small_run import damage_record
from synthetic_run import open_run, page, region, write, write_run

from pagemill.document.labels import Label
from pagemill.embedding.ngram_engine import STATISTICS
from pagemill.errors import OutputError, UsageError
from pagemill.retrieval import building, database
from pagemill.retrieval.library import Library
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader


def put(library: Library, name: str, out: Path, *, owner: str = "", collection: str = "") -> list[str]:
    with RunReader.open(out) as reader:
        return library.put(name, reader, owner=owner, collection=collection, stamp="1")


def found(library: Library, query: str, **named: object) -> list[tuple[str, str]]:
    return [(hit.run, hit.page_id) for hit in library.search(query, **{"owner": "", **named})]  # type: ignore[arg-type]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_run(tmp_path / "run", runs.pages())
    return tmp_path / "run"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "library")


def test_words_korean_and_misspelt_words_are_found(library: Library, out: Path) -> None:
    put(library, "a", out)
    assert found(library, "wheel") == [("a", "mill_1")]
    assert found(library, "체험교실")[0] == ("a", "공고_1")
    assert found(library, "shuters")[0] == ("a", "mill_2")
    assert found(library, "xylophone") == []
    assert found(library, 'wheel" OR * NEAR(') == [("a", "mill_1")]  # nothing in a query is syntax
    hit = library.search("wheel", owner="")[0]
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["wheel"]
    assert hit.region == 1


def test_runs_of_the_same_pages_are_kept_apart(library: Library, out: Path) -> None:
    put(library, "a", out, collection="one")
    put(library, "b", out, collection="two")
    put(library, "c", out, owner="somebody else")
    assert {run for run, _ in found(library, "wheel")} == {"a", "b"}
    assert found(library, "wheel", collection="two") == [("b", "mill_1")]
    assert found(library, "wheel", owner="nobody") == []
    library.remove("b")
    library.remove("b")
    assert found(library, "wheel") == [("a", "mill_1")]
    assert library.runs().keys() == {"a", "c"}


def test_only_pages_in_a_language(library: Library, out: Path) -> None:
    put(library, "a", out)
    assert found(library, "30,000", languages=["ko"]) == [("a", "공고_2")]
    assert found(library, "wheel", languages=["ko"]) == []
    with pytest.raises(UsageError, match="language"):
        library.search("wheel", owner="", languages=["english"])


def test_a_run_that_has_changed_is_brought_up_to_date(library: Library, out: Path) -> None:
    put(library, "a", out)
    with open_run(out, OpenMode.RESUME) as store:
        write(store, page("new", 1, [region(0, Label.TEXT, "A sluice gate.")]), 5)
    assert found(library, "sluice") == []
    put(library, "a", out)
    assert found(library, "sluice") == [("a", "new_1")]
    assert found(library, "wheel") == [("a", "mill_1")]


def test_the_library_is_opened_once_for_a_run(library: Library, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    open_for_writing = database.open_for_writing
    monkeypatch.setattr(database, "open_for_writing", lambda path: opened.append(path) or open_for_writing(path))
    put(library, "a", out)
    assert len(opened) == 1


def test_a_damaged_record_is_left_out_and_reported(library: Library, out: Path) -> None:
    damage_record(out, "mill_1")
    damages = put(library, "a", out)
    assert len(damages) == 1 and "mill_1" in damages[0]
    assert found(library, "shutters") == [("a", "mill_2")]


def test_an_interrupted_put_is_completed_by_the_next_one(
    library: Library, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_PAGES_A_TRANSACTION", 1)
    asked = iter([False, True])
    with RunReader.open(out) as reader:
        library.put("a", reader, owner="", collection="", stamp="1", stopped=lambda: next(asked))
    assert (found(library, "wheel"), found(library, "shutters")) == ([("a", "mill_1")], [])
    assert library.runs() == {"a": ""}
    put(library, "a", out)
    assert found(library, "shutters") == [("a", "mill_2")]
    assert library.runs() == {"a": "1"}


@pytest.mark.parametrize("content", [b"no database", b""])
def test_a_damaged_library_is_made_again(tmp_path: Path, out: Path, content: bytes) -> None:
    put(Library(tmp_path / "library"), "a", out)
    for suffix in ("-wal", "-shm"):
        (tmp_path / "library" / (database.FILE + suffix)).unlink(missing_ok=True)
    (tmp_path / "library" / database.FILE).write_bytes(content)
    again = Library(tmp_path / "library")
    assert again.runs() == {}
    put(again, "a", out)
    assert found(again, "wheel") == [("a", "mill_1")]


def test_damaged_statistics_are_made_again(library: Library, out: Path, tmp_path: Path) -> None:
    put(library, "a", out)
    statistics = tmp_path / "library" / STATISTICS
    statistics.write_bytes(b"damaged")
    again = Library(tmp_path / "library")
    assert found(again, "shuters")[0] == ("a", "mill_2")
    put(again, "a", out)
    assert statistics.stat().st_size > 1000


def test_statistics_that_cannot_be_written_are_an_error_with_a_remedy(library: Library, out: Path) -> None:
    library._fitted.mkdir()
    with pytest.raises(OutputError):
        put(library, "a", out)


@pytest.mark.parametrize(("query", "top"), [(" ", 10), ("wheel", 0), ("wheel", 1001)])
def test_a_search_that_makes_no_sense(library: Library, query: str, top: int) -> None:
    with pytest.raises(UsageError):
        library.search(query, owner="", top=top)
