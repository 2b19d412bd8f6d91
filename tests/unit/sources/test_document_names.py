import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.sources.names import MAX_BYTES, UniqueNames, safe_name


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


def test_duplicates_get_numbers():
    names = UniqueNames()
    assert [names.claim(n) for n in ("a", "a", "A", "a-2", "b", "a")] == ["a", "a-2", "A-3", "a-2-2", "b", "a-4"]


@given(st.lists(st.sampled_from(["a", "A", "a-2", "a-3", "a-2-2", "b"]), max_size=30))
def test_claimed_names_are_unique(wanted: list[str]):
    names = UniqueNames()
    claimed = [names.claim(name).casefold() for name in wanted]
    assert len(set(claimed)) == len(claimed)
