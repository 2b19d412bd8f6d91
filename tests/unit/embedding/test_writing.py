"""Files of vectors: rows bound to what they are of, whatever ends the process."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.embedding.base import EngineIdentity
from pagemill.embedding.vectors import Part, RowKey, VectorFile, VectorPaths, VectorRow
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import DamagedRunError, DifferentRunError, MissingInputError

from .conftest import info, row, vector_of, vectors_of


def write(paths: VectorPaths, rows: list, **options: object) -> int:
    """Bring the files to these rows, as ``pagemill embed`` does. Gives how many were embedded."""
    with VectorWriter(paths, info(**options)) as writer:
        missing = [each for each in rows if not writer.has(each)]
        for start in range(0, len(missing), 2):
            writer.append(missing[start : start + 2], vectors_of(missing[start : start + 2]))
        writer.publish(rows)
    return len(missing)


def check(paths: VectorPaths, rows: list, atol: float = 0) -> None:
    with VectorFile.open_in(paths) as file:
        assert file.rows == rows
        for index, each in enumerate(rows):
            np.testing.assert_allclose(file.vectors[index], vector_of(each), atol=atol)
            np.testing.assert_array_equal(file.find(*each.key), file.vectors[index])
    assert not list(paths.folder.glob("*.pagemill-tmp"))


def test_rows_come_back_with_their_vectors(paths):
    rows = [row("b"), row("a"), row("a", 0), row("a", 3)]
    assert write(paths, rows) == 4
    check(paths, rows)
    assert np.load(paths.vectors).shape == (4, 8)  # the reference layout: a plain array
    assert pq.read_table(paths.ids).column("page_id").to_pylist() == ["b", "a", "a", "a"]


def test_float16(paths):
    rows = [row("a"), row("b")]
    write(paths, rows, dtype="float16")
    assert np.load(paths.vectors).dtype == np.float16
    check(paths, rows, atol=1e-3)


def test_only_what_is_new_or_changed_is_embedded(paths):
    a, b, c = row("a"), row("b"), row("c")
    write(paths, [a, b])
    assert write(paths, [b, a]) == 0
    check(paths, [b, a])
    changed = row("a", content="other")
    assert write(paths, [changed, b, c]) == 2
    check(paths, [changed, b, c])
    assert write(paths, [c]) == 0
    check(paths, [c])
    assert write(paths, []) == 0
    check(paths, [])
    assert write(paths, [a]) == 1


def test_what_is_up_to_date_is_not_written(paths):
    rows = [row("a")]
    write(paths, rows)
    before = paths.vectors.stat().st_mtime_ns, paths.ids.stat().st_mtime_ns
    write(paths, rows)
    assert (paths.vectors.stat().st_mtime_ns, paths.ids.stat().st_mtime_ns) == before


@pytest.mark.parametrize("other", [{"dtype": "float16"}, {"images": True}, {"identity": "other"}])
@pytest.mark.parametrize("published", [True, False])
def test_other_vectors_are_refused(paths, other, published):
    if published:
        write(paths, [row("a")])
    else:
        with VectorWriter(paths, info()) as writer:
            writer.append([row("a")], vectors_of([row("a")]))
    if "identity" in other:
        other = {"identity": EngineIdentity(engine="test", model="other", dimension=8)}
    with pytest.raises(DifferentRunError) as error:
        VectorWriter(paths, info(**other))
    assert "--fresh" in error.value.remedy
    with VectorWriter(paths, info(**other), fresh=True) as writer:
        assert not writer.has(row("a"))


def test_a_killed_process_leaves_what_it_appended(paths):
    rows = [row("a"), row("b"), row("c")]
    script = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from unit.embedding.conftest import info, row, vectors_of
from pagemill.embedding.vectors import Part, VectorPaths
from pagemill.embedding.writing import VectorWriter
writer = VectorWriter(VectorPaths(Path({str(paths.folder)!r}), Part.TEXT), info())
for each in (row("a"), row("b")):
    writer.append([each], vectors_of([each]))
os.kill(os.getpid(), 9)
"""
    paths.folder.parent.mkdir(exist_ok=True)
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == -9
    assert write(paths, rows) == 1
    check(paths, rows)
    assert not list(paths.folder.glob("*.partial*"))


@pytest.mark.parametrize("of_name", [True, False])
def test_a_kept_vector_with_a_flipped_bit_is_made_again(paths, of_name):
    rows = [row(f"p{number}") for number in range(20)]
    with VectorWriter(paths, info()) as writer:
        writer.append(rows, vectors_of(rows))
    content = bytearray(paths.partial.read_bytes())
    stored = vector_of(rows[7]).astype("<f4").tobytes()
    content[content.index(stored) + (-1 if of_name else 3)] ^= 0x40  # the name stands before the vector
    paths.partial.write_bytes(content)
    with VectorWriter(paths, info()) as writer:
        assert [each for each in rows if not writer.has(each)] == [rows[7]]
        writer.append([rows[7]], vectors_of([rows[7]]))
        writer.publish(rows)
    check(paths, rows)


def test_a_vector_that_changes_while_it_is_kept_is_not_published(paths):
    with VectorWriter(paths, info()) as writer:
        writer.append([row("a")], vectors_of([row("a")]))
        with contextlib.closing(sqlite3.connect(paths.partial)) as other, other:
            other.execute("UPDATE vectors SET vector = zeroblob(32)")
        with pytest.raises(DamagedRunError):
            writer.publish([row("a")])
    assert not paths.vectors.exists()


@pytest.mark.parametrize("content", [b"pagemill vectors 1\n", b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_partial_file_is_refused(paths, content):
    paths.folder.mkdir()
    paths.partial.write_bytes(content)
    with pytest.raises(DamagedRunError) as error:
        VectorWriter(paths, info())
    assert "--fresh" in error.value.remedy
    with VectorWriter(paths, info(), fresh=True) as writer:
        assert not writer.has(row("a"))


def test_a_death_between_the_renames(paths, monkeypatch):
    a, b = row("a"), row("b")
    write(paths, [a])
    replace, renames = Path.replace, []

    def die(self, target):
        if len(renames) == allowed and self.name.startswith(paths.part):
            raise KeyboardInterrupt
        renames.append(target)
        return replace(self, target)

    for allowed in (1, 2, 3):  # array and ids become whole by a rename each, too
        renames.clear()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "replace", die)
            write(paths, [b, a])
        if allowed == 3:
            with pytest.raises(DamagedRunError, match="2x8 float32"):
                VectorFile.open_in(paths)
        assert write(paths, [b, a]) == 0
        check(paths, [b, a])
        write(paths, [a])


@pytest.mark.parametrize(
    "damage",
    [
        "cut",
        "shuffled",
        "ids gone",
        "array gone",
        "noise",
        "doubled",
        "nameless",
        "dtype",
        "zip",
        "pickle",
        "other part",
    ],
)
def test_files_that_do_not_belong_together(paths, damage):
    rows = [row("a"), row("b"), row("c")]
    write(paths, rows)
    vectors, ids = np.load(paths.vectors), pq.read_table(paths.ids)
    if damage == "cut":
        np.save(paths.vectors, vectors[:2])
    elif damage == "shuffled":
        np.save(paths.vectors, vectors[[1, 0, 2]])
    elif damage == "ids gone":
        paths.ids.unlink()
    elif damage == "array gone":
        paths.vectors.unlink()
    elif damage == "noise":
        paths.ids.write_bytes(b"PAR1" + os.urandom(100) + b"PAR1")
    elif damage == "doubled":
        names = ids.column("page_id").to_pylist()
        pq.write_table(ids.set_column(1, "page_id", [["a", "a", names[2]]]), paths.ids)
    elif damage == "nameless":
        pq.write_table(ids.set_column(1, "page_id", [["a", None, "c"]]), paths.ids)
    elif damage == "other columns":
        pq.write_table(ids.set_column(1, "page_id", [[["a"], ["b"], ["c"]]]), paths.ids)
    elif damage == "dtype":
        told = {key: value.replace(b"float32", b"object") for key, value in ids.schema.metadata.items()}
        pq.write_table(ids.replace_schema_metadata(told), paths.ids)
    elif damage == "zip":
        with paths.vectors.open("wb") as stream:
            np.savez(stream, vectors)
    elif damage == "pickle":
        np.save(paths.vectors, np.array([print] * 3, dtype=object))
    else:
        paths.ids.rename(paths.folder / "corpus_images.ids.parquet")
        paths.vectors.rename(paths.folder / "corpus_images.npy")
        paths = VectorPaths(paths.folder, Part.IMAGES)
    with pytest.raises(DamagedRunError) as error:
        VectorFile.open_in(paths)
    assert "--fresh" in error.value.remedy


def test_a_death_while_the_files_are_written_leaves_nothing(paths):
    write(paths, [row("a")])
    paths.temporary(paths.temporary(paths.vectors)).write_bytes(b"half")
    paths.temporary(paths.temporary(paths.ids)).write_bytes(b"PAR1")
    write(paths, [row("a")])
    check(paths, [row("a")])


def test_there_are_none(paths):
    with pytest.raises(MissingInputError) as error:
        VectorFile.open_in(paths)
    assert "--what text" in error.value.remedy


rows_of_a_moment = st.dictionaries(
    st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(0, 2))), st.integers(0, 2), max_size=8
)


@given(st.lists(st.tuples(rows_of_a_moment, st.randoms(use_true_random=False), st.integers(0, 9)), max_size=4))
def test_any_sequence_of_pages_and_deaths(moments):
    with tempfile.TemporaryDirectory() as folder:
        paths = VectorPaths(Path(folder) / "embeddings", Part.TEXT)
        for wanted, chance, survives in moments:
            rows = [row(page, region, str(content)) for (page, region), content in wanted.items()]
            chance.shuffle(rows)
            with VectorWriter(paths, info()) as writer:  # dies after some vectors
                for each in [each for each in rows if not writer.has(each)][:survives]:
                    writer.append([each], vectors_of([each]))
            write(paths, rows)
            check(paths, rows)


def test_a_full_disk_keeps_what_was_there(paths):
    rows = [row("a")]
    write(paths, rows)
    script = f"""
import resource, signal, sys
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import numpy as np
from pagemill.embedding.base import EngineIdentity
from pagemill.embedding.vectors import *
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import OutputError
paths = VectorPaths(Path({str(paths.folder)!r}), Part.TEXT)
info = VectorsInfo(part=Part.TEXT, identity=EngineIdentity(engine="test", model="m", dimension=8), dtype="float32")
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
rows = [VectorRow(RowKey(f"p{{i}}"), "0" * 64) for i in range(1000)]
try:
    with VectorWriter(paths, info) as writer:
        for each in rows:
            writer.append([each], np.ones((1, 8), np.float32))
except OutputError as error:
    print(len([each for each in rows if writer.has(each)]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    check(paths, rows)
    kept = int(run.stdout)
    assert 0 < kept < 1000
    with VectorWriter(paths, info()) as writer:
        assert sum(writer.has(VectorRow(RowKey(f"p{i}"), "0" * 64)) for i in range(1000)) == kept
