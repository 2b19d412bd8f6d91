"""The engine `transformers` before a model is loaded: what it lacks, and batches of a model that is made up."""

import asyncio
import json
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from pagemill import tracing
from pagemill.config.model_cards import load_card
from pagemill.config.modes import TorchDevice
from pagemill.config.recognition import LocalModelSettings, RecognitionSettings
from pagemill.document.labels import Task
from pagemill.errors import EngineError, MissingDependencyError, MissingInputError, UsageError
from pagemill.inference.chat import Answer
from pagemill.inference.exchange import RequestRefusedError
from pagemill.recognition import transformers_engine
from pagemill.recognition.local import generation
from pagemill.recognition.local.chat import LocalChat
from pagemill.recognition.local.model import find_checkpoint, load_shared
from pagemill.runtime.region_reading import CheckedReader

CROP = np.random.default_rng(0).integers(0, 255, (600, 700, 3), dtype=np.uint8)


def test_without_the_weights_the_command_that_downloads_them_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PAGEMILL_MODELS", str(tmp_path))
    monkeypatch.setattr(transformers_engine, "require_packages", lambda what: None)
    monkeypatch.setattr("pagemill.recognition.local.model.find_model", lambda card: None)
    with pytest.raises(MissingInputError, match="glm-ocr are not on this machine") as caught:
        transformers_engine.create(RecognitionSettings(engine="transformers", model="glm-ocr"))
    assert "pagemill models download glm-ocr" in caught.value.remedy


@pytest.mark.parametrize("holds", [None, [], ["config.json"], ["config.json", "model.safetensors.index.json"]])
def test_a_folder_that_is_no_whole_checkpoint_is_named(tmp_path, holds):
    folder = tmp_path / "weights"
    if holds is not None:
        folder.mkdir()
        for name in holds:
            (folder / name).write_text(json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors"}}))
    with pytest.raises(MissingInputError, match="weights") as caught:
        find_checkpoint(load_card("glm-ocr"), str(folder))
    assert "--recognition-weights" in caught.value.remedy


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="transformers needs torch") as caught:
        transformers_engine.create(RecognitionSettings(engine="transformers"))
    assert "[gpu]" in caught.value.remedy


def test_code_is_trusted_of_the_model_that_runs_alone(monkeypatch, tmp_path):
    monkeypatch.setattr("pagemill.recognition.local.model.find_checkpoint", lambda card, weights: tmp_path)
    monkeypatch.setattr("pagemill.recognition.local.model.choose_device", lambda wanted, option: TorchDevice.CPU)
    monkeypatch.setattr("pagemill.recognition.local.model.choose_dtype", lambda wanted, device: "float32")
    with pytest.raises(UsageError, match="names 'deepseek-ocr'"):
        load_shared(load_card("glm-ocr"), LocalModelSettings(trust_remote_code="deepseek-ocr"))


class MadeUpModel:
    """Answers with the sizes of images; has memory for so many pixels at once."""

    def __init__(self, *, max_batch: int, pixels: int) -> None:
        self.max_batch = max_batch
        self.batches: list[int] = []
        self._pixels = pixels

    def answer(self, requests):
        self.batches.append(len(requests))
        if sum(request.size for request in requests) > self._pixels:
            if len(requests) == 1:
                raise RequestRefusedError("the device has too little memory for the image", status=413)
            raise RuntimeError("MPS backend out of memory")
        return [Answer(text=f"{request.size:.0f} pixels", finish_reason="stop") for request in requests]


async def read(model: MadeUpModel, count: int, monkeypatch) -> list:
    """Read so many regions with the model, as a run does."""
    card = load_card("glm-ocr")
    chat = LocalChat(card, LocalModelSettings())
    monkeypatch.setattr(chat, "_load", lambda: model)
    reader = CheckedReader(
        transformers_engine.LocalReader(card, chat, card.reads), RecognitionSettings(engine="transformers")
    )
    try:
        await reader.check()
        assert reader.in_flight == 2 * model.max_batch
        prepared = reader.prepare(CROP, Task.TEXT)
        return await asyncio.gather(*(reader.read(prepared) for _ in range(count)))
    finally:
        await reader.aclose()


async def test_regions_are_read_in_batches(monkeypatch):
    model = MadeUpModel(max_batch=4, pixels=10**9)
    readings = await read(model, 10, monkeypatch)
    assert [reading.content for reading in readings] == ["420000 pixels"] * 10
    assert {(reading.engine, reading.problem, reading.attempts) for reading in readings} == {
        ("transformers:glm-ocr", None, 1)
    }
    assert model.batches == [4, 4, 2]


class SlowModel(MadeUpModel):
    """Computes a batch until nobody waits for it."""

    def __init__(self, unwanted) -> None:
        super().__init__(max_batch=4, pixels=10**9)
        self.begun = threading.Event()
        self.ended = 0
        self._unwanted = unwanted

    def answer(self, requests):
        self.begun.set()
        while not self._unwanted():
            time.sleep(0.001)
        self.ended += 1
        raise EngineError("the request was cancelled")


@pytest.mark.parametrize("timed_out", [True, False])
async def test_a_slow_batch_ends_once_its_pages_have_timed_out_or_the_run_ends(monkeypatch, timed_out):
    monkeypatch.setattr("pagemill.recognition.local.model.load_shared", lambda card, settings: None)
    monkeypatch.setattr(generation, "Generator", lambda model, card, batch, *, unwanted: SlowModel(unwanted))
    card, stuck = load_card("glm-ocr"), asyncio.Event()
    chat = LocalChat(card, LocalModelSettings())
    engine = transformers_engine.LocalReader(card, chat, card.reads)
    reader = CheckedReader(engine, RecognitionSettings(engine="transformers"), stuck=stuck)
    await reader.check()
    model = chat._batcher._call.__self__
    prepared = reader.prepare(CROP, Task.TEXT)
    pages = [asyncio.create_task(reader.read(prepared)) for _ in range(3)]
    await asyncio.to_thread(model.begun.wait)
    if timed_out:
        for page in pages:
            page.cancel()
        await asyncio.wait(pages)
    await reader.aclose()
    await asyncio.wait(pages)
    assert model.ended == 1
    assert not stuck.is_set()


async def test_a_profile_has_its_batches_and_no_server(monkeypatch):
    spans = []
    listener = SimpleNamespace(work=spans.append, waited=lambda *_: None)
    token = tracing.LISTENER.set(listener)
    try:
        await read(MadeUpModel(max_batch=4, pixels=10**9), 5, monkeypatch)
    finally:
        tracing.LISTENER.reset(token)
    computed = [span for span in spans if span.stage != tracing.LOAD]
    assert sorted((span.resource, span.items) for span in computed) == [("pagemill.recognition", n) for n in (1, 4)]
    assert [span.resource for span in spans if span.stage == tracing.LOAD] == ["pagemill.recognition"]


async def test_batches_are_halved_when_memory_runs_out(monkeypatch):
    model = MadeUpModel(max_batch=4, pixels=900_000)
    readings = await read(model, 8, monkeypatch)
    assert [reading.content for reading in readings] == ["420000 pixels"] * 8
    assert model.batches == [4, 2, 2, 2, 2]


async def test_a_region_for_which_memory_is_too_small_is_shrunk(monkeypatch):
    model = MadeUpModel(max_batch=1, pixels=250_000)
    (reading,) = await read(model, 1, monkeypatch)
    assert int(reading.content.split()[0]) <= 210_000
    assert reading.attempts == 2
