import os
import subprocess
import sys
from pathlib import Path

import pytest

from pagemill.serving.orphans import MARK, end_orphans

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def sleeper(**variables):
    """A process that runs, with these variables in its environment."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        env=os.environ | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    return process


@pytest.mark.parametrize("name", [MARK, "PAGEMILL_SERVER"])
@pytest.mark.parametrize("value", ["", "http://127.0.0.1:8000", "a1b2c3d4"])
def test_variables_that_somebody_has_set_by_hand_make_nobody_an_orphan(name, value):
    with sleeper(**{name: value}) as process:
        end_orphans()
        process.communicate(b"\n", timeout=60)
    assert process.returncode == 0


def test_a_process_of_a_server_without_its_watchdog_is_ended():
    with sleeper(**{MARK: "0123456789abcdef" * 2}) as process:
        assert end_orphans() >= 1
        process.communicate(timeout=60)
    assert process.returncode == -9
