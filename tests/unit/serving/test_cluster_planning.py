"""The arithmetic of runs on clusters."""

import pytest

from pagemill.config.cluster import ClusterOptions
from pagemill.config.hardware import load_profile
from pagemill.serving.cluster_planning import CORPORA, plan_cluster

H100, B200 = load_profile("h100"), load_profile("b200")


def test_time_and_cost_follow_from_the_rate():
    options = ClusterOptions(nodes=4, gpus_per_node=2, pages_per_second=2.5, gpu_hour_price=3.0)
    plan = plan_cluster(options, H100)
    assert (plan.gpus, plan.cluster_pages_per_second, plan.rate_reason) == (8, 20.0, "as given")
    million = plan.corpora[0]
    assert million.seconds == 50_000
    assert million.gpu_hours == pytest.approx(8 * 50_000 / 3600)
    assert million.cost == pytest.approx(3 * million.gpu_hours)


def test_the_rate_is_that_of_the_profile_or_a_lower_bound_that_says_so():
    options = ClusterOptions(nodes=1)
    assert plan_cluster(options, B200).pages_per_second == 0.9
    unknown = plan_cluster(options, H100)
    assert unknown.pages_per_second == 0.41
    assert "lower bound" in unknown.rate_reason
    assert unknown.corpora[0].cost is None


def test_disk_does_not_depend_on_the_number_of_nodes():
    one, many = (plan_cluster(ClusterOptions(nodes=nodes, page_mb=2), B200).corpora for nodes in (1, 64))
    for small, large in zip(one, many, strict=True):
        assert small.source_bytes == large.source_bytes == small.pages * 2e6
        assert (small.database_bytes, small.crop_bytes) == (large.database_bytes, large.crop_bytes)


def test_more_pages_exceed_more_limits_rates_before_sizes():
    plan = plan_cluster(ClusterOptions(nodes=2000, pages_per_second=3), H100)
    assert [corpus.pages for corpus in plan.corpora] == list(CORPORA)
    counts = [len(corpus.exceeded) for corpus in plan.corpora]
    assert counts == sorted(counts)
    for corpus in plan.corpora:
        assert [limit.unit for limit in corpus.exceeded] == sorted(limit.unit for limit in corpus.exceeded)[::-1]
        assert all(limit.parts > 1 for limit in corpus.exceeded)
    assert any("driver" in limit.name for limit in plan.corpora[0].exceeded)


def test_a_small_cluster_breaks_nothing_with_a_million_pages():
    assert plan_cluster(ClusterOptions(nodes=4), H100).corpora[0].exceeded == ()
