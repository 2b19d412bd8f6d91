import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from extraction_pages import INVOICE

from pagemill.errors import InputError, UsageError
from pagemill.extraction.result import Extraction, ExtractionStatus
from pagemill.extraction.schema import ExtractionSchema, leaves


class Item(msgspec.Struct):
    name: str
    price: float | None = None


class Invoice(msgspec.Struct):
    number: str
    items: list[Item] = []


@dataclass
class Plain:
    number: str


def test_every_property_may_be_null_and_is_asked_for():
    schema = ExtractionSchema("invoice", INVOICE)
    relaxed = schema.relaxed
    assert relaxed["required"] == ["number", "total", "due", "items"]
    assert relaxed["properties"]["total"] == {"anyOf": [{"type": "number"}, {"type": "null"}]}
    inner = relaxed["properties"]["items"]["anyOf"][0]["items"]
    assert inner["properties"]["price"]["anyOf"][1] == {"type": "null"}
    assert schema.problems({"number": None, "total": None}) == []
    assert schema.problems({"total": "12"}) == ["/total: '12' is not valid under any of the given schemas"]
    assert INVOICE["required"] == ["number", "total", "due"]  # the user's own is unchanged


def test_nulls_leave_and_what_is_missing_is_listed():
    checked = ExtractionSchema("invoice", INVOICE).checked({"number": "7", "total": None, "items": []})
    assert checked.values == {"number": "7", "items": []}
    assert checked.missing == ["/total", "/due"]
    assert checked.invalid == []


def test_a_value_of_a_wrong_type_costs_only_itself():
    values = {"number": "7", "total": "twelve", "due": "May", "items": [{"name": "a", "price": "x"}, {"name": "b"}]}
    beside = json.loads(json.dumps(values))
    checked = ExtractionSchema("invoice", INVOICE).checked(values, beside)
    assert checked.values == beside == {"number": "7", "due": "May", "items": [{"name": "a"}, {"name": "b"}]}
    assert checked.missing == ["/total"]
    assert [text.split(":")[0] for text in checked.invalid] == ["/total", "/items/0/price"]


def test_inside_a_choice_of_schemas_too():
    address = {"type": "object", "required": ["zip", "city"], "properties": {"zip": {"type": "string"}, "city": {}}}
    document = {"type": "object", "properties": {"address": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}}}
    schema = ExtractionSchema("s", document | {"$defs": {"A": address}})
    checked = schema.checked({"address": {"city": "Ulm", "zip": None}})
    assert (checked.values, checked.missing) == ({"address": {"city": "Ulm"}}, ["/address/zip"])
    checked = schema.checked({"address": {"city": "Ulm", "zip": 5}})
    assert (checked.values, checked.missing) == ({"address": {"city": "Ulm"}}, ["/address/zip"])


def test_unique_items():
    schema = ExtractionSchema("s", {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}})
    assert schema.checked({"a": ["x", "y", "x", "x"]}).values == {"a": ["x", "y"]}


@pytest.mark.parametrize("kind", [Invoice, Plain])
def test_of_a_python_type(kind):
    schema = ExtractionSchema.of(kind)
    assert schema.name == kind.__name__
    assert schema.checked({"number": "7"}).missing == []
    assert schema.checked({}).missing == ["/number"]


def test_of_a_pydantic_model():
    class Model:
        @staticmethod
        def model_json_schema():
            return INVOICE

    assert ExtractionSchema.of(Model).name == "Model"


@pytest.mark.parametrize(
    "document",
    [
        {"type": "array"},
        {"type": "object", "properties": {"a": {"type": "strin"}}},
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "#/$defs/nothing"},
    ],
)
def test_no_schema_of_an_object(document):
    with pytest.raises(UsageError):
        ExtractionSchema("s", document)


def test_nested_too_deeply():
    deep: dict = {"type": "string"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(UsageError, match="too deeply"):
        ExtractionSchema("s", deep)


def test_files(tmp_path):
    path = tmp_path / "invoice.schema.json"
    path.write_text(json.dumps(INVOICE))
    assert ExtractionSchema.load(path).name == "invoice"
    path.write_text("[]")
    with pytest.raises(UsageError, match="no JSON object"):
        ExtractionSchema.load(path)
    path.write_text("{")
    with pytest.raises(UsageError, match="is not JSON"):
        ExtractionSchema.load(path)
    with pytest.raises(InputError):
        ExtractionSchema.load(tmp_path / "none.json")


def test_leaves():
    assert list(leaves({"a": 1, "b": [{"c": None}, 2]})) == [(("a",), 1), (("b", 0, "c"), None), (("b", 1), 2)]


def test_the_result_as_an_object():
    result = Extraction(
        doc_id="d", source="d.pdf", status=ExtractionStatus.DONE, values={"number": "7"}, fields=[], missing=[],
        invalid=[], problems=[], pages=1, requests=[], schema="s", schema_sha256="", model="m", version="1",
    )  # fmt: skip
    assert result.to(Invoice) == Invoice(number="7")
    assert result.to(Plain) == Plain(number="7")
    with pytest.raises(ValueError, match="name"):
        result.to(Item)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"a": {"$ref": "#/$defs/x"}}, "without end"),
        ({"a": {"anyOf": [{"$ref": "#/$defs/x"}]}}, "without end"),
        ({"a": {"$ref": "#/$defs/nowhere"}}, "not in it"),
    ],
)
def test_references_that_lead_nowhere_are_refused(properties: dict[str, Any], message: str) -> None:
    definitions = {"x": {"allOf": [{"$ref": "#/$defs/x"}]}} if message == "without end" else {}
    document = {"type": "object", "properties": properties, "$defs": definitions}
    with pytest.raises(UsageError, match=message):
        ExtractionSchema("s", document)


def test_a_tree_may_refer_to_itself() -> None:
    tree = {"type": "object", "properties": {"name": {"type": "string"}, "part": {"$ref": "#"}}}
    assert ExtractionSchema("s", tree).problems({"name": "a", "part": {"name": 5}})
