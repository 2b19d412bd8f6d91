"""Modules and patterns that are made when they are first used."""

import importlib
import pkgutil
import sys

import pytest

import pagemill
from pagemill.errors import PagemillError
from pagemill.late import Late, _Pattern, re


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


@pytest.mark.slow
def test_every_pattern_of_the_package_compiles():
    """One that does not would fail in the middle of a run, on the document that needs it."""
    found = 0
    for info in pkgutil.walk_packages(pagemill.__path__, "pagemill.", onerror=lambda name: None):
        if info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except (ImportError, PagemillError):  # an extra that is not installed
            continue
        for value in vars(module).values():
            if isinstance(value, _Pattern):
                assert value.pattern is not None
                found += 1
    assert found > 100
