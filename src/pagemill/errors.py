"""The exceptions of pagemill. Each carries its exit code and, where there is one, the remedy."""

from __future__ import annotations

import errno
import re
from enum import IntEnum

_OUT_OF_MEMORY = re.compile(
    r"out of memory|bad[ _]alloc|failed to allocate|insufficient memory|alloc_failed|cannot allocate", re.IGNORECASE
)


class ExitCode(IntEnum):
    """Exit status of the command line; the table in ``docs/exit-codes.md`` is checked against this by a test."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    PAGES_FAILED = 3
    INPUT = 4
    ENCRYPTED = 5
    MISSING_DEPENDENCY = 6
    LANGUAGE = 7
    OUTPUT = 8
    NO_SPACE = 9
    TIMEOUT = 10
    CRASH = 11
    NETWORK = 12
    DAMAGED = 13
    SERVER = 14
    WORK_LEFT = 15
    INTERRUPTED = 130


class PagemillError(Exception):
    """Base of all errors that pagemill raises on purpose.

    Args:
        message: The error, with the name of the file, page or option concerned.
        remedy: Advice for the user; None if the message is enough.
    """

    exit_code: ExitCode = ExitCode.INTERNAL
    category: str = "internal"
    retryable: bool = True
    """Whether an isolated retry of the failed page may succeed."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(PagemillError):
    """An option is invalid, or contradicts another."""

    exit_code = ExitCode.USAGE
    category = "usage"
    retryable = False


class InputError(PagemillError):
    """An input is missing, empty, unreadable or not a document."""

    exit_code = ExitCode.INPUT
    category = "input"
    retryable = False


class MissingInputError(InputError):
    """The input does not exist."""

    category = "missing"


class UnreadableInputError(InputError):
    """The input exists and cannot be read: permissions, or a disk or share that fails."""

    category = "unreadable"


class UnsupportedInputError(InputError):
    """The input is not a document that pagemill can read."""

    category = "unsupported"


class CorruptInputError(InputError):
    """The input claims to be a document but cannot be decoded."""

    category = "corrupt"


class ChangedInputError(InputError):
    """A file was changed while it was read, so that its pages would be those of two versions."""

    category = "changed"


class TooLargeError(InputError):
    """A page or file is over a size limit."""

    category = "too_large"


class EmptyPageError(InputError):
    """A page has no area or no pixels."""

    category = "zero_size"


class EncryptedError(PagemillError):
    """A password is missing or wrong."""

    exit_code = ExitCode.ENCRYPTED
    category = "encrypted"
    retryable = False


class MissingDependencyError(PagemillError):
    """An optional package or system program is not installed; the remedy names the command that installs it."""

    exit_code = ExitCode.MISSING_DEPENDENCY
    category = "missing_dependency"
    retryable = False


class LanguageError(PagemillError):
    """No installed engine reads the language; the remedy names the package to install."""

    exit_code = ExitCode.LANGUAGE
    category = "language"
    retryable = False


class OutputError(PagemillError):
    """The output directory cannot be written."""

    exit_code = ExitCode.OUTPUT
    category = "output"
    retryable = False


class NoSpaceError(OutputError):
    """The disk is full or over quota."""

    exit_code = ExitCode.NO_SPACE
    category = "no_space"


class LockedError(OutputError):
    """Another process is using the output directory."""

    category = "locked"


class DifferentRunError(OutputError):
    """The output directory contains a run with other settings, and resuming it would mix two kinds of results."""

    category = "different_run"


class DamagedRunError(OutputError):
    """A run directory has torn, missing or duplicate parts."""

    exit_code = ExitCode.DAMAGED
    category = "damaged"


class PageTimeoutError(PagemillError):
    """A page took longer than its time limit in some stage."""

    exit_code = ExitCode.TIMEOUT
    category = "timeout"


class EngineError(PagemillError):
    """An engine returned an invalid result: too few values, a wrong shape, or numbers that are not finite."""

    category = "engine"


class WorkerCrashError(PagemillError):
    """A process died while it worked on a page."""

    exit_code = ExitCode.CRASH
    category = "crash"


class NetworkError(PagemillError):
    """A remote source could not be reached."""

    exit_code = ExitCode.NETWORK
    category = "network"


class ServerError(PagemillError):
    """A model server could not be started, or died repeatedly."""

    exit_code = ExitCode.SERVER
    category = "server"


FATAL = (NetworkError, OutputError, UsageError, MissingDependencyError)
"""Errors that every further item would raise as well: they end the work on many items."""


def lacks_extra(message: str, extra: str) -> MissingDependencyError:
    """The error for a package that an extra of pagemill installs."""
    from pagemill.installation import install_extra  # needed by few; its imports take a while

    return MissingDependencyError(message, remedy=f"Install it: {install_extra(extra)}")


def unreadable(name: str, error: OSError) -> InputError:
    """The error for an input that the system cannot read."""
    if isinstance(error, FileNotFoundError):
        return MissingInputError(f"{name} does not exist", remedy="Check the path.")
    return UnreadableInputError(
        f"{name} cannot be read: {error.strerror or error}", remedy="Check its permissions and its disk."
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception of an engine means that it ran out of memory, on the processor or the graphics card.

    Knows ``MemoryError``, ``torch.OutOfMemoryError`` (by its name: nothing is imported for it), and the messages of
    ONNX Runtime, CUDA's libraries and OpenCV, which raise a general class for it.
    """
    # By name: importing PyTorch to compare a class would take seconds.
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or _OUT_OF_MEMORY.search(str(error)) is not None


def is_no_space(error: OSError) -> bool:
    """Whether the disk is full or over quota, or the file as large as the system or its filesystem allows."""
    # NFS and quotas report EDQUOT, and a process over `ulimit -f` gets EFBIG.
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unwritable(where: object, error: OSError, *, remedy: str, no_space_remedy: str) -> OutputError:
    """The error for a file or folder that the system cannot write."""
    message = f"cannot write {where}: {error.strerror or error}"
    # Not a full disk, although it is reported like one: the limit of the process or of its filesystem.
    if error.errno == errno.EFBIG:
        no_space_remedy = "Raise the limit of file sizes (ulimit -f), or write to a filesystem that takes larger files."
    if is_no_space(error):
        return NoSpaceError(message, remedy=no_space_remedy)
    return OutputError(message, remedy=remedy)


def error_class(category: str) -> type[PagemillError]:
    """The class of a category, to raise an error that was stored as data; :class:`PagemillError` if it is unknown."""
    # Breadth first: a subclass that does not set a category of its own inherits that of its base, which is meant.
    waiting = [PagemillError]
    for candidate in waiting:
        if candidate.category == category:
            return candidate
        waiting.extend(candidate.__subclasses__())
    return PagemillError


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first exception of a group of tasks; it cancelled the other tasks."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first
