"""The engine `vlm` as the runtime sees it, against stub servers."""

import asyncio
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from pagemill.config.modes import ReadingMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.labels import Task
from pagemill.errors import UsageError
from pagemill.installation import install_extra
from pagemill.recognition.vlm_engine import create
from pagemill_bench.testing.stub_answers import TEXT
from pagemill_bench.testing.stub_server import StubServer, StubSettings

CROP = np.random.default_rng(0).integers(0, 255, (60, 200, 3), dtype=np.uint8)


def settings(*urls: str, **options) -> RecognitionSettings:
    return RecognitionSettings(engine="vlm", servers=urls, **options)


async def test_reads_regions_by_task():
    async with StubServer(StubSettings(model="glm-ocr", keep_bodies=9)) as server:
        reader = create(settings(server.url, workers=4))
        try:
            await reader.check()
            assert (reader.name, reader.in_flight) == ("vlm:glm-ocr", 4)
            prepared = [reader.prepare(CROP, task) for task in (Task.TEXT, Task.TABLE, Task.FORMULA)]
            text, table, formula = await asyncio.gather(*[reader.read(each) for each in prepared])
        finally:
            await reader.aclose()
    assert text.content == TEXT
    assert "<td>Apple</td>" in table.content
    assert "frac" in formula.content
    assert {reading.problem for reading in (text, table, formula)} == {None}
    assert text.engine == "vlm:glm-ocr"
    assert server.counts["requests"] == server.counts["answered"] == 3


@pytest.mark.parametrize("named", [None, "served-as-this"])
async def test_asks_for_the_model_by_the_name_that_the_server_gives_it(named):
    async with StubServer(StubSettings(model="served-as-this", keep_bodies=1)) as server:
        reader = create(settings(server.url, served_model=named))
        try:
            await reader.check()
            assert (await reader.read(reader.prepare(CROP, Task.TEXT))).content
        finally:
            await reader.aclose()
        assert msgspec.json.decode(server.bodies[0])["model"] == "served-as-this"
        assert reader.served_model == "served-as-this"


async def test_a_name_that_the_card_goes_by_tells_no_runs_apart():
    for name in ("glm-ocr", "zai-org/GLM-OCR"):
        async with StubServer(StubSettings(model=name)) as server:
            reader = create(settings(server.url, served_model=name))
            await reader.check()
            await reader.aclose()
            assert reader.served_model == ""


async def test_asks_for_no_longer_answers_than_the_server_allows():
    async with StubServer(StubSettings(model="glm-ocr", max_model_len=4096, keep_bodies=1)) as server:
        reader = create(settings(server.url))
        try:
            await reader.check()
            await reader.read(reader.prepare(CROP, Task.TEXT))
        finally:
            await reader.aclose()
        assert 3900 < msgspec.json.decode(server.bodies[0])["max_tokens"] < 4096  # image and prompt take some


async def test_the_longest_answer_is_that_of_the_user():
    async with StubServer(StubSettings(model="glm-ocr", max_model_len=32_768, keep_bodies=1)) as server:
        reader = create(settings(server.url, max_tokens=16_384))
        try:
            await reader.check()
            await reader.read(reader.prepare(CROP, Task.TEXT))
        finally:
            await reader.aclose()
        assert msgspec.json.decode(server.bodies[0])["max_tokens"] == 16_384


async def test_longer_answers_than_the_server_has_room_for_are_refused():
    async with StubServer(StubSettings(model="glm-ocr", max_model_len=16_384)) as server:
        reader = create(settings(server.url, max_tokens=16_384))
        try:
            with pytest.raises(UsageError, match="accepts requests of at most 16,384") as caught:
                await reader.check()
        finally:
            await reader.aclose()
    assert "--max-tokens" in str(caught.value.remedy)


async def test_a_model_that_is_not_served():
    async with StubServer(StubSettings(model="other")) as server:
        reader = create(settings(server.url, served_model="glm-ocr"))
        try:
            with pytest.raises(UsageError, match="does not serve 'glm-ocr'") as caught:
                await reader.check()
        finally:
            await reader.aclose()
    assert f"{server.url} serves other" in caught.value.remedy


async def test_reads_on_with_the_servers_that_have_the_model():
    async with StubServer(StubSettings(model="other")) as wrong, StubServer(StubSettings(model="glm-ocr")) as right:
        reader = create(settings(wrong.url, right.url))
        try:
            await reader.check()
            readings = await asyncio.gather(*[reader.read(reader.prepare(CROP, Task.TEXT)) for _ in range(4)])
        finally:
            await reader.aclose()
    assert {reading.problem for reading in readings} == {None}
    assert right.counts["requests"] == right.counts["answered"] == 4


async def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("PAGEMILL_API_KEY", "secret")
    async with StubServer(StubSettings(model="glm-ocr", api_key="secret")) as server:
        reader = create(settings(server.url))
        try:
            await reader.check()
            monkeypatch.delenv("PAGEMILL_API_KEY")
            without = create(settings(server.url))
            with pytest.raises(UsageError, match="401") as caught:
                await without.check()
            await without.aclose()
        finally:
            await reader.aclose()
    assert "PAGEMILL_API_KEY" in caught.value.remedy


def test_without_a_server():
    with pytest.raises(UsageError, match="no model server is named"):
        create(settings())


def test_without_aiohttp_the_error_names_the_command_that_installs_it():
    code = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "from pagemill.errors import MissingDependencyError\n"
        "from pagemill.runtime.engines import REGION_ENGINES, load\n"
        "try: load(REGION_ENGINES, 'vlm')\n"
        "except MissingDependencyError as error: print(error.remedy)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert install_extra("vlm") in run.stdout


@pytest.mark.parametrize(
    ("model", "reading", "expected"),
    [
        ("glm-ocr", None, ReadingMode.REGIONS),
        ("deepseek-ocr", None, ReadingMode.PAGES),
        ("deepseek-ocr-2", None, ReadingMode.PAGES),
        ("deepseek-ocr", ReadingMode.REGIONS, ReadingMode.REGIONS),
    ],
)
async def test_reads_what_its_model_is_made_for_or_what_it_is_told_to(model, reading, expected):
    reader = create(settings("http://127.0.0.1:9", model=model, reading=reading))
    assert reader.reads is expected
    await reader.aclose()


def test_a_model_without_a_prompt_for_pages_reads_none():
    with pytest.raises(UsageError, match="glm-ocr does not read whole pages"):
        create(settings("http://127.0.0.1:9", reading=ReadingMode.PAGES))


async def test_reads_a_page():
    text = "<|ref|>text<|/ref|><|det|>[[0, 0, 999, 500]]<|/det|>\nWords"
    async with StubServer(StubSettings(model="deepseek-ocr", text=text)) as server:
        reader = create(settings(server.url, model="deepseek-ocr"))
        try:
            reading = await reader.read_page(reader.prepare(CROP, Task.PAGE))
        finally:
            await reader.aclose()
    assert reading.elements is not None
    assert [element.content for element in reading.elements] == ["Words"]
