"""API keys identify the owner of a request. They are never stored or logged, and are dropped after start-up."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from pagemill.rest.errors import UnauthorizedError
from pagemill.store.files import output_errors, write_whole

_SALT_BYTES = 16
EVERYBODY = ""
"""The owner of all jobs of a server without keys."""


class KeyRing:
    """The keys that the server accepts, as salted hashes.

    Keys are long and random (see ``SHORTEST_KEY``), so one round of BLAKE2b is enough: a slow hash protects what people
    choose and remember, and would let anybody keep the server busy with wrong keys.

    Args:
        keys: In plain text.
        folder: Folder of the salt, by which owners of jobs are recognized after a restart.
    """

    def __init__(self, keys: Sequence[str], folder: Path) -> None:
        self._salt = _salt(folder / "salt")
        self._hashes = [self._hash(key) for key in keys]

    @property
    def required(self) -> bool:
        """Whether requests need a key."""
        return bool(self._hashes)

    def owner(self, headers: Mapping[str, str]) -> str:
        """The owner of a request: the hash of its key.

        Raises:
            UnauthorizedError: The key is missing or wrong.
        """
        if not self._hashes:
            return EVERYBODY
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # The second header is for clients of docling-serve, which knows only that one.
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not given:
            raise UnauthorizedError(
                "this server needs an API key", remedy="Send it as Authorization: Bearer KEY, or as X-Api-Key: KEY."
            )
        hashed = self._hash(given)
        # All are compared, each in constant time: the response time reveals nothing about a key.
        known = [hmac.compare_digest(hashed, each) for each in self._hashes]
        if not any(known):
            raise UnauthorizedError("the API key is wrong", remedy="Ask the operator of the server for a key.")
        return hashed.hex()

    def _hash(self, key: str) -> bytes:
        return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16, salt=self._salt).digest()


def _salt(path: Path) -> bytes:
    with output_errors(path):
        if path.exists() and len(salt := path.read_bytes()) == _SALT_BYTES:
            return salt
    salt = secrets.token_bytes(_SALT_BYTES)
    write_whole(path, [salt], durable=True)
    # With the salt, hashes of owners in the table could be tried against guessed keys.
    path.chmod(0o600)
    return salt
