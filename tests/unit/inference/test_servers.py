"""Who is given which server, and who waits."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.errors import NetworkError, UsageError
from pagemill.inference.limits import InFlightLimit
from pagemill.inference.servers import PooledServer, ServerPool, retry_after, server_root


@pytest.mark.parametrize(
    ("given_url", "root"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        (" http://host:8000/v1/ ", "http://host:8000"),
        ("https://api.example.com/openai/v1", "https://api.example.com/openai"),
        ("localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_base_urls(given_url, root):
    assert server_root(given_url) == root


@pytest.mark.parametrize(
    "url", ["", "ftp://host", "http://", "http://host:99999", "http://h/v1?key=1", "http://h#x", "http://[::1"]
)
def test_what_is_no_base_url(url):
    with pytest.raises(UsageError):
        server_root(url)


def test_a_password_in_a_url_is_refused_and_not_told():
    with pytest.raises(UsageError) as caught:
        server_root("http://user:hunter2@host:8000")
    assert "hunter2" not in str(caught.value)
    assert "PAGEMILL_API_KEY" in caught.value.remedy


def pool(*limits: int, wait_s: float = 60.0) -> ServerPool:
    bounds = [InFlightLimit(smallest=limit, largest=limit) for limit in limits]
    return ServerPool([PooledServer(f"http://s{number}", limit) for number, limit in enumerate(bounds)], wait_s)


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def asking(servers: ServerPool, avoid: PooledServer | None = None) -> asyncio.Task[PooledServer]:
    """Somebody who has asked for a server."""
    task = asyncio.create_task(servers.acquire(avoid))
    await turn()
    return task


async def test_the_one_with_the_fewest_in_flight_is_next():
    servers = pool(9, 9, 9)
    given_out = [await servers.acquire() for _ in range(6)]
    assert [given_out.count(server) for server in servers.servers] == [2, 2, 2]
    servers.release(servers.servers[1])
    assert await servers.acquire() is servers.servers[1]


async def test_those_that_wait_are_served_in_order():
    servers = pool(1)
    server = await servers.acquire()
    order: list[int] = []

    async def wait(number: int) -> None:
        await servers.acquire()
        order.append(number)

    tasks = [asyncio.create_task(wait(number)) for number in range(4)]
    await turn()
    for expected in range(4):
        servers.release(server)
        await turn()
        assert order == list(range(expected + 1))
    await asyncio.gather(*tasks)


async def test_one_that_failed_goes_elsewhere_even_if_it_has_to_wait():
    servers = pool(1, 1)
    first, second = servers.servers
    second.in_flight = 1
    task = await asking(servers, avoid=first)
    assert not task.done()
    servers.release(second)
    assert await task is second


async def test_one_that_failed_goes_back_when_there_is_no_other():
    servers = pool(1, 1)
    first, second = servers.servers
    servers.mark_down(second)
    assert await servers.acquire(avoid=first) is first
    assert await pool(1).acquire(avoid=None)


async def test_a_retry_goes_before_those_that_never_had_a_turn():
    servers = pool(1)
    server = await servers.acquire()
    fresh = await asking(servers)
    retry = await asking(servers, avoid=server)
    servers.release(server)
    await turn()
    assert (retry.done(), fresh.done()) == (True, False)
    fresh.cancel()


async def test_a_server_that_is_down_is_not_asked_and_serves_those_that_waited_when_it_is_up():
    servers = pool(2)
    (server,) = servers.servers
    servers.mark_down(server)
    tasks = [asyncio.create_task(servers.acquire()) for _ in range(2)]
    await turn()
    servers.give_up_waiting()
    assert not any(task.done() for task in tasks)
    servers.mark_up(server)
    assert await asyncio.gather(*tasks) == [server, server]


async def test_waiting_ends_when_no_server_was_up_for_too_long():
    servers = pool(1, wait_s=0.0)
    servers.mark_down(servers.servers[0])
    task = await asking(servers)
    servers.give_up_waiting()
    with pytest.raises(NetworkError, match=r"http://s0"):
        await task
    servers.mark_up(servers.servers[0])


async def test_one_that_is_counted_out_is_never_up_again():
    servers = pool(1, 1)
    first, second = servers.servers
    servers.count_out(first, UsageError("first says no"))
    servers.mark_up(first)
    assert await servers.acquire() is second
    assert servers.rejection() is None


async def test_when_all_are_counted_out_nobody_waits_any_longer():
    servers = pool(1, 1)
    for server in servers.servers:
        assert await servers.acquire() is server
    waiting = [asyncio.create_task(servers.acquire()) for _ in range(2)]
    await turn()
    for number, server in enumerate(servers.servers):
        assert not any(task.done() for task in waiting)
        servers.count_out(server, UsageError(f"{number} says no", remedy="Do as it says."))
        await turn()
    for ended in (*waiting, asyncio.create_task(servers.acquire())):
        with pytest.raises(UsageError, match="0 says no; 1 says no") as caught:
            await asyncio.wait_for(ended, 60)
        assert caught.value.remedy == "Do as it says."


async def test_waiting_for_one_that_is_down_ends_while_the_others_are_counted_out():
    servers = pool(1, 1, wait_s=0.0)
    servers.mark_down(servers.servers[0])
    servers.count_out(servers.servers[1], UsageError("no"))
    task = await asking(servers)
    servers.give_up_waiting()
    with pytest.raises(NetworkError, match=r"http://s0$"):
        await task


async def test_waiting_for_a_busy_server_does_not_end():
    servers = pool(1, wait_s=0.0)
    server = await servers.acquire()
    task = await asking(servers)
    servers.give_up_waiting()
    await turn()
    assert not task.done()
    servers.release(server)
    assert await task is server


async def test_a_pause_ends_by_itself():
    servers = pool(1)
    servers.pause(servers.servers[0], 0.02)
    async with asyncio.timeout(60):
        assert await servers.acquire() is servers.servers[0]


async def test_a_wait_that_is_given_up_as_it_ends_gives_the_server_back():
    servers = pool(1)
    server = await servers.acquire()
    task = await asking(servers)
    servers.release(server)  # given to the task, which has not run yet
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert server.in_flight == 0


STEPS = st.lists(st.tuples(st.sampled_from(["ask", "retry", "end", "cancel", "down", "up"]), st.integers(0, 5)))


@given(STEPS, st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_whatever_happens_limits_hold_and_nobody_is_forgotten(steps, limits):
    async def run() -> None:
        servers = pool(*limits)
        tasks: list[asyncio.Task[PooledServer]] = []
        held: list[PooledServer] = []

        async def collect() -> None:
            await turn()
            for task in [task for task in tasks if task.done()]:
                tasks.remove(task)
                if not task.cancelled():
                    held.append(task.result())

        for kind, number in steps:
            server = servers.servers[number % len(limits)]
            if kind in ("ask", "retry"):
                tasks.append(asyncio.create_task(servers.acquire(server if kind == "retry" else None)))
            elif kind == "end" and held:
                servers.release(held.pop(number % len(held)))
            elif kind == "cancel" and tasks:
                tasks[number % len(tasks)].cancel()
            elif kind == "down":
                servers.mark_down(server)
            elif kind == "up":
                servers.mark_up(server)
            await collect()
            assert [server.in_flight for server in servers.servers] == [held.count(s) for s in servers.servers]
            assert all(server.in_flight <= server.limit.value for server in servers.servers)
        for server in servers.servers:
            servers.mark_up(server)
        await collect()
        while held:
            servers.release(held.pop())
            await collect()
        assert not tasks

    asyncio.run(run())


async def test_who_failed_at_one_goes_back_to_it_while_the_other_wants_to_be_left_alone():
    servers = pool(1, 1)
    servers.pause(servers.servers[1], 60)
    assert await asyncio.wait_for(servers.acquire(avoid=servers.servers[0]), 60) is servers.servers[0]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("3", 3),
        ("0.5", 0.5),
        ("86400", 60),
        ("-5", 0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("Fri, 31 Dec 2199 23:59:59 GMT", None),
    ],
)
def test_retry_after(value, seconds):
    assert retry_after(value) == seconds


@given(st.text(max_size=40))
def test_retry_after_of_anything(value):
    seconds = retry_after(value)
    assert seconds is None or 0 <= seconds <= 60
