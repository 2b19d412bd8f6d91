"""Second matching of titles and texts, by the rules of OmniDocBench v1.7."""

from pagemill_eval.benchmarks.omnidocbench.elements import Category, Element
from pagemill_eval.benchmarks.omnidocbench.matching import Match
from pagemill_eval.benchmarks.omnidocbench.second_match import as_text, matched_again


def match(text: str, prediction: list[int], edit: float, category: str = "title") -> Match:
    return Match([0], prediction, text, "", text, "", category, Category.TEXT if prediction else "", [1], None, edit)


def pool(*texts: str) -> list[Element]:
    return [Element(Category.TEXT, text, 10.0 * number, end=10.0 * number + 5) for number, text in enumerate(texts)]


def again(*matches: Match, texts: tuple[str, ...]) -> list[list[int]]:
    return [each.prediction for each in matched_again(matches, pool(*texts))]


def test_a_title_takes_a_run_that_is_free() -> None:
    (found,) = matched_again([match("Papermills", [], 1.0)], pool("x", "Paper", "mills"))
    assert (found.prediction, found.normal_prediction, found.position, found.edit) == ([1, 2], "Papermills", 10.0, 0.0)


def test_what_another_one_has_is_taken() -> None:
    texts = ("Paper", "mills")
    assert again(match("Papermills", [], 1.0), match("mills", [1], 0.0), texts=texts) == [[], [1]]


def test_only_bad_matches_of_titles_and_long_texts() -> None:
    assert again(match("Papermills", [0], 0.45), texts=("x", "Papermills")) == [[0]]
    assert again(match("Papermills", [], 1.0, "text_block"), texts=("Papermills",)) == [[]]
    assert again(match("Papermills" * 8, [], 1.0, "text_block"), texts=("Papermills" * 8,)) == [[0]]
    assert again(match("$x^2$ is", [], 1.0, "text_block"), texts=("$x^2$ is",)) == [[0]]
    assert again(match("Papermills", [], 1.0), texts=("Paperabcde",)) == [[]]  # too far


def test_only_near_predictions() -> None:
    texts = ("x", *("y",) * 9, "Papermills")
    assert again(match("Papermills", [0], 1.0), texts=texts) == [[0]]
    assert again(match("Papermills", [2], 1.0), texts=texts) == [[10]]


def test_the_larger_gain_is_first() -> None:
    first, second = match("Papermilly", [], 1.0), match("Papermills", [], 1.0)
    assert again(first, second, texts=("Papermills",)) == [[], [0]]


def test_a_formula_beside_text_is_text() -> None:
    formula = Match([0], [0], "x", "y", "$$x^2$$", "x2 is", "equation_isolated", Category.TEXT, [1], 0.0)
    found = as_text(formula)
    assert (found.normal_truth, found.normal_prediction, found.edit) == ("x2", "x2is", 0.5)
