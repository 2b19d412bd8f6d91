"""The rooms of docs/architecture.md: imports point one way, and the light entry points stay light."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pagemill"
TOOLS = {path.name: path for path in ROOT.glob("packages/*/src/pagemill_*")}
"""The packages of the tools."""

ROOMS = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {
    "__init__",
    "__main__",
}

EVERYWHERE = {"errors", "installation", "model_cache", "plugins", "blocking", "late", "whole_files"}
"""What every package may import."""


def allowed_by_the_guide() -> dict[str, set[str]]:
    """What each package or module may import, by the table of the guide: these, all, or all but these."""
    guide = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = {}
    for line in guide.splitlines():
        if line.startswith("| `"):
            _, room, _, cell, _ = line.split("|")
            named = set(re.findall(r"`(\w+)`", cell))
            table[room.strip(" `")] = ROOMS - named if cell.strip().startswith("all") else named
    return table


MAY_IMPORT = allowed_by_the_guide()
HEAVY = {
    *("cv2", "numpy", "onnxruntime", "pyarrow", "rapidocr", "pypdfium2", "PIL", "lxml", "rich"),
    *(
        "torch",
        "mcp",
        "fastapi",
        "httpx",
        "torchvision",
        "transformers",
        "aiohttp",
        "lancedb",
        "numkong",
        "ir_measures",
        "sentence_transformers",
        "huggingface_hub",
        "ray",
        "fastapi",
        "uvicorn",
    ),
}


IMPORT = re.compile(r"^ *(?:from (pagemill[\w.]*) import (\([^)]*\)|.*)|import (pagemill[\w.]*))", re.M)


@functools.cache
def imported_by(path: Path) -> set[str]:
    """What a file imports of ours, by dotted name, modules and what is in them; imports for type checkers included.

    Parsing all files would take seconds, and several processes run the tests of this module.
    """
    found = set()
    for package, names, module in IMPORT.findall(path.read_text(encoding="utf-8")):
        names = re.sub(r"#.*| as \w+", "", names)
        found |= {package or module, *(f"{package}.{name}" for name in re.findall(r"\w+", names))}
    return found


def imports_of(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported_by(path) if "." in name} & ROOMS


def test_every_room_has_its_rule():
    assert set(MAY_IMPORT) == ROOMS


def test_imports_point_one_way():
    wrong = {
        str(path.relative_to(SOURCE)): bad
        for package, allowed in MAY_IMPORT.items()
        for path in (SOURCE / f"{package}.py", *(SOURCE / package).rglob("*.py"))
        if path.exists() and (bad := imports_of(path) - allowed - EVERYWHERE - {package})
    }
    assert not wrong


def test_the_core_reaches_nothing_of_the_tools():
    """Not in functions or for type checkers either, nor by a name in a string: commands come through entry points."""
    named = re.compile(r"\bpagemill_(?:eval|bench)\b")
    assert TOOLS.keys() == {"pagemill_eval", "pagemill_bench"}
    assert [path for path in SOURCE.rglob("*.py") if named.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("tool", TOOLS)
def test_the_tools_do_not_know_each_other_and_their_commands_come_last(tool: str):
    layers = ["cli", "app"]  # all other modules are below
    for path in TOOLS[tool].rglob("*.py"):
        names = imported_by(path)
        assert not {name.partition(".")[0] for name in names} & (TOOLS.keys() - {tool}), path
        room = path.relative_to(TOOLS[tool]).parts[0]
        above = layers[: layers.index(room)] if room in layers else layers
        assert not [name for name in names for each in above if name.startswith(f"{tool}.{each}.")], path


def test_no_modules_import_each_other_in_a_circle():
    names = {
        ".".join((source.name, *path.relative_to(source).with_suffix("").parts)): path
        for source in (SOURCE, *TOOLS.values())
        for path in source.rglob("*.py")
    }
    graph = {name: imported_by(path) & set(names) - {name} for name, path in names.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_engines_are_leaves():
    for engine in [*SOURCE.glob("*/*_engine.py")]:
        text = engine.read_text(encoding="utf-8")
        others = {other.stem for other in SOURCE.glob("*/*_engine.py")} - {engine.stem}
        assert not [other for other in others if other in text], engine.name


@pytest.mark.parametrize("command", [["-c", "import pagemill"], ["-m", "pagemill", "--help"]])
def test_light_entry_points_import_nothing_heavy(command):
    probe = [sys.executable, "-X", "importtime", *command]
    run = subprocess.run(probe, capture_output=True, text=True, check=True, timeout=60)
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in run.stderr.splitlines() if "|" in line}
    assert not imported & HEAVY


def test_commands_that_parse_nothing_do_not_import_the_pipeline():
    """Importing it takes longer than what they do."""
    commands = ("status", "verify", "export", "index", "run", "serve_model")
    probe = f"import sys\nfor name in {commands}: __import__('pagemill.cli.' + name); print(name, *sys.modules)"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60)
    for line in run.stdout.splitlines():
        command, *modules = line.split()
        assert not {"pagemill.app.parse", "pagemill.parsing.page", "pagemill.layout.base"} & {*modules}, command


def test_a_page_of_text_is_parsed_without_what_reads_pictures():
    """Importing it takes a third of the time of such a run."""
    probe = (
        "import sys, pagemill.app.parse, pagemill.runtime.pipeline, pagemill.cli.parse_progress; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60)
    assert not {"cv2", "PIL", "lxml", "pypdfium2", "onnxruntime", "importlib.metadata"} & {*run.stdout.split()}


def test_no_class_assigns_a_name_twice():
    """The second threshold of a name would be that of both rules."""
    twice = []
    for path in SOURCE.rglob("*.py"):
        for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(found, ast.ClassDef):
                targets = [target for one in found.body if isinstance(one, ast.Assign) for target in one.targets]
                targets += [one.target for one in found.body if isinstance(one, ast.AnnAssign)]
                names = Counter(
                    name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
                )
                twice += [f"{path.name}: {found.name}.{name}" for name, count in names.items() if count > 1]
    assert not twice


def test_tests_mirror_the_source_tree():
    """Those of ``benchmarks`` are in a folder of that name."""
    odd = []
    for source in (SOURCE, *TOOLS.values()):
        tests = source.parents[1] / "tests" / "unit"
        folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
        odd += [str(folder) for folder in folders if not (source / folder).is_dir()]
    assert odd == ["benchmarks"]
