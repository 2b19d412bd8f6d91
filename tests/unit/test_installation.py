"""The commands that add to an installation, by how pagemill came there."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from pagemill import installation
from pagemill.errors import ExitCode, lacks_extra
from pagemill.installation import install_extra, install_tool, pip_install, reinstall

SOURCE = Path(installation.__file__).parents[2]


class Installed:
    """A distribution with what its installer noted."""

    requires = ("click>=8", 'torch>=2.6; extra == "gpu"', "transformers>=5.3 ; extra == 'gpu'", "x; extra == 'hub'")

    def __init__(self, origin: object) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        return json.dumps(self._origin) if name == "direct_url.json" and self._origin else None


@pytest.fixture
def come_from(monkeypatch):
    """Makes pagemill come from somewhere; gives the last words of the command for the extra gpu."""

    def install(origin: object, extra: str = "gpu") -> list[str]:
        monkeypatch.setattr(installation.metadata, "distribution", lambda name: Installed(origin))
        words = shlex.split(install_extra(extra))
        return words[words.index("install") + 1 :]

    monkeypatch.setattr(installation.shutil, "which", lambda name: str(Path(sys.executable).parent / name))
    return install


def test_a_package_index(come_from):
    assert come_from(None) == ["pagemill[gpu]"]


def test_a_checkout(come_from, tmp_path: Path, monkeypatch):
    (tmp_path / "a b").mkdir()
    origin = {"url": (tmp_path / "a b").as_uri(), "dir_info": {"editable": True}}
    assert come_from(origin) == ["--editable", f"{tmp_path / 'a b'}[gpu]"]
    assert come_from({**origin, "dir_info": {}}) == [f"{tmp_path / 'a b'}[gpu]"]
    monkeypatch.chdir(tmp_path / "a b")
    assert come_from(origin) == ["--editable", ".[gpu]"]


def test_a_wheel(come_from, tmp_path: Path):
    wheel = tmp_path / "pagemill-1.0-py3-none-any.whl"
    wheel.touch()
    origin = {"url": wheel.as_uri(), "archive_info": {"hashes": {}}}
    assert come_from(origin) == [f"pagemill[gpu] @ {wheel.as_uri()}"]
    wheel.unlink()
    assert come_from(origin) == ["torch>=2.6", "transformers>=5.3"]


def test_a_repository(come_from):
    origin = {"url": "https://h/p.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}, "subdirectory": "python"}
    assert come_from(origin) == ["pagemill[gpu] @ git+https://h/p.git@0a1b#subdirectory=python"]


def test_a_source_tree_that_was_not_installed(monkeypatch):
    def lacking(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation.metadata, "distribution", lacking)
    monkeypatch.chdir("/")
    assert install_extra("gpu").endswith(f"--editable '{SOURCE}[gpu]'")


def test_it_is_the_environment_in_which_pagemill_runs(monkeypatch):
    """Where another pip comes first on the path, or there is none at all."""
    monkeypatch.setattr(installation.shutil, "which", lambda name: "/usr/bin/pip")
    assert shlex.split(pip_install("x")) == [sys.executable, "-m", "pip", "install", "x"]
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    assert shlex.split(pip_install("x")) == ["uv", "pip", "install", "--python", sys.executable, "x"]


def test_tools_come_from_where_pagemill_came_from(come_from, tmp_path: Path, monkeypatch):
    def words() -> list[str]:
        given = shlex.split(install_tool("pagemill-eval"))
        return given[given.index("install") + 1 :]

    come_from(None)
    assert words() == ["pagemill-eval"]
    folder = tmp_path / "packages" / "pagemill-eval"
    come_from({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    assert words() == ["pagemill-eval"]  # the checkout is gone
    folder.mkdir(parents=True)
    assert words() == ["--editable", str(folder)]
    come_from({"url": tmp_path.as_uri(), "dir_info": {}})
    assert words() == [str(folder)]
    origin = {"url": "https://h/p.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}}
    come_from(origin)
    assert words() == ["pagemill-eval @ git+https://h/p.git@0a1b#subdirectory=packages/pagemill-eval"]
    come_from({**origin, "subdirectory": "python"})
    assert words()[0].endswith("#subdirectory=python/packages/pagemill-eval")
    come_from({"url": (tmp_path / "pagemill.whl").as_uri(), "archive_info": {}})
    assert words() == ["pagemill-eval"]

    def lacking(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation.metadata, "distribution", lacking)
    assert words() == ["--editable", str(SOURCE / "packages" / "pagemill-eval")]


def test_reinstalling(come_from):
    come_from(None)
    assert reinstall() == "pip install --force-reinstall --no-deps pagemill"


def test_errors_name_the_command():
    error = lacks_extra("layout needs torch", "gpu")
    assert error.exit_code is ExitCode.MISSING_DEPENDENCY
    assert error.remedy == f"Install it: {install_extra('gpu')}"


def test_no_message_names_a_command_of_its_own():
    """``pip install 'pagemill[...]'`` works for what came from a package index, and for nothing else."""
    told = [
        path
        for path in (*(SOURCE / "src").rglob("*.py"), *SOURCE.glob("packages/*/src/**/*.py"))
        if "pip install 'pagemill" in path.read_text("utf-8")
    ]
    assert told == []
