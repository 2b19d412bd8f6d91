"""``pagemill plan``."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from pagemill.cli.options import json_option, takes
from pagemill.cli.wording import indented_json
from pagemill.config.model_cards import ModelCard
from pagemill.config.serving import ServingOptions
from pagemill.serving.planning import ServingPlan
from pagemill.serving.replicas import plan_for

_BOUNDS = {
    "client": "requests in flight",
    "max_num_seqs": "sequences admitted",
    "kv_cache": "KV cache / typical sequence",
    "batched_tokens": "step / typical prefill",
}


@click.command(name="plan")
@takes(options=ServingOptions, leave_out=("replicas", "host", "port", "vllm", "with_options"))
@json_option
def command(options: ServingOptions, as_json: bool) -> None:
    """Show how a model fits on a machine, how many requests to run at once, and the flags of 'vllm serve'.

    Nothing is started, and neither vLLM nor the machine need be present. The exit status is 2 if the model does not
    fit.

    \b
    pagemill plan --profile l4
    pagemill plan --profile b200 --gpu-mem-util 0.90 --max-model-len 32768
    """  # noqa: D301 - click wants the control character
    card, plan = plan_for(options)
    click.echo(_json(plan) if as_json else "\n".join(_lines(card, plan)))


def summary(card: ModelCard, plan: ServingPlan) -> str:
    """How a model fits on a machine, in a sentence."""
    budget, bounds = plan.budget, plan.bounds
    return (
        f"{card.title} ({plan.dtype}) on {plan.profile.title}: {budget.claimed_gib:.1f} of {budget.memory_gib:.1f} GiB,"
        f" weights {budget.weights_gib:.1f}, KV cache {budget.kv_gib:.1f};"
        f" {bounds.effective} requests at once ({_BOUNDS[bounds.limited_by]})."
    )


def _json(plan: ServingPlan) -> str:
    answer = msgspec.to_builtins(plan)
    answer["bounds"] |= {"effective": plan.bounds.effective, "limited_by": plan.bounds.limited_by}
    answer["arguments"] = plan.arguments
    return indented_json(answer)


def _lines(card: ModelCard, plan: ServingPlan) -> Iterator[str]:
    budget, bounds = plan.budget, plan.bounds
    yield f"{card.title} ({plan.dtype}) on {plan.profile.title}"
    yield ""
    yield from _memory(plan)
    yield ""
    yield f"Concurrency: {bounds.effective}, the least of"
    for name, title in _BOUNDS.items():
        mark = "  <-" if name == bounds.limited_by else ""
        yield f"  {title:<30}{getattr(bounds, name):>12,}{mark}{_published(plan) if name == 'batched_tokens' else ''}"
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


def _published(plan: ServingPlan) -> str:
    """What the published plan has in place of our bound by the step, if it has something else."""
    load, published = plan.workload, plan.bounds.published_batched_tokens
    if published is None:
        return ""
    return f"  of {load.prefill_tokens:,} tokens; {published:,} of the published {load.published_prefill_tokens:,}"


def _memory(plan: ServingPlan) -> Iterator[str]:
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
