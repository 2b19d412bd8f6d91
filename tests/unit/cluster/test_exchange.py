import asyncio

from pagemill.cluster.exchange import Exchange, Verdict


async def test_units_are_taken_in_order_and_again_until_they_are_done():
    exchange = Exchange()
    await exchange.offer(b"first")
    await exchange.offer(b"second")
    assert [await exchange.take(0), await exchange.take(1), await exchange.take(0)] == [b"first", b"second", b"first"]

    await exchange.done(0)
    assert [await exchange.take(0), await exchange.take(1)] == [b"", b"second"]


async def test_taking_waits_for_an_offer_or_the_end():
    exchange = Exchange()
    waiting = [asyncio.create_task(exchange.take(number)) for number in (0, 1)]
    await asyncio.sleep(0)
    await exchange.offer(b"late")
    await exchange.close()
    assert await asyncio.gather(*waiting) == [b"late", None]


async def test_a_second_execution_means_that_the_first_worker_has_died():
    exchange = Exchange()
    await exchange.offer(b"unit")
    assert await exchange.begin(0, "one") == Verdict.PARSE
    assert await exchange.started() == {0: "one"}
    assert await exchange.begin(0, "two") == Verdict.DIED


async def test_units_that_are_started_cannot_be_withdrawn_and_others_cannot_be_started():
    exchange = Exchange()
    for unit in (b"started", b"waiting", b"done"):
        await exchange.offer(unit)
    await exchange.begin(0, "one")
    await exchange.done(2)
    assert await exchange.withdraw([0, 1, 2]) == [1]
    assert await exchange.begin(1, "one") == Verdict.SKIP
    assert await exchange.started() == {0: "one"}


async def test_units_that_are_done_or_stopped_are_skipped():
    exchange = Exchange()
    await exchange.offer(b"given up")
    await exchange.offer(b"too late")
    await exchange.done(0)
    assert await exchange.begin(0, "one") == Verdict.SKIP

    await exchange.stop()
    assert await exchange.begin(1, "one") == Verdict.SKIP
