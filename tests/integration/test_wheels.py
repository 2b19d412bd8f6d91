"""The three wheels, built and installed in fresh environments: the core alone, and with its tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from pagemill.errors import ExitCode

pytest.importorskip("hatchling")
pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PROJECTS = (ROOT, *sorted((ROOT / "packages").iterdir()))


def pip(*arguments: object, python: Path | None = None) -> None:
    """Run pip, without a network."""
    whose = ["--python", str(python)] if python else []
    command = [sys.executable, "-m", "pip", *whose, *map(str, arguments), "--quiet", "--no-deps"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels by distribution. The models are those of this tree, so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheels")
    for project in PROJECTS:
        pip("wheel", "--no-build-isolation", "-w", folder, project)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


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
        pip("install", "--no-index", *wheels, python=self.python)

    def run(self, program: str | Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, which knows nothing of this tree."""
        left_out = {"PYTHONPATH", "PYTHONHOME"}
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        command = [str(self.python.parent / program), *map(str, arguments)]
        return subprocess.run(
            command, env=environment, cwd=self.python.parents[1], capture_output=True, text=True, timeout=300
        )


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
