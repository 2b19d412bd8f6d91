"""Second matching of display formulas, by the rules of OmniDocBench v1.7."""

from pagemill_eval.benchmarks.omnidocbench.elements import Category, Element
from pagemill_eval.benchmarks.omnidocbench.formula_matching import match_formulas
from pagemill_eval.benchmarks.omnidocbench.v17 import V17


def matched(truth: list[str], predicted: list[str], category: Category = Category.EQUATION) -> list[tuple[str, str]]:
    true = [Element("equation_isolated", latex, number) for number, latex in enumerate(truth, start=1)]
    found = [
        Element(category, latex, 100.0 * number, end=100.0 * number + len(latex))
        for number, latex in enumerate(predicted)
    ]
    rows = match_formulas(true, found, [], V17)
    return [(row.normal_truth, row.normal_prediction) for row in sorted(rows, key=lambda row: row.orders)]


def test_nothing_on_a_side() -> None:
    assert matched([], ["a=b"]) == []
    assert matched(["a=b"], []) == [("a=b", "")]


def test_one_to_one_leaves_what_is_far() -> None:
    assert matched(["a=b+c", "x=y"], ["x=y", "a=b+c"]) == [("a=b+c", "a=b+c"), ("x=y", "x=y")]
    assert matched(["abcdef", "x=y"], ["x=y"]) == [("abcdef", ""), ("x=y", "x=y")]


def test_predicted_parts_are_joined() -> None:
    assert matched(["abcd+efgh=ijkl"], ["abcd+", "efgh=", "ijkl"]) == [("abcd+efgh=ijkl", "abcd+efgh=ijkl")]


def test_lines_of_a_predicted_formula_are_matched_apart() -> None:
    array = "\\begin{aligned} a=1 \\\\ b=22 \\\\ c=333 \\end{aligned}"
    assert matched(["a=1", "b=22", "c=333"], [array]) == [("a=1", "a=1"), ("b=22", "b=22"), ("c=333", "c=333")]
    assert matched(["a=1\\\\b=22", "c=333"], [array])[2] == ("c=333", "c=333")


def test_possible_formulas_take_part() -> None:
    assert matched(["x+1=2"], ["\\[ x + 1 = 2 \\]"], Category.POSSIBLE_FORMULA) == [("x+1=2", "x+1=2")]


def test_cases_that_are_steps_are_tried_as_lines() -> None:
    steps = "\\begin{cases} a=1 \\\\ b=2 \\end{cases} \\Rightarrow c"
    (row,) = matched(["\\left\\{ \\begin{array}{l} a=1 \\\\ b=2 \\end{array} \\right. \\Rightarrow c"], [steps])
    assert row[0] == row[1]
