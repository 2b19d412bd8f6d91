"""The benchmarks, by the names that the command line takes."""

from __future__ import annotations

from importlib import import_module

from pagemill.errors import UsageError
from pagemill_eval.benchmark import Benchmark

_CLASSES = {
    "omnidocbench-v1.5": "omnidocbench.benchmark.OmniDocBenchV15",
    "omnidocbench-v1.7": "omnidocbench.v17.OmniDocBenchV17",
    "mdpbench": "omnidocbench.mdp_bench.MdpBench",
    "dp-bench": "dp_bench.DpBench",
    "olmocr-bench": "olmocr_bench.OlmOcrBench",
    "ocrbench": "ocrbench.OcrBench",
    "unimernet": "unimernet.UniMerNet",
    "pubtabnet": "tables.PubTabNet",
    "teds-test": "tables.TedsTest",
    "nanonets-kie": "kie.NanonetsKie",
    "handwritten-kie": "kie.HandwrittenKie",
}
"""Module and class by name: importing this package imports none of them."""


def names() -> tuple[str, ...]:
    """Names of all benchmarks."""
    return tuple(_CLASSES)


def create(name: str) -> Benchmark:
    """The benchmark of a name.

    Raises:
        UsageError: There is none.
    """
    if name not in _CLASSES:
        raise UsageError(f"there is no benchmark {name!r}", remedy=f"Choose one of: {', '.join(_CLASSES)}.")
    module, class_name = _CLASSES[name].rsplit(".", 1)
    benchmark: Benchmark = getattr(import_module(f"{__name__}.{module}"), class_name)()
    return benchmark
