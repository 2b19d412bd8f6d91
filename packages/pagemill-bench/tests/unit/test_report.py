"""The tables and sentences about levels and sweeps."""

import msgspec

from pagemill.config.hardware import load_profile
from pagemill.config.model_cards import load_card
from pagemill.config.serving import Wishes
from pagemill.profiling.gpu_use import GpuUse
from pagemill.serving.planning import make_plan
from pagemill_bench.report import knee_notes, level_notes, levels_text, rows_text, sweep_notes
from pagemill_bench.saturation import Level, Percentiles, ServerLoad, knee_of
from pagemill_bench.sweep import Row, measured_profile

PLAIN = Level(
    in_flight=1,
    answered=8,
    failed=0,
    seconds=4,
    requests_per_s=2.0,
    prompt_tokens_per_s=None,
    output_tokens_per_s=40.0,
    latency_s=Percentiles(p50=0.5, p95=0.6, p99=0.7),
    first_token_s=None,
)
RICH = msgspec.structs.replace(
    PLAIN,
    in_flight=1024,
    requests_per_s=3.0,
    failed=2,
    failures={"HTTP 500": 2},
    server=ServerLoad(running=7.5, waiting=1000.5, kv_cache=0.98, preemptions=12),
    gpus=(
        GpuUse(index=0, name="a", busy=0.1, memory_busy=0.9, memory_gib=9),
        GpuUse(index=1, name="b", busy=0.8, memory_busy=0.4, memory_gib=70.25),
    ),
)


def test_only_what_is_known_has_a_column():
    plain = levels_text("[m] on http://[::1]:8000", [PLAIN], ["a [note]"])
    assert "[m] on http://[::1]:8000" in plain
    assert "a [note]" in plain
    assert not any(word in plain for word in ("GPU", "queued", "failed", "first"))
    both = levels_text("t", [PLAIN, RICH], [])
    for word in ("1,024", "7.5", "1000.5", "98%", "12", "80%", "40%", "70.2"):
        assert word in both
    assert both.splitlines()[-1].split()[-1] == "2", "what failed comes last"


def test_the_notes_name_the_knee_what_is_left_out_and_what_failed():
    knee = knee_of([PLAIN, RICH])
    (where, more) = knee_notes(knee)
    assert "Knee: 1,024 in flight" in where
    assert "90% of the highest" in where
    assert "may bring more" in more
    left_out = " ".join(level_notes([PLAIN]))
    assert "/metrics" in left_out
    assert "NVIDIA" in left_out
    assert [*level_notes([RICH])] == ["Failed with 1,024 in flight, 2 times: HTTP 500"]


def test_a_sweep_says_what_is_best_what_is_near_and_what_failed():
    near = msgspec.structs.replace(PLAIN, requests_per_s=2.95)
    rows = [
        Row(setting={"max_num_seqs": 8}, levels=(RICH,), start_s=60),
        Row(setting={"max_num_seqs": 9}, levels=(near,), start_s=61),
        Row(setting={"max_num_seqs": 7}, levels=(PLAIN,), start_s=61),
        Row(setting={"max_num_seqs": 6}, failure="no memory"),
    ]
    plan = make_plan(load_card("glm-ocr"), load_profile("l4"), Wishes(max_num_seqs=8))
    profile = measured_profile(rows[0], plan, name="mine", of=4, swept=["max_num_seqs"])
    best, close, *lines = sweep_notes(rows, 0, profile, ["max_num_seqs"])
    assert "--max-num-seqs 8: 3.00 requests/s with 1,024 in flight" in best
    assert close.endswith("turn round: --max-num-seqs 9.")
    assert "  max_num_seqs = 8" in lines
    assert [*sweep_notes(rows, None, None, [])] == []
    assert "Failed: --max-num-seqs 6: no memory" in rows_text("t", rows, ["max_num_seqs"], [])
