"""The engine that CONTRIBUTING.md shows works as it is printed there."""

import json
import os
import tomllib

import pytest
from forked_command import run_forked
from installed_package import install_package
from markdown_pages import ROOT, blocks

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_the_engine_in_twenty_lines(tmp_path):
    shown = {block.language: block.code for block in blocks(ROOT / "CONTRIBUTING.md")}
    project = tomllib.loads(shown["toml"])["project"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in entries.items())
        for group, entries in project["entry-points"].items()
    )
    packages = install_package(tmp_path / "packages", project["name"], points, one_block=shown["python"])

    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
    source = ROOT / "samples" / "report.pdf"
    command = ["parse", str(source), "--pages", "1", "-o", str(tmp_path / "out"), "--layout-engine", "one-block"]
    done = run_forked(*command, env={**os.environ, "PYTHONPATH": path})

    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "ocr_results.jsonl").read_text(encoding="utf-8"))
    assert "one-block" in {region["source"] for region in record["regions"]}
