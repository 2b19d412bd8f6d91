"""The ``glmocr`` package in its own environment, as a process that answers questions, so that both run in turn."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.errors import MissingDependencyError
from pagemill_bench.table import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pagemill_bench.table import FigureTable

REMEDY = "make an environment of its own: python -m venv glm && glm/bin/pip install glmocr==0.1.5"

LEFT_OUT = "glmocr is left out: --glmocr-python names the interpreter of an environment that has it."

_LOOP = """
import json, sys
for question in sys.stdin:
    print("answer:" + json.dumps(answer(json.loads(question))), flush=True)
"""


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--glmocr-python`` and ``--json``."""
    parser.add_argument("--glmocr-python", type=Path, help="interpreter of an environment with glmocr 0.1.5")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def measure_and_print(
    name: str, description: str | None, tables: Callable[..., list[FigureTable]], counted: str, default: int
) -> None:
    """Be the command line of a benchmark whose function takes a number of things, a seed and ``glmocr_python``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{counted}", type=int, default=default)
    parser.add_argument("--seed", type=int, default=0)
    add_common_options(parser)
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    show(name, tables(**options), as_json, notes=[] if options["glmocr_python"] else [LEFT_OUT])


@contextlib.contextmanager
def glmocr_process(python: Path, program: str) -> Iterator[Callable[[Any], Any]]:
    """Start a process and give the function that sends it a question and waits for the answer, both as JSON.

    Args:
        python: Interpreter of an environment with ``glmocr``.
        program: Source that imports from ``glmocr`` and defines ``answer(question)``.

    Raises:
        MissingDependencyError: The interpreter does not start, or the program fails, also later when it is asked.
    """
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "errors").open("w+", encoding="utf-8") as errors:
        command = [str(python.absolute()), "-W", "ignore", "-c", program + _LOOP]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
            )
        except OSError as error:
            raise MissingDependencyError(f"{python} cannot be started: {error.strerror}", remedy=REMEDY) from error
        with process:

            def ask(question: Any) -> Any:
                assert process.stdin is not None and process.stdout is not None
                with contextlib.suppress(BrokenPipeError):  # it has ended: reading tells
                    process.stdin.write(json.dumps(question) + "\n")
                    process.stdin.flush()
                for line in process.stdout:
                    if line.startswith("answer:"):  # packages may print as well
                        return json.loads(line.removeprefix("answer:"))
                errors.seek(0)
                said = errors.read().strip().splitlines() or ["it ended without a word"]
                raise MissingDependencyError(f"glmocr does not run in {python}: {said[-1]}", remedy=REMEDY)

            try:
                yield ask
            finally:
                process.terminate()
