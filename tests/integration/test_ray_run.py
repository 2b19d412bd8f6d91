"""``pagemill parse --ray``: the same pages as on one machine. Starts Ray on this machine."""

import os

import pytest
from coded_pages import CorpusMaker
from fault_engines import BATCH_VARIABLE, Fault
from pagemill_process import OPTIONS, PagemillProcess, environment
from ray_cluster_nodes import SmallCluster, needs_ray
from ray_drill import RayDrill, Victim
from run_contents import contents, differences

pytestmark = [pytest.mark.integration, needs_ray]
SCALE = 2 if os.environ.get("PAGEMILL_TEST_LARGE") else 1


def run(arguments, packages, log, state=None):
    process = PagemillProcess(["parse", *arguments, *OPTIONS], environment(packages, state), log)
    status = process.wait()
    process.wait_until_gone()  # Ray's processes, too
    assert status in (0, 3), log.read_text()
    return status


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """100 pages, or 200; one ends every worker that parses it, another fails in company only."""
    faults = {17: Fault.SEGFAULT, 70: Fault.TRANSIENT}
    maker = CorpusMaker(tmp_path_factory.mktemp("corpus"), faults)
    maker.pdf(60 * SCALE)
    maker.images(10 * SCALE)
    maker.tiff(5 * SCALE)
    maker.parquet(25 * SCALE)
    return maker.corpus()


@pytest.mark.slow
def test_cluster_of_four_nodes_loses_and_doubles_nothing(packages, corpus, tmp_path):
    """Workers, nodes and the driver are killed; the records are those of an undisturbed run on one machine."""
    (tmp_path / "state").mkdir()
    plain = tmp_path / "plain"
    assert run([*corpus.paths, "-o", plain], packages, tmp_path / "plain.log", tmp_path / "state") == 3
    (tmp_path / "state-ray").mkdir()
    variables = environment(packages, tmp_path / "state-ray") | {BATCH_VARIABLE: "0.25"}
    out = tmp_path / "out"
    with SmallCluster(3, variables) as cluster:
        command = ["parse", *corpus.paths, "-o", out, *OPTIONS, "--ray", cluster.address, "--threads", "1"]
        drill = RayDrill(cluster, command, variables, out, tmp_path / "ray.log", pages=100 * SCALE)
        assert drill.go(workers=2 * SCALE, nodes=1, drivers=1, seed=4) == 3, drill.log.read_text()
    found, expected = contents(out), contents(plain)
    for run_of_two in (found, expected):  # which signal ended the process is known on one machine only
        (crash,) = (page["errors"].pop() for page in run_of_two["records"] if page["status"] == "failed")
        assert crash["category"] == "crash"
        for suffix in ("json", "md"):  # which show the error
            del run_of_two["documents"][f"{corpus.paths[0].stem}.{suffix}"]
    assert not differences(found, expected), drill.log.read_text()
    assert drill.killed == {Victim.WORKER: 2 * SCALE, Victim.NODE: 1, Victim.DRIVER: 1}
