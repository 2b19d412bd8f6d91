"""What ``pagemill publish`` makes of a run, and what it refuses."""

import hashlib
import json
import tarfile

import pyarrow.parquet as pq
import pytest
import synthetic_run
from published_run import REPO, publish, to_hub
from synthetic_run import page, region, write_run

from pagemill.document.labels import Label
from pagemill.document.page import PageError
from pagemill.embedding.vectors import Part, VectorFile, VectorPaths, VectorRow
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import DifferentRunError, ExitCode
from pagemill.publishing.build import build
from pagemill.publishing.options import BuildOptions, Shape
from pagemill.store.reading import RunReader

pytestmark = [pytest.mark.slow, pytest.mark.integration]


@pytest.mark.parametrize(
    ("pages", "status"), [([], ExitCode.INPUT), ([synthetic_run.failed_page("d", 1)], ExitCode.OK)]
)
def test_a_run_with_nothing_and_one_with_failed_pages_only(tmp_path, pages, status):
    datasets = pytest.importorskip("datasets")
    out, target = tmp_path / "out", tmp_path / "published"
    write_run(out, pages)
    ended = publish(out, "--to", str(target), "--licence", "cc0-1.0")
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    if pages:
        rows = datasets.load_dataset(str(target), split="train", cache_dir=str(tmp_path / "cache"))
        assert [row["status"] for row in rows] == ["failed"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--repo", REPO], "--licence"),
        (["--licence", "cc0-1.0"], "--repo USER/NAME or --to URL"),
        (["--repo", "pages", "--licence", "cc0-1.0"], "USER/NAME"),
        (["--repo", REPO, "--licence", "CC BY: yes"], "identifier"),
        (["--to", "folder", "--private", "--licence", "cc0-1.0"], "--private"),
    ],
)
def test_mistakes(run, arguments, said):
    ended = publish(run, *arguments)
    assert ended.returncode == ExitCode.USAGE
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_dry_run_shows_the_card_and_sends_nothing(run, hub):
    ended = to_hub(run, hub, "--dry-run", token=None)
    assert ended.returncode == 0
    assert ended.stdout.startswith("---\nlicense:")
    assert hub.requests == []


def test_an_unfinished_run_needs_a_word(tmp_path):
    out = tmp_path / "out"
    with synthetic_run.open_run(out) as unfinished:
        each = page("d", 1, [region(0, Label.TEXT, "words")])
        synthetic_run.start(unfinished, each)
        synthetic_run.write(unfinished, each, 0)
    target = ("--to", str(tmp_path / "published"), "--licence", "cc0-1.0")
    ended = publish(out, *target)
    assert (ended.returncode, "--partial" in ended.stderr) == (ExitCode.OUTPUT, True)
    assert publish(out, *target, "--partial").returncode == 0


def test_files_hold_records_texts_and_crops(run):
    with RunReader.open(run) as reader:
        options = BuildOptions(licence="other", title="t", shape=Shape.FILES)
        folder, manifest = build(reader, options)
    records = [json.loads(line) for line in (folder / "ocr_results.jsonl").read_text().splitlines()]
    texts = [json.loads(line) for line in (folder / "parsed_texts.jsonl").read_text().splitlines()]
    assert len(records) == manifest.pages == 4
    assert {text["page_id"] for text in texts} <= {record["page_id"] for record in records}
    crops = {crop["path"]: crop["sha256"] for record in records for crop in record["image_crops"]}
    with tarfile.open(folder / "crops" / "crops-00000.tar") as tar:
        found = {name: hashlib.sha256(tar.extractfile(name).read()).hexdigest() for name in tar.getnames()}
    assert found == crops


def test_shards_end_when_they_are_full(tmp_path, monkeypatch):
    from pagemill.export import parquet

    monkeypatch.setattr(parquet, "ROW_GROUP_PAGES", 2)
    out = tmp_path / "out"
    write_run(out, [page("d", number, [region(0, Label.TEXT, f"page {number}")]) for number in range(1, 8)])
    with RunReader.open(out) as reader:
        options = BuildOptions(licence="other", title="t", shard_bytes=1)
        folder, manifest = build(reader, options)
    names = [file.path for file in manifest.files if file.path.startswith("data/")]
    assert names == [f"data/train-{number:05d}-of-00004.parquet" for number in range(4)]
    ids = [value for name in names for value in pq.read_table(folder / name)["page_id"].to_pylist()]
    assert ids == [f"d_{number}" for number in range(1, 8)]


def test_rebuilt_only_when_something_changed(run):
    options = BuildOptions(licence="other", title="t")
    with RunReader.open(run) as reader:
        folder, manifest = build(reader, options)
        made = (folder / "README.md").stat().st_mtime_ns
        assert build(reader, options) == (folder, manifest)
        assert (folder / "README.md").stat().st_mtime_ns == made
        (run / "embeddings" / "ngram.statistics.npz").write_bytes(b"other statistics")
        changed, _ = build(reader, options)
    assert changed != folder
    assert not folder.exists()


def test_files_load_with_the_library_whatever_the_records_lack(tmp_path):
    """Records of which the first have no errors and the last one has: a schema guessed from the first does not fit."""
    datasets = pytest.importorskip("datasets")
    target, out = tmp_path / "published", tmp_path / "out"
    pages = [page("d", number, [region(0, Label.TEXT, "words " * 20_000)]) for number in range(1, 121)]
    pages[-1].errors = [PageError(component="table", category="internal", message="no", region=0)]
    write_run(out, pages)
    assert publish(out, "--to", str(target), "--licence", "cc0-1.0", "--format", "files").returncode == 0
    texts = datasets.load_dataset(str(target), split="train", cache_dir=str(tmp_path / "cache"))
    assert texts["page_id"] == [each.page_id for each in pages]


def test_a_title_that_is_no_text_of_unicode(run):
    """Such as the name of a folder from another century."""
    with RunReader.open(run) as reader:
        folder, _ = build(reader, BuildOptions(licence="other", title="caf\udce9"))
    assert b"caf" in (folder / "README.md").read_bytes()


def test_a_damaged_crop_is_not_published(run):
    next((run / "crops").iterdir()).write_bytes(b"other")
    ended = publish(run, "--to", str(run.parent / "published"), "--licence", "cc0-1.0")
    assert ended.returncode == ExitCode.DAMAGED
    assert "--repair" in ended.stderr
    assert not (run / ".pagemill" / "publish").exists()


def test_a_damaged_vector_is_not_published(run, tmp_path):
    path = run / "embeddings" / "corpus_ocr_text.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    ended = publish(run, "--to", str(tmp_path / "pages"), "--licence", "other")
    assert ended.returncode == ExitCode.DAMAGED
    assert "row 2 of corpus_ocr_text.npy is not the vector of" in ended.stderr
    assert publish(run, "--to", str(tmp_path / "pages"), "--licence", "other", "--no-embeddings").returncode == 0


def test_vectors_that_are_not_up_to_date_are_not_published(run, tmp_path):
    """The text of one page has changed since it was embedded, and another page has no vector."""
    files = VectorPaths(run / "embeddings", Part.TEXT)
    file = VectorFile.open_in(files)
    rows, vectors = [VectorRow(file.rows[0].key, "0" * 64), *file.rows[1:-1]], file.vectors[:-1].copy()
    with VectorWriter(files, file.info, fresh=True) as writer:
        writer.append(rows, vectors)
        writer.publish(rows)
    target = tmp_path / "pages"
    ended = publish(run, "--to", str(target), "--licence", "other")
    assert ended.returncode == ExitCode.OUTPUT
    assert "1 vector of changed or removed pages, and 2 pages without a vector" in ended.stderr
    assert f"pagemill embed {run}" in ended.stderr
    assert not target.exists()
    ended = publish(run, "--to", str(target), "--licence", "other", "--partial")
    assert ended.returncode == 0, ended.stderr
    published = VectorFile.open_in(VectorPaths(target / "embeddings", Part.TEXT))
    assert published.rows == rows[1:]
    assert pq.read_table(published.paths.ids)["row"].to_pylist() == list(range(len(rows) - 1))
    assert "pages without a vector: 2" in (target / "README.md").read_text()


def test_vectors_are_looked_at_before_all_pages_are_decoded_for_their_images(run):
    files = VectorPaths(run / "embeddings", Part.TEXT)
    file = VectorFile.open_in(files)
    rows = [VectorRow(file.rows[0].key, "0" * 64), *file.rows[1:]]
    with VectorWriter(files, file.info, fresh=True) as writer:
        writer.append(rows, file.vectors.copy())
        writer.publish(rows)
    options = BuildOptions(licence="other", title="t", page_images=True)
    with RunReader.open(run) as reader, pytest.raises(DifferentRunError):
        build(reader, options, open_images=lambda: pytest.fail("page images were read"))


def test_pages_without_a_vector_are_counted_in_the_card(run, tmp_path):
    files = VectorPaths(run / "embeddings", Part.TEXT)
    file = VectorFile.open_in(files)
    with VectorWriter(files, file.info, fresh=True) as writer:
        writer.append(file.rows[1:], file.vectors[1:].copy())
        writer.publish(file.rows[1:])
    ended = publish(run, "--to", str(tmp_path / "pages"), "--licence", "other")
    assert ended.returncode == 0, ended.stderr
    assert "pages without a vector: 1" in (tmp_path / "pages" / "README.md").read_text()
