"""The decoding service with real processes: crashes, hangs, bad PDFs, and that nothing is left behind."""

import asyncio
import os
import re
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import made_pdfs
import numpy as np
import pypdfium2 as pdfium
import pytest
from pagemill_process import wait_for
from PIL import Image

from pagemill.errors import (
    CorruptInputError,
    EncryptedError,
    InputError,
    MissingInputError,
    PagemillError,
    PageTimeoutError,
    UnsupportedInputError,
    WorkerCrashError,
)
from pagemill.imaging.decode import decode_image, stored_pixels
from pagemill.runtime.decoding import DecodingProcess, DecodingService
from pagemill.runtime.threads import ComputeThreads
from pagemill.sources.base import EncodedImage, PdfPage

pytestmark = pytest.mark.integration

FAULTY_WORKER = """
import os, signal, sys, time
sys.path[:0] = {path!r}
from pagemill.runtime import decoder_worker
from pagemill.runtime.decoding_protocol import Render

class Faulty(decoder_worker.Worker):
    def answer(self, request):
        if not isinstance(request, Render) and os.path.exists({describe!r}):
            os.unlink({describe!r})
            os._exit(7)
        if isinstance(request, Render):
            print("noise of a library", flush=True)
            if request.page_index == 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            if request.page_index == 2 and not os.path.exists({stop!r}):
                open({hangs!r}, "w").close()
                time.sleep(3600)
            if request.page_index == 3 and not os.path.exists({once!r}):
                open({once!r}, "w").close()
                sys.stderr.write("out of luck\\n")
                os._exit(7)
        return super().answer(request)

decoder_worker.Worker = Faulty
decoder_worker.main()
"""


def make_pdf(path: Path, pages: int = 5, size: tuple[float, float] = (300, 400)) -> Path:
    document = pdfium.PdfDocument.new()
    for _ in range(pages):
        document.new_page(*size)
    document.save(path)
    document.close()
    return path


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    return make_pdf(tmp_path / "five.pdf")


def faulty_worker(folder: Path) -> list[str]:
    """The command of a worker that dies on page 2, hangs on page 3, and dies once on page 4."""
    script = folder / "faulty.py"
    state = {name: str(folder / name) for name in ("once", "describe", "hangs")}
    state["stop"] = str(folder / "stop-hanging")
    script.write_text(FAULTY_WORKER.format(path=sys.path, **state))
    return [sys.executable, str(script)]


@pytest.fixture
def faulty(tmp_path: Path) -> list[str]:
    return faulty_worker(tmp_path)


async def test_pages_come_as_pixels(pdf: Path):
    async with DecodingService(workers=1) as service:
        info = await service.probe_pdf(pdf)
        page = await service.decode(PdfPage(path=pdf, page_index=4))
    assert info.page_count == 5
    assert info.sizes[0] == (300, 400)
    assert page.pixels.shape == (1111, 833, 3)
    assert page.pixels.min() == 255
    page.pixels[0, 0] = 0  # the memory outlives the process and may be written to
    assert page.dpi == 200


async def test_a_crash_fails_its_page_alone(pdf: Path, faulty: list[str]):
    async with DecodingService(workers=2, command=faulty) as service:
        pages = [service.decode(PdfPage(path=pdf, page_index=index)) for index in (0, 1, 3, 4)]
        results = await asyncio.gather(*pages, return_exceptions=True)
        for index, reason in ((1, "SIGSEGV"), (2, "out of luck")):
            assert isinstance(results[index], WorkerCrashError)
            assert reason in results[index].message
            assert results[index].remedy
            assert results[index].retryable
        for index in (0, 3):
            assert isinstance(results[index].pixels, np.ndarray)
        again = await service.decode(PdfPage(path=pdf, page_index=3))
        assert isinstance(again.pixels, np.ndarray)


@pytest.mark.slow
async def test_a_crash_while_a_document_is_opened_is_tried_once_more(pdf: Path, faulty: list[str], tmp_path: Path):
    async with DecodingService(workers=1, command=faulty) as service:
        (tmp_path / "describe").touch()
        assert (await service.probe_pdf(pdf)).page_count == 5
        assert not (tmp_path / "describe").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems want UTF-8 names")
async def test_a_file_name_that_is_no_utf8(pdf: Path):
    odd = pdf.with_name(os.fsdecode(b"f\xffve.pdf"))
    pdf.rename(odd)
    async with DecodingService(workers=1) as service:
        assert (await service.probe_pdf(odd)).page_count == 5
        assert (await service.decode(PdfPage(path=odd, page_index=0))).pixels.size
        broken = pdf.with_name(os.fsdecode(b"br\xffken.pdf"))
        broken.write_bytes(b"%PDF-1.7 broken")
        with pytest.raises(CorruptInputError, match="damaged"):
            await service.probe_pdf(broken)


async def test_a_hang_ends_at_the_time_limit(pdf: Path, faulty: list[str]):
    async with DecodingService(workers=1, command=faulty, timeout_s=3.0) as service:
        with pytest.raises(PageTimeoutError, match="page 3 took longer than 3 s") as caught:
            await service.decode(PdfPage(path=pdf, page_index=2))
        assert "--page-timeout" in str(caught.value.remedy)
        assert (await service.decode(PdfPage(path=pdf, page_index=0))).pixels.size


@pytest.mark.slow
async def test_time_limits_hold_when_other_work_has_all_threads_of_the_event_loop(pdf: Path, faulty: list[str]):
    none_free = ThreadPoolExecutor(1)
    none_free.shutdown()  # a request for a thread fails, instead of waiting for ever
    asyncio.get_running_loop().set_default_executor(none_free)
    async with DecodingService(workers=2, command=faulty, timeout_s=3.0) as service:
        hanging = [service.decode(PdfPage(path=pdf, page_index=2)) for _ in range(3)]
        errors = await asyncio.gather(*hanging, return_exceptions=True)
        assert [type(error) for error in errors] == [PageTimeoutError] * 3
        assert (await service.decode(PdfPage(path=pdf, page_index=0))).pixels.size


def test_what_a_process_says_without_end_takes_little_memory():
    script = "import os\nfor _ in range(64): os.write(2, b'x' * 2**20)\nos.write(2, b'\\nout of luck')"
    process = DecodingProcess([sys.executable, "-c", script], 2**30)
    tracemalloc.start()
    try:
        with pytest.raises(WorkerCrashError, match="out of luck"):
            process.receive()
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("stage", "honest"), [("stored_pixels", stored_pixels), ("decode_image", decode_image)])
async def test_an_image_that_hangs_in_its_decoder_costs_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, honest: Callable[..., object]
):
    Image.new("RGB", (40, 30)).save(tmp_path / "good.png")
    Image.new("RGB", (40, 30)).save(tmp_path / "hangs.png")
    release = threading.Event()

    def hang(source: Path, **more: object) -> object:
        if source.stem == "hangs":
            release.wait(60)
        return honest(source, **more)

    monkeypatch.setattr(f"pagemill.runtime.decoding.{stage}", hang)
    threads = ComputeThreads(1, name="test", grace_s=0.05)
    async with DecodingService(threads=threads, timeout_s=3.0) as service:
        with pytest.raises(PageTimeoutError, match=r"decoding hangs\.png took longer than 3 s"):
            await service.decode(EncodedImage(source=tmp_path / "hangs.png"))
        assert (await service.decode(EncodedImage(source=tmp_path / "good.png"))).pixels.shape == (30, 40, 3)
        assert threads.stuck.is_set()
    release.set()


@pytest.mark.slow
async def test_giving_up_on_a_page_frees_its_process(pdf: Path, faulty: list[str], tmp_path: Path):
    async with DecodingService(workers=1, command=faulty) as service:
        task = asyncio.create_task(service.decode(PdfPage(path=pdf, page_index=2)))
        await asyncio.to_thread(wait_for, (tmp_path / "hangs").exists, "the page to be asked for")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await service.decode(PdfPage(path=pdf, page_index=0))).pixels.size


async def test_a_worker_that_does_not_start_is_explained(pdf: Path):
    command = [sys.executable, "-c", "import sys; sys.exit('no such module')"]
    async with DecodingService(workers=1, command=command) as service:
        with pytest.raises(WorkerCrashError, match="no such module"):
            await service.probe_pdf(pdf)


def flate_bomb(size: int) -> bytes:
    """A PDF of less than 1,000 bytes whose page content has ``size`` bytes when it is unpacked."""
    packer = zlib.compressobj(9)
    block = bytes(2**24)
    content = b"".join([packer.compress(block) for _ in range(size // len(block))]) + packer.flush()
    content = zlib.compress(zlib.compress(content, 9), 9)
    filters = b"/Filter[" + b"/FlateDecode" * 3 + b"]"
    stream = b"4 0 obj<<" + filters + b"/Length %d>>stream\n" % len(content) + content + b"\nendstream endobj\n"
    head, _, tail = page_pdf(b"/MediaBox[0 0 600 800]/Contents 4 0 R").partition(b"4 0 obj")
    return head + stream + tail[tail.index(b"trailer") :]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="address space limits are Linux's")
async def test_a_pdf_that_unpacks_to_gigabytes_is_contained(tmp_path: Path):
    path = tmp_path / "bomb.pdf"
    path.write_bytes(flate_bomb(2**30))
    assert path.stat().st_size < 1_000
    async with DecodingService(workers=1, memory=512 * 2**20) as service:
        with pytest.raises(PagemillError, match="memory limit") as caught:
            await service.decode(PdfPage(path=path, page_index=0))
    assert "--decoder-memory" in str(caught.value.remedy)
    assert DecodingService()._memory == 2 * 2**30


def huge_png(path: Path, side: int) -> Path:
    """A white square of 16-bit grey samples; some hundred kilobytes for hundreds of megapixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    packer, row = zlib.compressobj(1), b"\0" + b"\xff" * (2 * side)
    data = b"".join([packer.compress(row) for _ in range(side)]) + packer.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", data) + chunk(b"IEND", b""))
    return path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory in KiB")
@pytest.mark.parametrize("payload", ["path", "path.read_bytes()"])
def test_a_huge_image_takes_little_memory(tmp_path: Path, payload: str):
    path = huge_png(tmp_path / "huge.png", 12_000)
    script = f"""
        import asyncio, resource, sys
        sys.path[:] = {sys.path!r}
        from pathlib import Path
        from pagemill.runtime.decoding import DecodingService
        from pagemill.sources.base import EncodedImage
        async def main():
            path = Path({str(path)!r})
            async with DecodingService(workers=1) as service:
                page = await service.decode(EncodedImage(source={payload}))
                print(*page.pixels.shape, page.pixels.min(), page.scale, *page.notes, sep="|")
        asyncio.run(main())
        status = Path("/proc/self/status").read_text().split()
        own = int(status[status.index("VmHWM:") + 1])  # ru_maxrss would hold that of the process that runs the tests
        print(own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    page, peak = shown.stdout.splitlines()
    assert page == f"5000|5000|3|255|{5 / 12}|decoded at 0.417 of its 12000 x 12000 pixels"
    assert int(peak) < 700 * 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_process_that_keeps_much_memory_is_replaced(pdf: Path, tmp_path: Path):
    script = tmp_path / "hoarder.py"
    script.write_text(
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from pagemill.runtime import decoder_worker\n"
        "render, kept = decoder_worker.render_page, []\n"
        "def hoard(document, index, *more):\n"
        "    kept.append(b'x' * (300 * 2**20 if index == 1 else 1))\n"
        "    return render(document, index, *more)\n"
        "decoder_worker.render_page = hoard\n"
        "decoder_worker.main()\n"
    )
    async with DecodingService(workers=1, command=[sys.executable, str(script)]) as service:
        seen = []
        for index in (0, 2, 1, 0):
            before = children()
            assert (await service.decode(PdfPage(path=pdf, page_index=index))).pixels.size
            seen.append((len(children() - before), len(before - children())))
    assert seen == [(1, 0), (0, 0), (0, 1), (1, 0)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="address space limits are Linux's")
def test_a_lower_limit_of_the_user_is_kept(pdf: Path):
    script = f"""
        import asyncio, resource, sys
        sys.path[:] = {sys.path!r}
        from pathlib import Path
        from pagemill.runtime.decoding import DecodingService
        from pagemill.sources.base import PdfPage
        async def main():
            async with DecodingService(workers=1) as service:
                page = await service.decode(PdfPage(path=Path({str(pdf)!r}), page_index=0))
                print(page.pixels.shape)
                print(open(f"/proc/{{service._idle[0].pid}}/limits").read())
        limit = 1_800_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))  # ulimit -v
        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    assert "(1111, 833, 3)" in shown.stdout
    assert re.search(r"Max address space +1800000000 +1800000000", shown.stdout)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_nothing_is_left_behind(pdf: Path, faulty: list[str]):
    async def run() -> None:
        async with DecodingService(workers=2, command=faulty, timeout_s=1.0) as service:
            pages = [service.decode(PdfPage(path=pdf, page_index=index)) for index in (0, 1, 2, 3, 4)]
            await asyncio.gather(*pages, return_exceptions=True)

    await run()  # the first time opens what stays open for good (event loop, executors)
    before, processes = descriptors(), children()
    await run()
    assert children() <= processes
    assert descriptors() <= before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_whole_run_leaves_the_decoders_to_their_parent(pdf: Path, number: signal.Signals):
    async with DecodingService(workers=1) as service:
        before = children()
        assert (await service.decode(PdfPage(path=pdf, page_index=0))).pixels.size
        (decoder,) = children() - before
        os.kill(decoder, number)
        assert (await service.decode(PdfPage(path=pdf, page_index=1))).pixels.size
        assert children() - before == {decoder}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_decoder_that_another_process_kills_costs_the_page_nothing(
    pdf: Path, faulty: list[str], tmp_path: Path
):
    async with DecodingService(workers=1, command=faulty, timeout_s=20.0) as service:
        before = children()
        page = asyncio.create_task(service.decode(PdfPage(path=pdf, page_index=2)))
        await asyncio.to_thread(wait_for, (tmp_path / "hangs").exists, "the page to be asked for")
        (tmp_path / "stop-hanging").touch()
        (decoder,) = children() - before
        os.kill(decoder, signal.SIGKILL)
        assert (await page).pixels.size


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_processes_die_with_their_parent(pdf: Path):
    script = f"""
        import asyncio, sys
        sys.path[:] = {sys.path!r}
        from pathlib import Path
        from pagemill.runtime.decoding import DecodingService
        async def main():
            async with DecodingService(workers=1) as service:
                await service.probe_pdf(Path({str(pdf)!r}))
                print(service._idle[0].pid, flush=True)
                await asyncio.sleep(3600)
        asyncio.run(main())
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{worker}/cmdline").exists() and Path(f"/proc/{worker}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.02)


def encrypted_pdf(password: bytes) -> bytes:
    """An empty page under the standard security handler, revision 2 (RC4, 40 bits; PDF 1.7, section 7.6)."""
    import hashlib

    padding = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")

    def rc4(key: bytes, data: bytes) -> bytes:
        state, j, out = list(range(256)), 0, bytearray()
        for i in range(256):
            j = (j + state[i] + key[i % len(key)]) % 256
            state[i], state[j] = state[j], state[i]
        i = j = 0
        for byte in data:
            i = (i + 1) % 256
            j = (j + state[i]) % 256
            state[i], state[j] = state[j], state[i]
            out.append(byte ^ state[(state[i] + state[j]) % 256])
        return bytes(out)

    padded = (password + padding)[:32]
    owner = rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + (-4 & 0xFFFFFFFF).to_bytes(4, "little") + b"0123456789abcdef").digest()[:5]
    user = rc4(key, padding)
    security = b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (owner.hex().encode(), user.hex().encode())
    return made_pdfs.pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 300]>>",
        security,
        trailer=b"/Encrypt 4 0 R/ID[<%s><00>]" % b"0123456789abcdef".hex().encode(),
    )


def page_pdf(page: bytes, root: bytes = b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n") -> bytes:
    return (
        b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        + root
        + b"3 0 obj<</Type/Page/Parent 2 0 R"
        + page
        + b">>endobj\n4 0 obj<</Length 34>>stream\n1 0 0 rg 0 0 50 50 re f            \nendstream endobj\n"
        b"trailer<</Root 1 0 R/Size 5>>\n%%EOF\n"
    )


async def test_a_password_meant_for_other_files_does_not_lock_one_that_needs_none(tmp_path: Path):
    path = tmp_path / "protected.pdf"  # its owner's password guards printing and copying; reading needs none
    path.write_bytes(encrypted_pdf(b""))
    async with DecodingService(workers=1) as service:
        assert (await service.probe_pdf(path)).page_count == 1
        assert (await service.probe_pdf(path, "sesame")).page_count == 1


async def test_passwords(tmp_path: Path):
    path = tmp_path / "secret.pdf"
    path.write_bytes(encrypted_pdf(b"sesame"))
    async with DecodingService(workers=1) as service:
        with pytest.raises(EncryptedError, match="is encrypted") as missing:
            await service.probe_pdf(path)
        with pytest.raises(EncryptedError, match="wrong"):
            await service.probe_pdf(path, "open")
        assert "--password" in str(missing.value.remedy)
        assert (await service.probe_pdf(path, "sesame")).page_count == 1
        assert (await service.decode(PdfPage(path=path, page_index=0, password="sesame"))).pixels.size


async def test_files_that_are_no_good(tmp_path: Path, pdf: Path):
    cases: list[tuple[bytes | None, type[InputError]]] = [
        (None, MissingInputError),
        (b"", CorruptInputError),
        (b"just text", UnsupportedInputError),
        (b"%PDF-1.7\nnothing more", CorruptInputError),
        (page_pdf(b"", root=b"2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"), InputError),
    ]
    async with DecodingService(workers=1) as service:
        for number, (content, error) in enumerate(cases):
            path = tmp_path / f"case{number}.pdf"
            if content is not None:
                path.write_bytes(content)
            with pytest.raises(error) as caught:
                await service.probe_pdf(path)
            assert path.name in caught.value.message
        with pytest.raises(InputError, match="no page 6"):
            await service.decode(PdfPage(path=pdf, page_index=5))
        cut = tmp_path / "cut.pdf"
        cut.write_bytes(pdf.read_bytes()[: pdf.stat().st_size // 3])
        with pytest.raises(InputError):
            await service.decode(PdfPage(path=cut, page_index=4))


@pytest.mark.slow
async def test_boxes_and_rotation(tmp_path: Path):
    cases = (
        (b"/MediaBox[0 0 100 200]/Contents 4 0 R", (1000, 500), (990, 10)),
        (b"/MediaBox[0 0 100 200]/Rotate 90/Contents 4 0 R", (500, 1000), (10, 10)),
        (b"/MediaBox[0 0 100 200]/Rotate -90/Contents 4 0 R", (500, 1000), (490, 990)),
        (b"/MediaBox[100 200 0 0]/Contents 4 0 R", (1000, 500), (990, 10)),
        (b"/MediaBox[-100 -100 100 100]/CropBox[-50 -50 50 50]/Contents 4 0 R", (1000, 1000), (490, 510)),
        (b"/MediaBox[0 0 10 20]/UserUnit 10/Contents 4 0 R", (1000, 500), (990, 10)),
    )
    async with DecodingService(workers=1) as service:
        for number, (page, shape, red) in enumerate(cases):
            path = tmp_path / f"{number}.pdf"
            path.write_bytes(page_pdf(page))
            decoded = await service.decode(PdfPage(path=path, page_index=0))
            assert decoded.pixels.shape == (*shape, 3), page
            assert decoded.pixels[red].tolist() == [255, 0, 0], page


@pytest.mark.slow
async def test_absurd_pages_end_well(tmp_path: Path):
    boxes = (b"0 0 0 0", b"5 5 5 300", b"0 0 1e30 1e30", b"0 0 200000 200000", b"0 0 14400 0.01")
    async with DecodingService(workers=1) as service:
        for number, box in enumerate(boxes):
            path = tmp_path / f"{number}.pdf"
            path.write_bytes(page_pdf(b"/MediaBox[" + box + b"]/Contents 4 0 R"))
            try:
                page = await service.decode(PdfPage(path=path, page_index=0))
            except InputError:
                continue
            height, width = page.pixels.shape[:2]
            assert 1 <= height * width <= service.limits.max_pixels * 1.01, box


@pytest.mark.slow
@pytest.mark.skipif("PAGEMILL_TEST_DATA" not in os.environ, reason="needs PAGEMILL_TEST_DATA")
async def test_hard_documents_end_one_way_or_the_other():
    root = Path(os.environ["PAGEMILL_TEST_DATA"])
    paths = sorted([*root.glob("hard/*.pdf"), *root.glob("docling/*.pdf")])
    assert paths
    async with DecodingService(workers=2) as service:
        for path in paths:
            try:
                info = await service.probe_pdf(path)
            except (InputError, EncryptedError):
                assert path.stem in ("invalid", "password")
                continue
            page = await service.decode(PdfPage(path=path, page_index=info.page_count - 1))
            assert page.pixels.size
            assert page.text_layer is not None
