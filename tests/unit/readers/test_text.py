"""Text in encodings that nobody names."""

from pathlib import Path

import pytest
from test_formats import read, texts

from pagemill.readers.text import text_of


def test_one_bad_byte_does_not_destroy_a_file_in_utf_8(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes("점검 대상은 \0본청과".encode().replace(b"\0", b"\xff"))
    found = read(tmp_path / "a.txt", "text:read_text")
    assert texts(found) == ["점검 대상은 \ufffd본청과"]
    assert found.parts[0].warnings == ["the text is damaged: invalid UTF-8 in 1 place"]


@pytest.mark.parametrize(("text", "encoding"), [("점검 대상", "cp949"), ("un été à Nîmes", "cp1252")])
def test_a_guessed_encoding_is_named(tmp_path: Path, text: str, encoding: str):
    for name, reader in (("a.txt", "text:read_text"), ("a.csv", "text:read_separated"), ("a.md", "html:read_markdown")):
        (tmp_path / name).write_bytes(text.encode(encoding))
        found = read(tmp_path / name, reader).parts[0]
        assert (found.notes, found.warnings) == ([f"the text is not UTF-8; guessed encoding: {encoding}"], [])
    (tmp_path / "a.html").write_bytes(f'<meta charset="{encoding}"><p>{text}'.encode(encoding))
    assert not read(tmp_path / "a.html", "html:read_html").parts[0].notes


def test_a_mark_of_utf_8_decides_even_before_bad_bytes(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfabc\xffd")
    assert texts(read(tmp_path / "a.txt", "text:read_text")) == ["abc\ufffdd"]


@pytest.mark.parametrize(
    ("encoding", "said", "note"),
    [
        ("utf-8", "us-ascii", "the text is UTF-8, not us-ascii as declared"),
        ("cp949", "iso-8859-1", "the text is not UTF-8; guessed encoding: cp949"),
        ("iso-2022-kr", "ISO-2022-KR", ""),
    ],
)
def test_an_encoding_that_is_declared_is_checked(encoding: str, said: str, note: str):
    assert text_of("점검 대상은 본청".encode(encoding), said) == ("점검 대상은 본청", note, "")


SAID = {
    "cp949": "점검 대상은 본청과 소속 기관이며, 결과는 4월 말까지 통보한다. 똠방각하",
    "cp932": "点検の対象は本庁と所属機関であり、結果は四月末までに通知する。",
    "euc_jp": "点検の対象は本庁と所属機関であり、結果は四月末までに通知する。",
    "gb18030": "检查对象为总部及所属机构，检查结果将于四月底之前通知各部门。",
    "big5": "檢查對象為總部及所屬機構，檢查結果將於四月底之前通知各部門。",
    "cp1252": "Der Prüfbericht für die Außenstellen läßt sich – “überall” – öffnen. À bientôt, señor.",
}


@pytest.mark.parametrize("encoding", SAID)
def test_the_encoding_of_text_without_a_label_is_guessed(encoding: str):
    found = text_of(SAID[encoding].encode(encoding))
    assert found.text == SAID[encoding]
    assert found.note == f"the text is not UTF-8; guessed encoding: {encoding}"
