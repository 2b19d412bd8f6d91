"""Search at the size of a benchmark corpus: exact search in vectors against other libraries, and a whole search.

``vectors`` makes rows of 2,048 components around random centres, as file of float16 and of float32, and asks each
candidate that is installed (numpy, faiss-cpu, usearch, hnswlib, lancedb) for the 100 nearest rows. Each one is a
process of its own, whose memory is its own; the queries go to them in turn, so that what else the machine does meets
all alike. Recall is against float64 over the same rows.

``whole`` makes a run directory of pages with eight regions of Korean and English words, their vectors, and the index;
then it searches words and vectors of pages, texts and regions, with and without filters.

    python benchmarks/search.py vectors --rows 40781
    python benchmarks/search.py vectors --rows 340000 --only pagemill,faiss-fp16
    python benchmarks/search.py whole --pages 40781
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

DIMENSION = 2048
NEAREST = 100
QUERIES = 25
BLOCK = 8192
CANDIDATES = {
    "pagemill": ("float16", "numkong"),
    "pagemill-numpy": ("float16", "numpy"),
    "pagemill-float32": ("float32", "numpy"),
    "numpy": ("float32", "numpy"),
    "faiss-flat": ("float32", "faiss"),
    "faiss-fp16": ("float16", "faiss"),
    "usearch-exact": ("float16", "usearch"),
    "hnswlib": ("float32", "hnswlib"),
    "lancedb-flat": ("float16", "lancedb"),
}
"""Name: dtype of the file it reads, package it needs."""


def make_vectors(path: Path, rows: int, dtype: str) -> None:
    """Rows of length 1 around rows / 40 random centres, the same for every dtype."""
    random_numbers = np.random.default_rng(0)
    stored = np.lib.format.open_memmap(path, "w+", dtype=np.dtype(dtype), shape=(rows, DIMENSION))
    centres = random_numbers.standard_normal((max(1, rows // 40), DIMENSION), dtype=np.float32)
    for start in range(0, rows, BLOCK):
        block = centres[random_numbers.integers(len(centres), size=min(BLOCK, rows - start))]
        block += 0.7 * random_numbers.standard_normal(block.shape, dtype=np.float32)
        stored[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    stored.flush()


def make_queries(vectors: NDArray[Any], count: int) -> NDArray[np.float32]:
    """Rows with noise as large as they are, of length 1."""
    random_numbers = np.random.default_rng(1)
    rows = vectors[np.sort(random_numbers.integers(len(vectors), size=count))].astype(np.float32)
    rows += random_numbers.standard_normal(rows.shape, dtype=np.float32) / np.sqrt(DIMENSION)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def nearest(vectors: NDArray[Any], queries: NDArray[np.float32]) -> NDArray[np.int64]:
    """The truth: float64 over all rows."""
    scores = np.empty((len(queries), len(vectors)))
    for start in range(0, len(vectors), BLOCK):
        scores[:, start : start + BLOCK] = queries.astype(np.float64) @ vectors[start : start + BLOCK].T.astype(float)
    return np.asarray(np.argsort(-scores, axis=1, kind="stable")[:, :NEAREST])


def searcher(name: str, path: Path) -> Callable[[NDArray[np.float32]], Any]:
    """Build what a candidate needs and give its search."""
    vectors = np.load(path, mmap_mode="r")
    if name.startswith("pagemill"):
        from pagemill.retrieval import ranking

        if name == "pagemill-numpy":
            sys.modules["numkong"] = None  # type: ignore[assignment]  # as if it were not installed
        every = np.ones(len(vectors), dtype=bool)
        return lambda query: ranking.best_first(ranking.similarities(np.asarray(vectors), query), every)[:NEAREST]
    if name == "numpy":
        return lambda query: np.argsort(-(vectors @ query))[:NEAREST]
    if name == "usearch-exact":
        from usearch.index import search

        return lambda query: search(vectors, query.astype(np.float16), NEAREST, "ip", exact=True).keys
    if name == "lancedb-flat":
        return _lancedb(vectors, path.with_name("lancedb"))
    blocks = (np.ascontiguousarray(vectors[i : i + BLOCK], np.float32) for i in range(0, len(vectors), BLOCK))
    if name == "hnswlib":
        import hnswlib

        graph = hnswlib.Index("ip", DIMENSION)
        graph.init_index(len(vectors), ef_construction=100, M=16)
        for block in blocks:
            graph.add_items(block)
        graph.set_ef(400)
        return lambda query: graph.knn_query(query, NEAREST)[0][0]
    import faiss

    if name == "faiss-flat":
        flat = faiss.IndexFlatIP(DIMENSION)
    else:
        flat = faiss.IndexScalarQuantizer(DIMENSION, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        flat.train(np.ascontiguousarray(vectors[:1000], np.float32))
    for block in blocks:
        flat.add(block)
    return lambda query: flat.search(query[np.newaxis], NEAREST)[1][0]


def _lancedb(vectors: NDArray[Any], folder: Path) -> Callable[[NDArray[np.float32]], Any]:
    import lancedb
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float16(), DIMENSION))])

    def batches() -> Iterator[Any]:
        for start in range(0, len(vectors), BLOCK):
            block = np.ascontiguousarray(vectors[start : start + BLOCK])
            values = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel(), pa.float16()), DIMENSION)
            yield pa.record_batch([pa.array(np.arange(start, start + len(block))), values], schema=schema)

    table = lancedb.connect(folder).create_table("vectors", data=batches(), schema=schema, mode="overwrite")
    return lambda query: (
        table.search(query.astype(np.float16))
        .metric("dot")
        .limit(NEAREST)
        .select(["id", "_distance"])
        .to_arrow()["id"]
        .to_numpy()
    )


def work(name: str, path: Path) -> None:
    """A candidate's process: builds, then answers the query whose number comes in, a line each."""
    queries = np.load(path.with_name("queries.npy"))
    start = time.perf_counter()
    search = searcher(name, path)
    built = time.perf_counter() - start
    search(queries[0])
    print(json.dumps(built), flush=True)
    for line in sys.stdin:
        start, busy = time.perf_counter(), time.process_time()
        rows = search(queries[int(line)])
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        answer = {
            "s": seconds,
            "cpu": busy,
            "peak": _memory("VmHWM"),
            "anonymous": _memory("RssAnon"),
            "rows": [int(row) for row in rows],
        }
        print(json.dumps(answer), flush=True)


def _memory(name: str) -> float:
    """What Linux says of the memory of this process, in MiB: VmHWM is the peak, RssAnon what is no page of a file."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024


def compare_vectors(rows: int, only: str | None, folder: Path) -> None:
    """Time the candidates in turn and print a table."""
    wanted = [name for name in CANDIDATES if only is None or name in only.split(",")]
    missing = [name for name in wanted if importlib.util.find_spec(CANDIDATES[name][1]) is None]
    wanted = [name for name in wanted if name not in missing]
    for dtype in sorted({CANDIDATES[name][0] for name in wanted}):
        make_vectors(folder / f"{dtype}.npy", rows, dtype)
    files = {name: folder / f"{CANDIDATES[name][0]}.npy" for name in wanted}
    queries = make_queries(np.load(files[wanted[0]], mmap_mode="r"), QUERIES)
    np.save(folder / "queries.npy", queries)
    truth = {path: nearest(np.load(path, mmap_mode="r"), queries) for path in set(files.values())}
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in wanted}
    built = {}
    with contextlib.ExitStack() as stack:
        processes = {}
        for name in wanted:
            command = [sys.executable, __file__, "worker", name, str(files[name])]
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            assert process.stdin is not None and process.stdout is not None
            processes[name] = (process.stdin, process.stdout)
            built[name] = json.loads(process.stdout.readline())
        for number in range(QUERIES):
            for name, (questions, replies) in processes.items():
                print(number, file=questions, flush=True)
                answers[name].append(json.loads(replies.readline()))
        for questions, _ in processes.values():
            questions.close()
    print(f"{rows:,} x {DIMENSION}, the {NEAREST} nearest, {QUERIES} queries in turn; peak memory counts mapped files")
    print(
        f"{'':18}{'build s':>9}{'p50 ms':>9}{'p95 ms':>9}{'CPU ms':>9}{'own MiB':>9}{'peak MiB':>10}{'recall':>8}"
        f"{'ratio':>8}"
    )
    base = np.median([answer["s"] for answer in answers[wanted[0]]])
    for name, found in answers.items():
        seconds = [answer["s"] for answer in found]
        recall = np.mean(
            [
                len(set(answer["rows"]) & set(right.tolist())) / NEAREST
                for answer, right in zip(found, truth[files[name]], strict=True)
            ]
        )
        print(
            f"{name:18}{built[name]:9.1f}{1e3 * np.median(seconds):9.1f}{1e3 * np.percentile(seconds, 95):9.1f}"
            f"{1e3 * np.median([answer['cpu'] for answer in found]):9.1f}{found[-1]['anonymous']:9.0f}"
            f"{found[-1]['peak']:10.0f}{recall:8.4f}{np.median(seconds) / base:8.2f}"
        )
    for name in missing:
        print(f"{name} is left out: {CANDIDATES[name][1]} is not installed")


def made_up_text(dice: random.Random, words: list[str], count: int) -> str:
    """Words by Zipf's law."""
    return " ".join(words[min(int(dice.paretovariate(0.9)), len(words)) - 1] for _ in range(count))


def vocabulary(dice: random.Random) -> list[str]:
    """20,000 words, of Hangul and Latin letters by turns."""
    latin = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(10_000)]
    korean = ["".join(chr(0xAC00 + 28 * dice.randrange(399)) for _ in range(dice.randint(2, 4))) for _ in range(10_000)]
    return [word for pair in zip(korean, latin, strict=True) for word in pair]


def make_run(out: Path, pages: int, words: list[str]) -> None:
    """A run directory of one dataset with pages of eight regions, 40 words each."""
    from pagemill.document.identity import PageKey
    from pagemill.document.labels import Label
    from pagemill.document.page import PageResult, Region
    from pagemill.store.derived import Exporters
    from pagemill.store.rows import Place
    from pagemill.store.run_directory import RunDirectory

    exporters = Exporters(
        embedding_text=lambda page: "",
        document_markdown=lambda pages: iter(()),
        document_json=lambda pages, info, provisional: iter(()),
    )
    digest = hashlib.sha256(b"benchmark").hexdigest()
    dice = random.Random(2)
    labels = [Label.DOC_TITLE, Label.TABLE, *[Label.TEXT] * 6]
    with RunDirectory.open(out, exporters=exporters, identity={"benchmark": 1}, settings={}) as run:
        for number in range(pages):
            regions = [
                Region(
                    index=index,
                    label=label,
                    bbox_2d=(0, 100 * index, 1000, 100 * index + 90),
                    bbox=(0.0, 10.0 * index, 100.0, 10.0 * index + 9),
                    content=made_up_text(dice, words, 40),
                )
                for index, label in enumerate(labels)
            ]
            key = PageKey(digest, number + 1)
            page = PageResult(
                page_id=f"page_{number}",
                page_idx=number,
                page_key=str(key),
                doc_id=f"report-{number // 100}",
                source="benchmark.parquet",
                page_number=number + 1,
                regions=regions,
            )
            run.start_page(key, Place.of(page))
            run.write_page(page, [])
        run.finish()


def make_embeddings(out: Path) -> None:
    """Random vectors of all pages, texts and regions of a run, in float16."""
    from pagemill.embedding.base import EngineIdentity
    from pagemill.embedding.contents import contents
    from pagemill.embedding.vectors import FOLDER, Part, StoredType, VectorPaths, VectorsInfo
    from pagemill.embedding.writing import VectorWriter
    from pagemill.store.reading import RunReader

    random_numbers = np.random.default_rng(3)
    identity = EngineIdentity(engine="random", model="random", dimension=DIMENSION)
    for part in (Part.IMAGES, Part.TEXT, Part.REGIONS):
        info = VectorsInfo(part=part, identity=identity, dtype=StoredType.FLOAT16)
        with RunReader.open(out) as reader, VectorWriter(VectorPaths(out / FOLDER, part), info) as writer:
            rows = [content.row for page in reader.pages() for content in contents(page, part, images=False)]
            for start in range(0, len(rows), BLOCK):
                batch = rows[start : start + BLOCK]
                block = random_numbers.standard_normal((len(batch), DIMENSION), dtype=np.float32)
                writer.append(batch, block / np.linalg.norm(block, axis=1, keepdims=True))
            writer.publish(rows)
        print(f"  {len(rows):,} vectors of {part.plural}")


def whole_search(pages: int, folder: Path) -> None:
    """Time the index and searches of a run."""
    from pagemill.retrieval.building import build_index
    from pagemill.retrieval.hits import Filters, IndexPart
    from pagemill.retrieval.index import SearchIndex

    dice = random.Random(4)
    words = vocabulary(dice)
    out = folder / "run"
    make_run(out, pages, words)
    start = time.perf_counter()
    build_index(out)
    print(f"{pages:,} pages, {8 * pages:,} regions: words indexed in {time.perf_counter() - start:.1f} s")
    make_embeddings(out)
    start = time.perf_counter()
    build_index(out)
    print(f"vectors checked and bound in {time.perf_counter() - start:.1f} s")
    size = sum(file.stat().st_size for file in (out / "index").iterdir()) / 2**20
    print(f"index {size:.0f} MiB; memory until here {_memory('VmHWM'):.0f} MiB")
    start = time.perf_counter()
    SearchIndex(out).close()
    print(f"opened in {1e3 * (time.perf_counter() - start):.1f} ms")
    random_numbers = np.random.default_rng(5)
    cases: list[tuple[str, tuple[IndexPart, ...] | None, Filters]] = [
        ("words alone", (IndexPart.FULL_TEXT,), Filters()),
        ("pages: words, images, texts", (IndexPart.FULL_TEXT, IndexPart.IMAGES, IndexPart.TEXT), Filters()),
        ("all parts", None, Filters()),
        ("all parts, documents report-1*", None, Filters(documents=("report-1*",))),
        ("all parts, label table", None, Filters(labels=("table",))),
    ]
    with SearchIndex(out) as index:
        for name, parts, filters in cases:
            seconds = []
            for _ in range(QUERIES + 1):
                query = made_up_text(dice, words[20:], 6)
                vector = random_numbers.standard_normal(DIMENSION, dtype=np.float32)
                vector /= np.linalg.norm(vector)
                vectors = dict.fromkeys(index.vectors, vector)
                start = time.perf_counter()
                index.search(query, vectors=vectors, parts=parts, filters=filters)
                seconds.append(time.perf_counter() - start)
            median, slow = 1e3 * np.percentile(seconds[1:], [50, 95])
            print(f"  {name:34} p50 {median:7.1f} ms   p95 {slow:7.1f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    vectors = commands.add_parser("vectors")
    vectors.add_argument("--rows", type=int, default=40_781)
    vectors.add_argument("--only", metavar="NAME,...", help=", ".join(CANDIDATES))
    whole = commands.add_parser("whole")
    whole.add_argument("--pages", type=int, default=40_781)
    for command in (vectors, whole):
        command.add_argument("--folder", type=Path, help="where the data go [default: the system's temporary folder]")
    worker = commands.add_parser("worker")
    worker.add_argument("name")
    worker.add_argument("path", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "worker":
        work(arguments.name, arguments.path)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        if arguments.command == "vectors":
            compare_vectors(arguments.rows, arguments.only, Path(folder))
        else:
            whole_search(arguments.pages, Path(folder))


if __name__ == "__main__":
    main()
