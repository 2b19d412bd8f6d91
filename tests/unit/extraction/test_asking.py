import asyncio
import json

import msgspec
import numpy as np
import pytest
from extraction_pages import INVOICE, FakeClient, answer, page

from pagemill.config.model_cards import load_card
from pagemill.errors import UsageError
from pagemill.extraction.asking import ValueReader
from pagemill.extraction.assembling import assembled
from pagemill.extraction.grounding import PageText
from pagemill.extraction.prompting import Batcher, PagePart, page_text
from pagemill.extraction.result import ExtractionStatus
from pagemill.extraction.schema import ExtractionSchema
from pagemill.inference.exchange import RequestFailedError, RequestRefusedError

GOOD = {"number": "INV-7", "total": 12.5, "due": "5 May", "items": []}
SCHEMA = ExtractionSchema("invoice", INVOICE)
PAGES = [page(number, f"Invoice INV-7 page {number}", "Total 12.50", "Due 5 May") for number in range(1, 200)]
PAGES.append(page(200, "Page 200", "Total 99.50"))


def reader(client: FakeClient, **options) -> ValueReader:
    return ValueReader(load_card("glm-ocr"), client, SCHEMA, **options)


def parts(count: int) -> list[PagePart]:
    return [PagePart(index=i, number=i + 1, text=page_text(PAGES[i]), image=None) for i in range(count)]


async def extracted(client: FakeClient, count: int = 1):
    values = reader(client)
    await values.check()
    batcher, results = Batcher(values.budget, values.most_pages), []
    for part in parts(count):
        for batch in batcher.add(part):
            results += await values.read(batch, count)
    results += await values.read(batcher.rest(), count)
    texts = [PageText(index, PAGES[index]) for index in range(count)]
    return assembled("doc", "doc.pdf", texts, results, [], SCHEMA, model=values.model, pages=count)


async def test_a_good_answer():
    client = FakeClient(answer(GOOD))
    result = await extracted(client)
    assert (result.status, result.missing, result.problems) == (ExtractionStatus.DONE, [], [])
    assert result.values == GOOD
    assert {each.path: each.source.page for each in result.fields} == {"/number": 1, "/total": 1, "/due": 1}
    assert result.requests[0].prompt_tokens == 100
    (request,) = client.requests
    assert request["response_format"]["json_schema"]["schema"] == SCHEMA.relaxed
    assert "repetition_penalty" not in request  # it spoils JSON
    text = "".join(piece["text"] for piece in request["messages"][0]["content"])
    assert "Page 1 of 1" in text and "<text 100 100 900 900> Invoice INV-7 page 1" in text


async def test_a_key_with_several_values_is_asked_for_again_and_then_a_problem():
    twice = answer('{"number": "INV-8", ' + json.dumps(GOOD)[1:])
    assert (await extracted(FakeClient(twice, answer(GOOD)))).status is ExtractionStatus.DONE
    result = await extracted(FakeClient(twice, twice, twice))
    assert (result.values, result.status) == (GOOD, ExtractionStatus.INCOMPLETE)
    assert [(each.pages, each.category) for each in result.problems] == [((1,), "repeated_key")]
    assert "'number' several values" in result.problems[0].message


async def test_invalid_json_is_asked_for_again():
    result = await extracted(FakeClient(answer('{"number": '), answer("no"), answer(GOOD)))
    assert (result.status, result.requests[0].attempts, result.requests[0].completion_tokens) == ("done", 3, 30)


async def test_invalid_json_to_the_end():
    client = FakeClient(*[answer("sorry")] * 9)
    result = await extracted(client)
    assert (result.status, result.values) == (ExtractionStatus.FAILED, {})
    assert (result.problems[0].category, result.problems[0].pages) == ("invalid_json", (1,))
    assert len(client.requests) == 3
    assert len({request["temperature"] for request in client.requests}) == 3


async def test_missing_and_hallucinated_values():
    result = await extracted(FakeClient(answer({"number": "INV-9", "total": 12.5, "due": None})))
    assert (result.status, result.missing) == (ExtractionStatus.INCOMPLETE, ["/due"])
    assert [(each.path, each.value) for each in result.unfounded] == [("/number", "INV-9")]
    assert result.values == {"number": "INV-9", "total": 12.5}


async def test_a_value_of_the_wrong_type_is_asked_for_again_and_then_left_out():
    wrong = answer({**GOOD, "total": "twelve"})
    result = await extracted(FakeClient(wrong, wrong, wrong))
    assert (result.status, result.missing) == (ExtractionStatus.INCOMPLETE, ["/total"])
    assert result.invalid[0].startswith("/total: ")
    assert result.values["number"] == "INV-7"


@pytest.mark.parametrize("text", ['{"number": "INV-', '{"number": "' + "and so on " * 80])
async def test_cut_and_looping_answers_are_asked_for_with_fewer_pages(text):
    def reply(request):
        pages = sum("of 4. Each line" in piece.get("text", "") for piece in request["messages"][0]["content"])
        return answer(text, finish_reason="length") if pages > 1 else answer(GOOD)

    client = FakeClient(reply)
    result = await extracted(client, 4)
    assert result.status == ExtractionStatus.DONE
    assert [request.pages for request in result.requests] == [(1, 2, 3, 4), (1, 2), (1,), (2,), (3, 4), (3,), (4,)]
    # What the answers cost that were thrown away counts.
    assert sum(request.attempts for request in result.requests) == len(client.requests) == 10
    assert sum(request.prompt_tokens or 0 for request in result.requests) == 1000


async def test_a_looping_page_costs_no_other_page():
    def reply(request):
        text = request["messages"][0]["content"][0]["text"]
        return answer("{" + "loop " * 100, finish_reason="length") if "Page 2 of" in text else answer(GOOD)

    values = reader(FakeClient(reply))
    await values.check()
    values.most_pages = 1
    results = await values.read(parts(3), 3)
    assert [each.values is None for each in results] == [False, True, False]
    assert results[1].problem.category == "repetition"


async def test_two_hundred_pages_fit_into_the_context():
    seen = []

    def reply(request):
        content = request["messages"][0]["content"]
        numbers = [int(piece["text"].split()[1]) for piece in content[:-1]]
        seen.extend(numbers)
        items = [{"name": f"page {number}", "price": None} for number in numbers]
        return answer({"number": "INV-7", "total": 99.5 if 200 in numbers else None, "due": None, "items": items})

    client = FakeClient(reply, max_model_len=4096)
    result = await extracted(client, 200)
    assert sorted(seen) == list(range(1, 201))
    assert max(len(request["messages"][0]["content"]) for request in client.requests) <= 17
    assert [item["name"] for item in result.values["items"]] == [f"page {number}" for number in range(1, 201)]
    found = {each.path: each.source.page for each in result.fields if each.source}
    assert (found["/number"], found["/total"], found["/items/150/name"]) == (1, 200, 151)
    assert result.missing == ["/due"]


async def test_a_page_longer_than_the_context_is_sent_in_parts():
    values = reader(FakeClient(lambda _: answer(GOOD), max_model_len=4096))
    await values.check()
    long = PagePart(index=0, number=1, text="\n".join(f"line {number}" for number in range(5000)), image=None)
    batcher = Batcher(values.budget, values.most_pages)
    batches = [*batcher.add(long), batcher.rest()]
    assert len(batches) > 3
    assert "".join(part.text for batch in batches for part in batch) == long.text
    assert all(sum(part.tokens for part in batch) <= values.budget for batch in batches)


async def test_a_server_without_guided_decoding():
    refused = RequestRefusedError("response_format json_schema is not supported", status=400)
    client = FakeClient(refused, answer(GOOD))
    assert (await extracted(client)).status == "done"
    assert ["response_format" in request for request in client.requests] == [True, False]


@pytest.mark.parametrize(
    ("refused", "message"),
    [("response_format", "response_format json_schema is not supported"), ("top_k", "top_k is not known")],
)
async def test_requests_in_flight_together_are_refused_for_the_same_cause(refused, message):
    def reply(request):
        return RequestRefusedError(message, status=400) if refused in request else answer(GOOD)

    class Together(FakeClient):
        """Answers the first two requests when both are there."""

        both = asyncio.Barrier(2)

        async def ask(self, body):
            if len(self.requests) < 2:
                self.requests.append(json.loads(body))
                await self.both.wait()
            return await super().ask(body)

    card = load_card("glm-ocr")
    sampling = msgspec.structs.replace(card.sampling, top_k=5)
    values = ValueReader(msgspec.structs.replace(card, sampling=sampling), Together(reply), SCHEMA)
    await values.check()
    shown = values.with_image(parts(1)[0], np.full((900, 900, 3), 200, dtype=np.uint8))
    results = await asyncio.gather(values.read([shown], 1), values.read([shown], 1))
    assert [result.request.attempts for (result,) in results] == [2, 2]
    images = [_image_of(request) for request in values.client.requests]
    assert images == [images[0]] * len(images)  # none is made smaller


def _image_of(request: dict) -> str:
    return next(piece["image_url"]["url"] for piece in request["messages"][0]["content"] if "image_url" in piece)


async def test_a_server_that_takes_one_image():
    def reply(request):
        images = sum(piece["type"] == "image_url" for piece in request["messages"][0]["content"])
        return RequestRefusedError("At most 1 image(s) may be provided", status=400) if images > 1 else answer(GOOD)

    client = FakeClient(reply)
    values = reader(client)
    await values.check()
    pixels = np.full((300, 200, 3), 200, dtype=np.uint8)
    shown = [values.with_image(part, pixels) for part in parts(4)]
    results = await values.read(shown, 4)
    assert [each.request.images for each in results] == [4, 2, 1, 1, 1, 1]  # what was refused, too
    assert [each.values for each in results] == [None, None, *[GOOD] * 4]
    before = len(client.requests)
    await values.read(shown, 4)
    assert len(client.requests) == before + 4  # what the server takes is known now


async def test_an_image_that_is_refused_is_shrunk_and_then_left_out():
    def reply(request):
        images = sum(piece["type"] == "image_url" for piece in request["messages"][0]["content"])
        return RequestRefusedError("too many tokens", status=400) if images else answer(GOOD)

    client = FakeClient(reply)
    values = reader(client)
    await values.check()
    (result,) = await values.read([values.with_image(parts(1)[0], np.full((900, 900, 3), 200, dtype=np.uint8))], 1)
    assert result.values == GOOD
    assert len(client.requests) == 5  # as it is, three times smaller, without


async def test_a_request_that_fails_is_a_problem_of_its_pages():
    result = await extracted(FakeClient(RequestFailedError("boom")))
    assert (result.status, result.problems[0].category) == (ExtractionStatus.FAILED, "server_error")


async def test_a_context_without_room():
    with pytest.raises(UsageError, match="leaves no room"):
        await reader(FakeClient(max_model_len=1000)).check()


async def test_values_in_hand_are_not_lost_to_a_failure():
    result = await extracted(FakeClient(answer({**GOOD, "total": "twelve"}), RequestFailedError("boom")))
    assert (result.status, result.values["number"]) == (ExtractionStatus.INCOMPLETE, "INV-7")
