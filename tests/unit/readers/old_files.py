"""Files of HWP 5 and of PowerPoint and Excel before 2007, byte by byte: no permissive library writes them."""

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


def xls(path: Path, rows: tuple[tuple[str | float, ...], ...]) -> Path:
    """A workbook of one sheet, in BIFF8."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def start(kind: int) -> bytes:
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 1997, 0, 0))

    def cell(row: int, column: int, value: str | float) -> bytes:
        place = struct.pack("<HHH", row, column, 0)
        if not isinstance(value, str):
            return record(0x203, place + struct.pack("<d", value))
        return record(0x204, place + struct.pack("<HB", len(value), 1) + value.encode("utf-16-le"))

    name = struct.pack("<BB", 6, 0) + b"Prices"
    end = record(0x0A, b"")
    size = len(start(5)) + len(record(0x85, bytes(6) + name)) + len(end)
    book = start(5) + record(0x85, struct.pack("<IH", size, 0) + name) + end
    cells = (cell(row, column, value) for row, line in enumerate(rows) for column, value in enumerate(line))
    path.write_bytes(ole({"Workbook": (book + start(0x10) + b"".join(cells) + end).ljust(4096, b"\0")}))
    return path


def ppt(path: Path, slides: tuple[tuple[str, str], ...]) -> Path:
    """A presentation: a title and a text a slide."""

    def record(kind: int, data: bytes, *, holds: bool = False, instance: int = 0) -> bytes:
        return struct.pack("<HHI", 0xF * holds | instance << 4, kind, len(data)) + data

    texts = b""
    for number, (title, text) in enumerate(slides):
        texts += record(0x3F3, struct.pack("<IIiII", number + 2, 0, 2, 256 + number, 0))
        for kind, said in ((0, title), (1, text)):
            texts += record(0xF9F, struct.pack("<I", kind)) + record(0xFA0, said.encode("utf-16-le"))
    document = record(0x3E8, record(0x3E9, bytes(40)) + record(0xFF0, texts, holds=True), holds=True)
    stream = document
    places = [0]
    for _ in slides:
        places.append(len(stream))
        stream += record(0x3EE, record(0x3EF, bytes(24)), holds=True)
    directory = len(stream)
    table = struct.pack("<I", 1 | len(places) << 20) + b"".join(struct.pack("<I", place) for place in places)
    stream += record(0x1772, table)
    edit = len(stream)
    stream += record(0xFF5, struct.pack("<IHBBIIIIHH", 256, 0, 0, 3, 0, directory, 1, len(places), 1, 0))
    user = record(
        0xFF6, struct.pack("<IIIHHBBH", 20, 0xE391C05F, edit, 4, 0x03F4, 3, 0, 0) + b"user" + struct.pack("<I", 8)
    )
    path.write_bytes(ole({"PowerPoint Document": stream.ljust(4096, b"\0"), "Current User": user}))
    return path
