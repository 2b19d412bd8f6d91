"""Remedies are sentences: what the user is told to do begins with a capital letter."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pagemill.errors import UsageError
from pagemill.runtime import engines

SOURCE = Path(__file__).parents[2] / "src" / "pagemill"


def remedies(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and beginning of each text that is given as a remedy where it stands."""
    given = [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "remedy"]
    found = []
    for keyword in given:
        value = keyword.value.values[0] if isinstance(keyword.value, ast.JoinedStr) else keyword.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found.append((value.lineno, value.value))
    return found


def test_remedies_are_sentences():
    lower = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in SOURCE.rglob("*.py")
        for line, text in remedies(ast.parse(path.read_text(encoding="utf-8")))
        if text[:1].islower() and not text.startswith("pagemill ")
    ]
    assert lower == []


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
