"""Where language data is found, the library's instances, and the program's time limit, which counts its CPU time."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pagemill.computing.cpu_time import Limit
from pagemill.config.model_cards import load_card, tessdata_names
from pagemill.config.model_files import MODELS_VARIABLE
from pagemill.errors import WorkerCrashError
from pagemill.recognition import tessdata, tesseract_engine
from pagemill.recognition.languages import LANGUAGE_OF_SCRIPT, TESSDATA_NAMES, remedy_for


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


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine without a program or data of its own."""
    monkeypatch.setattr(tessdata, "_PREFIXES", (str(tmp_path / "usr"),))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    monkeypatch.delenv("TESSDATA_PREFIX", raising=False)
    yield tmp_path
    tesseract_engine.installed_languages.cache_clear()


def test_korean_comes_with_the_package(bare: Path):
    data = tessdata.find_data("kor")
    assert data is not None
    assert hashlib.sha256(data.read_bytes()).hexdigest() in (Path(__file__).parents[3] / "NOTICE").read_text(
        encoding="utf-8"
    )
    tesseract_engine.installed_languages.cache_clear()
    assert tesseract_engine.installed_languages() == ({"ko"} if tesseract_engine.library() else frozenset())


def test_neither_library_nor_program_read_nothing(bare: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tesseract_engine, "library", lambda: None)
    tesseract_engine.installed_languages.cache_clear()
    assert tesseract_engine.installed_languages() == frozenset()


def test_data_is_found_where_it_is(bare: Path, monkeypatch: pytest.MonkeyPatch):
    places = [bare / "usr/share/tesseract-ocr/5/tessdata", bare / "models/tessdata", bare / "mine"]
    monkeypatch.setenv("TESSDATA_PREFIX", str(bare / "mine"))
    assert tessdata.find_data("heb") is None
    for folder in places:  # each is looked into before the ones above
        folder.mkdir(parents=True)
        (folder / "heb.traineddata").touch()
        assert tessdata.find_data("heb") == folder / "heb.traineddata"


def test_data_of_every_detected_script_can_be_downloaded():
    codes = {TESSDATA_NAMES[language] for language in LANGUAGE_OF_SCRIPT.values()} - {"kor"}
    assert tessdata_names() == sorted(f"tessdata:{code}" for code in codes)
    assert load_card("tessdata:heb").files[0].name == "heb.traineddata"
    assert remedy_for(["he"]).startswith("pagemill models download tessdata:heb, or: apt-get install")
    assert remedy_for(["ko"]).startswith("apt-get install"), "its data is here: what lacks is an engine"


def test_an_instance_of_the_library_is_kept_until_it_fails(bare: Path, monkeypatch: pytest.MonkeyPatch):
    made = []

    class Api(SimpleNamespace):
        def Recognize(self) -> bool:
            return not self.broken

        def GetUTF8Text(self) -> str:
            return "ab\n"

        def GetTSVText(self, _: int) -> str:
            return "4\t1\t1\t1\t1\t0\t0\t0\t9\t9\t-1\t\n5\t1\t1\t1\t1\t1\t10\t0\t40\t9\t90.5\tab\n"

    def make(**said: str) -> Api:
        ignored = dict.fromkeys(("SetVariable", "SetPageSegMode", "SetImageBytes", "Clear"), lambda *_: True)
        made.append(Api(broken=False, said=said, **ignored))
        return made[-1]

    monkeypatch.setattr(tesseract_engine, "library", lambda: SimpleNamespace(PyTessBaseAPI=make))
    recognizer = tesseract_engine.TesseractRecognizer("ko")
    line = np.repeat(np.linspace(0, 255, 64, dtype=np.uint8)[:, None, None], 100, axis=1).repeat(3, axis=2)
    for _ in range(2):
        (read,) = recognizer.recognize([line])
    assert (read.text, read.confidence, read.span_of(0, 2)) == ("ab", pytest.approx(0.905), pytest.approx((0.1, 0.5)))
    assert made[0].said == {"path": f"{tessdata.EMBEDDED}/", "lang": "kor"}
    made[0].broken = True
    with pytest.raises(WorkerCrashError):
        recognizer.recognize([line])
    recognizer.recognize([line])
    assert len(made) == 2
