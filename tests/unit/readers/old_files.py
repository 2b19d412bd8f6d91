"""Files of HWP 5 and of PowerPoint and Excel before 2007, byte by byte: no permissive library writes them."""

from __future__ import annotations

import struct
from pathlib import Path

from ole_files import ole

_PARAGRAPH, _TEXT, _CONTROL, _LIST, _TABLE = 66, 67, 71, 72, 77
_TABLE_MARK = "".join(map(chr, (11, *struct.unpack("<2H", b" lbt"), 0, 0, 0, 0, 11)))


def _record(tag: int, level: int, data: bytes) -> bytes:
    size = min(len(data), 0xFFF)
    long = struct.pack("<I", len(data)) if size == 0xFFF else b""
    return struct.pack("<I", tag | level << 10 | size << 20) + long + data


def _paragraph(text: str, level: int = 0, *, control: bool = False) -> bytes:
    text += "\r"
    head = struct.pack("<IIHBBHHHI", len(text), (1 << 11) * control, 0, 0, 0, 0, 0, 0, 0)
    return _record(_PARAGRAPH, level, head) + _record(_TEXT, level + 1, text.encode("utf-16-le"))


def hwp(path: Path, title: str, texts: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Path:
    """A notice: a title, paragraphs and a table."""
    body = b"".join(map(_paragraph, (title, *texts))) + _paragraph(_TABLE_MARK, control=True)
    body += _record(_CONTROL, 1, b" lbt" + bytes(42))
    shape = struct.pack("<IHHH8x", 0, len(rows), len(rows[0]), 0)
    body += _record(_TABLE, 2, shape + struct.pack(f"<{len(rows)}H", *(len(row) for row in rows)) + bytes(4))
    for row, line in enumerate(rows):
        for column, text in enumerate(line):
            cell = struct.pack("<iI4H", 1, 0, column, row, 1, 1) + struct.pack("<II8xH", 1000, 1000, 0)
            body += _record(_LIST, 2, cell) + _paragraph(text, 2)
    about = _record(16, 0, struct.pack("<H24x", 1)) + _record(17, 0, bytes(72))
    head = b"HWP Document File".ljust(32, b"\0") + struct.pack("<II", 0x05000300, 0)
    path.write_bytes(ole({"FileHeader": head.ljust(256, b"\0"), "DocInfo": about, "BodyText/Section0": body}))
    return path
