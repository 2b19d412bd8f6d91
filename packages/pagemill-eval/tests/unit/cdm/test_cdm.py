import numpy as np
import pytest

from pagemill_eval.cdm import OMNIDOCBENCH, OMNIDOCBENCH_V15, UNIMERNET, Cdm, CdmRules, cdm, f1
from pagemill_eval.cdm.drawing import Drawing, unavailable
from pagemill_eval.cdm.tokens import Token

with_latex = pytest.mark.skipif(bool(unavailable()), reason=unavailable()[:80])


def drawing(text: str, move: float = 0.0, scale: float = 1.0, gap: int = 40) -> Drawing:
    """Letters in a row; those in capitals are 100 pixels lower."""
    boxes = np.array([[gap * i, 100 * c.isupper(), gap * i + 20, 100 * c.isupper() + 20] for i, c in enumerate(text)])
    tokens = tuple(Token(each.lower(), each.lower()) for each in text)
    moved = (boxes * scale + move).astype(np.int64)
    return Drawing(tokens, moved, (int(moved[:, 2].max()), int(moved[:, 3].max())))


@pytest.mark.parametrize("rules", [OMNIDOCBENCH, OMNIDOCBENCH_V15, UNIMERNET])
def test_a_drawing_that_is_moved_and_larger_is_equal(rules: CdmRules) -> None:
    assert f1(drawing("abcdefgh", 17, 1.5), drawing("abcdefgh"), rules) == 1.0


@pytest.mark.parametrize(
    ("predicted", "true", "expected"),
    [
        ("abcdefgx", "abcdefgh", 0.875),
        ("abcdefg", "abcdefgh", 0.933),
        ("abcdefghi", "abcdefgh", 0.941),
        ("abcdefgH", "abcdefgh", 0.875),
        ("xyz", "abc", 0.0),
        ("a", "a", 1.0),
    ],
)
def test_f1_of_tokens_at_their_place(predicted: str, true: str, expected: float) -> None:
    assert f1(drawing(predicted), drawing(true), OMNIDOCBENCH) == expected


def test_up_to_the_least_number_of_pairs_the_place_does_not_count() -> None:
    assert f1(drawing("aBc"), drawing("abc"), OMNIDOCBENCH_V15) == 1.0
    assert f1(drawing("aBc"), drawing("abc"), UNIMERNET) < 1.0


def test_a_second_round_holds_what_moved_together() -> None:
    one = CdmRules(0.005, True, 1, 2, 20.0, 50, 42)
    assert f1(drawing("abcdEFGH"), drawing("abcdefgh"), one) == 0.5
    assert f1(drawing("abcdEFGH"), drawing("abcdefgh"), UNIMERNET) == 1.0


def test_the_same_again() -> None:
    random = np.random.default_rng(1)
    boxes = random.integers(0, 500, (30, 2))
    drawn = Drawing(drawing("x" * 30).tokens, np.hstack([boxes, boxes + 20]), (520, 520))
    assert len({f1(drawn, drawing("x" * 30), UNIMERNET) for _ in range(3)}) == 1


@with_latex
@pytest.mark.parametrize(
    ("predicted", "true", "expected"),
    [
        ("\\sum_{i=1}^{n} x_i", "\\[\\sum_{i=1}^n x_{i}\\]", 1.0),
        ("a \\leq b", "a \\le b", 1.0),
        ("\\mathbf{a} \\leq b", "a \\leq b", 1.0),
        ("x + y + 1", "x + z + 1", 0.8),
        ("x + y", "x_i + y", 0.857),
        ("", "x", 0.0),
        ("\\nosuch x", "x", 0.0),
        ("x", "\\nosuch x", None),
    ],
)
def test_formulas(predicted: str, true: str, expected: float | None) -> None:
    found = cdm([(predicted, true)], UNIMERNET)[0]
    assert found.f1 == expected
    assert bool(found.note) == (not expected)


@with_latex
def test_a_fraction_upside_down_is_not_right() -> None:
    """What moved together holds in another round of RANSAC, as the definition has it; what moved alone does not."""
    pairs = [("\\frac{b}{a}", "\\frac{a}{b}"), ("x = \\frac{b+c+d}{a}", "x = \\frac{a}{b+c+d}")]
    assert [score.f1 for score in cdm(pairs, UNIMERNET)] == [0.667, 0.889]


@with_latex
def test_pairs_keep_their_order() -> None:
    found = cdm([("a", "a"), ("b", "a"), ("a", "a")], UNIMERNET)
    assert found == [Cdm(1.0), Cdm(0.0), Cdm(1.0)]
