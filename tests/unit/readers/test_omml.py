"""Formulas of Office as LaTeX, which all render."""

import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from pagemill.formulas.check import renders
from pagemill.readers.omml import latex_of_omml

SPACE = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" ' + nsdecls("w")


def r(text: str, properties: str = "") -> str:
    return f"<m:r>{f'<m:rPr>{properties}</m:rPr>' if properties else ''}<m:t>{text}</m:t></m:r>"


def e(*elements: str, name: str = "e") -> str:
    return "".join(f"<m:{name}>{each}</m:{name}>" for each in elements)


def kind(name: str, inside: str, **properties: str) -> str:
    told = "".join(f'<m:{key} m:val="{value}"/>' for key, value in properties.items())
    return f"<m:{name}><m:{name}Pr>{told}</m:{name}Pr>{inside}</m:{name}>"


LIMIT = kind("limLow", e(r("lim")) + e(r("x→0"), name="lim"))
MATRIX = kind("m", e(e(r("a"), r("b")), e(r("c"), r("d")), name="mr"))


@pytest.mark.parametrize(
    ("markup", "latex"),
    [
        (r("αβ→∞"), r"\alpha\beta\to\infty"),
        ("<m:r><w:t>a</w:t></m:r>", "a"),
        (r("50%&amp;{x}"), r"50\%\&\{x\}"),
        (r("if ", "<m:nor/>") + r("x"), r"\text{if }x"),
        (r("R", '<m:scr m:val="double-struck"/>'), r"\mathbb{R}"),
        (r("v", '<m:sty m:val="b"/>'), r"\mathbf{v}"),
        (kind("f", e(r("a"), name="num") + e(r("b"), name="den")), r"\frac{a}{b}"),
        (kind("f", e(r("n"), name="num") + e(r("k"), name="den"), type="noBar"), r"\begin{matrix}n \\ k\end{matrix}"),
        (kind("sSubSup", e(r("x")) + e(r("i"), name="sub") + e(r("2"), name="sup")), "x_{i}^{2}"),
        (kind("rad", "<m:deg/>" + e(r("x")), degHide="1"), r"\sqrt{x}"),
        (kind("rad", e(r("3"), name="deg") + e(r("x"))), r"\sqrt[3]{x}"),
        (kind("nary", e(r("i=1"), name="sub") + e(r("n"), name="sup") + e(r("i")), chr="∑"), r"\sum_{i=1}^{n} i"),
        (kind("nary", e(r("D"), name="sub") + "<m:sup/>" + e(r("f")), supHide="1"), r"\int_{D} f"),
        (kind("d", e(r("x")), begChr="[", endChr=")"), r"\left[x\right)"),
        (kind("d", e(r("x"), r("y")), begChr="⟨", endChr="⟩"), r"\left\langle x|y\right\rangle"),
        (kind("d", e(MATRIX)), r"\begin{pmatrix}a & b \\ c & d\end{pmatrix}"),
        (kind("d", e(MATRIX), begChr="[", endChr="]"), r"\begin{bmatrix}a & b \\ c & d\end{bmatrix}"),
        (kind("d", e(kind("eqArr", e(r("a"), r("b")))), begChr="{", endChr=""), r"\begin{cases}a \\ b\end{cases}"),
        (kind("func", e(r("sin"), name="fName") + e(r("x"))), r"\sin x"),
        (
            kind("func", e(LIMIT, name="fName") + e(r("f"))),
            r"\lim_{x\to0}f",
        ),
        (kind("acc", e(r("x"))), r"\hat{x}"),
        (kind("acc", e(r("AB")), chr="⃗"), r"\overrightarrow{AB}"),
        (kind("acc", e(r("x")), chr="̇"), r"\dot{x}"),
        (kind("bar", e(r("z")), pos="top"), r"\overline{z}"),
        (kind("groupChr", e(r("x+y"))), r"\underbrace{x+y}"),
        (kind("borderBox", e(r("x"))), r"\boxed{x}"),
        (kind("unknown", e(r("x"))), "x"),
    ],
)
def test_formulas(markup: str, latex: str):
    assert latex_of_omml(parse_xml(f"<m:oMath {SPACE}>{markup}</m:oMath>")) == latex
    assert renders(latex)


def test_a_formula_that_is_too_deep_ends():
    markup = r("x")
    for _ in range(60):
        markup = kind("rad", e(markup))
    assert latex_of_omml(parse_xml(f"<m:oMath {SPACE}>{markup}</m:oMath>")).startswith(r"\sqrt{\sqrt{")
