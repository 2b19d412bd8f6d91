"""Messages (EML, MSG): the subject as title, who wrote when to whom, and the text. Attachments are other documents."""

from __future__ import annotations

import email
import mimetypes
from collections.abc import Iterator
from contextlib import suppress
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.policy import Compat32, compat32
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from textwrap import wrap
from typing import Any
from urllib.parse import unquote

from pagemill.document.page import DocumentInfo
from pagemill.errors import CorruptInputError, PagemillError, TooLargeError, lacks_extra
from pagemill.imaging.formats import OLE, promised
from pagemill.late import re
from pagemill.readers import rich_text
from pagemill.readers.base import Document, Inline, Part, heading, in_parts, unread
from pagemill.readers.containers import Member
from pagemill.readers.outlook import Unread, message_of
from pagemill.readers.text import Decoded, declared_charset, paragraphs, text_of

MOST_BYTES = 128 * 2**20
"""Size of a message with its attachments; servers take some 50 MB."""
_MOST_LINES = 4_000_000
"""Lines of a message: 128 MB in Base64 have 1.8 million."""
_MOST_PARTS = 1_000
_MOST_DEPTH = 50
"""Nesting depth of MIME parts."""
_LONGEST_HEADER = 8_192
"""Characters: the time in which Python takes a header apart grows with the square of its length."""
_SHOWN_PICTURE = re.compile(r"\bcid:([^\"'\s>)]+)", re.IGNORECASE)
"""A picture that HTML shows, by its Content-ID."""
_SHOWN = ("From", "To", "Cc", "Date")
_SEALED = ("application/pkcs7-mime", "application/x-pkcs7-mime", "multipart/encrypted")
_PAGES = ("text/html", "application/xhtml+xml")
_SHOWN_BY_PAGES = ("image", "font", "audio", "video")
_OF_PAGES = ("text/css", "text/javascript", "application/javascript", "application/x-javascript", "application/json")
"""Resources of a saved page beside its text."""
_MARKUP = re.compile(r"<(style|script|head)\b.*?(?:</\1\s*>|<body\b|\Z)|<[^<>]*>|&nbsp;", re.DOTALL | re.IGNORECASE)
"""Unclosed elements extend to the end of the text: otherwise the time would be quadratic."""
_LEAST_SHARE = 0.5
"""Share of the longest alternative's words: one with fewer stands in for it ("see the text version"). Not measured."""
_ODD = (LookupError, ValueError, MessageError, TypeError)
"""Exceptions of Python for malformed headers and parts."""


def read(path: Path, password: str | None = None) -> Document:
    """Read a message."""
    message = read_message(path)
    subject, sender = _header(message, "Subject"), _header(message, "From")
    headers = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    blocks = heading(Inline(subject), 1) + Inline("\n".join(headers)).blocks()
    files = list(_files(message))
    pictures = {f"cid:{name}": _data(part) for part in _leaves(message) if (name := _content_id(part))}
    notes: list[str] = []
    warnings: list[str] = []
    bodies = _bodies(message)
    for part in bodies:
        match part.get_content_subtype():
            case "html":
                body = _of_html(_text(part), pictures).parts
            case "plain":
                body = [Part(blocks=[*paragraphs(_text(part))])]
            case _:
                body = _of_rich(_data(part)).parts
        for each in body:
            warnings += each.warnings
            notes += each.notes
            blocks += each.blocks
    sent = ""
    # A header is what the sender wrote: an invalid date costs nothing but itself.
    with suppress(*_ODD, OverflowError):
        sent = parsedate_to_datetime(_header(message, "Date")).isoformat()
    document = Document(parts=list(in_parts(blocks)), info=DocumentInfo(title=subject, author=sender, created=sent))
    if names := [_name(part) for part in files]:
        notes.append(f"attachments: {', '.join(names)}")
    if foreign := [name for name in names if Path(name).suffix not in ("", ".bin") and promised(name) is None]:
        notes.append(f"attachments of unsupported types: {', '.join(foreign)}")
    document.parts[0].notes += notes
    document.parts[0].warnings += warnings
    for found in map(_decoded_text, bodies):
        found.annotated(document)
    if message.get_content_type() in _SEALED:
        document.parts[0].warnings.append("the message is encrypted or signed as a whole: its content is not read")
    document.parts[0].warnings += _damage(message)
    return document


def read_web_archive(path: Path, password: str | None = None) -> Document:
    """Read a web page that was saved with its pictures in one file (MHTML)."""
    _check_size(path.stat().st_size)
    return of_web_archive(path.read_bytes())


def of_web_archive(data: bytes) -> Document:
    """The pages of a web archive: those of frames and sheets follow the first one.

    Raises:
        PagemillError: It is damaged or too large, or a package is missing.
    """
    message = _of_internet(data)
    parts = list(_leaves(message))
    pages = [part for part in parts if part.get_content_type() in _PAGES]
    if not pages:
        raise CorruptInputError("the web archive contains no web page", remedy="Save the page again.")
    # Relative addresses are those of the first page, which the others are frames of.
    folder = _header(pages[0], "Content-Location").rpartition("/")[0] + "/"
    pictures = {f"cid:{name}": _data(part) for part in parts if (name := _content_id(part))}
    for part in parts:
        place = _header(part, "Content-Location")
        # Pages refer to their pictures by full address, or relative to the page.
        pictures |= {name: _data(part) for name in (place, place.removeprefix(folder)) if name}
    found: list[Document] = []
    left_out = 0
    for part in parts:
        kind, text = part.get_content_type(), Decoded("")
        if kind in (*_PAGES, "text/plain"):
            text = _decoded_text(part)
        if kind in _PAGES:
            found.append(text.annotated(_of_html(text.text, pictures, is_xml="xml" in kind)))
        elif kind == "text/plain":
            found.append(text.annotated(Document(parts=list(in_parts(paragraphs(text.text))))))
        else:
            left_out += part.get_content_maintype() not in _SHOWN_BY_PAGES and kind not in _OF_PAGES
    infos = (each.info for each in found if each.info.title)
    document = Document(parts=[part for one in found for part in one.parts], info=next(infos, found[0].info))
    document.parts[0].notes += unread({"part of the archive": left_out})
    document.parts[0].warnings += _damage(message)
    return document


def _of_html(text: str, pictures: dict[str, bytes], *, is_xml: bool = False) -> Document:
    from pagemill.readers.html import of_markup

    try:
        return of_markup(text, pictures=pictures, is_xml=is_xml)
    except ImportError:
        raise lacks_extra("mail in HTML needs the package selectolax", "web") from None


# A message asks for its RTF several times: to count words, to find notes, and for its blocks. Do not change the result.
@lru_cache(maxsize=1)
def _of_rich(data: bytes) -> Document:
    try:
        return rich_text.of_bytes(data)
    except PagemillError as error:  # the message has other texts
        return Document(parts=[Part(warnings=[f"not read: the text as RTF: {error.message}"])])


def _damage(message: Message) -> list[str]:
    """Damaged or unread parts of a message."""
    defects = [defect for part in _own_parts(message) for defect in part.defects]
    found = [f"not read: {defect}" for defect in defects if isinstance(defect, Unread)]
    lost = {type(defect).__name__ for defect in defects if not isinstance(defect, Unread)}
    found += [f"the message is damaged: {', '.join(sorted(lost))}"] if lost else []
    if any((part.epilogue or "").strip() for part in _own_parts(message)):
        found.append("text after the end of the message is not read")
    return found


class _Bounded(Compat32):
    """Cuts headers that say how a part is to be read; Python takes them apart itself."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_LONGEST_HEADER] if name.lower().startswith("content-") else value


def read_message(path: Path) -> Message:
    """A message in the format of the Internet or of Outlook.

    Raises:
        PagemillError: It is damaged or too large, or a package is missing.
    """
    _check_size(path.stat().st_size)
    data = path.read_bytes()
    return message_of(path) if data.startswith(OLE) else _of_internet(data)


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise TooLargeError(f"the message is over {MOST_BYTES // 2**20} MB", remedy="Save its attachments.")


def _of_internet(data: bytes) -> Message:
    # Python's parser takes a message line by line: its time and memory grow with lines more than with bytes.
    if data.count(b"\n") > _MOST_LINES:
        raise TooLargeError(f"the message has over {_MOST_LINES:,} lines", remedy="Save its attachments.")
    try:
        message: Message = email.message_from_bytes(data, policy=_Bounded())
    except (RecursionError, *_ODD) as error:
        raise CorruptInputError(f"the message is damaged: {error}", remedy="Save it again.") from error
    # Python's parser accepts any bytes as a message without headers.
    if not message.keys():
        raise CorruptInputError("the file is not a message: it has no header", remedy="Save it again.")
    return message


def attached(message: Message) -> Iterator[Member]:
    """The attachments of a message."""
    for part in _files(message):
        try:
            data = _file(part)
        except _ODD as error:
            problem = CorruptInputError(f"the attachment is damaged: {error}", remedy="Save it from the message.")
            yield Member(_name(part), error=problem)
        else:
            yield Member(_name(part), data)


def _file(part: Message) -> bytes:
    """The content of an attachment as a file."""
    inner: Any = part.get_payload()
    if isinstance(inner, list):  # messages; a delivery status has several blocks
        data = b"\n".join(each.as_bytes(policy=compat32) for each in inner)
        encoding = _header(part, "Content-Transfer-Encoding")
        if encoding.lower() not in ("base64", "quoted-printable"):
            return data
        part = Message()  # against the rules, and Python does not decode it
        part["Content-Transfer-Encoding"] = encoding
        part.set_payload(data.decode("ascii", "surrogateescape"))
    if part.get_content_maintype() == "multipart":  # without a boundary: it is not in parts
        return str(inner).encode("utf-8", "surrogateescape")
    data = _data(part)
    if lost := {type(defect).__name__ for defect in part.defects}:
        raise ValueError(", ".join(sorted(lost)))
    return data


def _leaves(message: Message) -> Iterator[Message]:
    """The parts of a message that have no parts, in order; a message inside of it is one."""
    return (part for part in _own_parts(message) if not _parts(part))


def _own_parts(message: Message) -> Iterator[Message]:
    """A message and its parts, in order, without those of messages that are attached to it."""
    waiting, count = [(message, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        count += 1
        if count > _MOST_PARTS or depth > _MOST_DEPTH:
            raise TooLargeError(f"the message has over {_MOST_PARTS:,} parts", remedy="Save its attachments.")
        yield part
        waiting += [(each, depth + 1) for each in reversed(_parts(part))]


def _parts(part: Message) -> list[Message]:
    inner: Any = part.get_payload()
    return inner if isinstance(inner, list) and part.get_content_maintype() == "multipart" else []


def _bodies(message: Message, depth: int = 0) -> list[Message]:
    """The parts that are the text; of alternatives the last one, unless another shows far more words."""
    if depth > _MOST_DEPTH or not (inner := _parts(message)):
        return [message] if _is_text(message) else []
    found = [_bodies(part, depth + 1) for part in inner]
    if message.get_content_subtype() == "alternative":
        words = [sum(map(_word_count, each)) for each in found]
        enough = _LEAST_SHARE * max(words, default=0)  # 0 where all is a picture
        shown = [any(_text(part).strip() for part in each) for each in found]
        found = [each for each, count, has in zip(found, words, shown, strict=True) if has and count >= enough][-1:]
    return [part for each in found for part in each]


def _word_count(part: Message) -> int:
    """Visible words of a text."""
    text = _text(part)
    return len((_MARKUP.sub(" ", text) if part.get_content_subtype() == "html" else text).split())


def _files(message: Message) -> Iterator[Message]:
    """The parts that are attachments; pictures that the text shows are none."""
    pages = (_text(part) for part in _bodies(message) if part.get_content_subtype() == "html")
    shown = {unquote(name) for page in pages for name in _SHOWN_PICTURE.findall(page)}
    for part in _leaves(message):
        is_shown = part.get_content_maintype() == "image" and _content_id(part) in shown
        if not _is_text(part) and not is_shown:
            yield part


def _is_text(part: Message) -> bool:
    is_file = part.get_content_disposition() == "attachment" or part.get_filename() is not None
    return part.get_content_type() in ("text/plain", "text/html", "text/rtf") and not is_file


def _content_id(part: Message) -> str:
    """Content-ID by which the text shows a picture."""
    return _header(part, "Content-ID").strip("<> ")


def _data(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _text(part: Message) -> str:
    return _decoded_text(part).text


def _decoded_text(part: Message) -> Decoded:
    data = _data(part)
    if part.get_content_subtype() == "rtf":
        return Decoded("\n".join(block.content or "" for part in _of_rich(data).parts for block in part.blocks))
    charset = part.get_content_charset()
    if charset is None and part.get_content_type() in _PAGES:
        charset = declared_charset(data)
    return text_of(data, charset) if data else Decoded("")


def _header(message: Message, name: str) -> str:
    """A header as people read it: its encoded words decoded; bytes that break the rules as in a text file."""
    values = [str(each) for key, each in message.raw_items() if key.lower() == name.lower()]
    return _decoded(", ".join(values if name in _SHOWN else values[:1]))


def _decoded(value: str) -> str:
    if not value.isascii():
        value = text_of(value.encode("utf-8", "surrogateescape")).text
    if "=?" in value:
        value = " ".join(map(_words_decoded, wrap(value, _LONGEST_HEADER, break_on_hyphens=False)))
    return " ".join(value.split())


def _words_decoded(value: str) -> str:
    with suppress(*_ODD):  # as it is, where it has an encoding that nobody knows
        # UTF-7 can leave half of a character.
        return str(make_header(decode_header(value))).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _name(part: Message) -> str:
    """The name of an attachment, or one by its kind."""
    if name := _decoded(str(part.get_filename() or "")):
        suffix = Path(name).suffix.lower()
        if part.get_content_type() == "message/rfc822" and suffix not in (".eml", ".msg"):
            return f"{name}.eml"
        return f"{name}.txt" if part.get_content_maintype() == "text" and not suffix else name
    if part.get_content_type() == "message/rfc822" and (inner := part.get_payload()):
        return f"{_header(inner[0], 'Subject')[:80] or 'message'}.eml"  # type: ignore[index, arg-type]
    is_text = part.get_content_maintype() in ("text", "message", "multipart")
    return f"attachment{mimetypes.guess_extension(part.get_content_type()) or ('.txt' if is_text else '.bin')}"
