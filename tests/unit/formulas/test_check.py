r"""What LaTeX renders, and LaTeX of plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.formulas.check import renders
from pagemill.formulas.reading import latex_of_text

GOOD = [
    "x",
    r"\frac{a}{b}",
    r"x_{i}^{2}",
    r"f''_{n}",
    r"\sqrt[3]{x}",
    r"\left(\frac{1}{2}\right)^{n}",
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    r"\begin{cases} x & \text{if } x > 0 \\ - x & \text{otherwise} \end{cases}",
    r"\left\{x\right\}",
    r"\text{50\% of it}",
    r"\underbrace{a + b}_{n}",
]
BAD = [
    "",
    "{",
    "a}",
    r"\frac{a}",
    r"\frac",
    "x_",
    "x_{i}_{j}",
    "x^{2}^{3}",
    r"\left(x",
    r"x\right)",
    r"\left x \right)",
    r"\begin{pmatrix} a",
    r"\begin{pmatrix} a \end{cases}",
    r"\begin{document} a \end{document}",
    r"\unknown",
    r"\input{file}",
    "a & b",
    r"a \\ b",
    "$x$",
    "50%",
    r"\text{$}",
    r"\sqrt[3{x}",
    "{" * 100 + "x" + "}" * 100,
]


@pytest.mark.parametrize("latex", GOOD)
def test_sound_latex_renders(latex):
    assert renders(latex)


@pytest.mark.parametrize("latex", BAD)
def test_unsound_latex_does_not(latex):
    assert not renders(latex)


@pytest.mark.parametrize("piece", ["{", r"\hat", r"\sqrt[", r"x_\vec", r"\left(", r"\begin{matrix}"])
def test_latex_without_an_end_does_not(piece):
    assert not renders(piece * 1400 + "x")


@given(st.text(alphabet=r"\{}_^&$%#~[]ab1 ", max_size=60))
def test_any_text_is_judged(text):
    assert renders(text) in (True, False)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x = α + 2", r"x = \alpha + 2"),
        ("sin αx", r"\sin \alpha x"),
        ("E = mc2", "E = mc2"),
        ("if x ∈ A", r"if x \in A"),
        ("cost = 5%", r"\text{cost} = 5\%"),
        ("", ""),
        ("a\nb", r"\begin{gathered} a \\ b \end{gathered}"),
    ],
)
def test_plain_text_shows_the_same_signs(text, latex):
    assert latex_of_text(text) == latex


@given(st.text(max_size=80))
def test_plain_text_becomes_latex_that_renders(text):
    latex = latex_of_text(text)
    assert not latex or renders(latex)
