from pathlib import Path

import msgspec
import pytest

from pagemill.config.hardware import Device, Dtype, Fp8, load_profile, profile_names, profile_text
from pagemill.errors import UsageError


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


def test_a_profile_in_a_file_is_read_as_it_was_written(tmp_path: Path):
    file = tmp_path / "mine.toml"
    mine = msgspec.structs.replace(load_profile("l4"), name="mine", title='My "L4", für uns', max_model_len=8192)
    file.write_text(profile_text(mine), encoding="utf-8")
    assert load_profile(str(file)) == mine


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("memory_share = 1.5", "memory_share"),
        ("memory_gib = nan", "memory_gib"),
        ("workers = 0", "workers"),
        ("workers = 'many'", "workers"),
        ("seats = 4", "seats"),
        ("workers = ", "Invalid"),
    ],
)
def test_an_invalid_file_is_refused_with_the_name_of_the_field(tmp_path: Path, change: str, named: str):
    file = tmp_path / "mine.toml"
    lines = profile_text(load_profile("l4")).splitlines()
    file.write_text("\n".join([line for line in lines if line.split()[0] != change.split()[0]] + [change]))
    with pytest.raises(UsageError, match=named):
        load_profile(str(file))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read"):
        load_profile(str(tmp_path / "none.toml"))
