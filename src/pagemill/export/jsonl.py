"""Pages as JSON Lines: one record a line."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from pagemill.export.formats import Content, ExportFormat


def _write(content: Content, stream: BinaryIO, crops_root: str) -> None:
    stream.writelines(msgspec.json.encode(page) + b"\n" for page in content.pages())


FORMAT = ExportFormat(ending=".jsonl", to_file=_write)
