"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

LARGE = bool(os.environ.get("PAGEMILL_TEST_LARGE"))

with suppress(ModuleNotFoundError):  # the tests with a real vLLM do without it, in vLLM's environment
    from hypothesis import HealthCheck, settings

    # No test may fail because the machine is busy.
    settings.register_profile("daily", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=12)
    settings.register_profile("large", settings.get_profile("daily"), max_examples=1000, print_blob=True)
    settings.load_profile("large" if LARGE else "daily")

# What runs in the background (nohup, some build servers) ignores SIGINT, and so would all processes that tests start:
# pagemill keeps to that on purpose. Processes inherit a handler as the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leave the million objects that collecting makes out of all garbage collections: they take a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
