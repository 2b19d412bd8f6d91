"""Messages (EML, MSG): the subject as title, who wrote when to whom, and the text. Attachments are other documents."""

from __future__ import annotations

import email
import mimetypes
from collections.abc import Iterator
from contextlib import suppress
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.policy import Compat32
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from pagemill.document.page import DocumentInfo
from pagemill.errors import CorruptInputError, TooLargeError, lacks_extra
from pagemill.imaging.formats import OLE
from pagemill.readers.base import Block, Document, Inline, Part, heading, in_parts
from pagemill.readers.containers import Member
from pagemill.readers.text import paragraphs, text_of

MOST_BYTES = 128 * 2**20
"""Size of a message with its attachments; servers take some 50 MB."""
_MOST_LINES = 4_000_000
"""Lines of a message: 128 MB in Base64 have 1.8 million."""
_MOST_PARTS = 1_000
_MOST_DEPTH = 50
"""Parts of mail that are in each other."""
_LONGEST_HEADER = 8_192
"""Characters: the time in which Python takes a header apart grows with the square of its length."""
_SHOWN = ("From", "To", "Cc", "Date")
_ODD = (LookupError, ValueError, MessageError, TypeError)
"""What Python raises for headers and parts that break the rules."""


def read(path: Path, password: str | None = None) -> Document:
    """Read a message."""
    message = read_message(path)
    subject, sender = _header(message, "Subject"), _header(message, "From")
    said = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    blocks: list[Block | None] = [heading(Inline(subject), 1), Inline("\n".join(said)).block()]
    files = list(_files(message))
    pictures = {f"cid:{name}": _data(part) for part in _leaves(message) if (name := _content_id(part))}
    notes: list[str] = []
    for part in _bodies(message):
        if part.get_content_subtype() == "html":
            body = _of_html(_text(part), pictures)
            blocks += (block for each in body.parts for block in each.blocks)
            notes += (note for each in body.parts for note in each.notes)
        else:
            blocks += paragraphs(_text(part))
    parts = list(in_parts(block for block in blocks if block)) or [Part()]
    if files:
        notes.append(f"attachments, which are documents of their own: {', '.join(map(_name, files))}")
    parts[0].notes += notes
    lost = {type(defect).__name__ for part in message.walk() for defect in part.defects}
    parts[0].warnings += [f"the message is damaged: {', '.join(sorted(lost))}"] if lost else []
    sent = ""
    with suppress(*_ODD, OverflowError):
        sent = parsedate_to_datetime(_header(message, "Date")).isoformat()
    return Document(parts=parts, info=DocumentInfo(title=subject, author=sender, created=sent))


def _of_html(text: str, pictures: dict[str, bytes]) -> Document:
    from pagemill.readers.html import of_markup

    try:
        return of_markup(text, pictures=pictures)
    except ImportError:
        raise lacks_extra("mail in HTML needs the package selectolax", "web") from None


class _Short(Compat32):
    """Cuts headers at :data:`_LONGEST_HEADER`."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_LONGEST_HEADER]


def read_message(path: Path) -> Message:
    """A message in the format of the Internet or of Outlook.

    Raises:
        PagemillError: It is damaged or too large, or a package is missing.
    """
    if path.stat().st_size > MOST_BYTES:
        raise TooLargeError(f"a message of over {MOST_BYTES // 2**20} MB", remedy="Save its attachments.")
    data = path.read_bytes()
    if data.startswith(OLE):
        from pagemill.readers.outlook import message_of

        return message_of(path)
    if data.count(b"\n") > _MOST_LINES:
        raise TooLargeError(f"a message of over {_MOST_LINES:,} lines", remedy="Save its attachments.")
    try:
        message: Message = email.message_from_bytes(data, policy=_Short())
    except (RecursionError, *_ODD) as error:
        raise CorruptInputError(f"the message is damaged: {error}", remedy="Save it again.") from error
    if not message.keys():
        raise CorruptInputError("the file is no message: it has no header", remedy="Save it again.")
    return message


def attached(message: Message) -> Iterator[Member]:
    """The attachments of a message."""
    for part in _files(message):
        try:
            inner: Any = part.get_payload()
            data = inner[0].as_bytes() if isinstance(inner, list) and inner else _data(part)
        except _ODD as error:
            problem = CorruptInputError(f"the attachment is damaged: {error}", remedy="Save it from the message.")
            yield Member(_name(part), error=problem)
        else:
            yield Member(_name(part), data)


def _leaves(message: Message) -> Iterator[Message]:
    """The parts of a message that have no parts, in order; a message inside of it is one."""
    waiting, count = [(message, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        count += 1
        if count > _MOST_PARTS or depth > _MOST_DEPTH:
            raise TooLargeError(f"the message has over {_MOST_PARTS:,} parts", remedy="Save its attachments.")
        if inner := _parts(part):
            waiting += [(each, depth + 1) for each in reversed(inner)]
        else:
            yield part


def _parts(part: Message) -> list[Message]:
    inner: Any = part.get_payload()
    return inner if isinstance(inner, list) and part.get_content_maintype() == "multipart" else []


def _bodies(message: Message, depth: int = 0) -> list[Message]:
    """The parts that are the text; of alternatives the last one, which says most."""
    if depth > _MOST_DEPTH or not (inner := _parts(message)):
        return [message] if _is_text(message) else []
    found = [_bodies(part, depth + 1) for part in inner]
    if message.get_content_subtype() == "alternative":
        found = [each for each in found if any(_text(part).strip() for part in each)][-1:]
    return [part for each in found for part in each]


def _files(message: Message) -> Iterator[Message]:
    """The parts that are attachments; pictures that the text shows are none."""
    leaves = list(_leaves(message))
    shown = "".join(_text(part) for part in leaves if _is_text(part) and part.get_content_subtype() == "html")
    for part in leaves:
        name = _content_id(part)
        if not _is_text(part) and not (name and f"cid:{name}" in shown):
            yield part


def _is_text(part: Message) -> bool:
    is_file = part.get_content_disposition() == "attachment" or part.get_filename() is not None
    return part.get_content_type() in ("text/plain", "text/html") and not is_file


def _content_id(part: Message) -> str:
    """By which the text shows a picture."""
    return _header(part, "Content-ID").strip("<> ")


def _data(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _text(part: Message) -> str:
    data = _data(part)
    return text_of(data, part.get_content_charset()).text if data else ""


def _header(message: Message, name: str) -> str:
    """A header as people read it: its encoded words decoded; bytes that break the rules as in a text file."""
    value = next((each for key, each in message.raw_items() if key.lower() == name.lower()), "")
    return _decoded(str(value))


def _decoded(value: str) -> str:
    if not value.isascii():
        value = text_of(value.encode("utf-8", "surrogateescape")).text
    with suppress(*_ODD):  # as it is, where it has an encoding that nobody knows
        value = str(make_header(decode_header(value)))
    return " ".join(value.split())


def _name(part: Message) -> str:
    """The name of an attachment, or one by its kind."""
    if name := _decoded(str(part.get_filename() or "")):
        return name
    if part.get_content_type() == "message/rfc822" and (inner := part.get_payload()):
        return f"{_header(inner[0], 'Subject')[:80] or 'message'}.eml"  # type: ignore[index, arg-type]
    return f"attachment{mimetypes.guess_extension(part.get_content_type()) or '.bin'}"
