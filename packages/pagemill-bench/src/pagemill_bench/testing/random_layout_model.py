"""A PP-DocLayoutV3 or V4 of full size with random weights that still finds things, for tests and benchmarks.

Weights straight from the initialiser give every query nearly the same answer and masks around zero; these are wider,
and the last layers of scores and masks are scaled on a drawn page so that some tens of queries score over 0.5 and masks
are partly set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pagemill.checkpoints.loading import quietly
from pagemill.document.labels import Label
from pagemill.layout.pp_doclayout.preprocess import resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation
from pagemill_bench.testing.drawn_pages import draw_page

_SPREAD = 0.05  # standard deviation of the initialiser; the default of 0.01 makes all order logits alike
_FOUND = 120  # candidates (query and class) over 0.5 on the drawn page


def save_random_model(folder: Path, *, seed: int = 0, version: int = 3) -> Path:
    """Make the model and save it as a folder that the layout engine loads; returns the folder.

    Args:
        folder: Is made; what it holds of an earlier model is replaced.
        seed: Seed of the weights.
        version: 3 or 4.
    """
    import torch
    import transformers

    kind = f"PPDocLayoutV{version}"
    names = {index: label.value for index, label in enumerate(Label)}
    config = getattr(transformers, f"{kind}Config")(
        id2label=names, label2id={name: index for index, name in names.items()}, initializer_range=_SPREAD
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = getattr(transformers, f"{kind}ForObjectDetection")(config).eval()
    page = torch.from_numpy(resize_pages([draw_page(1)], Interpolation.BICUBIC)).permute(0, 3, 1, 2) / 255
    with torch.inference_mode():
        outputs = model(pixel_values=page)
    heads = model.model.decoder.class_embed
    with torch.no_grad():
        (heads if version == 3 else heads[-1]).bias -= outputs.logits.flatten().topk(_FOUND).values[-1]
        if version == 3:
            last = model.model.mask_query_head.layers[-1]
            scale = 1.0 / outputs.out_masks.std()
            last.weight *= scale
            last.bias *= scale
    with quietly():
        model.save_pretrained(folder)
    return folder
