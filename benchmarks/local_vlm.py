"""Reading regions with GLM-OCR in this process (the engine ``transformers``): batch sizes against the memory's speed.

The model has the published architecture and size and random weights, so no answer ends early: every crop gets
``--tokens`` tokens. Its speed does not depend on the weights. The floor of a decoding step is the time to read the
weights of the language model once, at the speed of a copy on the device that is measured in the same run.

    python benchmarks/local_vlm.py --batches 1 8 32 64
"""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pagemill.config.model_cards import load_card
from pagemill.config.modes import TorchDevice, TorchDtype
from pagemill.config.recognition import LocalModelSettings
from pagemill.document.labels import Task
from pagemill.recognition.local.generation import Generator
from pagemill.recognition.local.model import load_shared
from pagemill.recognition.local.requests import read_request
from pagemill.recognition.vlm.requests import RequestBuilder
from pagemill_bench.table import FigureTable, show
from pagemill_bench.testing.drawn_pages import draw_page

sys.path += [str(Path(__file__).parents[1] / "tests" / name) for name in ("vllm", "integration")]

MODEL = "glm-ocr"
CROP = (1000, 240)
"""Pixels of a crop: a paragraph of four lines at 150 dpi."""
COPY_BYTES = 1 << 30


def save_model(folder: Path, *, small: bool) -> None:
    """Save a checkpoint with random weights, of the published size or tiny."""
    import torch
    import transformers

    tiny_checkpoints = importlib.import_module("tiny_checkpoints")  # of the tests
    torch.manual_seed(0)
    tiny, images, tokenizer = tiny_checkpoints.glm_ocr_parts()
    model = tiny
    if not small:
        sizes = load_card(MODEL).architecture
        assert sizes is not None, "its card has them"
        config = transformers.GlmOcrConfig(
            text_config={
                "hidden_size": sizes.hidden_size,
                "intermediate_size": 3 * sizes.hidden_size,
                "num_hidden_layers": sizes.layers,
                "num_key_value_heads": sizes.kv_heads,
                "head_dim": sizes.head_dim,
                "rope_parameters": {**tiny.config.text_config.rope_parameters, "mrope_section": [16, 24, 24]},
            },
            vision_config={"out_hidden_size": sizes.hidden_size},
            **{
                name: getattr(tiny.config, name)
                for name in ("image_token_id", "image_start_token_id", "image_end_token_id")
            },
        )
        model = transformers.GlmOcrForConditionalGeneration(config).to(torch.bfloat16)
    model.generation_config.eos_token_id = [len(tokenizer) - 1]
    model.save_pretrained(folder)
    images.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(tiny_checkpoints.GLM_TEMPLATE)


def fastest(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of some calls, after one that warms up."""
    import torch

    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def copy_rate(device: Any) -> float:
    """Bytes a second that the device's memory reads plus writes."""
    import torch

    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / fastest(lambda: target.copy_(source), 5)


def measure(arguments: argparse.Namespace, folder: Path) -> tuple[FigureTable, str]:
    """Load and run the model."""
    import torch

    card = load_card(MODEL)
    start = time.perf_counter()
    model = load_shared(
        card,
        LocalModelSettings(
            weights=str(folder), device=TorchDevice(arguments.device), dtype=TorchDtype(arguments.dtype)
        ),
    )
    loading = time.perf_counter() - start
    model.model.generation_config.eos_token_id = [-1]  # no token: every answer has its full length
    language = sum(
        parameter.numel() * parameter.element_size()
        for name, parameter in model.model.named_parameters()
        if "visual" not in name
    )
    floor_ms = language / copy_rate(model.device) * 1000
    builder = RequestBuilder(card, MODEL)
    rows = []
    for batch in arguments.batches:
        requests = {}
        for tokens in (1, arguments.tokens):
            sampling = msgspec.structs.replace(card.sampling, max_tokens=tokens)
            requests[tokens] = [
                read_request(builder.body(builder.prepare(draw_page(seed, CROP), Task.TEXT), sampling))
                for seed in range(batch)
            ]
        generator = Generator(model, card, batch)
        if model.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        first, whole = (
            fastest(functools.partial(generator.answer, requests[tokens]), arguments.repeats)
            for tokens in (1, arguments.tokens)
        )
        step_ms = (whole - first) / (arguments.tokens - 1) * 1000
        peak = torch.cuda.max_memory_allocated() / 1e9 if model.device.type == "cuda" else None
        rows.append(
            (
                str(batch),
                first * 1000,
                step_ms,
                step_ms / floor_ms,
                batch * arguments.tokens / whole,
                batch / whole,
                peak,
            )
        )
    columns = ("crops a batch", "first token ms", "step ms", "step / floor", "tokens/s", "crops/s", "peak GB")
    table = FigureTable(
        f"GLM-OCR in this process, {model.dtype}, {arguments.tokens} tokens a crop".replace("torch.", ""),
        columns,
        tuple(rows),
    )
    planned = Generator(model, card).max_batch
    return table, f"Loaded in {loading:.1f} s. Floor of a step: {floor_ms:.2f} ms. Batch by free memory: {planned}."


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--tokens", type=int, default=64, help="tokens of every answer")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--device", choices=("auto", "cuda", "mps", "cpu"), default="auto")
    parser.add_argument("--dtype", choices=("auto", "bfloat16", "float32"), default="auto")
    parser.add_argument("--small", action="store_true", help="a tiny model: only tries this script")
    parser.add_argument("--json", action="store_true", dest="as_json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), small=arguments.small)
        table, note = measure(arguments, Path(folder))
    show("local_vlm", [table], arguments.as_json, notes=[note])


if __name__ == "__main__":
    main()
