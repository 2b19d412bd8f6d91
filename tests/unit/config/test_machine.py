from dataclasses import fields

import pytest

from pagemill.config.machine import RuntimeSettings, _cgroup_quota, available_cores
from pagemill.config.options import options_of


@pytest.mark.parametrize(
    ("content", "cores"), [("200000 100000\n", 2), ("150000 100000", 2), ("max 100000", None), ("nonsense", None)]
)
def test_a_containers_quota(tmp_path, content, cores):
    path = tmp_path / "cpu.max"
    path.write_text(content)
    assert _cgroup_quota(path) == cores


def test_no_control_group(tmp_path):
    assert _cgroup_quota(tmp_path / "nothing") is None


def test_zeros_become_numbers_and_others_stay():
    resolved = RuntimeSettings(threads=3, pages_in_flight=0).resolved()
    assert (resolved.threads, resolved.pages_in_flight) == (3, 9)
    assert resolved.decoders >= 1
    assert RuntimeSettings().resolved().threads == available_cores()


def test_what_cannot_be_chosen_is_no_setting():
    """Settings are in ``run.json``, and arguments of the class."""
    assert len(fields(RuntimeSettings)) == len(list(options_of(RuntimeSettings)))
