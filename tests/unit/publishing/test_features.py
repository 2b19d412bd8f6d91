import json

import pyarrow as pa
import pytest

from pagemill.export.parquet import page_schema
from pagemill.publishing.build import with_features


def test_every_column_is_reported():
    schema = with_features(page_schema(pictures=True, images=True))
    features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert list(features) == schema.names
    assert features["image"] == {"_type": "Image"}
    assert features["crop_images"] == [{"_type": "Image"}]
    assert features["page_number"] == {"dtype": "int64", "_type": "Value"}
    assert features["regions"][0]["score"] == {"dtype": "float64", "_type": "Value"}
    assert features["regions"][0]["list_item"] == {"dtype": "bool", "_type": "Value"}
    assert schema.metadata[b"pagemill.schema_version"]


def test_the_library_takes_them_for_the_types_of_the_file():
    datasets = pytest.importorskip("datasets")
    schema = with_features(page_schema(pictures=True))
    told = datasets.Features.from_arrow_schema(schema)
    assert told.arrow_schema.field("regions").type == schema.field("regions").type
    assert told.arrow_schema.field("timings").type == schema.field("timings").type


def test_a_column_that_is_no_image():
    features = json.loads(with_features(pa.schema({"image": pa.string()})).metadata[b"huggingface"])
    assert features["info"]["features"] == {"image": {"dtype": "string", "_type": "Value"}}
