"""Mean TEDS of the CPU table path on PubTabNet images.

DATA holds table images and a jsonl file in PubTabNet's format (``filename``, ``html.structure.tokens``,
``html.cells``). Each image is read as one page whose only region is the table: text lines, then rows, columns and
spans. A table that is not recognised, or an image that is missing or fails, scores 0 and is counted.

Three scores: TEDS with the inline tags of the truth (bold, superscripts: the official definition), TEDS with such
tags taken out of the truth, and TEDS-S (structure alone).
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pagemill.config.modes import TablesMode
from pagemill.config.settings import ParseSettings
from pagemill.runtime.pipeline import Pipeline
from pagemill.tables.recognize import recognize_table
from pagemill.tables.structure_model import packaged_model
from pagemill_eval.teds import teds


def true_html(row: dict[str, Any], inline_tags: bool = True) -> str:
    """HTML of a PubTabNet annotation: cell tokens put into the structure's cells, in order."""
    cells = iter(row["html"]["cells"])
    parts = []
    for token in row["html"]["structure"]["tokens"]:
        if token == "</td>":
            content = "".join(next(cells)["tokens"])
            parts.append(content if inline_tags else re.sub(r"</?[a-z]+>", "", content))
        parts.append(token)
    return f"<table>{''.join(parts)}</table>"


async def predict(pipeline: Pipeline, image: Path, tables: TablesMode) -> str:
    """HTML of the table on an image; empty when there is none."""
    pixels = np.ascontiguousarray(Image.open(image).convert("RGB"))
    height, width = pixels.shape[:2]
    page = await pipeline.read(pixels, ("en",))
    model = None if tables is TablesMode.RULES else packaged_model
    recognize = functools.partial(recognize_table, prefer_model=tables is TablesMode.MODEL)
    table = await pipeline.compute(recognize, pixels, (0.0, 0.0, float(width), float(height)), page.lines, model)
    return table.to_html() if table else ""


async def run(data: Path, annotations: Path, limit: int | None, out: Path | None, tables: TablesMode) -> None:
    """Score all images and print a line for each and the means."""
    rows = [json.loads(line) for line in annotations.read_text(encoding="utf-8").splitlines() if line.strip()][:limit]
    scores = []
    start = time.perf_counter()
    print(f"{'image':32}{'TEDS':>8}{'no tags':>9}{'TEDS-S':>8}")
    async with Pipeline(ParseSettings(languages=("en",))) as pipeline:
        for row in rows:
            note = ""
            try:
                html = await predict(pipeline, data / row["filename"], tables)
            except Exception as error:  # a benchmark goes on and counts the image as wrong
                html, note = "", f"  FAILED: {type(error).__name__}: {error}"
            truth, plain = true_html(row), true_html(row, inline_tags=False)
            score = (teds(html, truth), teds(html, plain), teds(html, plain, structure_only=True))
            scores.append(score)
            print(f"{row['filename']:32}{score[0]:8.3f}{score[1]:9.3f}{score[2]:8.3f}{note}", flush=True)
            if out:
                out.mkdir(parents=True, exist_ok=True)
                page = f"<h3>read</h3>{html}<h3>true</h3>{truth}"
                (out / Path(row["filename"]).with_suffix(".html").name).write_text(page, encoding="utf-8")
    means = np.mean(scores, axis=0)
    print(f"{f'mean of {len(scores)} images':32}{means[0]:8.3f}{means[1]:9.3f}{means[2]:8.3f}")
    print(f"scorer: pagemill_eval.teds, mean over images; {time.perf_counter() - start:.1f} s")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder of images")
    parser.add_argument("--annotations", type=Path, help="jsonl file (default: DATA/PubTabNet_Examples.jsonl)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N images")
    parser.add_argument("--out", type=Path, help="folder for an HTML file an image, read and true table")
    parser.add_argument("--tables", type=TablesMode, choices=TablesMode, default=TablesMode.AUTO, help="as of parse")
    arguments = parser.parse_args()
    annotations = arguments.annotations or arguments.data / "PubTabNet_Examples.jsonl"
    asyncio.run(run(arguments.data, annotations, arguments.limit, arguments.out, arguments.tables))


if __name__ == "__main__":
    main()
