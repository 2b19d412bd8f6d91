"""``pagemill embed`` as a process: killed at many moments, two at once, and what it says."""

import os
import random
import secrets
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import slow_embedding
from installed_package import install_package
from pagemill_process import RUN_PATIENCE_S, PagemillProcess
from synthetic_run import page, region, write_run

from pagemill.document.labels import Label
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import Part, VectorFile
from pagemill.errors import ExitCode
from pagemill.store.reading import RunReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]
PAGES = 60
KILLS = 12
ENTRY_POINTS = "[pagemill.embedding_engines]\nslow = slow_embedding:create\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    packages = tmp_path_factory.mktemp("packages")
    code = Path(slow_embedding.__file__).read_text(encoding="utf-8")
    install_package(packages, "slow-embedding", ENTRY_POINTS, slow_embedding=code)
    path = os.pathsep.join(filter(None, [str(packages), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    chance = random.Random(1)
    pages = []
    for number in range(1, PAGES + 1):
        texts = [f"page {number} region {index} {chance.random()}" for index in range(chance.randint(0, 3))]
        pages.append(page("book", number, [region(index, Label.TEXT, text) for index, text in enumerate(texts)]))
    write_run(tmp_path / "run", pages)
    return tmp_path / "run"


def start(environment: dict[str, str], out: Path, *arguments: str | Path) -> PagemillProcess:
    return PagemillProcess(["embed", out, *arguments], environment, out.parent / f"{secrets.token_hex(8)}.log")


def ended(process: PagemillProcess) -> tuple[int, str]:
    """Its exit status, and what it printed."""
    return process.wait(), process.log.read_text()


def check(out: Path) -> int:
    """Every page and region has its own vector, once; gives how many there are."""
    with RunReader.open(out) as reader:
        pages = list(reader.pages())
    count = 0
    for part in (Part.TEXT, Part.REGIONS):
        wanted = [each for page in pages for each in contents(page, part, images=False)]
        with VectorFile.open(out, part) as file:
            assert file.rows == [each.row for each in wanted]
            for each in wanted:
                np.testing.assert_allclose(file.find(*each.row.key), slow_embedding.vector_of(each.text), atol=1e-6)
        count += len(wanted)
    return count


def test_killed_at_many_moments(out: Path, environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "embedded"
    log.touch()
    environment = {**environment, slow_embedding.LOG: str(log)}
    kills, deadline = 0, time.monotonic() + RUN_PATIENCE_S
    while time.monotonic() < deadline:
        run = start(environment, out, "--engine", "slow")
        before = log.stat().st_size
        while run.exit_code is None and kills < KILLS and log.stat().st_size < before + 2 * (kills % 7):
            time.sleep(0.002)
        if kills < KILLS and run.exit_code is None:
            run.signal(signal.SIGKILL)
            kills += 1
        status, said = ended(run)
        if status == 0:
            break
        assert status == -signal.SIGKILL, said
    assert kills == KILLS
    count = check(out)
    embedded = log.stat().st_size
    assert count <= embedded <= count + KILLS * 8, "what was in flight is embedded again, and no more"
    assert ended(start(environment, out, "--engine", "slow"))[0] == 0
    assert log.stat().st_size == embedded, "nothing is left to do"
    assert not [path.name for path in (out / "embeddings").iterdir() if path.suffix not in (".npy", ".parquet")]


def test_a_second_process_is_refused(out: Path, environment: dict[str, str], tmp_path: Path) -> None:
    log, hold = tmp_path / "embedded", tmp_path / "hold"
    log.touch()
    hold.touch()
    held = {**environment, slow_embedding.LOG: str(log), slow_embedding.HOLD: str(hold)}
    first = start(held, out, "--engine", "slow")
    while not log.stat().st_size:
        assert first.exit_code is None
        time.sleep(0.002)
    status, said = ended(start(environment, out, "--engine", "slow"))
    assert status == ExitCode.OUTPUT
    assert f"in use by process {first.pid}" in said
    first.signal(signal.SIGINT)
    hold.unlink()
    status, said = ended(first)
    assert status == ExitCode.INTERRUPTED
    assert "Traceback" not in said
    assert ended(start(environment, out, "--engine", "slow"))[0] == 0
    check(out)


def test_what_it_says(out: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("id,text\n1,what?\n")
    options = ("--queries", tmp_path / "q.csv", "--dtype", "float16", "--dimension", "256")
    status, said = ended(start(environment, out, *options))
    assert status == 0
    assert "1 vector of queries (1 new)" in said
    assert np.load(out / "embeddings" / "corpus_ocr_text.npy").dtype == np.float16
    for arguments, code, message in (
        (["--what", "tables"], ExitCode.USAGE, "from text, images, regions"),
        (["--what", "images"], ExitCode.USAGE, "cannot embed images"),
        (["--input", tmp_path], ExitCode.USAGE, "--input is for page images"),
        ([], ExitCode.OUTPUT, "float32, not float16"),
        (["--engine", "nobody"], ExitCode.USAGE, "Installed: ngram"),
        (["--model", "x"], ExitCode.USAGE, "has no model"),
    ):
        status, said = ended(start(environment, out, *arguments))
        assert status == code, said
        assert message in said
        assert "Traceback" not in said
    empty = tmp_path / "empty"
    empty.mkdir()
    status, said = ended(start(environment, empty))
    assert (status, "contains no run" in said) == (ExitCode.OUTPUT, True)
