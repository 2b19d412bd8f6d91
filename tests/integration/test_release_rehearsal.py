"""A rehearsal of the release: built, installed without the tree and without a compiler, and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
MAX_MB = 650
"""Of an installation without extras: 625 MB measured with Python 3.11 on Linux, 36 of them for Korean."""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    told = {**os.environ, **environment}
    told.pop("PYTHONPATH", None)
    ended = subprocess.run(list(map(str, command)), cwd=cwd, env=told, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel and the sdist of a copy of the tree; the wheel is made of the sdist, as indexes and packagers do it."""
    folder = tmp_path_factory.mktemp("release")
    tree = folder / "tree"
    left_out = shutil.ignore_patterns(".git", ".venv*", "*_cache", "__pycache__", "site", "out", "benchmarks", "tests")
    shutil.copytree(ROOT, tree, ignore=left_out)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder / "dist", cwd=tree)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=folder / sdist.name[:-7])
    return folder / "dist"


def test_the_packages_hold_what_they_should(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert sum(name.endswith(".onnx") for name in names) >= 3
    assert any(name.endswith("py.typed") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "samples/"))]
    assert "Project-URL: Source" in text
    assert "](docs/" not in text
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in names}


def test_it_is_installed_and_used_without_a_compiler(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", "fresh", cwd=tmp_path)
    binaries = tmp_path / "fresh" / "bin"
    alone = {"PATH": str(binaries), "CC": "/nonexistent", "PYTHONNOUSERSITE": "1"}
    run(binaries / "pip", "install", "--quiet", wheel, cwd=tmp_path, **alone)
    shutil.copy(ROOT / "samples" / "report.pdf", tmp_path)
    run(binaries / "pagemill", "parse", "report.pdf", "-o", "out", "-q", cwd=tmp_path, **alone)
    assert (tmp_path / "out/documents/report.md").read_text(encoding="utf-8").startswith("# From Rag to Ream")
    script = "import pagemill; print(len(pagemill.parse('report.pdf').tables))"
    assert run(binaries / "python", "-c", script, cwd=tmp_path, **alone) == "2\n"
    found = json.loads(run(binaries / "pagemill", "doctor", "machine", "parse", "--json", cwd=tmp_path, **alone))
    assert not [row for row in found if row["verdict"] == "missing"]
    (packages,) = (tmp_path / "fresh").glob("lib/python*/site-packages")
    sizes = {each.name: _bytes(each) / 1e6 for each in packages.iterdir()}
    largest = sorted(sizes.items(), key=lambda entry: -entry[1])[:12]
    total = sum(size for name, size in sizes.items() if not name.startswith(("pip", "setuptools")))
    print(f"{total:.0f} MB installed:", ", ".join(f"{name} {size:.0f}" for name, size in largest))
    assert total <= MAX_MB, largest


def _bytes(path: Path) -> int:
    return (
        sum(each.stat().st_size for each in path.rglob("*") if each.is_file()) if path.is_dir() else path.stat().st_size
    )
