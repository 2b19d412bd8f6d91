"""What is costly to make, and read by many tests: made once, also where several processes run the tests."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first process that asks for it fills while the others wait. Nobody may write to it.

    Args:
        factory: Of pytest.
        name: Of the folder.
        make: Fills a new folder. Where it raises, the next one who asks tries again.
    """
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each of these processes has a folder of its own in one they share
        root = root.parent
    folder = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            new = factory.mktemp(name)
            make(new)
            new.rename(folder)
    return folder
