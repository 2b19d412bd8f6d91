"""Page images of the samples: scans, the TIFF and the dataset shards."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pypdfium2 as pdfium
from PIL import Image, ImageFilter
from reportlab.lib.utils import ImageReader

from makers.typesetting import Element, new_canvas

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCAN_DPI = 200
SKEW_DEGREES = 1.0
NOISE = 5.0
"""Standard deviation of the scanner's noise in grey levels of 255."""

CORPUS_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("ocr", pa.string()),
        ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    ],
    metadata={
        "huggingface": json.dumps(
            {
                "info": {
                    "features": {
                        **{name: {"dtype": "string", "_type": "Value"} for name in ("id", "text", "ocr")},
                        "image": {"_type": "Image"},
                    }
                }
            }
        )
    },
)
"""Columns of the SDS-KoPub-VDR corpus, with the note that the ``datasets`` library leaves in its files."""


def render(pdf: Path, dpi: int) -> list[Image.Image]:
    """Pages of a PDF as grey images."""
    document = pdfium.PdfDocument(pdf)
    try:
        return [page.render(scale=dpi / 72, grayscale=True).to_pil().convert("L") for page in document]
    finally:
        document.close()


def degrade(page: Image.Image, seed: int) -> Image.Image:
    """A page as an office scanner gives it: skewed, a little soft, noisy, on paper that is not quite white."""
    turned = page.rotate(SKEW_DEGREES, Image.Resampling.BICUBIC, fillcolor=255)
    soft = np.asarray(turned.filter(ImageFilter.GaussianBlur(0.6)), dtype=np.float64)
    noise = np.random.default_rng(seed).normal(0.0, NOISE, soft.shape)
    return Image.fromarray(np.clip(soft * (247 / 255) + 3 + noise, 0, 255).astype(np.uint8))


def write_scan(source: Path, target: Path) -> None:
    """Write a PDF that holds nothing but JPEG scans of the pages of another."""
    canvas = new_canvas(target, (595, 842), "Scan", "")
    for number, page in enumerate(render(source, SCAN_DPI)):
        jpeg = io.BytesIO()
        degrade(page, seed=number).save(jpeg, "JPEG", quality=62)
        jpeg.seek(0)
        size = (page.width * 72 / SCAN_DPI, page.height * 72 / SCAN_DPI)
        canvas.setPageSize(size)
        canvas.drawImage(ImageReader(jpeg), 0, 0, *size)
        canvas.showPage()
    canvas.save()


def write_tiff(source: Path, target: Path) -> None:
    """Write the pages of a PDF as one bilevel TIFF with CCITT group 4 compression."""
    first, *others = [
        page.point(lambda value: 255 if value > 140 else 0).convert("1", dither=Image.Dither.NONE)
        for page in render(source, SCAN_DPI)
    ]
    first.save(target, save_all=True, append_images=others, compression="group4", dpi=(SCAN_DPI, SCAN_DPI))


def corpus_row(file_id: str, number: int, page: Image.Image, kind: str, truth: Sequence[Element]) -> dict[str, Any]:
    """A row of the corpus: the encoded page, its true text, and the same text as a careless OCR would give it."""
    text = "\n".join(element["text"] for element in truth if "text" in element)
    encoded = io.BytesIO()
    if kind == "PNG":
        page.quantize(16).save(encoded, kind, optimize=True)
    else:
        page.save(encoded, kind, quality=60)
    identifier = f"{file_id}_{number}"
    return {
        "id": identifier,
        "text": text,
        "ocr": " ".join(text.split()),
        "image": {"bytes": encoded.getvalue(), "path": f"{identifier}.{'png' if kind == 'PNG' else 'jpg'}"},
    }


def write_corpus(rows: list[dict[str, Any]], arrow: Path, parquet: Path) -> None:
    """Write the rows as an Arrow stream, as ``datasets`` keeps its shards, and as Parquet."""
    table = pa.Table.from_pylist(rows, schema=CORPUS_SCHEMA)
    with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_stream(sink, CORPUS_SCHEMA) as writer:
        writer.write_table(table)
    pq.write_table(table, parquet)
