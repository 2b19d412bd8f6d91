import pytest

from pagemill_eval.kie import field_scores, parse_fields


def test_fields() -> None:
    truth = {"name": "Paper Mill", "total": 12.5, "tax": "", "date": None}
    assert field_scores(truth, {"name": "paper Mill", "total": "12.5", "more": "x"}) == {
        "name": pytest.approx(0.9),
        "total": 1.0,
        "tax": 1.0,
        "date": 1.0,
    }
    assert field_scores({"total": "12.5"}, {"total": 12.5}) == {"total": 1.0}
    assert field_scores({"a": "x"}, {"a": None}) == {"a": 0.0}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('[{"a": 1}, 2, {"b": "x"}]', {"a": 1, "b": "x"}),
        ('```json\n{"a": "x",}\n```', {"a": "x"}),
        ("", {}),
        ("no fields", {}),
        ("[" * 5000, {}),
        ("3", {}),
    ],
)
def test_replies(reply: str, expected: dict[str, object]) -> None:
    assert parse_fields(reply) == expected
