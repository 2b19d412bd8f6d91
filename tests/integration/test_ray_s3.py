"""A dataset in an S3-compatible object store is parsed on a cluster, and the run published there."""

import subprocess
import sys

import pytest
from coded_pages import CorpusMaker
from fault_engines import Fault
from pagemill_process import OPTIONS, PagemillProcess, environment, install_engines, wait_for
from ray_cluster_nodes import needs_ray
from run_contents import contents, differences

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_ray]
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The variables by which clients find a store that is empty."""
    pytest.importorskip("moto.server")
    log = tmp_path / "moto.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"], stdout=stream, stderr=stream
        )
    try:
        wait_for(lambda: b"Running on http://" in log.read_bytes(), "the object store")
        address = log.read_text().split("Running on ")[1].split()[0]
        variables = {**KEYS, "AWS_ENDPOINT_URL": address}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield variables
    finally:
        server.kill()
        server.wait()


def test_dataset_and_documents_in_an_object_store(store, tmp_path):
    """Among the pages one fails, one is retried, and a file does not open."""
    s3fs = pytest.importorskip("s3fs")
    maker = CorpusMaker(tmp_path, {4: Fault.TRANSIENT, 9: Fault.SHORT_BOX})
    maker.parquet(20)
    maker.pdf(6)
    maker.images(2)
    files = s3fs.S3FileSystem()
    files.mkdir("corpus")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")  # only who reads it sees that it does not open
    files.put(str(tmp_path / "broken.png"), "corpus/in/broken.png")
    for path in maker.corpus().paths:
        files.put(str(path), f"corpus/in/{path.name}")
    packages = install_engines(tmp_path / "packages")
    outs = []
    for out, more in ((tmp_path / "out-0", ()), (tmp_path / "out-1", ("--ray", "local", "--threads", "1"))):
        state = out.with_name(f"{out.name}-state")
        state.mkdir()
        variables = {**environment(packages, state), **store}
        process = PagemillProcess(["parse", "s3://corpus/in", "-o", out, *OPTIONS, *more], variables, tmp_path / "log")
        assert process.wait() == 3, (tmp_path / "log").read_text()
        process.wait_until_gone()
        outs.append(contents(out))
    assert len(outs[0]["records"]) == 29
    assert not differences(outs[1], outs[0])

    publish = ["publish", tmp_path / "out-1", "--to", "s3://corpus/published", "--licence", "cc0-1.0"]
    process = PagemillProcess(publish, variables, tmp_path / "log")
    assert process.wait() == 0, (tmp_path / "log").read_text()
    assert [name for name in files.find("corpus/published") if name.endswith(".parquet")]
