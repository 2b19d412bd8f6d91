import os
import subprocess
import time
from pathlib import Path

import pytest

from pagemill.processes import module_command
from pagemill.serving import watchdog
from pagemill.serving.process import read_tail
from pagemill.serving.watchdog import BoundedLog


def keep(tmp_path: Path, *command: str, lifeline: bool = True) -> list[str]:
    """Run a command under a watchdog, and give what that says.

    Args:
        tmp_path: Takes the log.
        command: It prints something when it is ready for the end of the lifeline.
        lifeline: It stays open to the end.
    """
    read, write = os.pipe()
    arguments = [str(tmp_path / "log"), "1000", "0.2", *command]
    process = subprocess.Popen(
        [*module_command(watchdog.__name__, "-I", "-S"), *arguments], stdin=read, stdout=subprocess.PIPE
    )
    os.close(read)
    try:
        if not lifeline:
            while not (tmp_path / "log").exists() or not (tmp_path / "log").stat().st_size:
                time.sleep(0.01)
            os.close(write)
        out, _ = process.communicate(timeout=60)
    finally:
        if lifeline:
            os.close(write)
    return out.decode().splitlines()


class TestWatchdog:
    def test_reports_how_a_server_ended_and_keeps_what_it_said(self, tmp_path: Path):
        started, ended = keep(tmp_path, "sh", "-c", "echo one; echo two >&2; exit 3")
        assert started.startswith("started ")
        assert ended == "ended 3"
        assert (tmp_path / "log").read_text() == "one\ntwo\n"

    def test_asks_a_server_to_end_when_the_lifeline_ends(self, tmp_path: Path):
        assert keep(tmp_path, "sh", "-c", "echo ready; exec sleep 600", lifeline=False)[-1] == "ended -15"

    def test_kills_one_that_does_not_heed(self, tmp_path: Path):
        assert (
            keep(tmp_path, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done", lifeline=False)[-1]
            == "ended -9"
        )

    def test_reports_when_there_is_no_such_program(self, tmp_path: Path):
        (failed,) = keep(tmp_path, str(tmp_path / "nothing"))
        assert failed.startswith("failed No such file")

    def test_a_server_that_closes_its_output_continues(self, tmp_path: Path):
        assert keep(tmp_path, "sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4")[-1] == "ended 4"

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_full_disk_does_not_stop_a_server(self, tmp_path: Path):
        (tmp_path / "log").symlink_to("/dev/full")
        assert keep(tmp_path, "sh", "-c", "for n in 1 2 3; do echo $n; done; exit 5")[-1] == "ended 5"


class TestLog:
    def test_is_renamed_at_its_size_and_never_grows_beyond_twice_that(self, tmp_path: Path):
        path = tmp_path / "log"
        log = BoundedLog(path, 1000)
        for number in range(100):
            log.write(f"{number:099}\n".encode())
        sizes = [file.stat().st_size for file in tmp_path.iterdir()]
        assert len(sizes) == 2
        assert sum(sizes) <= 2000
        assert read_tail(path, 1) == [f"{99:099}"]

    def test_continues_with_what_is_there(self, tmp_path: Path):
        path = tmp_path / "log"
        path.write_bytes(b"x" * 950)
        BoundedLog(path, 1000).write(b"y" * 100)
        assert (path.read_bytes(), (tmp_path / "log.1").stat().st_size) == (b"y" * 100, 950)


class TestTail:
    def test_has_the_last_lines_without_bars_and_control_characters(self, tmp_path: Path):
        path = tmp_path / "log"
        path.write_bytes(b"one\n\n 10%\r 50%\r100% done\n\x1b[31mred\xff\n")
        assert read_tail(path, 2) == ["100% done", "[31mred\ufffd"]

    def test_has_nothing_of_an_earlier_life(self, tmp_path: Path):
        path = tmp_path / "log"
        path.write_text("old\n")
        assert read_tail(path, 5, since=4) == []
        assert read_tail(path, 5, since=400) == ["old"]  # renamed in between

    def test_of_no_file_is_empty(self, tmp_path: Path):
        assert read_tail(tmp_path / "nothing", 5) == []
