"""The fields of ONNX files that pagemill reads and changes.

The ``onnx`` package would do this, too, but takes 31 MB and a quarter of a second to import. ONNX files are protobuf
messages, and ONNX Runtime brings protobuf: this declares the fields that are needed, by their numbers in ``onnx.proto``
(https://github.com/onnx/onnx). Protobuf keeps all other fields as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_FLOAT = 1
"""``TensorProto.DataType.FLOAT``."""
_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "Model": {"graph": (7, "Graph"), "metadata_props": (14, "*Entry")},
    "Entry": {"key": (1, "string"), "value": (2, "string")},
    "Graph": {"initializer": (5, "*Tensor"), "output": (12, "*Value"), "value_info": (13, "*Value")},
    "Tensor": {"dims": (1, "*int64"), "data_type": (2, "int32"), "name": (8, "string"), "raw_data": (9, "bytes")},
    "Value": {"type": (2, "Type")},
    "Type": {"tensor_type": (1, "TensorType")},
    "TensorType": {"shape": (2, "Shape")},
    "Shape": {"dim": (1, "*Dim")},
    "Dim": {"dim_value": (1, "int64")},
}
"""Number and type of each field, by message; those with a star are repeated."""


@functools.cache
def _model_type() -> Any:
    """The class of the messages."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    package = "pagemill.onnx"
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="pagemill/onnx.proto", package=package, syntax="proto2")
    for message, fields in _FIELDS.items():
        declared = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            label = field_type.LABEL_REPEATED if kind.startswith("*") else field_type.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            if kind in _FIELDS:
                declared.field.add(
                    name=name, number=number, label=label, type=field_type.TYPE_MESSAGE, type_name=f".{package}.{kind}"
                )
            else:
                scalar = getattr(field_type, f"TYPE_{kind.upper()}")
                declared.field.add(name=name, number=number, label=label, type=scalar)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Model"))


def _parse(path: Path) -> Any:
    model = _model_type()()
    model.ParseFromString(path.read_bytes())
    return model


def metadata(path: Path) -> dict[str, str]:
    """The texts that the exporter of a model attached to it.

    Raises:
        Exception: OSError, or one of protobuf's types: the file is not such a message.
    """
    return {entry.key: entry.value for entry in _parse(path).metadata_props}


def with_classes(path: Path, kept: Sequence[int]) -> bytes:
    """Reduce a classifier to some of its classes, in the given order; the rest of the network is unchanged.

    The weights and biases of the last layer are those whose last axis is as long as the model has classes.
    """
    model = _parse(path)
    axis = model.graph.output[0].type.tensor_type.shape.dim[-1]
    for tensor in model.graph.initializer:
        if tensor.dims[-1:] == [axis.dim_value] and tensor.data_type == _FLOAT:
            weights = np.frombuffer(tensor.raw_data, "<f4").reshape(tensor.dims)
            tensor.raw_data = weights[..., list(kept)].tobytes()
            tensor.dims[-1] = len(kept)
    axis.dim_value = len(kept)
    del model.graph.value_info[:]  # shapes inside the graph are inferred again
    return bytes(model.SerializeToString())
