"""Whatever is damaged, no row or page is lost silently: those read and those failed are those that a source announces.

``PAGEMILL_DAMAGE_EXAMPLES=500`` tries more damage than the daily tests do.
"""

import io
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pypdfium2 as pdfium
import pytest
from decoding_run import Ended, arrow, parquet, rows, run
from faulty_web import FaultyWeb
from hypothesis import given, settings
from hypothesis import strategies as st
from made_pdfs import pages
from PIL import Image

from pagemill.errors import ExitCode

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of Pillow, which counts the pages of damaged files here
]

EXAMPLES = int(os.environ.get("PAGEMILL_DAMAGE_EXAMPLES", "4"))
ROWS = 20
Damage = list[tuple[str, float, int]]
"""Kinds with their place, as a share of the file, and their size or bit."""

DAMAGE: st.SearchStrategy[Damage] = st.lists(
    st.tuples(st.sampled_from(["flip", "flip", "hole", "cut"]), st.floats(0, 1, exclude_max=True), st.integers(0, 63)),
    min_size=1,
    max_size=3,
)


def damaged(whole: bytes, damage: Damage) -> bytes:
    data = bytearray(whole)
    for kind, share, size in damage:
        place = int(share * len(data))
        if kind == "flip":
            data[place] ^= 1 << size % 8
        elif kind == "hole":
            data[place : place + size] = bytes(len(data[place : place + size]))
        else:
            del data[max(place, 16) :]
    return bytes(data)


def tiff(folder: Path) -> Path:
    first, *others = [Image.new("L", (30 + number, 20)) for number in range(6)]
    first.save(folder / "fax.tiff", save_all=True, append_images=others)
    return folder / "fax.tiff"


def pdf(folder: Path) -> Path:
    (folder / "book.pdf").write_bytes(pages(5))
    return folder / "book.pdf"


MAKERS: dict[str, Callable[[Path], Path]] = {
    "parquet": lambda folder: parquet(folder / "shard.parquet", rows(ROWS), 4),
    "parquet-one-group": lambda folder: parquet(folder / "shard.parquet", rows(ROWS), ROWS),
    "arrow-file": lambda folder: arrow(folder / "shard.arrow", rows(ROWS), 4, stream=False),
    "arrow-file-zstd": lambda folder: arrow(folder / "shard.arrow", rows(ROWS), 4, stream=False, compression="zstd"),
    "arrow-stream": lambda folder: arrow(folder / "shard.arrow", rows(ROWS), 4, stream=True),
    "tiff": tiff,
    "pdf": pdf,
}
PAGES = {"tiff": 6, "pdf": 5}


@pytest.fixture(scope="module", params=list(MAKERS))
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, MAKERS[request.param](tmp_path_factory.mktemp("source"))


def announced(kind: str, data: bytes) -> int | None:
    """Rows or pages by the damaged file's own account; None where it gives none."""
    try:
        if kind.startswith("parquet"):
            metadata = pq.read_metadata(io.BytesIO(data))
            groups = sum(metadata.row_group(index).num_rows for index in range(metadata.num_row_groups))
            return metadata.num_rows if metadata.num_rows == groups else None
        if kind.startswith("arrow-file"):
            reader = pa.ipc.open_file(pa.BufferReader(data))
            return sum(reader.get_batch(index).num_rows for index in range(reader.num_record_batches))
        if kind == "pdf":
            return len(pdfium.PdfDocument(data))
        if kind == "tiff":
            with Image.open(io.BytesIO(data)) as image:
                return image.n_frames
    except Exception:  # of any kind, as any byte may be damaged
        return None
    return None


def check(ended: Ended, total: int, said: int | None, *, counts: bool = True) -> None:
    """Whether a run says all that is missing.

    Args:
        ended: The run.
        total: Rows or pages of the whole file.
        said: Those that the damaged file announces.
        counts: ``said`` is the true number also of a file that is broken in the middle.
    """
    assert (ended.exit_code is ExitCode.OK) == (not ended.failed and not any(r["errors"] for r in ended.records))
    if ended.exit_code is ExitCode.OK:
        assert len(ended.done) == (said if said is not None else total)
    # A failure of a source that does not open at all stands for all of it.
    if said is not None and counts and ended.done:
        assert len(ended.done) + ended.missing == said


@settings(max_examples=EXAMPLES)
@given(damage=DAMAGE)
def test_damaged_files(source: tuple[str, Path], damage: Damage):
    kind, path = source
    data = damaged(path.read_bytes(), damage)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, path.name)
        file.write_bytes(data)
        first = run(Path(folder, "out"), file)
        check(first, PAGES.get(kind, ROWS), announced(kind, data), counts=kind != "tiff")
        again = run(Path(folder, "out"), file)
        assert (again.exit_code, again.done, again.failed) == (first.exit_code, first.done, first.failed)
        assert again.run["missing"] == first.run["missing"]


@settings(max_examples=EXAMPLES)
@given(
    first=st.floats(0, 1, exclude_max=True),
    size=st.sampled_from([1, 50, 2000]),
    cut=st.booleans(),
    ranges=st.booleans(),
    later=st.floats(0, 1, exclude_max=True),
)
def test_files_of_a_server_that_fails(
    source: tuple[str, Path], first: float, size: int, cut: bool, ranges: bool, later: float
):
    kind, path = source
    length, total = path.stat().st_size, PAGES.get(kind, ROWS)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setitem(fsspec.config.conf, "http", {"block_size": 256})
        shutil.copy(path, folder)
        with FaultyWeb(Path(folder)) as web:
            web.cut, web.ranges = cut, ranges
            out = Path(folder, "out")
            for share in (first, later):
                web.broken = range(int(share * length), int(share * length) + size)
                ended = run(out, web.url(path.name))
                check(ended, total, total if kind.startswith("parquet") else None)
            web.broken = range(0)
            web.ranges = True
            ended = run(out, web.url(path.name))
        assert (ended.exit_code, len(ended.done), ended.failed) == (ExitCode.OK, total, {})
