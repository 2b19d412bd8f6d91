"""``pagemill publish --page-images``: the images of pages, from their sources once more."""

import io
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from forked_command import run_forked
from PIL import Image
from published_run import publish

from pagemill.app import publish as making
from pagemill.app.options import ImageSources
from pagemill.errors import ExitCode, NoSpaceError
from pagemill.publishing.build import STAGING, build
from pagemill.publishing.options import BuildOptions
from pagemill.sources.base import EncodedImage
from pagemill.store.reading import RunReader

pytestmark = pytest.mark.integration


def parse(source: Path, out: Path) -> None:
    ended = run_forked("parse", source, "-q", "--no-report", "--lang", "en", "-o", out)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
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
    parse(source, out)
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


@pytest.mark.slow
def test_a_disk_too_small_for_the_images_is_reported_early(tmp_path, monkeypatch):
    source = tmp_path / "in"
    source.mkdir()
    for number in range(4):
        Image.new("RGB", (300, 200), (number, 0, 0)).save(source / f"{number}.png")
    out = tmp_path / "out"
    parse(source, out)
    monkeypatch.setattr(making, "_SAMPLE", 2)
    monkeypatch.setattr(making.shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with RunReader.open(out) as reader:
        images = making.PublishedImages(reader, lambda: None, ImageSources())
        options = BuildOptions(licence="other", title="t", page_images=True)
        with pytest.raises(NoSpaceError, match="GB"):
            build(reader, options, open_images=images.opened)
    assert not (out / STAGING).exists()


def test_an_image_that_was_shrunk_to_be_parsed_fits_its_boxes(tmp_path):
    stored = io.BytesIO()
    Image.new("RGB", (300, 200), "white").save(stored, "PNG")
    payload = EncodedImage(source=stored.getvalue())
    found = SimpleNamespace(payload=payload, wanted=SimpleNamespace(rotation=0))
    assert making._stored(found, (300, 200)) == stored.getvalue()
    assert making._stored(found, (150, 100)) is None


@pytest.mark.slow
def test_page_images_of_files_that_were_moved(tmp_path):
    sources = tmp_path / "scans"
    sources.mkdir()
    Image.new("RGB", (40, 30), "navy").save(sources / "one.png")
    out = tmp_path / "out"
    parse(sources, out)
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
    assert f"{sources / 'one.png'}, unchanged since it was parsed, is not in " in elsewhere.stderr
    assert publish(out, *place, "--input", str(tmp_path / "moved")).returncode == 0
