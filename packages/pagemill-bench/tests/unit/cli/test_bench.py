import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pagemill.errors import MissingDependencyError, UsageError
from pagemill_bench import arrow_extract, layout
from pagemill_bench.cli.bench import command
from pagemill_bench.table import FigureTable, show
from pagemill_bench.testing import random_layout_model


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def replace(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, answer: Any) -> dict[str, Any]:
    """Put a function in place that notes what it is called with."""
    asked: dict[str, Any] = {}

    def stand_in(*arguments: Any, **options: Any) -> Any:
        asked.update(options, arguments=arguments)
        return answer

    monkeypatch.setattr(module, name, stand_in)
    return asked


def test_help_imports_nothing_heavy():
    probe = [sys.executable, "-X", "importtime", "-m", "pagemill", "bench", "--help"]
    result = subprocess.run(probe, capture_output=True, text=True, check=True, timeout=60)
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in result.stderr.splitlines() if "|" in line}
    assert not imported & {"cv2", "numpy", "torch", "PIL", "kornia_rs", "simplejpeg"}
    for name in ("arrow-extract", "layout-inference", "layout-preprocess", "server", "sweep"):
        assert name in result.stdout


def test_tables_line_up(capsys: pytest.CaptureFixture[str]):
    table = FigureTable("2 pages", ("way", "ms", "MB"), (("ours", 31.26, None), ("theirs, slower", 1234.5, 0.667)))
    show("crops", [table], as_json=False, notes=["glmocr is left out."])
    assert capsys.readouterr().out.splitlines() == [
        "2 pages",
        "way                       ms            MB",
        "ours                   31.26             -",
        "theirs, slower      1,234.50          0.67",
        "",
        "glmocr is left out.",
    ]


def test_json_has_every_figure_and_the_machine(capsys: pytest.CaptureFixture[str]):
    show("crops", [FigureTable("t", ("way", "ms"), (("ours", 1.25),))], as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer["benchmark"] == "crops"
    assert answer["tables"] == [{"title": "t", "rows": [{"way": "ours", "ms": 1.25}]}]
    assert answer["notes"] == []
    assert "numpy" in answer["machine"]["packages"]


@pytest.mark.parametrize("missing", [set(), {"torchvision"}, {"torch", "torchvision", "transformers"}])
def test_preprocessing_leaves_out_what_is_not_installed(monkeypatch: pytest.MonkeyPatch, missing: set[str]):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else object())
    asked = replace(monkeypatch, layout, "preprocess_rows", [("ours", 80.0, 12.5)])
    output = run("layout-preprocess", "--pages", "1")
    assert asked["stock"] == (not missing)
    assert ("left out: it needs" in output) == bool(missing)
    assert all(name in output for name in missing)


def test_without_torch_the_embedded_engine_is_measured(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    asked = replace(monkeypatch, layout, "embedded_rows", [("pixels to regions", 80.0, 12.5)])
    output = run("layout-inference", "--threads", "2", "--repeats", "1")
    assert asked == {"arguments": (), "pages": 8, "threads": 2, "repeats": 1}
    assert "pixels to regions" in output
    assert "PP-DocLayoutV3 is left out: it needs torch and transformers" in output
    assert "pip install" in output


@pytest.mark.parametrize("options", [["--engine", "pp-doclayout-v3"], ["--device", "cuda"], ["--weights", "."]])
def test_what_is_asked_of_the_large_model_needs_torch(monkeypatch: pytest.MonkeyPatch, options: list[str]):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="torch and transformers"):
        CliRunner().invoke(command, ["layout-inference", *options], catch_exceptions=False)


def test_options_of_the_large_model_are_refused_for_the_embedded_one():
    result = CliRunner().invoke(command, ["layout-inference", "--engine", "onnx", "--batch", "4", "--compile"])
    assert result.exit_code == 2
    assert "--batch and --compile: not for the engine onnx" in result.output


def test_the_embedded_engine_is_chosen_where_torch_is_installed_as_well(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    replace(monkeypatch, layout, "embedded_rows", [("pixels to regions", 80.0, 12.5)])
    assert "left out" not in run("layout-inference", "--engine", "onnx")


def test_extraction_prints_its_rows(monkeypatch: pytest.MonkeyPatch):
    asked = replace(
        monkeypatch, arrow_extract, "extraction_rows", [("PNG: raw bytes", 3, 0.7, 1400.0, 184.0, "the same")]
    )
    output = run("arrow-extract", "--pages", "3", "--threads", "2")
    assert "184.00" in output
    assert {name: asked[name] for name in ("pages", "threads")} == {"pages": 3, "threads": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["server"], "Missing option '--server'"),
        (["server", "--server", "a", "--plot", "a.png"], ".svg or .html"),
        (["sweep"], "nothing to measure"),
        (["sweep", "--max-num-seqs", "4", "--write-profile", "mine.json"], "must end in .toml"),
        (["sweep", "--max-num-seqs", "4", "word"], "unexpected 'word'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], message: str):
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["server", "--server", "a", "--in-flight", "1,many"],
        ["server", "--server", "a", "--in-flight", "0"],
        ["server", "--server", "a", "--in-flight", "5000"],
        ["server", "--server", "a", "--model", "qwen3-vl-embedding-2b"],
        ["sweep", "--gpu-mem-util", "0.5,1.5"],
        ["sweep", "--gpu-mem-util", "nan"],
    ],
)
def test_values_that_make_no_sense_are_refused(arguments: list[str]):
    with pytest.raises(UsageError):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_inference_makes_a_random_model_and_takes_a_given_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    made = replace(monkeypatch, random_layout_model, "save_random_model", tmp_path / "made")
    monkeypatch.setattr(layout, "has_gpu", lambda device: False)
    model = replace(monkeypatch, layout, "inference_rows", [("float32", 100.0, 12.5)])
    stage = replace(monkeypatch, layout, "stage_rows", [("JPEG to regions", 200.0, 12.5, None)])
    options = ["--pages", "3", "--batch", "2", "--device", "cpu", "--threads", "2", "--repeats", "1"]
    output = run("layout-inference", *options)
    assert "JPEG to regions        200.00         12.50             -" in output
    assert "nvidia-ml-py" in output
    assert made
    assert model.pop("arguments") == (tmp_path / "made", "cpu")
    assert model == {"pages": 3, "batch": 2, "repeats": 1, "compile": False}
    assert stage["threads"] == 2
    made.clear()
    run("layout-inference", "--weights", str(tmp_path))
    assert model["arguments"][0] == tmp_path
    assert not made
    replace(monkeypatch, layout, "stage_rows", [("JPEG to regions", 200.0, 12.5, 0.5)])
    output = run("layout-inference", *options)
    assert "0.50" in output
    assert "nvidia-ml-py" not in output
