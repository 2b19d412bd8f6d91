r"""LaTeX from symbols by where they stand. The places are those of TeX at ten units an em."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.symbols import Symbol
from pagemill.formulas.check import renders
from pagemill.formulas.compose import latex_of_symbols

EM = 10.0
LARGE = "∑∏⋃"


def glyph(text: str, x: float, baseline: float = 100.0, size: float = EM, style: str = "i") -> Symbol:
    """A glyph half an em wide and 0.7 high."""
    return Symbol(text, (x, baseline - 0.7 * size, x + 0.5 * size, baseline), baseline, size, style, True)


def row(text: str, x: float = 0.0, baseline: float = 100.0, size: float = EM, style: str = "i") -> list[Symbol]:
    """Glyphs side by side; a space takes the room of one."""
    step = 0.55 * size
    return [glyph(char, x + step * i, baseline, size, style) for i, char in enumerate(text) if char != " "]


def tall(text: str, x: float, top: float, bottom: float, width: float = 5.0) -> Symbol:
    """A large delimiter or operator."""
    return Symbol(text, (x, top, x + width, bottom), top, EM, "r", True)


def test_what_stands_on_the_line_is_read_from_left_to_right():
    assert latex_of_symbols(row("a+b=c")[::-1]) == "a + b = c"


def test_raised_and_lowered_symbols_are_scripts():
    symbols = [glyph("x", 0), glyph("2", 5.5, 96.4, 7), glyph("i", 5.5, 102.5, 7), glyph("y", 12)]
    assert latex_of_symbols(symbols) == "x_{i}^{2}y"


def test_scripts_have_scripts_of_their_own():
    symbols = [glyph("2", 0), glyph("x", 5.5, 96.4, 7), glyph("n", 9.5, 93.0, 5)]
    assert latex_of_symbols(symbols) == "2^{x^{n}}"


def test_a_rule_between_two_parts_is_a_fraction():
    symbols = [*row("a+b", 20, 93), *row("c", 26, 107), *row("y=", 0)]
    assert latex_of_symbols(symbols, [(20.0, 97.2, 36.5, 97.6)]) == r"y = \frac{a + b}{c}"


def test_fractions_nest():
    outer, inner = (0.0, 97.2, 30.0, 97.6), (1.0, 86.2, 6.0, 86.6)
    symbols = [*row("a", 1, 84, 7), *row("b", 1, 93, 7), *row("+c", 10, 89), *row("d", 12, 107)]
    assert latex_of_symbols(symbols, [outer, inner]) == r"\frac{\frac{a}{b} + c}{d}"


def test_a_root_has_what_is_under_its_bar_and_a_degree():
    symbols = [tall("√", 0, 90, 103, 8), *row("x+1", 9), *row("y", 30), glyph("3", 1.5, 94, 5)]
    assert latex_of_symbols(symbols, [(8.0, 89.8, 26.0, 90.2)]) == r"\sqrt[3]{x + 1}y"


@pytest.mark.parametrize(("sign", "command"), [("∑", "sum"), ("∏", "prod"), ("⋃", "bigcup")])
def test_limits_stand_above_and_below_large_operators(sign, command):
    symbols = [tall(sign, 3, 90.5, 104.5, 8), *row("i = 1", -3, 112, 7), *row("n", 5, 89, 7), *row("x", 16)]
    assert latex_of_symbols(symbols) == rf"\{command}_{{i = 1}}^{{n}}x"


def test_limits_stand_below_functions():
    symbols = [*row("lim", 0, style="r"), *row("n→∞", 1, 107, 7), *row("a", 22)]
    assert latex_of_symbols(symbols) == r"\lim_{n \to \infty}a"


def test_functions_and_words_are_upright():
    assert latex_of_symbols([*row("sin", style="r"), *row("x", 20)]) == r"\sin x"
    assert latex_of_symbols([*row("x=1", 0), *row("if", 40, style="r"), *row("y", 60)]).count(r"\text{if}") == 1


def test_rows_between_large_delimiters_are_a_matrix():
    inner = [*row("a", 8, 94), *row("b", 24, 94), *row("c", 8, 106), *row("d", 24, 106)]
    around = [tall("(", 0, 84, 111), tall(")", 32, 84, 111)]
    assert latex_of_symbols([*around, *inner]) == r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}"


def test_rows_behind_a_brace_are_cases():
    inner = [*row("a", 8, 94), *row("x>0", 24, 94), *row("b", 8, 106), *row("x<0", 24, 106)]
    assert latex_of_symbols([tall("{", 0, 84, 111), *inner]) == r"\begin{cases} a & x > 0 \\ b & x < 0 \end{cases}"


def test_pieces_of_delimiters_are_one():
    pieces = [tall(char, 0, top, top + 10) for char, top in zip("⎛⎜⎝", (80, 90, 100), strict=True)]
    closing = [tall(char, 20, top, top + 10) for char, top in zip("⎞⎟⎠", (80, 90, 100), strict=True)]
    inner = [glyph(char, 10, baseline) for char, baseline in zip("123", (87, 98, 109), strict=True)]
    assert latex_of_symbols([*pieces, *inner, *closing]) == r"\begin{pmatrix} 1 \\ 2 \\ 3 \end{pmatrix}"


def test_accents_are_put_on_their_letters():
    accent = Symbol("\u0302", (1.0, 91.0, 4.0, 92.5), 100.0, EM, "r", True)
    assert latex_of_symbols([glyph("x", 0), accent, glyph("y", 8)]) == r"\hat{x}y"


def test_dots_are_one_sign():
    dots = [Symbol(".", (x, 99.0, x + 1.0, 100.0), 100.0, EM, "r", True) for x in (12.0, 16.4, 20.8)]
    assert latex_of_symbols([glyph("a", 0), glyph(",", 6), *dots]) == r"a,\ldots"


def test_alphabets_have_their_commands():
    assert latex_of_symbols([glyph("R", 0, style="d"), glyph("L", 7, style="c"), glyph("x", 14, style="b")]) == (
        r"\mathbb{R}\mathcal{L}\mathbf{x}"
    )
    assert latex_of_symbols([glyph("𝑥", 0), glyph("ℝ", 7), glyph("𝛼", 14)]) == r"x\mathbb{R}\alpha"


def test_a_formula_with_a_glyph_that_nobody_knows_is_left_to_its_text():
    assert latex_of_symbols([*row("a="), glyph("\ufffd", 20)]) is None


def test_nothing_is_made_of_nothing_and_of_too_much():
    assert latex_of_symbols([]) is None
    assert latex_of_symbols(row("x" * 2000)) is None


@st.composite
def symbols(draw):
    text = draw(st.sampled_from("abxy019+−=<(){}[]|∑∏∫√⎛⎜⎝⎧⎨⎩⎪⏜⏟→.·'′_^%$#&~\\αφ∈\u0302\u0304\u20d7\u0338한é\ufffd"))
    size = draw(st.sampled_from([5.0, 7.0, 10.0]))
    x, y = draw(st.floats(0, 80)), draw(st.floats(60, 140))
    width, height = draw(st.floats(0.5, 15)), draw(st.floats(0.2, 40))
    return Symbol(text, (x, y, x + width, y + height), y + height, size, draw(st.sampled_from("irbcdfs")), True)


@st.composite
def bars(draw):
    x, y = draw(st.floats(0, 80)), draw(st.floats(60, 140))
    return (x, y, x + draw(st.floats(1, 60)), y + 0.4)


@given(st.lists(symbols(), min_size=1, max_size=25), st.lists(bars(), max_size=5))
def test_what_is_written_renders_wherever_symbols_stand(found, rules):
    latex = latex_of_symbols(found, rules)
    if latex is not None:
        assert renders(latex)
        assert latex.count("{") - latex.count(r"\{") == latex.count("}") - latex.count(r"\}")
