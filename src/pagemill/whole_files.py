"""Files that are either whole or not there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

TEMPORARY_SUFFIX = ".pagemill-tmp"
"""Of files that are being written: those of a killed process are found by it."""


@contextmanager
def whole_file(path: Path, *, shared: bool = False, durable: bool = False) -> Iterator[BinaryIO]:
    """Write a file under a temporary name beside ``path``; renamed when the block ends well, else deleted.

    Args:
        path: The file.
        shared: Others may write the same file at once: the temporary name is random.
        durable: Wait until the content is on the disk before the old file is replaced.

    Raises:
        OSError: The file cannot be written.
    """
    temporary = path.with_name((f".{secrets.token_hex(8)}" if shared else path.name) + TEMPORARY_SUFFIX)
    try:
        with temporary.open("wb") as stream:
            yield stream
            # The rename may reach the disk before the content: after a power cut the file would be empty.
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
