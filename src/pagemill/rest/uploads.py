"""Requests with files: read part by part, straight to the disk, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from pagemill.errors import UsageError
from pagemill.imaging.formats import promised
from pagemill.rest.errors import ContentTooLargeError, HttpError
from pagemill.rest.jobs import JobFile
from pagemill.rest.settings import LimitSettings
from pagemill.store.files import output_errors, sync_directory, sync_files

MAX_FIELD_BYTES = 64 * 1024
"""Size of a part that is not a file, such as the options."""
MAX_FIELDS = 100
FILES = "files"
"""Name of the parts that are files."""
REPEATED = frozenset({"urls"})
"""Fields that may come more than once."""
_HEADERS_OF_A_PART = 8
_HEADER_BYTES = 8 * 1024
_WRITTEN_AT_ONCE = 1 << 20
"""Bytes that are collected before a thread parses and writes them."""
MAX_NAME = 255
"""Characters of a client's file name that are kept."""


@dataclass(slots=True)
class Upload:
    """What came with a request."""

    files: list[JobFile] = field(default_factory=list)
    """Those that are in the folder, on the disk."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    """Parts that are not files, by name: a form may have several of one name."""
    size: int = 0
    """Bytes of all files."""


def document(number: int, name: str, url: str | None = None) -> JobFile:
    """The stored name and document of a file with a client's name.

    Of the name only a suffix that pagemill knows gets into a path.
    """
    shown = PurePosixPath(name.replace("\\", "/")).name.strip()[:MAX_NAME] or f"document {number}"
    suffix = PurePosixPath(shown).suffix.lower()
    return JobFile(number=number, name=shown, file=f"{number:04}{suffix if promised(shown) else '.bin'}", url=url)


async def body_of(request: Request, most: int | None = None) -> AsyncIterator[bytes]:
    """The body of a request, chunk by chunk; :class:`pagemill.rest.middleware.Guard` bounds its time.

    Raises:
        ContentTooLargeError: It is over ``most`` bytes.
        HttpError: The client has gone.
    """
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if most is not None and size > most:
                raise ContentTooLargeError(f"the request is over {most:,} bytes")
            yield chunk
    except ClientDisconnect:
        raise HttpError("the client disconnected") from None


async def receive(request: Request, folder: Path, limits: LimitSettings, known: frozenset[str] | None) -> Upload:
    """Write the files of a multipart request into a folder, durably.

    Args:
        request: Its body is read here.
        folder: Exists and is empty. What is in it after an error is to be deleted.
        limits: Limits of bytes and files.
        known: Names of the parts that are not files, each at most once; None if the caller judges them.

    Raises:
        HttpError: The request is malformed or over a limit.
        UsageError: It has a part that is not known, or a file in another part than ``files``.
        OutputError: A file cannot be written; NoSpaceError when the disk is full.
    """
    kind, parameters = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not parameters.get(b"boundary"):
        raise HttpError("the request is not multipart/form-data", remedy="Send files as in curl -F files=@report.pdf.")
    parts = _Parts(folder, limits, known)
    try:
        try:
            parser = MultipartParser(
                parameters[b"boundary"],
                parts.callbacks,  # type: ignore[arg-type]
                max_header_count=_HEADERS_OF_A_PART,
                max_header_size=_HEADER_BYTES,
            )
            piece = bytearray()
            async with aclosing(body_of(request)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    piece += chunk
                    # In larger pieces than they arrive in: each call on a thread costs two switches.
                    if len(piece) >= _WRITTEN_AT_ONCE:
                        await asyncio.to_thread(parser.write, bytes(piece))
                        piece.clear()
            await asyncio.to_thread(parser.write, bytes(piece))
        except FormParserError as error:
            raise HttpError(f"the request is malformed: {error}") from None
        if not parts.is_complete:
            raise HttpError("the request ended early", remedy="Send it again.")
        await asyncio.to_thread(parts.finish)
    finally:
        parts.close()
    return parts.upload


class _Parts:
    """Takes what the parser finds, and writes files; the parser is called on a thread."""

    def __init__(self, folder: Path, limits: LimitSettings, known: frozenset[str] | None) -> None:
        self.upload = Upload()
        self.is_complete = False
        self._folder = folder
        self._limits = limits
        self._known = known
        self._header = self._value = b""
        self._headers: dict[bytes, bytes] = {}
        self._field: str | None = None
        self._fields = 0
        self._text = bytearray()
        self._file_size = 0
        self._file: BinaryIO | None = None
        self.callbacks: dict[str, Callable[..., None]] = {
            "on_part_begin": self._headers.clear,
            "on_header_field": self._take_header,
            "on_header_value": self._take_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin,
            "on_part_data": self._take_content,
            "on_part_end": self._end,
            "on_end": self._complete,
        }

    def finish(self) -> None:
        """Wait until all files are synced to disk."""
        sync_files([self._folder / file.file for file in self.upload.files])
        sync_directory(self._folder)

    def close(self) -> None:
        """Close the file that is being written."""
        file, self._file = self._file, None
        if file is not None:
            with output_errors(self._folder):
                file.close()

    def _take_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _take_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header = self._value = b""

    def _begin(self) -> None:
        disposition = self._headers.get(b"content-disposition", b"")
        _, parameters = parse_options_header(disposition)
        name = parameters.get(b"name", b"").decode("utf-8", "replace")
        self._text.clear()
        self._file_size = 0
        if name != FILES:
            self._check(name, is_file=bool(parameters.get(b"filename")))
            self._fields += 1
            if self._fields > MAX_FIELDS:
                raise ContentTooLargeError(f"the request has more than {MAX_FIELDS} fields")
            self._field = name
            return
        self._field = None
        files = self.upload.files
        if len(files) >= self._limits.max_files:
            raise ContentTooLargeError(
                f"the request has more than {self._limits.max_files:,} files", remedy="Send several jobs."
            )
        # Numbered by us: two files of one name are two documents, and no name of a client is a path.
        files.append(document(len(files) + 1, _file_name(disposition, parameters)))
        path = self._folder / files[-1].file
        with output_errors(path):
            self._file = path.open("xb")

    def _check(self, name: str, *, is_file: bool) -> None:
        if is_file:
            raise UsageError(f"unexpected file in the field {name[:100]!r}", remedy=f"Send files as {FILES!r}.")
        if self._known is not None:
            if name not in self._known:
                remedy = f"Available: {', '.join(sorted({FILES, *self._known}))}."
                raise UsageError(f"unknown field {name[:100]!r}", remedy=remedy)
            if name in self.upload.fields and name not in REPEATED:
                raise UsageError(f"the field {name!r} appears twice", remedy="Send it once.")

    def _take_content(self, data: bytes, start: int, end: int) -> None:
        if self._field is not None:
            self._text += data[start:end]
            if len(self._text) > MAX_FIELD_BYTES:
                raise ContentTooLargeError(f"a field is over {MAX_FIELD_BYTES:,} bytes")
            return
        size = end - start
        self._file_size += size
        self.upload.size += size
        limits = self._limits
        if self._file_size > limits.max_file_bytes:
            raise ContentTooLargeError(f"a file is over {limits.max_file_mib:,} MiB", remedy="Split the document.")
        if self.upload.size > limits.max_job_bytes:
            raise ContentTooLargeError(f"the files are over {limits.max_job_mib:,} MiB", remedy="Send several jobs.")
        assert self._file is not None
        with output_errors(self._folder / self.upload.files[-1].file):
            self._file.write(memoryview(data)[start:end])

    def _end(self) -> None:
        self.close()
        if self._field is not None:
            self.upload.fields.setdefault(self._field, []).append(self._text.decode("utf-8", "replace"))

    def _complete(self) -> None:
        self.is_complete = True


def _file_name(disposition: bytes, parameters: Mapping[bytes, bytes]) -> str:
    if b"filename" in parameters:
        return parameters[b"filename"].decode("utf-8", "replace")
    message = Message()  # only filename*, which the parser of parts leaves out
    message["content-disposition"] = disposition.decode("latin-1")
    return message.get_filename("")


def make_folder(folder: Path) -> Path:
    """Make the folder of a job, and in it that of its inputs, which is returned."""
    inputs = folder / "inputs"
    with output_errors(inputs):
        inputs.mkdir(parents=True)
    return inputs
