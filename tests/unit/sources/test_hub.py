"""Addresses of datasets on the Hub, and the files that configurations and splits consist of."""

from __future__ import annotations

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
    assert "There are: " in (caught.value.remedy or "")


def test_metadata_of_a_card():
    assert card_metadata(SDS)["license"] == "cc-by-sa-4.0"
    assert card_metadata(b"---\r\nlicense: mit\r\n---") == {"license": "mit"}
    assert card_metadata(b"---\ndate: 2020-99-99\n---\n") == {}
    assert card_metadata(b"---\n- list\n---\n") == {}


def selected(selection: str, card: bytes) -> list[str]:
    address = DatasetAddress.parse(f"hf://datasets/o/n{selection}")
    assert address is not None
    return address.selected(NAMES, card)
