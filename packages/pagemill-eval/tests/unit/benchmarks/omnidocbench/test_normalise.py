import pytest

from pagemill_eval.benchmarks.omnidocbench.normalise import latex_to_text, normal_formula, normal_table, normal_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world_1!", "Helloworld_1"),
        ("a $x^2$ \\(\\alpha\\)", "ax2α"),
        ("$a\\_b$", "a_b"),
        ("a\\nb/tc\td", "abcd"),
        ("물레시 공고", "물레시공고"),
        ("हिन्दी", "हनद"),
        ("$x\n_1$", "x_1"),
    ],
)
def test_text(text: str, expected: str) -> None:
    assert normal_text(text) == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("$$\\mathbf{A} = 1 \\tag{2}.$$", "{a}=1"),
        ("\\[ x \\quad y \\]", "xy"),
        ("\\leftarrow", "arrow"),
        ("\\begin{array}{l}a\\\\b\\end{array}", "{l}a\\\\b"),
        ("", ""),
    ],
)
def test_formula(formula: str, expected: str) -> None:
    assert normal_formula(formula) == expected


def test_table() -> None:
    table = (
        'x<table class="k"><thead><tr><th style="a">H<sup>2</sup></th></tr></thead><tbody><tr><td colspan="2">½ &lt;'
        '<span>s</span><math alttext="x^2"><mi>x</mi></math></td></tr></tbody></table>'
    )
    rows = '<tr><td>H2</td></tr><tr><td colspan="2">1⁄2 <s$x^2$</td></tr>'
    assert normal_table(table) == f'<html><body><table border="1" >{rows}</table></body></html>'
    assert normal_table("no table") == ""


def test_a_backslash_at_the_end_does_not_hang() -> None:
    assert latex_to_text("a\\") == "a "
    latex_to_text("{\\frac{")
