"""Formulas read with PP-FormulaNet_plus-S, as soon as its ONNX file is on this machine.

The network holds both encoder and decoder and chooses token after token by itself: one grey image in, the numbers of
tokens out. The tokenizer is in the file's metadata; only its vocabulary is needed, as nothing is tokenized here.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pagemill.checkpoints.onnx_session import cpu_session
from pagemill.config.model_cards import ModelKind
from pagemill.config.model_files import downloaded_files
from pagemill.errors import CorruptInputError
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.recognition.base import FormulaOffer, RecognizedFormula

_SIDE = 384
"""Pixels of a side of the square input."""
_INK = 200
"""What is darker is print, once the greys of the crop are spread over 0 to 255."""
_MOST_SLENDER = 32.0
"""Width by height, or height by width: in a longer strip nothing is taller than 12 of the input's pixels."""
_MEAN, _SPREAD = 0.7931, 0.1738
_SPECIAL = frozenset({"<s>", "<pad>", "</s>", "<unk>"})
_END = "</s>"
_MOST_TOKENS = 4096
"""Far above the 1,024 of PP-FormulaNet_plus-S."""
_VOCABULARY = range(8, 1_000_000)


class FormulaNetRecognizer:
    """Reads crops of formulas with the model in a file.

    Args:
        model: The ONNX file.

    Raises:
        CorruptInputError: The file holds no model that reads formulas.
    """

    max_batch = 1
    """In a batch, a formula would be decoded until the longest of them ends, with sums that differ in their last bits
    with its neighbours; single ones are spread over the threads."""

    def __init__(self, model: Path) -> None:
        try:
            self._session = cpu_session(model)
            (given,) = self._session.get_inputs()
            self._input = given.name
            if given.type != "tensor(float)" or len(given.shape) != 4 or given.shape[1] not in (1, None, "channel"):
                raise ValueError(f"its input is {given.type} of shape {given.shape}")
            self._tokens = _vocabulary(json.loads(self._session.get_modelmeta().custom_metadata_map["character"]))
        except Exception as error:  # ONNX Runtime's own among them
            raise CorruptInputError(
                f"{model} is not a model that reads formulas: {error!r}",
                remedy="Remove the file, and download it again.",
            ) from error

    def recognize(self, crops: Sequence[Pixels]) -> list[RecognizedFormula]:
        """Read crops, one formula each; what cannot be read, or has no end, is empty."""
        return [RecognizedFormula(latex=self._read(crop)) for crop in crops]

    def close(self) -> None:
        """Free the model."""
        del self._session

    def _read(self, crop: Pixels) -> str:
        image = as_input(crop)
        if image is None:
            return ""
        (numbers, *_) = self._session.run(None, {self._input: image})
        if not np.issubdtype(numbers.dtype, np.integer) or numbers.ndim != 2 or len(numbers) != 1:
            raise ValueError(f"the model returned {numbers.dtype} of shape {numbers.shape} instead of tokens")
        if numbers.shape[1] > _MOST_TOKENS:
            raise ValueError(f"the model returned {numbers.shape[1]:,} tokens")
        return self._decoded(numbers[0].tolist())

    def _decoded(self, numbers: Sequence[int]) -> str:
        """The text of tokens up to the end; empty without an end, as a loop or a formula cut off has none."""
        tokens = [self._tokens.get(number, "<unk>") for number in numbers]
        if _END not in tokens:
            return ""
        written = "".join(token for token in tokens[: tokens.index(_END)] if token not in _SPECIAL)
        letters = _byte_letters()
        octets = b"".join(
            bytes([letters[letter]]) if letter in letters else letter.encode("utf-8") for letter in written
        )
        return octets.decode("utf-8", errors="replace").strip()


def as_input(crop: Pixels) -> NDArray[np.float32] | None:
    """What the network takes: the print of a crop, without its margins, as large as it fits into a black square.

    Shape (1, 1, 384, 384). None where there is no print, or it is too slender to be read.
    """
    grey = cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY).astype(np.float32)
    lightest, darkest = float(grey.max()), float(grey.min())
    if lightest == darkest:
        return None
    ink = ((grey - darkest) * (255 / (lightest - darkest)) < _INK).astype(np.uint8)
    left, top, width, height = cv2.boundingRect(ink)
    if max(width, height) > _MOST_SLENDER * min(width, height):
        return None
    image = Image.fromarray(grey[top : top + height, left : left + width].round().astype(np.uint8))
    # In two steps, as in training: the short side to the side of the square, then all of it into the square.
    scale = _SIDE / min(width, height)
    image = image.resize((max(int(width * scale), 1), max(int(height * scale), 1)), Image.Resampling.BILINEAR)
    image.thumbnail((_SIDE, _SIDE))
    square = np.zeros((_SIDE, _SIDE), np.float32)
    top, left = (_SIDE - image.height) // 2, (_SIDE - image.width) // 2
    square[top : top + image.height, left : left + image.width] = np.asarray(image, np.float32) / 255
    return ((square - np.float32(_MEAN)) / np.float32(_SPREAD))[None, None]


def offers() -> list[FormulaOffer]:
    """The models of this engine that are on this machine."""
    return [
        FormulaOffer(name=card.name, create=functools.partial(FormulaNetRecognizer, model))
        for card, model in downloaded_files(ModelKind.FORMULAS)
    ]


def _vocabulary(metadata: Mapping[str, Any]) -> dict[int, str]:
    """Tokens by number, from the tokenizer that the metadata hold in the format of the library ``tokenizers``."""
    tokenizer = metadata["fast_tokenizer_file"]
    tokens = {int(number): str(token) for token, number in tokenizer["model"]["vocab"].items()}
    tokens |= {int(token["id"]): str(token["content"]) for token in tokenizer.get("added_tokens", ())}
    if len(tokens) not in _VOCABULARY or _END not in tokens.values():
        raise ValueError(f"a vocabulary of {len(tokens):,} tokens, or without {_END}")
    return tokens


@functools.cache
def _byte_letters() -> dict[str, int]:
    """The bytes that letters of a byte-level vocabulary stand for: printable Latin-1 itself, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    return {chr(byte): byte for byte in printable} | dict(zip(map(chr, itertools.count(0x100)), others, strict=False))
