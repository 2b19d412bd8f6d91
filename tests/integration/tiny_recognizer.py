"""A recognizer in a file: inputs, outputs and dictionary like those of the PP-OCR models, and a rule inside."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def write(path: Path, characters: str) -> Path:
    """Reads each step of eight dark columns as a character, the next one for each shade of grey; paper is blank."""
    classes = len(characters) + 2
    shades = np.linspace(1.0, -1.0, classes - 1, dtype=np.float32)  # paper, then darker and darker
    # -(x - shade)**2 up to what is the same for all classes: 2 * shade * x - shade**2
    shades = np.append(shades, np.float32(9.0))  # the space is never read
    weights = np.repeat((2 * shades)[:, None], 3 * 48 * 8, axis=1).reshape(classes, 3, 48, 8) / (3 * 48 * 8)
    nodes = [
        helper.make_node("Conv", ["x", "weights", "bias"], ["map"], kernel_shape=[48, 8], strides=[48, 8]),
        helper.make_node("Squeeze", ["map", "axes"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["steps"], perm=[0, 2, 1]),
        helper.make_node("Mul", ["steps", "sharpness"], ["sharp"]),
        helper.make_node("Softmax", ["sharp"], ["probabilities"], axis=2),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3, 48, None])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, None, classes])],
        [
            numpy_helper.from_array(weights.astype(np.float32), "weights"),
            numpy_helper.from_array(-(shades**2), "bias"),
            numpy_helper.from_array(np.array([2], np.int64), "axes"),
            numpy_helper.from_array(np.array(500, np.float32), "sharpness"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"character": "\n".join(characters)})
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def line_of(text: str, characters: str) -> np.ndarray:
    """A line that such a recognizer reads as the text, from left to right; spaces are paper."""
    shades = np.linspace(255, 0, len(characters) + 1).round().astype(np.uint8)
    line = np.full((48, 480, 3), 255, np.uint8)
    for place, character in enumerate(text):
        if character != " ":
            line[:, 16 * place : 16 * place + 8] = shades[characters.index(character) + 1]
    return line
