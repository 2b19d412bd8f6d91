"""What transformers says to the bodies of requests: ``python reference.py CHECKPOINT < BODIES``, in vLLM's environment.

Standard input holds a JSON list of bodies as they were sent to the server. Standard output gets a JSON list: of
``{"content", "logprobs", "leads"}`` for bodies of ``/v1/chat/completions``, of lists of vectors for those of
``/v1/embeddings``, whose messages are lists of conversations.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from typing import Any

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

MAX_TOKENS = 256
"""Where a body sets no limit."""


def main() -> None:
    """Answer all bodies."""
    checkpoint = sys.argv[1]
    processor = AutoProcessor.from_pretrained(checkpoint)
    model = AutoModelForImageTextToText.from_pretrained(checkpoint, dtype=torch.float32).eval()
    answer = embed if "embedding" in checkpoint else generate
    with torch.inference_mode():
        json.dump([answer(model, processor, body) for body in json.load(sys.stdin)], sys.stdout)


def generate(model: Any, processor: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The greedy answer to a chat completion; log probabilities of its tokens and their leads over the next best."""
    inputs = encode(processor, body["messages"], add_generation_prompt=True)
    output = model.generate(
        **inputs,
        max_new_tokens=body.get("max_tokens") or body.get("max_completion_tokens") or MAX_TOKENS,
        do_sample=False,
        repetition_penalty=body.get("repetition_penalty") or 1.0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    tokens = output.sequences[0, inputs["input_ids"].shape[1] :]
    logprobs = torch.stack(output.logits)[:, 0].log_softmax(-1)
    best = logprobs.topk(2).values
    return {
        "content": processor.tokenizer.decode(tokens, skip_special_tokens=True),
        "logprobs": logprobs.gather(1, tokens[:, None])[:, 0].tolist(),
        "leads": (best[:, 0] - best[:, 1]).tolist(),
    }


def embed(model: Any, processor: Any, body: dict[str, Any]) -> list[list[float]]:
    """For each conversation the hidden state of its last token, normalised."""
    vectors = []
    for messages in body["messages"]:
        inputs = encode(processor, messages, continue_final_message=body["continue_final_message"])
        hidden = model.model(**inputs).last_hidden_state[0, -1]
        vectors.append((hidden / hidden.norm()).tolist())
    return vectors


def encode(processor: Any, messages: list[dict[str, Any]], **options: bool) -> Any:
    """Tokens and pixels of a conversation, by the checkpoint's own template."""
    images, plain = [], []
    for message in messages:
        parts = message["content"]
        if isinstance(parts, str):
            parts = [{"type": "text", "text": parts}]
        turned = []
        for part in parts:
            if part["type"] == "image_url":
                encoded = part["image_url"]["url"].partition(",")[2]
                images.append(Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB"))
                turned.append({"type": "image"})
            else:
                turned.append(part)
        plain.append({"role": message["role"], "content": turned})
    prompt = processor.apply_chat_template(plain, tokenize=False, **options)
    return processor(text=[prompt], images=images or None, return_tensors="pt")


if __name__ == "__main__":
    main()
