import asyncio
import json
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from pagemill.config.model_cards import Sampling, load_card
from pagemill.document.labels import Label, Task
from pagemill.document.page import ContentFormat
from pagemill.errors import NetworkError, UsageError
from pagemill.inference import models
from pagemill.inference.chat import Answer
from pagemill.inference.exchange import RequestFailedError, RequestRefusedError, RequestTimeoutError
from pagemill.recognition.base import PageReading, RegionReading
from pagemill.recognition.vlm.asking import changed_sampling
from pagemill.recognition.vlm.guard import Flaw
from pagemill.recognition.vlm.reading import VlmReader

GOOD = Answer(text="Words of the page.", finish_reason="stop")
LOOP = Answer(text="Words of the page. " + "and so on, " * 100, finish_reason="length")
CUT = Answer(text="Words of the", finish_reason="length", completion_tokens=8192)
EMPTY = Answer(text="", finish_reason="stop")
BROKEN = Answer(text=r"\frac{a}{b", finish_reason="stop")
REFUSED = RequestRefusedError("image too large for the encoder cache", status=400)

Reply = Answer | Exception


class Stub:
    """Answers from a list, in the order of requests; or by a function of the request."""

    in_flight = 1

    def __init__(self, *replies: Reply, wait: Callable[[int], float] | None = None) -> None:
        self.replies = list(replies)
        self.requests: list[dict] = []
        self.wait = wait
        self.cancelled = 0
        self.all_asked = asyncio.Event()

    async def ask(self, body: bytes) -> Answer:
        number = len(self.requests)
        self.requests.append(json.loads(body))
        if len(self.requests) == len(self.replies):
            self.all_asked.set()
        try:
            await (asyncio.sleep(self.wait(number)) if self.wait else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        reply = self.replies[number]
        if isinstance(reply, Exception):
            raise reply
        return reply


async def read(stub: Stub, task: Task = Task.TEXT, *, side: int = 40) -> RegionReading:
    card = load_card("glm-ocr")
    crop = np.full((side, side, 3), 200, dtype=np.uint8)
    reader = VlmReader(card, stub)
    return await reader.read(reader.prepare(crop, task))


async def test_a_good_answer():
    reading = await read(Stub(GOOD))
    assert reading == RegionReading(
        content="Words of the page.", content_format=ContentFormat.MARKDOWN, engine="vlm:glm-ocr"
    )


async def test_a_server_that_takes_standard_fields_alone_gets_these_from_then_on():
    strict = RequestRefusedError("Unrecognized request arguments supplied: top_k, repetition_penalty", status=400)
    card = load_card("glm-ocr")
    stub = Stub(strict, GOOD, LOOP, GOOD)
    reading = VlmReader(card, stub)
    prepared = reading.prepare(np.full((900, 900, 3), 200, dtype=np.uint8), Task.TEXT)
    for _ in range(2):
        assert (await reading.read(prepared)).content == "Words of the page."
    known = {"model", "messages", "temperature", "max_tokens", "top_p", "seed"}
    assert [set(request) <= known for request in stub.requests] == [False, True, True, True]
    assert stub.requests[0]["messages"] == stub.requests[1]["messages"]  # not made smaller


async def test_a_loop_is_asked_again_warmer_and_with_a_penalty():
    stub = Stub(LOOP, LOOP, GOOD)
    reading = await read(stub)
    assert (reading.content, reading.problem, reading.attempts) == ("Words of the page.", None, 3)
    first, second, third = stub.requests
    assert first["messages"] == second["messages"] == third["messages"]
    assert [request["temperature"] for request in stub.requests] == [0.0, 0.1, 0.2]
    assert first["repetition_penalty"] < second["repetition_penalty"] < third["repetition_penalty"]
    assert first["top_k"] == 1 < second["top_k"]  # else the temperature would change nothing
    assert "seed" not in first
    assert second["seed"] != third["seed"]


async def test_what_loops_for_ever_is_accepted_up_to_the_loop():
    stub = Stub(*[LOOP] * 4)
    reading = await read(stub)
    assert reading.content is not None
    assert reading.content.startswith("Words of the page. and so on")
    assert len(reading.content) < 60
    assert reading.problem is not None
    assert reading.problem.category == "repetition"
    assert "left out" in reading.problem.message
    assert (reading.attempts, len(stub.requests)) == (4, 4)


async def test_what_is_cut_off_is_asked_for_twice_at_most_and_keeps_its_penalty():
    stub = Stub(CUT, CUT)
    reading = await read(stub)
    assert reading.content == "Words of the"
    assert reading.problem is not None
    assert reading.problem.category == "truncated"
    assert [request["repetition_penalty"] for request in stub.requests] == [1.1, 1.1]


async def test_the_best_of_flawed_answers_is_accepted():
    reading = await read(Stub(LOOP, EMPTY, CUT, EMPTY))
    assert reading.content == "Words of the"
    assert reading.problem is not None
    assert reading.problem.category == "truncated"
    assert reading.attempts == 4


async def test_an_empty_answer_is_an_empty_region_with_a_problem():
    reading = await read(Stub(EMPTY, EMPTY, EMPTY))
    assert reading.content == ""
    assert reading.problem is not None
    assert reading.problem.category == "empty_text"


async def test_a_table_without_a_table():
    words = Answer(text="no table", finish_reason="stop")
    reading = await read(Stub(*[words] * 4), Task.TABLE)
    assert (reading.content, reading.content_format) == ("no table", ContentFormat.MARKDOWN)
    assert reading.problem is not None
    assert reading.problem.category == "no_table"


async def test_a_broken_formula():
    sound = Answer(text=r"$$\frac{a}{b}$$", finish_reason="stop")
    reading = await read(Stub(BROKEN, sound), Task.FORMULA)
    assert (reading.content, reading.problem) == (r"\frac{a}{b}", None)
    reading = await read(Stub(*[BROKEN] * 4), Task.FORMULA)
    assert reading.content == r"\frac{a}{b"
    assert reading.problem is not None
    assert reading.problem.category == "unbalanced_formula"


async def test_cancelling_a_reading_cancels_its_requests():
    stub = Stub(LOOP, GOOD, wait=lambda number: 60 if number else 0)
    task = asyncio.create_task(read(stub))
    await stub.all_asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stub.cancelled == 1


async def test_a_refused_region_is_sent_smaller():
    stub = Stub(REFUSED, REFUSED, GOOD)
    reading = await read(stub, side=2000)
    assert (reading.content, reading.problem, reading.attempts) == ("Words of the page.", None, 3)
    sizes = [len(request["messages"][0]["content"][0]["image_url"]["url"]) for request in stub.requests]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize(("side", "requests"), [(2000, 4), (100, 1)])
async def test_a_region_that_stays_refused_fails_alone(side: int, requests: int):
    stub = Stub(*[REFUSED] * 4)
    reading = await read(stub, Task.TABLE, side=side)
    assert (reading.content, reading.content_format) == (None, ContentFormat.HTML)
    assert reading.problem is not None
    assert reading.problem.category == "refused"
    assert "encoder cache" in reading.problem.message
    assert reading.attempts == len(stub.requests) == requests


TOO_LONG = RequestRefusedError(
    "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens "
    "and your request has 450 input tokens (8192 > 8192 - 450).",
    status=400,
)


async def test_a_request_that_is_too_long_asks_for_a_shorter_answer_and_sends_the_same_image():
    stub = Stub(TOO_LONG, GOOD)
    reading = await read(stub, side=2000)
    assert (reading.content, reading.problem, reading.attempts) == ("Words of the page.", None, 2)
    first, second = stub.requests
    assert first["messages"] == second["messages"]
    assert (first["max_tokens"], second["max_tokens"]) == (8192, 4096)  # the server does not report its context


async def test_an_image_that_leaves_no_room_for_an_answer_is_sent_smaller():
    stub = Stub(*[TOO_LONG] * 6, GOOD)
    reading = await read(stub, side=2000)
    assert (reading.content, reading.attempts) == ("Words of the page.", 7)
    sizes = [len(request["messages"][0]["content"][0]["image_url"]["url"]) for request in stub.requests]
    assert sizes[0] == sizes[5] > sizes[6]
    assert stub.requests[6]["max_tokens"] == 8192


@pytest.mark.parametrize("context", [4096, 8192])
async def test_a_server_whose_context_is_no_longer_than_an_answer_reads(context: int):
    class Served(Stub):
        async def find_model(self, wanted: str | None, known: list[str]) -> models.Served:
            return models.Served(known[0], max_model_len=context)

    stub = Served(GOOD)
    reader = VlmReader(load_card("glm-ocr"), stub)
    await reader.check()
    prepared = reader.prepare(np.full((422, 812, 3), 200, dtype=np.uint8), Task.TEXT)
    assert (await reader.read(prepared)).problem is None
    assert context - 600 < stub.requests[0]["max_tokens"] < context - 450


async def test_another_refusal_is_not_asked_again():
    stub = Stub(RequestRefusedError("no", status=422))
    assert (await read(stub, side=2000)).content is None
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    ("error", "category"), [(RequestTimeoutError("late"), "timeout"), (RequestFailedError("500"), "server_error")]
)
async def test_a_request_that_failed_fails_its_region(error: Exception, category: str):
    reading = await read(Stub(error))
    assert reading.content is None
    assert reading.problem is not None
    assert reading.problem.category == category
    assert (await read(Stub(REFUSED, error), side=2000)).attempts == 2


@pytest.mark.parametrize("error", [RequestTimeoutError("late"), NetworkError("gone")])
async def test_an_answer_in_hand_is_not_lost_to_a_failure(error: Exception):
    reading = await read(Stub(CUT, error))
    assert reading.content == "Words of the"


@pytest.mark.parametrize("error", [NetworkError("gone"), UsageError("no such model")])
async def test_what_concerns_all_regions_is_raised(error: Exception):
    with pytest.raises(type(error)):
        await read(Stub(error))


def test_sampling_stays_bounded():
    first = Sampling(temperature=0.0, extra={"skip_special_tokens": False})
    changed = [changed_sampling(first, attempt, Flaw.REPETITION) for attempt in range(1, 20)]
    assert max(each.repetition_penalty or 0 for each in changed) == 1.3
    assert all(each.extra["skip_special_tokens"] is False for each in changed)
    assert changed_sampling(first, 1, Flaw.TABLE).repetition_penalty is None


def test_an_unknown_step_of_a_card_is_refused():
    card = msgspec.structs.replace(load_card("glm-ocr"), cleanup=("fences", "polish"))
    with pytest.raises(UsageError, match="polish"):
        VlmReader(card, Stub())


PAGE = Answer(text="<|ref|>title<|/ref|><|det|>[[0, 0, 999, 99]]<|/det|>\n# Words\n", finish_reason="stop")
PAGE_LOOP = Answer(text=PAGE.text + "and so on, " * 100, finish_reason="length")
PAGE_CUT = Answer(text=PAGE.text + "<|ref|>text<|/ref|><|det|>[[0, 100", finish_reason="length")


async def read_page(stub: Stub) -> PageReading:
    card = load_card("deepseek-ocr")
    page = np.full((60, 40, 3), 200, dtype=np.uint8)
    reader = VlmReader(card, stub)
    return await reader.read_page(reader.prepare(page, Task.PAGE))


async def test_a_page_is_one_request_as_its_card_says():
    stub = Stub(PAGE)
    reading = await read_page(stub)
    assert (reading.problem, reading.attempts, reading.engine) == (None, 1, "vlm:deepseek-ocr")
    assert reading.elements is not None
    assert [(element.label, element.content) for element in reading.elements] == [(Label.DOC_TITLE, "# Words")]
    (request,) = stub.requests
    assert request["messages"][0]["content"][1]["text"] == "<|grounding|>Convert the document to markdown."
    assert request["skip_special_tokens"] is False
    assert request["vllm_xargs"] == {"ngram_size": 30, "window_size": 90, "whitelist_token_ids": [128821, 128822]}
    assert request["temperature"] == 0.0


FORM = "Before.\n" + "( ) Yes ( ) No ( ) Unknown\n" * 20


async def test_what_stands_behind_a_loop_that_the_model_ended_is_kept():
    answers = [Answer(text=f"{FORM}( ) Yes, {number}", finish_reason="stop") for number in range(4)]
    reading = await read(Stub(*answers))
    assert reading.content == "Before.\n( ) Yes ( ) No ( ) Unknown\n( ) Yes, 0"
    assert reading.problem is not None
    assert "left out" in reading.problem.message


async def test_a_repetition_that_several_answers_have_alike_stands_on_the_page():
    answer = Answer(text=FORM + "After.", finish_reason="stop")
    reading = await read(Stub(answer, answer, answer, answer))
    assert reading.content == answer.text
    assert reading.problem is not None  # it is told nevertheless
    assert "left out" not in reading.problem.message


async def test_a_page_that_loops_is_asked_again_and_kept_to_its_first_turn():
    stub = Stub(PAGE_LOOP, PAGE)
    assert ((await read_page(stub)).problem, len(stub.requests)) == (None, 2)
    assert stub.requests[1]["temperature"] > 0
    assert stub.requests[1]["vllm_xargs"] == stub.requests[0]["vllm_xargs"]
    reading = await read_page(Stub(*[PAGE_LOOP] * 4))
    assert reading.problem is not None
    assert reading.problem.category == Flaw.REPETITION
    assert reading.elements is not None
    assert (reading.elements[0].content or "").count("and so on") == 1


async def test_a_page_without_an_end_keeps_what_was_read():
    reading = await read_page(Stub(PAGE_CUT, PAGE_CUT))
    assert reading.problem is not None
    assert (reading.problem.category, reading.attempts) == (Flaw.TRUNCATED, 2)
    assert reading.elements is not None
    assert [element.content for element in reading.elements] == ["# Words"]


async def test_a_page_that_is_refused():
    reading = await read_page(Stub(REFUSED))
    assert reading.elements is None
    assert reading.problem is not None
    assert reading.problem.category == "refused"
