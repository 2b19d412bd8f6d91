import pickle
import subprocess
import sys

import pyarrow.parquet
import pytest

from pagemill.config.arrow import pa, pq
from pagemill.errors import MissingDependencyError
from pagemill.installation import install_extra

WITHOUT = """
import sys; sys.modules['pyarrow'] = None
from pagemill.cli import cli
for command in ("embed", "index", "search", "export", "parse"):
    cli.main([command, "--help"], standalone_mode=False)
"""


def test_it_is_imported_on_use():
    assert pa.int64() == pa.int64()


def test_what_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError) as caught:
        pa.int64()
    assert caught.value.remedy == f"Install it: {install_extra('datasets')}"


def test_commands_are_there_without_it():
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("Usage: ") == 5


def test_what_refers_to_pyarrow_travels_to_other_processes():
    # Ray pickles the functions that use it.
    assert pickle.loads(pickle.dumps(pq)).ParquetFile is pyarrow.parquet.ParquetFile
