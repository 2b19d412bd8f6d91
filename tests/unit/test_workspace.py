"""The three distributions: one version, one lock, and what the core does not ask for."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pagemill._version import __version__

ROOT = Path(__file__).parents[2]
TOOLS = ("pagemill-eval", "pagemill-bench")
LOCK = ROOT / "uv.lock"


def pyproject(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def locked() -> dict[str, Any]:
    return {each["name"]: each for each in tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_is_of_the_version_of_the_core_whose_insides_it_uses(tool: str):
    project = pyproject(ROOT / "packages" / tool)["project"]
    assert (project["name"], project["version"]) == (tool, __version__)
    assert re.fullmatch(rf"pagemill(\[\w+\])?=={re.escape(__version__)}", project["dependencies"][0])


def test_the_core_asks_for_nothing_that_only_a_tool_needs():
    core = pyproject(ROOT)["project"]
    wanted = {name_of(each) for each in core["dependencies"]}
    wanted |= {name_of(each) for extra in core["optional-dependencies"].values() for each in extra}
    tools = {name_of(each) for tool in TOOLS for each in pyproject(ROOT / "packages" / tool)["project"]["dependencies"]}
    assert wanted & (tools - {"pagemill"}) == set()


def name_of(requirement: str) -> str:
    """The distribution that a requirement names."""
    named = re.match(r"[\w.-]+", requirement)
    assert named is not None
    return named[0]


def test_the_lock_knows_all_three_and_what_they_ask_for(locked: dict[str, Any]):
    for folder in (ROOT, *(ROOT / "packages" / tool for tool in TOOLS)):
        content = pyproject(folder)
        project, groups = content["project"], content.get("dependency-groups", {})
        lists = [project["dependencies"], *project.get("optional-dependencies", {}).values(), *groups.values()]
        asked = {name_of(each).lower() for each_list in lists for each in each_list if isinstance(each, str)}
        known = locked[project["name"]]["metadata"]
        groups_known = [each for group in known.get("requires-dev", {}).values() for each in group]
        assert asked == {each["name"] for each in [*known["requires-dist"], *groups_known]}, project["name"]


def test_the_lock_names_the_public_index_alone():
    """A mirror that was near whoever made the lock is of no use to others."""
    assert set(re.findall(r'"\w+://([^/"]+)', LOCK.read_text(encoding="utf-8"))) == {
        "pypi.org",
        "files.pythonhosted.org",
    }
