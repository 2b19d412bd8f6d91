"""Loading a vision-language model with its processor: architectures of transformers, or code that the user trusts."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.checkpoints.devices import choose_device, choose_dtype
from pagemill.checkpoints.loading import load_pretrained, quietly, read_config, to_device
from pagemill.config.model_cards import ModelCard
from pagemill.config.model_files import find_model, is_complete
from pagemill.config.recognition import LocalModelSettings
from pagemill.errors import MissingInputError, UnsupportedInputError, UsageError
from pagemill.installation import pip_install
from pagemill.model_cache import cached

if TYPE_CHECKING:
    import torch

_PROCESSORS = {
    "deepseek_ocr2": "DeepseekOcr2Processor",
    "glm_ocr": "Glm46VProcessor",
    "got_ocr2": "GotOcr2Processor",
    "paddleocr_vl": "PaddleOCRVLProcessor",
}
"""Classes by the model type in ``config.json``. Loaded without their part for videos, which needs torchvision."""
_TEMPLATES = {
    # The processors of these two build the prompt, or leave it to the user; the checkpoints have no template.
    "got_ocr2": "<|im_start|>system\nYou should follow the instructions carefully and explain your answers in detail."
    "<|im_end|>{% for message in messages %}<|im_start|>user\n<img><imgpad></img>\n"
    "{% for part in message.content if part.type == 'text' %} {{ part.text }} {% endfor %}<|im_end|>{% endfor %}"
    "<|im_start|>assistant{{ '\n' }}",  # a bare one at the end is dropped
    "deepseek_ocr2": "{% for message in messages %}<image>\n"
    "{% for part in message.content if part.type == 'text' %}{{ part.text }}{% endfor %}{% endfor %}",
}


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A loaded model."""

    model: Any
    processor: Any
    """Processor of texts and images; pads on the left."""
    template: str | None
    """Chat template, where the checkpoint has none."""
    device: torch.device
    dtype: torch.dtype
    computing: threading.Lock = field(default_factory=threading.Lock)
    """Held by who computes: several pipelines may share the model."""


def find_checkpoint(card: ModelCard, weights: str | None) -> Path:
    """The folder of a model's checkpoint.

    Raises:
        MissingInputError: It is not on this machine, or not whole.
    """
    if weights is None:
        folder = find_model(card)
        if folder is None:
            raise MissingInputError(
                f"the weights of {card.name} are not on this machine",
                remedy=f"Download them: pagemill models download {card.name}. Or pass a folder: --recognition-weights.",
            )
        return folder.resolve()
    folder = Path(weights).expanduser()
    if not is_complete(folder):
        what = "lacks config.json or weights (*.safetensors)" if folder.is_dir() else "does not exist"
        raise MissingInputError(
            f"the folder {folder} {what}", remedy="Check --recognition-weights, or download it again."
        )
    return folder.resolve()


def load_shared(card: ModelCard, settings: LocalModelSettings) -> LocalModel:
    """The model of a card, loaded once per process for a checkpoint, device and data type.

    Raises:
        MissingInputError: Its checkpoint is not there.
        UnsupportedInputError: The checkpoint is damaged, or of an architecture that transformers does not have.
        UsageError: The device is not there, or code of another model is trusted.
        EngineError: It does not fit into memory.
    """
    folder = find_checkpoint(card, settings.weights)  # a folder of the Hub's cache has the revision in its name
    device = choose_device(settings.device, "--recognition-device")
    dtype = choose_dtype(settings.dtype, device)
    trusted = _trusted(card, settings.trust_remote_code)
    key = ("recognition", folder, str(device), str(dtype), trusted)
    return cached(key, lambda: _load(folder, device, dtype, trusted=trusted))


def _trusted(card: ModelCard, named: str | None) -> bool:
    if named is not None and named not in (card.name, card.repository):
        raise UsageError(
            f"--trust-remote-code names {named!r}, and the model is {card.name}",
            remedy=f"Name {card.name}, or leave the option out.",
        )
    return named is not None


def _load(folder: Path, device: torch.device, dtype: torch.dtype, *, trusted: bool) -> LocalModel:
    import transformers

    kind = read_config(folder).model_type
    remedy = "Download it again, and check that --model and --recognition-weights belong together."
    options = {"trust_remote_code": True} if trusted else {}
    if not trusted and kind not in _known_kinds():
        raise UnsupportedInputError(
            f"{folder} contains a model of the kind {kind!r}, which transformers {transformers.__version__}"
            " cannot read images with",
            remedy=f"Update transformers ({pip_install('--upgrade', 'transformers')}), or use a server: "
            "--recognition-engine vlm. --trust-remote-code MODEL runs the code in the checkpoint.",
        )
    model = load_pretrained(
        transformers.AutoModelForImageTextToText, folder, dtype, what="the recognition model", remedy=remedy, **options
    )
    try:
        processor = _load_processor(folder, kind, trusted=trusted)
        processor.tokenizer.padding_side = "left"
    except Exception as error:  # of several packages, without a common base
        raise UnsupportedInputError(
            f"cannot load the processor of the recognition model in {folder}: {error}", remedy=remedy
        ) from error
    template = None if getattr(processor, "chat_template", None) else _TEMPLATES.get(kind)
    return LocalModel(to_device(model, device, "the recognition model"), processor, template, device, dtype)


def _known_kinds() -> frozenset[str]:
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

    return frozenset(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)


def _load_processor(folder: Path, kind: str, *, trusted: bool) -> Any:
    import transformers

    with quietly():
        if trusted or kind not in _PROCESSORS:
            return transformers.AutoProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=trusted)
        whole = getattr(transformers, _PROCESSORS[kind])

        def get_attributes(cls: Any) -> list[str]:
            return [name for name in super(for_images, cls).get_attributes() if name != "video_processor"]

        for_images: Any = type(whole.__name__, (whole,), {"get_attributes": classmethod(get_attributes)})
        return for_images.from_pretrained(folder, local_files_only=True)
