"""What errors of the index's file mean."""

import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from pagemill.errors import NoSpaceError, OutputError
from pagemill.store.database import database_errors

KIB = 2**10


@pytest.mark.parametrize(("free", "expected"), [(8 * KIB, NoSpaceError), (10 * 2**30, OutputError)])
def test_an_input_output_error_on_a_full_disk_is_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, expected: type[Exception]
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    with pytest.raises(OutputError) as caught, database_errors(tmp_path / "index.sqlite"):
        raise error
    assert type(caught.value) is expected
