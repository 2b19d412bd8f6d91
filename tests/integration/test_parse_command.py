"""``pagemill parse`` as a process, for a user with bad luck: what it says, how it ends, and that nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parse_command import ENVIRONMENT, PATIENCE_S, command, make_inputs, parse, records, run_json

from pagemill.errors import ExitCode

SAMPLES = Path(__file__).parents[2] / "samples"

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_inputs(tmp_path_factory.mktemp("inputs"))


CASES = [
    (["empty.pdf"], ExitCode.INPUT, "is empty"),
    (["note.tex"], ExitCode.INPUT, "note.tex: cannot read .tex yet\n      Convert it to PDF."),
    (["cut.png"], ExitCode.INPUT, "truncated"),
    (["none.parquet"], ExitCode.INPUT, "have no page"),
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


def test_inputs_that_do_not_exist_are_refused_before_anything_is_created(inputs: Path, tmp_path: Path):
    ended = parse("missing.pdf", "a.png", "x*.pdf", "-o", tmp_path / "out", cwd=inputs)
    assert ended.returncode == ExitCode.USAGE
    assert "'missing.pdf' does not exist; nothing matches 'x*.pdf'" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_input_that_vanishes_between_two_runs_is_no_misspelling(inputs: Path, tmp_path: Path):
    """It is a failed page, as a remote file would be; a name that the run has never met is refused."""
    for name in ("one.png", "two.png"):
        (tmp_path / name).write_bytes((inputs / "a.png").read_bytes())
    arguments = ("one.png", "t*.png", "-o", "out")
    assert parse(*arguments, cwd=tmp_path).returncode == ExitCode.OK
    (tmp_path / "one.png").unlink()
    (tmp_path / "two.png").unlink()
    ended = parse(*arguments, cwd=tmp_path)
    assert ended.returncode != ExitCode.USAGE, ended.stderr
    assert "does not exist" in ended.stdout + ended.stderr
    before = run_json(tmp_path / "out")
    ended = parse("thre.png", *arguments, cwd=tmp_path)
    assert (ended.returncode, run_json(tmp_path / "out")) == (ExitCode.USAGE, before)
    assert "'thre.png' does not exist\n" in ended.stderr


BAD_OPTIONS = [
    (["--lang", "xx"], ExitCode.LANGUAGE, "xx"),
    (["--layout-model", "note.tex"], ExitCode.INPUT, "layout model"),
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


def test_a_language_that_is_not_installed_names_what_to_install(inputs: Path, tmp_path: Path):
    ended = parse(inputs / "a.png", "--lang", "km", "-o", tmp_path / "out")
    assert ended.returncode == ExitCode.LANGUAGE
    assert "pagemill models download tessdata:khm, or: apt-get install tesseract-ocr tesseract-ocr-khm" in ended.stderr


def test_good_inputs_are_parsed_beside_bad_ones_and_names_stay_apart(inputs: Path, tmp_path: Path):
    odd = tmp_path / "보고서 \x1b[31m – 🎉.png"
    odd.write_bytes((inputs / "a.png").read_bytes())
    names = ["a.png", "locked.pdf", "a.jpg", "empty.pdf", "sub/../sub/a.png", odd]
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


def test_resuming_where_there_is_no_run_starts_one_and_says_so(inputs: Path, tmp_path: Path):
    for said in ("contains no run to resume: starting one", "Resuming: 1 page finished before"):
        ended = parse("--resume", inputs / "a.png", "-o", tmp_path / "out")
        assert ended.returncode == ExitCode.OK
        assert said in ended.stderr
    assert len(records(tmp_path / "out")) == 1


@pytest.mark.parametrize("option", ["--resume=required", "--retry-failed"])
def test_there_must_be_a_run_to_continue_with_where_that_was_asked(inputs: Path, tmp_path: Path, option: str):
    ended = parse(inputs / "a.png", "-o", tmp_path / "out", option)
    assert ended.returncode == ExitCode.OUTPUT
    assert "no run" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_only_copy_left_is_no_duplicate(inputs: Path, tmp_path: Path):
    """Two have the same name in different folders, and two have names of their own."""
    names = ("a/x.png", "b/x.png", "b/y.png")
    scans, out = tmp_path / "scans", tmp_path / "out"
    files = [scans / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((inputs / "a.png").read_bytes())
    arguments = ("scans", "-r", "-o", out, "--skip-duplicates")
    assert "1 done, 0 failed, 2 skipped" in parse(*arguments, cwd=tmp_path).stdout
    assert parse(scans, *arguments[1:], "--check").returncode == ExitCode.OK
    files[0].write_bytes((inputs / "a.jpg").read_bytes())
    assert parse(*arguments, "--check", cwd=tmp_path).returncode == ExitCode.WORK_LEFT
    assert "2 done, 0 failed, 1 skipped" in parse(*arguments, cwd=tmp_path).stdout
    assert {record["source"]: record["markdown"] for record in records(out)} == {
        f"scans/{names[0]}": "beta",
        f"scans/{names[1]}": "alpha",
    }
    assert parse(*arguments, "--check", cwd=tmp_path).returncode == ExitCode.OK
    assert parse(*arguments[:-1], "--check", cwd=tmp_path).returncode == ExitCode.WORK_LEFT
    assert "3 done, 0 failed" in parse(*arguments[:-1], cwd=tmp_path).stdout


def test_files_of_other_kinds_in_a_folder_are_named_and_no_failure(inputs: Path, tmp_path: Path):
    folder = tmp_path / "scans"
    folder.mkdir()
    (folder / "page").write_bytes((inputs / "a.png").read_bytes())
    (folder / "page.gif").write_bytes(b"GIF89a")
    ended = parse(folder, "-o", tmp_path / "out")
    assert ended.returncode == ExitCode.OK, ended.stderr
    assert "skipped: 1 file of another kind (.gif 1)" in ended.stderr.splitlines()
    assert [record["page_id"] for record in records(tmp_path / "out")] == ["page_1"]
    again = parse(folder, "-o", tmp_path / "out", "--quiet")
    assert (again.returncode, again.stderr) == (ExitCode.OK, "")


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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_run_survives_that_nobody_takes_its_messages(inputs: Path, tmp_path: Path, stream: str):
    arguments = (inputs / "a.png", inputs / "empty.pdf", inputs / "sub")
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


@pytest.mark.slow
def test_a_terminal_gets_a_bar_and_is_left_as_it_was(inputs: Path, tmp_path: Path):
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm-256color"}
    arguments = (inputs / "sub", inputs / "empty.pdf", "-o", tmp_path / "out")
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


def test_messages_name_inputs_as_the_user_did(inputs: Path, tmp_path: Path):
    folder = tmp_path / "scans"
    folder.mkdir()
    whole = (inputs / "a.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) * 3 // 4])
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    rows = [{"bytes": whole[: len(whole) * 3 // 4], "path": None}]
    pq.write_table(pa.table({"image": rows}), folder / "rows.parquet")
    process = parse(folder, "-o", tmp_path / "out")
    messages = {record["page_id"]: record["errors"][0]["message"] for record in records(tmp_path / "out")}
    assert messages["cut_1"].startswith(f"{folder / 'cut.png'} cannot be decoded")
    assert messages["rows_1"].startswith(f"{folder / 'rows.parquet'}#1: ")
    said = process.stderr + process.stdout
    assert f"{folder / 'broken.pdf'}: is damaged" in said


@pytest.mark.slow
def test_standard_input_becomes_markdown_on_standard_output(tmp_path: Path) -> None:
    """Nothing stays behind, neither here nor in the folder of temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "pagemill", "parse", "-", "-o", "-"]
    with (Path(__file__).parents[2] / "samples" / "report.pdf").open("rb") as file:
        environment = {**os.environ, "TMPDIR": str(temporary)}
        ended = subprocess.run(command, cwd=tmp_path, stdin=file, capture_output=True, env=environment, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.decode().startswith("# From Rag to Ream")
    assert ended.stderr == b""
    assert [*temporary.iterdir()] == []
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
