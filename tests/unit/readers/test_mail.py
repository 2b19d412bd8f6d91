"""Messages of the Internet and of Outlook, and their attachments."""

import base64
import struct
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import made_documents as made
import pytest
from ole_files import ole

from pagemill.document.page import Mark
from pagemill.errors import CorruptInputError
from pagemill.readers.base import Block, Document
from pagemill.readers.mail import attached, read, read_message, read_web_archive


def eml(folder: Path, message: EmailMessage | bytes) -> Path:
    path = folder / "a.eml"
    path.write_bytes(message if isinstance(message, bytes) else bytes(message))
    return path


def letter(text: str = "Plain text.\n\nSecond paragraph.\n") -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "점검 결과", "Kim <kim@example.org>", "lee@example.org"
    message["Date"] = "Thu, 26 Nov 2026 10:00:00 +0900"
    message.set_content(text)
    return message


def blocks(document: Document) -> list[Block]:
    return [block for part in document.parts for block in part.blocks]


def test_a_plain_message(tmp_path: Path):
    document = read(eml(tmp_path, letter()))
    title, said, *text = blocks(document)
    assert (title.content, title.level, document.info.author) == ("점검 결과", 1, "Kim <kim@example.org>")
    assert said.content == "From: Kim <kim@example.org>\nTo: lee@example.org\nDate: Thu, 26 Nov 2026 10:00:00 +0900"
    assert [block.content for block in text] == ["Plain text.", "Second paragraph."]
    assert document.info.created == "2026-11-26T10:00:00+09:00"


def test_of_alternatives_the_last_one_is_read_with_its_pictures(tmp_path: Path):
    message = letter()
    message.add_alternative('<p>So <b>bold</b></p><img src="cid:x" alt="A field">', subtype="html")
    message.get_payload()[1].add_related(made.png().read(), "image", "png", cid="<x>")
    message.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="표.csv")
    path = eml(tmp_path, message)
    document = read(path)
    text, picture = blocks(document)[2:]
    assert text.content == "So bold" and [span.mark for span in text.spans] == [Mark.BOLD]
    assert picture.picture is not None and picture.picture.data.startswith(b"\x89PNG")
    assert document.parts[0].notes == ["attachments: 표.csv"]
    assert [(each.name, each.data) for each in attached(read_message(path))] == [("표.csv", b"a,b\n1,2\n")]


def test_a_message_inside_of_another_is_an_attachment(tmp_path: Path):
    message = letter()
    message.add_attachment(letter("Inner."))
    (inner,) = attached(read_message(eml(tmp_path, message)))
    assert inner.name == "점검 결과.eml"
    assert blocks(read(eml(tmp_path, inner.data)))[-1].content == "Inner."


def test_an_encoded_message_inside_of_another_is_read(tmp_path: Path):
    part = b'Content-Type: message/rfc822; name="x.docx"\nContent-Transfer-Encoding: base64\n\n' + base64.encodebytes(
        bytes(letter("Inner."))
    )
    path = eml(tmp_path, b"Subject: a\nContent-Type: multipart/mixed; boundary=B\n\n--B\n" + part + b"\n--B--\n")
    (inner,) = attached(read_message(path))
    assert inner.name == "x.docx.eml"
    assert blocks(read(eml(tmp_path, inner.data)))[-1].content == "Inner."


def test_attachments_that_are_not_read_are_named(tmp_path: Path):
    message = letter()
    message.add_attachment(b"x", "application", "ms-tnef", filename="winmail.dat")
    assert read(eml(tmp_path, message)).parts[0].notes == [
        "attachments: winmail.dat",
        "attachments of unsupported types: winmail.dat",
    ]


def test_headers_in_bytes_of_a_korean_mailer(tmp_path: Path):
    raw = "Subject: 회의 자료를 보냅니다\nContent-Type: text/plain; charset=euc-kr\n\n본문 글\n".encode("euc-kr")
    assert [block.content for block in blocks(read(eml(tmp_path, raw)))] == ["회의 자료를 보냅니다", "본문 글"]


def test_a_message_that_is_cut_off_has_a_warning(tmp_path: Path):
    message = letter()
    message.add_attachment(b"x" * 3000, maintype="image", subtype="png", filename="a.png")
    document = read(eml(tmp_path, bytes(message)[:-2000]))
    assert document.parts[0].warnings == ["the message is damaged: CloseBoundaryNotFoundDefect"]
    document = read(eml(tmp_path, bytes(message) + b"\nSubject: another message\n"))
    assert document.parts[0].warnings == ["text after the end of the message is not read"]


@pytest.mark.parametrize("data", [b"", b"\n\nno header", bytes(300)])
def test_what_is_no_message_is_refused(tmp_path: Path, data: bytes):
    with pytest.raises(CorruptInputError):
        read(eml(tmp_path, data))


def test_long_headers_take_no_long_time(tmp_path: Path):
    hostile = b"Subject: a\nContent-Type: multipart/mixed; " + b'x="' * 200_000 + b"\n\ntext\n"
    assert blocks(read(eml(tmp_path, hostile)))


def stream(name: str, value: str) -> dict[str, bytes]:
    return {f"__substg1.0_{name}001F": value.encode("utf-16-le")}


def outlook(subject: str, *, html: str = "", depth: int = 0) -> dict[str, bytes]:
    ticks = int((datetime(2026, 11, 26, 1, tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10**7
    fixed = bytes(24 if depth else 32) + struct.pack("<IIQ", 0x0039_0040, 6, ticks)
    found = stream("0037", subject) | stream("0C1A", "Kim") | stream("5D01", "kim@example.org")
    found |= stream("0E04", "Lee") | stream("1000", "Plain text.\r\n")
    found |= {"__substg1.0_10130102": html.encode()} if html else {}
    return found | {"__properties_version1.0": fixed}


def test_a_message_of_outlook(tmp_path: Path):
    place = "__attach_version1.0_#0000000{}/"
    files = {f"{place.format(0)}{key}": value for key, value in stream("3707", "표.csv").items()}
    files[f"{place.format(0)}__substg1.0_37010102"] = b"a,b\n1,2\n"
    inner = {f"{place.format(1)}__substg1.0_3701000D/{key}": value for key, value in outlook("회의록", depth=1).items()}
    path = tmp_path / "a.msg"
    path.write_bytes(ole(outlook("점검 결과", html="<p>So <b>bold</b></p>") | files | inner))
    document = read(path)
    assert [block.content for block in blocks(document)] == [
        "점검 결과",
        "From: Kim <kim@example.org>\nTo: Lee\nDate: Thu, 26 Nov 2026 01:00:00 +0000",
        "So bold",
    ]
    table, message = attached(read_message(path))
    assert (table.name, table.data) == ("표.csv", b"a,b\n1,2\n")
    assert message.name == "회의록.eml" and b"Plain text." in message.data


def test_what_is_not_read_of_a_message_of_outlook_has_a_warning(tmp_path: Path):
    files = outlook("a") | stream("1000", "\r\n") | {"__substg1.0_10090102": b"LZFu"}
    place = "__attach_version1.0_#00000000/"
    files |= {f"{place}{key}": value for key, value in stream("3707", "Budget\r\n.xlsx").items()}
    files[f"{place}__substg1.0_3701000D/Workbook"] = b"cells"
    path = tmp_path / "a.msg"
    path.write_bytes(ole(files))
    assert read(path).parts[0].warnings == [
        "not read: the text as RTF, which is damaged (unknown compression)",
        "not read: an embedded object: Budget .xlsx",
    ]


PACKED = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")
"""``{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}``, compressed."""


def stored(rich: bytes) -> bytes:
    return struct.pack("<II4sI", len(rich) + 12, len(rich), b"MELA", 0) + rich


@pytest.mark.parametrize(
    ("data", "shown", "warnings"),
    [
        (PACKED, ["WXYZ" * 5], []),
        (PACKED[:-2] + b"00", [], ["not read: the text as RTF, which is damaged (its checksum is wrong)"]),
        (stored(rb"{\rtf1{\b a\par}b}"), ["a", "b"], []),
        (
            stored(
                rb"{\rtf1\ansi\ansicpg949\fromhtml1{\*\htmltag <ul><li>}\htmlrtf\bullet\htmlrtf0{\b\'c7\'d1} & x\tab y"
                rb"{\*\htmltag </li>\par <li>}{\htmlrtf\'b7}z{\*\mhtmltag <p>}}"
            ),
            ["• 한 & x y", "• z"],
            [],
        ),
    ],
)
def test_the_text_of_outlook_may_be_rtf(tmp_path: Path, data: bytes, shown: list[str], warnings: list[str]):
    (tmp_path / "a.msg").write_bytes(ole(outlook("a") | stream("1000", "") | {"__substg1.0_10090102": data}))
    document = read(tmp_path / "a.msg")
    assert ([block.content for block in blocks(document)[2:]], document.parts[0].warnings) == (shown, warnings)


def test_rtf_of_outlook_that_cannot_be_read_costs_no_other_text(tmp_path: Path):
    data = stored(rb"{\rtf1\fromhtml1 " + b"{" * 100_000)
    (tmp_path / "a.msg").write_bytes(ole(outlook("a") | stream("1000", "Plain") | {"__substg1.0_10090102": data}))
    document = read(tmp_path / "a.msg")
    assert "Plain" in [block.content for block in blocks(document)]
    assert "not read: the text as RTF" in document.parts[0].warnings[0]


def test_characters_that_no_program_writes_have_a_warning(tmp_path: Path):
    (tmp_path / "a.msg").write_bytes(ole(outlook("a") | stream("1000", "Pla\0n text\0")))
    assert read(tmp_path / "a.msg").parts[0].warnings == ["not read: characters of a text, which are damaged"]


@pytest.mark.parametrize("there", [24, 10, None])
def test_texts_shorter_than_declared_have_a_warning(tmp_path: Path, there: int | None):
    files = outlook("a")
    files["__properties_version1.0"] += struct.pack("<IIII", 0x1000_001F, 6, 26, 0)
    files["__substg1.0_1000001F"] = "Plain text.\n".encode("utf-16-le")[:there]
    if there is None:
        del files["__substg1.0_1000001F"]
    (tmp_path / "a.msg").write_bytes(ole(files))
    assert read(tmp_path / "a.msg").parts[0].warnings == ([] if there == 24 else ["not read: the end of the text"])


def test_all_texts_of_a_web_archive_are_read_and_other_parts_counted(tmp_path: Path):
    parts = (
        ("application/xhtml+xml", b"<title/><script/><p>one"),
        ("text/html", b'<meta charset="koi8-r"><p>\xc4\xc1'),
        ("text/plain", b"three"),
        ("text/xml", b"<x>lost</x>"),
        ("text/css", b"p {}"),
    )
    path = tmp_path / "a.mht"
    path.write_bytes(
        b"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n"
        + b"".join(b"--b\nContent-Type: " + kind.encode() + b"\n\n" + text + b"\n" for kind, text in parts)
        + b"--b--\n"
    )
    document = read_web_archive(path)
    assert [block.content for block in blocks(document)] == ["one", "\u0434\u0430", "three"]
    assert document.parts[0].notes == ["not read: 1 part of the archive"]


def test_a_web_archive_is_read_with_its_pictures(tmp_path: Path):
    picture = base64.b64encode(made.png().read()).decode()
    path = tmp_path / "a.mht"
    path.write_text(
        "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=B\n\n--B\nContent-Type: text/html\n"
        "Content-Location: file:///C:/a.htm\n\n<title>T</title><h1>Head</h1><img src='a_files/1.png'>\n--B\n"
        "Content-Location: file:///C:/a_files/1.png\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n"
        f"{picture}\n--B--\n"
    )
    document = read_web_archive(path)
    head, shown = blocks(document)
    assert (document.info.title, head.content, shown.picture and shown.picture.data) == ("T", "Head", made.png().read())


def test_a_damaged_message_of_outlook_is_refused(tmp_path: Path):
    (tmp_path / "a.msg").write_bytes(ole(outlook("a"))[:700])
    with pytest.raises(CorruptInputError):
        read(tmp_path / "a.msg")


def test_a_picture_that_is_all_of_a_letter_is_kept(tmp_path: Path):
    found = []
    for plain in ("", "See it in another program.\n"):
        message = letter(plain)
        message.add_alternative('<img src="cid:x">', subtype="html")
        message.get_payload()[1].add_related(made.png().read(), "image", "png", cid="<x>")
        path = eml(tmp_path, message)
        found.append((any(block.picture for block in blocks(read(path))), len(list(attached(read_message(path))))))
    assert found == [(True, 0), (False, 1)]


def test_tags_without_an_end_take_little_time(tmp_path: Path):
    message = letter()
    message.add_alternative("<" * 400_000 + "<style " * 100_000, subtype="html")
    assert "Plain text." in [block.content for block in blocks(read(eml(tmp_path, message)))]


def test_an_alternative_that_is_not_readable_costs_no_other(tmp_path: Path):
    message = letter()
    message.add_alternative(b"not RTF", maintype="text", subtype="rtf")
    found = read(eml(tmp_path, message))
    assert "Plain text." in [block.content for block in blocks(found)]


def test_an_empty_alternative_takes_nothing_from_the_text(tmp_path: Path):
    message = letter()
    message.add_alternative("<html><head><title>x</title></head><body><br>&nbsp;</body></html>", subtype="html")
    assert [block.content for block in blocks(read(eml(tmp_path, message)))[2:]] == ["Plain text.", "Second paragraph."]


def test_only_pictures_that_the_text_shows_are_no_attachments(tmp_path: Path):
    message = letter()
    message.add_alternative('<p>See <a href="cid:doc">it</a></p><img src="cid:p10">', subtype="html")
    body = message.get_payload()[1]
    body.add_related(made.png().read(), "image", "png", cid="<p10>")
    body.add_related(made.png().read(), "image", "png", cid="<p1>", filename="p1.png")
    body.add_related(b"%PDF-1.7", "application", "pdf", cid="<doc>", filename="doc.pdf")
    names = [each.name for each in attached(read_message(eml(tmp_path, message)))]
    assert names == ["p1.png", "doc.pdf"]


def test_all_recipients_are_named(tmp_path: Path):
    message = letter()
    del message["To"]
    raw = bytes(message).replace(
        b"From:", b"To: " + b", ".join(b"p%d@example.org" % i for i in range(900)) + b"\nFrom:"
    )
    assert "p899@example.org" in blocks(read(eml(tmp_path, raw)))[1].content


def test_a_damaged_attachment_is_an_error_of_its_own(tmp_path: Path):
    message = letter()
    message.add_attachment(b"0123456789" * 20, maintype="application", subtype="pdf", filename="a.pdf")
    raw = bytes(message).replace(b"MDEyMzQ1Njc4OTAxMjM0", b"MDEyMzQ1Njc4OTAxMjM", 1)
    (member,) = attached(read_message(eml(tmp_path, raw)))
    assert isinstance(member.error, CorruptInputError)


def test_text_of_every_kind_is_a_document(tmp_path: Path):
    head = b"Subject: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n"
    status = b"--B\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; a\n\nFinal-Recipient: bob\n\n"
    enriched = b"--B\nContent-Type: text/enriched\n\n<bold>So</bold> it is\n"
    path = eml(tmp_path, head + status + enriched + b'--B\nContent-Type: text/plain; name="b"\n\nnamed\n--B--\n')
    first, second, third = attached(read_message(path))
    assert b"Reporting-MTA" in first.data and b"Final-Recipient: bob" in first.data
    assert (second.data, third.data) == (b"<bold>So</bold> it is", b"named")
    assert {Path(each.name).suffix for each in (first, second, third)} == {".txt"}
    (whole,) = attached(read_message(eml(tmp_path, b"Content-Type: multipart/mixed\nSubject: a\n\nAll of the text.\n")))
    assert (whole.name, whole.data) == ("attachment.txt", b"All of the text.\n")


def test_damaged_bytes_and_a_sealed_message_have_a_warning(tmp_path: Path):
    plain = b"Subject: a\nContent-Type: text/plain; charset=utf-8\n\nGr\xc3 na\xc3\xafve\n"
    assert read(eml(tmp_path, plain)).parts[0].warnings
    sealed = b'Subject: a\nContent-Type: application/pkcs7-mime; name="smime.p7m"\n\nMIAG\n'
    assert "not read" in read(eml(tmp_path, sealed)).parts[0].warnings[-1]
