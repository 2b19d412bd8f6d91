"""Questions about a run before it starts."""

import os
import sqlite3
from pathlib import Path

import pytest
from small_run import write_run

from pagemill.app.options import DirectoryOptions
from pagemill.app.preflight import require_inputs
from pagemill.errors import UsageError
from pagemill.store.paths import DATABASE
from pagemill.store.rows import plain


def test_a_file_that_vanishes_between_two_runs_is_no_misspelling_though_its_name_is_no_utf8(tmp_path: Path) -> None:
    write_run(tmp_path / "out")
    name = str(tmp_path / os.fsdecode(b"caf\xe9.pdf"))
    with sqlite3.connect(tmp_path / "out" / DATABASE) as connection:
        connection.execute("UPDATE sources SET uri = ? WHERE source = 1", (plain(name),))
    require_inputs(tmp_path / "out", [name], DirectoryOptions())
    with pytest.raises(UsageError, match="does not exist"):
        require_inputs(tmp_path / "out", [f"{name}x"], DirectoryOptions())
