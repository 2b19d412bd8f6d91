"""Formulas by seed, each as LaTeX (the truth) and as MathML (what is drawn)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from random import Random


class Formula(NamedTuple):
    """One expression in both notations."""

    latex: str
    mathml: str


_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "theta": "θ", "lambda": "λ", "mu": "μ", "pi": "π",
    "rho": "ρ", "sigma": "σ", "omega": "ω",
}  # fmt: skip
_LETTERS = "abcdkmnpqrstuvxyz"
_RELATIONS = {"=": "=", r"\leq": "≤", r"\geq": "≥", r"\approx": "≈", "<": "&lt;"}
_FUNCTIONS = ("sin", "cos", "log", "exp", "tan")


def letter(random: Random) -> Formula:
    """A Latin or Greek variable."""
    if random.random() < 0.3:
        name = random.choice(sorted(_GREEK))
        return Formula(f"\\{name}", f"<mi>{_GREEK[name]}</mi>")
    name = random.choice(_LETTERS)
    return Formula(name, f"<mi>{name}</mi>")


def number(random: Random) -> Formula:
    """A small whole number."""
    value = str(random.randint(2, 12))
    return Formula(value, f"<mn>{value}</mn>")


def operator(latex: str, sign: str) -> Formula:
    """A sign between two expressions."""
    return Formula(f" {latex} ", f"<mo>{sign}</mo>")


def row(*parts: Formula) -> Formula:
    """Expressions in a row."""
    return Formula("".join(p.latex for p in parts), "<mrow>" + "".join(p.mathml for p in parts) + "</mrow>")


def superscript(base: Formula, raised: Formula) -> Formula:
    """A power."""
    return Formula(f"{base.latex}^{{{raised.latex}}}", f"<msup>{base.mathml}{raised.mathml}</msup>")


def subscript(base: Formula, lowered: Formula) -> Formula:
    """An index."""
    return Formula(f"{base.latex}_{{{lowered.latex}}}", f"<msub>{base.mathml}{lowered.mathml}</msub>")


def fraction(above: Formula, below: Formula) -> Formula:
    """A fraction."""
    return Formula(f"\\frac{{{above.latex}}}{{{below.latex}}}", f"<mfrac>{above.mathml}{below.mathml}</mfrac>")


def root(inside: Formula) -> Formula:
    """A square root."""
    return Formula(f"\\sqrt{{{inside.latex}}}", f"<msqrt>{inside.mathml}</msqrt>")


def accent(random: Random, base: Formula) -> Formula:
    """A letter under an accent."""
    latex, sign = random.choice((("hat", "^"), ("bar", "¯"), ("vec", "→")))
    return Formula(f"\\{latex}{{{base.latex}}}", f'<mover accent="true">{base.mathml}<mo>{sign}</mo></mover>')


def function(random: Random, inside: Formula) -> Formula:
    """A named function of an expression."""
    name = random.choice(_FUNCTIONS)
    return Formula(
        f"\\{name}({inside.latex})",
        f'<mi>{name}</mi><mo stretchy="false">(</mo>{inside.mathml}<mo stretchy="false">)</mo>',
    )


def large(random: Random, inside: Formula) -> Formula:
    """A sum, product or integral with limits."""
    index = Formula("i", "<mi>i</mi>")
    upper = random.choice((Formula("n", "<mi>n</mi>"), Formula(r"\infty", "<mi>∞</mi>")))
    kind = random.choice(("sum", "prod", "int"))
    if kind == "int":
        zero = Formula("0", "<mn>0</mn>")
        d = Formula(r" \, d x", "<mspace width='0.17em'/><mi>d</mi><mi>x</mi>")
        return Formula(
            f"\\int_{{0}}^{{{upper.latex}}} {inside.latex}{d.latex}",
            f"<msubsup><mo>∫</mo>{zero.mathml}{upper.mathml}</msubsup>{inside.mathml}{d.mathml}",
        )
    start = row(index, Formula("=", "<mo>=</mo>"), Formula("1", "<mn>1</mn>"))
    sign = {"sum": "∑", "prod": "∏"}[kind]
    return Formula(
        f"\\{kind}_{{i=1}}^{{{upper.latex}}} {inside.latex}",
        f'<munderover><mo largeop="true">{sign}</mo>{start.mathml}{upper.mathml}</munderover>{inside.mathml}',
    )


def matrix(random: Random) -> Formula:
    """A matrix of two or three rows in brackets."""
    rows = [[random.choice((letter, number))(random) for _ in range(2)] for _ in range(random.choice((2, 3)))]
    latex = r" \\ ".join(" & ".join(cell.latex for cell in cells) for cells in rows)
    mathml = "".join("<mtr>" + "".join(f"<mtd>{cell.mathml}</mtd>" for cell in cells) + "</mtr>" for cells in rows)
    return Formula(
        f"\\begin{{pmatrix}} {latex} \\end{{pmatrix}}",
        f"<mo>(</mo><mtable>{mathml}</mtable><mo>)</mo>",
    )


def term(random: Random, depth: int) -> Formula:
    """One term, at most ``depth`` structures deep."""
    if depth == 0:
        return letter(random) if random.random() < 0.8 else number(random)
    inner = term(random, depth - 1)
    match random.randrange(8):
        case 0:
            return superscript(letter(random), random.choice((number, letter))(random))
        case 1:
            return subscript(letter(random), random.choice((number, letter))(random))
        case 2:
            return fraction(expression(random, depth - 1, 2), term(random, 0))
        case 3:
            return root(expression(random, depth - 1, 2))
        case 4:
            return function(random, inner)
        case 5:
            return accent(random, letter(random))
        case _:
            return row(number(random), inner) if inner.latex[:1].isalpha() else inner


def expression(random: Random, depth: int, terms: int) -> Formula:
    """Terms joined by signs."""
    parts = [term(random, depth)]
    for _ in range(terms - 1):
        sign = random.choice((("+", "+"), ("-", "−")))
        parts += [operator(*sign), term(random, depth)]
    return row(*parts)


def _relation(random: Random, left: Formula, right: Formula) -> Formula:
    return row(left, operator(*random.choice(sorted(_RELATIONS.items()))), right)


def inline(random: Random) -> Formula:
    """A short formula within a line."""
    left = random.choice(
        (letter(random), superscript(letter(random), number(random)), subscript(letter(random), number(random)))
    )
    return _relation(random, left, random.choice((number(random), expression(random, 0, 2))))


def display(random: Random) -> Formula:
    """A formula on lines of its own."""
    kind = random.randrange(5)
    if kind == 0:
        return _relation(random, letter(random), large(random, term(random, 1)))
    if kind == 1:
        return _relation(random, accent(random, letter(random)), matrix(random))
    if kind == 2:
        return _relation(random, letter(random), fraction(expression(random, 1, 2), expression(random, 1, 2)))
    return _relation(random, letter(random), expression(random, 2, random.choice((2, 3))))
