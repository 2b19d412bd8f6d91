"""How list items are marked, which lines are items, and how deep they are nested."""

import pytest

from pagemill.document.labels import Label
from pagemill.document.page import TextLine
from pagemill.parsing.blocks import Block
from pagemill.parsing.lines import rows_of
from pagemill.parsing.lists import Marker, list_text, mark_lists, marker, parsed_marker

EM = 20.0


def rows(*items: tuple[float, str], top: float = 0.0):
    """Rows of text, each at an indent in ems."""
    lines = [
        TextLine(text=text, box=(indent * EM, top + row * 30, 600.0, top + row * 30 + 24), font_size=EM)
        for row, (indent, text) in enumerate(items)
    ]
    return rows_of(lines)


def block(text: str, indent: float = 0.0, top: float = 0.0, label: Label = Label.TEXT) -> Block:
    own = rows((indent, text), top=top)
    return Block(own[0].box, label, own, text=text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("□ 추진 배경", Marker("□")), ("△ 나래동", Marker("△")), ("※ 참고", Marker("※")), ("– text", Marker("-")),
        ("3. 개요", Marker("1.", 3)), ("다. 장소", Marker("가.", 3)), ("다.장소", Marker("가.", 3)),
        ("2) 기간", Marker("1)", 2)), ("나) 기간", Marker("가)", 2)), ("(4) 기간", Marker("(1)", 4)),
        ("(가) 기간", Marker("(가)", 1)), ("③ 기간", Marker("①", 3)), ("㉯ 기간", Marker("㉮", 2)),
        ("[3] Kim, A.", None), ("o 사업 개요", Marker("o")), ("o menino", None),
        ("다만 그렇다", None), ("2.5배 늘었다", None),
    ],
)  # fmt: skip
def test_markers(text: str, found: Marker | None) -> None:
    assert parsed_marker(text) == found


def test_bullets_of_official_documents_nest_by_level() -> None:
    text = list_text(
        rows((0, "□ 배경"), (1, "○ 하나"), (2, "- 둘"), (3, "※ 주"), (1, "○ 셋"), (0, "□ 효과"), (1, "○ 넷"))
    )
    depths = [(len(item) - len(item.lstrip())) // 2 for item in text.split("\n")]
    assert depths == [0, 1, 2, 3, 1, 0, 1]


def test_numbers_nest_by_their_kind_without_an_indent() -> None:
    text = list_text(
        rows((0, "1. 개요"), (0, "가. 기간"), (0, "1) 봄"), (0, "① 삼월"), (0, "나. 장소"), (0, "2. 방법"))
    )
    depths = [(len(item) - len(item.lstrip())) // 2 for item in text.split("\n")]
    assert depths == [0, 1, 2, 3, 1, 0]


def test_one_sign_at_two_indents_is_two_levels() -> None:
    assert list_text(rows((0, "• a"), (2, "• b"), (0, "• c"))) == "• a\n  • b\n• c"


def test_lone_items_in_blocks_of_their_own_become_one_nested_list() -> None:
    blocks = [block("□ 배경", 0, 0), block("○ 하나", 1, 40), block("○ 둘", 1, 80), block("□ 효과", 0, 120)]
    mark_lists(blocks)
    assert [(one.is_list, one.text) for one in blocks] == [
        (True, "□ 배경"), (True, "  ○ 하나"), (True, "  ○ 둘"), (True, "□ 효과"),
    ]  # fmt: skip


def test_a_lone_number_is_an_item_only_beside_the_next_one() -> None:
    alone = [block("가. 기간은 다음과 같다"), block("그 밖의 사항", 0, 40)]
    mark_lists(alone)
    assert not any(one.is_list for one in alone)
    two = [block("가. 기간"), block("설명", 1, 40), block("나. 장소", 0, 80)]
    mark_lists(two)
    assert [one.is_list for one in two] == [True, False, True]


def test_headings_end_a_list() -> None:
    blocks = [block("가. 기간"), block("2. 방법", 0, 40, Label.PARAGRAPH_TITLE), block("나. 장소", 0, 80)]
    mark_lists(blocks)
    assert not any(one.is_list for one in blocks)


def test_the_next_column_goes_on_with_the_levels() -> None:
    left = [block("□ 배경", 0, 0), block("○ 하나", 1, 40)]
    right = [block("○ 둘", 21, 0), block("□ 효과", 20, 40)]
    mark_lists([*left, *right])
    assert [one.text for one in (*left, *right)] == ["□ 배경", "  ○ 하나", "  ○ 둘", "□ 효과"]


def test_the_marker_is_stripped() -> None:
    assert [marker(text) for text in ("• one", "(1) two", "three")] == ["•", "(1)", ""]
