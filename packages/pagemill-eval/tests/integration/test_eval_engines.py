"""``pagemill eval run`` with pagemill's own engines, on small benchmarks that are made here."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forked_command import run_forked
from PIL import Image, ImageDraw, ImageFont
from stub_process import StubProcess

from pagemill.errors import ExitCode

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def run(*arguments: object, status: ExitCode = ExitCode.OK) -> dict[str, Any]:
    """The result that ``pagemill eval run`` prints."""
    ended = run_forked("eval", "run", *arguments, "--json", env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == status, ended.stderr
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def drawn(*lines: str, rules: bool = False) -> bytes:
    """A PNG with lines of text; with rules, in cells of a table of two columns."""
    image = Image.new("RGB", (900, 120 + 80 * len(lines)), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(36)
    for row, line in enumerate(lines):
        for column, text in enumerate(line.split("|")):
            left, top = 60 + 400 * column, 60 + 80 * row
            draw.text((left + 15, top + 18), text, fill="black", font=font)
            if rules:
                draw.rectangle((left, top, left + 400, top + 80), outline="black", width=3)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def test_images_of_tables(tmp_path: Path):
    rows = ["Step|Loss", "Washing|1046", "Beating|398"]
    html = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.split('|'))}</tr>" for row in rows)
    (tmp_path / "one.png").write_bytes(drawn(*rows, rules=True))
    (tmp_path / "bad.png").write_bytes(b"no image at all")
    truth = tmp_path / "truth.json"
    truth.write_text(json.dumps(dict.fromkeys(("one.png", "bad.png"), f"<table>{html}</table>")))
    out = tmp_path / "out"
    for _ in range(2):  # the second time nothing is left to do
        result = run("pubtabnet", truth, "-o", out, "--lang", "en", status=ExitCode.PAGES_FAILED)
        assert [*result["failed"]] == ["bad.png"]
        assert 0.4 < result["figures"]["teds"]["value"] <= 0.5
    assert result["reused"] == 2
    assert "<table>" in (out / "predictions" / "one.html").read_text()
    assert "one.png" in (out / "report.html").read_text()


def test_fields(tmp_path: Path):
    fields = [
        {"seller_name": "Lower Mill", "total_amount": "118.00"},
        {"seller_name": "Upper Mill", "total_amount": None},
    ]
    images = [drawn("Lower Mill", "Total 118.00"), drawn("Upper Mill", "no total")]
    pq.write_table(pa.table({"image": images, "annotations": fields}), tmp_path / "test-00000.parquet")
    said = json.dumps({"seller_name": "Lower Mill", "total_amount": "118.00"})
    with StubProcess("--text", said) as stub:
        server = ("--server", stub.url, "--model", "generic")
        result = run("nanonets-kie", tmp_path, "-o", tmp_path / "out", "--lang", "en", *server)
    assert result["samples"] == 2
    assert result["missing"] == [] and result["failed"] == {}
    assert 0.5 < result["figures"]["field_similarity"]["value"] < 1
    found = (tmp_path / "out" / "run" / "extracted" / "fields").glob("*.json")
    first = json.loads(sorted(found)[0].read_text())
    assert all(field["founded"] for field in first["fields"])
