"""``pagemill plan``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
import msgspec

from pagemill.app.run_plan import server_commands
from pagemill.cli.options import given, json_option, takes
from pagemill.cli.wording import indented_json, size
from pagemill.config.cluster import ClusterOptions
from pagemill.config.model_cards import ModelCard
from pagemill.config.serving import ServingOptions
from pagemill.document.shown import count
from pagemill.serving.cluster_planning import (
    CROP_BYTES,
    CROPS,
    DATABASE_SHARE,
    RECORD_BYTES,
    VECTOR_BYTES,
    ClusterPlan,
    CorpusPlan,
    plan_cluster,
)
from pagemill.serving.planning import ServingPlan
from pagemill.serving.replicas import plan_for, prepare

_BOUNDS = {
    "client": "requests in flight",
    "max_num_seqs": "sequences admitted",
    "kv_cache": "KV cache / typical sequence",
    "batched_tokens": "step / typical prefill",
}


@click.command(name="plan")
@takes(options=ServingOptions, cluster=ClusterOptions, leave_out=("replicas", "host", "port", "vllm"))
@json_option
def command(options: ServingOptions, cluster: ClusterOptions, as_json: bool) -> None:
    """Show how a model fits on a machine, how many requests to run at once, and the flags of 'vllm serve'.

    With --nodes also what runs of 1 million, 100 million and 10 billion pages take on a cluster of such machines.
    Nothing is started, and neither vLLM nor the machine need be present. The exit status is 2 if the model does not
    fit.

    \b
    pagemill plan --profile l4
    pagemill plan --profile b200 --gpu-mem-util 0.90 --max-model-len 32768
    pagemill plan --profile h100 --nodes 16 --pages-per-second 2.5 --gpu-hour-price 2.50
    """  # noqa: D301 - click wants the control character
    if cluster.nodes is None and given(ClusterOptions):
        raise click.UsageError("these options require --nodes")
    card, plan = plan_for(options)
    # A card without weights describes a server that somebody else runs: there is no command for it.
    command = [] if not (card.repository or options.weights) else server_commands(prepare(options, dry=True))
    scale = None if cluster.nodes is None else plan_cluster(cluster, plan.profile)
    if as_json:
        click.echo(_json(plan, scale, command))
    elif scale is None:
        click.echo("\n".join([*_lines(card, plan), *([""] if command else []), *command]))
    else:
        click.echo("\n".join([summary(card, plan), "", *_cluster_lines(scale)]))


def summary(card: ModelCard, plan: ServingPlan) -> str:
    """How a model fits on a machine, in a sentence."""
    budget, bounds = plan.budget, plan.bounds
    return (
        f"{card.title} ({plan.dtype}) on {plan.profile.title}: {budget.claimed_gib:.1f} of {budget.memory_gib:.1f} GiB,"
        f" weights {budget.weights_gib:.1f}, KV cache {budget.kv_gib:.1f};"
        f" {bounds.effective} requests at once ({_BOUNDS[bounds.limited_by]})."
    )


def _json(plan: ServingPlan, cluster: ClusterPlan | None, command: list[str]) -> str:
    answer = msgspec.to_builtins(plan)
    if cluster is not None:
        answer["cluster"] = msgspec.to_builtins(cluster)
    # Properties, which msgspec leaves out, and which are what readers of the JSON look for.
    answer["bounds"] |= {"effective": plan.bounds.effective, "limited_by": plan.bounds.limited_by}
    answer["arguments"] = plan.arguments
    answer["command"] = next(iter(command), None)
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
    yield f"Requests in flight: {plan.workers}. Pages per layout batch: {plan.batch_size}."
    yield (
        f"Largest image: {plan.max_image_pixels:,} pixels (encoder cache {plan.encoder_cache_tokens:,} tokens); the "
        f"longest request has {budget.max_model_len:,} tokens."
    )
    for note in plan.notes:
        yield f"Note: {note}"


def _cluster_lines(plan: ClusterPlan) -> Iterator[str]:
    rate = plan.cluster_pages_per_second
    yield f"{count(plan.nodes, 'node')}, {count(plan.gpus, 'accelerator')}, {plan.pages_per_second:g} pages/s each"
    yield f"  ({plan.rate_reason})"
    yield f"{plan.gpus:,} x {plan.pages_per_second:g} = {rate:,.1f} pages/s = {3600 * rate:,.0f} pages/hour"
    yield ""
    yield f"{'Pages':<34}" + "".join(f"{_short(corpus.pages):>14}" for corpus in plan.corpora)
    rows: tuple[tuple[str, Callable[[CorpusPlan], str | None]], ...] = (
        ("time: pages by rate", lambda corpus: _long_duration(corpus.seconds)),
        ("accelerator hours", lambda corpus: f"{corpus.gpu_hours:,.0f}"),
        ("cost", lambda corpus: None if corpus.cost is None else f"{corpus.cost:,.0f}"),
        ("sources, read once", lambda corpus: size(round(corpus.source_bytes))),
        (
            f"records, {RECORD_BYTES / 1000:g} kB x {DATABASE_SHARE:g}",
            lambda corpus: size(round(corpus.database_bytes)),
        ),
        (f"crops, {CROPS} x {CROP_BYTES / 1000:g} kB", lambda corpus: size(round(corpus.crop_bytes))),
        (f"vectors, {VECTOR_BYTES:,} B", lambda corpus: size(round(corpus.vector_bytes))),
    )
    for name, shown in rows:
        cells = [shown(corpus) for corpus in plan.corpora]
        if None not in cells:
            yield f"  {name:<32}" + "".join(f"{cell:>14}" for cell in cells)
    yield ""
    yield (
        f"Network: a node reads {size(round(plan.read_bytes_s))}/s and writes {size(round(plan.written_bytes_s))}/s; "
        f"the driver receives {size(round(plan.record_bytes_s))}/s."
    )
    for corpus in plan.corpora:
        yield ""
        verdict = "limits that are exceeded, the first one first" if corpus.exceeded else "within all limits"
        yield f"{_short(corpus.pages)} pages: {verdict}"
        for limit in corpus.exceeded:
            yield f"  {limit.name}: {limit.load:,.0f} of {limit.bound:,.0f} {limit.unit}, in {limit.parts:,} parts"
            yield f"      {limit.remedy}"


def _short(pages: int) -> str:
    """A number of pages, such as ``1 M`` or ``10 B``."""
    return f"{pages // 10**9:,} B" if pages >= 10**9 else f"{pages // 10**6:,} M"


def _long_duration(seconds: float) -> str:
    """A duration, such as ``5.2 h``, ``12 days`` or ``3.1 years``."""
    hours = seconds / 3600
    if hours < 48:
        return f"{hours:,.1f} h"
    return f"{hours / 24:,.0f} days" if hours < 24 * 730 else f"{hours / 24 / 365:,.1f} years"


def _published(plan: ServingPlan) -> str:
    """The published bound, if it differs from ours by the step."""
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
