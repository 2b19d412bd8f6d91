import json

import pytest
from click.testing import CliRunner

from pagemill.cli import cli, exit_status
from pagemill.errors import ExitCode


def plan(*arguments: str) -> str:
    answer = CliRunner().invoke(cli, ["plan", *arguments], catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.output


def test_the_table_shows_memory_bounds_flags_and_reasons():
    out = plan("--profile", "b200", "--gpu-mem-util", "0.90", "--max-model-len", "32768")
    for part in ("172.80", "1.36", "29.3", "142.0", "71.0", "775.9", "estimate", "Available KV cache memory"):
        assert part in out
    assert "--max-num-batched-tokens 131072\n      the best of" in out
    assert out.count("<-") == 1
    assert "291  of 450 tokens; 65 of the published 2,000" in out


def test_fewer_sequences_than_the_profile_has_are_explained():
    out = plan("--profile", "rtx4090")
    assert "the profile has 100; the cache holds 88 typical sequences of 3,000 tokens" in out


def test_json_has_the_same():
    answer = json.loads(plan("--profile", "l4", "--json", "--workers", "8"))
    assert answer["bounds"]["effective"] == 8
    assert answer["bounds"]["limited_by"] == "client"
    assert answer["arguments"][:2] == ["--gpu-memory-utilization", "0.8"]
    assert {"name", "value", "reason"} == set(answer["flags"][0])


def test_the_workload_moves_the_bounds():
    short = json.loads(plan("--profile", "l4", "--json", "--sequence-tokens", "1000", "--prefill-tokens", "200"))
    assert short["bounds"]["kv_cache"] == 241
    assert short["bounds"]["batched_tokens"] == 40


def test_auto_is_the_machine_at_hand():
    assert json.loads(plan("--json"))["profile"]["memory_gib"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--profile", "rtx4060", "--memory", "2"],
        ["--profile", "nope"],
        ["--model", "nope"],
        ["--gpu-mem-util", "3"],
        ["--profile", "cpu", "--ocr-dtype", "fp8"],
    ],
)
def test_what_cannot_be_is_a_usage_error_with_a_remedy(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert exit_status(lambda: cli.main(["plan", *arguments], standalone_mode=False)) == ExitCode.USAGE
    assert len(capsys.readouterr().err.splitlines()) >= 2


def test_a_cluster_is_planned_with_the_arithmetic_shown():
    out = plan("--profile", "h100", "--nodes", "16", "--pages-per-second", "2.5", "--gpu-hour-price", "2")
    assert "128 x 2.5 = 320.0 pages/s = 1,152,000 pages/hour" in out
    for part in ("1 M", "100 M", "10 B", "cost", "Network: a node reads", "the database of a run"):
        assert part in out
    answer = json.loads(plan("--profile", "h100", "--nodes", "16", "--pages-per-second", "2.5", "--json"))
    assert answer["cluster"]["gpus"] == 128
    assert [corpus["pages"] for corpus in answer["cluster"]["corpora"]] == [10**6, 10**8, 10**10]


def test_options_of_a_cluster_need_one(capsys: pytest.CaptureFixture[str]):
    assert exit_status(lambda: cli.main(["plan", "--gpus-per-node", "4"], standalone_mode=False)) == ExitCode.USAGE
    assert "--nodes" in capsys.readouterr().err
