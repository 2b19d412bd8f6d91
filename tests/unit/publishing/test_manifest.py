import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.publishing.manifest import Manifest, PublishedFile, described, read_manifest


def test_it_comes_back():
    manifest = Manifest(pages=2, files=(PublishedFile("data/a.parquet", 3, "0" * 64),))
    assert read_manifest(manifest.encoded()) == manifest


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000, b'{"generator":"x","pages":1,"files":[]}', b"\xff"])
def test_what_is_none_of_ours(data):
    assert read_manifest(data) is None


@given(st.binary(max_size=50))
def test_any_bytes_are_taken(data):
    assert read_manifest(data) is None


def test_files_with_sizes_and_digests(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"abc")
    digest = hashlib.sha256(b"abc").hexdigest()
    assert described(tmp_path, [tmp_path / "data" / "a"]) == [PublishedFile("data/a", 3, digest)]
