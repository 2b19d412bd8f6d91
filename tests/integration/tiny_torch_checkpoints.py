"""Tiny random checkpoints for the engines that run in this process, in the form in which the Hub has them.

The recognition models answer with words, as those for vLLM do (``tests/vllm/tiny_checkpoints.py``).
"""

from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_checkpoints import GLM_TEMPLATE, TEXT, glm_ocr_parts, make_tokenizer, paddleocr_vl, teach_to_speak

_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "global_attn_indexes": [1],
    "mlp_dim": 64,
}
"""Of the image encoders of GOT-OCR2 and DeepSeek-OCR 2, which see 1024 x 1024 pixels whatever their width."""


def build(name: str, folder: Path) -> Path:
    """Save a checkpoint; returns its folder."""
    torch.manual_seed(0)
    BUILDERS[name](folder)
    return folder


def glm_ocr(folder: Path) -> None:
    """GLM-OCR with 2 + 2 layers."""
    model, image_processor, tokenizer = glm_ocr_parts()
    model.save_pretrained(folder)
    image_processor.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(GLM_TEMPLATE)


def got_ocr2(folder: Path) -> None:
    """GOT-OCR2 with 2 + 2 layers."""
    tokenizer = make_tokenizer("<|endoftext|> <|im_start|> <|im_end|> <img> </img> <imgpad>", end="<|im_end|>")
    number = tokenizer.convert_tokens_to_ids
    config = transformers.GotOcr2Config(
        vision_config=_VISION | {"output_channels": 16, "mlp_dim": 64},
        text_config={"model_type": "qwen2", **_text(tokenizer), "eos_token_id": number("<|im_end|>")},
        image_token_index=number("<imgpad>"),
        tie_word_embeddings=False,
    )
    model = transformers.GotOcr2ForConditionalGeneration(config)
    images = transformers.GotOcr2ImageProcessorPil(size={"height": 1024, "width": 1024})
    _save(folder, model, tokenizer, "<|im_end|>", images, transformers.GotOcr2Processor)


def deepseek_ocr2(folder: Path) -> None:
    """DeepSeek-OCR 2 with 2 + 2 + 2 layers."""
    tokenizer = make_tokenizer("<pad> <s> </s> <image> <|ref|> <|/ref|> <td> </td>", end="</s>", bos_token="<s>")
    number = tokenizer.convert_tokens_to_ids
    sizes = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2}
    config = transformers.DeepseekOcr2Config(
        vision_config={
            "sam_config": _VISION | {"output_channels": 16, "downsample_channels": [32, 64]},
            "encoder_config": sizes | {"intermediate_size": 128},
        },
        text_config=_text(tokenizer)
        | {"num_key_value_heads": 4, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2}
        | {"moe_intermediate_size": 64, "mlp_layer_types": ["dense", "sparse"], "max_position_embeddings": 8192}
        | {"bos_token_id": number("<s>"), "eos_token_id": number("</s>")},
        image_token_id=number("<image>"),
    )
    model = transformers.DeepseekOcr2ForConditionalGeneration(config)
    with torch.no_grad():
        model.model.view_separator.normal_()
    processor = transformers.DeepseekOcr2ImageProcessorPil()
    _save(folder, model, tokenizer, "</s>", processor, transformers.DeepseekOcr2Processor)


def table_transformer(folder: Path, labels: tuple[str, ...]) -> None:
    """Table Transformer with a small ResNet and 2 + 2 layers, whose scores and boxes depend on the image."""
    backbone = {"embedding_size": 16, "hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1], "layer_type": "basic"}
    config = transformers.TableTransformerConfig(
        backbone_config=transformers.ResNetConfig(**backbone, out_features=["stage4"]),
        num_queries=30,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        init_xavier_std=3.0,
        init_std=0.5,
    )
    torch.manual_seed(0)
    model = transformers.TableTransformerForObjectDetection(config).eval()
    model.save_pretrained(folder)
    transformers.DetrImageProcessorPil(size={"shortest_edge": 400, "longest_edge": 500}).save_pretrained(folder)


def _text(tokenizer: Any) -> dict[str, Any]:
    return {**TEXT, "vocab_size": len(tokenizer), "pad_token_id": 0}


def _save(folder: Path, model: Any, tokenizer: Any, end: str, image_processor: Any, processor: Any) -> None:
    teach_to_speak(model, tokenizer, tokenizer.convert_tokens_to_ids(end))
    model.save_pretrained(folder)
    processor(image_processor=image_processor, tokenizer=tokenizer).save_pretrained(folder)


BUILDERS = {"glm-ocr": glm_ocr, "paddleocr-vl": paddleocr_vl, "got-ocr2": got_ocr2, "deepseek-ocr-2": deepseek_ocr2}
