"""Nothing is collected behind the user's back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from pagemill.layout.settings import LayoutSettings
from pagemill.runtime import engines
engines.load(engines.LAYOUT_ENGINES, "onnx")(LayoutSettings())
engines.load(engines.TEXT_DETECTORS, "rapidocr")()
"""


@pytest.mark.integration
def test_engines_leave_nothing_in_the_home_directory(tmp_path: Path):
    home = {name: str(tmp_path) for name in ("HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA")}
    kept = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", SCRIPT], env=kept | home, check=True, timeout=120)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
