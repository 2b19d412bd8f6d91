"""Formulas of web pages and OpenDocument as LaTeX."""

import pytest

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat
from pagemill.readers.html import of_markup

X, Y = "<mi>x</mi>", "<mi>y</mi>"
SUM = "<mo>∑</mo>"


@pytest.mark.parametrize(
    ("markup", "latex"),
    [
        (f"<mfrac>{X}<mrow>{Y}<mo>+</mo><mn>1</mn></mrow></mfrac>", r"\frac{x}{y+1}"),
        (f"<msqrt>{X}{Y}</msqrt><mroot>{X}<mn>3</mn></mroot>", r"\sqrt{xy}\sqrt[3]{x}"),
        (f"<msub>{X}<mn>1</mn></msub><msup>{Y}<mn>2</mn></msup>", "x_{1}y^{2}"),
        (f"<munderover>{SUM}{X}{Y}</munderover><munder><mi>lim</mi>{X}</munder>", r"\sum_{x}^{y}\lim_{x}"),
        (f"<mover>{X}<mo>^</mo></mover><munder>{X}{Y}</munder>", r"\hat{x}\underset{y}{x}"),
        (f"<mfenced open='['>{X}{Y}</mfenced>", r"\left[x,y\right)"),
        (f"<mtable><mtr><mtd>{X}</mtd><mtd>{Y}</mtd></mtr></mtable>", r"\begin{matrix}x & y\end{matrix}"),
        ("<mi>sin</mi><mi mathvariant='bold'>x</mi><mtext>50%</mtext>", r"\sin\mathbf{x}\text{50\%}"),
        (f"<semantics>{X}<annotation encoding='StarMath 5.0'>a</annotation></semantics>", "x"),
        (f"<semantics>{X}<annotation encoding='application/x-tex'>\\xi</annotation></semantics>", r"\xi"),
    ],
)
def test_elements(markup: str, latex: str):
    beside, alone = of_markup(f"<p>A <math>{markup}</math></p><p><math>{markup}</math></p>").parts[0].blocks
    assert (beside.content, beside.content_format) == (f"A ${latex}$", ContentFormat.MARKDOWN)
    assert (alone.label, alone.content) == (Label.DISPLAY_FORMULA, latex)


def test_a_formula_that_is_too_long_or_too_deep_keeps_its_text():
    (long,) = of_markup(f"<p>A <math>{X * 10_000}</math></p>").parts[0].blocks
    assert (long.content or "").count("x") == 10_000
    (deep,) = of_markup(f"<p>A <math>{'<mrow>' * 90}{X}{'</mrow>' * 90}</math></p>").parts[0].blocks
    assert "x" in (deep.content or "")
