from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import layout_postprocess

if TYPE_CHECKING:
    import pytest


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["layout_postprocess.py", *arguments])
    layout_postprocess.main()
    return capsys.readouterr().out


def test_times_and_agreement_in_small(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    answer = json.loads(run(monkeypatch, capsys, "--pages", "1", "--boxes", "5", "--sets", "3", "--json"))
    times, agreement = answer["tables"]
    assert len(times["rows"]) == 4
    assert agreement["rows"] == [{"ours and": "the scalar reference", "equal": 3, "sets": 3}]


def test_without_sets_nothing_is_compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert "same boxes" not in run(monkeypatch, capsys, "--pages", "1", "--boxes", "5", "--sets", "0")
