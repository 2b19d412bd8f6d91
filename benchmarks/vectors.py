"""What keeping vectors costs: files bound row by row to their pages, against an array that is written once.

Writes ``--rows`` vectors of ``--dimension`` components as ``pagemill embed`` does (append, publish), opens the files as
``pagemill index`` does, embeds one changed page again, and writes the same array with ``numpy.save`` and ``fsync``,
each in a process of its own. Prints seconds and peak memory, and the ratio of times.

    python benchmarks/vectors.py
    python benchmarks/vectors.py --rows 340000 --dtype float16
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pagemill.embedding.base import EngineIdentity, normalised
from pagemill.embedding.vectors import Part, RowKey, StoredType, VectorFile, VectorPaths, VectorRow, VectorsInfo
from pagemill.embedding.writing import VectorWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pagemill.embedding.base import Vectors

BATCH = 32
STEPS = ("plain", "write", "open", "change")


def batches(rows: int, dimension: int) -> Iterator[Vectors]:
    """Random vectors, always the same."""
    random = np.random.default_rng(0)
    for start in range(0, rows, BATCH):
        yield normalised(random.standard_normal((min(BATCH, rows - start), dimension), dtype=np.float32))


def step(name: str, folder: Path, rows: int, dimension: int, dtype: StoredType) -> float:
    """Do one of :data:`STEPS`. Gives seconds, without the making of the vectors."""
    paths = VectorPaths(folder / "embeddings", Part.TEXT)
    info = VectorsInfo(
        part=Part.TEXT, identity=EngineIdentity(engine="random", model="", dimension=dimension), dtype=dtype
    )
    names = [VectorRow(RowKey(f"document-{index // 20}_{index % 20}"), f"{index:064x}") for index in range(rows)]
    spent = 0.0
    if name == "plain":
        whole = np.concatenate([batch.astype(dtype) for batch in batches(rows, dimension)])
        start = time.perf_counter()
        with (folder / "plain.npy").open("wb") as stream:
            np.save(stream, whole)
            stream.flush()
            os.fsync(stream.fileno())
        return time.perf_counter() - start
    if name == "write":
        start = time.perf_counter()
        with VectorWriter(paths, info) as writer:
            spent += time.perf_counter() - start
            for number, batch in enumerate(batches(rows, dimension)):
                start = time.perf_counter()
                for index, vector in enumerate(batch, start=number * BATCH):
                    writer.append([names[index]], vector[None])
                spent += time.perf_counter() - start
            start = time.perf_counter()
            writer.publish(names)
        return spent + time.perf_counter() - start
    start = time.perf_counter()
    if name == "open":
        with VectorFile.open_in(paths) as file:
            assert len(file) == rows
    else:
        names[rows // 2] = VectorRow(names[rows // 2].key, "f" * 64)
        with VectorWriter(paths, info) as writer:
            missing = [row for row in names if not writer.has(row)]
            writer.append(missing, next(batches(len(missing), dimension)))
            writer.publish(names)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_781)
    parser.add_argument("--dimension", type=int, default=2048)
    parser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder by default")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        spent = step(options.step, options.folder, options.rows, options.dimension, StoredType(options.dtype))
        print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in STEPS:
            command = [sys.executable, __file__, "--step", name, "--folder", folder, "--dtype", options.dtype]
            command += ["--rows", str(options.rows), "--dimension", str(options.dimension)]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            seconds[name], memory = map(float, run.stdout.split())
            print(f"{name:8} {seconds[name]:7.2f} s, peak {memory:,.0f} MB")
    print(f"ratio of write to plain: {seconds['write'] / seconds['plain']:.2f}")


if __name__ == "__main__":
    main()
