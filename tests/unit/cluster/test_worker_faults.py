"""What a worker makes of a unit when its machine gives out. Ray and the pipeline are played by the test."""

import asyncio
import importlib
import logging
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from pagemill import tracing
from pagemill.cluster.exchange import Exchange
from pagemill.cluster.units import Unit, UnitResult, UnitSource, WorkerTask, decode_result, encode
from pagemill.config.machine import RuntimeSettings
from pagemill.config.settings import LayoutChoice, ParseSettings
from pagemill.document.identity import WaitingPage
from pagemill.document.page import PageResult, Status
from pagemill.errors import NoSpaceError
from pagemill.parsing.page import ParsedPage
from pagemill.sources import SourceOptions
from pagemill.sources.base import DocumentRef
from pagemill.store.paths import FOLDER

DIGEST = "d" * 64


class Services:
    """None."""

    def __init__(self, *_):
        pass

    async def __aenter__(self):
        return self

    async def prepare(self):
        pass

    async def share(self):
        pass

    def borrowed(self):
        return self


class Pipeline:
    """Gives the pages of a unit, each with two crops; after ``held`` of them it waits for ever."""

    held: int | None = None
    reached: threading.Event

    def __init__(self, *_):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def stream(self, inputs, options, *, catalogue, max_attempts):
        for number in (1, 2, 3):
            if number - 1 == self.held:
                self.reached.set()
                await asyncio.Event().wait()
            record = PageResult(
                page_id=f"a-{number}",
                page_idx=number - 1,
                page_key=f"{DIGEST}:{number}",
                page_number=number,
                doc_id="a",
                source="a.pdf",
                attempts=1,
                status=Status.DONE,
            )
            crops = tuple((f"crops/a-{number}_crop_{crop}.jpg", b"crop %d" % number) for crop in (0, 1))
            yield ParsedPage(document=DocumentRef(uri="a.pdf", doc_id="a"), record=record, crops=crops)


class Metric:
    """One of Ray's."""

    values: dict[str, float]

    def __init__(self, name, *, description, tag_keys=()):
        self._name = name
        self.values[name] = 0

    def inc(self, *, tags):
        assert tags == {"status": "done"}
        self.values[self._name] += 1

    def set(self, value):
        self.values[self._name] = value


class Handle:
    """An actor's handle: each method has ``remote``."""

    def __init__(self, actor):
        self._actor = actor

    def __getattr__(self, name):
        method = getattr(self._actor, name)
        return type("Method", (), {"remote": staticmethod(lambda *given: asyncio.ensure_future(method(*given)))})


@pytest.fixture
def module(monkeypatch):
    """The module of workers, without Ray."""
    context = SimpleNamespace(get_actor_id=lambda: "actor", get_node_id=lambda: "node")
    drained: dict[str, int] = {}
    state = SimpleNamespace(state=SimpleNamespace(get_draining_nodes=lambda: drained))
    ray = SimpleNamespace(get_runtime_context=lambda: context, _private=SimpleNamespace(state=state), drained=drained)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ray.util.metrics", SimpleNamespace(Counter=Metric, Gauge=Metric))
    before = signal.getsignal(signal.SIGTERM)
    names = ("pagemill.cluster.worker", "pagemill.cluster.metrics")
    saved = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        module = importlib.import_module("pagemill.cluster.worker")
        monkeypatch.setattr(module, "Services", Services)
        monkeypatch.setattr(module, "Pipeline", Pipeline)
        monkeypatch.setattr(module, "_DRAIN_CHECK_S", 0.01)
        monkeypatch.setattr(Pipeline, "reached", threading.Event(), raising=False)
        monkeypatch.setattr(Metric, "values", {}, raising=False)
        yield module
    finally:
        signal.signal(signal.SIGTERM, before)
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(saved)


@pytest.fixture
def worker(module, tmp_path, monkeypatch):
    """A worker that sees the output directory; its exchange has every unit parsed."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "token").touch()
    (tmp_path / "crops").mkdir()
    monkeypatch.chdir(tmp_path)  # where it goes itself
    task = WorkerTask(
        settings=ParseSettings(),
        runtime=RuntimeSettings(),
        layout=LayoutChoice(),
        source=SourceOptions(),
        folder=str(tmp_path),
        out=tmp_path,
        token="token",
    )

    async def begin(number, node):
        return module.Verdict.PARSE

    exchange = SimpleNamespace(begin=SimpleNamespace(remote=begin))
    worker = module.PageWorker(task, exchange)
    yield worker
    worker._leaving = True


def parse(worker, uri="a.pdf"):
    pages = {number: WaitingPage(page_id=f"a-{number}", doc_id="a", position=number - 1) for number in (1, 2, 3)}
    source = UnitSource(uri=uri, digest=DIGEST, copy=0, size=None, modified_ns=None, pages=pages)
    return decode_result(worker({"unit": encode(Unit(number=0, sources=[source]))})["result"])


def test_crops_go_to_storage_and_where_that_is_full_to_the_driver(module, worker, tmp_path, monkeypatch):
    written = module.write_whole

    def write_whole(path, chunks, *, durable):
        if path.name == "a-2_crop_1.jpg":  # half of the crops of a page are there already
            raise NoSpaceError("the disk is full")
        written(path, chunks, durable=durable)

    monkeypatch.setattr(module, "write_whole", write_whole)
    result = parse(worker)
    assert result.error is None and len(result.pages) == 3
    crops = [dict(page.crops) for page in result.pages]
    assert crops == [{}, {"crops/a-2_crop_0.jpg": b"crop 2", "crops/a-2_crop_1.jpg": b"crop 2"}, {}]
    here = {path.name for path in (tmp_path / "crops").iterdir()}
    assert here >= {"a-1_crop_0.jpg", "a-1_crop_1.jpg", "a-3_crop_0.jpg", "a-3_crop_1.jpg"}


def test_a_full_disk_for_copies_holds_up_no_local_file_and_no_run(module, worker, monkeypatch):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    monkeypatch.setattr(module, "_ROOM_CHECK_S", 0.0)
    monkeypatch.setattr(module, "_ROOM_S", 0.0)
    assert len(parse(worker).pages) == 3

    module.ray.get = lambda value: value
    worker._exchange.is_wanted = SimpleNamespace(remote=lambda _: True)
    error = parse(worker, "s3://bucket/a.pdf").error
    assert error is not None and error.category == NoSpaceError.category

    monkeypatch.setattr(module, "_ROOM_S", 3600.0)
    worker._exchange.is_wanted = SimpleNamespace(remote=lambda _: False)  # the run is stopping
    assert parse(worker, "s3://bucket/a.pdf").error is None


@pytest.mark.parametrize("notice", ["sigterm", "drain"])
def test_a_worker_that_has_to_leave_gives_back_its_units_and_ends(module, worker, monkeypatch, notice):
    ended = threading.Event()
    monkeypatch.setattr(module, "_SEND_S", 0.0)
    module.os = SimpleNamespace(_exit=lambda status: ended.set())  # never put back: the module is this test's own
    monkeypatch.setattr(Pipeline, "held", 2)
    with ThreadPoolExecutor() as pool:
        parsing = pool.submit(parse, worker)
        assert Pipeline.reached.wait(20)
        assert Metric.values == {"pagemill_pages": 2, "pagemill_pages_in_flight": 1}
        if notice == "sigterm":
            signal.raise_signal(signal.SIGTERM)
        else:
            module.ray.drained["node"] = 0
        result = parsing.result(20)
    assert result.left and not result.died and len(result.pages) == 2
    assert Metric.values == {"pagemill_pages": 2, "pagemill_pages_in_flight": 0}
    assert ended.wait(20)


async def test_units_that_wait_for_one_that_is_alone_have_not_started(module):
    """Else its page, which ends the worker, would take an attempt from the pages behind it."""
    exchange, release = Exchange(), asyncio.Event()
    parsing = asyncio.Queue()

    async def parse(unit):
        parsing.put_nowait(unit.number)
        await release.wait()
        return UnitResult(number=unit.number, node="node")

    worker = object.__new__(module.PageWorker)
    worker._exchange, worker._id, worker._gate, worker._parse = Handle(exchange), "actor", module._Gate(), parse
    tasks = []
    for number in range(3):
        await exchange.offer(b"unit")
        tasks.append(asyncio.create_task(worker._parse_in_turn(Unit(number=number, sources=[], alone=number < 2))))
    assert await parsing.get() == 0
    for _ in range(10):
        await asyncio.sleep(0)
    assert await exchange.started() == {0: "actor"}

    await exchange.done(1)  # withdrawn: its turn comes, and it is not parsed
    release.set()
    assert [(result.number, result.died) for result in await asyncio.gather(*tasks)] == [
        (0, False),
        (1, False),
        (2, False),
    ]
    assert [parsing.get_nowait()] == [2] and parsing.empty()


def test_what_is_logged_about_a_page_goes_with_it(module):
    log = module.PageLog()
    for page, message in (("", "a model was loaded"), ("a-1", "read"), ("a-2", "read")):
        tracing.PAGE.set(page)
        log.handle(logging.makeLogRecord({"name": "pagemill.parsing.page", "levelno": logging.INFO, "msg": message}))
    assert [message for _, _, message in log.take("a-1")] == ["a model was loaded", "read"]
    assert log.take("a-1") == []
    assert log.take("a-2") == [("pagemill.parsing.page", logging.INFO, "read")]
