"""Text in encodings that nobody names."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_formats import read, texts


def test_one_bad_byte_does_not_destroy_a_file_in_utf_8(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes("점검 대상은 \0본청과".encode().replace(b"\0", b"\xff"))
    found = read(tmp_path / "a.txt", "text:read_text")
    assert texts(found) == ["점검 대상은 \ufffd본청과"]
    assert found.parts[0].warnings == ["1 places of the text are damaged: they are no UTF-8"]


@pytest.mark.parametrize(("text", "encoding"), [("점검 대상", "cp949"), ("un été à Nîmes", "cp1252")])
def test_a_guessed_encoding_is_named(tmp_path: Path, text: str, encoding: str):
    for name, reader in (("a.txt", "text:read_text"), ("a.csv", "text:read_separated"), ("a.md", "html:read_markdown")):
        (tmp_path / name).write_bytes(text.encode(encoding))
        found = read(tmp_path / name, reader).parts[0]
        assert (found.notes, found.warnings) == ([f"the text is no UTF-8; its encoding was guessed: {encoding}"], [])
    (tmp_path / "a.html").write_bytes(f'<meta charset="{encoding}"><p>{text}'.encode(encoding))
    assert not read(tmp_path / "a.html", "html:read_html").parts[0].notes


def test_a_mark_of_utf_8_decides_even_before_bad_bytes(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfabc\xffd")
    assert texts(read(tmp_path / "a.txt", "text:read_text")) == ["abc\ufffdd"]
