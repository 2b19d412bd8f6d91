"""What tests share that run ``pagemill`` as a process with the engines of :mod:`fault_engines`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pagemill_process import OPTIONS, environment, install_engines
from pagemill_process import run as run_pagemill

from pagemill.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from coded_pages import Corpus
    from local_hub import LocalHub
    from run_pipeline import Mill

    from chromium_pipe import Chromium


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engines as packages, for ``PYTHONPATH``."""
    return install_engines(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def surroundings(packages: Path) -> dict[str, str]:
    """The environment of a run with these engines."""
    return environment(packages)


@pytest.fixture
def mill(tmp_path: Path, packages: Path) -> Iterator[Mill]:
    """A whole pipeline, ``pagemill run``, with model servers that are none."""
    from run_pipeline import Mill

    mill = Mill(tmp_path, packages)
    yield mill
    mill.clear()


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    from local_hub import LocalHub

    with LocalHub() as hub:
        yield hub


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small run to be published."""
    from published_run import run_to_publish

    return run_to_publish(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    from chromium_pipe import Chromium

    with Chromium(tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def options() -> tuple[str, ...]:
    """Options of the module's runs."""
    return OPTIONS


@pytest.fixture(scope="module")
def undisturbed(
    corpus: Corpus, options: tuple[str, ...], surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run over the module's ``corpus`` that is never interrupted."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    log = out.with_name("log")
    assert run_pagemill(["parse", *corpus.paths, "-o", out, *options], surroundings, log) == ExitCode.OK, (
        log.read_text()
    )
    return out
