import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pagemill.errors import InputError
from pagemill_eval.benchmark import Prediction, Status
from pagemill_eval.benchmarks.kie import HandwrittenKie, NanonetsKie


def test_receipts(tmp_path: Path) -> None:
    rows = {
        "image": [b"one", b"two"],
        "annotations": [{"seller_name": "Mill", "date": "2 May"}, {"seller_name": "Rags", "date": None}],
    }
    pq.write_table(pa.table(rows), tmp_path / "test-00000.parquet")
    benchmark = NanonetsKie()
    samples = benchmark.load(tmp_path)
    assert samples[1].input is not None
    assert samples[1].input.read() == b"two"
    assert samples[0].schema is not None
    assert samples[0].schema["required"] == ["date", "seller_name"]
    scores = [
        benchmark.score(samples[0], Prediction(text='{"seller_name": "Mall"}')),
        benchmark.score(samples[1], Prediction()),
    ]
    result = benchmark.result(scores)
    assert result.missing == ["1"]
    assert [score.metrics["field_similarity"] for score in scores] == [pytest.approx(0.375), 0.5]
    assert result.figures["field_similarity"].value == pytest.approx((0.75 + 0 + 0 + 1) / 4)
    assert result.figures["field_similarity"].samples == 4
    assert result.figures["field_date"].value == 0.5


def test_forms(tmp_path: Path) -> None:
    truth = {
        "gt_parse": {
            "person": {"name": "A B", "death": "1944", "State file #": "12"},
            "person_data": {"status": "WIDOWED", "birth_day": "1900"},
            "other": {"name": "x"},
        }
    }
    pq.write_table(pa.table({"ground_truth": [json.dumps(truth)]}), tmp_path / "val.parquet")
    (sample,) = HandwrittenKie().load(tmp_path)
    assert sample.truth == {"State file #": "12", "name_of_deceased": "A B", "deceased_status": "WIDOWED"}
    assert HandwrittenKie().score(sample, Prediction(error="x")).status is Status.FAILED


@pytest.mark.parametrize("value", ["", "3", "{", '{"gt_parse": 1}'])
def test_files_of_another_format(tmp_path: Path, value: str) -> None:
    pq.write_table(pa.table({"ground_truth": [value]}), tmp_path / "val.parquet")
    with pytest.raises(InputError):
        HandwrittenKie().load(tmp_path / "val.parquet")
    with pytest.raises(InputError):
        NanonetsKie().load(tmp_path)
    with pytest.raises(InputError):
        NanonetsKie().load(tmp_path / "nowhere")
