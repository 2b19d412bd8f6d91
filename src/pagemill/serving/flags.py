"""The flags of ``vllm serve`` that follow from a memory plan, each with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagemill.config.hardware import Device, Dtype, Fp8, Profile
from pagemill.config.model_cards import ModelKind

if TYPE_CHECKING:
    from pagemill.config.model_cards import ModelCard
    from pagemill.config.serving import Wishes
    from pagemill.serving.memory import Bounds, Budget, Weights, Workload

MIN_LEFT_GIB = 1.5
"""Less than this outside vLLM's share is too little for the layout model beside it: an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag of ``vllm serve`` and why it is there."""

    name: str
    value: str | None
    reason: str

    @property
    def arguments(self) -> list[str]:
        """The flag as command line arguments."""
        return [self.name] if self.value is None else [self.name, self.value]


def choose_flags(
    card: ModelCard,
    profile: Profile,
    wishes: Wishes,
    weights: Weights,
    dtype: Dtype,
    budget: Budget,
    workload: Workload,
    max_num_seqs: int,
) -> list[Flag]:
    """The flags of a server, each with its reason."""
    chosen = "asked for" if wishes.memory_share else "the profile's share"
    if profile.device is Device.CUDA:
        memory = Flag(
            name="--gpu-memory-utilization",
            value=f"{budget.share:g}",
            reason=f"{chosen}; leaves {budget.left_gib:.1f} GiB for the layout model and the driver",
        )
    else:  # on the CPU, vLLM claims a share of all memory and refuses to start if less is free
        memory = Flag(
            name="--kv-cache-memory-bytes",
            value=str(math.floor(budget.kv_gib * 2**30)),
            reason=f"{budget.slots:,} tokens; the machine's other memory stays free",
        )
    asked = "asked for" if wishes.max_model_len else "the longest request of the model card, image and answer"
    seqs = (
        "the profile's limit"
        if max_num_seqs == profile.max_num_seqs
        else f"as many typical sequences of {workload.sequence_tokens:,} tokens as the cache holds"
    )
    flags = [
        memory,
        Flag(name="--max-model-len", value=str(budget.max_model_len), reason=asked),
        Flag(name="--max-num-seqs", value=str(max_num_seqs), reason=seqs),
        Flag(
            name="--max-num-batched-tokens",
            value=str(profile.max_num_batched_tokens),
            reason=profile.batched_tokens_reason,
        ),
    ]
    if dtype is Dtype.FP8 and weights.architecture.stored_bits > 8:
        how = "fewer bytes to read a token" if profile.fp8 is Fp8.NATIVE else "weights only, no fp8 arithmetic here"
        flags.append(Flag(name="--quantization", value="fp8", reason=f"weights in 8 bits while they load: {how}"))
    if dtype is Dtype.BF16:
        flags.append(Flag(name="--dtype", value="bfloat16", reason="asked for" if wishes.dtype else "the profile's"))
    if card.kind is ModelKind.RECOGNITION:
        flags += [
            Flag(
                name="--limit-mm-per-prompt",
                value='{"image":1,"video":0}',
                reason="a request holds one image; no memory is kept for video",
            ),
            Flag(
                name="--mm-processor-cache-gb",
                value="0",
                reason="crops do not repeat: a cache of them would only cost memory of the host",
            ),
        ]
    flags.append(
        Flag(name="--disable-uvicorn-access-log", value=None, reason="one line per request would hide what matters")
    )
    return flags


def remarks(profile: Profile, weights: Weights, dtype: Dtype, budget: Budget, bounds: Bounds) -> list[str]:
    """Notes on a plan."""
    notes = [
        'Activations are an estimate. vLLM measures them at its start: compare "KV cache" here with its log line '
        '"Available KV cache memory".'
    ]
    if profile.device is Device.CUDA and budget.left_gib < MIN_LEFT_GIB:
        notes.append(
            f"Only {budget.left_gib:.1f} GiB are left outside vLLM: run the layout model on the CPU, or lower "
            "--gpu-mem-util."
        )
    if bounds.limited_by == "kv_cache" and bounds.kv_cache < bounds.client:
        notes.append("The cache is the limit: more requests in flight would wait in the server's queue.")
    if dtype is Dtype.FP8 and weights.architecture.stored_bits <= 8:
        notes.append("The checkpoint is stored in fp8 and needs no flag for it.")
    if profile.note:
        notes.append(profile.note)
    return notes
