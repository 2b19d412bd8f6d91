"""All benchmarks at once: what is written, and what is compared."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from pagemill.errors import InputError, PagemillError
from pagemill_bench import every


def benchmark(name: str, **rates: float) -> dict:
    rows = [{"way": way, "ms": 1000 / rate, "pages/s": rate} for way, rate in rates.items()]
    return {"benchmark": name, "tables": [{"title": "t", "rows": rows}], "notes": []}


def test_rates_are_compared_way_by_way():
    old = {"machine": {"cores": 2}, "benchmarks": [benchmark("layout", stock=2.0, ours=8.0, gone=1.0)]}
    new = {"machine": {"cores": 4}, "benchmarks": [benchmark("layout", stock=2.0, ours=16.0, added=1.0)]}
    table = every.compare(old, new)
    assert table.rows == (
        ("layout, t: stock", 2.0, 2.0, "pages/s", 1.0),
        ("layout, t: ours", 8.0, 16.0, "pages/s", 2.0),
    )
    assert every.differences(old, new) == ["cores: 2 before, 4 now"]


def test_times_are_compared_the_other_way_round():
    def timed(ms: float) -> dict:
        tables = [{"title": "t", "rows": [{"stage": "layout", "ms": ms}]}]
        return {"machine": {}, "benchmarks": [{"benchmark": "p", "tables": tables, "notes": []}]}

    assert every.compare(timed(30.0), timed(10.0)).rows[0][-1] == pytest.approx(3.0)


OTHERS = ("", "[]", "{}", '{"machine": {}, "benchmarks": [1]}', '{"machine": 1, "benchmarks": []}')


@pytest.mark.parametrize("text", OTHERS)
def test_another_file_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(InputError, match="does not contain figures"):
        every.read_report(path)


def test_a_report_is_read_as_it_was_written(tmp_path: Path):
    path = tmp_path / "old.json"
    report = every.report([benchmark("layout", ours=1.0)])
    path.write_text(json.dumps(report))
    assert every.read_report(path) == report


def test_one_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch):
    def run(command, **_):
        if "layout-inference" in command:
            return SimpleNamespace(stdout="", stderr="Error: no engine\n", returncode=6)
        if "profile" in command:
            return SimpleNamespace(stdout=json.dumps(PROFILE), stderr="", returncode=0)
        return SimpleNamespace(stdout=json.dumps(benchmark(command[-2], ours=1.0) | {"machine": {}}), returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    found = list(every.run_all())
    assert [each["benchmark"] for each in found] == list(every.COMMANDS)
    failed = found[2]
    assert (failed["tables"], failed["notes"]) == ([], ["layout-inference failed: Error: no engine"])
    assert found[3]["tables"][0]["rows"][0]["pages/s"] == 2.0
    every.require_some(found)
    with pytest.raises(PagemillError, match="no benchmark could be run"):
        every.require_some([failed])


PROFILE = {
    "pages": 8,
    "pages_per_s": 2.0,
    "wall_s": 4.0,
    "first_page_s": 1.0,
    "peak_memory_mib": 500.0,
    "stages": [{"name": "layout", "mean_ms": 100.0, "concurrency": 0.5}],
}
