"""The plan beside the published figures: the table in docs/vllm.md says what the code computes."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pagemill.config.hardware import load_profile
from pagemill.config.model_cards import load_card
from pagemill.config.serving import Wishes
from pagemill.serving.planning import ServingPlan, make_plan

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "vllm.md"


def plan(profile: str, card: str = "glm-ocr", **wishes: object) -> ServingPlan:
    return make_plan(load_card(card), load_profile(profile), Wishes(**wishes))


def rows() -> list[tuple[str, str, str, str, str]]:
    """Group, figure, published, planned and the difference, of each row."""
    text = (
        DOCUMENTATION.read_text(encoding="utf-8").partition("### Beside the published figures")[2].partition("## ")[0]
    )
    group, found = "", []
    for line in text.splitlines():
        if not line.startswith("| ") or line.startswith("| figure"):
            continue
        figure, published, planned, difference = (cell.strip() for cell in line.strip("|").split("|"))
        if heading := re.match(r"\*\*(.+?)\*\*.*?: ", figure):
            group, figure = heading[0].replace("*", "").strip(": "), figure[heading.end() :]
        found.append(
            (
                group.partition(",")[0] + (" defaults" if "defaults" in group else ""),
                figure,
                published,
                planned,
                difference,
            )
        )
    return found


EXAMPLE = plan("b200", memory_share=0.90, max_model_len=32_768)
B200, L4, RTX4090, RTX4060 = map(plan, ("b200", "l4", "rtx4090", "rtx4060"))
MEMORY = ("memory, GiB", lambda each: f"{each.budget.memory_gib:g}")
SHARE = ("share of memory", lambda each: f"{each.budget.share:.2f}")
BATCH = ("layout batch", lambda each: f"{each.batch_size}")
WORKERS = ("requests in flight", lambda each: f"{each.workers}")


def sequences(profile: str, card: str) -> str:
    return f"{plan(profile, card).bounds.max_num_seqs}"


def of(
    group: str, planned: ServingPlan, *figures: tuple[str, Callable[[ServingPlan], str]]
) -> dict[tuple[str, str], str]:
    return {(group, name): compute(planned) for name, compute in figures}


COMPUTED = {
    **of(
        *("B200", EXAMPLE),
        ("memory claimed, GiB", lambda each: f"{each.budget.claimed_gib:.1f}"),
        ("weights in fp8, GiB", lambda each: f"{each.budget.weights_gib:.2f}"),
        ("activations, GiB", lambda each: f"{each.budget.activations_gib:.1f}"),
        ("KV cache, GiB", lambda each: f"{each.budget.kv_gib:.1f}"),
        ("tokens in the cache", lambda each: f"{each.budget.slots:,}"),
        ("sequences of 32,768 tokens in the cache", lambda each: f"{each.budget.worst_case_sequences:.0f}"),
        ("sequences of 3,000 tokens in the cache", lambda each: f"{each.bounds.kv_cache}"),
        ("prefills of 2,000 tokens in a step", lambda each: f"{each.bounds.published_batched_tokens}"),
        ("prefills of a mean region in a step", lambda each: f"{each.bounds.batched_tokens}"),
        ("tokens in a step", lambda each: f"{each.budget.step_tokens:,}"),
        WORKERS,
        ("sequences admitted", lambda each: f"{each.bounds.max_num_seqs}"),
    ),
    **of("B200 defaults", B200, SHARE, BATCH, ("weights", lambda each: str(each.dtype))),
    **of(
        *("L4", L4, MEMORY, SHARE, BATCH, WORKERS),
        ("requests at once", lambda each: f"{each.bounds.effective}"),
        ("tokens in the encoder cache", lambda each: f"{each.encoder_cache_tokens:,}"),
    ),
    **of("RTX 4090", RTX4090, MEMORY, SHARE),
    **of("RTX 4060", RTX4060, MEMORY, SHARE),
    ("RTX 4090", "sequences admitted, GLM-OCR"): sequences("rtx4090", "glm-ocr"),
    ("RTX 4090", "sequences admitted, DeepSeek-OCR"): sequences("rtx4090", "deepseek-ocr"),
    ("RTX 4060", "sequences admitted, GLM-OCR"): sequences("rtx4060", "glm-ocr"),
    ("RTX 4060", "sequences admitted, DeepSeek-OCR"): sequences("rtx4060", "deepseek-ocr"),
    ("Models", "GLM-OCR, parameters"): f"{load_card('glm-ocr').parameters / 1e9:.1f} B",
    ("Models", "PP-DocLayoutV3, parameters"): f"{load_card('pp-doclayout-v3').parameters / 1e6:.0f} M",
    ("Models", "Qwen3-VL-Embedding-2B, dimension"): f"{load_card('qwen3-vl-embedding-2b').embedding['dimension']:,}",
    ("Models", "GLM-OCR, longest answer"): f"{load_card('glm-ocr').sampling.max_tokens:,}",
    ("Models", "DeepSeek-OCR, longest answer"): f"{load_card('deepseek-ocr').sampling.max_tokens:,}",
}


def test_the_table_has_every_figure_once():
    assert sorted(row[:2] for row in rows()) == sorted(COMPUTED)


@pytest.mark.parametrize(("group", "figure", "published", "planned", "difference"), rows())
def test_what_is_planned_is_what_is_documented_and_differences_are_explained(
    group: str, figure: str, published: str, planned: str, difference: str
):
    assert planned == COMPUTED[group, figure]
    low, _, high = published.partition("-")
    within = high and planned.replace(".", "").isdigit() and float(low) <= float(planned) <= float(high)
    assert planned == published or within or difference
