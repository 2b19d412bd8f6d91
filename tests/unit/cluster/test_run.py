"""What becomes of each page of a run on a cluster. Workers, exchange and Ray are played by the test."""

import asyncio
import logging
import queue
import threading
from pathlib import Path

import msgspec
import pytest
from coded_pages import CorpusMaker

from pagemill.cluster import run as run_module
from pagemill.cluster.exchange import Exchange
from pagemill.cluster.run import ClusterRun
from pagemill.cluster.units import UnitPageResult, UnitResult, WorkerTask, decode_unit, encode
from pagemill.config.machine import RuntimeSettings
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.document.identity import PageKey
from pagemill.document.page import PageError, PageResult, Status
from pagemill.errors import NetworkError, NoSpaceError, WorkerCrashError
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo
from pagemill.sources import SourceOptions
from pagemill.sources.stream import InputStream
from pagemill.store.records import encode_line


class Handle:
    """An actor's handle: each method has ``remote``."""

    def __init__(self, actor):
        self._actor = actor
        self.offered = queue.Queue()

    def __getattr__(self, name):
        def remote(*arguments):
            if name == "offer":
                self.offered.put(decode_unit(arguments[0]))
            elif name == "close":
                self.offered.put(None)
            return asyncio.ensure_future(getattr(self._actor, name)(*arguments))

        return type("Method", (), {"remote": staticmethod(remote)})


class Probe:
    limits = DecodeLimits()

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        return PdfInfo(page_count=20, sizes=((150.0, 200.0),), metadata={})


class Journal:
    def __init__(self):
        self.alone = []
        self.starts = []
        self.unopened_pages = []

    async def started(self, ref, *, alone):
        self.starts.append(ref.key.page)
        if alone:
            self.alone.append(ref.key.page)

    async def postponed(self, page):
        pass

    async def unopened(self, page):
        self.unopened_pages.append(page.record.page_key)
        return page


def parsed(unit, *, fails=(), without=()):
    """The result of a unit; some pages fail for a cause that may be gone, others are not given."""
    pages = []
    for source in unit.sources:
        for number, page in source.pages.items():
            failed = number in fails
            record = PageResult(
                page_id=page.page_id,
                page_idx=page.position,
                page_key=str(PageKey(source.digest, number, source.copy)),
                page_number=number,
                doc_id=page.doc_id,
                source=source.uri,
                attempts=page.attempts + 1,
                status=Status.FAILED if failed else Status.DONE,
                errors=[PageError(component="layout", category="engine", message="broken")] if failed else [],
            )
            if number not in without:
                line = encode_line(record)
                pages.append(
                    UnitPageResult(
                        record=line,
                        crops=[],
                        preview=None,
                        retryable=failed,
                        unserved=False,
                        log=[("pagemill.parsing.page", logging.INFO, f"{page.page_id}: 100% read")],
                    )
                )
    error = PageError(component="source", category="corrupt", message="no space")
    problems = {source.uri: error for source in unit.sources} if without else {}
    return UnitResult(number=unit.number, node="one", pages=pages, problems=problems)


def numbers(unit):
    return [number for source in unit.sources for number in source.pages]


async def run_with(tmp_path, worker, *, look=lambda: (2, {"worker"}), exchange=None, show=lambda counts: None):
    """Parse a PDF of 20 pages with a worker, a function from a unit to results; records, journal and units."""
    maker = CorpusMaker(tmp_path)
    maker.pdf(20)
    handle, journal = Handle(exchange or Exchange()), Journal()
    units = []

    def results(workers, at_once):
        while (unit := handle.offered.get(timeout=60)) is not None:
            units.append(unit)
            yield from map(encode, worker(unit))

    settings = ParseSettings()
    task = WorkerTask(
        settings=settings,
        runtime=RuntimeSettings(),
        layout=LayoutChoice(),
        source=SourceOptions(),
        folder="/",
        out=tmp_path,
        token="none",
    )
    source = InputStream(maker.corpus().paths, options=SourceOptions(), decoder=Probe(), planning=True)
    run = ClusterRun(
        source,
        None,
        task,
        handle,
        results=results,
        look=look,
        show=show,
        pages_in_flight=3,
        journal=journal,
        max_attempts=2,
    )
    async with asyncio.timeout(60):
        ended = [page async for page in run.pages()]
    assert {page.node for page in ended if page.record.status is Status.DONE} == {"one"}
    pages = [page.record for page in ended]
    assert len(pages) == len({page.page_key for page in pages})
    return {page.page_number: page for page in pages}, journal, units


async def test_every_page_comes_once_the_first_at_once(tmp_path, caplog):
    caplog.set_level("INFO", logger="pagemill.parsing.page")
    records, journal, units = await run_with(tmp_path, lambda unit: [parsed(unit)])
    assert sorted(records) == [*range(1, 21)] and not journal.alone
    assert numbers(units[0]) == [1]
    assert len(caplog.messages) == 20 and all(message.endswith(": 100% read") for message in caplog.messages)


async def test_a_page_that_ends_its_workers_has_failed_after_its_attempts(tmp_path):
    def worker(unit):
        return [UnitResult(number=unit.number, node="one", died=True) if 7 in numbers(unit) else parsed(unit)]

    records, journal, units = await run_with(tmp_path, worker)
    assert sorted(records) == [*range(1, 21)]
    assert [number for number, page in records.items() if page.status is Status.FAILED] == [7]
    assert records[7].errors[0].category == "crash" and records[7].attempts == 4
    assert journal.alone.count(7) == 4  # a death in company is no attempt
    assert all(numbers(unit) == [7] for unit in units if unit.alone and 7 in numbers(unit))


async def test_a_page_to_be_tried_again_is_waited_for_when_the_input_ends_while_its_unit_is_settled(
    tmp_path, monkeypatch
):
    all_pages, settle, wait = InputStream.pages, ClusterRun._finish, ClusterRun._wait
    ends, has_looked = asyncio.Event(), asyncio.Event()

    async def pages(self):  # followed by pages that are finished, as when a run is resumed
        async for ref in all_pages(self):
            yield ref
        await ends.wait()

    async def settle_slowly(self, result):
        async for page in settle(self, result):
            if page.record.page_number == 19:  # page 20, of the same unit, is next
                ends.set()
                await has_looked.wait()
            yield page

    async def look(self):
        if ends.is_set():
            has_looked.set()
        await wait(self)

    class Closed(Exchange):
        async def close(self):
            has_looked.set()
            await super().close()

    monkeypatch.setattr(InputStream, "pages", pages)
    monkeypatch.setattr(ClusterRun, "_finish", settle_slowly)
    monkeypatch.setattr(ClusterRun, "_wait", look)
    monkeypatch.setattr(ClusterRun, "_size", lambda self: 2)

    def worker(unit):
        return [parsed(unit, fails=() if unit.alone else (20,))]

    records, journal, _ = await run_with(tmp_path, worker, exchange=Closed())
    assert sorted(records) == [*range(1, 21)] and journal.alone == [20]


async def test_a_page_whose_worker_is_killed_by_chance_while_it_is_alone_is_parsed(tmp_path):
    killed = []

    def worker(unit):
        if 7 in numbers(unit) and len(killed) < 4:
            killed.append(unit.alone)
            return [UnitResult(number=unit.number, node="one", died=True)]
        return [parsed(unit)]

    records, _, _ = await run_with(tmp_path, worker)
    assert killed == [False, True, True, True] and records[7].status is Status.DONE


async def test_what_a_worker_gives_back_is_parsed_by_another_and_was_no_attempt(tmp_path):
    seen = set()

    def worker(unit):
        first = {7, 9} & set(numbers(unit)) and not {7, 9} & seen
        seen.update(numbers(unit))
        if not first:
            return [parsed(unit)]
        return [msgspec.structs.replace(parsed(unit, without=(7, 9)), left=True)]

    records, journal, _ = await run_with(tmp_path, worker)
    assert sorted(records) == [*range(1, 21)] and not journal.alone
    assert {(page.status, page.attempts) for page in records.values()} == {(Status.DONE, 1)}


async def test_pages_are_counted_while_the_run_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_CHECK_S", 0.01)
    shown = threading.Event()

    def show(counts):
        if counts == {"done": 18, "failed": 1, "in_flight": 1}:
            shown.set()

    def worker(unit):
        if 12 in numbers(unit) and unit.alone:  # the last page
            assert shown.wait(20)
        return [parsed(unit, fails=(3,) if unit.alone else (3, 12))]

    await run_with(tmp_path, worker, show=show)
    assert shown.is_set()


async def test_a_failed_page_is_retried_alone(tmp_path):
    def worker(unit):
        return [parsed(unit, fails=() if unit.alone else (3, 12))]

    records, journal, _ = await run_with(tmp_path, worker)
    assert sorted(journal.alone) == [3, 12]
    assert {page.status for page in records.values()} == {Status.DONE} and records[3].attempts == 2


async def test_a_page_that_one_worker_cannot_read_is_read_by_another(tmp_path):
    def worker(unit):
        return [parsed(unit, without=(5,) if not unit.alone else ())]

    records, _, _ = await run_with(tmp_path, worker)
    assert {page.status for page in records.values()} == {Status.DONE}

    records, _, _ = await run_with(tmp_path, lambda unit: [parsed(unit, without=(5,))])
    assert records[5].status is Status.FAILED
    (error,) = records[5].errors
    assert (error.category, error.message) == ("corrupt", "no space (on one)")


async def test_results_that_come_twice_are_taken_once(tmp_path):
    records, _, _ = await run_with(tmp_path, lambda unit: [parsed(unit), parsed(unit)])
    assert sorted(records) == [*range(1, 21)]


async def test_an_error_of_a_worker_ends_the_run(tmp_path):
    error = PageError(component="worker", category=NetworkError.category, message="no server answers")
    with pytest.raises(NetworkError, match="no server answers"):
        await run_with(tmp_path, lambda unit: [UnitResult(number=unit.number, node="one", error=error)])


async def test_a_cluster_whose_head_does_not_answer_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_CHECK_S", 0.01)
    monkeypatch.setattr(run_module, "_SILENCE_S", 0.1)
    asked, released = threading.Event(), threading.Event()

    def look():
        if asked.is_set():
            released.wait(20)  # as the call of Ray's library, which has no limit
        asked.set()
        return 2, {"worker"}

    def worker(unit):
        released.wait(20)
        return []

    try:
        with pytest.raises(NetworkError, match="has not answered") as raised:
            await run_with(tmp_path, worker, look=look)
    finally:
        released.set()
    assert "resume" in raised.value.remedy


class ActorDiedError(Exception):
    """Stands for Ray's."""


class TaskError(Exception):
    """Stands for Ray's: a traceback of another process, and the cause."""

    def __init__(self, cause):
        super().__init__(f"Traceback (most recent call last):\n  File\n{cause}")
        self.cause = cause


@pytest.mark.parametrize("wrapped", [False, True])
async def test_an_actor_that_dies_ends_the_run_with_one_line(tmp_path, monkeypatch, wrapped):
    """Whoever meets it first: the one who looks at the exchange, or a task that reads from it."""
    monkeypatch.setattr(run_module, "_CHECK_S", 0.01)
    died = ActorDiedError("The actor died.\n\tclass_name: Exchange\n" + "cause " * 200)

    class Dead(Exchange):
        async def started(self):
            raise died

    def worker(unit):
        if wrapped:
            raise TaskError(died)
        return []

    with pytest.raises(WorkerCrashError) as raised:
        await run_with(tmp_path, worker, exchange=Exchange() if wrapped else Dead())
    assert raised.value.message == "Ray ended the run (ActorDiedError): The actor died."
    assert "resume" in raised.value.remedy


async def test_a_unit_that_no_worker_begins_is_offered_again(tmp_path, monkeypatch):
    """As when a worker dies before it has started. The journal hears of its pages once."""
    monkeypatch.setattr(run_module, "_CHECK_S", 0.01)
    monkeypatch.setattr(run_module, "_UNBEGUN_S", 0.0)
    seen = set()

    def worker(unit):
        first = 9 in numbers(unit) and 9 not in seen
        seen.update(numbers(unit))
        return [] if first else [parsed(unit)]

    records, journal, _ = await run_with(tmp_path, worker)
    assert sorted(records) == [*range(1, 21)]
    assert {page.status for page in records.values()} == {Status.DONE} and not journal.alone
    assert sorted(journal.starts) == [*range(1, 21)]


async def test_a_unit_whose_worker_is_gone_permanently_is_retried(tmp_path, monkeypatch):
    """As when others have taken its room, although its machine is there: Ray does not execute it again."""
    monkeypatch.setattr(run_module, "_CHECK_S", 0.01)
    exchange, lost = Exchange(), []

    def worker(unit):
        exchange._workers[unit.number] = "worker"
        if 9 in numbers(unit) and not lost:
            lost.append(unit.number)
            exchange._workers[unit.number] = "gone"
            return []
        return [parsed(unit)]

    records, journal, _ = await run_with(tmp_path, worker, exchange=exchange)
    assert lost and 9 in journal.alone
    assert {page.status for page in records.values()} == {Status.DONE}


async def test_a_unit_without_room_on_one_machine_goes_to_another(tmp_path):
    full = PageError(component="worker", category=NoSpaceError.category, message="no room")
    refused = []

    def worker(unit):
        if 9 in numbers(unit) and not refused:
            refused.append(unit)
            return [UnitResult(number=unit.number, node="two", error=full)]
        return [parsed(unit)]

    records, _, _ = await run_with(tmp_path, worker)
    assert refused and sorted(records) == [*range(1, 21)]

    with pytest.raises(NoSpaceError, match="no room"):  # nobody has delivered a page
        await run_with(tmp_path, lambda unit: [UnitResult(number=unit.number, node="two", error=full)])
