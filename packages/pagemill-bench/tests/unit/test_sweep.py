"""Sweeps: which settings are tried, which is the best, what goes into a profile, and why a start failed."""

import msgspec
import pytest

from pagemill.config.hardware import load_profile, profile_text
from pagemill.config.model_cards import load_card
from pagemill.config.serving import Wishes
from pagemill.serving.planning import make_plan
from pagemill_bench.saturation import Level
from pagemill_bench.sweep import Row, _cause, best_of, measured_profile, settings_of

GLM = load_card("glm-ocr")


def row(seqs: int, *rates: float, failure: str | None = None) -> Row:
    levels = tuple(
        Level(
            in_flight=2**power,
            answered=1,
            failed=0,
            seconds=1,
            requests_per_s=rate,
            prompt_tokens_per_s=None,
            output_tokens_per_s=0,
            latency_s=None,
            first_token_s=None,
        )
        for power, rate in enumerate(rates)
    )
    return Row(setting={"max_num_seqs": seqs}, levels=levels, failure=failure)


def test_every_combination_is_tried():
    assert settings_of({"max_num_seqs": (1, 2), "memory_share": (0.5,)}) == [
        {"max_num_seqs": 1, "memory_share": 0.5},
        {"max_num_seqs": 2, "memory_share": 0.5},
    ]


def test_the_best_is_that_with_the_highest_throughput_of_those_that_were_measured():
    rows = [row(1, 1.0, 2.0), row(2, 9.0, failure="it died"), row(4, 1.5, 3.0), row(8), row(16, 3.0)]
    assert best_of(rows) == 2, "the first of equals"
    assert best_of([row(1), row(2, 9.0, failure="it died")]) is None


def test_the_profile_of_a_row_gives_the_same_flags(tmp_path):
    wishes = Wishes(memory_share=0.7, max_num_seqs=999, max_num_batched_tokens=4096, max_model_len=8192)
    plan = make_plan(GLM, load_profile("l4"), wishes)
    swept = ["memory_share", "max_num_seqs", "max_num_batched_tokens", "max_model_len"]
    profile = measured_profile(row(999, 5.0, 9.5, 10.0), plan, name="mine", of=3, swept=swept)
    assert profile.workers == 2, "the knee"
    assert "the best of 3 settings: 10.0 requests/s with glm-ocr, 4 in flight" in profile.batched_tokens_reason
    file = tmp_path / "mine.toml"
    file.write_text(profile_text(profile), encoding="utf-8")
    assert make_plan(GLM, load_profile(str(file))).arguments == plan.arguments


def test_what_was_not_swept_stays_as_it_was():
    base = load_profile("l4")
    profile = measured_profile(row(9, 5.0), make_plan(GLM, base), name="mine", of=1, swept=["max_num_seqs"])
    assert profile.batched_tokens_reason == base.batched_tokens_reason
    assert profile.max_model_len is None
    changed = {"name", "match", "max_num_seqs", "workers", "measured", "note"}
    same = {name: value for name, value in msgspec.to_builtins(base).items() if name not in changed}
    assert same.items() <= msgspec.to_builtins(profile).items()


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "  | (EngineCore pid=27) ERROR 11-22 15:34:39 [core.py:1510] ValueError: To serve at least one request\n"
            "  | ...\n  | RuntimeError: Engine core initialization failed\n  log: /a",
            "ValueError: To serve at least one request",
        ),
        (
            '  | File "/a/error.py", line 9\n  | pydantic.ValidationError: 1 validation error\n'
            "  | Value error, max_num_batched_tokens (4) is smaller than max_num_seqs (8).\n  log: /a",
            "Value error, max_num_batched_tokens (4) is smaller than max_num_seqs (8).",
        ),
        ("  | loading\n  log: /a", ""),
        ("  | ValueError: " + "x" * 999, "ValueError: " + "x" * 228 + " ..."),
    ],
)
def test_the_reason_is_the_first_exception(log: str, cause: str):
    assert _cause(log) == cause
