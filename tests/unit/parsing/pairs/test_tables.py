"""Tables of pairs."""

from pagemill.parsing.pairs.segments import Pair, Segment
from pagemill.parsing.pairs.tables import table_of


def pair(*label: tuple[str, float, float], value: str = "1", x: float = 200) -> Pair:
    """A label of segments at their places, and a value on the level of the first one."""
    segments = [Segment(text, (x1, y, x1 + 40, y + 30), line) for line, (text, x1, y) in enumerate(label)]
    return Pair(tuple(segments), Segment(value, (x, label[0][2], x + 40, label[0][2] + 30), 9))


def test_second_lines_of_labels_are_joined_as_lines_and_segments_beside_each_other_as_words() -> None:
    table = table_of([pair(("住所", 0, 0), ("続き", 0, 35)), pair(("住所", 0, 80), ("続き", 60, 80))])
    assert table.grid() == [["住所続き", "1"], ["住所 続き", "1"]]


def test_pairs_on_one_level_are_a_row_unless_their_labels_begin_at_one_place() -> None:
    beside = pair(("B", 300, 2), value="2", x=500)
    assert table_of([pair(("A", 0, 0)), beside]).grid() == [["A", "1", "B", "2"]]
    close = pair(("B", 0, 12), value="2")
    assert table_of([pair(("A", 0, 0)), close]).grid() == [["A", "1"], ["B", "2"]]
