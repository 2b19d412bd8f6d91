"""Messages of Outlook (MSG) as messages of the Internet: their properties are streams of an OLE file.

Specification: https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxmsg
"""

from __future__ import annotations

import mimetypes
import struct
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.errors import MessageDefect
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from pagemill.errors import CorruptInputError, PagemillError, TooLargeError, lacks_extra
from pagemill.readers.rich_text import markup_of
from pagemill.readers.text import MOST_BYTES, text_of

_SUBJECT, _SENDER, _SENDER_ADDRESS, _TO, _CC = "0037", "0C1A", "5D01", "0E04", "0E03"
_BODY, _HTML, _RICH = "1000", "1013", "1009"
_DATA, _FILE, _SHORT_FILE, _SHOWN_AS, _CONTENT_ID, _TYPE = "3701", "3707", "3704", "3001", "3712", "370E"
_TIMES = (0x0039_0040, 0x0E06_0040)
"""Properties of when it was sent, or else came."""
_CODE_PAGE = 0x3FDE_0003
"""Property of the encoding of its HTML."""
_UTF_8 = 65001
_COMPRESSED, _STORED = b"LZFu", b"MELA"
_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""The dictionary with which compressed rich text starts."""
_HEADER = 16
_WINDOW = 4096
"""Bytes to which it refers back."""
_HEADS = (32, 24)
"""Bytes before the properties of a message, and of one inside of another."""
_ATTACHED = 8
"""The same of an attachment."""
_ENDS = {"001F": 2, "001E": 1, "0102": 0}
"""Bytes at the end, by the kind of a property, that its declared length counts and its stream need not have."""
_NAMES_OF_PARTS = {_SUBJECT: "the subject", _BODY: "the text", _HTML: "the text as HTML", _RICH: "the text as RTF"}
_NAMES_OF_PARTS |= {_DATA: "an attachment"}
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MOST_DEPTH = 20


class Unread(MessageDefect):
    """Unread parts of a message."""


def message_of(path: Path) -> EmailMessage:
    """Read a message.

    Raises:
        CorruptInputError: It is damaged.
        MissingDependencyError: The package that opens OLE files is not installed.
    """
    try:
        from dochan.cfb import OleFileIO
    except ImportError:
        raise lacks_extra(f"messages of Outlook need the package dochan: {path.name}", "office") from None
    try:
        with OleFileIO(str(path)) as ole:
            names = ["/".join(each) for each in ole.listdir(streams=True, storages=True)]
            found = _Reader(ole, names).message("", 0)
            if ole.recovery_issues:  # a part of the file is gone, and what is left was read
                found.defects.append(MessageDefect("part of the file is missing"))
            return found
    except OSError as error:  # as the package calls its errors
        raise CorruptInputError(f"the message is damaged: {error}", remedy="Save it again.") from error


class _Reader:
    def __init__(self, ole: Any, names: list[str]) -> None:
        self._ole = ole
        self._names = names
        self._known = set(names)
        self._declared: dict[str, int] = {}
        """Lengths of streams, by their paths."""
        self._is_damaged = False
        """A text has characters that no program writes."""

    def message(self, folder: str, depth: int) -> EmailMessage:
        """The message in a storage of the file."""
        if depth > _MOST_DEPTH:
            raise TooLargeError("messages are nested too deeply", remedy="Save the attached message.")
        fixed = self._fixed(folder, _HEADS[depth > 0])
        found = EmailMessage()
        if not fixed:
            found.defects.append(Unread("the properties of the message, which are missing"))
        sender, address = self._text(folder, _SENDER), self._text(folder, _SENDER_ADDRESS)
        sender = f"{sender} <{address}>" if address and address != sender else sender
        headers = {"Subject": self._text(folder, _SUBJECT), "From": sender}
        headers |= {"To": self._text(folder, _TO), "Cc": self._text(folder, _CC)}
        sent = next((fixed[time] for time in _TIMES if fixed.get(time)), None)
        if sent is not None:
            with suppress(OverflowError):
                # Windows counts in steps of 100 ns from 1601.
                headers["Date"] = format_datetime(_EPOCH + timedelta(microseconds=int.from_bytes(sent, "little") // 10))
        for name, value in headers.items():
            # Not by the class: it checks addresses, which are whatever Outlook shows.
            found._headers.append((name, " ".join(value.split())))  # type: ignore[attr-defined]
        plain, html, rich = self._text(folder, _BODY), self._html(folder, fixed), b""
        if not html and (packed := self._stream(folder, _RICH, "0102")):
            try:
                rich = decompressed(packed)
                html = markup_of(rich)
            except (ValueError, PagemillError) as error:  # the message has other texts and attachments
                rich = b""
                found.defects.append(Unread(f"the text as RTF, which is damaged ({error})"))
        found.set_content(plain)
        if html:
            found.add_alternative(html, subtype="html")
        elif rich:
            found.add_alternative(rich, "text", "rtf")
        for place in self._folders(folder, "__attach_version1.0_"):
            self._attach(found, place, depth)
        if self._is_damaged:
            found.defects.append(Unread("characters of a text, which are damaged"))
        found.defects += (Unread(f"the end of {what}") for what in self._cut(folder))
        return found

    def _attach(self, found: EmailMessage, place: str, depth: int) -> None:
        self._fixed(place, _ATTACHED)
        names = (" ".join(self._text(place, each).split()) for each in (_FILE, _SHORT_FILE, _SHOWN_AS))
        name = next(filter(None, names), "")
        inner = f"{place}/__substg1.0_{_DATA}000D"
        if inner in self._known:
            if f"{inner}/__properties_version1.0" in self._known:
                found.add_attachment(self.message(inner, depth + 1))
            else:
                found.defects.append(Unread(f"an embedded object: {name or 'without a name'}"))
            return
        kind = self._text(place, _TYPE) or mimetypes.guess_type(name)[0] or ""
        major, _, minor = kind.partition("/")
        if not minor.isascii() or not minor or major in ("multipart", "message"):
            major, minor = "application", "octet-stream"
        content_id = "".join(self._text(place, _CONTENT_ID).split())
        found.add_attachment(
            self._stream(place, _DATA, "0102"),
            maintype=major,
            subtype=minor,
            filename=name or None,
            cid=f"<{content_id}>" if content_id else None,
        )

    def _folders(self, folder: str, start: str) -> list[str]:
        start = f"{folder}/{start}" if folder else start
        return [name for name in self._names if name.startswith(start) and "/" not in name[len(start) :]]

    def _stream(self, folder: str, name: str, kind: str) -> bytes:
        path = f"{folder}/__substg1.0_{name}{kind}".lstrip("/")
        return bytes(self._ole.openstream(path).read()) if path in self._known else b""

    def _text(self, folder: str, name: str) -> str:
        if data := self._stream(folder, name, "001F"):
            text = data.decode("utf-16-le", "replace")
            self._is_damaged |= "\0" in text[:-1] or text.encode("utf-16-le") != data
            return text.removesuffix("\0").replace("\0", "\ufffd")
        data = self._stream(folder, name, "001E")
        return text_of(data.rstrip(b"\0")).text if data else ""

    def _html(self, folder: str, fixed: dict[int, bytes]) -> str:
        data = self._stream(folder, _HTML, "0102")
        page = int.from_bytes(fixed.get(_CODE_PAGE, b"")[:4], "little")
        charset = "utf-8" if page == _UTF_8 else f"cp{page}" if page else None
        return text_of(data, charset).text if data else self._text(folder, _HTML)

    def _fixed(self, folder: str, head: int) -> dict[int, bytes]:
        """The properties that have 8 bytes at most, by type and name."""
        path = f"{folder}/__properties_version1.0".lstrip("/")
        data = self._ole.openstream(path).read()[head:] if path in self._known else b""
        found = {
            int.from_bytes(data[at : at + 4], "little"): bytes(data[at + 8 : at + 16])
            for at in range(0, len(data) - 15, 16)
        }
        for name, value in found.items():
            self._declared[f"{folder}/__substg1.0_{name:08X}".lstrip("/")] = int.from_bytes(value[:4], "little")
        return found

    def _cut(self, folder: str) -> list[str]:
        """Parts of a message, including attachments, that are shorter than declared."""
        lost = []
        for path in [each for each in self._declared if each.startswith(folder)]:
            size, name, kind = self._declared.pop(path), path[-8:-4], path[-4:]
            if name in _NAMES_OF_PARTS and kind in _ENDS:
                there = self._ole.get_size(path) if path in self._known else 0
                lost += [_NAMES_OF_PARTS[name]] if there < size - _ENDS[kind] else []
        return lost


def decompressed(data: bytes) -> bytes:
    """Rich text as Outlook stores it.

    Specification: https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxrtfcp

    Raises:
        ValueError: It is damaged, as its checksum shows.
    """
    size, raw, kind, checksum = struct.unpack("<II4sI", data[:_HEADER].ljust(_HEADER, b"\0"))
    packed = data[_HEADER : size + 4]
    if kind == _STORED:
        return packed[:raw]
    if kind != _COMPRESSED:
        raise ValueError("unknown compression")
    if zlib.crc32(packed, 0xFFFFFFFF) ^ 0xFFFFFFFF != checksum:
        raise ValueError("its checksum is wrong")
    found, at = bytearray(_DICTIONARY), 0
    while at < len(packed):
        flags, at = packed[at], at + 1
        for bit in range(8):
            if not flags >> bit & 1:
                found += packed[at : at + 1]
                at += 1
                continue
            pair = int.from_bytes(packed[at : at + 2].ljust(2, b"\0"), "big")
            back, at = (len(found) - (pair >> 4)) % _WINDOW, at + 2
            if not back:  # the end
                return bytes(found[len(_DICTIONARY) :])
            if back > len(found):
                raise ValueError("it refers to what is not there")
            if len(found) > MOST_BYTES:
                raise ValueError("it is too large")
            for _ in range((pair & 0xF) + 2):
                found.append(found[-back])
    return bytes(found[len(_DICTIONARY) :])
