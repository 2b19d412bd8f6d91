"""What a user can choose about PP-DocLayout: thresholds and merging per class, device, precision, batches."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from pagemill.config.modes import TorchDevice
from pagemill.document.labels import Label
from pagemill.errors import MissingInputError, UsageError

MODEL_ID = "PaddlePaddle/PP-DocLayoutV3_safetensors"
"""The published PyTorch weights on the Hugging Face Hub (Apache-2.0)."""

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Ratio = Annotated[float, msgspec.Meta(gt=0.0, le=10.0)]


class Merge(StrEnum):
    """What happens when a box of a class and another box lie in each other."""

    LARGE = "large"  # boxes inside a box of this class are dropped
    SMALL = "small"  # boxes around a box of this class are dropped
    UNION = "union"  # both stay


class Interpolation(StrEnum):
    """How a page is resized to the model's input."""

    BILINEAR = "bilinear"  # of the reference workload
    BICUBIC = "bicubic"  # of the published processor


class Precision(StrEnum):
    """Number format of weights and activations; post-processing is always float32 or wider.

    In bfloat16 the centre and the sides of a box have eight bits: at the lower edge of a page of 3,508 pixels a box
    is up to 13 pixels off. MIXED therefore computes only the backbone and the encoder in it, most of the work.
    """

    AUTO = "auto"  # MIXED where the device computes in bfloat16 and the model stays finite, else FLOAT32
    MIXED = "mixed"
    BFLOAT16 = "bfloat16"  # all of the model; not on the CPU
    FLOAT32 = "float32"


class FilterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Post-processing. The defaults are those of the GLM-OCR pipeline (``glmocr`` 0.1.5, ``config.yaml``)."""

    threshold: Share = 0.3
    """Lowest score of a region."""
    thresholds: dict[Label, Share] = msgspec.field(default_factory=dict)
    """Lowest scores of single classes, in place of ``threshold``."""
    nms: bool = True
    """Suppress boxes that overlap a box with a higher score."""
    same_class_iou: Share = 0.6
    """Overlap (intersection over union) from which a box of the same class is suppressed."""
    other_class_iou: Share = 0.98
    """The same for a box of another class."""
    contained: Share = 0.8
    """Share of a box's own area inside another from which it counts as contained."""
    merge: Merge = Merge.LARGE
    """What happens to boxes in each other."""
    merges: dict[Label, Merge] = msgspec.field(default_factory=lambda: {Label.REFERENCE: Merge.SMALL})
    """The same for single classes."""
    spare_stronger: bool = True
    """If two boxes would drop each other, the one with the higher score stays. ``glmocr`` drops both."""
    never_contained: frozenset[Label] = frozenset({Label.IMAGE, Label.SEAL, Label.CHART})
    """Classes whose boxes are kept inside another."""
    oversized_landscape: Share = 0.82
    """Share of a page wider than high above which an image box is the page itself and is dropped."""
    oversized_portrait: Share = 0.93
    """The same for other pages."""
    unclip: tuple[Ratio, Ratio] = (1.0, 1.0)
    """Factors of width and height by which boxes grow about their centres."""
    unclips: dict[Label, tuple[Ratio, Ratio]] = msgspec.field(default_factory=dict)
    """The same for single classes."""
    polygons: bool = True
    """Outline of every region from the model's masks (V3) or corners (V4)."""
    mask_threshold: Share = 0.3
    """Probability above which a mask pixel belongs to its region."""


class PPDocLayoutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choices for the PP-DocLayout engine; the content of its settings file."""

    model: str = MODEL_ID
    """A folder with ``config.json`` and ``model.safetensors``, or a repository of the Hub in the local cache."""
    download: bool = False
    """Fetch the weights from the Hub when they are not in the cache."""
    device: TorchDevice = TorchDevice.AUTO
    precision: Precision = Precision.AUTO
    compile: bool = False
    """Compile the model (``torch.compile``): over two minutes at the start on an H100, where 64 pages take .2 s."""
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    """Most pages of one call; None: 8 on CUDA and MPS, 1 on the CPU, where pages run in parallel in threads instead."""
    interpolation: Interpolation = Interpolation.BICUBIC
    filters: FilterSettings = msgspec.field(default_factory=FilterSettings)


def read_settings(path: Path) -> PPDocLayoutSettings:
    """Read the engine's settings from a TOML file.

    Raises:
        MissingInputError: There is no such file.
        UsageError: It is not TOML, or has an unknown name or value, which the message names.
    """
    try:
        return msgspec.toml.decode(path.read_bytes(), type=PPDocLayoutSettings)
    except FileNotFoundError as error:
        raise MissingInputError(f"there are no layout settings at {path}", remedy="Check the path.") from error
    except OSError as error:
        raise UsageError(f"cannot read the layout settings {path}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the layout settings {path} are not valid: {error}",
            remedy="Names and values are listed in docs/layout.md.",
        ) from error
