"""A formula model in a file: input, output and tokenizer as in PP-FormulaNet's ONNX files, and a fixed answer."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "\\", "frac", "Ġ{", "Ġa", "Ġ}", "b", "Ġ+", "Ġx", "Âµ"]
"""In a byte-level vocabulary the letter Ġ is a space, and ``Âµ`` the two bytes of a micro sign in UTF-8."""
FRACTION = [0, 4, 5, 6, 7, 8, 6, 9, 8, 2, 1, 1]
"""``\\frac { a } {b }`` with a start, an end, and padding."""


def write(
    path: Path, answer: Sequence[int], *, channels: int = 1, tokenizer: object = None, floats: bool = False
) -> Path:
    """Answers every crop with the tokens given, to which it adds the sum of the crop times zero: the input counts."""
    kind, array = (TensorProto.FLOAT, np.float32) if floats else (TensorProto.INT64, np.int64)
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
        helper.make_node("Cast", ["nothing"], ["zeros"], to=kind),
        helper.make_node("Unsqueeze", ["zeros", "last"], ["column"]),
        helper.make_node("Add", ["answer", "column"], ["tokens"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", channels, 384, 384])],
        [helper.make_tensor_value_info("tokens", kind, [None, None])],
        [
            numpy_helper.from_array(np.array([1, 2, 3], np.int64), "axes"),
            numpy_helper.from_array(np.array(0, np.float32), "zero"),
            numpy_helper.from_array(np.array([1], np.int64), "last"),
            numpy_helper.from_array(np.array([answer], array), "answer"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    vocabulary = {token: number for number, token in enumerate(TOKENS) if number > 3}
    special = [{"id": number, "content": token, "special": True} for number, token in enumerate(TOKENS[:4])]
    usual = {"fast_tokenizer_file": {"model": {"type": "BPE", "vocab": vocabulary}, "added_tokens": special}}
    helper.set_model_props(model, {"character": json.dumps(usual if tokenizer is None else tokenizer)})
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path
