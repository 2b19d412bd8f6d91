"""Counting the tokens of a text: by a model's tokenizer, or by an estimate."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pagemill.errors import InputError, lacks_extra

_TOKEN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]|[^\\W\\d_]{1,5}|\\d{1,3}|[^\\w\\s]|_"
)
"""Tokens as models have them at most: a character of the scripts of East and South-East Asia, five letters, three
digits, a sign. English prose has about four characters a token with its spaces."""


def estimated_tokens(text: str) -> int:
    """About as many tokens as a model's tokenizer makes of a text, or fewer: larger models have longer tokens."""
    return sum(1 for _ in _TOKEN.finditer(text))


def token_counter(file: Path | None) -> Callable[[str], int]:
    """What counts tokens, those included that the model puts around a text.

    Args:
        file: A ``tokenizer.json``; None for :func:`estimated_tokens`.

    Raises:
        MissingDependencyError: The package tokenizers is missing.
        InputError: The file cannot be read.
    """
    if file is None:
        return estimated_tokens
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise lacks_extra("a tokenizer needs the package tokenizers", "tokenizers") from error
    try:
        tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises no class of its own
        raise InputError(
            f"{file} is not a tokenizer: {error}", remedy="Name the tokenizer.json of a model with a fast tokenizer."
        ) from error
    # Models' files set both for their own inputs, and would hide how long a text is.
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        return len(tokenizer.encode(text.encode("utf-8", "replace").decode()).ids)

    return count
