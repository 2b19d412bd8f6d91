"""Whether the segments of an embedded JBIG2 image are all there (ITU-T T.88, section 7).

No decoder of it can be asked. Its arithmetic code has no errors: a damaged byte gives other pixels.
"""

from __future__ import annotations

import struct

_GENERIC_REGION = 38
_REGIONS = frozenset({4, 6, 7, 20, 22, 23, 36, _GENERIC_REGION, 39, 40, 42, 43})
_KINDS = _REGIONS | {0, 16, 48, 49, 50, 51, 52, 53, 62}
_PAGE = 48
_UNKNOWN_LENGTH = 0xFFFFFFFF
_FLAGS_OF_REGION = 17
"""Where the flags of a generic region are, behind its size and place."""
_ROW_COUNT = 4
_PADDING = 4
"""Bytes behind the last segment that are no header of another one."""


def is_whole_jbig2(shared: bytes, data: bytes) -> bool:
    """Whether all segments are whole, of known kinds, and refer to segments that are there.

    Args:
        shared: The global segments; empty where there are none.
        data: The segments of the image.
    """
    known: set[int] = set()
    kinds: set[int] = set()
    try:
        is_whole = all(_read_segments(each, known, kinds) for each in (shared, data))
        return is_whole and _PAGE in kinds and not kinds.isdisjoint(_REGIONS)
    except (struct.error, IndexError):  # a header breaks off
        return False


def _read_segments(data: bytes, known: set[int], kinds: set[int]) -> bool:
    """Go over segments, adding their numbers and kinds."""
    place = 0
    while len(data) - place > _PADDING:
        number, flags, referred = struct.unpack_from(">IBB", data, place)
        place += 5
        # Up to four references are counted in three bits; seven announces a number of its own (7.2.4).
        if (count := referred >> 5) == 7:
            count = struct.unpack_from(">I", data, place)[0] & 0x1FFFFFFF
            place += 4 + (count + 8) // 8
        else:
            place += 1
        # References are as wide as the segment's own number needs (7.2.5).
        code = "B" if number <= 256 else "H" if number <= 65_536 else "I"
        if place + count * struct.calcsize(code) > len(data):
            return False
        if not known.issuperset(struct.unpack_from(f">{count}{code}", data, place)):
            return False
        place += count * struct.calcsize(code) + (4 if flags & 0x40 else 1)
        (length,) = struct.unpack_from(">I", data, place)
        place += 4
        kind = flags & 0x3F
        if kind not in _KINDS:
            return False
        if length == _UNKNOWN_LENGTH:
            # A region of unknown length ends with a mark, which depends on its coding: MMR or arithmetic (7.2.7).
            end = b"\0\0" if data[place + _FLAGS_OF_REGION] & 1 else b"\xff\xac"
            found = data.find(end, place + _FLAGS_OF_REGION + 1) if kind == _GENERIC_REGION else -1
            if found < 0:
                return False
            length = found + len(end) + _ROW_COUNT - place
        place += length
        if place > len(data):
            return False
        known.add(number)
        kinds.add(kind)
    return True
