"""``pagemill embed`` as a process: killed at many moments, two at once, and what it says."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import slow_embedding
from pagemill_process import RUN_PATIENCE_S
from synthetic_run import page, region, write_run

from pagemill.document.labels import Label
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import Part, VectorFile
from pagemill.errors import ExitCode
from pagemill.store.reading import RunReader

pytestmark = [pytest.mark.slow, pytest.mark.integration]
PAGES = 60
KILLS = 12
ENTRY_POINTS = "[pagemill.embedding_engines]\nslow = slow_embedding:create\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    packages = tmp_path_factory.mktemp("packages")
    shutil.copy(slow_embedding.__file__, packages)
    about = packages / "slow_embedding-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-embedding\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
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


def start(environment: dict[str, str], *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pagemill", "embed", *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


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
        while run.poll() is None and kills < KILLS and log.stat().st_size < before + 2 * (kills % 7):
            time.sleep(0.002)
        if kills < KILLS and run.poll() is None:
            run.send_signal(signal.SIGKILL)
            kills += 1
        said, _ = run.communicate()
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL, said
    assert kills == KILLS
    count = check(out)
    embedded = log.stat().st_size
    assert count <= embedded <= count + KILLS * 8, "what was in flight is embedded again, and no more"
    again = start(environment, out, "--engine", "slow")
    again.communicate()
    assert again.returncode == 0
    assert log.stat().st_size == embedded, "nothing is left to do"
    assert not [path.name for path in (out / "embeddings").iterdir() if path.suffix not in (".npy", ".parquet")]


def test_a_second_one_is_told(out: Path, environment: dict[str, str], tmp_path: Path) -> None:
    log, hold = tmp_path / "embedded", tmp_path / "hold"
    log.touch()
    hold.touch()
    held = {**environment, slow_embedding.LOG: str(log), slow_embedding.HOLD: str(hold)}
    first = start(held, out, "--engine", "slow")
    while not log.stat().st_size:
        assert first.poll() is None
        time.sleep(0.002)
    second = start(environment, out, "--engine", "slow")
    said, _ = second.communicate()
    assert second.returncode == ExitCode.OUTPUT
    assert f"in use by process {first.pid}" in said
    first.send_signal(signal.SIGINT)
    hold.unlink()
    said, _ = first.communicate()
    assert first.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in said
    last = start(environment, out, "--engine", "slow")
    last.communicate()
    assert last.returncode == 0
    check(out)


def test_what_it_says(out: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("id,text\n1,what?\n")
    run = start(environment, out, "--queries", tmp_path / "q.csv", "--dtype", "float16", "--dimension", "256")
    said, _ = run.communicate()
    assert run.returncode == 0
    assert "1 vector of queries (1 new)" in said
    assert np.load(out / "embeddings" / "corpus_ocr_text.npy").dtype == np.float16
    for arguments, code, message in (
        (["--what", "tables"], ExitCode.USAGE, "some of text, images, regions"),
        (["--what", "images"], ExitCode.USAGE, "cannot embed images"),
        (["--input", tmp_path], ExitCode.USAGE, "--input is for page images"),
        ([], ExitCode.OUTPUT, "float32, not float16"),
        (["--engine", "nobody"], ExitCode.USAGE, "Installed: ngram"),
        (["--model", "x"], ExitCode.USAGE, "has no model"),
    ):
        run = start(environment, out, *arguments)
        said, _ = run.communicate()
        assert run.returncode == code, said
        assert message in said
        assert "Traceback" not in said
    empty = tmp_path / "empty"
    empty.mkdir()
    run = start(environment, empty)
    said, _ = run.communicate()
    assert (run.returncode, "holds no run" in said) == (ExitCode.OUTPUT, True)
