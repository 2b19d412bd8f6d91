from __future__ import annotations

from pathlib import Path

import pytest

from pagemill.errors import InputError
from pagemill.evaluation.benchmarks.unimernet import UniMerNet, normal


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("\\frac { a } { b }", "\\frac{a}{b}"),
        ("\\alpha x + 1 2", "\\alpha x+12"),
        ("\\operatorname {m a x} x", "\\operatorname{max}x"),
        ("a \\  b", "a\\ b"),
        ("  x  ", "x"),
    ],
)
def test_white_space(latex: str, expected: str) -> None:
    assert normal(latex) == expected


def test_subsets_have_equal_weight(tmp_path: Path) -> None:
    (tmp_path / "spe.txt").write_text("a\nb\nc\n")
    (tmp_path / "hwe.txt").write_text("x^2\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "spe.txt").write_text("a\nb\n")
    (out / "hwe.txt").write_text("x ^ 3\n")
    benchmark = UniMerNet()
    samples = benchmark.load(tmp_path)
    read = benchmark.predictions(out, samples)
    result = benchmark.result([benchmark.score(sample, read(sample)) for sample in samples])
    assert result.missing == ["spe/0000002"]
    assert result.figures["edit_distance"].value == pytest.approx((1 / 3 + 1 / 3) / 2)
    assert result.figures["edit_distance_samples"].value == pytest.approx((1 + 1 / 3) / 4)
    assert result.figures["cdm"].value is None


def test_a_file_a_formula(tmp_path: Path) -> None:
    (tmp_path / "spe.txt").write_text("a\n")
    (tmp_path / "out" / "spe").mkdir(parents=True)
    (tmp_path / "out" / "spe" / "0000000.tex").write_text("a")
    samples = UniMerNet().load(tmp_path)
    prediction = UniMerNet().predictions(tmp_path / "out", samples)(samples[0])
    assert UniMerNet().score(samples[0], prediction).metrics == {"edit_distance": 0.0, "exact": 1.0}


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        UniMerNet().load(tmp_path)
