from dataclasses import replace

import pytest

from pagemill_eval.benchmarks.omnidocbench.elements import Element
from pagemill_eval.benchmarks.omnidocbench.matching import V15, Match, quick_match, simple_match, window_distance

LONG = "The quick brown fox jumps over the lazy dog and runs far away"


def text(content: str, start: float = 0, category: str = "text_block") -> Element:
    return Element(category, content, start)


def truth(*contents: str) -> list[Element]:
    return [text(content, number) for number, content in enumerate(contents, start=1)]


def predicted(*contents: str) -> list[Element]:
    return [text(content, 100.0 * number, "text") for number, content in enumerate(contents)]


def pairs(matches: list[Match]) -> list[tuple[str, str]]:
    return sorted((match.normal_truth, match.normal_prediction) for match in matches)


def test_one_to_one_whatever_the_distance() -> None:
    assert pairs(quick_match(truth("abc"), predicted("xyz"))) == [("abc", "xyz")]


def test_nothing_on_a_side() -> None:
    assert quick_match([], predicted("a")) == []
    assert pairs(quick_match(truth("a", "b"), [])) == [("a", ""), ("b", "")]


def test_pieces_of_a_line_are_joined() -> None:
    first, second = LONG[:30], LONG[30:]
    found = quick_match(truth(LONG, "Something else entirely"), predicted(first, second, "Something else entirely"))
    assert pairs(found) == [("Somethingelseentirely",) * 2, (LONG.replace(" ", ""),) * 2]


def test_a_line_within_a_longer_piece_is_attached_to_it() -> None:
    found = quick_match(truth(LONG, "Tail of it"), predicted(f"{LONG} Tail of it", "unlike"))
    assert pairs(found) == [((LONG + "Tail of it").replace(" ", ""),) * 2]
    assert found[0].orders == [1, 2]


def test_headers_take_their_predictions_with_them() -> None:
    header = text("Chapter 7 of the book", 0, "header")
    found = quick_match([header, *truth(LONG)], predicted("Chapter 7 of the book", LONG))
    assert pairs(found) == [(LONG.replace(" ", ""),) * 2]


def test_what_is_left_is_paired_and_predictions_too_many_are_free() -> None:
    assert pairs(quick_match(truth("aaaa", "bbbb"), predicted("cccc", "dddd", "eeee", "aaaa"))) == [
        ("aaaa", "aaaa"),
        ("bbbb", "cccc"),
    ]


def test_arrays_of_one_column_are_lines() -> None:
    array = Element("equation_isolated", "\\begin{array}{|l|} x=1 \\\\ y=2 \\end{array}", 3)
    found = quick_match([array], [Element("equation", "\\[y=2\\]", 5), Element("equation", "\\[x=1\\]", 9)])
    assert sorted((match.normal_truth, match.orders) for match in found) == [("x=1", [3.1]), ("y=2", [3.2])]
    assert all(match.normal_truth == match.normal_prediction for match in found)


def test_order_comes_from_the_list_with_empty_elements() -> None:
    found = quick_match(truth("...", "first line", "second line"), predicted("first line", "second line"))
    assert [match.orders for match in found] == [[1], [2]]


@pytest.mark.parametrize(
    ("piece", "line", "expected"),
    [("bcd", "abcde", 0.0), ("bxd", "abcde", 1 / 3), ("abc", "ab", None), ("", "a", None)],
)
def test_window_distance(piece: str, line: str, expected: float | None) -> None:
    assert window_distance(piece, line, 0.6) == expected


def test_a_page_that_takes_too_long_is_matched_one_to_one() -> None:
    lines, pieces = truth(LONG, "Something else entirely"), predicted(LONG[:30], LONG[30:], "Something else entirely")
    assert len(quick_match(lines, pieces)[0].prediction) == 2
    found = quick_match(lines, pieces, replace(V15, window_steps=10))
    assert all(len(match.prediction) == 1 for match in found)


def test_simple_match() -> None:
    matched, left = simple_match(truth("abcd", "wxyz"), predicted("wxyz", "q", "abcd"))
    assert matched == [(0, 2), (1, 0)]
    assert left == [1]
    assert simple_match(truth("a"), []) == ([(0, None)], [])
