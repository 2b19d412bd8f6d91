import pytest

from pagemill.cluster.nodes import NodeRates
from pagemill.errors import OutputError
from pagemill.store.nodes import read_node_rates, write_node_rates
from pagemill.store.paths import FOLDER, NODES


def test_rates_are_those_of_the_last_minute(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    rates = NodeRates()
    for node in ("b", "a", "a"):
        rates.add(node)
    now[0] = 10.0
    assert rates.rates() == {"a": 0.2, "b": 0.1}
    now[0] = 50.0
    rates.add("b")
    now[0] = 100.0
    assert rates.rates() == {"b": 1 / 60}


def test_rates_are_noted_in_the_run_directory_until_the_run_ends(tmp_path):
    (tmp_path / FOLDER).mkdir()
    write_node_rates(tmp_path, {"a": 0.5})
    assert read_node_rates(tmp_path) == {"a": 0.5}
    write_node_rates(tmp_path, {})
    assert read_node_rates(tmp_path) == {}


def test_a_directory_that_cannot_be_changed_is_an_error_of_the_output(tmp_path):
    (tmp_path / NODES).mkdir(parents=True)
    with pytest.raises(OutputError):
        write_node_rates(tmp_path, {})
