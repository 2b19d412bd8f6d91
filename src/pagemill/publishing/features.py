"""Columns of a Parquet file as the ``datasets`` library and the Hub's viewer expect them described."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection

_NAMES = {pa.float64(): "float64", pa.float32(): "float32", pa.bool_(): "bool"}


def with_features(schema: pa.Schema, images: Collection[str]) -> pa.Schema:
    """The schema with the metadata that makes image columns images.

    Args:
        schema: Schema of the file.
        images: Columns that hold images (struct of bytes and path) or lists of them.

    Source: the ``huggingface`` key of the Parquet metadata, as ``datasets`` writes it: features under ``info``.
    """
    features = {field.name: _feature(field.type, image=field.name in images) for field in schema}
    told = json.dumps({"info": {"features": features}})
    return schema.with_metadata({**(schema.metadata or {}), b"huggingface": told.encode()})


def _feature(kind: pa.DataType, *, image: bool) -> Any:
    if pa.types.is_list(kind):
        # A list with one element: the form that all versions of the library read.
        return [_feature(kind.value_type, image=image)]
    if image:
        return {"_type": "Image"}
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _feature(kind.field(i).type, image=False) for i in range(kind.num_fields)}
    return {"dtype": _NAMES.get(kind, str(kind)), "_type": "Value"}
