"""A plan: how a model is served on a machine, with the memory it takes, its bounds and its flags."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec

from pagemill.config.hardware import Device, Dtype, Fp8, Profile
from pagemill.config.model_cards import ModelCard, ModelKind
from pagemill.config.serving import Wishes
from pagemill.errors import UsageError
from pagemill.serving.memory import (
    GIB,
    Bounds,
    Budget,
    Weights,
    Workload,
    budget_of,
    longest_request,
    weights_of,
    workload_of,
)

MIN_LEFT_GIB = 1.5
"""Minimum memory outside vLLM's share for the layout model: an estimate."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of ``vllm serve`` and why it is there."""

    name: str
    value: str | None
    reason: str

    @property
    def arguments(self) -> list[str]:
        """The flag as command line arguments."""
        return [self.name] if self.value is None else [self.name, self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """How a model is served on a machine."""

    model: str
    profile: Profile
    dtype: Dtype
    workers: int
    """Requests in flight per server."""
    batch_size: int
    """Pages per call of the layout model."""
    workload: Workload
    """The typical request that was assumed."""
    budget: Budget
    bounds: Bounds
    encoder_cache_tokens: int
    """Image tokens of the largest image that the server accepts; a larger one gets HTTP 400."""
    max_image_pixels: int
    """The same in pixels, or the model's own budget if that is less."""
    flags: tuple[Flag, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The flags as command line arguments."""
        return [argument for flag in self.flags for argument in flag.arguments]


def make_plan(
    card: ModelCard, profile: Profile, wishes: Wishes | None = None, weights: Weights | None = None
) -> ServingPlan:
    """Size a server.

    Args:
        card: The model.
        profile: The machine; its memory is known.
        wishes: The user's choices.
        weights: The weights to serve; None for those that the card describes.

    Raises:
        UsageError: The model does not fit, or the wishes contradict each other; the remedy names what would fit.
    """
    wishes = wishes or Wishes()
    profile = _as_asked(profile, wishes)
    weights = weights or weights_of(card)
    # Vectors of one corpus are compared with each other: weights as they were published, not quantised.
    dtype = wishes.dtype or (profile.dtype if card.kind is ModelKind.RECOGNITION else Dtype.AUTO)
    is_fp8 = weights.architecture.stored_bits <= 8
    if profile.fp8 is Fp8.NO and (is_fp8 or dtype is Dtype.FP8):
        remedy = "Use a 16-bit model." if is_fp8 else "Use --ocr-dtype auto or bf16."
        raise UsageError(f"fp8 does not run on {profile.title}", remedy=remedy)
    longest = weights.architecture.max_position
    usual = profile.max_model_len if card.kind is ModelKind.RECOGNITION else None
    with_answer = longest_request(card, wishes.max_tokens)
    max_model_len = wishes.max_model_len or max(min(usual or card.server.max_model_len, longest), with_answer)
    if max_model_len > longest:
        raise UsageError(
            f"{card.name} reads at most {longest:,} tokens, not {max_model_len:,}",
            remedy="Lower --max-model-len."
            if wishes.max_model_len
            else "Lower --max-tokens: the image needs some, too.",
        )
    if wishes.max_model_len and wishes.max_tokens and wishes.max_model_len <= wishes.max_tokens:
        raise UsageError(
            f"a request of {max_model_len:,} tokens has no room for an image and an answer of {wishes.max_tokens:,}",
            remedy="Raise --max-model-len, or lower --max-tokens.",
        )
    workload = workload_of(card, wishes)
    if max_model_len <= workload.prefill_tokens:
        raise UsageError(
            f"of {max_model_len:,} tokens nothing is left for an answer: image and prompt of a typical request take "
            f"{workload.prefill_tokens:,}",
            remedy="Raise --max-model-len.",
        )
    try:
        budget = budget_of(card, profile, wishes, weights, dtype, max_model_len, workload)
    except UsageError:
        # Longer texts to embed are cut, and that is reported; a page of a book has about 1,000 tokens.
        if (
            card.kind is not ModelKind.EMBEDDING
            or wishes.max_model_len
            or max_model_len // 2 <= workload.prefill_tokens
        ):
            raise
        budget = budget_of(card, profile, wishes, weights, dtype, max_model_len // 2, workload)
    workers = wishes.workers or profile.workers
    as_it_is = wishes.max_num_seqs is not None or profile.measured
    in_cache = max(1, math.floor(budget.typical_sequences))
    published = workload.published_prefill_tokens
    bounds = Bounds(
        client=workers,
        max_num_seqs=profile.max_num_seqs if as_it_is else max(1, min(profile.max_num_seqs, in_cache)),
        kv_cache=in_cache,
        batched_tokens=max(1, profile.max_num_batched_tokens // workload.prefill_tokens),
        published_batched_tokens=published and max(1, profile.max_num_batched_tokens // published),
    )
    cache_tokens = max(profile.max_num_batched_tokens, profile.encoder_cache_tokens)
    plan = ServingPlan(
        model=card.name,
        profile=profile,
        dtype=dtype,
        workers=workers,
        batch_size=profile.batch_size,
        workload=workload,
        budget=budget,
        bounds=bounds,
        encoder_cache_tokens=cache_tokens,
        max_image_pixels=min(card.image.max_pixels, cache_tokens * card.image.multiple**2),
    )
    flags = tuple(_flags(card, plan, wishes, is_fp8=is_fp8))
    return replace(plan, flags=flags, notes=tuple(_notes(plan, is_fp8=is_fp8)))


def _as_asked(profile: Profile, wishes: Wishes) -> Profile:
    """The profile with the limits of the server that the user asks for, which are used as they are."""
    asked: dict[str, Any] = {}
    if wishes.max_num_seqs:
        asked |= {"max_num_seqs": wishes.max_num_seqs}
    if wishes.max_num_batched_tokens:
        asked |= {"max_num_batched_tokens": wishes.max_num_batched_tokens, "batched_tokens_reason": "asked for"}
    return msgspec.structs.replace(profile, **asked)


def _flags(card: ModelCard, plan: ServingPlan, wishes: Wishes, *, is_fp8: bool) -> Iterator[Flag]:
    """The flags of a server, each with its reason."""
    kind, profile, budget = card.kind, plan.profile, plan.budget
    if profile.device is Device.CUDA:
        chosen = "asked for" if wishes.memory_share else "the profile's share"
        left = f"leaves {budget.left_gib:.1f} GiB for the layout model and the driver"
        yield Flag("--gpu-memory-utilization", f"{budget.share:g}", f"{chosen}; {left}")
    else:  # on the CPU, vLLM claims a share of all memory and refuses to start if less is free
        reason = f"{budget.slots:,} tokens; the machine's other memory stays free"
        yield Flag("--kv-cache-memory-bytes", str(math.floor(budget.kv_gib * GIB)), reason)
    asked = "the longest request of the model card, image and answer"
    if wishes.max_tokens and budget.max_model_len == longest_request(card, wishes.max_tokens):
        asked = f"the largest image, and an answer of {wishes.max_tokens:,} tokens"
    if wishes.max_model_len or (kind is ModelKind.RECOGNITION and profile.max_model_len):
        asked = "asked for" if wishes.max_model_len else "the profile's"
    elif kind is ModelKind.EMBEDDING and budget.max_model_len < card.server.max_model_len:
        asked = "half of what the model card has, which does not fit; longer texts are cut"
    yield Flag("--max-model-len", str(budget.max_model_len), asked)
    limit = "asked for" if wishes.max_num_seqs else "the profile's limit"
    if plan.bounds.max_num_seqs != profile.max_num_seqs:
        limit = (
            f"the profile has {profile.max_num_seqs:,}; the cache holds {plan.bounds.kv_cache:,} typical sequences of "
            f"{plan.workload.sequence_tokens:,} tokens"
        )
    yield Flag("--max-num-seqs", str(plan.bounds.max_num_seqs), limit)
    yield Flag("--max-num-batched-tokens", str(profile.max_num_batched_tokens), profile.batched_tokens_reason)
    if plan.dtype is Dtype.FP8 and not is_fp8:
        how = "fewer bytes to read a token" if profile.fp8 is Fp8.NATIVE else "weights only, no fp8 arithmetic here"
        yield Flag("--quantization", "fp8", f"weights in 8 bits while they load: {how}")
    if plan.dtype is Dtype.BF16:
        yield Flag("--dtype", "bfloat16", "asked for" if wishes.dtype else "the profile's")
    own = list(_flags_of_card(card))
    if kind is ModelKind.RECOGNITION:
        one = "a request holds one image; no memory is kept for video"
        yield Flag("--limit-mm-per-prompt", '{"image":1,"video":0}', one)
        cache = Flag("--mm-processor-cache-gb", "0", "crops do not repeat: a cache would only cost memory of the host")
        yield from () if cache.name in {flag.name for flag in own} else (cache,)
    yield Flag("--disable-uvicorn-access-log", None, "one line per request would hide what matters")
    yield from own


def _flags_of_card(card: ModelCard) -> Iterator[Flag]:
    """What the model always needs."""
    words = [*card.server.args, "--"]
    for word, following in pairwise(words):
        if word.startswith("--"):
            yield Flag(word, None if following.startswith("--") else following, "the model card's")


def _notes(plan: ServingPlan, *, is_fp8: bool) -> Iterator[str]:
    yield (
        'Activations are an estimate. vLLM measures them at its start: compare "KV cache" here with its log line '
        '"Available KV cache memory".'
    )
    if plan.profile.device is Device.CUDA and plan.budget.left_gib < MIN_LEFT_GIB:
        yield (
            f"Only {plan.budget.left_gib:.1f} GiB are left outside vLLM: run the layout model on the CPU, or lower "
            "--gpu-mem-util."
        )
    if plan.bounds.limited_by == "kv_cache" and plan.bounds.kv_cache < plan.bounds.client:
        yield "The cache is the limit: more requests in flight would wait in the server's queue."
    if plan.dtype is Dtype.FP8 and is_fp8:
        yield "The checkpoint is stored in fp8 and needs no flag for it."
    if plan.profile.note:
        yield plan.profile.note
