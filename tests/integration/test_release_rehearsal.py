"""A rehearsal of the release: the three wheels, built, installed without the tree and without a compiler, and used."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from shared_runs import made_once

from pagemill.errors import ExitCode

pytest.importorskip("hatchling")

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
MAX_MB = 570
"""Of an installation without extras: 550 MB measured with Python 3.11 on Linux, 36 of them for Korean."""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    told = {**os.environ, **environment}
    told.pop("PYTHONPATH", None)
    ended = subprocess.run(list(map(str, command)), cwd=cwd, env=told, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels by distribution. That of the core is made of its sdist, as indexes and packagers do it.

    The models are those of this tree, so that nothing is downloaded.
    """

    def make(folder: Path) -> None:
        tree, dist = folder / "tree", folder / "dist"
        names = (".git", ".venv*", "*_cache", "__pycache__", "site", "out", "benchmarks", "tests")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*names))
        run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", dist, cwd=tree)
        (sdist,) = dist.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        for project in (folder / sdist.name[:-7], *sorted((ROOT / "packages").iterdir())):
            run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", dist, cwd=project)

    dist = made_once(tmp_path_factory, "wheels", make) / "dist"
    return {path.name.partition("-")[0]: path for path in dist.glob("*.whl")}


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What else is installed here: links to all packages but ours."""
    folder = tmp_path_factory.mktemp("dependencies")
    for site in (Path(each) for each in sys.path if Path(each).name == "site-packages"):
        for entry in site.iterdir():
            if "pagemill" not in entry.name and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    return folder


class Installed:
    """A fresh environment with some of the wheels."""

    def __init__(self, folder: Path, dependencies: Path, wheels: list[Path]) -> None:
        venv.create(folder)
        self.python = folder / "bin" / "python"
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "dependencies.pth").write_text(f"{dependencies}\n")
        pip = (sys.executable, "-m", "pip", "--python", self.python)
        run(*pip, "install", "--quiet", "--no-deps", "--no-index", *wheels, cwd=folder)

    def run(self, program: str | Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, which knows nothing of this tree."""
        left_out = {"PYTHONPATH", "PYTHONHOME"}
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        command = [str(self.python.parent / program), *map(str, arguments)]
        return subprocess.run(
            command, env=environment, cwd=self.python.parents[1], capture_output=True, text=True, timeout=300
        )


def test_the_packages_hold_what_they_should(wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels["pagemill"]) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert sum(name.endswith(".onnx") for name in names) >= 3
    assert any(name.endswith("py.typed") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "samples/"))]
    assert "Project-URL: Source" in text
    assert "](docs/" not in text
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in names}


IMPORT_ALL = """
import importlib, pkgutil, sys
import pagemill
for module in pkgutil.walk_packages(pagemill.__path__, "pagemill.", onerror=lambda name: None):
    try:
        importlib.import_module(module.name)
    except Exception as error:  # an extra that is not installed, in its own words
        assert "pagemill_" not in str(error), (module.name, error)
assert not [name for name in sys.modules if name.startswith("pagemill_")]
print(pagemill.__file__)
"""


def test_the_core_alone(wheels: dict[str, Path], dependencies: Path, tmp_path: Path) -> None:
    assert wheels.keys() == {"pagemill", "pagemill_eval", "pagemill_bench"}
    core = Installed(tmp_path / "core", dependencies, [wheels["pagemill"]])
    shown = core.run("pagemill", "--help")
    assert shown.returncode == 0, shown.stderr
    assert "doctor" in shown.stdout
    assert not {"eval", "bench", "profile"} & {line.split()[0] for line in shown.stdout.splitlines() if line.strip()}
    for name, package in (("eval", "pagemill-eval"), ("bench", "pagemill-bench"), ("profile", "pagemill-bench")):
        refused = core.run("pagemill", name, "--json")
        assert refused.returncode == ExitCode.MISSING_DEPENDENCY
        assert refused.stderr.strip().endswith(f"pip install {package}"), refused.stderr
    imported = core.run("python", "-c", IMPORT_ALL)
    assert imported.returncode == 0, imported.stderr
    assert Path(imported.stdout.splitlines()[-1]).is_relative_to(tmp_path)
    profile = tmp_path / "profile"
    source = ROOT / "samples" / "report.pdf"
    parsed = core.run("pagemill", "parse", source, "--pages", 1, "-o", tmp_path / "out", "--profile-to", profile)
    assert parsed.returncode == 0, parsed.stderr
    assert sorted(path.name for path in profile.iterdir()) == ["profile.json", "trace.json"]


def test_with_the_tools(wheels: dict[str, Path], dependencies: Path, tmp_path: Path) -> None:
    everything = Installed(tmp_path / "all", dependencies, list(wheels.values()))
    shown = everything.run("pagemill", "--help").stdout
    assert {"eval", "bench", "profile"} <= {line.split()[0] for line in shown.splitlines() if line.strip()}
    listed = everything.run("pagemill", "eval", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    assert "pubtabnet" in {each["name"] for each in json.loads(listed.stdout)}
    truth = tmp_path / "truth.json"
    table = "<table><tr><td>mill</td></tr></table>"
    truth.write_text(json.dumps({"one.png": table}))
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "one.html").write_text(table)
    given = (truth, "--predictions", tmp_path / "given", "-o", tmp_path / "scores", "--json")
    scored = everything.run("pagemill", "eval", "run", "pubtabnet", *given)
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["figures"]["teds"]["value"] == 1
    assert (tmp_path / "scores" / "report.html").is_file()  # its style is in the wheel
    measured = everything.run("pagemill", "bench", "arrow-extract", "--pages", 1, "--json")
    assert measured.returncode == 0, measured.stderr
    pages = (ROOT / "samples" / "report.pdf", "--pages", 1)
    profiled = everything.run("pagemill", "profile", *pages, "--no-free", "-q", "-o", tmp_path / "profile")
    assert profiled.returncode == 0, profiled.stderr
    assert (tmp_path / "profile" / "profile.html").is_file()


def test_it_is_installed_and_used_without_a_compiler(wheels: dict[str, Path], tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "fresh", cwd=tmp_path)
    binaries = tmp_path / "fresh" / "bin"
    alone = {"PATH": str(binaries), "CC": "/nonexistent", "PYTHONNOUSERSITE": "1"}
    run(binaries / "pip", "install", "--quiet", wheels["pagemill"], cwd=tmp_path, **alone)
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
