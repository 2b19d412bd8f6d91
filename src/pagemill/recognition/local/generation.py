"""Answers of a model in this process: batches of requests through ``generate``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.checkpoints.devices import compute_with, free_memory
from pagemill.checkpoints.loading import quietly
from pagemill.config.machine import available_cores
from pagemill.config.model_cards import ModelCard
from pagemill.errors import EngineError, is_out_of_memory
from pagemill.inference.chat import Answer
from pagemill.inference.exchange import RequestRefusedError
from pagemill.model_cache import empty_caches

if TYPE_CHECKING:
    from pagemill.recognition.local.model import LocalModel
    from pagemill.recognition.local.requests import LocalRequest, Sampling

_MOST = {"cuda": 64, "mps": 4, "cpu": 8}
"""Requests in a batch, however much memory is free: an answer waits for the longest of its batch. Not measured."""
_MEMORY_SHARE = 0.7
"""Share of the free memory for caches of keys and values; the rest is for activations. Not measured."""
_TOO_LARGE = 413
_LOOK_EVERY_S = 0.1


class Generator:
    """Computes answers with a loaded model. :meth:`answer` is called from one thread at a time.

    Args:
        model: The model.
        card: Its card.
        batch: Most requests in a batch; 0: as many as the free memory holds.
        unwanted: Whether nobody waits any more for the batch that is being computed: it ends before the model's next
            layer. Asked on the thread that computes.
    """

    def __init__(
        self, model: LocalModel, card: ModelCard, batch: int = 0, *, unwanted: Callable[[], bool] = lambda: False
    ) -> None:
        self._model = model
        self.max_batch = batch or _planned_batch(model, card)
        self._unwanted = unwanted
        compute_with(available_cores(), model.device)

    def answer(self, requests: Sequence[LocalRequest]) -> list[Answer]:
        """Answer requests, one each, in order. Those of equal sampling are computed together.

        Raises:
            RequestRefusedError: A single request needs more memory than there is: a smaller image may do.
            EngineError: Nobody waits for the answers any more.
        """
        answers: dict[int, Answer] = {}
        places: dict[Sampling, list[int]] = {}
        for place, request in enumerate(requests):
            places.setdefault(request.sampling, []).append(place)
        try:
            for sampling, group in places.items():
                answers.update(zip(group, self._generate([requests[each] for each in group], sampling), strict=True))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            empty_caches()
            if len(requests) > 1:
                raise  # the batch is halved
            raise RequestRefusedError("the device has too little memory for the image", status=_TOO_LARGE) from error
        return [answers[place] for place in range(len(requests))]

    def _generate(self, requests: Sequence[LocalRequest], sampling: Sampling) -> list[Answer]:
        import torch
        from PIL import Image

        local = self._model
        texts = [
            local.processor.apply_chat_template(
                request.messages, chat_template=local.template, add_generation_prompt=True, tokenize=False
            )
            for request in requests
        ]
        images = [Image.fromarray(request.image) for request in requests]
        inputs = local.processor(text=texts, images=images, padding=True, return_tensors="pt")
        inputs = inputs.to(local.device, dtype=local.dtype)
        prompt = inputs["input_ids"].shape[1]
        with self._computing(), quietly(), torch.inference_mode():
            output = local.model.generate(**inputs, **self._arguments(sampling, inputs, prompt))
        return [self._decoded(row, sampling) for row in output[:, prompt:].tolist()]

    @contextlib.contextmanager
    def _computing(self) -> Iterator[None]:
        """Have the model for oneself, as long as somebody waits for the answers.

        Asked between layers: on a slow device the first step of a batch, which reads the images, takes minutes.
        """
        import torch

        def check(*_: Any) -> None:
            if self._unwanted():
                raise EngineError("the request was cancelled")

        while not self._model.computing.acquire(timeout=_LOOK_EVERY_S):
            check()
        stacks = (module for module in self._model.model.modules() if isinstance(module, torch.nn.ModuleList))
        hooks = [layer.register_forward_pre_hook(check) for stack in stacks for layer in stack]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            self._model.computing.release()

    def _arguments(self, sampling: Sampling, inputs: Any, prompt: int) -> dict[str, Any]:
        from pagemill.recognition.local.logits import FirstIsFinite, NoRepeatNGram, RepetitionPenalty, SeededSampling

        processors: list[Any] = [FirstIsFinite()]
        if (penalty := sampling.repetition_penalty or 1.0) != 1.0:
            processors.append(RepetitionPenalty(penalty, inputs["attention_mask"]))
        if (guard := sampling.vllm_xargs) is not None:
            processors.append(NoRepeatNGram(prompt, **msgspec.structs.asdict(guard)))
        if sampling.temperature > 0:
            processors.append(
                SeededSampling(
                    temperature=sampling.temperature,
                    top_k=sampling.top_k,
                    top_p=sampling.top_p,
                    seed=sampling.seed or 0,
                )
            )
        room = self._model.model.config.get_text_config().max_position_embeddings - prompt
        return {
            "max_new_tokens": max(1, min(sampling.max_tokens, room)),
            "do_sample": False,  # the processors sample
            "repetition_penalty": 1.0,  # ours does not count padding
            "logits_processor": processors,
        }

    def _decoded(self, tokens: list[int], sampling: Sampling) -> Answer:
        ends = self._model.model.generation_config.eos_token_id
        ends = frozenset(ends if isinstance(ends, list) else [ends])
        end = next((place for place, token in enumerate(tokens) if token in ends), None)
        output = tokens if end is None else tokens[:end]
        text = self._model.processor.tokenizer.decode(output, skip_special_tokens=sampling.skip_special_tokens)
        return Answer(
            text=text,
            finish_reason="length" if end is None else "stop",
            completion_tokens=len(output) + (end is not None),
        )


def _planned_batch(model: LocalModel, card: ModelCard) -> int:
    """How many sequences of full length fit into the free memory."""
    most, free = _MOST[model.device.type], free_memory(model.device)
    if free is None:
        return most
    text = model.model.config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    token = 2 * text.num_hidden_layers * heads * width * model.dtype.itemsize
    image = card.image.max_pixels // card.image.multiple**2
    longest = min(image + card.sampling.max_tokens, text.max_position_embeddings)
    return max(1, min(most, int(free * _MEMORY_SHARE / (token * longest))))
