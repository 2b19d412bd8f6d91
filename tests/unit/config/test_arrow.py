from __future__ import annotations

import subprocess
import sys

import pytest

from pagemill.config.arrow import pa
from pagemill.errors import ExitCode, MissingDependencyError
from pagemill.installation import install_extra

WITHOUT = "import sys; sys.modules['pyarrow'] = None; from pagemill.cli import main; main()"


def test_it_is_imported_on_use():
    assert pa.int64() == pa.int64()


def test_what_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError) as caught:
        pa.int64()
    assert caught.value.remedy == f"Install it: {install_extra('datasets')}"


@pytest.mark.parametrize(("command", "status"), [("embed", ExitCode.MISSING_DEPENDENCY), ("search", 0), ("export", 0)])
def test_commands_without_it(command: str, status: int):
    run = subprocess.run([sys.executable, "-c", WITHOUT, command, "--help"], capture_output=True, text=True, timeout=60)
    assert run.returncode == status, run.stderr
    assert "Traceback" not in run.stderr
