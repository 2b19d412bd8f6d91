import string
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.names import MAX_BYTES, crop_path, file_stem, safe_name

identifiers = st.text(st.characters(), max_size=400) | st.text(string.ascii_letters + "-_./\\", max_size=8)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("report", "report"),
        ("보고서 2024", "보고서 2024"),
        (unicodedata.normalize("NFD", "보고서"), "보고서"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "document"),
        (".hidden", "hidden"),
        ("", "document"),
        ("a\0b\nc", "a_b_c"),
        ("C:\\x", "C__x"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("name. ", "name"),
        ("right\u202eleft", "right_left"),
        ("bad\udcff", "bad_"),
    ],
)
def test_safe_names(raw: str, expected: str):
    assert safe_name(raw) == expected


@given(st.text(max_size=400))
def test_any_text_becomes_one_path_component(raw: str):
    name = safe_name(raw)
    assert Path(name).name == name
    assert name not in ("", ".", "..")
    assert not name.startswith(".")
    assert len(name.encode("utf-8")) <= MAX_BYTES + 1
    assert safe_name(name) == name


@pytest.mark.parametrize("name", ["report_1", "보고서_3", "Annual Report v1.2"])
def test_a_safe_id_is_its_own_file_name(name: str):
    assert file_stem(name) == name


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "a\\b", "a\0b", ".hidden", "..", "", "x" * 5000, "\ud800"])
def test_an_unsafe_id_becomes_one_plain_path_component(name: str):
    stem = file_stem(name)
    assert Path(stem).name == stem
    assert not stem.startswith(".")
    assert len(stem.encode()) <= MAX_BYTES + 12


@given(identifiers, identifiers)
def test_two_unsafe_ids_never_share_a_file(a: str, b: str):
    if a != b and file_stem(a) != a and file_stem(b) != b:
        assert file_stem(a) != file_stem(b)


def test_crop_path():
    assert crop_path("report_3", 7) == "crops/report_3_crop_7.jpg"
    assert crop_path("../x", 0).count("/") == 1
