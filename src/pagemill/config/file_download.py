"""Download of a file with a known hash: atomic and verified."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from socket import gaierror
from ssl import SSLCertVerificationError
from urllib.error import HTTPError
from urllib.parse import urlsplit

from pagemill.errors import NetworkError, unwritable
from pagemill.late import re
from pagemill.whole_files import whole_file

_CHUNK = 2**20
_MOST_BYTES = 2 * 2**30
"""Upper bound above the size of every embedded model: an endless response must not fill the disk."""
_TIMEOUT_S = 60.0
"""Timeout between two blocks."""
_MOST_CAUSES = 20
_ERROR_NUMBER = re.compile(r"\[Errno -?\d+\] ")


def fetch_file(url: str, target: Path, sha256: str, *, mirror: str | None = None) -> None:
    """Download a file.

    Args:
        url: Its address.
        target: Target path; its folder is created.
        sha256: SHA-256 of its bytes, in hex digits.
        mirror: Another host that has it at the same path, such as ``http://mirror:8000``.

    Raises:
        NetworkError: It could not be fetched, came with another hash, or ``HF_HUB_OFFLINE`` forbids the network.
        OutputError: It cannot be written; NoSpaceError when the disk is full.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        raise NetworkError(f"cannot download {url}: HF_HUB_OFFLINE is set", remedy="Unset it, and run it again.")
    address = mirror.rstrip("/") + urlsplit(url).path if mirror else url
    digest = hashlib.sha256()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target, shared=True) as file:
            for block in _blocks(address):
                digest.update(block)
                file.write(block)
            if digest.hexdigest() != sha256:
                raise NetworkError(
                    f"{address} is not the file that was expected (sha256 {digest.hexdigest()}, not {sha256})",
                    remedy="Nothing was kept. Try it again, or another --mirror; if it stays so, report it.",
                )
    except OSError as error:
        remedy = "Check the write permissions there, or choose another folder with --to."
        no_space_remedy = "Free some space, or choose another disk with --to."
        raise unwritable(target, error, remedy=remedy, no_space_remedy=no_space_remedy) from error


def _blocks(address: str) -> Iterator[bytes]:
    """The content of an address, block by block."""
    from http.client import HTTPException  # imported by few; takes a while
    from urllib.request import urlopen

    done = 0
    try:
        with urlopen(address, timeout=_TIMEOUT_S) as answer:
            while block := answer.read(_CHUNK):
                done += len(block)
                if done > _MOST_BYTES:
                    raise NetworkError(f"{address} is endless")
                yield block
    except (OSError, HTTPException, ValueError) as error:
        raise NetworkError(
            f"cannot download {address}: {network_reason(error)}",
            remedy="Check the network and --mirror, then run it again.",
        ) from error


def network_reason(error: BaseException) -> str:
    """The cause of a network error in words, instead of the system's ``[Errno -2]``."""
    causes = [error]
    while (cause := getattr(causes[-1], "reason", None) or causes[-1].__cause__ or causes[-1].__context__) is not None:
        if not isinstance(cause, BaseException) or len(causes) > _MOST_CAUSES:
            break
        causes.append(cause)
    # Libraries wrap the error of the system several times; the first cause that has a plain meaning is shown.
    for each in causes:
        if isinstance(each, HTTPError):
            return f"the server answered {each.code} {each.reason}"
        if isinstance(each, gaierror):
            return "the address of its host is not known"
        if isinstance(each, TimeoutError):
            return "the server did not answer in time"
        if isinstance(each, SSLCertVerificationError):
            return f"the certificate of the server is not trusted ({each.verify_message})"
        if isinstance(each, ConnectionError) and each.strerror:
            return each.strerror.lower()
    return _ERROR_NUMBER.sub("", str(error).strip().partition("\n")[0]) or type(error).__name__
