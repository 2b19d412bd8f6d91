from __future__ import annotations

import pytest

from pagemill.config.hardware import Device, Dtype, Fp8, load_profile, profile_names


def test_the_machines_that_are_promised_have_profiles():
    assert {"b200", "h200", "h100", "a100", "l4", "rtx4090", "rtx4060", "mps", "cpu"} <= set(profile_names())


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_makes_sense(name: str):
    profile = load_profile(name)
    assert profile.name == name
    assert 0 < profile.memory_share <= 0.92
    assert profile.max_num_batched_tokens >= profile.max_num_seqs
    assert (profile.device is Device.CUDA) == (profile.memory_gib is not None) == bool(profile.match)
    if profile.compute_capability:
        assert (profile.fp8 is Fp8.NATIVE) == (profile.compute_capability >= (8, 9))
    assert profile.dtype is not Dtype.FP8 or profile.fp8 is Fp8.NATIVE
