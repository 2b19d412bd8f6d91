"""The scripts in examples/ run on samples/, as they are."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    """Run a script in an empty folder and return what it prints."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parse_to_markdown(tmp_path):
    printed = run("parse_to_markdown.py", tmp_path)
    assert "2 pages, 2 tables" in printed
    assert (tmp_path / "markdown-out" / "report.md").read_text(encoding="utf-8").startswith("# From Rag to Ream")


def test_stream_pages(tmp_path):
    printed = run("stream_pages.py", tmp_path)
    assert "report_1: done" in printed
    assert "notice-ko_1: done" in printed


def test_tables_to_csv(tmp_path):
    run("tables_to_csv.py", tmp_path)
    with (tmp_path / "tables-out" / "table-1.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0][:3] == ["Quarter", "Vat 1: writing paper", "Vat 1: writing paper"]
    assert rows[2][:2] == ["January to March", "1,284.5"]


def test_chunks(tmp_path):
    chunks = [json.loads(line) for line in run("chunks.py", tmp_path).splitlines()]
    assert any(chunk["headings"][-1] == "1 Introduction" for chunk in chunks)
    assert any(place["label"] == "table" and place["page"] == 2 for chunk in chunks for place in chunk["places"])


def test_search_pages(tmp_path):
    assert run("search_pages.py", tmp_path).startswith("report_2 (table)")


def test_every_script_is_listed_and_tested():
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    tested = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in sorted(scripts) if f"`{name} " not in listed or f'"{name}"' not in tested] == []


def test_serve_client(tmp_path):
    command = [sys.executable, "-m", "pagemill", "serve", "--port", "0", "--data", str(tmp_path / "data")]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        url = re.findall(r"http://\S+", server.stderr.readline())[0]
        printed = run("serve_client.py", tmp_path, url)
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert "0001_2: done" in printed
    assert "# From Rag to Ream" in printed
    assert "report.pdf, page 1: " in printed.rpartition("notice-ko.pdf\n")[2]
