"""A dataset on the Hub, read by the real client from a small local stand-in for the Hub's HTTP API."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from forked_command import run_forked

pytest.importorskip("huggingface_hub")

SAMPLES = Path(__file__).parents[2] / "samples"
REPO = "mills/ledgers"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"data/corpus-00000-of-00001.parquet": (SAMPLES / "corpus.parquet").read_bytes(), "README.md": b"# Ledgers\n"}


class Hub(BaseHTTPRequestHandler):
    """Answers what ``HfFileSystem`` asks: repository info, tree, paths-info, and files with ranges."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.respond(send_body=False)

    def do_GET(self) -> None:
        self.respond(send_body=True)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(f"POST {self.path}")  # type: ignore[attr-defined]
        if "/paths-info/" in self.path:
            text = unquote(body.decode())
            paths = json.loads(text)["paths"] if text.startswith("{") else re.findall(r"paths=([^&]+)", text)
            self.send(json.dumps([entry(path) for path in paths if path in FILES]).encode())
        else:
            self.send(b"{}", status=404)

    def respond(self, *, send_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")  # type: ignore[attr-defined]
        if path.startswith(f"/api/datasets/{REPO}/tree/"):
            prefix = path.split("/tree/", 1)[1].partition("/")[2]
            inside = [name for name in FILES if name.startswith(f"{prefix}/" if prefix else "")]
            folders = {name.split("/")[0] for name in inside if "/" in name and not prefix}
            listed = [entry(name) for name in inside]
            listed += [{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in folders]
            self.send(json.dumps(listed).encode(), send_body=send_body)
        elif path.startswith(f"/api/datasets/{REPO}"):
            siblings = [{"rfilename": name} for name in FILES]
            info = {"id": REPO, "sha": COMMIT, "private": False, "siblings": siblings, "tags": [], "downloads": 0}
            self.send(json.dumps(info).encode(), send_body=send_body)
        elif match := re.fullmatch(rf"/datasets/{REPO}/resolve/[^/]+/(.+)", path):
            self.send_file(match[1], send_body=send_body)
        else:
            headers = {"X-Error-Code": "RepoNotFound"}
            self.send(b'{"error": "not found"}', status=404, headers=headers, send_body=send_body)

    def send_file(self, name: str, *, send_body: bool) -> None:
        data, status, headers = FILES.get(name), 200, {}
        if data is None:
            self.send(b"", status=404, send_body=send_body)
            return
        if asked := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2] or len(data) - 1), len(data) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            data, status = data[first : last + 1], 206
        headers |= {"ETag": f'"{etag(name)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        self.send(data, status=status, headers=headers, send_body=send_body, kind="application/octet-stream")

    def send(
        self,
        body: bytes,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        send_body: bool = True,
        kind: str = "application/json",
    ) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if send_body:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def etag(name: str) -> str:
    return hashlib.sha1(FILES[name]).hexdigest()


def entry(name: str) -> dict[str, object]:
    found: dict[str, object] = {"type": "file", "path": name, "size": len(FILES[name]), "oid": etag(name)}
    if name.endswith(".parquet"):  # the Hub keeps large files apart, by their SHA-256
        large = {"oid": hashlib.sha256(FILES[name]).hexdigest(), "size": len(FILES[name]), "pointerSize": 134}
        found["lfs"] = large
    return found


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.requests = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def parse(hub: ThreadingHTTPServer, source: str, out: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(out.parent / "hf"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
    }
    environment.pop("HF_HUB_OFFLINE", None)
    return run_forked("parse", source, "-o", out, "--limit", "1", "--no-report", env=environment)


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "ocr_results.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.integration
def test_a_hub_dataset_is_read_shard_by_shard(hub, tmp_path):
    run = parse(hub, f"hf://datasets/{REPO}", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    (record,) = records(tmp_path / "out")
    assert record["status"] == "done"
    assert record["regions"]
    assert record["metadata"]["shard"] == "corpus-00000-of-00001.parquet"
    assert any("/resolve/" in request for request in hub.requests)


@pytest.mark.slow
@pytest.mark.integration
def test_a_page_of_a_hub_dataset_is_not_parsed_twice(hub, tmp_path):
    assert parse(hub, f"hf://datasets/{REPO}", tmp_path / "out").returncode == 0
    first = records(tmp_path / "out")
    run = parse(hub, f"hf://datasets/{REPO}", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    assert records(tmp_path / "out") == first
    content = next(data for name, data in FILES.items() if name.endswith(".parquet"))
    assert first[0]["page_key"] == hashlib.sha256(content).hexdigest() + "/1"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("hf://datasets/mills/nothing", "no such dataset"),
        (f"hf://datasets/{REPO}/no-split", "no-split"),
        ("hf://datasets/mills", "is not an address on the Hub"),
    ],
)
def test_a_dataset_that_is_not_there_is_refused_before_anything_is_created(hub, tmp_path, address, message):
    run = parse(hub, address, tmp_path / "out")
    assert run.returncode == 2, run.stdout + run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    assert address in run.stderr
    assert message in run.stderr
    assert not (tmp_path / "out").exists()
