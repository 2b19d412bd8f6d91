from pathlib import Path

import pytest

from pagemill.errors import InputError
from pagemill_eval.benchmark import Prediction, Sample
from pagemill_eval.benchmarks import unimernet
from pagemill_eval.benchmarks.unimernet import UniMerNet, normal
from pagemill_eval.cdm.drawing import unavailable


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("\\frac { a } { b }", "\\frac{a}{b}"),
        ("\\alpha x + 1 2", "\\alpha x+12"),
        ("\\operatorname {m a x} x", "\\operatorname{max}x"),
        ("a \\  b", "a\\ b"),
        ("  x  ", "x"),
        ("a   b", "a b"),
        ("\\  1", "\\ 1"),
        ("é  é + é", "é  é + é"),
        ("\\mathrm { a b } \\text {no end", "\\mathrm{ab}\\text{no end"),
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
    if unavailable():
        assert result.figures["cdm"].value is None
        assert "Install LaTeX" in result.figures["cdm"].note
    else:  # one of two symbols of the other subset's formula is wrong
        assert result.figures["cdm"].value == pytest.approx((2 / 3 + 0.5) / 2)
        assert result.figures["expression_rate"].value == pytest.approx(2 / 4)


def test_a_file_a_formula(tmp_path: Path) -> None:
    (tmp_path / "spe.txt").write_text("a\n")
    (tmp_path / "out" / "spe").mkdir(parents=True)
    (tmp_path / "out" / "spe" / "0000000.tex").write_text("a")
    samples = UniMerNet().load(tmp_path)
    prediction = UniMerNet().predictions(tmp_path / "out", samples)(samples[0])
    metrics = UniMerNet().score(samples[0], prediction).metrics
    assert metrics == {"edit_distance": 0.0, "exact": 1.0, "cdm": None if unavailable() else 1.0}


def test_a_true_formula_that_cannot_be_drawn_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unimernet, "unavailable", lambda: "")
    sample = Sample(id="spe/0", truth="\\nosuch", prediction_names=("x",), groups={"subset": "spe"})
    score = UniMerNet().score(sample, Prediction(text="\\nosuch"))  # no LaTeX is needed to say so
    assert score.metrics["cdm"] is None
    assert "1 true formulas" in UniMerNet().aggregate([score])["cdm"].note


def test_without_latex_it_is_unavailable_and_not_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unimernet, "unavailable", lambda: "unavailable: there is no pdflatex")
    sample = Sample(id="spe/0", truth="a", prediction_names=("x",), groups={"subset": "spe"})
    figure = UniMerNet().aggregate([UniMerNet().score(sample, Prediction(text="a"))])["cdm"]
    assert (figure.value, figure.note) == (None, "unavailable: there is no pdflatex")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        UniMerNet().load(tmp_path)
