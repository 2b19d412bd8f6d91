from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.names import crop_path, document_stem, safe_name

identifiers = st.text(st.characters(), max_size=400) | st.text(string.ascii_letters + "-_./\\", max_size=8)


@pytest.mark.parametrize("name", ["report_1", "보고서_3", "v1.2-draft_10"])
def test_keeps_a_safe_name(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/b", "a\\b", "a\0b", ".hidden", "..", "", "x" * 5000, "C:x", "\ud800"]
)
def test_makes_one_plain_path_component(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert not safe.startswith(".")
    assert not set(safe) & set('/\\\0:*?"<>| ')
    assert len(safe.encode()) <= 140


@given(identifiers, identifiers)
def test_two_identifiers_never_share_a_name_even_where_case_is_ignored(a: str, b: str) -> None:
    if a != b:
        assert safe_name(a).casefold() != safe_name(b).casefold()


def test_a_forged_hash_does_not_collide() -> None:
    taken = safe_name("A")
    assert safe_name(taken) != taken


def test_composed_and_decomposed_names_stay_apart() -> None:
    assert safe_name("caf\u00e9") != safe_name("cafe\u0301")


def test_a_document_keeps_the_case_of_its_name() -> None:
    assert document_stem("Annual-Report_v1.2") == "Annual-Report_v1.2"
    assert "/" not in document_stem("../evil")


def test_crop_path() -> None:
    assert crop_path("report_3", 7) == "crops/report_3_7.jpg"
    assert crop_path("../x", 0, ".png").count("/") == 1
