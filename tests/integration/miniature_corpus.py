"""A miniature of the SDS-KoPub-VDR benchmark: the same configurations, columns and rules of ids, in three layouts.

A page's id is ``FILE_PAGE``, pages from 0; the id of a question is that of the page that answers it.
"""

import io
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

NAME = "SamsungSDS-Research/SDS-KoPub-VDR-Benchmark"
CORPUS, QA, ANNOTATIONS = "SDS-KoPub-corpus", "SDS-KoPub-QA", "SDS-KoPub-annotations"
FILES = {"30": 4, "7": 2}
"""Pages by file."""
PAGE_IDS = [f"{file}_{page}" for file, pages in FILES.items() for page in range(pages)]
QUESTIONS = {"예산은 얼마인가?": "30_0", "누가 맡았나?": "30_0", "도표의 합계는?": "7_1"}
"""With the page that answers each; one page answers two."""
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_CARD = """---
license: cc-by-sa-4.0
language:
- ko
configs:
{}---
# A miniature
"""
_CONFIG = """- config_name: {0}
  data_files:
  - split: test
    path: {0}.parquet
"""


class Layout(StrEnum):
    """How the tables lie."""

    HUB = "hub"
    """As published: a file a configuration, beside the card."""
    FOLDERS = "folders"
    """A folder of Parquet shards a configuration."""
    CACHE = "cache"
    """As the ``datasets`` library keeps them: Arrow streams, with the name of the dataset in their names."""


def tables() -> dict[str, pa.Table]:
    """The configurations."""
    images = [{"bytes": _page(page), "path": f"{page}.png"} for page in PAGE_IDS]
    indices, numbers = iter(range(len(PAGE_IDS))), range(len(QUESTIONS))
    return {
        CORPUS: pa.table(
            {
                "id": PAGE_IDS,
                "text": [f"text {page}" for page in PAGE_IDS],
                "ocr": [f"ocr {page}" for page in PAGE_IDS],
                "image": pa.array(images, _IMAGE),
            }
        ),
        QA: pa.table(
            {
                "id": list(QUESTIONS.values()),
                "query": list(QUESTIONS),
                "answer": [f"answer {number}" for number in numbers],
                "type": ["text", "cross", "visual"],
                "domain": ["finance", "finance", "law"],
                "ground_truth": [[PAGE_IDS.index(page)] for page in QUESTIONS.values()],
            }
        ),
        ANNOTATIONS: pa.table(
            {
                "file_id": list(FILES),
                "file_name": [f"{file}.pdf" for file in FILES],
                "page_indices": [[next(indices) for _ in range(pages)] for pages in FILES.values()],
            }
        ),
    }


def write(folder: Path, layout: Layout = Layout.HUB) -> Path:
    """Write it into a folder, which is returned."""
    for name, table in tables().items():
        if layout is Layout.HUB:
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, folder / f"{name}.parquet", row_group_size=2)
        elif layout is Layout.FOLDERS:
            (folder / name).mkdir(parents=True)
            half = len(table) // 2
            for number, part in enumerate((table.slice(0, half), table.slice(half))):
                pq.write_table(part, folder / name / f"test-0000{number}-of-00002.parquet")
        else:
            inner = folder / "SamsungSDS-Research___sds-ko_pub-vdr-benchmark" / name / "0.0.0" / ("a" * 40)
            inner.mkdir(parents=True)
            (inner / "dataset_info.json").write_text("{}")
            shard = inner / "sds-ko_pub-vdr-benchmark-test.arrow"
            with pa.OSFile(str(shard), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
    if layout is Layout.HUB:
        (folder / "README.md").write_text(_CARD.format("".join(map(_CONFIG.format, (QA, CORPUS, ANNOTATIONS)))))
    return folder


def _page(name: str) -> bytes:
    """A page on which each region looks different from those of all other pages."""
    image = Image.new("RGB", (300, 400), "white")
    draw = ImageDraw.Draw(image)
    for place, top in enumerate((26, 70, 300)):
        draw.text((40, top), f"page {name}, region {place}", fill="black")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
