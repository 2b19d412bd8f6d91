"""``pagemill.parse`` and ``pagemill.stream`` as a user's script sees them."""

import asyncio
import io
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageDraw, ImageFont
from test_bad_input_decoding import encrypted_pdf, faulty_worker, make_pdf

import pagemill
from pagemill.document.labels import Label
from pagemill.document.page import Status
from pagemill.errors import EncryptedError, InputError, LanguageError, MissingInputError, NetworkError, UsageError
from pagemill_bench.testing.stub_server import StubServer, StubSettings

pytestmark = pytest.mark.integration

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def png(tmp_path_factory: pytest.TempPathFactory) -> Path:
    image = Image.new("RGB", (500, 120), "white")
    ImageDraw.Draw(image).text((20, 40), "alpha", fill="black", font=ImageFont.load_default(30))
    path = tmp_path_factory.mktemp("api") / "alpha.png"
    image.save(path)
    return path


def test_every_kind_of_source_gives_the_same_document(png: Path):
    with png.open("rb") as file, Image.open(png) as image:
        data = png.read_bytes()
        sources = [png, str(png), data, bytearray(data), file, image, np.asarray(image)]
        assert [document.markdown for document in pagemill.parse_many(sources)] == ["alpha\n"] * len(sources)
    assert pagemill.parse(png).doc_id == "alpha"
    assert pagemill.parse(data).source == "<bytes>"
    for wrong in (7, io.StringIO("text"), np.zeros((3, 3, 3, 3))):
        with pytest.raises(UsageError):
            pagemill.parse(wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_document_is_saved_with_the_pictures_its_markdown_shows(tmp_path: Path):
    document = pagemill.parse(SAMPLES / "report.pdf")
    assert [page.page_number for page in document.pages] == list(range(1, len(document.pages) + 1))
    assert document.crops
    assert set(document.crops) == {crop.path for page in document.pages for crop in page.image_crops}
    markdown = document.save(tmp_path / "new" / "folder")
    assert markdown.read_text(encoding="utf-8") == document.markdown
    assert (markdown.parent / "report.json").read_text(encoding="utf-8") == document.to_json()
    shown = [crop.path for page in document.pages for crop in page.image_crops if crop.label is Label.IMAGE]
    assert shown
    assert all(f"({path})" in document.markdown for path in shown)
    for path in document.crops:
        with Image.open(markdown.parent / path) as image:
            assert image.format == "JPEG"
    assert not pagemill.parse(SAMPLES / "report.pdf", pages="1", crops=False).crops


@pytest.mark.slow
def test_what_cannot_be_opened_raises(png: Path, tmp_path: Path):
    locked = tmp_path / "locked.pdf"
    locked.write_bytes(encrypted_pdf(b"sesame"))
    with pytest.raises(MissingInputError, match=r"nope\.pdf"):
        pagemill.parse(tmp_path / "nope.pdf")
    with pytest.raises(EncryptedError) as caught:
        pagemill.parse(locked)
    assert caught.value.remedy == 'Pass its password with password="…".'
    with pytest.raises(InputError):
        pagemill.parse(b"")
    with pytest.raises(LanguageError, match="xx"):
        pagemill.parse(png, languages=["xx"])
    with pytest.raises(UsageError, match="languages"):
        pagemill.parse(png, languages="ko")
    with pytest.raises(UsageError, match="more than one"):
        (tmp_path / "beta.png").write_bytes(png.read_bytes())
        (tmp_path / "gamma.png").write_bytes(png.read_bytes())
        pagemill.parse(tmp_path / "*.png")
    with pytest.raises(UsageError, match="is a folder"):
        pagemill.parse(tmp_path)
    assert len(pagemill.parse(locked, password="sesame").pages) == 1


def test_a_page_that_fails_is_in_the_document(png: Path):
    document = pagemill.parse(png.read_bytes()[:800])
    assert document.pages[0].status is Status.FAILED
    assert [(number, error.category) for number, error in document.errors] == [(1, "corrupt")]


@pytest.mark.slow
def test_a_page_that_crashes_its_decoder_is_tried_again_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    worker = faulty_worker(tmp_path)
    monkeypatch.setattr("pagemill.runtime.decoding.module_command", lambda module: worker)
    pdf = make_pdf(tmp_path / "five.pdf")
    document = pagemill.parse(pdf, pages="1,2,4-")
    ends = {page.page_number: (page.status.value, page.attempts) for page in document.pages}
    assert ends == {1: ("done", 1), 2: ("failed", 2), 4: ("done", 2), 5: ("done", 1)}
    assert [(number, error.category) for number, error in document.errors] == [(2, "crash")]
    (tmp_path / "once").unlink()
    document = pagemill.parse(pdf, pages="4", max_attempts=1)
    assert [(page.status.value, page.attempts) for page in document.pages] == [("failed", 1)]
    with pytest.raises(UsageError, match="max_attempts"):
        pagemill.parse(pdf, max_attempts=0)


@pytest.mark.slow
def test_many_documents_come_one_by_one(png: Path, tmp_path: Path):
    given = [png, SAMPLES / "report.pdf", tmp_path / "nope.pdf"]
    documents = {document.doc_id: document for document in pagemill.parse_many(given, crops=False)}
    assert {name: len(document.pages) for name, document in documents.items()} == {"alpha": 1, "report": 2, "nope": 1}
    assert [error.category for _, error in documents["nope"].errors] == ["missing"]
    early = pagemill.parse_many([png] * 3)
    assert next(early).markdown == "alpha\n"
    early.close()


async def test_the_twins_for_event_loops(png: Path):
    assert (await pagemill.aparse(png)).markdown == "alpha\n"
    assert [document.doc_id async for document in pagemill.aparse_many([png])] == ["alpha"]
    assert len(list(pagemill.parse_many(png))) == 1  # with a loop that runs


@pytest.mark.slow
def test_wrong_calls_fail_under_mypy(tmp_path: Path):
    (tmp_path / "user.py").write_text(
        textwrap.dedent("""
        import io
        import pagemill

        async def right() -> None:
            document: pagemill.Document = pagemill.parse("a.pdf", pages="1", crops=False)
            print(document.markdown.upper(), document.tables[0].rows, document.links[0].target)
            pagemill.parse(io.BytesIO(b""), languages=["ko"])
            async for page in pagemill.stream(["a.pdf", b""], recursive=True):
                print(page.page_id.upper())
            for each in pagemill.parse_many(["a.pdf"], crops=True):
                print(each.doc_id.upper())
            print((await pagemill.aparse(b"")).doc_id)

        def wrong() -> None:
            pagemill.parse("a.pdf", page="1")
            pagemill.parse("a.pdf", pages=1)
            pagemill.parse(7)
            pagemill.parse("a.pdf").text
            pagemill.stream("a.pdf", crops=True)
            pagemill.parse_many("a.pdf", threads="2")
        """)
    )
    source = str(Path(pagemill.__file__).parents[1])
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        str(tmp_path / "cache"),
        "--follow-imports=silent",
        "user.py",
    ]
    ended = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "MYPYPATH": source}, capture_output=True, text=True
    )
    wrong = [line.partition(": error:") for line in ended.stdout.splitlines() if ": error:" in line]
    assert {place for place, _, _ in wrong} == {f"user.py:{number}" for number in range(16, 22)}, ended.stdout


async def test_parse_works_inside_a_running_loop(png: Path):
    assert pagemill.parse(png).markdown == "alpha\n"
    with pytest.raises(MissingInputError):
        pagemill.parse(png.with_name("nope.png"))


@pytest.mark.slow
def test_parse_works_in_several_threads(png: Path):
    with ThreadPoolExecutor(3) as threads:
        documents = list(threads.map(pagemill.parse, [png] * 3))
    assert [document.markdown for document in documents] == ["alpha\n"] * 3


async def test_a_stream_gives_every_page_of_every_input(png: Path, tmp_path: Path):
    pages = [page async for page in pagemill.stream([png, png.read_bytes(), tmp_path / "nope.pdf"])]
    assert sorted((page.doc_id, page.status.value) for page in pages) == [
        ("alpha", "done"),
        ("document", "done"),
        ("nope", "failed"),
    ]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_leaving_a_stream_early_leaves_nothing_behind(png: Path, tmp_path: Path):
    document = pdfium.PdfDocument.new()
    document.new_page(100, 100)
    document.save(tmp_path / "one.pdf")
    inputs = [str(tmp_path / "one.pdf"), *[str(png)] * 8]
    script = tmp_path / "script.py"  # without a __main__ guard, as scripts are
    script.write_text(
        textwrap.dedent(f"""
        import asyncio, gc, os, threading
        from pathlib import Path
        import pagemill

        def state():
            gc.collect()  # pixels of pages that were cancelled may hang in cycles of tracebacks
            children = Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()
            return len(os.listdir("/proc/self/fd")), threading.active_count(), children

        async def first(seen, leave):
            async for page in pagemill.stream({inputs!r}, text_layer="never"):
                seen.set()
                if leave == "break":
                    break

        async def main(leave):
            seen = asyncio.Event()
            task = asyncio.create_task(first(seen, leave))
            await seen.wait()
            if leave == "cancel":
                task.cancel()
            await asyncio.wait({{task}})

        asyncio.run(main("break"))  # once for what libraries open and keep
        before = state()
        for leave in ("break", "cancel"):
            asyncio.run(main(leave))
            assert state() == before, (leave, before, state())
        assert not before[2], before
        print("clean")
        """)
    )
    strict = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", str(script)]
    ended = subprocess.run(strict, capture_output=True, text=True, timeout=120)
    assert ended.stdout == "clean\n", ended.stderr
    for trouble in ("Traceback", "ResourceWarning", "was destroyed", "never awaited", "never retrieved"):
        assert trouble not in ended.stderr


@pytest.mark.slow
async def test_the_decoding_processes_end_with_the_stream(png: Path, monkeypatch: pytest.MonkeyPatch):
    from pagemill.runtime.decoding import DecodingProcess

    started: list[DecodingProcess] = []
    receive = DecodingProcess.receive

    def noting(self: DecodingProcess) -> object:
        started.append(self)
        return receive(self)

    monkeypatch.setattr(DecodingProcess, "receive", noting)
    pages = pagemill.stream(SAMPLES / "report.pdf")
    await anext(pages)
    assert started
    await pages.aclose()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert all(process._process.returncode is not None for process in started)


async def test_a_model_behind_a_server_reads_regions(png: Path):
    async with StubServer(StubSettings(model="glm-ocr", text="a **word**")) as server:
        recognition = pagemill.RecognitionSettings(engine="vlm", servers=(server.url,))
        document = await asyncio.to_thread(pagemill.parse, png, recognition=recognition)
        assert document.markdown == "a **word**\n"
        assert document.pages[0].regions[0].engine == "vlm:glm-ocr"
        streamed = [page.markdown async for page in pagemill.stream(png, recognition=recognition)]
        assert streamed == ["a **word**"]
    with pytest.raises(UsageError, match="languages apply to line recognition"):
        pagemill.parse(png, recognition=recognition, languages=["en"])


def test_without_a_server_parse_raises(png: Path):
    recognition = pagemill.RecognitionSettings(engine="vlm", servers=("http://127.0.0.1:9",), server_wait_s=0.2)
    with pytest.raises(NetworkError):
        pagemill.parse(png, recognition=recognition)
