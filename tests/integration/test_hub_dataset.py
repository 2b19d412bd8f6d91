"""A dataset on the Hub, read by the real client from a small local stand-in for the Hub's HTTP API."""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_command import run_forked
from local_hub import LocalHub, Repository

pytest.importorskip("huggingface_hub")

pytestmark = pytest.mark.integration

CORPUS = (Path(__file__).parents[2] / "samples" / "corpus.parquet").read_bytes()
REPO = "mills/ledgers"


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub() as hub:
        files = {"data/corpus-00000-of-00001.parquet": CORPUS, "README.md": b"# Ledgers\n"}
        hub.repositories[REPO] = Repository(branches={"main": files})
        yield hub


def parse(hub: LocalHub, source: str, out: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(out.parent / "hf"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
    }
    environment.pop("HF_HUB_OFFLINE", None)
    return run_forked("parse", source, "-o", out, "--limit", "1", "--no-report", env=environment)


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "ocr_results.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_hub_dataset_is_read_shard_by_shard_and_no_page_twice(hub: LocalHub, tmp_path: Path) -> None:
    run = parse(hub, f"hf://datasets/{REPO}", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    first = records(tmp_path / "out")
    (record,) = first
    assert record["status"] == "done"
    assert record["regions"]
    assert record["metadata"]["shard"] == "corpus-00000-of-00001.parquet"
    assert record["page_key"] == hashlib.sha256(CORPUS).hexdigest() + "/1"
    assert any("/resolve/" in request for request in hub.requests)
    run = parse(hub, f"hf://datasets/{REPO}", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    assert records(tmp_path / "out") == first


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("hf://datasets/mills/nothing", "no such dataset"),
        (f"hf://datasets/{REPO}/no-split", "no-split"),
        ("hf://datasets/mills", "is not an address on the Hub"),
    ],
)
def test_a_dataset_that_is_not_there_is_refused_before_anything_is_created(
    hub: LocalHub, tmp_path: Path, address: str, message: str
) -> None:
    run = parse(hub, address, tmp_path / "out")
    assert run.returncode == 2, run.stdout + run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    assert address in run.stderr
    assert message in run.stderr
    assert not (tmp_path / "out").exists()
