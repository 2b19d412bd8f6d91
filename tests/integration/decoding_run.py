"""Runs that only decode: real sources, real decoding, a real run directory, and no engines. Shards to damage."""

import asyncio
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.parse import parse_into
from pagemill.document.page import PageError, PageResult, Status
from pagemill.errors import ExitCode, PagemillError
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.flight import Ticket
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources import SourceOptions
from pagemill.sources.base import PageRef, ReadPart

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


class DecodingPipeline(Pipeline):
    """A pipeline for which a page is done when it is decoded."""

    async def _parse(self, ref: PageRef, ticket: Ticket) -> ParsedPage:
        record = PageResult(
            page_id=ref.page_id,
            page_idx=ref.position,
            page_key=str(ref.key),
            doc_id=ref.document.doc_id,
            source=ref.document.uri,
            page_number=ref.page_number,
            missing=ref.missing,
            metadata=ref.metadata,
        )
        error = ref.error
        record.errors = [ref.warning] if ref.warning else []
        if ref.payload is not None and not isinstance(ref.payload, ReadPart):
            try:
                page = await self.services.decode(ref.payload)
                record.width, record.metadata = page.pixels.shape[1], {**ref.metadata, "notes": list(page.notes)}
            except PagemillError as raised:
                error = PageError(component="decode", category=raised.category, message=raised.message)
        if error is not None:
            record.status, record.errors = Status.FAILED, [error]
        return ParsedPage(document=ref.document, record=record)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, and what its directory holds then."""

    exit_code: ExitCode
    records: list[dict[str, Any]]
    run: dict[str, Any]

    @property
    def done(self) -> list[str]:
        """Ids of pages that were read."""
        return sorted(record["page_id"] for record in self.records if record["status"] == "done")

    @property
    def failed(self) -> dict[str, str]:
        """Ids of failed records and their first messages."""
        return {r["page_id"]: r["errors"][0]["message"] for r in self.records if r["status"] == "failed"}

    @property
    def missing(self) -> int:
        """Pages and rows that failed records stand for."""
        return sum(max(record["missing"], 1) for record in self.records if record["status"] == "failed")


def run(out: Path, *inputs: str | Path, retry_failed: bool = False, **options: Any) -> Ended:
    """Run to the end; once more with the same directory to resume."""

    async def parse() -> ExitCode:
        given = ParseOptions(source=SourceOptions(**options))
        directory = DirectoryOptions(report=False, retry_failed=retry_failed)
        outcome = await parse_into(out, inputs, given, directory, pipeline=DecodingPipeline(Services()))
        return outcome.exit_code

    exit_code = asyncio.run(parse())
    lines = (out / "ocr_results.jsonl").read_text(encoding="utf-8").splitlines()
    return Ended(exit_code, [json.loads(line) for line in lines], json.loads((out / "run.json").read_text()))


def rows(count: int, *, noise: int = 0) -> pa.Table:
    """Rows of small images that differ in size, with ids; ``noise`` is the side of images that compress badly."""
    images = []
    random = np.random.default_rng(0)
    for number in range(1, count + 1):
        buffer = io.BytesIO()
        image = random.integers(0, 255, (noise, noise), np.uint8) if noise else np.zeros((8, 8 + number), np.uint8)
        Image.fromarray(image).save(buffer, "PNG")
        images.append({"bytes": buffer.getvalue(), "path": None})
    ids = [f"law_{number}" for number in range(1, count + 1)]
    return pa.table({"id": ids, "image": pa.array(images, IMAGE)})


def parquet(path: Path, table: pa.Table, rows_of_group: int) -> Path:
    """A Parquet file with a page for each column chunk, so that each row group has a header of its own to damage."""
    pq.write_table(table, path, row_group_size=rows_of_group, use_dictionary=False, compression="none")
    return path


def damage_row_group(path: Path, group: int, columns: Sequence[str] = ("image.bytes",)) -> None:
    """Overwrite the page headers of columns in a row group."""
    data = bytearray(path.read_bytes())
    with pq.ParquetFile(path) as file:
        chunks = file.metadata.row_group(group)
        for index in range(chunks.num_columns):
            chunk = chunks.column(index)
            if chunk.path_in_schema in columns:
                start = chunk.data_page_offset
                data[start : start + 16] = b"\xff" * 16
    path.write_bytes(data)


def arrow(path: Path, table: pa.Table, rows_of_batch: int, *, stream: bool, compression: str | None = None) -> Path:
    """An Arrow file or stream."""
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=rows_of_batch)
    return path
