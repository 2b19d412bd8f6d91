import asyncio
import json

import msgspec
import numpy as np
import pytest

from pagemill.config.describing import DescribeSettings
from pagemill.config.modes import Described
from pagemill.config.recognition import RecognitionSettings
from pagemill.describing.describer import Describer
from pagemill.describing.elements import ElementRequest
from pagemill.document.page import Description
from pagemill.errors import UsageError
from pagemill.export.context import Surroundings
from pagemill.imaging.encode import encode_jpeg
from pagemill.recognition.base import Problem
from pagemill.store.descriptions import DescriptionStore
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

SAID = json.dumps({"language": "en", "summary": "A mill.", "keywords": ["mill"], "data": None})


def element(seed=0, caption="Figure 1. A mill", kind=Described.FIGURES):
    pixels = np.random.default_rng(seed).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    around = Surroundings("Before.", "After.", (caption,))
    return ElementRequest(index=seed, kind=kind, picture=encode_jpeg(pixels), around=around, language="en")


async def describing(elements, stub=None, store=None, **settings):
    """The answers about elements that are in flight together, the describer's counts, and the server."""
    async with StubServer(stub or StubSettings(text=SAID, keep_bodies=50)) as server:
        describer = Describer(DescribeSettings(servers=(server.url,), **settings), RecognitionSettings())
        describer.answers = store
        try:
            await describer.check()
            answers = await asyncio.gather(*map(describer.describe, elements))
        finally:
            await describer.aclose()
    return answers, describer.counts, server


async def test_a_description_with_its_provenance():
    (answer,), counts, server = await describing([element()])
    assert answer == Description(
        summary="A mill.", keywords=("mill",), language="en", engine="vlm:generic", model="stub", attempts=1
    )
    assert (counts.described, counts.failed, counts.attempts) == (1, 0, 1)
    assert (counts.prompt_tokens, counts.completion_tokens) == (300, len(SAID) // 3 + 1)
    body = msgspec.json.decode(server.bodies[0])
    assert body["response_format"]["json_schema"]["name"] == "description"
    image, text = body["messages"][0]["content"]
    assert image["image_url"]["url"].startswith("data:image/jpeg;base64,")
    for piece in ("shows a figure", "Caption: Figure 1. A mill", "Text before it: Before.", "Text after it: After."):
        assert piece in text["text"]


async def test_what_is_doubtful_about_an_answer_goes_with_the_description():
    (answer,), counts, _ = await describing([element()], StubSettings(text='{"summary": "A", ' + SAID[1:]))
    assert (answer.summary, counts.attempts) == ("A mill.", 3)
    assert answer.left_out == ("the answer gives 'summary' several values: the last one is taken",)


async def test_the_same_picture_is_asked_about_once():
    answers, counts, server = await describing([element(), element(caption="Figure 2"), element(1)])
    assert [answer.summary for answer in answers] == ["A mill."] * 3
    assert (server.counts["requests"], counts.described, counts.reused) == (2, 3, 1)


async def test_the_limit_counts_what_is_asked():
    answers, counts, server = await describing([element(seed) for seed in (0, 0, 1, 2, 3)], limit=2)
    assert [answer is not None for answer in answers] == [True, True, True, False, False]
    assert (server.counts["requests"], counts.left) == (2, 2)


async def test_answers_are_kept_across_processes(tmp_path):
    store = DescriptionStore(tmp_path / "answers.sqlite")
    first, _, _ = await describing([element(0), element(1)], store=store)
    store.close()
    store = DescriptionStore(tmp_path / "answers.sqlite")
    second, counts, server = await describing([element(0), element(1), element(2)], store=store)
    assert second[:2] == first
    assert (server.counts["requests"], counts.reused) == (1, 2)
    store.close()


async def test_a_damaged_store_is_made_again(tmp_path):
    file = tmp_path / "answers.sqlite"
    file.write_bytes(b"no database" * 1000)
    store = DescriptionStore(file)
    assert store.get(b"k") is None
    store.put(b"k", b"v")
    assert store.get(b"k") == b"v"
    store.close()


@pytest.mark.parametrize(
    ("settings", "category", "requests"),
    [
        ({"faults": {Fault.TRUNCATED: 1.0}}, "truncated", 2),
        ({"faults": {Fault.LOOP: 1.0}}, "repetition", 2),
        ({"text": "It shows a mill."}, "invalid_json", 3),
        ({"text": ""}, "empty_answer", 3),
        ({"text": '{"keywords": []}'}, "schema", 3),
        ({"text": "[" * 50_000 + "{"}, "invalid_json", 3),
    ],
)
async def test_what_is_wrong_with_an_answer_costs_that_element_alone(settings, category, requests):
    stub = StubSettings(**{"text": SAID} | settings)
    (answer,), counts, server = await describing([element()], stub)
    assert isinstance(answer, Problem)
    assert (answer.category, server.counts["requests"], counts.failed) == (category, requests, 1)


async def test_a_failure_is_not_kept(tmp_path):
    store = DescriptionStore(tmp_path / "answers.sqlite")
    await describing([element()], StubSettings(text="no"), store)
    (answer,), _, _ = await describing([element()], store=store)
    assert answer.summary == "A mill."
    store.close()


async def test_without_its_picture_nothing_is_described():
    (answer,), _, _ = await describing([element()], StubSettings(text=SAID, max_image_pixels=100))
    assert isinstance(answer, Problem)
    assert answer.category == "refused"


def test_who_describes():
    reader = RecognitionSettings(engine="vlm", model="qwen3-vl-8b", servers=("http://a",), served_model="x")
    assert Describer(DescribeSettings(), reader)._card.name == "qwen3-vl-8b"
    assert Describer(DescribeSettings(servers=("http://b",)), reader)._card.name == "generic"
    assert Describer(DescribeSettings(model="qwen3-vl-2b"), reader)._card.name == "qwen3-vl-2b"
    with pytest.raises(UsageError, match="needs a model behind a server"):
        Describer(DescribeSettings(), RecognitionSettings())
    with pytest.raises(UsageError, match="not for recognition"):
        Describer(DescribeSettings(model="pp-ocrv5-latin"), reader)
