"""The engine that CONTRIBUTING.md shows works as it is printed there."""

import json
import os
import tomllib

import pytest
from forked_command import run_forked
from markdown_pages import ROOT, blocks

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_the_engine_in_twenty_lines(tmp_path):
    shown = {block.language: block.code for block in blocks(ROOT / "CONTRIBUTING.md")}
    project = tomllib.loads(shown["toml"])["project"]
    installed = tmp_path / "packages" / f"{project['name']}-{project['version']}.dist-info"  # as pip leaves it
    installed.mkdir(parents=True)
    (installed.parent / "one_block.py").write_text(shown["python"], encoding="utf-8")
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (installed / "entry_points.txt").write_text(points)

    path = os.pathsep.join(filter(None, [str(installed.parent), os.environ.get("PYTHONPATH")]))
    source = ROOT / "samples" / "report.pdf"
    command = ["parse", str(source), "--pages", "1", "-o", str(tmp_path / "out"), "--layout-engine", "one-block"]
    done = run_forked(*command, env={**os.environ, "PYTHONPATH": path})

    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "ocr_results.jsonl").read_text(encoding="utf-8"))
    assert "one-block" in {region["source"] for region in record["regions"]}
