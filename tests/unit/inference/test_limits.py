"""The adaptive limit against models of servers: it finds their capacity and never leaves its bounds."""

import heapq
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.inference.limits import LARGEST, InFlightLimit

TOKENS = 100


def drive(
    limit: InFlightLimit,
    seconds: Callable[[int], float],
    *,
    requests: int = 5000,
    slots: int = 10**9,
    capacity: int = 10**9,
    demand: int = 10**9,
) -> list[int]:
    """Requests against a server: ``seconds(running)`` each, ``slots`` run at once, over ``capacity`` get HTTP 503.

    Returns:
        The limit after each request.
    """
    now, sent, waiting = 0.0, 0, []
    running: list[tuple[float, int, float, object]] = []
    history = []
    while len(history) < requests:
        in_flight = len(running) + len(waiting)
        while in_flight < min(limit.value, demand):
            in_flight += 1
            sent += 1
            ticket = limit.begin(in_flight)
            if in_flight > capacity:
                limit.overloaded(ticket)
                history.append(limit.value)
                if len(history) >= requests:
                    return history
                break  # backs off until the next answer
            if len(running) < slots:
                heapq.heappush(running, (now + seconds(len(running) + 1), sent, now, ticket))
            else:
                waiting.append((sent, now, ticket))
        now, _, since, ticket = heapq.heappop(running)
        limit.succeeded(ticket, now - since, TOKENS)
        history.append(limit.value)
        if waiting:
            number, started, queued = waiting.pop(0)
            heapq.heappush(running, (now + seconds(len(running) + 1), number, started, queued))
    return history


def test_a_server_that_handles_everything_is_given_the_most():
    assert drive(InFlightLimit(), lambda _: 1.0, requests=1000)[-1] == LARGEST


def test_it_doubles_only_as_long_as_demand_fills_it():
    assert max(drive(InFlightLimit(16), lambda _: 1.0, demand=10)) == 16


@pytest.mark.parametrize("slots", [4, 24, 100])
def test_latency_reflects_the_queue(slots):
    settled = drive(InFlightLimit(), lambda _: 1.0, slots=slots)[2500:]
    assert 0.8 * slots <= sum(settled) / len(settled) <= 4.5 * slots


def test_it_stops_where_more_requests_only_take_longer():
    """A batch whose step takes 1 + running / 8: half of the best throughput at 8, nine tenths at 72."""
    settled = drive(InFlightLimit(8), lambda running: 1 + running / 8)[2500:]
    assert 16 <= sum(settled) / len(settled) <= 120


@pytest.mark.parametrize("capacity", [4, 50])
def test_rejections_bring_it_down(capacity):
    settled = drive(InFlightLimit(200), lambda _: 1.0, capacity=capacity)[2500:]
    assert 0.5 * capacity <= sum(settled) / len(settled) <= 1.5 * capacity


def test_a_server_that_rejects_everybody_lowers_it_once_until_it_answers():
    limit = InFlightLimit(100)
    for _ in range(50):
        for ticket in [limit.begin(number + 1) for number in range(limit.value)]:
            limit.overloaded(ticket)
    assert limit.value == 70


def test_the_odd_fault_of_a_server_does_not_throttle_it():
    limit = InFlightLimit(16)
    for number in range(5000):
        ticket = limit.begin(limit.value)
        if number % 100 == 0:
            limit.overloaded(ticket)
        else:
            limit.succeeded(ticket, 1.0, TOKENS)
    assert limit.value == LARGEST


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_failures_at_random_say_nothing_of_the_load(share):
    draw = random.Random(1)
    limit = InFlightLimit(16)
    values = []
    for _ in range(20_000):
        ticket = limit.begin(limit.value)
        if draw.random() < share:
            limit.failed(ticket)
        else:
            limit.succeeded(ticket, 1.0, TOKENS)
        values.append(limit.value)
    assert limit.value == LARGEST
    assert min(values[10_000:]) >= LARGEST // 2


def test_a_death_with_all_in_flight_lowers_it_once_however_long_the_outage_is():
    limit = InFlightLimit(100)
    for _ in range(50):
        for ticket in [limit.begin(number + 1) for number in range(limit.value)]:
            limit.failed(ticket)
    assert limit.value == 70
    for again, value in ((lambda: limit.succeeded(limit.begin(1), 1.0, 1), 49), (limit.returned, 34)):
        again()
        for ticket in [limit.begin(number + 1) for number in range(limit.value)]:
            limit.failed(ticket)
        assert limit.value == value


def test_a_fixed_limit_stays():
    limit = InFlightLimit(smallest=7, largest=7)
    for _ in range(100):
        ticket = limit.begin(7)
        limit.overloaded(ticket)
        limit.failed(ticket)
        limit.overloaded(ticket)
        limit.succeeded(ticket, 1.0, 1)
    assert limit.value == 7


EVENTS = st.one_of(
    st.tuples(st.just("succeeded"), st.floats(0, 1e6), st.integers(0, 10**6), st.booleans()),
    st.tuples(st.just("overloaded"), st.booleans()),
    st.tuples(st.just("failed"), st.booleans()),
)


@given(st.lists(EVENTS, max_size=400), st.integers(1, 300), st.integers(1, 16), st.integers(16, 300), st.integers(1, 3))
def test_it_stays_within_its_bounds_whatever_happens(events, first, smallest, largest, repeat):
    limit = InFlightLimit(first, smallest=smallest, largest=largest)
    old = limit.begin(1)
    for kind, *details in events * repeat:
        ticket = limit.begin(limit.value) if details.pop() else old
        if kind == "succeeded":
            limit.succeeded(ticket, *details)
        else:
            getattr(limit, kind)(ticket)
        assert smallest <= limit.value <= largest
        assert isinstance(limit.value, int)
