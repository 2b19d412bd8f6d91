"""The stub server answers as vLLM does, and does what it is told to do wrong."""

import asyncio
import hashlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from io import BytesIO

import aiohttp
import msgspec
import numpy as np
import pytest
from PIL import Image
from stub_process import StubProcess

from pagemill_bench.testing.stub_answers import TABLE, Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings


def png(width: int, height: int) -> bytes:
    stream = BytesIO()
    Image.new("RGB", (width, height)).save(stream, "png")
    return stream.getvalue()


def chat(prompt: str = "Text Recognition:", image: bytes = b"", model: str = "stub") -> bytes:
    url = "data:image/png;base64," + b64encode(image).decode()
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": prompt}]
    return msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": content}]})


async def post(server: StubServer, body: bytes, path: str = "/v1/chat/completions", **headers: str):
    async with aiohttp.ClientSession() as session, session.post(server.url + path, data=body, headers=headers) as reply:
        return reply.status, reply.headers, msgspec.json.decode(await reply.read())


def choice(reply) -> tuple[str, str]:
    assert reply[0] == 200
    return reply[2]["choices"][0]["message"]["content"], reply[2]["choices"][0]["finish_reason"]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the stub has no event for all that may be waited for
            await asyncio.sleep(0.001)


async def get(server: StubServer, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(server.url + path) as reply:
        return reply.status, await reply.text()


async def test_answers_by_image_then_by_prompt_then_the_same():
    image = png(9, 7)
    replay = {hashlib.sha256(image).hexdigest(): "seen before"}
    async with StubServer(StubSettings(by_image=replay, text="else")) as server:
        assert choice(await post(server, chat("Table Recognition:", image))) == ("seen before", "stop")
        assert choice(await post(server, chat("Table Recognition:", png(9, 8)))) == (TABLE, "stop")
        assert choice(await post(server, chat("OCR:", png(9, 8)))) == ("else", "stop")


async def test_answers_that_show_their_image():
    async with StubServer(StubSettings(by_prompt={}, text="is {image}")) as server:
        first, second, again = [choice(await post(server, chat("", png(9, side)))) for side in (1, 2, 1)]
        assert first == again != second
        assert first[0].startswith("is ")


async def test_describes_itself_as_vllm_does():
    async with StubServer(StubSettings(model="glm-ocr", slots=1, latency_ms=60_000)) as server:
        assert (await get(server, "/health"))[0] == 200
        assert msgspec.json.decode((await get(server, "/v1/models"))[1])["data"][0]["id"] == "glm-ocr"
        waiting = [asyncio.create_task(post(server, chat(model="glm-ocr"))) for _ in range(3)]
        await until(lambda: server.in_flight == 3)
        assert server.counts["max_in_flight"] == 3
        for task in waiting:
            task.cancel()


async def test_wrong_model_key_and_path():
    async with StubServer(StubSettings(api_key="secret")) as server:
        assert (await post(server, chat()))[0] == 401
        status, _, body = await post(server, chat(model="other"), Authorization="Bearer secret")
        assert (status, body["error"]["message"]) == (404, "The model `other` does not exist.")
        assert (await post(server, chat(), "/v2/x", Authorization="Bearer secret"))[0] == 404


async def test_too_large_an_image_is_refused_in_the_words_of_vllm():
    async with StubServer(StubSettings(max_image_pixels=100)) as server:
        assert (await post(server, chat(image=png(10, 10))))[0] == 200
        status, _, body = await post(server, chat(image=png(10, 11)))
        assert status == 400
        assert "exceeds the pre-allocated encoder cache size" in body["error"]["message"]
        assert body["error"]["code"] == 400


@pytest.mark.parametrize(
    ("fault", "status"), [(Fault.SERVER_ERROR, 500), (Fault.UNAVAILABLE, 503), (Fault.RATE_LIMITED, 429)]
)
async def test_error_statuses(fault, status):
    async with StubServer(StubSettings(faults={fault: 1.0}, retry_after_s=2.5)) as server:
        reply = await post(server, chat())
        assert reply[0] == reply[2]["error"]["code"] == status
        assert reply[1].get("Retry-After") == ("2.5" if status == 429 else None)
        assert server.counts[fault] == 1


async def test_an_answer_that_is_cut():
    async with StubServer(StubSettings(faults={Fault.TRUNCATED: 1.0}, text="abcd")) as server:
        assert choice(await post(server, chat("OCR:"))) == ("ab", "length")


async def test_loop():
    async with StubServer(StubSettings(faults={Fault.LOOP: 1.0})) as server:
        text, reason = choice(await post(server, chat()))
        assert reason == "length"
        assert len(set(text.split())) == 3


async def test_reset_and_hang():
    async with StubServer(StubSettings(faults={Fault.RESET: 1.0})) as server:
        with pytest.raises(aiohttp.ClientError):
            await post(server, chat())
        server.settings = StubSettings(faults={Fault.HANG: 1.0})
        hanging = asyncio.create_task(post(server, chat()))
        await until(lambda: server.counts[Fault.HANG])
        hanging.cancel()
        await until(lambda: server.counts["given_up"])
        assert server.in_flight == 0


async def test_the_same_seed_makes_the_same_faults():
    async def run(seed: int) -> list[int]:
        async with StubServer(StubSettings(faults={Fault.SERVER_ERROR: 0.3, Fault.LOOP: 0.3}, seed=seed)) as server:
            return [(await post(server, chat()))[0] for _ in range(40)]

    assert await run(1) == await run(1) != await run(2)


async def test_dies_with_all_that_is_under_way_and_returns_on_the_same_port():
    async with StubServer(StubSettings(dies_after=2, latency_ms=60_000)) as server:
        first = asyncio.create_task(post(server, chat()))
        await until(lambda: server.in_flight)
        with pytest.raises(aiohttp.ClientError):
            await post(server, chat())
        with pytest.raises(aiohttp.ClientError):
            await first
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(server, "/health")
        await server.start()
        assert (await get(server, "/health"))[0] == 200


async def test_a_request_that_was_under_way_does_not_kill_a_dead_server_once_more():
    """It would be started twice, and the second start would fail."""

    class UnderWay:
        async def read(self) -> bytes:
            return chat()

    async with StubServer(StubSettings(dies_after=1, returns_after_s=60)) as server:
        await server.kill()
        await server._completions(UnderWay())
        assert server.counts["deaths"] == 1
        assert server._returning is None


async def test_embeddings_of_a_batch_of_conversations():
    async with StubServer(StubSettings(dimension=32)) as server:
        one, other = (msgspec.json.decode(chat("", image))["messages"] for image in (png(3, 3), png(4, 4)))
        body = msgspec.json.encode({"model": "stub", "messages": [one, other, one]})
        _, _, reply = await post(server, body, "/v1/embeddings")
        vectors = np.array([np.frombuffer(b64decode(row["embedding"]), "<f4") for row in reply["data"]])
        assert vectors.shape == (3, 32)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        assert (vectors[0] == vectors[2]).all()
        assert (vectors[0] != vectors[1]).any()


def test_as_a_process():
    with StubProcess("--model", "glm-ocr", "--fault", "500=1") as server:

        async def ask() -> Counter[int]:
            async with aiohttp.ClientSession() as session:
                url = f"{server.url}/v1/chat/completions"
                async with session.post(url, data=chat(model="glm-ocr")) as reply:
                    return Counter([reply.status])

        assert asyncio.run(ask()) == {500: 1}
        assert server.counts()["500"] == 1


def test_a_process_that_dies_is_gone_and_leaves_its_counts():
    with StubProcess("--dies-after", "1") as server:

        async def ask() -> None:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{server.url}/v1/chat/completions", data=chat()),
            ):
                pass

        with pytest.raises(aiohttp.ClientError):
            asyncio.run(ask())
        assert server.counts()["deaths"] == server.counts()["requests"] == 1
