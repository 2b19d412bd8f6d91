"""Images within the budget of a model."""

from __future__ import annotations

import math

from pagemill.config.model_cards import ImageBudget
from pagemill.imaging.transforms import at_least, resize
from pagemill.imaging.types import Pixels


def within_budget(pixels: Pixels, budget: ImageBudget | None) -> Pixels:
    """Shrink an image to the budget of a model, with its sides rounded down to whole visual tokens.

    An image within the budget is unchanged: the model rounds its sides itself. One that is too narrow for the model is
    padded.

    Args:
        pixels: Shape (height, width, 3).
        budget: The budget of the model; None for no limit.
    """
    height, width = pixels.shape[:2]
    if budget is None:
        return pixels
    if height * width <= budget.max_pixels:
        return at_least(pixels, budget.min_side)
    # Rounded down: rounded up, an image at the limit would exceed it by a row of tokens.
    factor = math.sqrt(budget.max_pixels / (height * width))
    width, height = (math.floor(side * factor / budget.multiple) * budget.multiple for side in (width, height))
    least = max(budget.multiple, budget.min_side)
    return resize(pixels, max(least, width), max(least, height))
