import os
from pathlib import Path

import msgspec
import pytest
from synthetic_run import failed_page, key_of, open_run, page, sample_pages, start, write, write_run

from pagemill.app.exporters import default_exporters
from pagemill.app.status import InvocationStatus, RunState, RunStatus, bytes_on_disk, read_status
from pagemill.document.page import PageError
from pagemill.store.catalogue import RunCatalogue
from pagemill.store.lock import DESCRIBING
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory


def status_of(out: Path) -> RunStatus:
    with RunReader.open(out) as reader:
        return read_status(reader, examples=2)


def test_a_run_that_continues(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        run.set_total(10)
        for index, each in enumerate(sample_pages()):
            write(run, each, index)
        start(run, page("late", 1))
        start(run, page("tired", 1))
        run.postpone_page(
            key_of(page("tired", 1)),
            attempts=1,
            error=PageError(component="decode", category="timeout", message="slow"),
        )
        run.skip_page(key_of(page("twin", 1)), Place("twin_1", "twin", "twin.pdf", 1, 9), reason="duplicate of report")
        run.sync()
        status = status_of(tmp_path)
    assert status.state is RunState.RUNNING
    assert status.process is not None
    assert status.process.pid == os.getpid()
    assert status.pages == {"done": 3, "failed": 1, "skipped": 1, "running": 1, "waiting": 1}
    assert (status.total, status.completed) == (10, 5)
    assert status.in_flight == ["late_1"]
    assert status.skipped == {"duplicate": 1}
    (kind,) = status.failures
    assert (kind.category, kind.pages) == ("timeout", 1)
    assert kind.examples[0].page_id == "report_3"
    assert kind.examples[0].attempts == 2
    assert status.finished is None
    assert status.invocation is not None
    assert status.invocation.pages == 4


def test_a_finished_run(tmp_path: Path) -> None:
    write_run(tmp_path, sample_pages())
    status = status_of(tmp_path)
    assert status.state is RunState.FINISHED
    assert status.process is None
    assert status.in_flight == []
    assert status.rate is None
    assert status.seconds_left is None
    assert msgspec.json.decode(msgspec.json.encode(status), type=RunStatus) == status


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_run_that_is_described(tmp_path: Path, interrupted: bool) -> None:
    with open_run(tmp_path) as run:
        write(run, page("d", 1), 0)
        run.finish(interrupted=interrupted, complete=False)
    with RunReader.open(tmp_path) as reader:
        identity = reader.summary.identity
    opened = RunDirectory.open(
        tmp_path, exporters=default_exporters(), identity=identity, settings=None, mode=OpenMode.RESUME, task=DESCRIBING
    )
    with opened:
        status = status_of(tmp_path)
    assert (status.state, status.process.pid) == (RunState.DESCRIBING, os.getpid())
    assert (status.rate, status.in_flight) == (None, [])
    after = status_of(tmp_path)
    assert (after.state, after.process) == (RunState.INTERRUPTED if interrupted else RunState.FINISHED, None)


def test_documents_with_failed_or_unmet_pages_are_not_complete(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        catalogue = RunCatalogue(run._run, lambda _: None)
        for doc_id, held in (("whole", 1), ("cut", 3)):
            key = key_of(page(doc_id, 1))
            catalogue.register(key.digest, f"{doc_id}.pdf")
            catalogue.counted(key.digest, key.copy, held)
            write(run, page(doc_id, 1), 0)
        write(run, page("damaged", 1), 1)
        write(run, failed_page("damaged", 2), 2)
        write(run, failed_page("lost", 1), 3)
        run.finish(interrupted=True, complete=False)
    assert status_of(tmp_path).documents == 1
    write_run(tmp_path / "failed", [failed_page("lost", 1)])
    assert status_of(tmp_path / "failed").documents == 0


def test_a_run_that_ended_without_a_word_is_cut_off(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        write(run, page("d", 1), 0)
        start(run, page("d", 2))
    status = status_of(tmp_path)
    assert status.state is RunState.CUT_OFF
    assert status.process is None
    assert status.in_flight == []


def test_failures_are_grouped_the_most_frequent_first(tmp_path: Path) -> None:
    pages = [failed_page("d", number, "corrupt" if number == 1 else "timeout") for number in range(1, 5)]
    write_run(tmp_path, pages)
    kinds = status_of(tmp_path).failures
    assert [(kind.category, kind.pages, len(kind.examples)) for kind in kinds] == [("timeout", 3, 2), ("corrupt", 1, 1)]


def test_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    write_run(tmp_path, sample_pages())
    sizes = bytes_on_disk(tmp_path)
    assert sizes["records"] == (tmp_path / "ocr_results.jsonl").stat().st_size
    assert sizes["crops"] == sum(file.stat().st_size for file in (tmp_path / "crops").iterdir())
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    assert "report" not in sizes


def test_pages_no_longer_in_the_input_have_not_ended(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        write(run, page("d", 1), 0)
        start(run, page("gone", 1))
    with open_run(tmp_path, OpenMode.AUTO) as run:
        run.set_total(1)
        run.finish()
    status = status_of(tmp_path)
    assert status.pages["skipped"] == 1
    assert (status.total, status.completed, status.gone) == (1, 1, 1)


def test_pauses_between_invocations_count_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1e9
    monkeypatch.setattr("time.time", lambda: now)
    with open_run(tmp_path) as run:
        write(run, page("d", 1), 0)
        now += 10.0
        run.finish(interrupted=True, complete=False)
    now += 100_000.0
    with open_run(tmp_path, OpenMode.AUTO) as run:
        write(run, page("d", 2), 1)
        write(run, page("d", 3), 2)
        now += 4.0
        run.finish()
    assert status_of(tmp_path).invocation == InvocationStatus(pages=2, seconds=4.0, rate=0.5)
    with open_run(tmp_path, OpenMode.AUTO) as run:
        now += 1.0
        run.finish()
    assert status_of(tmp_path).invocation == InvocationStatus(pages=0, seconds=1.0, rate=None)
