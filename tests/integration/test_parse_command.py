"""``pagemill parse`` as a process, for a user with bad luck: what it says, how it ends, and that nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageDraw, ImageFont
from test_bad_input_decoding import encrypted_pdf

from pagemill.errors import ExitCode

pytestmark = pytest.mark.integration

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
PATIENCE_S = 60
SAMPLES = Path(__file__).parents[2] / "samples"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "pagemill", "parse", *map(str, arguments)]


def parse(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True, "timeout": PATIENCE_S} | options
    return subprocess.run(command(*arguments), **options)


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "ocr_results.jsonl").read_text(encoding="utf-8").splitlines()]


def run_json(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
    return content


def all_once(out: Path, pages: int) -> bool:
    found = records(out)
    return sorted(record["page_idx"] for record in found) == list(range(pages)) and all(
        record["status"] == "done" for record in found
    )


def wait_for(event: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (value := event()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return value


def picture(text: str) -> Image.Image:
    image = Image.new("RGB", (500, 120), "white")
    ImageDraw.Draw(image).text((20, 40), text, fill="black", font=ImageFont.load_default(30))
    return image


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small good and bad files."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "sub").mkdir()
    picture("alpha").save(folder / "a.png")
    picture("beta").save(folder / "a.jpg")
    picture("gamma").save(folder / "sub" / "a.png")
    (folder / "empty.pdf").write_bytes(b"")
    (folder / "note.txt").write_text("no document")
    (folder / "cut.png").write_bytes((folder / "a.png").read_bytes()[:900])
    (folder / "locked.pdf").write_bytes(encrypted_pdf(b"sesame"))
    picture("tiff").save(folder / "many.tiff", save_all=True, append_images=[picture(f"page {n}") for n in range(80)])
    document, report = pdfium.PdfDocument.new(), pdfium.PdfDocument(SAMPLES / "report.pdf")
    for _ in range(4):
        document.import_pages(report, pages=[0, 1])
    document.save(folder / "eight.pdf")
    image = {"bytes": (folder / "a.png").read_bytes(), "path": None}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [image, {"bytes": b"junk", "path": None}, None]
    pq.write_table(pa.table({"id": ["r1", "r2", "r3"], "image": pa.array(rows, kind)}), folder / "rows.parquet")
    none = {"id": pa.array([], pa.string()), "image": pa.array([], kind)}
    pq.write_table(pa.table(none), folder / "none.parquet")
    return folder


CASES = [
    (["missing.pdf"], ExitCode.INPUT, "does not exist"),
    (["empty.pdf"], ExitCode.INPUT, "is empty"),
    (["note.txt"], ExitCode.INPUT, "Convert it to PDF"),
    (["cut.png"], ExitCode.INPUT, "truncated"),
    (["none.parquet"], ExitCode.INPUT, "hold no page"),
    (["locked.pdf"], ExitCode.ENCRYPTED, "--password"),
    (["locked.pdf", "--password", "open"], ExitCode.ENCRYPTED, "wrong"),
    (["locked.pdf", "--password", "sesame"], ExitCode.OK, "1 done"),
    (["rows.parquet"], ExitCode.PAGES_FAILED, "rows.parquet#2"),
    (["eight.pdf", "--pages", "90-"], ExitCode.INPUT, "has 8 pages"),
]


@pytest.mark.parametrize(("arguments", "code", "says"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_a_bad_input_gives_a_message_and_its_exit_code(
    inputs: Path, tmp_path: Path, arguments: list[str], code: ExitCode, says: str
):
    ended = parse(*arguments, "-o", tmp_path / "out", cwd=inputs)
    assert ended.returncode == code, ended.stderr
    assert says in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    found = records(tmp_path / "out")
    summary = run_json(tmp_path / "out")
    assert summary["pages"] == len(found)
    assert summary["failed"] == sum(record["status"] == "failed" for record in found)
    assert summary["finished"]


BAD_OPTIONS = [
    (["--lang", "xx"], ExitCode.LANGUAGE, "xx"),
    (["--layout-model", "note.txt"], ExitCode.INPUT, "layout model"),
    (["--layout-model", "nope.onnx"], ExitCode.INPUT, "nope.onnx"),
    (["--pages", "5-3"], ExitCode.USAGE, "5-3"),
    (["--page-timeout", "0"], ExitCode.USAGE, "--page-timeout"),
    (["--nonsense"], ExitCode.USAGE, "--nonsense"),
]


@pytest.mark.parametrize(("arguments", "code", "says"), BAD_OPTIONS, ids=[" ".join(case[0]) for case in BAD_OPTIONS])
def test_a_bad_option_ends_the_run_before_the_output_is_touched(
    inputs: Path, tmp_path: Path, arguments: list[str], code: ExitCode, says: str
):
    ended = parse("a.png", *arguments, "-o", tmp_path / "out", cwd=inputs)
    assert ended.returncode == code
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "out").exists()


def test_without_tesseract_korean_names_what_to_install(inputs: Path, tmp_path: Path):
    environment = {**ENVIRONMENT, "PATH": str(tmp_path)}
    ended = parse(inputs / "a.png", "--lang", "ko", "-o", tmp_path / "out", env=environment)
    assert ended.returncode == ExitCode.LANGUAGE
    assert "apt-get install tesseract-ocr tesseract-ocr-kor" in ended.stderr


def test_good_inputs_are_parsed_beside_bad_ones_and_names_stay_apart(inputs: Path, tmp_path: Path):
    odd = tmp_path / "보고서 \x1b[31m – 🎉.png"
    odd.write_bytes((inputs / "a.png").read_bytes())
    names = ["a.png", "missing.pdf", "a.jpg", "empty.pdf", "sub/../sub/a.png", odd]
    ended = parse(*names, "--no-report", "-o", tmp_path / "out", cwd=inputs)
    assert ended.returncode == ExitCode.PAGES_FAILED
    found = {record["page_id"]: record for record in records(tmp_path / "out")}
    assert len(found) == len(names)
    texts = [record["markdown"] for record in found.values() if record["status"] == "done"]
    assert sorted(texts) == ["alpha", "alpha", "beta", "gamma"]
    documents = list((tmp_path / "out" / "documents").glob("*.md"))
    assert len(documents) == len(names)
    assert "\x1b" not in ended.stdout + ended.stderr + "".join(path.name for path in documents)
    assert "4 done, 2 failed" in ended.stdout
    assert all(line == line.rstrip() for line in ended.stdout.splitlines())


def test_a_run_is_replaced_only_when_asked(inputs: Path, tmp_path: Path):
    out = tmp_path / "out"
    assert parse(inputs / "a.png", "-o", out).returncode == ExitCode.OK
    first = run_json(out)["started"]
    assert parse(inputs / "a.jpg", "-o", out).returncode == ExitCode.OK
    assert run_json(out)["started"] == first
    assert sorted(record["markdown"] for record in records(out)) == ["alpha", "beta"]
    assert parse(inputs / "a.jpg", "-o", out, "--fresh").returncode == ExitCode.OK
    assert [record["markdown"] for record in records(out)] == ["beta"]


def test_other_settings_are_named_and_nothing_is_touched(inputs: Path, tmp_path: Path):
    out = tmp_path / "out"
    assert parse(inputs / "a.png", "-o", out).returncode == ExitCode.OK
    before = (out / "ocr_results.jsonl").read_bytes()
    ended = parse(inputs / "a.jpg", "-o", out, "--text-layer", "never", "--no-crops")
    assert ended.returncode == ExitCode.OUTPUT
    assert all(word in ended.stderr for word in ("text_layer", "auto", "never", "crops", "--fresh"))
    assert (out / "ocr_results.jsonl").read_bytes() == before
    harmless = ["--page-timeout", "100", "--threads", "1", "--no-report"]
    assert parse(inputs / "a.png", "-o", out, *harmless).returncode == ExitCode.OK


@pytest.mark.parametrize("option", ["--resume", "--retry-failed"])
def test_there_must_be_a_run_to_go_on_with_where_that_was_asked(inputs: Path, tmp_path: Path, option: str):
    ended = parse(inputs / "a.png", "-o", tmp_path / "out", option)
    assert ended.returncode == ExitCode.OUTPUT
    assert "no run" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_nothing_is_parsed_twice_and_old_failures_count(inputs: Path, tmp_path: Path):
    out = tmp_path / "out"
    arguments = ("rows.parquet", "a.png", "-o", out)
    first = parse(*arguments, cwd=inputs)
    assert first.returncode == ExitCode.PAGES_FAILED
    assert "--retry-failed" in first.stdout
    lines = (out / "ocr_results.jsonl").read_bytes()
    again = parse(*arguments, "--resume", cwd=inputs)
    assert again.returncode == ExitCode.PAGES_FAILED
    assert "Resuming: 4 pages ended before" in again.stderr
    assert "nothing to do" in again.stdout
    assert (out / "ocr_results.jsonl").read_bytes() == lines
    retried = parse(*arguments, "--retry-failed", cwd=inputs)
    assert retried.returncode == ExitCode.PAGES_FAILED
    assert "Resuming: 2 pages ended before" in retried.stderr
    assert "0 done, 2 failed" in retried.stdout
    assert sorted(record["page_id"] for record in records(out)) == sorted(
        json.loads(line)["page_id"] for line in lines.splitlines()
    )


def test_files_with_the_same_content_are_skipped_where_that_was_asked(inputs: Path, tmp_path: Path):
    twin = tmp_path / "twin.png"
    twin.write_bytes((inputs / "a.png").read_bytes())
    ended = parse(inputs / "a.png", twin, "-o", tmp_path / "out", "--skip-duplicates")
    assert ended.returncode == ExitCode.OK
    assert "1 done, 0 failed, 1 skipped" in ended.stdout
    assert [record["doc_id"] for record in records(tmp_path / "out")] == ["a"]


def test_a_misspelt_name_does_not_block_the_output(inputs: Path, tmp_path: Path):
    out = tmp_path / "out"
    assert parse(inputs / "aa.png", "-o", out).returncode == ExitCode.INPUT
    assert parse(inputs / "a.png", "-o", out).returncode == ExitCode.OK
    assert [record["markdown"] for record in records(out)] == ["alpha"]
    assert [path.name for path in (out / "documents").glob("*.md")] == ["a.md"]


@pytest.mark.parametrize("place", ["file", "proc"])
def test_an_output_that_cannot_be_made_is_an_output_error(inputs: Path, tmp_path: Path, place: str):
    if place == "proc" and not Path("/proc/self").exists():
        pytest.skip("there is no /proc")
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" if place == "file" else Path("/proc/pagemill")
    ended = parse(inputs / "a.png", "-o", out)
    assert ended.returncode == ExitCode.OUTPUT
    assert (f"{out} is a file" if place == "file" else f"cannot write {out}") in ended.stderr
    assert "-o" in ended.stderr or "another place" in ended.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if sys.platform != "linux" or subprocess.call(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]):
        pytest.skip("needs the right to mount")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_keeps_whole_records(inputs: Path, small_disk: Path):
    ended = parse(inputs / "many.tiff", "-o", small_disk / "out")
    assert ended.returncode == ExitCode.NO_SPACE
    assert "Free some space and run the same command again" in ended.stderr
    assert "Traceback" not in ended.stderr
    found = records(small_disk / "out")
    assert 0 < len(found) < 81
    texts = (small_disk / "out" / "parsed_texts.jsonl").read_text(encoding="utf-8").splitlines()
    assert len([json.loads(line) for line in texts]) == len(found)
    subprocess.run(["mount", "-o", "remount,size=100m", small_disk], check=True)
    assert parse(inputs / "many.tiff", "-o", small_disk / "out").returncode == ExitCode.OK
    assert all_once(small_disk / "out", 81)


def test_a_limit_on_file_size_stops_the_run_and_without_it_the_run_goes_on(inputs: Path, tmp_path: Path):
    resource = pytest.importorskip("resource")
    ended = parse(
        inputs / "many.tiff",
        "-o",
        tmp_path / "out",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
    )
    assert ended.returncode in (ExitCode.OUTPUT, ExitCode.NO_SPACE), ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(records(tmp_path / "out")) < 81
    assert parse(inputs / "many.tiff", "-o", tmp_path / "out").returncode == ExitCode.OK
    assert all_once(tmp_path / "out", 81)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_run_survives_that_nobody_takes_its_messages(inputs: Path, tmp_path: Path, stream: str):
    arguments = (inputs / "a.png", inputs / "missing.pdf", inputs / "sub")
    with Path("/dev/full").open("w") as full:
        sink = {"capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: full}
        assert parse(*arguments, "-o", tmp_path / "full", **sink).returncode == ExitCode.PAGES_FAILED
    read, write = os.pipe()
    os.close(read)
    sink[stream] = write
    assert parse(*arguments, "-o", tmp_path / "pipe", **sink).returncode == ExitCode.PAGES_FAILED
    os.close(write)
    for out in ("full", "pipe"):
        assert len(records(tmp_path / out)) == 3


def start(out: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a run and wait for its first record."""
    process = subprocess.Popen(
        command(*arguments, "-o", out),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    results = out / "ocr_results.jsonl"
    wait_for(lambda: process.poll() is not None or (results.exists() and results.stat().st_size))
    return process


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def worker(process: subprocess.Popen[str]) -> int:
    """The process that does the work for the one that was started."""
    (pid,) = wait_for(lambda: children(process.pid))
    return int(pid)


def decoders(process: subprocess.Popen[str]) -> list[int]:
    listed = children(worker(process))
    return [pid for pid in listed if b"decoder_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_the_run_and_the_same_command_goes_on(inputs: Path, tmp_path: Path, number: signal.Signals):
    out = tmp_path / "out"
    process = start(out, inputs / "many.tiff", "--pages-in-flight", "2")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "under way" in stderr
    assert "Traceback" not in stderr
    assert "Interrupted" in stdout
    found = records(out)
    summary = run_json(out)
    assert 0 < len(found) < 81
    assert (summary["pages"], summary["interrupted"], summary["failed"]) == (len(found), True, 0)
    assert (out / "report.html").exists()
    assert found[0]["markdown"] in (out / "documents" / "many.md").read_text(encoding="utf-8")
    resumed = parse(inputs / "many.tiff", "-o", out)
    assert resumed.returncode == ExitCode.OK
    assert f"{len(found)} page" in resumed.stderr
    assert all_once(out, 81)
    assert run_json(out)["interrupted"] is False


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_a_second_signal_ends_the_process_at_once_and_the_run_can_be_resumed(inputs: Path, tmp_path: Path):
    out = tmp_path / "out"
    process = start(out, inputs / "many.tiff")
    process.send_signal(signal.SIGSTOP)  # so that both come before the pages in flight have ended
    os.kill(worker(process), signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    os.kill(worker(process), signal.SIGCONT)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (-signal.SIGINT, -signal.SIGTERM), stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert parse(inputs / "many.tiff", "-o", out).returncode == ExitCode.OK
    assert all_once(out, 81)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_dies_is_replaced(inputs: Path, tmp_path: Path, number: signal.Signals):
    out = tmp_path / "out"
    process = start(out, inputs / "many.tiff", "--pages-in-flight", "3")
    first = worker(process)
    os.kill(first, number)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitCode.OK
    assert number.name in stderr
    assert "Resuming" not in stderr
    assert all_once(out, 81)
    retried = [record for record in records(out) if record["attempts"] > 1]
    assert len(retried) <= 3
    assert not Path(f"/proc/{first}").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_when_the_parent_is_killed_nothing_goes_on_and_nothing_is_lost(inputs: Path, tmp_path: Path):
    out = tmp_path / "out"
    process = start(out, inputs / "many.tiff")
    first = worker(process)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: not Path(f"/proc/{first}/exe").exists())
    assert parse(inputs / "many.tiff", "-o", out).returncode == ExitCode.OK
    assert all_once(out, 81)
    assert {record["attempts"] for record in records(out)} == {1}  # the pages were not at fault


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_decoding_process_outlives_the_run(inputs: Path, tmp_path: Path, number: signal.Signals):
    process = start(tmp_path / "out", inputs / "eight.pdf", inputs / "many.tiff")
    workers = wait_for(lambda: decoders(process))
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (ExitCode.INTERRUPTED if number == signal.SIGTERM else -number)
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in workers))
    if number == signal.SIGKILL:  # nobody could tidy up: the next run does
        assert parse(inputs / "a.png", "-o", tmp_path / "out", "--fresh").returncode == ExitCode.OK
        assert [record["doc_id"] for record in records(tmp_path / "out")] == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGSEGV])
def test_a_decoder_that_hangs_or_crashes_costs_no_page(inputs: Path, tmp_path: Path, number: signal.Signals):
    out = tmp_path / "out"
    flags = ["--decoders", "1", "--pages-in-flight", "2"]
    if number == signal.SIGSTOP:  # far more than a page of this file needs
        flags += ["--page-timeout", "10"]
    process = start(out, inputs / "eight.pdf", *flags)
    for pid in decoders(process):
        os.kill(pid, number)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in stderr) == (ExitCode.OK, False), stderr
    assert all_once(out, 8)
    retried = {record["page_id"] for record in records(out) if record["attempts"] > 1}
    assert len(retried) <= 2
    assert all(f"again later {page_id}: " in stderr for page_id in retried)


def test_a_terminal_gets_a_bar_and_is_left_as_it_was(inputs: Path, tmp_path: Path):
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm-256color"}
    arguments = (inputs / "sub", inputs / "missing.pdf", "-o", tmp_path / "out")
    process = subprocess.Popen(command(*arguments), env=environment, stdout=slave, stderr=slave, stdin=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(master)
    assert process.wait(timeout=PATIENCE_S) == ExitCode.PAGES_FAILED
    text = shown.decode()
    assert "pages/s" in text
    assert "1 failed" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is back
