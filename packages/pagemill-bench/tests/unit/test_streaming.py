"""Streamed chat completions: their times, their tokens, and what is no answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from pagemill.errors import UsageError
from pagemill.inference.exchange import AttemptFailedError, Cause, Exchange, RequestRefusedError
from pagemill_bench.server_metrics import decode_metrics, read_metrics
from pagemill_bench.streaming import TimedAnswer, ask_timed
from pagemill_bench.testing.stub_server import StubServer, StubSettings

BODY = b'{"model":"stub","stream":true,"messages":[]}'


@asynccontextmanager
async def answering(reply: bytes, status: int = 200) -> AsyncIterator[str]:
    """A server that gives this reply to every request."""

    async def handle(_: web.BaseRequest) -> web.Response:
        return web.Response(body=reply, status=status)

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask(root: str) -> TimedAnswer:
    exchange = Exchange()
    try:
        return await ask_timed(exchange, root, BODY, 20)
    finally:
        await exchange.close()


async def test_the_stub_streams_as_vllm_does():
    async with StubServer(StubSettings(text="0123456789", first_token_ms=10, latency_ms=30)) as server:
        answer = await ask(server.url)
    assert (answer.prompt_tokens, answer.output_tokens, answer.finish_reason) == (300, 4, "stop")
    assert answer.first_token_s is not None
    assert answer.first_token_s < answer.seconds


async def test_without_usage_the_pieces_count():
    piece = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
    async with answering(b": hello\n\n" + 3 * piece + b"data: [DONE]\n\n") as url:
        answer = await ask(url)
    assert (answer.prompt_tokens, answer.output_tokens) == (None, 3)


async def test_an_answer_without_text_has_no_first_token():
    async with answering(
        b'data: {"choices":[{"delta":{"content":""}}],"usage":{"completion_tokens":7}}\ndata: [DONE]\n'
    ) as url:
        answer = await ask(url)
    assert (answer.first_token_s, answer.output_tokens) == (None, 7)


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        pytest.param(b'{"choices":[]}', Cause.BAD_ANSWER, id="not streamed"),
        pytest.param(b"data: {}\n\n", Cause.BAD_ANSWER, id="cut off"),
        pytest.param(b"data: {nonsense\n\n", Cause.BAD_ANSWER, id="no JSON"),
        pytest.param(b'data: {"choices":[{"delta":{"content":5}}]}\n', Cause.BAD_ANSWER, id="wrong type"),
        pytest.param(b"data: " + b"x" * 2**20, Cause.BAD_ANSWER, id="an endless line"),
        pytest.param(b"data: " + b"[" * 50_000 + b"\n", Cause.BAD_ANSWER, id="too deep"),
        pytest.param(b'data: {"error":{"message":"engine died"}}\n', Cause.SERVER_ERROR, id="failed midway"),
    ],
)
async def test_what_is_no_answer(reply: bytes, cause: Cause):
    async with answering(reply) as url:
        with pytest.raises(AttemptFailedError) as caught:
            await ask(url)
    assert caught.value.cause is cause


@pytest.mark.parametrize(("status", "kind"), [(400, RequestRefusedError), (404, UsageError), (500, AttemptFailedError)])
async def test_statuses_are_those_of_other_requests(status: int, kind: type[Exception]):
    async with answering(b'{"error":{"message":"too large"}}', status) as url:
        with pytest.raises(kind, match="too large"):
            await ask(url)


METRICS = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b"} 3.0
vllm:num_requests_running{engine="1",model_name="a } b"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="a"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="a"} 0.5
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3"} 12.0
vllm:request_queue_time_seconds_sum{engine="0"} 1.5e1
vllm:num_preemptions_total 2
vllm:broken{engine="0"} many
vllm:infinite NaN
process_open_fds 20
"""


def test_metrics_of_several_engines_are_taken_together():
    assert decode_metrics([METRICS]) == {
        "num_requests_running": 7.0,
        "kv_cache_usage_perc": 0.5,
        "request_queue_time_seconds_sum": 15.0,
        "num_preemptions_total": 2.0,
    }
    assert decode_metrics([METRICS, METRICS])["num_requests_running"] == 14
    assert decode_metrics([b"<html>", b"\xff\xfe"]) == {}


async def test_a_server_without_metrics_has_none():
    exchange = Exchange()
    try:
        async with answering(b"", 404) as url:
            assert await read_metrics(exchange, [url]) is None
        async with answering(b"up 1\n") as url:
            assert await read_metrics(exchange, [url]) is None
        assert await read_metrics(exchange, [url]) is None, "it is gone"
        async with StubServer() as server:
            found = await read_metrics(exchange, [server.url])
            assert found is not None
            assert found["num_requests_running"] == 0
    finally:
        await exchange.close()
