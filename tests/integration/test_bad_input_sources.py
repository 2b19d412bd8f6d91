"""Inputs of all kinds, good and bad, through sources and the decoding service with real processes."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pypdfium2 as pdfium
import pytest
from PIL import Image

from pagemill.errors import PagemillError
from pagemill.imaging.encode import encode_jpeg
from pagemill.runtime.decoding import DecodingService
from pagemill.sources import PageRanges, SourceOptions
from pagemill.sources.stream import InputStream

pytestmark = pytest.mark.integration


def png_header(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def save_pdf(path: Path, pages: int) -> Path:
    document = pdfium.PdfDocument.new()
    for _ in range(pages):
        document.new_page(200, 300)
    document.save(path)
    document.close()
    return path


async def outcomes(inputs: list[str | Path | bytes], **options: object) -> dict[str, str]:
    """Page id to its shape, or to the category of its error and the stage that found it."""
    found: dict[str, str] = {}
    async with DecodingService(workers=1) as service:
        source = InputStream(inputs, options=SourceOptions(**options), decoder=service)  # type: ignore[arg-type]
        async for ref in source.pages():
            if ref.payload is None:
                assert ref.error is not None
                found[ref.page_id] = f"source: {ref.error.category}"
                continue
            try:
                page = await service.decode(ref.payload)
            except PagemillError as error:
                assert error.remedy
                found[ref.page_id] = f"decode: {error.category}"
            else:
                found[ref.page_id] = "x".join(map(str, page.pixels.shape[:2]))
    return found


async def test_a_folder_of_everything(tmp_path: Path):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 50, 3), dtype=np.uint8))
    jpeg = encode_jpeg(np.asarray(noise))
    (tmp_path / "a-bomb.png").write_bytes(png_header(100_000, 100_000, zlib.compress(bytes(10**6))))
    (tmp_path / "b-cut.jpg").write_bytes(jpeg[: len(jpeg) // 2])
    (tmp_path / "c-empty.pdf").touch()
    (tmp_path / "d-fake.pdf").write_text("no PDF at all")
    (tmp_path / "e-wide.png").write_bytes(png_header(20_000, 10, zlib.compress(bytes(2501 * 10))))
    (tmp_path / "f-good.jpg").write_bytes(jpeg)
    save_pdf(tmp_path / "g-good.pdf", 3)
    assert await outcomes([tmp_path], pages=PageRanges.parse("1,3-")) == {
        "a-bomb": "source: too_large",
        "b-cut_1": "decode: corrupt",
        "c-empty": "source: corrupt",
        "d-fake": "source: unsupported",
        "e-wide_1": "8x16000",
        "f-good_1": "60x50",
        "g-good_1": "1000x667",
        "g-good_3": "1000x667",
    }


async def test_a_dataset_with_broken_rows(tmp_path: Path):
    good, wide = io.BytesIO(), png_header(30_000, 40_000, zlib.compress(b""))
    Image.new("L", (30, 20)).save(good, "PNG")
    images = [good.getvalue(), b"", None, b"junk", good.getvalue()[:-30], wide, good.getvalue()]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": image, "path": "/etc/passwd"} for image in images]
    table = pa.table({"id": [f"../law_{n}" for n in range(1, 8)], "image": pa.array(rows, kind)})
    path = tmp_path / "shard.arrow"
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    assert await outcomes([path]) == {
        "_law_1": "20x30",
        "_law_2": "source: corrupt",
        "_law_3": "source: corrupt",
        "_law_4": "source: unsupported",
        "_law_5": "decode: corrupt",
        "_law_6": "source: too_large",
        "_law_7": "20x30",
    }


async def test_bytes_and_remote_files(tmp_path: Path):
    import fsspec

    data = save_pdf(tmp_path / "x.pdf", 1).read_bytes()
    memory = fsspec.filesystem("memory")
    memory.pipe({"/lib/b.pdf": data, "/lib/c.pdf": data[:50]})
    try:
        found = await outcomes([data, "memory://lib", "memory://none"])
    finally:
        memory.rm("/lib", recursive=True)
    assert found == {"document_1": "1000x667", "b_1": "1000x667", "c": "source: corrupt", "none": "source: missing"}
