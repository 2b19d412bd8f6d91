"""The disk of the REST server fills up under a job: no more are accepted, and those that were wait for space."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from coded_pages import CodedPage, pdf_bytes
from fault_engines import BATCH_VARIABLE
from pagemill_process import OPTIONS, wait_for
from serving_world import own_ports
from test_disk_full import NAMESPACE

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system of its own"),
]

PAGES = 60
NO_REUSE = httpx.Limits(max_keepalive_connections=0)  # servers are killed between two requests
HTTP = httpx.Client(timeout=30, limits=NO_REUSE)  # each httpx.get() reads the CA certificates anew, which takes 20 ms
# Runs in a mount namespace of its own. Arguments: the mount point, and the command that serves. Each line that it reads
# is a number of KiB to be left on the disk.
IN_NAMESPACE = """
import os, subprocess, sys
mount_point, *command = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "none", mount_point], check=True)
server = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # else the test would not see the end of this process
try:
    for line in sys.stdin:
        for _ in range(1000):
            found = os.statvfs(mount_point)
            size = (found.f_blocks - found.f_bfree) * found.f_frsize // 1024 + int(line)
            resized = subprocess.run(["mount", "-o", f"remount,size={size}k", mount_point])
            if resized.returncode == 0:  # else the server has written more than that since
                break
        resized.check_returncode()
        print("done", flush=True)
finally:
    server.terminate()
    status = server.wait()
sys.exit(status)
"""


class ServerOnDisk:
    """``pagemill serve`` with a disk of its own, whose space can be changed."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: Path) -> None:
        self._process = process
        self.url = url
        self.log = log

    def is_ready(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        with suppress(httpx.TransportError):
            return self.ready() == 200
        return False

    def ready(self) -> int:
        return HTTP.get(f"{self.url}/readyz").status_code

    def send(self, pages: int) -> httpx.Response:
        content = pdf_bytes([CodedPage(number) for number in range(pages)])
        return HTTP.post(f"{self.url}/v1/jobs", files=[("files", ("a.pdf", content))])

    def job(self, id: str) -> dict:
        return HTTP.get(f"{self.url}/v1/jobs/{id}").json()

    def leave_space(self, kib: int) -> None:
        """Change the size of the file system, so that so much is left."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{kib}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


@contextmanager
def serving(folder: Path, surroundings: dict[str, str]) -> Iterator[ServerOnDisk]:
    mount_point, port = folder / "disk", own_ports()
    mount_point.mkdir()
    trial = [*NAMESPACE, "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(mount_point)]
    if subprocess.run(trial, check=False).returncode:
        pytest.skip("file systems cannot be mounted here, not even in a namespace of our own")
    options = [each for each in OPTIONS if each != "--quiet"]
    serve = ["serve", "--port", str(port), "--data", str(mount_point / "data"), "--decoders", "1", *options]
    command = [sys.executable, "-c", IN_NAMESPACE, str(mount_point), sys.executable, "-m", "pagemill", *serve]
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*NAMESPACE, *command],
            env=surroundings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
        )
    with process:  # closes its input at the end, which ends the server
        yield ServerOnDisk(process, f"http://127.0.0.1:{port}", log)


def test_a_job_waits_while_the_disk_is_full_and_loses_nothing(tmp_path, surroundings):
    with serving(tmp_path, {**surroundings, BATCH_VARIABLE: "0.1"}) as server:
        wait_for(server.is_ready, "the server to start")
        id = server.send(PAGES).json()["id"]
        wait_for(lambda: server.job(id)["pages"]["finished"] > 0, "pages to be written")
        server.leave_space(16)
        assert server.ready() == 507
        refused = server.send(1)
        assert (refused.status_code, refused.json()["error"]["category"]) == (507, "no_space")
        wait_for(lambda: "will be retried in 30 s" in server.log.read_text(), "the job to meet the full disk")
        assert server.job(id)["finished"] is None
        server.leave_space(2**20)
        assert server.ready() == 200
        wait_for(lambda: server.job(id)["finished"], "the job to end")
        job = server.job(id)
        assert (job["state"], job["pages"]) == ("finished", {"total": PAGES, "finished": PAGES, "failed": 0})
        text = HTTP.get(f"{server.url}/v1/jobs/{id}/pages?limit=500").json()
        assert [page["page_number"] for page in text["pages"]] == list(range(1, PAGES + 1))
    assert "Traceback" not in server.log.read_text()
