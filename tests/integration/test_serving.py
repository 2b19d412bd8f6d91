"""The life of a server, with a vLLM of our own: every way to begin, to go wrong and to end. Linux."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pagemill_process import PATIENCE_S, POLL_S
from serving_world import QUICK, World, is_healthy, until

from pagemill.errors import ServerError
from pagemill.serving.addresses import base_url, free_port, is_free
from pagemill.serving.process import ServerProcess
from pagemill.serving.servers import ModelServers
from pagemill.serving.spec import What

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.clear()


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def stranger(port: int = 0, *, model: str = "", asked: list[bytes] | None = None) -> AsyncIterator[int]:
    """Something that listens and is none of ours: a server of another model, or else what hangs up at once."""
    rows = json.dumps({"data": [{"id": model}]}).encode()
    asked = [] if asked is None else asked

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if model:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + rows)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port) as listener:
        yield listener.sockets[0].getsockname()[1]


async def test_a_server_is_healthy_inside_and_gone_outside(world: World):
    async with ModelServers([world.spec()], patience=QUICK, report=world.report) as servers:
        (url,) = servers.urls
        assert await is_healthy(url)
        assert len(world.processes()) == 2  # the watchdog and the server
    assert not world.processes()
    assert is_free("127.0.0.1", port_of(url))
    assert [event.what for event in world.events if event.what is not What.PROGRESS] == [What.STARTING, What.READY]
    assert "loading the model" in world.log.read_text()


async def test_one_that_lists_its_models_only_with_a_key_is_ready(world: World):
    async with asyncio.timeout(PATIENCE_S), ModelServers([world.spec("locked")], patience=QUICK, report=world.report):
        assert len(world.told(What.READY)) == 1


async def test_one_that_ignores_sigterm_is_killed(world: World):
    async with ModelServers(
        [world.spec("stubborn")], patience=replace(QUICK, grace_s=0.2), report=world.report
    ) as servers:
        (url,) = servers.urls
    assert not world.processes()
    assert is_free("127.0.0.1", port_of(url))


async def test_its_children_end_with_it_also_those_that_ignore_signals_and_left_its_group(world: World):
    async with ModelServers([world.spec("children")], patience=QUICK, report=world.report):
        assert len(world.processes()) == 4
    assert not world.processes()


@pytest.mark.slow
async def test_children_end_with_a_server_that_is_killed(world: World):
    async with ModelServers([world.spec("children")], patience=QUICK, report=world.report):
        before = set(world.processes())
        os.kill(world.lives()[0]["pid"], signal.SIGKILL)
        await until(lambda: len(world.lives()) == 2 and world.told(What.READY)[1:], "the second life")
        assert not before & set(world.processes())


@pytest.mark.parametrize(
    ("word", "message", "remedy"),
    [
        ("crash", "a stone in the gears", "end of its log"),
        ("oom", "not enough memory on the accelerator", "--gpu-mem-util"),
    ],
)
async def test_a_server_that_dies_at_its_start_is_an_error_with_the_end_of_its_log(
    world: World, word: str, message: str, remedy: str
):
    with pytest.raises(ServerError, match=message) as caught:
        async with ModelServers([world.spec(word)], patience=QUICK, report=world.report):
            pass
    assert "exit status 1" in caught.value.message
    assert str(world.log) in caught.value.message
    assert remedy in str(caught.value.remedy)
    assert len(world.lives()) == 1
    assert not world.processes()


async def test_a_cause_far_above_the_end_of_the_log_is_in_the_error(world: World):
    with pytest.raises(ServerError) as caught:
        async with ModelServers([world.spec("buried")], patience=QUICK, report=world.report):
            pass
    assert "  | ValueError: the root of it\n  | ...\n  | a frame" in caught.value.message
    assert "see root cause above" in caught.value.message


async def test_the_error_holds_nothing_of_an_earlier_life_in_the_same_log(world: World):
    world.log.write_text("CUDA out of memory, last week\n")
    with pytest.raises(ServerError) as caught:
        async with ModelServers([world.spec("crash")], patience=QUICK, report=world.report):
            pass
    assert "last week" not in caught.value.message


async def test_a_program_that_cannot_be_run_is_an_error(world: World):
    spec = world.spec(command=lambda port: [str(world.state / "nothing"), str(port)])
    with pytest.raises(ServerError, match="cannot be started"):
        async with ModelServers([spec], patience=QUICK, report=world.report):
            pass
    assert not world.processes()


async def test_a_server_that_never_answers_is_given_up(world: World):
    with pytest.raises(ServerError, match=r"not ready within 0\.5 s"):
        async with ModelServers([world.spec("hang")], patience=replace(QUICK, start_s=0.5), report=world.report):
            pass
    assert not world.processes()


async def test_a_start_that_is_cancelled_leaves_nothing(world: World):
    async def work() -> None:
        async with ModelServers([world.spec("hang", "children")], patience=QUICK, report=world.report):
            pass

    task = asyncio.create_task(work())
    await until(lambda: len(world.processes()) == 4, "the server to begin")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not world.processes()


async def test_a_server_that_is_killed_comes_back_at_the_same_place(world: World):
    async with ModelServers([world.spec()], patience=QUICK, report=world.report) as servers:
        before = servers.urls
        os.kill(world.lives()[0]["pid"], signal.SIGKILL)
        await until(lambda: len(world.told(What.READY)) == 2, "the second life")
        assert servers.urls == before
        assert await is_healthy(before[0])
        assert "SIGKILL" in world.told(What.DIED)[0]
    assert not world.processes()


@pytest.mark.parametrize(
    ("fault", "reason"), [("sick", "HTTP 503"), pytest.param("mute", "did not answer", marks=pytest.mark.slow)]
)
async def test_a_server_that_is_unwell_is_ended_and_started_again(world: World, fault: str, reason: str):
    patience = replace(QUICK, answer_s=0.3 if fault == "mute" else QUICK.answer_s)
    async with ModelServers([world.spec()], patience=patience, report=world.report):
        (world.state / fault).touch()
        await until(lambda: world.told(What.DIED), "the server to be found unwell")
        (world.state / fault).unlink()
        await until(lambda: len(world.told(What.READY)) == 2, "the second life")
        assert reason in world.told(What.DIED)[0]
        assert len(world.processes()) == 2


@pytest.mark.slow
async def test_a_server_whose_watchdog_is_killed_is_ended_and_started_again(world: World):
    async with ModelServers([world.spec("children")], patience=QUICK, report=world.report):
        server = world.lives()[0]["pid"]
        watchdog = int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])
        first_life = {server, *world.processes()}
        assert len(first_life) == 4  # watchdog, server, a child in its group and one in a session of its own
        os.kill(watchdog, signal.SIGKILL)
        await until(lambda: len(world.told(What.READY)) == 2, "the second life")
        (left,) = first_life.intersection(world.processes())
        assert os.getsid(left) == left  # it had left the group


@pytest.mark.slow
async def test_one_that_dies_again_and_again_is_given_up(world: World):
    async with ModelServers([world.spec("dies-again")], patience=QUICK, report=world.report) as servers:
        os.kill(world.lives()[0]["pid"], signal.SIGKILL)
        with pytest.raises(ServerError, match=r"died 4 times in quick succession.*(?s:.*)a stone in the gears"):
            await asyncio.wait_for(servers.wait(), PATIENCE_S)
    assert len(world.lives()) == 1 + QUICK.quick_deaths
    assert len(world.told(What.GIVEN_UP)) == 1
    assert not world.processes()
    assert world.told(What.DIED)[0].startswith("it ended (SIGKILL): ")
    assert all("; starting again in" in told.splitlines()[0] for told in world.told(What.DIED))


@pytest.mark.slow
async def test_one_that_is_killed_again_and_again_is_given_up_with_the_end_of_its_log(world: World):
    async with ModelServers([world.spec()], patience=replace(QUICK, quick_deaths=1), report=world.report) as servers:
        waiting = asyncio.create_task(servers.wait())
        for life in range(2):
            await until(lambda: len(world.told(What.READY)) == life + 1, "the next life")  # noqa: B023 - awaited here
            os.kill(world.lives()[life]["pid"], signal.SIGKILL)
        with pytest.raises(ServerError, match=r"died 2 times .*SIGKILL(?s:.*)loading the model") as raised:
            await asyncio.wait_for(waiting, PATIENCE_S)
    assert raised.value.message.count(str(world.log)) == 1
    assert str(world.log) not in str(raised.value.remedy)


@pytest.mark.slow
async def test_deaths_after_a_long_life_do_not_add_up(world: World):
    async with ModelServers(
        [world.spec()], patience=replace(QUICK, quick_life_s=0, quick_deaths=1), report=world.report
    ):
        for life in range(4):
            await until(lambda: len(world.told(What.READY)) == life + 1, "the next life")  # noqa: B023 - awaited here
            os.kill(world.lives()[life]["pid"], signal.SIGKILL)
        await until(lambda: len(world.told(What.READY)) == 5, "the last life")


@pytest.mark.slow
async def test_of_two_servers_one_may_be_given_up(world: World, tmp_path: Path):
    other = World(tmp_path / "other")
    try:
        specs = [world.spec("dies-again"), other.spec()]
        async with ModelServers(specs, patience=QUICK, report=world.report) as servers:
            waiting = asyncio.create_task(servers.wait())
            os.kill(world.lives()[0]["pid"], signal.SIGKILL)
            await until(lambda: world.told(What.GIVEN_UP), "one to be given up")
            assert await is_healthy(servers.urls[1])
            assert not waiting.done()
            waiting.cancel()
        assert not other.processes()
    finally:
        other.clear()


@pytest.mark.slow
async def test_if_one_of_two_does_not_start_the_other_is_ended(world: World, tmp_path: Path):
    other = World(tmp_path / "other")
    try:
        with pytest.raises(ServerError, match="a stone in the gears"):
            async with ModelServers([world.spec("crash"), other.spec("hang")], patience=QUICK, report=world.report):
                pass
        assert not other.processes()
    finally:
        other.clear()


class TestPorts:
    async def test_a_stranger_on_the_port_that_was_asked_for_is_an_error(self, world: World):
        async with stranger() as port:
            with pytest.raises(ServerError, match=f"something else listens on port {port}"):
                async with ModelServers([world.spec(port=port)], patience=QUICK, report=world.report):
                    pass
        assert not world.lives()

    async def test_a_stranger_on_the_usual_port_is_evaded(self, world: World):
        async with (
            stranger() as port,
            ModelServers([world.spec(preferred_port=port)], patience=QUICK, report=world.report) as servers,
        ):
            assert port_of(servers.urls[0]) != port

    async def test_a_port_that_somebody_takes_at_the_last_moment_is_evaded(self, world: World):
        async with ModelServers([world.spec("busy")], patience=QUICK, report=world.report):
            first, second = (life["argv"] for life in world.lives())
            assert first[first.index("--port") + 1] != second[second.index("--port") + 1]

    @pytest.mark.slow
    async def test_a_stranger_who_answers_while_ours_is_loading_is_not_ours(self, world: World):
        """A port that vLLM has bound may be bound by others, too: who listens first has it."""
        spec = world.spec("late")
        opened = asyncio.create_task(ModelServers([spec], patience=QUICK, report=world.report).__aenter__())
        await until((world.state / "bound").exists, "a server that has not started to listen")
        asked: list[bytes] = []
        async with stranger(spec.preferred_port, model="other", asked=asked) as port:
            await until(lambda: len(asked) >= 2, "questions to the stranger")
            (world.state / "listen").touch()
            servers = await opened
            try:
                assert port_of(servers.urls[0]) != port
                assert len(world.lives()) == 2
            finally:
                await servers.__aexit__(None, None, None)

    async def test_the_port_that_was_asked_for_is_not_changed(self, world: World):
        with pytest.raises(ServerError, match="port is in use"):
            async with ModelServers(
                [world.spec("busy", port=free_port("127.0.0.1"))], patience=QUICK, report=world.report
            ):
                pass


class TestReuse:
    async def test_a_healthy_server_of_the_same_model_is_used_and_left_alone(self, world: World):
        async with ModelServers([world.spec()], patience=QUICK, report=world.report) as first:
            port = port_of(first.urls[0])
            async with ModelServers([world.spec(port=port)], patience=QUICK, report=world.report) as second:
                assert second.urls == first.urls
            assert await is_healthy(first.urls[0])
        assert len(world.lives()) == 1
        assert len(world.told(What.REUSED)) == 1

    @pytest.mark.parametrize("change", [{"served_name": "other"}, {"model": "other"}, {"max_model_len": 8192}])
    async def test_one_of_another_model_or_for_shorter_requests_is_not(self, world: World, change: dict[str, object]):
        async with ModelServers([world.spec()], patience=QUICK, report=world.report) as first:
            with pytest.raises(ServerError, match="something else listens"):
                async with ModelServers(
                    [world.spec(port=port_of(first.urls[0]), **change)], patience=QUICK, report=world.report
                ):
                    pass

    @pytest.mark.slow
    async def test_when_it_stops_one_of_ours_takes_its_place(self, world: World):
        async with ModelServers([world.spec()], patience=QUICK, report=world.report) as first:
            second = ModelServers([world.spec(port=port_of(first.urls[0]))], patience=QUICK, report=world.report)
            await second.__aenter__()
        try:
            await until(lambda: len(world.told(What.READY)) == 2, "a server of our own")
            assert await is_healthy(second.urls[0])
        finally:
            await second.__aexit__(None, None, None)
        assert not world.processes()


async def without_owner_and_watchdog(world: World, *words: str) -> None:
    """Start a server, and kill its watchdog when nobody is left to do what the watchdog did."""
    spec = world.spec(*words)
    port = free_port("127.0.0.1")
    process = await ServerProcess.start(spec.command(port), environment=spec.environment, log=spec.log, grace_s=1)
    end = time.monotonic() + PATIENCE_S
    while not await is_healthy(base_url("127.0.0.1", port)):
        assert time.monotonic() < end
        await asyncio.sleep(POLL_S)
    process._ending.cancel()  # as if the owner were gone
    os.kill(process._watchdog.pid, signal.SIGKILL)


async def test_a_killed_watchdog_and_a_killed_owner_leave_nothing_of_the_servers_group(world: World):
    """The kernel ends the server and what is in its group with the watchdog: nobody else is there to do it."""
    await without_owner_and_watchdog(world, "children")
    await until(lambda: len(world.processes()) == 1, "the group of the server to end")
    (left,) = world.processes()
    assert os.getsid(left) == left  # it had left the group


async def test_a_server_that_prints_much_is_neither_stopped_nor_logged_in_full(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pagemill.serving.process.LOG_BYTES", 100_000)
    async with ModelServers([world.spec("flood")], patience=QUICK, report=world.report) as servers:
        assert await is_healthy(servers.urls[0])
    sizes = [path.stat().st_size for path in world.log.parent.glob("server.log*")]
    assert 0 < sum(sizes) <= 200_000
