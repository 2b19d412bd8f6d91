"""A logits processor for vLLM, in vLLM's environment: the model says what ``answer.json`` of its checkpoint says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

if TYPE_CHECKING:
    from vllm.config import VllmConfig


class DictatedAnswer(AdapterLogitsProcessor):  # type: ignore[misc]  # there is no vLLM where types are checked
    """Leaves one token to choose from, the next one of the answer."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        """Read the answer."""
        super().__init__(vllm_config, device, is_pin_memory)
        self._answer = json.loads((Path(vllm_config.model_config.model) / "answer.json").read_text())

    def is_argmax_invariant(self) -> bool:
        """It changes what is said."""
        return False

    def new_req_logits_processor(self, params: object) -> Any:
        """The processor of a request."""

        def dictate(said: list[int], logits: torch.Tensor) -> torch.Tensor:
            forced = torch.full_like(logits, float("-inf"))
            forced[self._answer[min(len(said), len(self._answer) - 1)]] = 0.0
            return forced

        return dictate
