"""``pagemill publish --to``: a folder, brought up to date, interrupted, of somebody else."""

import pytest
from published_run import publish

from pagemill.errors import ExitCode
from pagemill.publishing.build import LOCK, STAGING
from pagemill.publishing.manifest import Manifest, PublishedFile, described
from pagemill.publishing.storage import StoredDataset
from pagemill.store.lock import RunLock

pytestmark = [pytest.mark.slow, pytest.mark.integration]


def test_a_folder_and_reading_it_back(run, tmp_path):
    datasets = pytest.importorskip("datasets")
    target = tmp_path / "published"
    ended = publish(run, "--to", str(target), "--licence", "cc0-1.0")
    assert ended.returncode == 0, ended.stderr
    pages = datasets.load_dataset(str(target), split="train", cache_dir=str(tmp_path / "cache"))
    rows = {row["page_id"]: row for row in pages}
    assert sorted(rows) == ["letter_1", "report_1", "report_2", "report_3"]
    assert rows["report_1"]["crop_images"][0].size == (60, 40)
    assert rows["report_2"]["regions"][2]["content"].startswith("<table>")
    assert rows["report_3"]["status"] == "failed"
    assert not list(target.rglob("*.pagemill-tmp"))


def test_a_folder_is_brought_up_to_date(run, tmp_path):
    target = tmp_path / "published"
    arguments = ("--to", target.as_uri(), "--licence", "cc0-1.0")
    assert publish(run, *arguments, "--format", "files").returncode == 0
    assert (target / "crops" / "crops-00000.tar").is_file()
    (target / "data").mkdir()
    assert publish(run, *arguments).returncode == 0
    assert not (target / "ocr_results.jsonl").exists()
    damaged = target / "data" / "train-00000-of-00001.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(b"x" * len(whole))
    assert publish(run, *arguments).returncode == 0
    assert damaged.read_bytes() == whole


def test_a_folder_and_three_versions_with_an_interruption_hold_the_last_one(run, tmp_path):
    """Shards of the second, which was never whole, would be read beside those of the third."""
    target = tmp_path / "published"
    versions = []
    for number, pages in enumerate((2, 3, 4)):
        folder = tmp_path / f"version{number}"
        (folder / "data").mkdir(parents=True)
        files = [folder / "data" / f"train-{page:05d}-of-{pages:05d}.parquet" for page in range(pages)]
        for file in files:
            file.write_bytes(b"%d" % number)
        manifest = Manifest(pages=pages, files=tuple(described(folder, files)))
        (folder / "pagemill.json").write_bytes(manifest.encoded())
        versions.append((folder, manifest))
    StoredDataset(str(target)).publish(*versions[0])

    def stop(file: PublishedFile, arrived: int) -> None:
        if arrived:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StoredDataset(str(target)).publish(*versions[1], stop)
    StoredDataset(str(target)).publish(*versions[2])
    assert sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()) == sorted(
        [*(file.path for file in versions[2][1].files), "pagemill.json"]
    )


def test_a_folder_of_somebody_else_is_left_alone(run, tmp_path):
    target = tmp_path / "photos"
    target.mkdir()
    (target / "cat.jpg").write_bytes(b"meow")
    ended = publish(run, "--to", str(target), "--licence", "cc0-1.0")
    assert ended.returncode == ExitCode.OUTPUT
    assert "cat.jpg" in ended.stderr
    assert [path.name for path in target.iterdir()] == ["cat.jpg"]


def test_two_at_once(run, tmp_path):
    """The second would delete the files that the first is uploading."""
    lock = RunLock(run / LOCK)
    try:
        ended = publish(run, "--to", str(tmp_path / "published"), "--licence", "cc0-1.0")
    finally:
        lock.release()
    assert ended.returncode == ExitCode.OUTPUT
    assert "in use" in ended.stderr


@pytest.mark.parametrize("place", ["{run}/pub", "{run}", "file://{run}/documents/pub", "{run}/../out/pub"])
def test_a_place_in_the_run_directory_is_refused(run, place):
    ended = publish(run, "--to", place.format(run=run), "--licence", "other")
    assert ended.returncode == ExitCode.OUTPUT
    assert "is in the run directory" in ended.stderr
    assert "outside" in ended.stderr
    assert not (run / STAGING).exists()
