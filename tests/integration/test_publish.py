"""``pagemill publish`` as a process: to a small Hub on this machine through the real client, to a folder and a URL."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
import synthetic_run
from local_hub import TOKEN, LocalHub, Repository
from PIL import Image
from synthetic_run import page, region, sample_pages, write_run

from pagemill import published_images
from pagemill.document.labels import Label
from pagemill.document.page import PageError
from pagemill.embedding.base import EngineIdentity
from pagemill.embedding.vectors import Part, Row, RowKey, VectorPaths, VectorsInfo
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import ExitCode, NoSpaceError
from pagemill.publishing.build import LOCK, STAGING, BuildOptions, Shape, build
from pagemill.publishing.manifest import Manifest, PublishedFile, described
from pagemill.publishing.storage import StoredDataset
from pagemill.sources.base import EncodedImage
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader

pytestmark = pytest.mark.integration

REPO = "mills/pages"
EMBEDDINGS = b"pagemill.embeddings"
PATIENCE_S = 120


@pytest.fixture
def hub():
    with LocalHub() as hub:
        yield hub


@pytest.fixture
def run(tmp_path, monkeypatch):
    buffer = io.BytesIO()
    Image.new("RGB", (60, 40), "navy").save(buffer, "JPEG")
    monkeypatch.setattr(synthetic_run, "JPEG", buffer.getvalue())
    out = tmp_path / "out"
    pages = sample_pages()
    for each in pages[:3]:
        each.source = "/home/miller/secret folder/report.pdf"
        each.errors = [
            msgspec.structs.replace(error, message=f"{each.source} and /home/miller/secret folder/x are damaged")
            for error in each.errors
        ]
    write_run(out, pages)
    identity = EngineIdentity(engine="mill", model="/home/miller/secret folder/model", dimension=2)
    info = VectorsInfo(part=Part.TEXT, identity=identity, dtype="float32")
    row = Row(RowKey("report_1"), "0" * 64)
    with VectorWriter(VectorPaths(out / "embeddings", Part.TEXT), info) as writer:
        writer.append([row], np.array([[0.6, 0.8]], dtype=np.float32))
        writer.publish([row])
    return out


def publish(out: Path, *arguments: str, hub: LocalHub | None = None, token: str | None = TOKEN, more=None):
    return subprocess.run(
        [sys.executable, "-m", "pagemill", "publish", str(out), *arguments],
        env=environment(hub, token) | (more or {}),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )


def environment(hub: LocalHub | None, token: str | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("HF_TOKEN", "HF_HUB_OFFLINE")}
    environment |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_ENDPOINT": hub.url} if hub else {}
    environment |= {"HF_TOKEN": token} if token else {}
    return environment


def to_hub(out: Path, hub: LocalHub, *arguments: str, **options):
    return publish(out, "--repo", REPO, "--licence", "cc-by-4.0", *arguments, hub=hub, **options)


def test_made_uploaded_and_verified(run, hub):
    ended = to_hub(run, hub, "--private")
    assert ended.returncode == 0, ended.stderr
    repository = hub.repositories[REPO]
    assert repository.private
    assert len(repository.commits) == 1
    files = repository.branches["main"]
    assert set(files) == {
        *("README.md", "pagemill.json", "run.json", "data/train-00000-of-00001.parquet"),
        *("embeddings/corpus_ocr_text.npy", "embeddings/corpus_ocr_text.ids.parquet"),
    }
    for file in json.loads(files["pagemill.json"])["files"]:
        assert hashlib.sha256(files[file["path"]]).hexdigest() == file["sha256"]
    assert b'license: "cc-by-4.0"' in files["README.md"]
    assert TOKEN not in ended.stderr + ended.stdout
    assert not any(TOKEN.encode() in path.read_bytes() for path in run.rglob("*") if path.is_file())


def test_nothing_of_this_machine_is_published(run, hub):
    assert to_hub(run, hub).returncode == 0
    files = hub.repositories[REPO].branches["main"]
    rows = pq.read_table(io.BytesIO(files["data/train-00000-of-00001.parquet"])).to_pylist()
    assert sorted(row["source"] for row in rows) == ["letter.pdf", "report.pdf", "report.pdf", "report.pdf"]
    assert not any(b"secret folder" in data or str(run).encode() in data for data in files.values())
    told = json.loads(pq.read_schema(io.BytesIO(files["embeddings/corpus_ocr_text.ids.parquet"])).metadata[EMBEDDINGS])
    assert (told["identity"]["engine"], told["identity"]["model"]) == ("mill", "model")
    messages = [error["message"] for row in rows for error in row["errors"]]
    assert messages
    assert not any("miller" in message for message in messages)


def test_the_second_time_nothing_is_sent(run, hub):
    assert to_hub(run, hub).returncode == 0
    uploads = hub.uploads()
    assert to_hub(run, hub).returncode == 0
    assert hub.uploads() == uploads
    assert len(hub.repositories[REPO].commits) == 1


def test_killed_in_the_middle_and_gone_on(run, hub):
    """Killed when the first large file has arrived: nothing is shown yet, and that file is not sent again."""
    process = None

    def kill() -> None:
        process.kill()

    hub.on_upload = kill
    command = [sys.executable, "-m", "pagemill", "publish", str(run), "--repo", REPO, "--licence", "cc-by-4.0"]
    process = subprocess.Popen(command, env=environment(hub, TOKEN), stderr=subprocess.DEVNULL)
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert hub.repositories[REPO].branches["main"] == {}
    assert hub.uploads() == 1
    hub.on_upload = lambda: None
    ended = to_hub(run, hub)
    assert ended.returncode == 0, ended.stderr
    assert hub.uploads() == 3
    assert len(hub.repositories[REPO].branches["main"]) == 6


def test_an_upload_that_fails_goes_on(run, hub):
    hub.uploads_until_failure = 2
    ended = to_hub(run, hub)
    assert ended.returncode == ExitCode.OUTPUT  # the Hub said 403
    assert "Log in" in ended.stderr
    assert hub.repositories[REPO].branches["main"] == {}
    hub.uploads_until_failure = None
    assert to_hub(run, hub).returncode == 0
    assert hub.uploads() == 4


def test_what_the_hub_spoils_is_seen(run, hub):
    hub.spoil = True
    ended = to_hub(run, hub)
    assert ended.returncode == ExitCode.DAMAGED
    assert "not as they were uploaded" in ended.stderr


def test_a_changed_run_replaces_its_files_and_no_others(run, hub, tmp_path):
    assert to_hub(run, hub, "--format", "files").returncode == 0
    files = hub.repositories[REPO].branches["main"]
    files["LICENSE.txt"] = b"by hand"
    assert "ocr_results.jsonl" in files
    assert to_hub(run, hub).returncode == 0
    assert "ocr_results.jsonl" not in files
    assert "data/train-00000-of-00001.parquet" in files
    assert files["LICENSE.txt"] == b"by hand"


def test_a_branch(run, hub):
    assert to_hub(run, hub, "--revision", "v2").returncode == 0
    branches = hub.repositories[REPO].branches
    assert branches["main"] == {}
    assert "README.md" in branches["v2"]


def test_without_a_token(run, hub):
    ended = to_hub(run, hub, token=None)
    assert ended.returncode == ExitCode.OUTPUT
    assert "HF_TOKEN" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (run / STAGING).exists()  # told before hours of work


def test_a_place_that_is_none_is_told_before_the_files_are_made(run):
    ended = publish(run, "--to", "https://mill.example/pages", "--licence", "cc0-1.0")
    assert (ended.returncode, "only be read" in ended.stderr) == (ExitCode.OUTPUT, True)
    assert not (run / STAGING).exists()


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


def test_a_public_repository_is_not_taken_for_a_private_one(run, hub):
    assert to_hub(run, hub).returncode == 0
    ended = to_hub(run, hub, "--private", "--title", "Other")
    assert ended.returncode == ExitCode.OUTPUT
    assert "public" in ended.stderr


def test_a_card_that_the_hub_does_not_take_is_told_before_anything_is_sent(run, hub):
    ended = publish(run, "--repo", REPO, "--licence", "nonsense-1.0", hub=hub)
    assert ended.returncode == ExitCode.OUTPUT
    assert "--licence" in ended.stderr
    assert "nonsense-1.0" in ended.stderr
    assert hub.repositories == {}


@pytest.mark.parametrize("path", ["data/train-00000-of-00009.parquet", "run.json", "embeddings/mine.npy"])
def test_a_repository_with_files_of_somebody_else_is_left_alone(run, hub, path):
    """Shards of another dataset would be read as a part of this one."""
    files = {".gitattributes": b"*", "README.md": b"mine", "notes.txt": b"mine"}
    hub.repositories[REPO] = Repository(branches={"main": {**files, path: b"mine"}})
    ended = to_hub(run, hub)
    assert ended.returncode == ExitCode.OUTPUT
    assert path in ended.stderr
    assert hub.uploads() == 0
    del hub.repositories[REPO].branches["main"][path]
    assert to_hub(run, hub).returncode == 0
    assert hub.repositories[REPO].branches["main"]["notes.txt"] == b"mine"


def test_a_client_that_is_told_to_stay_offline(run, hub):
    ended = to_hub(run, hub, more={"HF_HUB_OFFLINE": "1"})
    assert (ended.returncode, "HF_HUB_OFFLINE" in ended.stderr) == (ExitCode.OUTPUT, True)


def test_a_token_with_a_newline_works_and_is_not_shown(run, hub):
    assert to_hub(run, hub, "--hf-token", f"{TOKEN}\n", token=None).returncode == 0
    ended = to_hub(run, hub, "--hf-token", f"{TOKEN}\x01\n", "--title", "Other", token=None)
    assert ended.returncode != 0
    assert TOKEN not in ended.stderr


def test_no_hub_there(run):
    ended = publish(run, "--repo", REPO, "--licence", "cc-by-4.0", "--hf-token", TOKEN, token=None, hub=Nowhere())
    assert ended.returncode == ExitCode.NETWORK
    assert "same command again" in ended.stderr
    assert TOKEN not in ended.stderr


class Nowhere:
    url = "http://127.0.0.1:1"


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


def test_files_hold_records_texts_and_crops(run):
    with RunReader.open(run) as reader:
        options = BuildOptions(licence="other", title="t", shape=Shape.FILES)
        folder, manifest = build(reader, run, options)
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
        folder, manifest = build(reader, out, options)
    names = [file.path for file in manifest.files if file.path.startswith("data/")]
    assert names == [f"data/train-{number:05d}-of-00004.parquet" for number in range(4)]
    ids = [value for name in names for value in pq.read_table(folder / name)["page_id"].to_pylist()]
    assert ids == [f"d_{number}" for number in range(1, 8)]


def test_page_images_from_the_sources(tmp_path):
    """A PNG byte for byte, a turned JPEG and a PDF page as JPEGs; one that is gone is told."""
    source = tmp_path / "in"
    source.mkdir()
    drawing = Image.new("RGB", (300, 200), "white")
    drawing.save(source / "plain.png")
    turned = Image.Exif()
    turned[0x0112] = 6
    drawing.save(source / "turned.jpg", exif=turned)
    drawing.save(source / "sheet.pdf")
    drawing.save(source / "gone.png", compress_level=0)
    out, target = tmp_path / "out", tmp_path / "published"
    parse = [sys.executable, "-m", "pagemill", "parse", str(source), "-o", str(out), "-q", "--no-report"]
    subprocess.run(parse, check=True, timeout=PATIENCE_S)
    (source / "gone.png").unlink()
    ended = publish(out, "--to", str(target), "--licence", "cc0-1.0", "--page-images")
    assert ended.returncode == ExitCode.PAGES_FAILED, ended.stderr
    assert "gone" in ended.stderr
    rows = {Path(row["source"]).name: row for row in pq.read_table(target / "data").to_pylist()}
    assert next(iter(rows["plain.png"])) == "image"
    assert rows["plain.png"]["image"]["bytes"] == (source / "plain.png").read_bytes()
    for name in ("turned.jpg", "sheet.pdf"):
        with Image.open(io.BytesIO(rows[name]["image"]["bytes"])) as image:
            assert image.size == (rows[name]["width"], rows[name]["height"])
    assert rows["turned.jpg"]["width"] == 200
    assert rows["gone.png"]["image"] is None
    drawing.save(tmp_path / "gone.png", compress_level=0)  # what the remedy says helps, with the dataset made already
    arguments = ("--to", str(target), "--licence", "cc0-1.0", "--page-images")
    ended = publish(out, *arguments, "--input", str(source), "--input", str(tmp_path / "gone.png"))
    assert ended.returncode == 0, ended.stderr
    rows = {Path(row["source"]).name: row for row in pq.read_table(target / "data").to_pylist()}
    assert rows["gone.png"]["image"]["bytes"] == (tmp_path / "gone.png").read_bytes()


def test_a_disk_too_small_for_the_images_is_told_early(tmp_path, monkeypatch):
    source = tmp_path / "in"
    source.mkdir()
    for number in range(4):
        Image.new("RGB", (300, 200), (number, 0, 0)).save(source / f"{number}.png")
    out = tmp_path / "out"
    parse = [sys.executable, "-m", "pagemill", "parse", str(source), "-o", str(out), "-q", "--no-report"]
    subprocess.run(parse, check=True, timeout=PATIENCE_S)
    monkeypatch.setattr(published_images, "_SAMPLE", 2)
    monkeypatch.setattr(published_images.shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with RunReader.open(out) as reader:
        images = published_images.PublishedImages(reader, out)
        options = BuildOptions(licence="other", title="t", page_images=True)
        with pytest.raises(NoSpaceError, match="GB"):
            build(reader, out, options, open_images=images.opened)
    assert not (out / STAGING).exists()


def test_an_image_that_was_shrunk_to_be_parsed_fits_its_boxes(tmp_path):
    stored = io.BytesIO()
    Image.new("RGB", (300, 200), "white").save(stored, "PNG")
    payload = EncodedImage(data=stored.getvalue())
    found = SimpleNamespace(ref=SimpleNamespace(payload=payload), wanted=SimpleNamespace(rotation=0))
    assert published_images._stored(found, (300, 200)) == stored.getvalue()
    assert published_images._stored(found, (150, 100)) is None


def test_made_anew_only_when_something_changed(run):
    options = BuildOptions(licence="other", title="t")
    with RunReader.open(run) as reader:
        folder, manifest = build(reader, run, options)
        made = (folder / "README.md").stat().st_mtime_ns
        assert build(reader, run, options) == (folder, manifest)
        assert (folder / "README.md").stat().st_mtime_ns == made
        (run / "embeddings" / "ngram.statistics.npz").write_bytes(b"other statistics")
        changed, _ = build(reader, run, options)
    assert changed != folder
    assert not folder.exists()


def test_two_at_once(run, tmp_path):
    """The second would delete the files that the first is uploading."""
    lock = RunLock(run / LOCK)
    try:
        ended = publish(run, "--to", str(tmp_path / "published"), "--licence", "cc0-1.0")
    finally:
        lock.release()
    assert ended.returncode == ExitCode.OUTPUT
    assert "in use" in ended.stderr


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
        folder, _ = build(reader, run, BuildOptions(licence="other", title="caf\udce9"))
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
    assert "row 0 of corpus_ocr_text.npy is not the vector of report_1" in ended.stderr
    assert publish(run, "--to", str(tmp_path / "pages"), "--licence", "other", "--no-embeddings").returncode == 0


@pytest.mark.parametrize("place", ["{run}/pub", "{run}", "file://{run}/documents/pub", "{run}/../out/pub"])
def test_a_place_in_the_run_directory_is_refused(run, place):
    ended = publish(run, "--to", place.format(run=run), "--licence", "other")
    assert ended.returncode == ExitCode.OUTPUT
    assert "is in the run directory" in ended.stderr
    assert "outside" in ended.stderr
    assert not (run / STAGING).exists()


def test_page_images_of_files_that_were_moved(tmp_path):
    sources = tmp_path / "scans"
    sources.mkdir()
    Image.new("RGB", (40, 30), "navy").save(sources / "one.png")
    out = tmp_path / "out"
    parsed = [sys.executable, "-m", "pagemill", "parse", str(sources), "-q", "--no-report", "-o", str(out)]
    subprocess.run([*parsed, "--lang", "en"], check=True, timeout=PATIENCE_S)
    sources.rename(tmp_path / "moved")
    place = ["--to", str(tmp_path / "pages"), "--licence", "other", "--page-images"]
    gone = publish(out, *place)
    assert gone.returncode == ExitCode.PAGES_FAILED
    assert f"one_1 has no image: '{sources / 'one.png'}' does not exist" in gone.stderr
    assert "--input" in gone.stderr
    nowhere = publish(out, *place, "--input", str(tmp_path / "nowhere"))
    assert nowhere.returncode == ExitCode.INPUT
    assert f"the input '{tmp_path / 'nowhere'}' does not exist" in nowhere.stderr
    elsewhere = publish(out, *place, "--input", str(Path(__file__).parents[2] / "samples" / "report.pdf"))
    assert elsewhere.returncode == ExitCode.PAGES_FAILED
    assert f"{sources / 'one.png'}, as it was when it was parsed, is not in " in elsewhere.stderr
    assert publish(out, *place, "--input", str(tmp_path / "moved")).returncode == 0
