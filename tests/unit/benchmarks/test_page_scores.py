"""Scores of drawn pages: what is right scores full marks, and each kind of mistake costs what it should."""

import pytest

from page_scores import latex_text, locate, nearest, normalise_formula, plain_text, score_page
from pages.layouts import Block

TABLE = '<table><tr><td rowspan="2">a</td><td>12</td></tr><tr><td>34</td></tr></table>'
BLOCKS = [
    Block("title", "Water and Energy"),
    Block("text", "The city council approved the plan for $x^{2} = 4$ new stops."),
    Block("list_item", "• Check all valves"),
    Block("table", html=TABLE),
    Block("formula", latex=r"\frac{a}{b} = c"),
    Block("furniture", "Gazette", ordered=False),
]
MARKDOWN = f"""# Water and Energy

The city council approved the plan for $x^2 = 4$ new stops.

- Check all valves

{TABLE}

$$\\frac{{a}}{{b}} = c$$
"""
REGIONS = [{"content": TABLE, "content_format": "html"}]


def test_what_is_right_scores_full_marks() -> None:
    score = score_page(BLOCKS, MARKDOWN, REGIONS)
    assert (score.cer, score.order, score.teds, score.teds_s, score.formula) == (0, 0, [1], [1], [0])
    assert (score.missing, score.false_tables, score.lost_words) == (0, 0, 0)


def test_running_heads_cost_nothing_either_way() -> None:
    assert score_page(BLOCKS, "Gazette\n\n" + MARKDOWN, REGIONS).cer == 0


def test_a_wrong_letter_costs_its_share() -> None:
    score = score_page(BLOCKS, MARKDOWN.replace("council", "counoil"), REGIONS)
    true = ("Water and Energy", "The city council approved the plan for x2=4 new stops.", "Check all valves", "a 12 34")
    assert score.cer == pytest.approx(1 / sum(map(len, true)))


def test_order_costs_nothing_in_characters_and_something_in_order() -> None:
    title, text, *rest = MARKDOWN.split("\n\n")
    score = score_page(BLOCKS, "\n\n".join((text, title, *rest)), REGIONS)
    assert score.cer == 0
    assert score.order == pytest.approx(2 / 4)


def test_text_that_belongs_to_nothing_costs() -> None:
    assert score_page(BLOCKS, MARKDOWN + "\n\nqqqq jjjj wwww", REGIONS).cer > 0.1


def test_what_is_missing_costs_all_of_its_characters() -> None:
    score = score_page(BLOCKS, MARKDOWN.replace("# Water and Energy", ""), REGIONS)
    assert score.missing == 1
    assert score.cer > 0.15


def test_an_empty_page_is_all_wrong() -> None:
    score = score_page(BLOCKS, "", [])
    assert (score.cer, score.order, score.teds, score.formula) == (1, None, [0], [1])


def test_a_formula_in_a_code_fence_is_no_formula() -> None:
    fenced = MARKDOWN.replace("$$\\frac{a}{b} = c$$", "```\na/b = c\n```")
    assert score_page(BLOCKS, fenced, REGIONS).formula == [1]


def test_a_table_that_is_none_counts() -> None:
    assert score_page(BLOCKS[:3], MARKDOWN, REGIONS * 2).false_tables == 2


def test_words_of_the_record_that_the_markdown_lacks_count() -> None:
    regions = [*REGIONS, {"content": "lost remark", "content_format": "text"}, {"content": "Gazette"}]
    assert score_page(BLOCKS, MARKDOWN, regions).lost_words == 2


def test_pipe_tables_and_markup_are_text() -> None:
    text, formulas = plain_text("# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n![x](y.jpg) **c** 1\\. d &amp; e $$z$$")
    assert text.split() == ["A", "a", "b", "1", "2", "c", "1.", "d", "&", "e"]
    assert formulas == ["z"]


def test_nearest_stretch() -> None:
    assert nearest("the house", "xx the hause yy") == ([(3, 12)], 1)


def test_an_element_that_is_torn_in_two_is_found() -> None:
    first, second = "The harbour office measured a rise of five", "percent in daily traffic since last October"
    text = f"{second} and something else that stands between them {first}"
    found, edits = nearest(f"{first} {second}", text)
    assert edits <= 2
    assert sorted(text[start:end].strip() for start, end in found) == sorted((first, second))
    places, rest = locate([f"{first} {second}", "and something else that stands between them"], text)
    assert None not in places
    assert not rest.replace("\0", "").strip()


def test_what_is_taken_is_not_found_again() -> None:
    places, rest = locate(["a cat", "a cat and a dog"], "a cat and a dog")
    assert places == [None, (0, 0)]
    assert not rest.strip("\0")


def test_formulas_are_compared_without_spacing_and_fonts() -> None:
    assert normalise_formula(r"\mathrm{X} \, = \left( y \right)") == normalise_formula("{x}=(y)")
    assert latex_text(r"\alpha_{i} \leq 3") == "αi≤3"


def test_letters_and_spaces_of_a_formula_in_a_line_are_spelling() -> None:
    blocks = [Block("text", r"It holds $v_{6} \geq \omega - d$ here.")]
    assert score_page(blocks, "It holds 𝑣6 ≥ 𝜔 − 𝑑 here.", []).cer == 0
    assert score_page(blocks, "It holds 𝑣6 ≥ 𝜔 − 𝑏 here.", []).cer > 0


def test_articles_may_be_read_in_any_order_but_not_mixed() -> None:
    blocks = [
        Block("text", text, article=1 + index // 2) for index, text in enumerate(("alpha", "bravo", "cocoa", "delta"))
    ]
    assert score_page(blocks, "cocoa delta alpha bravo", []).order == 0
    assert score_page(blocks, "alpha cocoa bravo delta", []).order == 0.5


FIELDS = [Block("field", f"{label} {value}", style="leader", value=value)
          for label, value in (("Apple cake", "2.40"), ("Coffee", "1.00"))]  # fmt: skip


@pytest.mark.parametrize(
    ("markdown", "pairs"),
    [
        ("| Apple cake | 2.40 |\n| --- | --- |\n| Coffee | 1.00 |", [1, 1]),
        ("<table><tr><td>Apple cake</td><td>2.40</td></tr><tr><td>Coffee</td><td>1.00</td></tr></table>", [1, 1]),
        ("Apple cake … 2.40  \nCofiee ..... 1.00", [1, 1]),
        ("Apple cake Coffee\n\n2.40 1.00", [0, 0]),
        ("| Apple cake<br>Coffee | 2.40<br>1.00 |\n| --- | --- |", [0, 0]),
        ("Apple cake\n\nCoffee 1.00", [0, 1]),
    ],
)
def test_a_label_and_its_value_are_a_pair_in_one_row(markdown: str, pairs: list[float]) -> None:
    assert score_page(FIELDS, markdown, []).pairs == pairs


def test_leaders_and_tables_of_fields_cost_nothing() -> None:
    text = "Apple cake … 2.40  \nCoffee . . . . . 1.00"
    regions = [{"content": text}, {"content": "<table></table>", "content_format": "html"}]
    score = score_page(FIELDS, text, regions)
    assert (score.cer, score.false_tables) == (0, 0)
