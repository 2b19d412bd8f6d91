"""``pagemill serve`` as a process: its address, its end, connections that stall, errors on the way."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress

import httpx
import pytest
from coded_pages import CodedPage, pdf_bytes
from fault_engines import BATCH_VARIABLE, Fault
from forked_command import run_forked
from pagemill_process import OPTIONS, PATIENCE_S, PagemillProcess, Target, wait_for
from serving_world import own_ports

pytestmark = pytest.mark.integration

NO_REUSE = httpx.Limits(max_keepalive_connections=0)  # servers are killed between two requests
# One for all: httpx.get() reads the CA certificates anew, which takes 20 ms.
HTTP = httpx.Client(limits=NO_REUSE)
STOPPING = "stopping when the pages in flight are finished; unfinished jobs resume at the next start"


@contextmanager
def serving(folder, surroundings):
    """A server that listens; ``url`` is its address."""
    port = own_ports()
    options = [each for each in OPTIONS if each != "--quiet"]
    arguments = ["serve", "--port", port, "--data", folder / "data", "--decoders", 1, *options]
    process = PagemillProcess(arguments, surroundings, folder / "log")
    process.url, process.port, process.data = f"http://127.0.0.1:{port}", port, folder / "data"
    try:
        wait_for(lambda: is_ready(process), "the server to start")
        yield process
    finally:
        process.clear()


@pytest.fixture
def server(tmp_path, surroundings):
    with serving(tmp_path, surroundings) as process:
        yield process


def send(server: PagemillProcess, *pages: CodedPage) -> str:
    """Send a job; its id."""
    answer = HTTP.post(f"{server.url}/v1/jobs", files=[("files", ("a.pdf", pdf_bytes(list(pages))))])
    return answer.json()["id"]


def job_of(server: PagemillProcess, id: str) -> dict:
    return HTTP.get(f"{server.url}/v1/jobs/{id}", timeout=PATIENCE_S).json()


def wait_for_pages(server: PagemillProcess, id: str, count: int) -> None:
    wait_for(lambda: job_of(server, id)["pages"]["finished"] >= count, "pages")


def is_ready(process: PagemillProcess) -> bool:
    assert process.exit_code is None, process.log.read_text()
    with suppress(httpx.TransportError):
        return HTTP.get(f"{process.url}/readyz").status_code == 200
    return False


@pytest.mark.slow
def test_jobs_over_a_socket_a_worker_that_dies_and_an_orderly_end(server):
    content = pdf_bytes([CodedPage(1), CodedPage(2)])
    sent = HTTP.post(f"{server.url}/v1/jobs", files=[("files", ("a.pdf", content))], timeout=PATIENCE_S).json()
    with httpx.stream("GET", f"{server.url}/v1/jobs/{sent['id']}/events", timeout=PATIENCE_S) as answer:
        kinds = [line.partition(": ")[2] for line in answer.iter_lines() if line.startswith("event: ")]
    assert kinds.count("page") == 2
    assert kinds[-1] == "job"
    run = server.data / "jobs" / sent["id"] / "run"
    verified = run_forked("verify", run)
    assert verified.returncode == 0, verified.stderr
    server.kill(Target.WORKER)
    # The socket is the parent's: a client that comes now waits for the next worker.
    job = job_of(server, sent["id"])
    assert (job["state"], job["pages"]["finished"]) == ("finished", 2)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    server.wait_until_gone()
    log = server.log.read_text()
    assert server.url in log
    assert "Traceback" not in log


@pytest.mark.slow
def test_a_head_that_does_not_come_is_waited_for_ten_seconds(server):
    with socket.create_connection(("127.0.0.1", server.port)) as stalled:
        stalled.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        stalled.settimeout(60)
        assert stalled.recv(1000) == b""  # closed by the server


@pytest.mark.slow
def test_thousands_of_event_streams_are_refused_politely_and_others_are_served(server):
    """As many connections at once as this process may open; each is answered, and the server still serves."""
    endless = pdf_bytes([CodedPage(1, Fault.HANG)])  # the job does not end, and so does no stream
    id = HTTP.post(f"{server.url}/v1/jobs", files=[("files", ("a.pdf", endless))], timeout=PATIENCE_S).json()["id"]
    server_log_before = len(server.log.read_text())
    refused = 0
    for _ in range(3):
        streams = []
        for _ in range(1000):
            stream = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
            stream.sendall(f"GET /v1/jobs/{id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            streams.append(stream)
        answers = [stream.recv(12) for stream in streams]
        assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
        refused += answers.count(b"HTTP/1.1 503")
        for stream in streams:
            stream.close()
    assert refused > 2000
    wait_for(lambda: is_ready(server), "the server to answer")
    assert "Traceback" not in server.log.read_text()[server_log_before:]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_server_ends_calmly(server, number):
    before = len(server.log.read_text())
    server.signal(number)
    assert server.wait() == 0
    server.wait_until_gone()
    (line,) = (line for line in server.log.read_text()[before:].splitlines() if "GET /readyz" not in line)
    assert line.endswith(STOPPING)


def test_ctrl_c_while_the_server_starts_is_no_defect(tmp_path):
    (tmp_path / "uvicorn.py").write_text(
        "import signal\nclass Field:\n    def __set_name__(self, *_): signal.raise_signal(signal.SIGINT)\n"
        "class Settings:\n    field = Field()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "pagemill", "serve", "--port", "0", "--data", tmp_path / "data"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr.count("\n") == 1  # the address


@pytest.mark.slow
def test_a_job_that_the_end_of_the_server_cuts_short_continues_with_the_next_start(tmp_path, surroundings):
    pages = [CodedPage(each) for each in range(60)]
    with serving(tmp_path, {**surroundings, BATCH_VARIABLE: "0.1"}) as server:
        id = send(server, *pages)
        wait_for_pages(server, id, 1)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        server.wait_until_gone()
    log = server.log.read_text()
    assert log.count(STOPPING) == 1
    assert "Traceback" not in log
    assert "ERROR" not in log
    lines = server.data / "jobs" / id / "run" / "ocr_results.jsonl"
    assert 0 < len(lines.read_text().splitlines()) < len(pages)
    with serving(tmp_path, surroundings) as server:
        job = HTTP.get(f"{server.url}/v1/jobs/{id}?wait=60", timeout=90).json()
    assert (job["state"], job["pages"]) == ("finished", {"total": 60, "finished": 60, "failed": 0})
    assert len(lines.read_text().splitlines()) == len(pages)


@pytest.mark.slow
def test_a_second_signal_ends_the_server_at_once(server):
    id = send(server, CodedPage(1), CodedPage(2, Fault.HANG))  # it would be waited for
    wait_for(lambda: job_of(server, id)["state"] == "running", "the job to run")
    server.signal(signal.SIGINT)
    wait_for(lambda: STOPPING in server.log.read_text(), "the server to begin to stop")
    server.signal(signal.SIGTERM)
    assert server.wait() == -signal.SIGTERM
    server.wait_until_gone()
    assert "Traceback" not in server.log.read_text()


def test_a_port_that_is_in_use_is_reported_in_words(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run_forked("serve", "--port", taken.getsockname()[1], "--data", tmp_path / "data")
    assert done.returncode == 2
    assert "cannot listen at 127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_second_server_over_the_same_folder_is_refused_in_words(tmp_path, surroundings, server):
    done = run_forked("serve", "--port", "0", "--data", server.data, env=surroundings)
    assert done.returncode == 8
    assert "in use" in done.stderr
    assert "Traceback" not in done.stderr
