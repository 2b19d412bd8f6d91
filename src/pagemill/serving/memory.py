"""The memory plan of a vLLM server: weights, activations, key-value cache, and how many requests fit.

vLLM claims a share of the memory, loads the weights, measures its activations once and turns the rest into slots of the
key-value cache, one per token. This computes the same in advance. Weights and cache follow from the model's numbers;
the activations are an estimate with the constants below. vLLM measures them at start: compare its log line "Available
KV cache memory" with ``kv_gib``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagemill.config.hardware import Device, Dtype, Profile
from pagemill.config.model_cards import Architecture, ModelCard, ModelKind
from pagemill.config.modes import ReadingMode
from pagemill.config.serving import Wishes
from pagemill.errors import UsageError

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
"""Size of weights quantized at load, as a share of their 16-bit size: embeddings, head and norms stay in 16 bits.

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
    published_prefill_tokens: int | None = None
    """The same as the published plan counts it, if that differs."""


REGION = Workload(sequence_tokens=3000, prefill_tokens=450, published_prefill_tokens=2000)
"""A region of the reference corpus: 812 x 422 pixels are 437 image tokens of 28 x 28 pixels.

The published plan has 65 prefills in a step of 131,072 tokens, so it counts about 2,000 tokens for each. With 450 the
plan of an L4 gives 18 requests at once, where 17 were observed; with 2,000 it would give 4.
"""
_PROMPT_TOKENS = 50
_LENGTH_STEP = 256
"""Lengths of requests are multiples of this: a round number for the flag, which costs next to no memory."""
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
    published_batched_tokens: int | None = None
    """The same with the prefill of the published plan; only for comparison."""

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


def read_weights(folder: Path) -> Weights:
    """Size and architecture of the checkpoint in a folder, from its files and its ``config.json``.

    Raises:
        UsageError: It is not a checkpoint, or its architecture is not described in the usual keys.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("it is not a JSON object")
        size = sum(file.stat().st_size for pattern in ("*.safetensors", "*.bin") for file in folder.glob(pattern))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder} is not a checkpoint: {path.name}: {getattr(error, 'strerror', None) or error}",
            remedy="Give --weights a folder with config.json and the model's *.safetensors.",
        ) from error
    return Weights(stored_bytes=size, architecture=architecture_of(config, str(path)))


def architecture_of(config: dict[str, Any], name: str) -> Architecture:
    """The numbers of a ``config.json`` of transformers; those of the text model if it has several.

    Raises:
        UsageError: A number is missing or invalid.
    """
    parts = (config.get(key) for key in ("text_config", "language_config"))
    # Vision-language models keep the numbers of the text model, which has the cache, in a part of their own.
    text = next((part for part in parts if isinstance(part, dict)), config)

    def number(*keys: str) -> int:
        for key in keys:
            value = text.get(key, config.get(key))
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        raise UsageError(f"{name} does not give {keys[0]}", remedy="Describe the model in a card of your own.")

    heads = number("num_attention_heads")
    quantised = config.get("quantization_config")
    return Architecture(
        layers=number("num_hidden_layers"),
        kv_heads=number("num_key_value_heads", "num_attention_heads"),
        head_dim=text["head_dim"] if isinstance(text.get("head_dim"), int) else number("hidden_size") // heads,
        hidden_size=number("hidden_size"),
        max_position=number("max_position_embeddings"),
        stored_bits=8 if isinstance(quantised, dict) and "fp8" in str(quantised.get("quant_method")) else 16,
    )


def image_tokens(pixels: int, multiple: int) -> int:
    """Tokens of an image whose sides are multiples of ``multiple`` pixels, each token such a square."""
    return math.ceil(pixels / multiple**2)


def longest_request(card: ModelCard, max_tokens: int | None) -> int:
    """Tokens of the largest image of a model, its prompt and an answer of ``max_tokens``; 0 for None."""
    if max_tokens is None:
        return 0
    whole = image_tokens(card.image.max_pixels, card.image.multiple) + _PROMPT_TOKENS + max_tokens
    return math.ceil(whole / _LENGTH_STEP) * _LENGTH_STEP


def workload_of(card: ModelCard, wishes: Wishes) -> Workload:
    """The typical request: regions or whole pages for recognition, pages for embedding, or as set in ``wishes``."""
    usual = REGION
    if card.kind is ModelKind.EMBEDDING or card.reads is ReadingMode.PAGES:
        page = image_tokens(card.image.max_pixels, card.image.multiple) + _PROMPT_TOKENS
        answer = 0 if card.kind is ModelKind.EMBEDDING else _PAGE_ANSWER_TOKENS
        usual = Workload(sequence_tokens=page + answer, prefill_tokens=page)
    return Workload(
        sequence_tokens=wishes.sequence_tokens or usual.sequence_tokens,
        prefill_tokens=wishes.prefill_tokens or usual.prefill_tokens,
        published_prefill_tokens=None if wishes.prefill_tokens else usual.published_prefill_tokens,
    )


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
    architecture = weights.architecture
    is_quantised = dtype is Dtype.FP8 and architecture.stored_bits > 8  # weights in 8 bits are not quantised again
    model = weights.stored_bytes * (FP8_SHARE if is_quantised else 1.0) / GIB
    largest_image = image_tokens(card.image.max_pixels, card.image.multiple)
    # vLLM encodes an image in one step, however small the steps are: its peak is that of the larger one.
    step_tokens = max(profile.max_num_batched_tokens, largest_image)
    activations = RUNTIME_GIB + ACTIVATION_VALUES * 2 * architecture.hidden_size * step_tokens / GIB
    per_token = architecture.layers * 2 * architecture.kv_heads * architecture.head_dim * KV_BYTES  # a key and a value
    kv = claimed - model - activations
    if profile.device is not Device.CUDA:  # the machine's own memory: claim no more than can be used
        kv = min(kv, profile.max_num_seqs * max_model_len * per_token / GIB)
    slots = math.floor(kv * GIB / per_token)
    budget = Budget(
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
    # vLLM refuses to start with a cache that cannot hold a single request of the maximum length.
    if slots < max_model_len:
        raise _too_large(card, profile, budget)
    return budget


def _too_large(card: ModelCard, profile: Profile, budget: Budget) -> UsageError:
    sequence = budget.max_model_len * budget.kv_bytes_per_token / GIB
    needed = budget.weights_gib + budget.activations_gib + sequence
    fitting = budget.slots // _LENGTH_STEP * _LENGTH_STEP
    larger_share = math.ceil(needed / budget.memory_gib * 100) / 100
    shorter = f"--max-model-len {fitting} fits. " if fitting >= 2048 else ""
    larger = f"A machine with {math.ceil(needed / budget.share)} GiB would do, or a smaller model."
    if larger_share <= 0.95:
        larger = f"--gpu-mem-util {larger_share:.2f} would do, if nothing else uses the memory."
    return UsageError(
        f"{card.name} does not fit on {profile.title}: of the {budget.claimed_gib:.1f} GiB claimed it needs "
        f"{needed:.1f} GiB (weights {budget.weights_gib:.1f}, activations about {budget.activations_gib:.1f}, "
        f"a sequence of {budget.max_model_len:,} tokens {sequence:.1f})",
        remedy=shorter + larger,
    )
