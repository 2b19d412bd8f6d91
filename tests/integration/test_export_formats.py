"""``pagemill export`` and ``pagemill status`` as processes: of a parsed run, one being written, and a killed one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import forked_command
import pyarrow.parquet as pq
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageDraw, ImageFont
from synthetic_run import page, region, sample_pages, write_run

from chromium_pipe import CHROMIUM, Chromium
from pagemill.document.labels import Label
from pagemill.errors import ExitCode
from pagemill.store.reading import RunReader
from pagemill.store.records import encode_line

pytestmark = pytest.mark.integration

PATH = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80", "PYTHONPATH": PATH}
PATIENCE_S = 120

WRITER = """
import itertools, sys
from pathlib import Path
from synthetic_run import open_run, page, region, start, write
from pagemill.document.labels import Label

with open_run(Path(sys.argv[1])) as run:
    for index in itertools.count():
        regions = [region(0, Label.TEXT, "words " * 200), region(1, Label.IMAGE)]
        each = page(f"d{index // 10:03}", index % 10 + 1, regions)
        start(run, each)
        write(run, each, index)
        if index == 30:
            print("going", flush=True)
"""


def pagemill(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return forked_command.run_forked(*arguments, env=ENVIRONMENT)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two small PDFs and a file that is none."""
    folder = tmp_path_factory.mktemp("input")
    for name, texts in (("first", ["Chapter one", "Chapter two"]), ("second", ["A letter"])):
        with pdfium.PdfDocument.new() as document:
            for text in texts:
                image = Image.new("RGB", (500, 700), "white")
                ImageDraw.Draw(image).text((40, 60), text, fill="black", font=ImageFont.load_default(40))
                sheet = document.new_page(250, 350)
                picture = pdfium.PdfImage.new(document)
                picture.set_bitmap(pdfium.PdfBitmap.from_pil(image))
                picture.set_matrix(pdfium.PdfMatrix().scale(250, 350))
                sheet.insert_obj(picture)
                sheet.gen_content()
            document.save(folder / f"{name}.pdf")
    (folder / "third.pdf").write_text("no document")
    out = folder.parent / "out"
    result = pagemill("parse", folder, "-o", out, "--lang", "en", "--no-report", "--quiet")
    assert result.returncode == ExitCode.PAGES_FAILED, result.stderr
    return out


@pytest.mark.slow
def test_what_a_run_wrote_is_what_it_exports(parsed: Path, tmp_path: Path) -> None:
    for format_name in ("jsonl", "parquet", "markdown", "docjson", "html", "csv-tables"):
        result = pagemill("export", parsed, "-f", format_name, "-o", tmp_path / format_name)
        assert result.returncode == 0, result.stderr
    records = lines(parsed / "ocr_results.jsonl")
    with RunReader.open(parsed) as reader:  # an export shows records through the structure of their documents
        assert lines(tmp_path / "jsonl") == [json.loads(encode_line(page)) for page in reader.pages()]
    texts = {line["page_id"]: line["text"] for line in lines(parsed / "parsed_texts.jsonl")}
    rows = pq.read_table(tmp_path / "parquet").to_pylist()
    assert {row["page_id"]: row["text"] for row in rows} == texts
    assert {row["page_key"] for row in rows} == {record["page_key"] for record in records}
    documents = sorted((parsed / "documents").glob("*.md"))
    assert len(documents) == 3
    for document in documents:
        exported = (tmp_path / "markdown" / document.name).read_text(encoding="utf-8")
        assert exported == document.read_text(encoding="utf-8").replace("](../crops/", "](crops/")
        name = document.with_suffix(".json").name
        assert (tmp_path / "docjson" / name).read_bytes() == (parsed / "documents" / name).read_bytes()
        html = (tmp_path / "html" / "documents" / f"{document.stem}.html").read_text(encoding="utf-8")
        assert ("Chapter" in html) == (document.stem == "first")


@pytest.mark.slow
def test_exports_of_a_run_that_is_being_written_and_then_killed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(out)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "going\n"
        before = 0
        for number in range(4):
            target = tmp_path / f"{number}.jsonl"
            result = pagemill("export", out, "-f", "jsonl", "-o", target)
            assert result.returncode == 0, result.stderr
            indices = [record["page_idx"] for record in lines(target)]
            assert indices == list(range(len(indices)))  # none twice, none left out, none torn
            assert len(indices) > before
            before = len(indices)
        result = pagemill("export", out, "-f", "html", "-o", tmp_path / "html")
        assert result.returncode == 0, result.stderr  # every crop of a record is there before it
        status = json.loads(pagemill("status", out, "--json").stdout)
        assert status["state"] == "running"
        assert status["process"]["pid"] == writer.pid
        assert status["pages"]["done"] >= before
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    status = json.loads(pagemill("status", out, "--json").stdout)
    assert (status["state"], status["process"]) == ("cut off", None)
    assert pagemill("export", out, "-f", "jsonl", "-o", tmp_path / "last.jsonl").returncode == 0
    assert len(lines(tmp_path / "last.jsonl")) == status["pages"]["done"]


@pytest.mark.slow
def test_watching_ends_with_the_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(out)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "going\n"
        command = [sys.executable, "-m", "pagemill", "status", str(out), "--watch", "--interval", "0.2"]
        watcher = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        assert watcher.stdout is not None
        assert watcher.stdout.readline().startswith("running: ")
    finally:
        writer.kill()
        writer.wait()
    shown, _ = watcher.communicate(timeout=PATIENCE_S)
    assert watcher.returncode == 0
    assert "cut off" in shown


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    """Ten times the pages (25 MB of records and more) may not take as much as they weigh."""
    text = "the mill turns " * 600
    formats = ("jsonl", "markdown", "html", "parquet")
    script = (
        "import sys\nfrom pathlib import Path\nfrom pagemill.cli import cli\n"
        "import pagemill.export.parquet as parquet\nparquet.ROW_GROUP_PAGES = 25\n"
        f"for name in {formats}:\n"
        "    cli.main([*sys.argv[1:], '-f', name, '-o', f'{sys.argv[2]}-{name}'], standalone_mode=False)\n"
        "    status = Path('/proc/self/status').read_text().split()\n"
        "    print(status[status.index('VmHWM:') + 1])"
    )
    peaks: list[list[int]] = []
    for pages in (100, 1000):
        out = tmp_path / str(pages)
        write_run(
            out,
            (page(f"d{n // 50}", n % 50 + 1, [region(0, Label.TEXT, text)] * 3) for n in range(pages)),
            finish=False,
        )
        command = [sys.executable, "-c", script, "export", str(out), "-q"]
        run = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        peaks.append([int(line) // 1024 for line in run.stdout.split()])
    assert (tmp_path / "1000" / "ocr_results.jsonl").stat().st_size > 25e6
    for name, small, large in zip(formats, *peaks, strict=True):  # each is the highest of its format and those before
        assert large - small < 12, (name, small, large)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_the_html_in_a_browser(tmp_path: Path) -> None:
    write_run(tmp_path / "run", sample_pages())
    picture = next((tmp_path / "run" / "crops").iterdir())
    assert pagemill("export", tmp_path / "run", "-f", "html").returncode == 0
    folder = tmp_path / "run-html"
    Image.new("RGB", (60, 40), "red").save(folder / "crops" / picture.name)
    with Chromium(tmp_path / "profile", width=900) as browser:
        browser.open(folder / "index.html")
        browser.click("a")
        browser.wait_for("document.querySelector('h1')?.textContent === 'Mills & <Machines>'")
        browser.wait_for("document.querySelector('img').complete")
        assert browser.evaluate("document.querySelector('img').naturalWidth") == 60
        assert browser.evaluate("getComputedStyle(document.querySelector('.page'), '::before').content") == '"1"'
        assert browser.evaluate("document.querySelectorAll('table tr').length") == 3
        marks, left = browser.evaluate(
            "[[...document.querySelectorAll('.page')].map((mark) => mark.dataset.page),"
            " document.querySelector('p').getBoundingClientRect().left]"
        )
        assert marks == ["1", "2", "3"]
        assert left > 40  # the marks stand in the margin
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.resize(360, 700, mobile=True)
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert browser.console == []


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [page("d", n, [region(0, Label.TEXT, "x" * 5000)]) for n in range(1, 60)])
    command = [sys.executable, "-m", "pagemill", "export", str(tmp_path / "run"), "-f", "jsonl", "-o", "-", "-q"]
    export = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert export.stdout is not None
    assert export.stderr is not None
    assert export.stdout.readline().startswith(b"{")
    export.stdout.close()
    assert export.stderr.read() == b""
    assert export.wait(PATIENCE_S) == 0


@pytest.mark.slow
def test_an_export_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    write_run(
        tmp_path / "run", [page("d", n, [region(0, Label.TEXT, "x" * 9000)]) for n in range(1, 1500)], finish=False
    )
    export = forked_command.ForkedCommand("export", tmp_path / "run", "-f", "docjson", env=ENVIRONMENT)
    end = time.monotonic() + PATIENCE_S
    while not list(tmp_path.glob("run-docjson.*")) and time.monotonic() < end and export.returncode is None:
        time.sleep(0.005)
    export.send_signal(signal.SIGINT)
    _, errors = export.communicate()
    left = sorted(path.name for path in tmp_path.iterdir())
    if export.returncode == 0:  # it was done before the signal came
        assert left == ["run", "run-docjson"]
    else:
        assert export.returncode == ExitCode.INTERRUPTED
        assert "Interrupted" in errors
        assert left == ["run"]


@pytest.mark.slow
def test_docling_gets_the_images_of_the_pages(parsed: Path, tmp_path: Path) -> None:
    from docling_core.types.doc.document import DoclingDocument  # costs each process that collects tests a second

    target = tmp_path / "docling"
    done = pagemill("export", parsed, "--format", "doclingdocument", "--with-page-images", "-o", target)
    assert done.returncode == ExitCode.OK, done.stderr
    document = DoclingDocument.load_from_json(target / "first.json")
    document.load_local_images(base_dir=target)
    image = document.pages[2].image
    assert image is not None and image.pil_image.size == image.size.as_tuple()
    assert document.texts[0].get_image(document).size[0] < image.size.width


@pytest.mark.slow
def test_pages_whose_images_are_gone_are_no_export(parsed: Path, tmp_path: Path) -> None:
    options = ("--with-page-images", "--input", tmp_path, "-o", tmp_path / "docling")
    done = pagemill("export", parsed, "--format", "doclingdocument", *options)
    assert done.returncode == ExitCode.INPUT and "--input" in done.stderr and not (tmp_path / "docling").exists()
