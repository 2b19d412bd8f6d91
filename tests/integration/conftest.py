"""What tests share that run ``pagemill`` as a process with the engines of :mod:`fault_engines`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pagemill_process import OPTIONS, environment, install_engines, run

from pagemill.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from coded_pages import Corpus


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment(install_engines(tmp_path_factory.mktemp("packages")))


@pytest.fixture(scope="module")
def undisturbed(corpus: Corpus, surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over the module's ``corpus`` that nothing happened to."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert run(["parse", *corpus.paths, "-o", out, *OPTIONS], surroundings, out.with_name("log")) == ExitCode.OK
    return out
