"""Adds syllables to Tesseract's Korean data: ``python scripts/extend_korean_data.py kor.traineddata OUT``.

tessdata_fast lists 1,076 of the 2,350 syllables of KS X 1001, and drops or replaces the others: "낡은" was read as
"은". Its network does not know syllables, but letters: it answers with a first one, a vowel and a last one (or a sign
for none), and a table, the recoder, makes a syllable of the three. So a syllable whose letters are all in the table can
be read once it is listed; the weights stay as they are. All but the 16 whose last letter no listed syllable has are
added.
"""

from __future__ import annotations

import argparse
import itertools
import struct
from pathlib import Path

UNICHARSET, RECODER = 21, 22
"""Parts of the file: the list of characters, and the codes of each."""
_FIRST, _VOWELS, _LASTS = 0xAC00, 21, 28
_LINE = "{syllable} 1 0,255,0,255,0,0,0,0,0,0 Hangul {number} 0 {number} {syllable}\t# {syllable} [{code:x} ]x"


def parts_of(data: bytes) -> list[bytes | None]:
    """The parts of a traineddata file; None for those that it does not have."""
    (count,) = struct.unpack_from("<i", data)
    offsets = struct.unpack_from(f"<{count}q", data, 4)
    ends = [*sorted(offset for offset in offsets if offset >= 0), len(data)]
    return [data[start : ends[ends.index(start) + 1]] if start >= 0 else None for start in offsets]


def joined(parts: list[bytes | None]) -> bytes:
    """A file of these parts."""
    first = 4 + 8 * len(parts)
    starts = itertools.accumulate((len(part or b"") for part in parts), initial=first)
    offsets = [-1 if part is None else start for part, start in zip(parts, starts, strict=False)]
    return struct.pack(f"<i{len(parts)}q", len(parts), *offsets) + b"".join(part or b"" for part in parts)


def codes_of(recoder: bytes) -> list[tuple[int, ...]]:
    """The network's codes of each character."""
    codes, position = [], 4
    while position < len(recoder):
        (length,) = struct.unpack_from("<i", recoder, position + 1)
        codes.append(struct.unpack_from(f"<{length}i", recoder, position + 5))
        position += 5 + 4 * length
    return codes


def letters_of(syllable: str) -> tuple[tuple[int, int], ...]:
    """First letter, vowel and last letter of a syllable, each with its place, which tells them apart."""
    first, rest = divmod(ord(syllable) - _FIRST, _VOWELS * _LASTS)
    return tuple(enumerate((first, *divmod(rest, _LASTS))))


def extended(data: bytes) -> bytes:
    """The data with all syllables of KS X 1001 whose letters it knows."""
    parts = parts_of(data)
    unicharset, recoder = parts[UNICHARSET], parts[RECODER]
    assert unicharset is not None and recoder is not None
    lines, codes = unicharset.decode().split("\n")[1:-1], codes_of(recoder)
    listed = [line.split(" ", 1)[0] for line in lines]
    known = {
        letter: code
        for character, coded in zip(listed, codes, strict=True)
        if len(character) == 1 and "가" <= character <= "힣"
        for letter, code in zip(letters_of(character), coded, strict=True)
    }
    rows, cells = range(0xB0, 0xC9), range(0xA1, 0xFF)
    for syllable in (bytes(pair).decode("euc-kr") for pair in itertools.product(rows, cells)):
        letters = letters_of(syllable)
        if syllable not in listed and all(letter in known for letter in letters):
            lines.append(_LINE.format(syllable=syllable, number=len(lines), code=ord(syllable)))
            codes.append(tuple(known[letter] for letter in letters))
    parts[UNICHARSET] = "\n".join([str(len(lines)), *lines, ""]).encode()
    parts[RECODER] = struct.pack("<I", len(codes)) + b"".join(
        struct.pack(f"<bi{len(coded)}i", 1, len(coded), *coded) for coded in codes
    )
    return joined(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="kor.traineddata of tessdata_fast 4.1.0")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    arguments.out.write_bytes(extended(arguments.source.read_bytes()))
