"""A classifier made by hand, cut down to some of its classes."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pagemill.checkpoints.onnx_file import metadata, with_classes
from pagemill.checkpoints.onnx_session import cpu_session, load
from pagemill.errors import MissingDependencyError


@pytest.fixture
def classifier(tmp_path):
    """Four inputs, seven classes."""
    dice = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(dice.normal(size=shape).astype(np.float32), name)
        for name, shape in (("body", (4, 4)), ("head", (4, 7)), ("bias", (7,)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "body"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "head"], ["scores"]),
        helper.make_node("Add", ["scores", "bias"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 4))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 7))]
    model = helper.make_model(
        helper.make_graph(nodes, "classifier", inputs, outputs, weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=10,
    )
    helper.set_model_props(model, {"character": "a\nb"})
    path = tmp_path / "classifier.onnx"
    onnx.save_model(model, path)
    return path


def test_the_classes_kept_score_as_before(classifier):
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    whole = load(str(classifier)).run(None, {"x": x})[0]
    session = load(with_classes(classifier, [0, 6, 2]))
    assert session.get_outputs()[0].shape == ["n", 3]
    np.testing.assert_allclose(session.run(None, {"x": x})[0], whole[:, [0, 6, 2]], rtol=1e-5)


def test_the_metadata_of_a_model(classifier):
    assert metadata(classifier) == {"character": "a\nb"}


def test_a_missing_model_names_the_command_that_installs_it_again(tmp_path):
    with pytest.raises(MissingDependencyError, match=r"the model no\.onnx is missing") as raised:
        cpu_session(tmp_path / "no.onnx")
    assert "--force-reinstall" in raised.value.remedy
