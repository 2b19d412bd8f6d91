"""The sweep over thresholds: numbers are found, changed and put back, and remembered results depend on them."""

import asyncio
from types import ModuleType, SimpleNamespace

import pytest

import sweep_thresholds
from sweep_thresholds import Number, Remembered, Sweep, Watched, changed, noted


class _Thresholds:
    gap = 0.5
    rows = 2
    pairs = ((4, 0.5), (2, 1.0))


@pytest.fixture
def watched() -> Watched:
    return Watched(_Thresholds())


def _number(watched: Watched, name: str, path: tuple[int, ...] = ()) -> Number:
    (found,) = (
        n
        for n in sweep_thresholds._numbers("pagemill.x.thresholds", name, getattr(_Thresholds, name), watched)
        if n.path == path
    )
    return found


def test_a_number_is_changed_and_put_back(watched: Watched) -> None:
    gap = _number(watched, "gap")
    with changed(gap, gap.moved(1.2)):
        assert watched.gap == pytest.approx(0.6)
    assert watched.gap == 0.5


def test_a_number_within_tuples_is_changed_alone(watched: Watched) -> None:
    number = _number(watched, "pairs", (1, 0))
    assert number.title == "x.thresholds.pairs[1][0]"
    with changed(number, 9):
        assert watched.pairs == ((4, 0.5), (9, 1.0))


def test_a_constant_is_changed_wherever_it_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from pagemill.parsing import doubts
    from pagemill.recognition import reader, verdict

    number = Number("pagemill.recognition.reader", "POORLY_READ", (), reader.POORLY_READ, False, None)
    before = reader.POORLY_READ
    holders: list[ModuleType] = [reader, verdict, doubts]
    with changed(number, 0.5):
        assert {holder.POORLY_READ for holder in holders} == {0.5}  # type: ignore[attr-defined]
    assert {holder.POORLY_READ for holder in holders} == {before}  # type: ignore[attr-defined]


def test_what_is_read_is_noted_also_from_what_is_remembered(watched: Watched) -> None:
    calls = []

    def costly(factor: int) -> float:
        calls.append(factor)
        return watched.gap * factor

    remembered = Remembered(costly)
    for _ in range(2):
        with noted() as reads:
            assert remembered(4) == 2
        assert reads == {(watched, "gap")}
    assert calls == [4]
    with changed(_number(watched, "rows"), 7):  # which it does not read
        assert remembered(4) == 2
    assert calls == [4]
    with changed(_number(watched, "gap"), 1.0):
        assert remembered(4) == 4
    assert remembered(4) == 2
    assert calls == [4, 4]


def test_numbers_are_searched_by_halves(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    async def parsed(pipeline: object, ref: object) -> bytes:
        return f"{watched.gap > 0.5} {watched.rows}".encode()  # the gap moves it upwards alone

    monkeypatch.setattr(sweep_thresholds, "parsed", parsed)
    sweep = Sweep({}, [0.8, 1.2], enough=1)
    sweep.numbers = [_number(watched, name, path) for name, path in (("gap", ()), ("rows", ()), ("pairs", (1, 0)))]
    for name in ("a", "b"):
        ref = SimpleNamespace(document=SimpleNamespace(uri=name), page_number=1)
        asyncio.run(sweep.probe(SimpleNamespace(has_read=False, read_again=False), ref))  # type: ignore[arg-type]
    rows = sweep.result()["rows"]
    assert [(row["number"], row["reached"], row["0.8"]["pages"], row["1.2"]["pages"]) for row in rows] == [
        ("x.thresholds.gap", 2, [], ["a#1"]),
        ("x.thresholds.rows", 2, ["a#1"], ["a#1"]),
    ]
    assert sweep.result()["unread"] == ["x.thresholds.pairs[1][0]"]
