"""The program's time limit, which counts its CPU time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pagemill.computing.cpu_time import Limit
from pagemill.recognition import tesseract_engine


def test_a_program_that_is_slow_on_a_busy_machine_gets_its_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tesseract_engine, "PROGRAM", sys.executable)
    monkeypatch.setattr(Limit, "left", lambda limit: 60.0)
    assert tesseract_engine._tesseract(["-c", "print('read')"], 0.001).stdout == b"read\n"


def test_one_that_has_used_up_its_time_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tesseract_engine, "PROGRAM", sys.executable)
    looks = iter([0.001, 0.0])
    monkeypatch.setattr(Limit, "left", lambda limit: next(looks))
    with pytest.raises(subprocess.TimeoutExpired):
        tesseract_engine._tesseract(["-c", "import threading; threading.Event().wait()"], 0.001)
    assert next(looks, None) is None
