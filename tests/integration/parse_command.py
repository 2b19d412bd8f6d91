"""``pagemill parse`` as a process with the real engines, and small files for it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pypdfium2 as pdfium
from forked_command import PATIENCE_S, run_forked
from PIL import Image, ImageDraw, ImageFont
from test_bad_input_decoding import encrypted_pdf

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
SAMPLES = Path(__file__).parents[2] / "samples"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "pagemill", "parse", *map(str, arguments)]


def parse(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run it to its end: forked, but where ``subprocess.run`` is given more than an environment and a folder."""
    if options.keys() <= {"env", "cwd"}:
        return run_forked("parse", *arguments, **{"env": ENVIRONMENT} | options)
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True, "timeout": PATIENCE_S} | options
    return subprocess.run(command(*arguments), **options)


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "ocr_results.jsonl").read_text(encoding="utf-8").splitlines()]


def run_json(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
    return content


def all_once(out: Path, pages: int) -> bool:
    found = records(out)
    return sorted(record["page_idx"] for record in found) == list(range(pages)) and all(
        record["status"] == "done" for record in found
    )


def wait_for(event: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (value := event()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return value


def picture(text: str) -> Image.Image:
    image = Image.new("RGB", (500, 120), "white")
    ImageDraw.Draw(image).text((20, 40), text, fill="black", font=ImageFont.load_default(30))
    return image


def make_inputs(folder: Path) -> Path:
    """Small good and bad files."""
    (folder / "sub").mkdir()
    picture("alpha").save(folder / "a.png")
    picture("beta").save(folder / "a.jpg")
    picture("gamma").save(folder / "sub" / "a.png")
    (folder / "empty.pdf").write_bytes(b"")
    (folder / "note.tex").write_text("no document")
    (folder / "cut.png").write_bytes((folder / "a.png").read_bytes()[:900])
    (folder / "locked.pdf").write_bytes(encrypted_pdf(b"sesame"))
    document, report = pdfium.PdfDocument.new(), pdfium.PdfDocument(SAMPLES / "report.pdf")
    for _ in range(4):
        document.import_pages(report, pages=[0, 1])
    document.save(folder / "eight.pdf")
    image = {"bytes": (folder / "a.png").read_bytes(), "path": None}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [image, {"bytes": b"junk", "path": None}, None]
    pq.write_table(pa.table({"id": ["r1", "r2", "r3"], "image": pa.array(rows, kind)}), folder / "rows.parquet")
    none = {"id": pa.array([], pa.string()), "image": pa.array([], kind)}
    pq.write_table(pa.table(none), folder / "none.parquet")
    return folder
