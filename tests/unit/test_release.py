"""What a release needs besides the code: metadata, policies, workflows, licences."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("packaging")

import check_release
import licences

ROOT = Path(__file__).parents[2]
PERMISSIVE = re.compile(
    r"(Apache-2\.0|MIT(-0|-CMU)?|0?BSD(-\d-Clause)?|ISC|PSF-2\.0|Zlib|CC0-1\.0|HPND|Unlicense)"
    r"( (AND|OR) (Apache-2\.0|MIT(-0|-CMU)?|0?BSD(-\d-Clause)?|ISC|PSF-2\.0|Zlib|CC0-1\.0|HPND|Unlicense))*"
)
WEAK_COPYLEFT = {"certifi", "kiwipiepy", "pikepdf", "pyvips-binary", "tqdm"}
"""MPL-2.0 and LGPL, as the page says."""


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_long_description_links_to_the_source_tree(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("hatchling")
    monkeypatch.syspath_prepend(str(ROOT))
    from hatch_build import absolute_links

    text = absolute_links((ROOT / "README.md").read_text(encoding="utf-8"), "https://h/p", "v1")
    assert "![Pages flow" in text
    assert "](https://h/p/raw/v1/docs/assets/overview.svg)" in text
    assert "](https://h/p/blob/v1/docs/export.md#chunks)" in text
    assert re.findall(r"\]\((?!https?://|#)", text) == []
    assert absolute_links("[a](https://x) [b](#c)", "https://h/p", "v1") == "[a](https://x) [b](#c)"


def test_a_release_is_refused_while_something_is_a_placeholder():
    found = check_release.problems("v0.0")
    assert any("is not v" in each for each in found)
    assert (any("placeholder" in each for each in found)) == (".example" in str(project()["urls"]))
    assert not any("CITATION" in each for each in found)


def test_policies_are_there():
    for name in ("LICENSE", "NOTICE", "SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", "CONTRIBUTING.md"):
        assert (ROOT / name).stat().st_size > 300, name


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [("vendor.github-workflows", "workflows/*.yml"), ("vendor.dependabot", "dependabot.yml")],
)
def test_workflows_follow_their_schema(schema: str, pattern: str):
    pytest.importorskip("check_jsonschema")
    files = [str(path) for path in (ROOT / ".github").glob(pattern)]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert files


def test_workflows_run_what_exists_and_hold_no_token():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE), path
        for targets in re.findall(r"run: make (.*)", text):
            for target in targets.replace(".venv/", "$(VENV)/").split():
                assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target
        for named in re.findall(r"(?:scripts|tests)/[\w./-]+", text):
            assert (ROOT / named).exists(), named
        assert set(re.findall(r"secrets\.(\w+)", text)) <= {"GITHUB_TOKEN"}


def test_every_dependency_has_a_known_licence():
    page = licences.FILE.read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| ([\w.-]+) \| ([^|]*?) \|", page, re.MULTILINE))
    assert sorted(set(licences.packages()) - set(listed)) == [], "run `python scripts/licences.py`"
    other = {name for name, licence in listed.items() if name != "package" and not PERMISSIVE.fullmatch(licence)}
    assert other <= WEAK_COPYLEFT
