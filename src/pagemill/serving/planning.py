"""A plan: how a model is served on a machine, with the memory it takes, its bounds and its flags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagemill.config.serving import Wishes
from pagemill.errors import UsageError
from pagemill.serving.flags import Flag, choose_flags, remarks
from pagemill.serving.memory import Bounds, budget_of, dtype_of, weights_of, workload_of

if TYPE_CHECKING:
    from pagemill.config.hardware import Dtype, Profile
    from pagemill.config.model_cards import ModelCard
    from pagemill.serving.memory import Budget, Weights, Workload


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
    flags: tuple[Flag, ...]
    notes: tuple[str, ...]

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
        UsageError: The model does not fit, or a wish makes no sense; the remedy says what would fit.
    """
    wishes = wishes or Wishes()
    weights = weights or weights_of(card)
    dtype = dtype_of(profile, wishes)
    longest = weights.architecture.max_position
    max_model_len = wishes.max_model_len or min(card.server.max_model_len, longest)
    if max_model_len > longest:
        raise UsageError(
            f"{card.name} reads at most {longest:,} tokens, not {max_model_len:,}", remedy="Lower --max-model-len."
        )
    workload = workload_of(card, wishes)
    if max_model_len <= workload.prefill_tokens:
        raise UsageError(
            f"of {max_model_len:,} tokens nothing is left for an answer: image and prompt of a typical request take "
            f"{workload.prefill_tokens:,}",
            remedy="Raise --max-model-len.",
        )
    budget = budget_of(card, profile, wishes, weights, dtype, max_model_len, workload)
    workers = wishes.workers or profile.workers
    max_num_seqs = max(1, min(profile.max_num_seqs, math.floor(budget.typical_sequences)))
    bounds = Bounds(
        client=workers,
        max_num_seqs=max_num_seqs,
        kv_cache=max(1, math.floor(budget.typical_sequences)),
        batched_tokens=max(1, profile.max_num_batched_tokens // workload.prefill_tokens),
    )
    cache_tokens = max(profile.max_num_batched_tokens, profile.encoder_cache_tokens)
    return ServingPlan(
        model=card.name,
        profile=profile,
        dtype=dtype,
        workers=workers,
        batch_size=wishes.batch_size or profile.batch_size,
        workload=workload,
        budget=budget,
        bounds=bounds,
        encoder_cache_tokens=cache_tokens,
        max_image_pixels=min(card.image.max_pixels, cache_tokens * card.image.multiple**2),
        flags=tuple(choose_flags(card, profile, wishes, weights, dtype, budget, workload, max_num_seqs)),
        notes=tuple(remarks(profile, weights, dtype, budget, bounds)),
    )
