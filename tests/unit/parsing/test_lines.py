"""Rows that end inside a Korean word."""

from __future__ import annotations

import pytest

from pagemill.parsing.lines import Row, join_rows, mark_broken_korean_words


def rows_ending_in_spaces(spaces):
    """20 full rows, so many of which end in a drawn space."""
    return [
        Row(lines=[], text=f"물레 방아{i:02}길", box=(0, 30 * i, 400, 30 * i + 20), size=20, trailing_space=i < spaces)
        for i in range(20)
    ]


def test_a_full_row_without_a_drawn_space_ends_inside_a_word():
    rows = rows_ending_in_spaces(3)
    mark_broken_korean_words([rows])
    assert [row.word_goes_on for row in rows] == [False] * 3 + [True] * 16 + [False]
    assert join_rows(rows[2:4]) == "물레 방아02길 물레 방아03길"
    assert join_rows(rows[3:5]) == "물레 방아03길물레 방아04길"


@pytest.mark.parametrize("spaces", [0, 1])
def test_where_no_spaces_are_drawn_at_line_ends_nothing_is_known(spaces):
    rows = rows_ending_in_spaces(spaces)
    mark_broken_korean_words([rows])
    assert not any(row.word_goes_on for row in rows)
