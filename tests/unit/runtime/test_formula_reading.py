"""The formula service: which engine reads, in batches, and what becomes of an engine that fails."""

import asyncio
import threading

import numpy as np
import pytest

from pagemill.errors import CorruptInputError, EngineError
from pagemill.recognition.base import FormulaOffer, RecognizedFormula
from pagemill.runtime import engines
from pagemill.runtime.formula_reading import FormulaReading
from pagemill.runtime.threads import ComputeThreads


class Engine:
    """Answers with the width of a crop, and says who it is by where it ran."""

    max_batch = 8

    def __init__(self):
        self.closed, self.batches, self.threads = False, [], set()

    def recognize(self, crops):
        self.batches.append(len(crops))
        self.threads.add(threading.current_thread())
        if any(crop.shape[1] == 13 for crop in crops):
            raise ValueError("unlucky")
        return [RecognizedFormula(latex=str(crop.shape[1]), confidence=0.5) for crop in crops]

    def close(self):
        self.closed = True


@pytest.fixture
async def service():
    threads = ComputeThreads(2, name="test", stuck=asyncio.Event(), grace_s=5.0)
    service = FormulaReading(threads=threads, lanes=1)
    yield service
    await service.close()
    await threads.close()


@pytest.fixture
def install(monkeypatch):
    def install(**offers):
        monkeypatch.setattr(engines, "names", lambda group: list(offers))
        monkeypatch.setattr(engines, "load", lambda group, name: offers[name])

    return install


def offering(create, name="theirs"):
    return lambda: [FormulaOffer(name=name, create=create)]


def crops(*widths):
    return [np.zeros((5, width, 3), np.uint8) for width in widths]


async def test_without_a_model_nothing_reads(service, install):
    install(formulanet=list)
    assert await service.engine() is None


async def test_an_engine_of_another_package_comes_before_the_own_one(service, install):
    install(formulanet=offering(Engine, "own"), zeta=offering(Engine))
    assert await service.engine() == "theirs"


async def test_it_is_loaded_once_and_reads_in_batches_on_a_thread(service, install):
    made = []
    install(theirs=offering(lambda: made.append(Engine()) or made[-1]))
    assert await service.engine() == "theirs"
    assert made == []
    first, second = await asyncio.gather(service.read(crops(1, 2, 3)), service.read(crops(4)))
    assert [answer.latex for answer in first + second] == ["1", "2", "3", "4"]
    (engine,) = made
    assert max(engine.batches) > 1
    assert threading.main_thread() not in engine.threads
    await service.close()
    assert engine.closed


async def test_only_the_formula_that_breaks_it_fails(service, install):
    install(theirs=offering(Engine))
    await service.engine()
    good, bad, other = await service.read(crops(1, 13, 2))
    assert (good.latex, other.latex) == ("1", "2")
    assert isinstance(bad, EngineError)
    assert "the formula engine 'theirs' failed: ValueError: unlucky" in bad.message


@pytest.mark.parametrize("wrong", [{"latex": "x" * 20_001}, {"latex": None}, {"latex": "x", "confidence": 7.0}])
async def test_an_answer_out_of_bounds_is_refused(service, install, wrong):
    class Wrong(Engine):
        def recognize(self, crops):
            return [RecognizedFormula(**wrong) for _ in crops]

    install(theirs=offering(Wrong))
    await service.engine()
    (answer,) = await service.read(crops(1))
    assert isinstance(answer, EngineError)
    assert "invalid answer" in answer.message


async def test_a_model_that_does_not_load(service, install):
    def broken():
        raise CorruptInputError("formulas.onnx is not a model")

    install(theirs=offering(broken))
    await service.engine()
    with pytest.raises(CorruptInputError, match=r"formulas\.onnx"):
        await service.read(crops(1))


async def test_an_engine_that_cannot_say_what_it_offers(service, install):
    install(theirs=lambda: 1 / 0)
    with pytest.raises(EngineError, match="'theirs'"):
        await service.engine()
