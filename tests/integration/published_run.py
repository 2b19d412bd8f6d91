"""A small run to be published, and ``pagemill publish`` as a process."""

import io
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
import synthetic_run
from forked_command import run_forked
from local_hub import TOKEN, LocalHub
from PIL import Image
from synthetic_run import sample_pages, write_run

from pagemill.embedding.base import EngineIdentity
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import Part, VectorPaths, VectorsInfo
from pagemill.embedding.writing import VectorWriter

REPO = "mills/pages"
PATIENCE_S = 120


def run_to_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two documents with a failed page, pictures and vectors; sources and messages tell of a machine."""
    buffer = io.BytesIO()
    Image.new("RGB", (60, 40), "navy").save(buffer, "JPEG")
    monkeypatch.setattr(synthetic_run, "JPEG", buffer.getvalue())
    out = tmp_path / "out"
    pages = sample_pages()
    for each in pages[:3]:
        each.source = "/home/miller/secret folder/report.pdf"
        each.errors = [
            msgspec.structs.replace(error, message=f"{each.source} and /home/miller/secret folder/x are damaged")
            for error in each.errors
        ]
    write_run(out, pages)
    identity = EngineIdentity(engine="mill", model="/home/miller/secret folder/model", dimension=2)
    info = VectorsInfo(part=Part.TEXT, identity=identity, dtype="float32")
    rows = [content.row for each in pages for content in contents(each, Part.TEXT, images=False)]
    with VectorWriter(VectorPaths(out / "embeddings", Part.TEXT), info) as writer:
        writer.append(rows, np.array([[0.6, 0.8]] * len(rows), dtype=np.float32))
        writer.publish(rows)
    return out


def publish(out: Path, *arguments: str, hub: LocalHub | None = None, token: str | None = TOKEN, more=None):
    return run_forked("publish", out, *arguments, env=environment(hub, token) | (more or {}))


def environment(hub: LocalHub | None, token: str | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("HF_TOKEN", "HF_HUB_OFFLINE")}
    environment |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_ENDPOINT": hub.url} if hub else {}
    environment |= {"HF_TOKEN": token} if token else {}
    return environment


def to_hub(out: Path, hub: LocalHub, *arguments: str, **options):
    return publish(out, "--repo", REPO, "--licence", "cc-by-4.0", *arguments, hub=hub, **options)
