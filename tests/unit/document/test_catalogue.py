from pathlib import Path

from pagemill.document.catalogue import Catalogue


def test_a_new_catalogue_counts_copies_and_gives_each_name_once():
    catalogue = Catalogue()
    assert [catalogue.meet(digest, "u").copy for digest in ("a", "b", "a")] == [1, 1, 2]
    assert [catalogue.document_id(key, "x") for key in ("1", "2", "1")] == ["x", "x-2", "x"]
    assert [catalogue.page_id("x_1"), catalogue.page_id("x_1")] == ["x_1", "x_1-2"]


def test_a_new_catalogue_remembers_no_file():
    catalogue = Catalogue()
    catalogue.remember_digest(Path("a"), 1, 2, "d")
    catalogue.counted("d", 1, 5)
    assert catalogue.remembered_digest(Path("a"), 1, 2) is None
    assert catalogue.meet("d", "u").pages is None
