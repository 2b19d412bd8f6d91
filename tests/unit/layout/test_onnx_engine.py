"""Models from the user's disk, proven with tiny graphs that have the signatures of the published exports."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pagemill.document.labels import Label
from pagemill.errors import MissingInputError, UnsupportedInputError
from pagemill.layout.onnx_engine import create
from pagemill.layout.settings import LayoutSettings

PAGE = np.full((1600, 800, 3), 255, np.uint8)


def save(path: Path, inputs: dict[str, list], outputs: dict[str, np.ndarray], metadata: dict[str, str]) -> Path:
    """A graph that ignores its inputs and answers constants."""
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value, name))
        for name, value in outputs.items()
    ]
    kinds = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32}
    graph = helper.make_graph(
        nodes,
        "constant",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(n, kinds[str(v.dtype)], [*v.shape]) for n, v in outputs.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.save(model, str(path))
    return path


PADDLE = {"im_shape": [1, 2], "image": [1, 3, 800, 800], "scale_factor": [1, 2]}


def detect(path: Path) -> list:
    return create(LayoutSettings(model_path=path)).detect([PAGE])[0]


def test_pp_doclayout_v3_with_its_reading_order(tmp_path: Path) -> None:
    rows = np.array(
        [[22, 0.9, 10, 10, 300, 90, 7], [21, 0.8, 10, 200, 300, 400, 3], [22, 0.1, 0, 900, 90, 990, 1]], np.float32
    )
    outputs = {"fetch_name_0": rows, "fetch_name_1": np.array([3], np.int32)}
    found = detect(save(tmp_path / "v3.onnx", PADDLE, outputs, {}))
    assert [(r.label, r.order) for r in found] == [(Label.TEXT, 1), (Label.TABLE, 0)]
    assert found[0].box == (10, 10, 300, 90)


def test_pp_doclayout_v2_with_two_order_keys_and_a_count(tmp_path: Path) -> None:
    rows = np.array(
        [[22, 0.9, 10, 10, 300, 90, 5, 1], [0, 0.8, 10, 200, 300, 400, 5, 2], [22, 0.9, 500, 0, 600, 9, 0, 0]],
        np.float32,
    )
    outputs = {"fetch_name_0": rows, "fetch_name_1": np.array([2], np.int32)}
    found = detect(save(tmp_path / "v2.onnx", PADDLE, outputs, {}))
    assert [(r.label, r.order) for r in found] == [(Label.TEXT, 1), (Label.ABSTRACT, 0)]


def test_an_older_pp_doclayout_names_its_classes(tmp_path: Path) -> None:
    inputs = {"image": [1, 3, 480, 480], "scale_factor": [1, 2]}
    outputs = {"boxes": np.array([[1, 0.9, 10, 10, 300, 90]], np.float32)}
    found = detect(save(tmp_path / "s.onnx", inputs, outputs, {"character": "paragraph_title\nformula"}))
    assert [r.label for r in found] == [Label.DISPLAY_FORMULA]
    with pytest.raises(UnsupportedInputError, match="does not name its classes"):
        detect(save(tmp_path / "unnamed.onnx", inputs, outputs, {}))


def test_doclayout_yolo_is_moved_back_from_its_padded_input(tmp_path: Path) -> None:
    # The page of 800 x 1600 becomes 512 x 1024 in the input, with 256 pixels of padding left and right.
    rows = np.zeros((1, 300, 6), np.float32)
    rows[0, 0] = [256 + 64, 128, 256 + 128, 256, 0.9, 1]
    names = "{0: 'title', 1: 'plain text', 2: 'abandon'}"
    path = save(tmp_path / "yolo.onnx", {"images": [1, 3, 1024, 1024]}, {"output0": rows}, {"names": names})
    (only,) = detect(path)
    assert only.label is Label.TEXT
    assert only.box == pytest.approx((100, 200, 200, 400))


def test_names_are_not_evaluated(tmp_path: Path) -> None:
    rows = np.zeros((1, 300, 6), np.float32)
    names = "__import__('os').system('true') or {0: 'title'}"
    path = save(tmp_path / "evil.onnx", {"images": [1, 3, 64, 64]}, {"output0": rows}, {"names": names})
    with pytest.raises(UnsupportedInputError, match="does not name its classes"):
        detect(path)


def test_an_unknown_model_names_what_it_has_and_what_would_do(tmp_path: Path) -> None:
    path = save(tmp_path / "other.onnx", {"x": [1, 4]}, {"y": np.zeros((1, 4), np.float32)}, {})
    with pytest.raises(UnsupportedInputError, match="unknown kind") as caught:
        detect(path)
    assert "PP-DocLayout" in (caught.value.remedy or "")


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(UnsupportedInputError, match="cannot load"):
        detect(tmp_path / "text.onnx")
    with pytest.raises(MissingInputError):
        detect(tmp_path / "missing.onnx")
