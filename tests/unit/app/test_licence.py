"""The licence of pages, from the cards of the datasets that they come from."""

from pathlib import Path

import pytest

from pagemill.app import licence
from pagemill.app.licence import foreign_places, licence_of
from pagemill.errors import UsageError
from pagemill.sources.download import MANIFEST

pytest.importorskip("huggingface_hub")

COPY_OF_AB = b'{"dataset": "a/b", "revision": "v1", "commit": "c", "names": [], "files": {}}'


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A copy of a dataset: its card, and tables in a folder."""
    folder = tmp_path / "OWNER" / "NAME"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("---\nlicense: cc-by-sa-4.0\n---\n# Pages\n")
    (folder / "data" / "pages.parquet").touch()
    return folder


@pytest.mark.parametrize("place", [".", "data", "data/", "data/pages.parquet", "data/*.parquet", "*/*.parquet"])
def test_the_card_of_a_local_copy_is_found(dataset: Path, place: str):
    named, cards = licence_of([f"{dataset}/{place}"])
    assert (named, cards) == ("cc-by-sa-4.0", [str(dataset / "README.md")])


def test_the_card_of_a_whole_program_above_does_not_count(dataset: Path):
    deep = dataset / "data" / "deep"
    deep.mkdir()
    with pytest.raises(UsageError, match="no dataset card") as caught:
        licence_of([str(deep)])
    assert "--licence ID" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "card",
    [
        "",
        "# No metadata",
        "---\nlanguage: ko\n---\n",
        "---\nlicense: 3\n---\n",
        "---\nlicense: [mit, cc0-1.0]\n---\n",
        "---\nlicense: 'mit --private'\n---\n",
        "---\nlicense: [\n---\n",
    ],
)
def test_a_card_that_names_no_licence_is_no_answer(dataset: Path, card: str):
    (dataset / "README.md").write_text(card)
    with pytest.raises(UsageError, match="no dataset card"):
        licence_of([str(dataset)])


def test_a_list_of_one_licence_is_one(dataset: Path):
    (dataset / "README.md").write_text("---\nlicense:\n- mit\n---\n")
    assert licence_of([str(dataset)])[0] == "mit"


def test_different_licences_are_not_chosen_from(dataset: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(licence, "dataset_card", lambda root: b"---\nlicense: mit\n---\n")
    assert licence_of(["hf://datasets/a/b@v1:all/test"]) == ("mit", ["hf://datasets/a/b@v1/README.md"])
    with pytest.raises(UsageError, match=r"different licences: cc-by-sa-4\.0 by .*; mit by hf://datasets/a/b"):
        licence_of([str(dataset), "hf://datasets/a/b"])


def test_cards_of_folders_in_the_input_count_where_these_hold_pages(dataset: Path):
    inner = dataset / "data" / "B"
    (inner / "deep").mkdir(parents=True)
    (inner / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    for recursive in (False, True):  # B has no page
        assert licence_of([str(dataset)], recursive=recursive)[0] == "cc-by-sa-4.0"
    page = inner / "deep" / "page.png"
    page.touch()
    for place in (dataset, dataset / "data"):
        assert licence_of([str(place)]) == ("cc-by-sa-4.0", [str(dataset / "README.md")])
        with pytest.raises(UsageError, match=r"different licences: .*cc-by-nc-4\.0 by .*/B/README\.md"):
            licence_of([str(place)], recursive=True)
        with pytest.raises(UsageError, match="different licences"):  # parsed before, with --recursive
            licence_of([str(place)], parsed=[str(dataset / "data" / "pages.parquet"), str(page)])
    with pytest.raises(UsageError, match="different licences"):
        licence_of([f"{dataset}/**/*.p*"])
    assert licence_of([str(inner)], recursive=True) == ("cc-by-nc-4.0", [str(inner / "README.md")])
    (dataset / "data" / MANIFEST).write_bytes(COPY_OF_AB)
    assert licence_of([str(dataset / "data")], recursive=True)[0] == "cc-by-sa-4.0"


def test_pages_far_below_have_the_card_of_the_input(dataset: Path):
    deep = dataset / "data" / "one" / "two" / "three"
    deep.mkdir(parents=True)
    (deep / "page.png").touch()
    assert licence_of([str(dataset)], recursive=True) == ("cc-by-sa-4.0", [str(dataset / "README.md")])


def test_every_place_needs_a_licence(dataset: Path, tmp_path: Path):
    (tmp_path / "scans" / "mine").mkdir(parents=True)
    with pytest.raises(UsageError, match="no dataset card"):
        licence_of([str(dataset), str(tmp_path / "scans" / "mine")])
    for places in ([], ["s3://bucket/pages.parquet"]):
        with pytest.raises(UsageError, match="--hf-repo needs a licence"):
            licence_of(places)


def test_parsed_files_are_found_in_the_inputs(dataset: Path):
    files = [str(dataset / "data" / "pages.parquet"), "hf://datasets/a/b@main/x.parquet", "https://a/b.pdf"]
    assert foreign_places(files, [str(dataset), "hf://datasets/a/b", "https://a"]) == []
    assert foreign_places(files, [f"{dataset}/*/*.parquet", "hf://datasets/a/b:config/test"]) == files[2:]
    assert foreign_places(files, [str(dataset / "dat")]) == files


def test_a_local_path_is_of_a_dataset_only_in_a_copy_of_it(tmp_path: Path):
    folder = tmp_path / "a" / "b"
    (folder / "data").mkdir(parents=True)
    files = [str(folder / "data" / "x.parquet"), "https://host/a/b/x.parquet", "hf://datasets/c/d/a/b/x.parquet"]
    assert foreign_places(files, ["hf://datasets/a/b@v1"]) == files
    (folder / MANIFEST).write_bytes(COPY_OF_AB)
    assert foreign_places(files, ["hf://datasets/a/b@v1"]) == files[1:]
    assert foreign_places(files, ["hf://datasets/a/bc"]) == files
