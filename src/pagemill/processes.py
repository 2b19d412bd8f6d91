"""Child processes: the commands that start pagemill's own, their end with their parent, and why one was killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LOOK_S = 1.0
# Looked up when this module is imported: between fork and exec nothing may be loaded.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def module_command(module: str, *interpreter_options: str) -> list[str]:
    """The command that calls ``main`` of a module of pagemill in a new interpreter.

    Unlike multiprocessing, it needs no ``__main__`` guard in a user's script.

    Args:
        module: Its full name; ``main`` returns the exit status or None.
        interpreter_options: Options of Python, such as ``-I``.
    """
    root = str(Path(__file__).parent.parent)
    # The working directory may hold anything and stays off the import path (-P); the package's own place goes last.
    boot = f"import sys; sys.path.append({root!r}); from {module} import main; sys.exit(main())"
    return [sys.executable, "-P", *interpreter_options, "-c", boot]


def die_with_parent(parent: int, *, group: bool = False) -> None:
    """Have this process killed when its parent ends, however that ends. Called first thing in the child.

    Args:
        parent: Process id of the parent, taken before the fork.
        group: On systems other than Linux a thread looks for the parent and kills this process's group; else nothing is
            done there.
    """
    if sys.platform == "linux":
        assert _prctl is not None
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the line above
            os.kill(os.getpid(), signal.SIGKILL)
    elif group:
        threading.Thread(target=_kill_group_after, args=(parent,), name="pagemill.parent", daemon=True).start()


def exit_reason(code: int) -> str:
    """How a process ended, in words: its exit status, or, where that is negative, the name of the signal."""
    if code >= 0:
        return f"exit status {code}"
    return next((known.name for known in signal.Signals if known == -code), f"signal {-code}")


def out_of_memory_kills() -> int | None:
    """How many processes the kernel has killed since it started because memory ran out, of a machine or of a control
    group; None where the system does not report it (Linux before 4.13, other systems).

    A SIGKILL while this number does not change was sent by somebody: a person, a container's manager.
    """  # noqa: D205 - one sentence
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
    except (OSError, ValueError, IndexError):
        return None


def _kill_group_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.killpg(0, signal.SIGKILL)
