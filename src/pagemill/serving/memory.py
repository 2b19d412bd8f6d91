"""The memory plan of a vLLM server: weights, activations, key-value cache, and how many requests fit.

vLLM claims a share of the memory, loads the weights, measures its activations once and turns the rest into slots of the
key-value cache, one per token. This computes the same in advance. Weights and cache follow from the model's numbers;
the activations are an estimate with the constants below. vLLM measures them at start: compare its log line "Available
KV cache memory" with ``kv_gib``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagemill.config.hardware import Device, Dtype, Fp8, Profile
from pagemill.config.model_cards import Architecture, ModelKind
from pagemill.config.modes import ReadingMode
from pagemill.errors import UsageError

if TYPE_CHECKING:
    from pagemill.config.model_cards import ModelCard
    from pagemill.config.serving import Wishes

GIB = 2**30
RUNTIME_GIB = 0.5
"""Device context, kernels and CUDA graphs: an estimate."""
ACTIVATION_VALUES = 77
"""16-bit values alive at the peak, per token of a step and unit of the model's width.

Calibrated: 29.3 GiB were reported for GLM-OCR (width 1,536) on 192 GB, taken to be at the 131,072 tokens of the best
step. Counting gives the same order: four patches per token in the vision tower (width 1,024: pixels, residuals, query,
key and value, gated layer: 78,000 values, 51 per unit of width), the text model's own step (12), and a fifth more for
32-bit copies and the allocator.
"""
FP8_SHARE = 0.55
"""Size of weights quantised at load, as a share of their 16-bit size: embeddings, head and norms stay in 16 bits.

Gives the 1.36 GiB that were reported for GLM-OCR's 2.66 GB.
"""
KV_BYTES = 2
"""Bytes per value of the key-value cache, which is kept in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A typical request in tokens."""

    sequence_tokens: int
    """Image and answer."""
    prefill_tokens: int
    """Image and prompt."""


REGION = Workload(sequence_tokens=3000, prefill_tokens=450)
"""A region of the reference corpus: 812 x 422 pixels are 437 image tokens of 28 x 28 pixels."""
_PROMPT_TOKENS = 50
_PAGE_ANSWER_TOKENS = 2000
"""About a dense page of text with the boxes of its regions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Stored size and architecture of a model's weights."""

    stored_bytes: int
    architecture: Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The division of the memory, in GiB and tokens."""

    memory_gib: float
    share: float
    claimed_gib: float
    weights_gib: float
    activations_gib: float
    """An estimate."""
    step_tokens: int
    """Tokens per step for which the activations are computed."""
    kv_gib: float
    kv_bytes_per_token: int
    slots: int
    """Tokens in the cache."""
    left_gib: float
    """Outside vLLM's share."""
    max_model_len: int
    worst_case_sequences: float
    """Sequences of maximum length in the cache."""
    typical_sequences: float
    """Typical sequences in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Four bounds on concurrent requests; the least is effective."""

    client: int
    """Requests in flight at the client."""
    max_num_seqs: int
    """Requests that the server admits."""
    kv_cache: int
    """Cache slots divided by the tokens of a typical sequence."""
    batched_tokens: int
    """Tokens per step divided by the tokens of a typical prefill."""

    @property
    def effective(self) -> int:
        """The least of the four."""
        return min(self.client, self.max_num_seqs, self.kv_cache, self.batched_tokens)

    @property
    def limited_by(self) -> str:
        """The name of the least; the first of equals."""
        names = ("client", "max_num_seqs", "kv_cache", "batched_tokens")
        return min(names, key=lambda name: int(getattr(self, name)))


def weights_of(card: ModelCard) -> Weights:
    """The weights that a card describes.

    Raises:
        UsageError: It lacks the numbers.
    """
    if card.architecture is None or not (card.download_bytes or card.parameters):
        raise UsageError(
            f"the model card {card.name} has no numbers to compute a memory plan from",
            remedy="Give --weights FOLDER, or a card of your own with [architecture] and download_bytes.",
        )
    bits = card.architecture.stored_bits
    return Weights(
        stored_bytes=card.download_bytes or card.parameters * bits // 8,
        architecture=card.architecture,
    )


def kv_bytes_per_token(architecture: Architecture) -> int:
    """Bytes per token in the cache: a key and a value per layer and key-value head."""
    return architecture.layers * 2 * architecture.kv_heads * architecture.head_dim * KV_BYTES


def weights_gib(weights: Weights, dtype: Dtype) -> float:
    """Size of the loaded weights in GiB; weights stored in 8 bits are not quantised again."""
    quantised = dtype is Dtype.FP8 and weights.architecture.stored_bits > 8
    return weights.stored_bytes * (FP8_SHARE if quantised else 1.0) / GIB


def activations_gib(step_tokens: int, hidden_size: int) -> float:
    """Peak memory of a step beside weights and cache, in GiB: an estimate, see :data:`ACTIVATION_VALUES`.

    Args:
        step_tokens: Tokens of a step, image tokens included.
        hidden_size: Width of the text model.
    """
    return RUNTIME_GIB + ACTIVATION_VALUES * 2 * hidden_size * step_tokens / GIB


def image_tokens(pixels: int, multiple: int) -> int:
    """Tokens of an image whose sides are multiples of ``multiple`` pixels, each token such a square."""
    return math.ceil(pixels / multiple**2)


def workload_of(card: ModelCard, wishes: Wishes) -> Workload:
    """Regions or whole pages for a recognition model, pages for an embedding model, unless the user says otherwise."""
    usual = REGION
    if card.kind is ModelKind.EMBEDDING or card.reads is ReadingMode.PAGES:
        page = image_tokens(card.image.max_pixels, card.image.multiple) + _PROMPT_TOKENS
        answer = 0 if card.kind is ModelKind.EMBEDDING else _PAGE_ANSWER_TOKENS
        usual = Workload(sequence_tokens=page + answer, prefill_tokens=page)
    return Workload(
        sequence_tokens=wishes.sequence_tokens or usual.sequence_tokens,
        prefill_tokens=wishes.prefill_tokens or usual.prefill_tokens,
    )


def dtype_of(profile: Profile, wishes: Wishes) -> Dtype:
    """The type of the weights: the user's, or the profile's.

    Raises:
        UsageError: The device has no fp8.
    """
    dtype = wishes.dtype or profile.dtype
    if dtype is Dtype.FP8 and profile.fp8 is Fp8.NO:
        raise UsageError(f"fp8 does not run on {profile.title}", remedy="Use --ocr-dtype auto or bf16.")
    return dtype


def budget_of(
    card: ModelCard,
    profile: Profile,
    wishes: Wishes,
    weights: Weights,
    dtype: Dtype,
    max_model_len: int,
    workload: Workload,
) -> Budget:
    """Divide the device's memory between weights, activations and cache.

    Raises:
        UsageError: The memory is unknown, or the model does not fit.
    """
    memory = wishes.memory_gib or profile.memory_gib
    if memory is None:
        raise UsageError(f"the memory of {profile.title} is not known", remedy="Give it with --memory GIB.")
    share = wishes.memory_share or profile.memory_share
    claimed = memory * share
    model = weights_gib(weights, dtype)
    largest_image = image_tokens(card.image.max_pixels, card.image.multiple)
    step_tokens = max(profile.max_num_batched_tokens, largest_image)
    activations = activations_gib(step_tokens, weights.architecture.hidden_size)
    per_token = kv_bytes_per_token(weights.architecture)
    kv = claimed - model - activations
    if profile.device is not Device.CUDA:  # the machine's own memory: claim no more than can be used
        kv = min(kv, profile.max_num_seqs * max_model_len * per_token / GIB)
    if kv * GIB < max_model_len * per_token:
        raise _too_large(card, profile, share, claimed, model, activations, kv, per_token, max_model_len)
    slots = math.floor(kv * GIB / per_token)
    return Budget(
        memory_gib=memory,
        share=share,
        claimed_gib=claimed,
        weights_gib=model,
        activations_gib=activations,
        step_tokens=step_tokens,
        kv_gib=kv,
        kv_bytes_per_token=per_token,
        slots=slots,
        left_gib=memory - claimed,
        max_model_len=max_model_len,
        worst_case_sequences=slots / max_model_len,
        typical_sequences=slots / min(workload.sequence_tokens, max_model_len),
    )


def _too_large(
    card: ModelCard,
    profile: Profile,
    share: float,
    claimed: float,
    model: float,
    activations: float,
    kv: float,
    per_token: int,
    max_model_len: int,
) -> UsageError:
    sequence = max_model_len * per_token / GIB
    needed = model + activations + sequence
    fitting = math.floor(kv * GIB / per_token / 256) * 256
    remedies = []
    if fitting >= 2048:
        remedies.append(f"--max-model-len {fitting} fits")
    larger_share = math.ceil(needed * share / claimed * 100) / 100
    if larger_share <= 0.95:
        remedies.append(f"--gpu-mem-util {larger_share:.2f} would do, if nothing else uses the memory")
    else:
        remedies.append(f"a machine with {math.ceil(needed / share)} GiB would do, or a smaller model")
    text = "; ".join(remedies)
    return UsageError(
        f"{card.name} does not fit on {profile.title}: of the {claimed:.1f} GiB claimed it needs {needed:.1f} GiB "
        f"(weights {model:.1f}, activations about {activations:.1f}, "
        f"a sequence of {max_model_len:,} tokens {sequence:.1f})",
        remedy=f"{text[0].upper()}{text[1:]}.",
    )
