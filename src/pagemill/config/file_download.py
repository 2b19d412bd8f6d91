"""Fetches a file whose hash is known: it is there whole, or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from http.client import HTTPException
from pathlib import Path
from socket import gaierror
from ssl import SSLCertVerificationError
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from pagemill.errors import NetworkError, OutputError

_CHUNK = 2**20
_MOST_BYTES = 2 * 2**30
"""No model that runs inside pagemill is larger: a server that never ends does not fill the disk."""
_TIMEOUT_S = 60.0
"""Without a byte."""
_MOST_CAUSES = 20
_ERROR_NUMBER = re.compile(r"\[Errno -?\d+\] ")


def fetch_file(url: str, target: Path, sha256: str, *, mirror: str | None = None) -> None:
    """Download a file.

    Args:
        url: Its address.
        target: Where to put it; its folder is made.
        sha256: Of its bytes, in hex digits.
        mirror: Another host that has it at the same path, such as ``http://mirror:8000``.

    Raises:
        NetworkError: It could not be fetched, came with another hash, or ``HF_HUB_OFFLINE`` forbids the network.
        OutputError: It cannot be written.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        raise NetworkError(f"cannot download {url}: HF_HUB_OFFLINE is set", remedy="Unset it, and run it again.")
    address = mirror.rstrip("/") + urlsplit(url).path if mirror else url
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error}") from error
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            digest = _copied(address, file)
        if digest != sha256:
            raise NetworkError(
                f"{address} is not the file that was expected (sha256 {digest}, not {sha256})",
                remedy="Nothing was kept. Try it again, or another --mirror; if it stays so, report it.",
            )
        part.chmod(0o644)
        part.replace(target)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _copied(address: str, file: IO[bytes]) -> str:
    """Copy what an address holds into a file; its SHA-256."""
    digest, done = hashlib.sha256(), 0
    try:
        with urlopen(address, timeout=_TIMEOUT_S) as answer:
            while block := answer.read(_CHUNK):
                done += len(block)
                if done > _MOST_BYTES:
                    raise NetworkError(f"{address} does not end")
                digest.update(block)
                file.write(block)
    except (URLError, HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise NetworkError(
            f"cannot download {address}: {network_reason(error)}",
            remedy="Check the network and --mirror, then run it again.",
        ) from error
    return digest.hexdigest()


def network_reason(error: BaseException) -> str:
    """What an error of the network comes from, in words; the system's own, such as ``[Errno -2]``, say little."""
    causes = [error]
    while (cause := getattr(causes[-1], "reason", None) or causes[-1].__cause__ or causes[-1].__context__) is not None:
        if not isinstance(cause, BaseException) or len(causes) > _MOST_CAUSES:
            break
        causes.append(cause)
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
