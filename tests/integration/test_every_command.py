"""Every command once, on the samples: the small real run of the daily loop.

Deeper tests of a command have a file of their own; here it is run as its users do, on what the commands before it made.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import httpx
import pyarrow.parquet as pq
import pypdfium2 as pdfium
import pytest
from forked_command import ForkedCommand, run_forked
from pagemill_process import wait_for
from shared_runs import made_once
from stub_process import StubProcess

from pagemill.cli import cli
from pagemill.errors import ExitCode

SAMPLES = Path(__file__).parents[2] / "samples"
PROTOCOL = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
PAGES = 3
"""Of the run: two with a text layer, and a scan."""
CALLED: dict[str, str] = {
    "parse": "test_parse_again",
    "status": "test_status",
    "verify": "test_verify",
    "rebuild": "test_rebuild",
    "export": "test_export",
    "embed": "test_embed_again",
    "index": "test_search",
    "describe": "test_describe",
    "extract": "test_extract",
    "search": "test_search",
    "eval": "test_eval",
    "plan": "test_plan",
    "serve-model": "test_dry_runs_of_servers",
    "mcp": "test_mcp",
    "publish": "test_publish",
    "run": "test_dry_runs_of_servers",
    "serve": "test_serve",
    "profile": "test_profile",
    "watch": "test_watch",
    "config": "test_config_and_completion",
    "completion": "test_config_and_completion",
    "doctor": "test_doctor",
    "models": "test_models",
    "bench": "test_bench",
}
"""The test of each command."""


def called(*arguments: object, status: ExitCode = ExitCode.OK, messages: Path | None = None) -> str:
    """What ``pagemill`` prints; messages go to standard error, a copy to a file."""
    ended = run_forked(*arguments, env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"})
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    if messages is not None:
        messages.write_text(ended.stderr)
    return ended.stdout


def some_pages(name: str, pages: list[int], target: Path, box: tuple[float, float, float, float] | None = None) -> Path:
    with pdfium.PdfDocument.new() as document, pdfium.PdfDocument(SAMPLES / name) as sample:
        document.import_pages(sample, pages=pages)
        if box is not None:
            document[0].set_mediabox(*box)
        document.save(target)
    return target


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with vectors and an index, and its inputs; not to be written to."""

    def make(folder: Path) -> None:
        inputs, out = folder / "inputs", folder / "out"
        inputs.mkdir()
        some_pages("report.pdf", [0, 1], inputs / "report.pdf")
        some_pages("report-scan.pdf", [0], inputs / "scan.pdf", (40, 240, 300, 412))  # a part of a column
        called("parse", inputs, "--lang", "en", "-o", out, "-qv", messages=folder / "messages.txt")
        called("embed", out, "-q")
        called("index", out, "-q")

    return made_once(tmp_path_factory, "every-command", make)


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    return shutil.copytree(finished / "out", tmp_path / "out")


def test_each_command_has_a_test():
    assert {*cli.list_commands(click.Context(cli))} == CALLED.keys()
    assert {*CALLED.values()} <= globals().keys()


def test_what_parse_wrote(finished: Path):
    records = [json.loads(line) for line in (finished / "out" / "ocr_results.jsonl").read_text().splitlines()]
    assert {record["page_id"] for record in records} == {"report_1", "report_2", "scan_1"}
    assert {record["status"] for record in records} == {"done"}
    text = {record["page_id"]: record["markdown"] for record in records}
    assert "The mill and its water" in text["report_1"]
    assert "The mill and its water" in text["scan_1"]
    labels = {region["label"] for record in records for region in record["regions"]}
    assert {"table", "image"} <= labels, labels
    documents = {path.name for path in (finished / "out" / "documents").iterdir()}
    assert {"report.md", "report.json", "scan.md", "scan.json"} <= documents
    assert (finished / "out" / "report.html").stat().st_size > 10_000


def test_what_parse_said_of_its_decisions(finished: Path):
    lines = (finished / "messages.txt").read_text().splitlines()
    assert "report_1: text layer used: it is sound" in lines
    assert "scan_1: text layer not used: there is none" in lines or any(
        "scan_1: text layer refused" in x for x in lines
    )
    assert any(line.startswith("scan_1: recognized: ") and line.endswith("languages: en") for line in lines)
    assert any(re.fullmatch(r"report_1/\d+: first of \d+ headings, levels by \w+", line) for line in lines)
    assert any("left out: other pages have the same at its place" in line for line in lines)


def test_parse_again(finished: Path, out: Path):
    before = (out / "ocr_results.jsonl").read_bytes()
    called("parse", finished / "inputs", "--lang", "en", "-o", out, "-q")
    assert (out / "ocr_results.jsonl").read_bytes() == before
    called("parse", finished / "inputs", "--lang", "ko", "-o", out, status=ExitCode.OUTPUT)


def test_watch(tmp_path: Path):
    (tmp_path / "inbox").mkdir()
    some_pages("report.pdf", [0], tmp_path / "inbox" / "report.pdf")
    with ForkedCommand("watch", tmp_path / "inbox", "-o", tmp_path / "out", "--interval", "0.2", "-q") as run:
        wait_for((tmp_path / "out" / "documents" / "report.md").exists, "the document")
        run.send_signal(signal.SIGINT)
        run.communicate()
        assert run.returncode in (ExitCode.OK, ExitCode.INTERRUPTED)
    called("verify", tmp_path / "out")


def test_config_and_completion(tmp_path: Path):
    (tmp_path / "mine.toml").write_text('[parse]\nlang = "en"\n')
    assert called("--config", tmp_path / "mine.toml", "config").endswith('[parse]\nlang = "en"\n')
    assert "_PAGEMILL_COMPLETE" in called("completion", "bash")


def test_status(out: Path):
    status = json.loads(called("status", out, "--json"))
    assert (status["state"], status["pages"]["done"], status["pages"]["failed"]) == ("finished", PAGES, 0)
    assert "finished" in called("status", out)


def test_verify(out: Path):
    called("verify", out)
    next((out / "crops").iterdir()).unlink()
    called("verify", out, status=ExitCode.DAMAGED)


def test_rebuild(out: Path):
    assert json.loads(called("rebuild", out, "--json"))["changed"] == 0
    called("verify", out)


def test_export(finished: Path, out: Path, tmp_path: Path):
    for kind in (
        "jsonl",
        "parquet",
        "markdown",
        "docjson",
        "html",
        "csv-tables",
        "hocr",
        "alto",
        "txt",
        "doctags",
        "coco",
    ):
        called("export", out, "--format", kind, "-o", tmp_path / kind)
    assert pq.read_table(tmp_path / "parquet").num_rows == PAGES
    assert "Four things decide" in (tmp_path / "markdown" / "scan.md").read_text()
    assert [*(tmp_path / "csv-tables").rglob("*.csv")]
    called("export", out, "--format", "pdf", "--input", finished / "inputs", "-o", tmp_path / "pdf")
    with pdfium.PdfDocument(tmp_path / "pdf" / "scan.pdf") as document:
        assert "Four things decide" in " ".join(document[0].get_textpage().get_text_range().split())
    called("export", out, "--format", "jsonl", "--status", "failed", "-o", "-", status=ExitCode.INPUT)


def test_embed_again(out: Path):
    vectors = out / "embeddings" / "corpus_ocr_text.npy"
    before = vectors.read_bytes()
    called("embed", out)
    assert vectors.read_bytes() == before


def test_search(out: Path):
    hits = [json.loads(line) for line in called("search", out, "drying loft with shutters", "--json").splitlines()]
    assert hits[0]["page_id"] == "report_2"
    shutil.rmtree(out / "index")
    called("index", out)
    assert "report_2" in called("search", out, "drying loft with shutters", "-k", 1)
    assert called("search", out, "xqzvw plorth", "--json") == ""


def test_extract(finished: Path, out: Path, tmp_path: Path):
    fields = {"title": {"type": "string"}, "founded": {"type": "integer"}, "editor": {"type": "string"}}
    schema = tmp_path / "paper.schema.json"
    schema.write_text(json.dumps({"type": "object", "properties": fields, "required": ["title"]}))
    said = {"title": "From Rag to Ream: Measuring a Small Paper Mill", "founded": 1788, "editor": "Nobody Atall"}
    with StubProcess("--text", json.dumps(said)) as stub:
        lines = called(
            *("extract", out, "--input", finished / "inputs", "--schema", schema),
            *("--server", stub.url, "--model", "generic", "--json"),
        ).splitlines()
    report = next(found for found in map(json.loads, lines) if found["doc_id"] == "report")
    assert report["values"] == said
    assert {each["path"]: each["founded"] for each in report["fields"]} == {
        "/title": True, "/founded": True, "/editor": False
    }  # fmt: skip
    assert json.loads((out / "extracted" / "paper" / "report.json").read_text())["values"] == said
    called("extract", out, "--schema", schema, "--server", "http://127.0.0.1:9", "-o", tmp_path, status=ExitCode.USAGE)


def test_describe(finished: Path, out: Path):
    said = {"language": "en", "summary": "A vat under a xylograph.", "keywords": ["vat"], "data": None}
    with StubProcess("--text", json.dumps(said)) as stub:
        described = ("describe", out, "--input", finished / "inputs", "--describe", "figures")
        called(*described, "--describe-server", stub.url)
        assert stub.counts()["requests"] == 1
        called(*described, "--describe-server", stub.url)  # nothing is left
        assert stub.counts()["requests"] == 1
    assert ": A vat under a xylograph.](" in (out / "documents" / "report.md").read_text()
    called("embed", out, "-q")
    called("index", out)
    assert "report_1" in called("search", out, "xylograph")
    called("verify", out)


def test_eval(out: Path, tmp_path: Path):
    pytest.importorskip("ir_measures")
    query = {"id": "q", "query": "drying loft with shutters", "relevant": ["report_2"]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(query))
    result = json.loads(called("eval", "retrieval", out, "--queries", tmp_path / "queries.jsonl", "--json"))
    assert result["parts"]["fused"]["overall"]["means"]["Success@1"] == 1


def test_eval_run_and_compare(finished: Path, tmp_path: Path):
    with (finished / "out" / "ocr_results.jsonl").open() as records:
        regions = [region for line in records for region in json.loads(line)["regions"]]
    html = next(region["content"] for region in regions if region["label"] == "table")
    (tmp_path / "truth.json").write_text(json.dumps({"one.png": html, "two.png": html}))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.html").write_text(html)
    (tmp_path / "b" / "two.html").write_text(html.replace("<td>", "<td>x"))
    scores = {}
    for name, status in (("a", ExitCode.PAGES_FAILED), ("b", ExitCode.OK)):
        given = (tmp_path / "truth.json", "--predictions", tmp_path / name, "-o", tmp_path / f"scores-{name}")
        result = json.loads(called("eval", "run", "pubtabnet", *given, "--json", status=status))
        scores[name] = result["figures"]["teds"]["value"]
    assert scores["a"] == 0.5 < scores["b"] < 1
    page = tmp_path / "difference.html"
    compared = called("eval", "compare", tmp_path / "scores-a", tmp_path / "scores-b", "-o", page, "--json")
    assert json.loads(compared)["metrics"][0]["better"] == 1
    assert "two.png" in page.read_text()
    assert "pubtabnet" in called("eval", "list")


def test_publish(out: Path, tmp_path: Path):
    called("publish", out, "--to", tmp_path / "dataset", "--licence", "cc0-1.0")
    assert pq.read_table(tmp_path / "dataset" / "data").num_rows == PAGES
    assert (tmp_path / "dataset" / "README.md").read_text().startswith("---\n")


def test_mcp(tmp_path: Path):
    asked = [
        {"id": 1, "method": "initialize", "params": PROTOCOL},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    command = [sys.executable, "-m", "pagemill", "mcp", "--root", str(tmp_path), "--cache", str(tmp_path / "cache")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.writelines(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(60) == 0
    assert {tool["name"] for tool in answers[1]["result"]["tools"]} >= {"parse_document", "search"}


def test_serve(tmp_path: Path):
    with ForkedCommand("serve", "--port", "0", "--data", tmp_path / "data") as run:
        wait_for(lambda: "http://" in "".join(run.printed()), "the address")
        address = next(word for word in "".join(run.printed()).split() if word.startswith("http://"))
        assert httpx.get(f"{address}/readyz", timeout=60).status_code == 200
        assert "<title>pagemill" in httpx.get(address, timeout=60).text
        run.send_signal(signal.SIGTERM)
        run.communicate()
        assert run.returncode == 0


def test_plan():
    assert json.loads(called("plan", "--profile", "l4", "--json"))["model"] == "glm-ocr"


def test_dry_runs_of_servers(tmp_path: Path):
    served = called("serve-model", "--profile", "l4", "--port", 8123, "--dry-run")
    lines = called("run", SAMPLES, "-o", tmp_path / "out", "--profile", "l4", "--port", 8123, "--dry-run").splitlines()
    assert lines[1] == served.strip()
    assert [line.split()[1] for line in lines if line.startswith("pagemill")] == ["parse", "embed"]
    assert not (tmp_path / "out").exists()


def test_doctor():
    found = json.loads(called("doctor", "parse", "search", "--json"))
    assert {each["area"] for each in found} >= {"parse", "search"}


def test_models():
    assert "glm-ocr" in called("models", "list")


def test_bench(finished: Path):
    assert "layout-preprocess" in called("bench", "--help")
    with StubProcess("--model", "glm-ocr") as stub:
        regions = ("--from", finished / "out", "--input", finished / "inputs")
        found = json.loads(called("bench", "server", "--server", stub.url, *regions, "--in-flight", 2, "--json"))
    assert found["load"]["regions"] > PAGES
    assert found["levels"][0]["answered"] == 32


def test_profile(finished: Path, tmp_path: Path):
    folder = tmp_path / "profile"
    inputs = [finished / "inputs" / "report.pdf", tmp_path / "broken.pdf"]
    inputs[1].write_bytes(b"%PDF-1.7 and nothing else")
    options = ("--no-free", "--project", 1000, "-o", folder)
    printed = called("profile", *inputs, *options, "--json", status=ExitCode.PAGES_FAILED)
    profile = json.loads(printed)
    assert profile == json.loads((folder / "profile.json").read_text("utf-8"))
    assert (profile["pages"], profile["failed"]) == (3, 1)
    assert profile["projection"]["pages"] == 1000
    busy = sum(stage["busy_s"] for stage in profile["stages"])
    assert busy == pytest.approx(sum(each["busy_s"] for each in profile["resources"][1:]))
    events = json.loads((folder / "trace.json").read_text("utf-8"))["traceEvents"]
    spans = [event for event in events if event.get("ph") == "X"]
    assert len(spans) == sum(stage["calls"] for stage in profile["stages"])
    assert sum(span["dur"] for span in spans) == pytest.approx(1e6 * busy, rel=0.01)
    decoded = {span["args"].get("page") for span in spans if span["name"] == "decode"}
    assert len(decoded) == 2
    assert "<script" not in (folder / "profile.html").read_text("utf-8")
