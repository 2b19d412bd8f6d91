"""A model's checkpoint in a local folder: the numbers that the memory plan computes with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pagemill.config.model_cards import Architecture
from pagemill.errors import UsageError
from pagemill.serving.memory import Weights

if TYPE_CHECKING:
    from pathlib import Path

_MAX_CONFIG_BYTES = 2**22


def read_weights(folder: Path) -> Weights:
    """Size and architecture of the checkpoint in a folder, from its files and its ``config.json``.

    Raises:
        UsageError: It is not a checkpoint, or its architecture is not described in the usual keys.
    """
    path = folder / "config.json"
    try:
        if path.stat().st_size > _MAX_CONFIG_BYTES:
            raise UsageError(f"{path} is too large for a model's config.json", remedy="Check --weights.")
        config = json.loads(path.read_text(encoding="utf-8"))
        size = sum(file.stat().st_size for pattern in ("*.safetensors", "*.bin") for file in folder.glob(pattern))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder} is not a checkpoint: {path.name}: {getattr(error, 'strerror', None) or error}",
            remedy="Give --weights a folder with config.json and the model's *.safetensors.",
        ) from error
    if not isinstance(config, dict):
        raise UsageError(f"{path} is not a model's config.json", remedy="Check --weights.")
    return Weights(stored_bytes=size, architecture=architecture_of(config, str(path)))


def architecture_of(config: dict[str, Any], name: str) -> Architecture:
    """The numbers of a ``config.json`` of transformers; those of the text model if it has several.

    Raises:
        UsageError: A number is missing or invalid.
    """
    parts = (config.get(key) for key in ("text_config", "language_config"))
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
