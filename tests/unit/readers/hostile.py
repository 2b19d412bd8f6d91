"""Damaged and hostile files: bytes changed in a document, and members of its package replaced."""

import random
import zipfile
from collections.abc import Callable
from pathlib import Path


def damaged(data: bytes, seed: int) -> bytes:
    """A copy with some bytes changed, zeroed or gone, as after a bad transfer."""
    dice = random.Random(seed)
    copy = bytearray(data)
    kind = seed % 4
    if kind == 0:
        for _ in range(dice.randint(1, 20)):
            copy[dice.randrange(len(copy))] = dice.randrange(256)
    elif kind == 1:
        del copy[dice.randrange(len(copy)) :]
    elif kind == 2:
        start = dice.randrange(len(copy))
        length = dice.randint(1, 400)
        copy[start : start + length] = bytes(len(copy[start : start + length]))
    else:
        start = dice.randrange(len(copy))
        del copy[start : start + dice.randint(1, 400)]
    return bytes(copy)


def repacked(path: Path, target: Path, changed: Callable[[str, bytes], bytes]) -> Path:
    """A package whose members are changed, with right checksums: its XML is what is wrong."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in source.infolist():
            archive.writestr(member.filename, changed(member.filename, source.read(member)))
    return target


BOMB = (
    "<!DOCTYPE x ["
    + '<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {name} "{f"&{inner};" * 10}">' for inner, name in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
"""Entities that grow to 200 million characters."""
FILE = '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/hostname">]>'
