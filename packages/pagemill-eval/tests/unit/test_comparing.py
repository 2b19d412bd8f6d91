import numpy as np
import pytest

from pagemill.errors import InputError
from pagemill_eval import benchmarks
from pagemill_eval.benchmark import SampleScore, Status
from pagemill_eval.comparing import bootstrap_interval, compare

PUBTABNET = benchmarks.create("pubtabnet")


def result(values: dict[str, float | None], **changes):
    scores = [SampleScore(id=key, status=Status.SCORED, metrics={"teds": value}) for key, value in values.items()]
    made = PUBTABNET.result(scores)
    return made if not changes else type(made)(**{f: getattr(made, f) for f in made.__struct_fields__} | changes)


def test_differences_worst_first():
    found = compare(PUBTABNET, result({"a": 0.5, "b": 0.9, "c": 1.0}), result({"a": 0.7, "b": 0.2, "c": 1.0}))
    assert [each.id for each in found.samples] == ["b", "c", "a"]
    (teds,) = found.metrics
    assert (teds.samples, teds.better, teds.worse) == (3, 1, 1)
    assert teds.difference == pytest.approx(-0.5 / 3)
    assert teds.low <= teds.difference <= teds.high
    assert not teds.is_significant


def test_samples_of_one_side_are_named_and_values_that_do_not_apply_are_left_out():
    found = compare(PUBTABNET, result({"a": 0.5, "b": None, "c": 1}), result({"a": 0.5, "b": 0.1, "d": 1}))
    assert (found.only_first, found.only_second) == (["c"], ["d"])
    assert [each.id for each in found.samples] == ["a"]


def test_what_cannot_be_compared():
    with pytest.raises(InputError, match="no sample in common"):
        compare(PUBTABNET, result({"a": 1}), result({"b": 1}))
    with pytest.raises(InputError, match="official rules"):
        compare(PUBTABNET, result({"a": 1}), result({"a": 1}, rules="official"))


def test_the_interval():
    values = np.random.default_rng(3).normal(0.1, 1.0, 400)
    low, high = bootstrap_interval(values)
    assert (low, high) == bootstrap_interval(values)  # a fixed seed
    error = values.std() / 20
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)
    assert bootstrap_interval(np.full(5, 0.25)) == (0.25, 0.25)
