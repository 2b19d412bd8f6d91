"""Tiny checkpoints of the real architectures, for tests: ``python tiny_checkpoints.py FOLDER``, in vLLM's environment.

Every part is there (configuration, weights, tokenizer, image processor, chat template) in the form in which the Hub
has it, only small and random. Nothing is downloaded. The recognition models answer with words: see
:func:`teach_to_speak`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Glm46VImageProcessor,
    Glm46VProcessor,
    Glm46VVideoProcessor,
    GlmOcrConfig,
    GlmOcrForConditionalGeneration,
    PaddleOCRVLConfig,
    PaddleOCRVLForConditionalGeneration,
    PaddleOCRVLImageProcessor,
    PaddleOCRVLProcessor,
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

_BEGINNINGS = "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu"
_ENDS = "ran sel tim"
WORDS = [first + second for second in _ENDS.split() for first in _BEGINNINGS.split()]
"""What the models say: each word is one token."""
REACH = 6
"""After a word comes one of so many next ones in the list, so that no answer repeats itself and each ends."""
OPENING = 20
"""An answer begins with one of so many first words."""
GROUNDED = (
    "<|ref|>title<|/ref|><|det|>[[100, 50, 900, 90]]<|/det|>\n# baran beran\n\n"
    "<|ref|>image<|/ref|><|det|>[[100, 320, 480, 600]]<|/det|>\n"
    "<|ref|>table<|/ref|><|det|>[[520, 320, 900, 600]]<|/det|>\n<table><tr><td>bisel</td></tr></table>"
)
"""What DeepSeek-OCR says of every page."""
TEXT = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 32768,
}
"""Of the language models."""
VISION = {"depth": 2, "hidden_size": 128, "num_heads": 4, "intermediate_size": 256, "out_hidden_size": 256}
"""Of the image encoders, by the names of most of them."""
PROMPTS = "Text Table Formula Recognition: OCR: Represent the user's input. page document"


def build(folder: Path) -> None:
    """Build all checkpoints below ``folder``."""
    for name, builder in BUILDERS.items():
        torch.manual_seed(0)
        builder(folder / name)


def glm_ocr(folder: Path) -> None:
    """GLM-OCR with 2 + 2 layers."""
    model, image_processor, tokenizer = glm_ocr_parts()
    processor = Glm46VProcessor(
        image_processor=image_processor,
        tokenizer=tokenizer,
        video_processor=Glm46VVideoProcessor(),
        chat_template=GLM_TEMPLATE,
    )
    save(folder, model, processor)


def glm_ocr_parts() -> tuple[Any, Any, Any]:
    """Its model, image processor and tokenizer: its processor for videos needs torchvision."""
    tokenizer = make_tokenizer(
        "<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> <|observation|> "
        "<|begin_of_image|> <|end_of_image|> <|begin_of_video|> <|end_of_video|> <|image|> <|video|>",
        end="<|endoftext|>",
    )
    number = tokenizer.convert_tokens_to_ids
    text = {
        **TEXT,
        "vocab_size": len(tokenizer),
        "intermediate_size": 768,  # vLLM wants three times the hidden size: the merger's width in transformers
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "mrope_section": [8, 12, 12],
            "partial_rotary_factor": 1.0,
        },
        "eos_token_id": [number("<|endoftext|>"), number("<|user|>")],
        "pad_token_id": number("<|endoftext|>"),
    }
    marks = {
        "image_token_id": "<|image|>",
        "video_token_id": "<|video|>",
        "image_start_token_id": "<|begin_of_image|>",
        "image_end_token_id": "<|end_of_image|>",
        "video_start_token_id": "<|begin_of_video|>",
        "video_end_token_id": "<|end_of_video|>",
    }
    config = GlmOcrConfig(text_config=text, vision_config=VISION, **numbers(tokenizer, marks))
    model = GlmOcrForConditionalGeneration(config)
    teach_to_speak(model, tokenizer, number("<|endoftext|>"))
    # The Hub's limits: at most 4.8 megapixels an image, over two temporal patches.
    return model, Glm46VImageProcessor(size={"shortest_edge": 12_544, "longest_edge": 9_633_792}), tokenizer


def paddleocr_vl(folder: Path) -> None:
    """PaddleOCR-VL with 2 + 2 layers."""
    tokenizer = make_tokenizer(
        "<unk> <s> </s> <|begin_of_sentence|> <|end_of_sentence|> <|IMAGE_START|> <|IMAGE_END|> "
        "<|IMAGE_PLACEHOLDER|> <|video_pad|>",
        end="</s>",
        image_token="<|IMAGE_PLACEHOLDER|>",
    )
    number = tokenizer.convert_tokens_to_ids
    text = {
        **TEXT,
        "vocab_size": len(tokenizer),
        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [8, 12, 12]},
        "bos_token_id": number("<s>"),
        "eos_token_id": number("</s>"),
        "pad_token_id": number("<unk>"),
        "tie_word_embeddings": False,
    }
    vision = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 256}
    marks = {
        "image_token_id": "<|IMAGE_PLACEHOLDER|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|IMAGE_START|>",
        "vision_end_token_id": "<|IMAGE_END|>",
    }
    config = PaddleOCRVLConfig(
        text_config=text, vision_config=vision, **numbers(tokenizer, marks), tie_word_embeddings=False
    )
    model = PaddleOCRVLForConditionalGeneration(config)
    teach_to_speak(model, tokenizer, number("</s>"))
    processor = PaddleOCRVLProcessor(
        image_processor=PaddleOCRVLImageProcessor(), tokenizer=tokenizer, chat_template=PADDLE_TEMPLATE
    )
    save(folder, model, processor)


def qwen3_vl_embedding(folder: Path) -> None:
    """Qwen3-VL-Embedding with 2 + 2 layers; its vectors have 256 dimensions."""
    tokenizer = make_tokenizer(
        "<|endoftext|> <|im_start|> <|im_end|> <|vision_start|> <|vision_end|> <|image_pad|> <|video_pad|>",
        end="<|im_end|>",
    )
    text = {
        **TEXT,
        "vocab_size": len(tokenizer),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 5000000.0,
            "mrope_section": [12, 10, 10],
            "mrope_interleaved": True,
        },
    }
    marks = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    vision = {**VISION, "deepstack_visual_indexes": [0]}
    config = Qwen3VLConfig(text_config=text, vision_config=vision, **numbers(tokenizer, marks))
    model = Qwen3VLForConditionalGeneration(config)
    enliven(model)
    processor = Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(
            patch_size=16,
            merge_size=2,
            temporal_patch_size=2,
            # The Hub's limits: at most 1.8 megapixels an image.
            size={"shortest_edge": 4096, "longest_edge": 1_843_200},
            image_mean=[0.5, 0.5, 0.5],
            image_std=[0.5, 0.5, 0.5],
        ),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(),
        chat_template=QWEN_TEMPLATE,
    )
    save(folder, model, processor)


def deepseek_ocr(folder: Path) -> None:
    """DeepSeek-OCR with 2 layers of text and no weights: its vision cannot be made smaller, and vLLM makes some up.

    What it is to say instead is in ``answer.json``, as tokens: see ``dictated_answer.py``.
    """
    tokenizer = make_tokenizer(
        "<pad> <s> </s> <image> <|ref|> <|/ref|> <|det|> <|/det|> <|grounding|> <td> </td>", end="</s>", bos_token="<s>"
    )
    number = tokenizer.convert_tokens_to_ids
    heads = {"num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4}
    ends = {"bos_token_id": number("<s>"), "eos_token_id": number("</s>"), "vocab_size": len(tokenizer)}
    text = {
        **heads,
        **ends,
        "architectures": ["DeepseekV2ForCausalLM"],
        "use_mla": False,
        **dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 0),
        **dict.fromkeys(("kv_lora_rank", "q_lora_rank")),
        "intermediate_size": 512,
        "first_k_dense_replace": 2,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "greedy",
        "max_position_embeddings": 8192,
    }
    config = {
        **heads,
        **ends,
        "architectures": ["DeepseekOCRForCausalLM"],
        "model_type": "deepseek_vl_v2",
        "tile_tag": "2D",
        "global_view_pos": "head",
        "candidate_resolutions": [[1024, 1024]],
        "language_config": text,
        "projector_config": {"projector_type": "linear", "input_dim": 2048, "n_embed": 256},
        "vision_config": {"image_size": 1024, "model_name": "deeplip_b_l", "model_type": "vision"},
    }
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": "DeepseekOCRProcessor"}))
    dictated = tokenizer(GROUNDED, add_special_tokens=False)["input_ids"]
    (folder / "answer.json").write_text(json.dumps([*dictated, number("</s>")]))


def make_tokenizer(special: str, *, end: str, **roles: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer, as the real ones are, that has a token for each of :data:`WORDS`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=100_000,  # more than there is to merge: every word becomes a token
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f" {word}" for word in WORDS + PROMPTS.split()] + PROMPTS.split(), trainer)
    tokens = special.split()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, pad_token=tokens[0], **roles)
    fast.add_special_tokens({"additional_special_tokens": tokens})
    return fast


def numbers(tokenizer: Any, marks: dict[str, str]) -> dict[str, int]:
    """Settings that are numbers of special tokens."""
    return {name: tokenizer.convert_tokens_to_ids(token) for name, token in marks.items()}


def enliven(model: torch.nn.Module) -> None:
    """Make all weights large enough to matter: with the usual initial ones every input gives nearly the same output."""
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            fan_in = weight[0].numel()
            torch.nn.init.normal_(weight, std=2.0 if "embed_tokens" in name else fan_in**-0.5)
        elif name.endswith("bias"):
            torch.nn.init.normal_(weight, std=0.02)


def teach_to_speak(model: torch.nn.Module, tokenizer: Any, end: int) -> None:
    """Make a random model answer with words, never the same twice in an answer, and come to an end.

    A hidden state is mostly the embedding of the last token, and beyond that a random mixture of all it has seen. So
    the output weights favour, after each word, the next few of the list: which of them comes depends on the image.
    Real random models answer with special tokens, or repeat themselves until they are cut off.
    """
    enliven(model)
    with torch.no_grad():
        embeddings = model.get_input_embeddings().weight
        output = model.get_output_embeddings().weight
        width = embeddings.shape[1]
        output.zero_()  # nothing else is ever said
        words = tokenizer.convert_tokens_to_ids([f"\u0120{word}" for word in WORDS])
        assert len(set(words)) == len(WORDS), "each word is a token"
        # Both prompts end with one of these before the answer: a line feed, a space.
        openings = [embeddings[token] for token in tokenizer.convert_tokens_to_ids(["\u010a", "\u0120"])]
        for place, word in enumerate([*words, end]):
            before = [embeddings[earlier] for earlier in words[max(0, place - REACH) : place]]
            favoured = sum(before + (openings if place < OPENING else []), torch.zeros(width))
            output[word] = favoured * 8 / width + 0.06 * torch.randn(width)


def save(folder: Path, model: Any, processor: Any) -> None:
    """Write all files of a checkpoint."""
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


GLM_TEMPLATE = """[gMASK]<sop>
{%- for message in messages %}<|{{ message.role }}|>
{% if message.content is string %}{{ message.content }}
{%- else %}
{%- for part in message.content %}
{%- if part.type in ('image', 'image_url') %}<|begin_of_image|><|image|><|end_of_image|>
{%- elif part.type == 'text' %}{{ part.text }}
{%- endif %}
{%- endfor %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>
{% endif %}"""

PADDLE_TEMPLATE = """<|begin_of_sentence|>
{%- for message in messages %}
{%- if message.role == 'user' %}User: {% for part in message.content %}
{%- if part.type in ('image', 'image_url') %}<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>{% endif %}
{%- endfor %}
{%- for part in message.content %}
{%- if part.type == 'text' %}{{ part.text }}{% endif %}
{%- endfor %}
{{ '\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}Assistant: {% endif %}"""

QWEN_TEMPLATE = """
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}
{%- else %}
{%- for part in message.content %}
{%- if part.type in ('image', 'image_url') %}<|vision_start|><|image_pad|><|vision_end|>
{%- elif part.type == 'text' %}{{ part.text }}
{%- endif %}
{%- endfor %}
{%- endif %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

BUILDERS = {
    "glm-ocr": glm_ocr,
    "paddleocr-vl": paddleocr_vl,
    "qwen3-vl-embedding-2b": qwen3_vl_embedding,
    "deepseek-ocr": deepseek_ocr,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    build(parser.parse_args().folder)
