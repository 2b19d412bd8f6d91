from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.catalogue import Catalogue


def test_a_new_catalogue_counts_copies_and_gives_each_name_once():
    catalogue = Catalogue()
    assert [catalogue.register(digest, "u").copy for digest in ("a", "b", "a")] == [1, 1, 2]
    assert [catalogue.document_id(key, "x") for key in ("1", "2", "1")] == ["x", "x-2", "x"]
    assert [catalogue.page_id("x_1"), catalogue.page_id("x_1")] == ["x_1", "x_1-2"]


def test_a_new_catalogue_remembers_no_file():
    catalogue = Catalogue()
    catalogue.remember_digest(Path("a"), 1, 2, "d")
    catalogue.counted("d", 1, 5)
    assert catalogue.remembered_digest(Path("a"), 1, 2) is None
    assert catalogue.register("d", "u").pages is None


def test_duplicates_get_numbers():
    catalogue = Catalogue()
    given_names = [catalogue.page_id(name) for name in ("a", "a", "A", "a-2", "b", "a")]
    assert given_names == ["a", "a-2", "A-3", "a-2-2", "b", "a-4"]


@given(st.lists(st.sampled_from(["a", "A", "a-2", "a-3", "a-2-2", "b"]), max_size=30))
def test_names_are_unique(wanted: list[str]):
    catalogue = Catalogue()
    claimed = [catalogue.page_id(name).casefold() for name in wanted]
    assert len(set(claimed)) == len(claimed)
