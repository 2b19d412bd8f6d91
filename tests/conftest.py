"""What holds for all tests."""

from __future__ import annotations

import signal
from contextlib import suppress

with suppress(ModuleNotFoundError):  # the tests with a real vLLM do without it, in vLLM's environment
    from hypothesis import HealthCheck, settings

    # No test may fail because the machine is busy.
    settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("unhurried")

# Commands in the background (nohup, some build servers) ignore SIGINT, and so would all processes that tests start: by
# design pagemill keeps to that. A handler here is inherited as the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
