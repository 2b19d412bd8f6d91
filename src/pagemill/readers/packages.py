"""ZIP packages and OLE files of Office programs: kinds, limits, passwords."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

from pagemill.errors import (
    CorruptInputError,
    EncryptedError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
    lacks_extra,
)
from pagemill.imaging.formats import OLE, ZIP

MOST_ENTRIES = 10_000
MOST_UNPACKED = 512 * 2**20
"""Bytes of all members together. An archive of 500 slides with photographs has some 200 MB."""
MOST_MEMBER = 128 * 2**20
_CHUNK = 2**20
ENCRYPTED = 1
"""Bit of a member's flags."""
UNLISTED = "the file has members that its directory does not list; they are not read"
_DESCRIPTOR = 24
"""Maximum bytes behind a member's data that say how long it was."""
_LOCAL_HEADER = 30
"""Bytes of a member's own header before its name; the last four are the lengths of the name and what is behind it."""
_CONTENT = "[Content_Types].xml"
_RELATIONS = "_rels/.rels"
_STRICT = b"http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument"
_PARTS = (("word/", ".docx"), ("ppt/", ".pptx"), ("xl/", ".xlsx"), ("Contents/section", ".hwpx"))
_OPEN = b"application/vnd.oasis.opendocument."
_TYPES = {b"application/hwp+zip": ".hwpx", b"application/epub+zip": ".epub"}
_TYPES |= {_OPEN + b"text": ".odt", _OPEN + b"spreadsheet": ".ods", _OPEN + b"presentation": ".odp"}
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".emf", ".wmf", ".svg", ".webp", ".wdp")
_REPLACEMENTS = "ObjectReplacements/"
"""Pictures of objects of OpenDocument, which have no suffix."""
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError)
"""Exceptions of Python for damaged archives."""


def kind_of_package(path: Path) -> str | None:
    """The suffix that a ZIP file of Office should have, by its members; None for other archives.

    Raises:
        CorruptInputError: It is damaged.
    """
    with opened(path) as archive:
        # Bounded: the directory of a hostile archive may list millions.
        names = archive.namelist()[:MOST_ENTRIES]
        # OpenDocument, EPUB and HWPX name their type in a member, the others by their folders.
        if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
            try:
                if (found := _TYPES.get(archive.read("mimetype").strip())) is not None:
                    return found
            except DAMAGED as error:
                raise CorruptInputError(f"the file is damaged: {error}", remedy="Get the file again.") from error
    found = next((suffix for start, suffix in _PARTS if any(name.startswith(start) for name in names)), None)
    return found if found == ".hwpx" or _CONTENT in names else None


def check_package(path: Path | IO[bytes]) -> list[str]:
    """Unpack every member once, within limits, and check its checksum: readers skip what they do not need.

    Returns:
        Warnings of damaged pictures, and of members that its directory does not list.

    Raises:
        PagemillError: It is too large, encrypted, or damaged in a member that is not a picture.
    """
    warnings: list[str] = []
    total = 0
    with opened(path) as archive:
        members = archive.infolist()
        if len(members) > MOST_ENTRIES:
            raise TooLargeError(f"the file has {len(members):,} members; the limit is {MOST_ENTRIES:,}")
        # zipfile takes the last one, other programs the first: each would show another document.
        if len({member.filename for member in members}) < len(members):
            raise CorruptInputError("two members of the file have the same name", remedy="Save it again.")
        for member in members:
            if member.flag_bits & ENCRYPTED:
                raise EncryptedError("the file is encrypted", remedy="Save it without a password.")
            try:
                with archive.open(member) as file:
                    size = 0
                    # Counted while unpacking: sizes in the directory are claims, which an archive bomb makes small.
                    while chunk := file.read(_CHUNK):
                        size += len(chunk)
                        if size > MOST_MEMBER or total + size > MOST_UNPACKED:
                            raise TooLargeError(
                                f"unpacked, the file exceeds {MOST_UNPACKED // 2**20} MB, or "
                                f"{MOST_MEMBER // 2**20} MB in {member.filename!r}",
                                remedy="Save it with smaller pictures, or split it.",
                            )
                total += size
            except DAMAGED as error:
                if not (member.filename.lower().endswith(_PICTURES) or member.filename.startswith(_REPLACEMENTS)):
                    reason = f"{member.filename!r} in the file is damaged: {error}"
                    raise CorruptInputError(reason, remedy="Get the file again.") from error
                warnings.append(f"the picture {member.filename} is damaged")
        warnings += [UNLISTED] if has_unlisted(archive) else []
    return warnings


def has_unlisted(archive: zipfile.ZipFile) -> bool:
    """Whether an archive has members that its directory does not list, as the first of two that were joined."""
    file, end = archive.fp, 0
    assert file is not None
    places = sorted((entry.header_offset, entry.compress_size) for entry in archive.infolist())
    for start, size in (*places, (archive.start_dir, 0)):
        file.seek(end)
        # A data descriptor may follow a member's data, so the next header need not begin exactly at the end.
        if ZIP in file.read(max(min(start - end, _DESCRIPTOR + len(ZIP)), 0)):
            return True
        file.seek(start)
        head = file.read(_LOCAL_HEADER)
        end = start + len(head) + int.from_bytes(head[-4:-2], "little") + int.from_bytes(head[-2:], "little") + size
    return False


def refuse_strict(path: Path | IO[bytes]) -> None:
    """Refuse a package whose elements have other names, which the libraries for Word and PowerPoint do not know.

    Raises:
        UnsupportedInputError: It is a Strict Open XML file.
    """
    with opened(path) as archive:
        if _STRICT in (archive.read(_RELATIONS) if _RELATIONS in archive.namelist() else b""):
            raise UnsupportedInputError(
                "the file is in the Strict Open XML format",
                remedy="Save it as plain .docx or .pptx, not as “Strict Open XML”.",
            )


def without_dangling(path: Path | IO[bytes]) -> tuple[io.BytesIO, int]:
    """A copy of an Office package without relations to members that it lacks, and how many of those are lost parts.

    Programs write some that lead nowhere, to ``NULL`` or to a bookmark, which Word ignores.
    """
    from lxml import etree

    copy, lost = io.BytesIO(), 0
    with opened(path) as old, zipfile.ZipFile(copy, "w") as new:
        names = set(old.namelist())
        for name in names:
            data = old.read(name)
            if name.endswith(".rels"):
                folder = posixpath.join("/", posixpath.dirname(posixpath.dirname(name)))
                root = xml_root(data)
                for each in [each for each in root if each.get("TargetMode") != "External"]:
                    target = each.get("Target") or ""
                    if posixpath.normpath(posixpath.join(folder, target)).lstrip("/") not in names:
                        root.remove(each)
                        lost += not (target.startswith("#") or posixpath.basename(target) in ("", "NULL"))
                data = etree.tostring(root)
            new.writestr(name, data)
    copy.seek(0)
    return copy, lost


def xml_root(data: bytes, **options: Any) -> Any:
    """The root of an XML member, of which nothing is fetched and no entity is expanded.

    Args:
        data: The XML.
        options: Options of :class:`lxml.etree.XMLParser`.
    """
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, **options))


def opened(path: Path | IO[bytes]) -> zipfile.ZipFile:
    """An archive.

    Raises:
        CorruptInputError: It is damaged.
    """
    try:
        return zipfile.ZipFile(path)
    except DAMAGED as error:
        raise CorruptInputError(f"the file is damaged: {error}", remedy="Get the file again.") from error


def unlocked(path: Path, password: str | None) -> Path | io.BytesIO:
    """An Office package as it is, or decrypted: one with a password is in an OLE file.

    Raises:
        EncryptedError: The password is missing or wrong.
    """
    with path.open("rb") as file:
        if file.read(len(OLE)) != OLE:
            return path
    try:
        from dochan.cfb import OleFileIO
        from dochan.crypto.ooxml import OOXMLCryptoError, decrypt_ooxml
    except ImportError:
        raise lacks_extra(f"files with a password need the package dochan: {path.name}", "office") from None
    try:
        with OleFileIO(str(path)) as ole:
            if not ole.exists("EncryptedPackage"):
                raise UnsupportedInputError("the file is in an old format", remedy="Save it in the current format.")
            return io.BytesIO(decrypt_ooxml(ole, password))
    except OOXMLCryptoError as error:
        raise wrong_password(password) from error
    except PagemillError:
        raise
    except Exception as error:
        raise CorruptInputError(f"the file is damaged: {error}", remedy="Get the file again.") from error


def wrong_password(password: str | None) -> EncryptedError:
    """The error for a document that its password does not open."""
    if password is None:
        return EncryptedError("the document is protected by a password", remedy="Pass its password with --password.")
    return EncryptedError("the password does not open the document", remedy="Pass the correct one with --password.")
