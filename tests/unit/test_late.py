"""Modules and patterns that are made when they are first used."""

from __future__ import annotations

import sys

import pytest

from pagemill.late import Late, re


def test_a_module_is_imported_when_something_of_it_is_used():
    sys.modules.pop("colorsys", None)
    module = Late("colorsys")
    assert "colorsys" not in sys.modules
    assert module.rgb_to_hsv(0, 0, 0) == (0, 0, 0)
    assert "colorsys" in sys.modules


def test_a_pattern_is_compiled_when_it_is_used():
    broken, words = re.compile("("), re.compile(r"\w+", re.IGNORECASE)
    assert words.findall("ab c") == ["ab", "c"]
    with pytest.raises(re.error):
        broken.search("")
