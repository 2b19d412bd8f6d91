"""What holds for all tests."""

from __future__ import annotations

import signal

# Commands in the background (nohup, some build servers) ignore SIGINT, and so would all processes that tests start: by
# design pagemill keeps to that. A handler here is inherited as the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
