"""Sets of document images with the values of their fields: Nanonets-KIE and the handwritten forms of docext."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pagemill.errors import CorruptInputError, InputError, MissingInputError
from pagemill_eval import benchmark as base
from pagemill_eval.benchmark import Figure, Prediction, Rules, Sample, SampleScore
from pagemill_eval.files import parquet_rows
from pagemill_eval.kie import field_scores

_RECEIPT = (
    *("date", "doc_no_receipt_no", "seller_address", "seller_gst_id", "seller_name", "seller_phone"),
    *("total_amount", "total_tax"),
)
_FORM = {
    ("person", "State file #"): "State file #",
    ("person", "county"): "place_of_death_county",
    ("person", "city"): "place_of_death_city",
    ("person", "name"): "name_of_deceased",
    ("person_data", "Gender"): "deceased_gender",
    ("person_data", "Race"): "deceased_race",
    ("person_data", "status"): "deceased_status",
    ("person_data", "Age"): "deceased_age",
    ("person_data", "birth_place"): "birth_place",
    ("relation", "Father"): "father_name",
    ("relation", "Mother"): "mother_name",
}
"""Name of a form's field by its group and key; other keys, such as the dates of death and birth, do not count."""
_STATUS = "One of MARRIED, NEVER MARRIED, WIDOWED, DIVORCED"


class _FieldBenchmark(base.Benchmark):
    """Images and values of fields in Parquet tables. Predictions: ``ROW.json``, an object by field.

    Official rules are those of pagemill, too: a missing prediction has no value for any field.
    """

    kind = base.Kind.JSON
    origin = "NanoNets/docext 0edc8f5"
    primary = "field_similarity"
    packages = ("json-repair",)
    metrics = (
        base.Metric(
            name="field_similarity", description="Mean over the document's fields of 1 - normalised edit distance"
        ),
        base.Metric(name="fields_exact", description="Share of the document's fields that are equal"),
    )
    split: ClassVar[str]
    column: ClassVar[str]

    def load(self, path: Path) -> list[Sample]:
        """Documents of a Parquet table, or of the tables of the scored split in a folder."""
        if not path.exists():
            raise MissingInputError(f"{path} does not exist", remedy="Check the path.")
        files = [path] if path.is_file() else sorted(path.rglob(f"*{self.split}*.parquet"))
        if not files:
            raise InputError(f"{path} contains no *{self.split}*.parquet", remedy="Pass the published Parquet files.")
        samples: list[Sample] = []
        for file in files:
            for row, values in enumerate(parquet_rows(file, [self.column])):
                truth = self.fields_of(values.get(self.column), f"{file}: row {row + 1}")
                number = len(samples)
                samples.append(
                    Sample(
                        id=str(number),
                        truth=truth,
                        input=base.Input(path=file, row=row, column="image"),
                        prediction_names=(f"{number}.json",),
                        schema=_schema(truth),
                    )
                )
        return base.checked_ids(samples, path)

    @abstractmethod
    def fields_of(self, value: Any, where: str) -> dict[str, Any]:
        """Values by field of a cell of the table.

        Raises:
            CorruptInputError: It has another form.
        """

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Score each field."""
        text = prediction.scored_text
        found = field_scores(sample.truth, text)
        similarity = math.fsum(found.values()) / len(found) if found else None
        exact = sum(score == 1.0 for score in found.values()) / len(found) if found else None
        pair = base.Pair(
            kind=self.kind,
            truth=json.dumps(sample.truth, ensure_ascii=False, indent=2, default=str),
            prediction=text,
            metric="field_similarity",
            score=1.0 if similarity is None else similarity,
        )
        metrics = {"field_similarity": similarity, "fields_exact": exact}
        return prediction.score(sample, metrics, pair, terms={"fields": found})

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Means over all fields of all documents, and of each field."""
        fields: dict[str, list[float | None]] = {}
        for score in scores:
            for name, value in score.terms.get("fields", {}).items():
                fields.setdefault(name, []).append(value)
        values = [value for field in fields.values() for value in field]
        return {
            "field_similarity": base.mean(values, "mean over fields"),
            "fields_exact": base.mean([float(value == 1.0) for value in values], "share of fields"),
            **{f"field_{name}": base.mean(each, "mean over documents") for name, each in sorted(fields.items())},
        }


class NanonetsKie(_FieldBenchmark):
    """Nanonets-KIE: eight fields of receipts and invoices."""

    name = "nanonets-kie"
    title = "Nanonets-KIE"
    hub_id = "nanonets/key_information_extraction"
    split = "test"
    column = "annotations"

    def fields_of(self, value: Any, where: str) -> dict[str, Any]:
        """The annotations are the fields."""
        fields = _object(value, where)
        return {name: fields[name] for name in (*_RECEIPT, *fields) if name in fields}


class HandwrittenKie(_FieldBenchmark):
    """Handwritten-KIE: fields of handwritten death certificates, as docext takes them."""

    name = "handwritten-kie"
    title = "Handwritten-KIE"
    hub_id = "Rasi1610/DeathSe43_44_checkbox"
    split = "val"
    column = "ground_truth"

    def fields_of(self, value: Any, where: str) -> dict[str, Any]:
        """Fields of the form's groups, without dates, whose annotations are wrong too often."""
        groups = _object(_object(value, where).get("gt_parse"), where)
        return {
            name: fields[key]
            for (group, key), name in _FORM.items()
            if isinstance(fields := groups.get(group), dict) and key in fields
        }


def _object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise CorruptInputError(f"{where} is not JSON: {error}", remedy="Pass the published files.") from error
    if not isinstance(value, dict):
        raise CorruptInputError(f"{where} has no fields", remedy="Pass the published files.")
    return value


def _schema(truth: Mapping[str, Any]) -> dict[str, Any]:
    described = {"deceased_status": {"description": _STATUS}}
    fields = {name: {"type": ["string", "null"], **described.get(name, {})} for name in truth}
    return {"type": "object", "properties": fields, "required": list(truth), "additionalProperties": False}
