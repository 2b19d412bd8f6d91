"""A run on a cluster whose machine is taken away with notice, and ones that lose what they need. Starts Ray."""

import os
import random
import signal

import pytest
from coded_pages import CorpusMaker
from fault_engines import BATCH_VARIABLE
from pagemill_process import OPTIONS, PagemillProcess, environment, install_engines, wait_for, wait_until_written
from ray_cluster_nodes import SmallCluster, needs_ray
from run_contents import records
from stub_process import StubProcess
from vlm_drill import MODEL, READ, draw_pages, install_layout

from pagemill.document.labels import Label
from pagemill.errors import ExitCode

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_ray]


def finish(process, expected=0):
    try:
        status = process.wait()
        process.wait_until_gone()
    finally:
        process.clear()
    assert status == expected, process.log.read_text()


def test_a_worker_that_has_to_leave_costs_no_page_an_attempt(tmp_path):
    """One is sent SIGTERM, and then a node is drained."""
    maker = CorpusMaker(tmp_path / "in")
    maker.folder.mkdir()
    maker.pdf(60)
    out, log = tmp_path / "out", tmp_path / "log"
    variables = environment(install_engines(tmp_path / "packages")) | {BATCH_VARIABLE: "0.5"}
    with SmallCluster(2, variables) as cluster:
        command = ["parse", tmp_path / "in", "-o", out, *OPTIONS, "--ray", cluster.address, "--threads", "1"]
        process = PagemillProcess(command, variables, log)
        wait_until_written(8, out)
        assert cluster.kill_worker(random.Random(0), signal.SIGTERM)
        wait_until_written(20, out)
        cluster.drain_node(cluster.nodes[0])
        finish(process)
    said = log.read_text()
    assert said.count("a worker had to leave") >= 2 and "a worker died" not in said, said
    assert sorted(record["page_number"] for record in records(out)) == [*range(1, 61)]
    assert {(record["status"], record["attempts"]) for record in records(out)} == {("done", 1)}


def test_what_all_of_the_cluster_needs_is_killed(tmp_path):
    """The run ends with one message, and the same command resumes it, on another cluster if need be."""
    maker = CorpusMaker(tmp_path / "in")
    maker.folder.mkdir()
    maker.pdf(80)
    out, log = tmp_path / "out", tmp_path / "log"
    variables = environment(install_engines(tmp_path / "packages")) | {BATCH_VARIABLE: "0.5"}

    def start(cluster):
        command = ["parse", tmp_path / "in", "-o", out, *OPTIONS, "--ray", cluster.address, "--threads", "1"]
        return PagemillProcess(command, variables, log)

    earlier = []
    with SmallCluster(1, variables) as cluster:
        for title, status, said in (
            # Ray names the dead actor, or, when its error is cut off on the way, that it cannot be deserialized.
            (b"ray::Exchange", ExitCode.CRASH, "Ray ended the run ("),
            (b"gcs_server", ExitCode.NETWORK, "the head of the Ray cluster has not answered for "),
        ):
            process = start(cluster)
            wait_until_written(len(earlier) + 10, out)
            assert cluster.kill_actor(title)
            finish(process, status)
            message, remedy = log.read_text().splitlines()[-2:]
            assert message.startswith(f"Error: {said}") and len(message) < 200
            assert "repeat the command to resume" in remedy
            earlier = records(out)
    assert len(log.read_text().splitlines()) == 4
    with SmallCluster(1, variables) as cluster:
        finish(start(cluster))
    assert [record["page_number"] for record in records(out)] == [*range(1, 81)]
    assert all(record in records(out) for record in earlier)


def test_a_model_server_that_dies_costs_no_page(tmp_path):
    """The other one reads what it had in flight."""
    pages, out = draw_pages(tmp_path / "pages", 60), tmp_path / "out"
    variables = environment(install_layout(tmp_path / "packages"))
    answers = ("--model", MODEL, "--text", "Region {image} reads so.", "--latency-ms", "200")
    with StubProcess(*answers) as dying, StubProcess(*answers) as other:
        command = ["parse", pages, "-o", out, "--quiet", "--layout-engine", "drill", "--recognition-engine", "vlm"]
        command += ["--model", MODEL, "--server", dying.url, "--server", other.url, "--no-report"]
        process = PagemillProcess([*command, "--ray", "local", "--threads", "1"], variables, tmp_path / "log")
        wait_for(lambda: dying.counts().get("requests", 0) >= 40, "requests")
        os.kill(dying.pid, signal.SIGKILL)
        finish(process)
        assert other.counts()["requests"] > 60 * READ // 2
    assert {record["status"] for record in records(out)} == {"done"}
    regions = [region for record in records(out) for region in record["regions"] if region["label"] != Label.IMAGE]
    assert len(regions) == 60 * READ and all(region["content"] for region in regions)
