"""Addresses of datasets on the Hub, and the files that configurations and splits consist of."""

import json
from collections.abc import Iterable

import pytest

from pagemill.errors import MissingInputError
from pagemill.sources.hub import DatasetAddress, card_metadata

pytest.importorskip("yaml")

SDS = b"""---
license: cc-by-sa-4.0
configs:
- config_name: SDS-KoPub-QA
  data_files:
  - {split: test, path: SDS-KoPub-QA.parquet}
  default: true
- config_name: SDS-KoPub-corpus
  data_files:
  - {split: test, path: "corpus/test-*"}
  - {split: train, path: ["corpus/train-*", "more/**"]}
- config_name: by-folder
  data_dir: folder
- config_name: by-map
  data_files: {dev: "a.parquet"}
---
# Card
"""
NAMES = [
    *("README.md", "SDS-KoPub-QA.parquet", "a.parquet", "corpus/test-00000-of-00002.parquet"),
    *("corpus/test-00001-of-00002.parquet", "corpus/train-00000-of-00001.parquet", "folder/x.parquet"),
    *("more/deep/y.parquet", "corpus/inner/test-z.parquet"),
]


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("hf://datasets/o/n", ("o/n", None, None, "")),
        ("hf://datasets/o/n@v1.0", ("o/n", "v1.0", None, "")),
        ("hf://datasets/o/n@refs/pr/1:c/test", ("o/n", "refs/pr/1", "c", "test")),
        ("hf://datasets/o/n:SDS-KoPub-corpus", ("o/n", None, "SDS-KoPub-corpus", "")),
        ("hf://datasets/o/n/data/train/", ("o/n", None, None, "data/train")),
    ],
)
def test_addresses(url: str, parts: tuple[object, ...]):
    address = DatasetAddress.parse(url)
    assert address is not None
    assert (address.name, address.revision, address.config, address.place) == parts
    assert address.root == "hf://datasets/o/n" + (f"@{parts[1]}" if parts[1] else "")


@pytest.mark.parametrize("url", ["hf://o/n", "s3://datasets/o/n", "hf://datasets/o", "datasets/o/n"])
def test_other_addresses(url: str):
    assert DatasetAddress.parse(url) is None


@pytest.mark.parametrize(
    ("selection", "files"),
    [
        (":SDS-KoPub-QA", [1]),
        (":SDS-KoPub-corpus", [3, 4, 5, 7]),
        (":SDS-KoPub-corpus/test", [3, 4]),
        (":SDS-KoPub-corpus/train", [5, 7]),
        ("/test", [1, 3, 4]),
        (":by-folder", [6]),
        (":by-map/dev", [2]),
    ],
)
def test_the_card_says_what_a_configuration_is(selection: str, files: list[int]):
    assert selected(selection, SDS) == [NAMES[number] for number in files]


@pytest.mark.parametrize(
    ("selection", "files"),
    [(":SDS-KoPub-QA", [1]), (":corpus", [3, 4, 5, 8]), (":corpus/test", [3, 4, 8]), ("/testing", [3, 4, 8])],
)
@pytest.mark.parametrize("card", [b"", b"# Card", b"---\nconfigs: 3\n---\n", b"---\n[: broken\n---\n"])
def test_without_one_folders_and_names_do(selection: str, files: list[int], card: bytes):
    assert selected(selection, card) == [NAMES[number] for number in files]


@pytest.mark.parametrize("card", [SDS, b""])
@pytest.mark.parametrize("selection", [":none", ":SDS-KoPub-QA/none", "/none"])
def test_what_is_not_there_says_what_is(selection: str, card: bytes):
    with pytest.raises(MissingInputError, match=r"the dataset has no (configuration|split) 'none'") as caught:
        selected(selection, card)
    assert "Available: " in (caught.value.remedy or "")


def test_metadata_of_a_card():
    assert card_metadata(SDS)["license"] == "cc-by-sa-4.0"
    assert card_metadata(b"---\r\nlicense: mit\r\n---") == {"license": "mit"}
    assert card_metadata(b"---\ndate: 2020-99-99\n---\n") == {}
    assert card_metadata(b"---\n- list\n---\n") == {}


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("**", range(9)),
        ("*", [0, 1, 2]),
        ("**/*.parquet", range(1, 9)),
        ("**/**/?.parquet", [2, 6, 7]),
        ("more/**", [7]),
        ("more/**/deep/**/y.*", [7]),
        ("a.parquet/**", []),
        ("corpus/**.parquet", [3, 4, 5]),
        ("./corpus/te[rs]t-*-of-[!1]*", [3, 4]),
        ("corpus", []),
        ("CORPUS/*", []),
    ],
)
def test_patterns_of_a_card(pattern: str, files: Iterable[int]):
    if files:
        assert selected(":c", card_of(pattern)) == [NAMES[number] for number in files]
    else:
        with pytest.raises(MissingInputError, match="no files of the configuration"):
            selected(":c", card_of(pattern))


@pytest.mark.parametrize("pattern", ["*a" * 200 + "*b.parquet", "**/" * 300 + "b", "*/**/" * 150 + "b", "*" * 900])
def test_a_pattern_of_many_stars_ends(pattern: str):
    names = ["a" * 250 + ".parquet", "a/" * 250 + "a", "x.parquet", "x/" * 400 + "x"]
    address = DatasetAddress.parse("hf://datasets/o/n:c")
    assert address is not None
    assert address.selected(names, card_of(pattern, "x.parquet"))[0] in names


def test_patterns_beyond_the_bounds():
    assert selected(":c", card_of("*" * 10_000, "a.parquet")) == ["a.parquet"]
    with pytest.raises(MissingInputError, match=r"has 1,001 patterns for these files; the limit is 1,000"):
        selected(":c", card_of(*(f"{number}*" for number in range(1_001))))
    assert selected(":c", card_of(*(f"{number}.parquet" for number in range(1_001)), "a.parquet")) == ["a.parquet"]


@pytest.mark.parametrize(
    "card",
    [
        *(b"---" + b"\n" * 2**20, b"---" + b"\n" * 2**19 + b"x", b"--- \n" * 2**17, b"---\nlicense: mit\n----\n"),
        *(b"---\nlicense: " + value + b"\n---\n" for value in (b"!!bool x", b"!!int ''", b"!!timestamp x")),
        *(b"---\nlicense: " + value + b"\n---\n" for value in (b"&a [*a]", b"&a [*a" + b", *a" * 10_000 + b"]")),
        *(b"---\nlicense: " + value + b"\n---\n" for value in (b"0x" + b"f" * 5_000, b"\xff", b"!!python/x 1")),
        b"---\na: " + b"[" * 1_000 + b"\n---\n",
    ],
    ids=range(13),
)
def test_a_card_that_cannot_be_read_has_no_metadata(card: bytes):
    assert card_metadata(card) == {}


@pytest.mark.parametrize("item", ["[{}]", "{{<<: [{}]}}"], ids=["lists", "merged"])
def test_aliases_that_grow_without_end_are_not_followed(item: str):
    levels = ["l0: &l0 {x: lol}", *(f"l{n}: &l{n} {item.format(', '.join([f'*l{n - 1}'] * 10))}" for n in range(1, 30))]
    assert card_metadata("\n".join(["---", *levels, "configs: *l29", "---", ""]).encode()) == {}
    assert card_metadata(b"---\na: &a [x]\nlicense: *a\n---\n") == {"a": ["x"], "license": ["x"]}


def test_only_text_is_a_name():
    configs = (
        "{config_name: [[x]], data_files: a.parquet}, {config_name: 0x" + "f" * 900 + ", data_files: a.parquet}, "
        "{config_name: " + "n" * 300 + ", data_files: a.parquet}, {config_name: c, data_files: ["
        "{split: 7, path: SDS-KoPub-QA.parquet}, {split: test, path: a.parquet}]}"
    )
    card = f"---\nconfigs: [{configs}]\n---\n".encode()
    assert selected(":c", card) == ["a.parquet"]
    with pytest.raises(MissingInputError) as caught:
        selected(":none", card)
    assert caught.value.remedy == "Available: c."


def card_of(*patterns: str) -> bytes:
    return f"---\nconfigs: [{{config_name: c, data_files: {json.dumps(patterns)}}}]\n---\n".encode()


def selected(selection: str, card: bytes) -> list[str]:
    address = DatasetAddress.parse(f"hf://datasets/o/n{selection}")
    assert address is not None
    return address.selected(NAMES, card)
