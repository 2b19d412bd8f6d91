"""Remedies are sentences: what the user is told to do begins with a capital letter."""

import re
from pathlib import Path

import pytest

from pagemill.errors import UsageError
from pagemill.runtime import engines

ROOT = Path(__file__).parents[2]
MODULES = [*(ROOT / "src").rglob("*.py"), *ROOT.glob("packages/*/src/**/*.py")]


def test_remedies_are_sentences():
    given = re.compile(r"""\bremedy=\s*\(?\s*f?["'](.*)""")
    found = [(path, text) for path in MODULES for text in given.findall(path.read_text(encoding="utf-8"))]
    assert len(found) > 100
    assert [each for each in found if each[1][:1].islower() and not each[1].startswith("pagemill ")] == []


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        (engines.LAYOUT_ENGINES, "layout engine"),
        (engines.TEXT_ENGINES, "text engine"),
        (engines.TEXT_DETECTORS, "text detector"),
    ],
)
def test_an_unknown_engine_is_called_by_its_kind(group: str, kind: str):
    with pytest.raises(UsageError, match=f"there is no {kind} 'nope'"):
        engines.load(group, "nope")
