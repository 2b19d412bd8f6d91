"""Logits processors of this process's models: no repeated n-grams, a repetition penalty, sampling, a check for numbers.

Import it where PyTorch and transformers are known to be there.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from transformers import LogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from pagemill.errors import EngineError
from pagemill.recognition.local.ngrams import NGramHistory


class NoRepeatNGram(LogitsProcessor):  # type: ignore[misc]  # transformers may not be installed
    """Bans tokens that would repeat an n-gram of the last tokens of their answer; the prompt does not count.

    The same as ``vllm_xargs`` of a model card mean to vLLM's processor for DeepSeek-OCR. A step copies one column of
    tokens to the host and bans all tokens of the batch at once; its cost does not depend on n or the window. For
    sampling and greedy search: rows must keep their order, which beam search changes.

    Args:
        prompt_length: Columns of ``input_ids`` before the answers, padding included.
        ngram_size: n.
        window_size: As of :class:`pagemill.recognition.local.ngrams.NGramHistory`.
        whitelist_token_ids: Tokens that are never banned.
    """

    def __init__(
        self, prompt_length: int, *, ngram_size: int, window_size: int, whitelist_token_ids: Collection[int] = ()
    ) -> None:
        self._read = prompt_length
        self._rule = ngram_size, window_size, frozenset(whitelist_token_ids)
        self._rows: list[NGramHistory] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores (rows, vocabulary) of the tokens that follow on ``input_ids`` (rows, length)."""
        if not self._rows:
            self._rows = [NGramHistory(*self._rule) for _ in range(len(input_ids))]
        for history, tokens in zip(self._rows, input_ids[:, self._read :].tolist(), strict=True):
            history.extend(tokens)
        self._read = input_ids.shape[1]
        banned = [(row, token) for row, history in enumerate(self._rows) for token in history.banned()]
        if not banned:
            return scores
        rows, tokens = torch.tensor(banned, device=scores.device).unbind(1)
        return scores.index_put((rows, tokens), scores.new_tensor(-torch.inf))


class RepetitionPenalty(LogitsProcessor):  # type: ignore[misc]
    """Makes tokens of the prompt and the answer less likely, as vLLM does.

    Unlike that of transformers it does not count padding, which is often the token that ends an answer: in a batch, an
    answer would depend on the length of the longest prompt.

    Args:
        penalty: Divisor of positive scores, factor of negative ones.
        attention_mask: Of the prompts, shape (rows, length); 0 for padding.
    """

    def __init__(self, penalty: float, attention_mask: torch.Tensor) -> None:
        self._penalty = penalty
        self._mask = attention_mask
        self._seen: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See :meth:`NoRepeatNGram.__call__`."""
        if self._seen is None:
            counts = torch.zeros(scores.shape, dtype=torch.int32, device=scores.device)
            prompts = input_ids[:, : self._mask.shape[1]]
            self._seen = counts.scatter_add(1, prompts, self._mask.to(torch.int32)) > 0
        else:
            self._seen[torch.arange(len(scores), device=scores.device), input_ids[:, -1]] = True
        penalised = torch.where(scores < 0, scores * self._penalty, scores / self._penalty)
        return torch.where(self._seen, penalised, scores)


class SeededSampling(LogitsProcessor):  # type: ignore[misc]
    """Makes the most likely token a sampled one: the search stays greedy.

    Noise of the Gumbel distribution is added to the logarithms of probabilities. All rows get the same noise, so an
    answer does not depend on which others are in its batch.

    Args:
        temperature: Over 0.
        top_k: Only so many of the likeliest tokens; None: all.
        top_p: Only the likeliest tokens with this sum of probabilities; None: all.
        seed: Of the noise.
    """

    def __init__(self, *, temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
        self._warpers: list[LogitsProcessor] = [TemperatureLogitsWarper(temperature)]
        if top_k:
            self._warpers.append(TopKLogitsWarper(top_k))
        if top_p:
            self._warpers.append(TopPLogitsWarper(top_p))
        self._random = torch.Generator().manual_seed(seed)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See :meth:`NoRepeatNGram.__call__`."""
        for warper in self._warpers:
            scores = warper(input_ids, scores)
        noise = -torch.empty(scores.shape[-1]).exponential_(generator=self._random).log()
        return scores.log_softmax(-1) + noise.to(scores.device)


class FirstIsFinite(LogitsProcessor):  # type: ignore[misc]
    """Raises where the first scores of a batch are no numbers: the answers would be arbitrary tokens.

    Single scores of minus infinity are sound: a checkpoint's configuration may ban tokens (``suppress_tokens``).
    """

    def __init__(self) -> None:
        self._checked = False

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """See :meth:`NoRepeatNGram.__call__`.

        Raises:
            EngineError: The highest score of an answer is not a finite number.
        """
        if not self._checked and not bool(scores.amax(-1).isfinite().all()):
            raise EngineError(
                "the model returns NaN with this data type on this device",
                remedy="Use --recognition-dtype float32, or bfloat16 where it is float16.",
            )
        self._checked = True
        return scores
