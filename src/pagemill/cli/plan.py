"""``pagemill plan``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pagemill.config.model_cards import ModelCard
    from pagemill.serving.planning import Plan

_BOUNDS = {
    "client": "requests in flight",
    "max_num_seqs": "sequences admitted",
    "kv_cache": "KV cache / typical sequence",
    "batched_tokens": "step / typical prefill",
}


def sizing_options(function: Callable[..., object]) -> Callable[..., object]:
    """The options that a memory plan is made from, as ``plan`` and ``serve-model`` take them."""
    for option in reversed(
        (
            click.option(
                "--model",
                default="glm-ocr",
                show_default=True,
                metavar="NAME",
                help="Model card: a name, or CARD.toml.",
            ),
            click.option(
                "--weights",
                type=click.Path(path_type=Path, exists=True, file_okay=False),
                metavar="PATH",
                help="Folder of a checkpoint, in place of the card's.",
            ),
            click.option(
                "--profile",
                default="auto",
                show_default=True,
                metavar="NAME",
                help="Hardware: auto, b200, h200, h100, a100, l4, rtx4090, rtx4060, mps, cpu.",
            ),
            click.option("--memory", type=click.FloatRange(min=0, min_open=True), metavar="GIB", help="Its memory."),
            click.option("--gpu-mem-util", type=float, metavar="SHARE", help="Share of the memory that vLLM claims."),
            click.option("--max-model-len", type=click.IntRange(min=1), metavar="TOKENS", help="Longest request."),
            click.option("--ocr-dtype", type=click.Choice(["fp8", "bf16", "auto"]), help="How weights are held."),
        )
    ):
        function = option(function)
    return function


@click.command(name="plan", short_help="Size a model server: memory, concurrency, flags.")
@sizing_options
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Requests in flight at each server.")
@click.option(
    "--sequence-tokens", type=click.IntRange(min=1), metavar="N", help="Of a typical request, answer included."
)
@click.option("--prefill-tokens", type=click.IntRange(min=1), metavar="N", help="Of its image and prompt.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(
    model: str,
    weights: Path | None,
    profile: str,
    memory: float | None,
    gpu_mem_util: float | None,
    max_model_len: int | None,
    workers: int | None,
    ocr_dtype: str | None,
    sequence_tokens: int | None,
    prefill_tokens: int | None,
    as_json: bool,
) -> None:
    """Show how a model fits on a machine, how many requests it bears there, and the flags of 'vllm serve' for that.

    Nothing is started, and neither vLLM nor the machine has to be there. Ends with 2 when the model does not fit.

    \b
    pagemill plan --profile l4
    pagemill plan --profile b200 --gpu-mem-util 0.90 --max-model-len 32768
    """  # noqa: D301 - click wants the control character
    from pagemill.config.hardware import Dtype
    from pagemill.serving.memory import Wishes
    from pagemill.serving.replicas import ServingOptions, plan_for

    wishes = Wishes(
        memory_gib=memory,
        memory_share=gpu_mem_util,
        max_model_len=max_model_len,
        workers=workers,
        dtype=Dtype(ocr_dtype) if ocr_dtype else None,
        sequence_tokens=sequence_tokens,
        prefill_tokens=prefill_tokens,
    )
    card, plan = plan_for(ServingOptions(model=model, weights=weights, profile=profile, wishes=wishes))
    click.echo(_json(plan) if as_json else "\n".join(_lines(card, plan)))


def summary(card: ModelCard, plan: Plan) -> str:
    """How a model fits on a machine, in a sentence."""
    budget, bounds = plan.budget, plan.bounds
    return (
        f"{card.title} ({plan.dtype}) on {plan.profile.title}: {budget.claimed_gib:.1f} of {budget.memory_gib:.1f} GiB,"
        f" weights {budget.weights_gib:.1f}, KV cache {budget.kv_gib:.1f};"
        f" {bounds.effective} requests at once ({_BOUNDS[bounds.limited_by]})."
    )


def _json(plan: Plan) -> str:
    import msgspec

    answer = msgspec.to_builtins(plan)
    answer["bounds"] |= {"effective": plan.bounds.effective, "limited_by": plan.bounds.limited_by}
    answer["arguments"] = plan.arguments
    return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()


def _lines(card: ModelCard, plan: Plan) -> Iterator[str]:
    budget, bounds = plan.budget, plan.bounds
    yield f"{card.title} ({plan.dtype}) on {plan.profile.title}"
    yield ""
    yield from _memory(plan)
    yield ""
    yield f"Concurrency: {bounds.effective}, the least of"
    for name, title in _BOUNDS.items():
        mark = "  <-" if name == bounds.limited_by else ""
        yield f"  {title:<30}{getattr(bounds, name):>12,}{mark}"
    yield ""
    yield "Flags of vllm serve"
    for flag in plan.flags:
        yield f"  {' '.join(flag.arguments)}"
        yield f"      {flag.reason}"
    yield ""
    yield f"Requests in flight: {plan.workers}. Pages a layout batch: {plan.batch_size}."
    yield (
        f"Largest image: {plan.max_image_pixels:,} pixels (encoder cache {plan.encoder_cache_tokens:,} tokens); the "
        f"longest request has {budget.max_model_len:,} tokens."
    )
    for note in plan.notes:
        yield f"Note: {note}"


def _memory(plan: Plan) -> Iterator[str]:
    budget = plan.budget
    rows = (
        ("memory", budget.memory_gib, ""),
        ("for vLLM", budget.claimed_gib, f"x {budget.share:g}"),
        ("- weights", budget.weights_gib, str(plan.dtype)),
        ("- activations", budget.activations_gib, f"estimate, for a step of {budget.step_tokens:,} tokens"),
        ("= KV cache", budget.kv_gib, f"{budget.slots:,} tokens of {budget.kv_bytes_per_token / 1024:g} KiB"),
        ("outside", budget.left_gib, "for the layout model, the driver and others"),
    )
    yield "Memory, GiB"
    for name, value, remark in rows:
        yield f"  {name:<30}{value:>12.2f}  {remark}".rstrip()
    typical = min(plan.workload.sequence_tokens, budget.max_model_len)
    yield "Sequences in the cache"
    yield f"  {f'worst case, {budget.max_model_len:,} tokens':<30}{budget.worst_case_sequences:>12,.1f}"
    yield f"  {f'typical, {typical:,} tokens':<30}{budget.typical_sequences:>12,.1f}"
