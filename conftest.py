"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

LARGE = bool(os.environ.get("PAGEMILL_TEST_LARGE"))

with suppress(ModuleNotFoundError):  # the tests with a real vLLM do without it, in vLLM's environment
    from hypothesis import HealthCheck, settings

    # No test may fail because the machine is busy.
    settings.register_profile("daily", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=8)
    settings.register_profile("large", settings.get_profile("daily"), max_examples=1000, print_blob=True)
    settings.load_profile("large" if LARGE else "daily")
    if not LARGE:
        # Hypothesis tries numbers and strings of the sources of all modules that are imported: collecting them takes
        # each process 3.5 s, and what a test is given would depend on the tests before it.
        with suppress(ImportError):
            from hypothesis.internal.conjecture import providers

            providers._get_local_constants = lambda: providers._local_constants

# What runs in the background (nohup, some build servers) ignores SIGINT, and so would all processes that tests start:
# pagemill keeps to that on purpose. Processes inherit a handler as the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_MARKS_OF_MODULE = re.compile(r"^pytestmark = (\[[^\]]*\]|.*)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules without a test that ``-m`` wants: importing them all takes each process seconds."""
    wanted = config.option.markexpr
    if wanted not in {"slow", "not slow"} or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if wanted == "slow":
        return True if "mark.slow" not in text else None
    return True if any("mark.slow" in marks for marks in _MARKS_OF_MODULE.findall(text)) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leave the million objects that collecting makes out of all garbage collections: they take a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
