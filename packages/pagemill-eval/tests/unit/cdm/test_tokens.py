import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.formulas.check import KNOWN
from pagemill_eval.cdm import tokens
from pagemill_eval.cdm.commands import ENVIRONMENTS, TEMPLATES, TEXTS
from pagemill_eval.cdm.tokens import MAX_CHARACTERS, MAX_TOKENS, FormulaError, parse

PIECES = st.lists(
    st.sampled_from(
        [
            *("{", "}", "^", "_", "'", "&", "\\\\", "\\", "$", "%", "#", "~", " ", "\n", "[", "]", "(", "a", "1", "字"),
            *("\\left", "\\right", ".", "\\begin", "\\end", "{array}", "{cc}", "{cases}", "\\text", "\\mathrm", "\\ON"),
            *(
                "\\not",
                "\\hspace",
                "\\input",
                "\\csname",
                "\\frac",
                "\\sqrt",
                "\\over",
                "\\P",
                "\\mbox",
                "\\big",
                "\x00",
            ),
        ]
    ),
    max_size=40,
).map("".join)


def names(latex: str) -> list[str]:
    return [token.name for token in parse(latex).tokens]


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("x^2_i", ["x", "i", "2"]),
        ("\\frac ab", ["\\frac", "a", "b"]),
        ("{a \\over b}", ["\\frac", "a", "b"]),
        ("$$ \\sqrt[3]{x} $$", ["\\sqrt", "3", "x"]),
        ("f''", ["f", "'", "'"]),
        ("\\operatorname { s i n } x", ["\\sin", "x"]),
        ("\\mathrm{sin} x", ["\\sin", "x"]),
        ("\\mathrm{si}", ["\\mathrms", "\\mathrmi"]),
        ("\\left( a \\right.", ["(", "a"]),
        ("\\begin{pmatrix} a & b \\\\ c \\end{pmatrix}", ["(", "a", "b", "c", ")"]),
        ("\\begin{array}{c|c} a & b \\\\[2pt] \\hline c & d \\\\ \\end{array}", ["a", "b", "c", "d"]),
        ("a \\\\ b", ["a", "b"]),
        ("\\text{if $x$ 字}", ["i", "f", "x", "字"]),
        ("α≠∞", ["\\alpha", "\\not", "=", "\\infty"]),
        ("a % b", ["a"]),
        ("\\hspace{1em} \\kern 3pt a \\tag{1} \\label{x}", ["a"]),
        ("\\textcolor{red}{a} {\\bf b}", ["a", "\\mathbfb"]),
        ("", []),
    ],
)
def test_tokens(latex: str, expected: list[str]) -> None:
    assert names(latex) == expected


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        ("\\le", "\\leq", True),
        ("\\mathbf{a}", "a", True),
        ("\\mathbb{R}", "R", False),
        ("\\dfrac12", "\\frac12", True),
        ("（", "(", True),
        ("\\phi", "\\varphi", False),
    ],
)
def test_synonyms(one: str, two: str, alike: bool) -> None:
    bases = [[token.base for token in parse(each).tokens] for each in (one, two)]
    assert (bases[0] == bases[1]) is alike
    assert names(one) != names(two)


@pytest.mark.parametrize(
    "latex",
    [
        *("{", "}", "a^", "x_1_2", "\\frac{a}", "\\left( a", "\\right)", "\\begin{array}{c} a", "a & b", "$a", "#"),
        *("\\begin{tikzpicture}\\end{tikzpicture}", "\\begin{array}{c}a\\end{matrix}", "\\left x", "\\", "\\text{a"),
        *("{" * 100 + "}" * 100, "\\text{$" * 10 + "$}" * 10, "\\overset{a}{" * 9 + "}" * 9),
        *("a" * (MAX_TOKENS + 1), " " * (MAX_CHARACTERS + 1)),
    ],
)
def test_what_is_no_formula(latex: str) -> None:
    with pytest.raises(FormulaError):
        parse(latex)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "input",
            "include",
            "openout",
            "openin",
            "write",
            "read",
            "csname",
            "catcode",
            "def",
            "let",
            "loop",
            "special",
        ),
        *("newcommand", "immediate", "pdfobj", "usepackage", "verb", "jobname", "ON", "OFF", "draw", "drawn", "end"),
        *(
            "expandafter",
            "noexpand",
            "char",
            "mathchardef",
            "scantokens",
            "everymath",
            "errmessage",
            "shipout",
            "relax",
        ),
    ],
)
def test_commands_of_tex_are_not_let_in(command: str) -> None:
    for latex in (
        f"\\{command}",
        f"\\{command}{{a}}",
        f"\\text{{\\{command} a}}",
        f"\\left\\{command}",
        f"a^\\{command}",
    ):
        with pytest.raises(FormulaError):
            parse(latex)


ALLOWED = KNOWN | {name[1:] for name in (*TEMPLATES, *TEXTS)} | {"ON", "OFF", "left", "right", "begin", "end", "array"}
ALLOWED |= {
    "rule",
    "rmfamily",
    "bfseries",
    "sffamily",
    "ttfamily",
    "itshape",
    "genfrac",
    "operatorname",
    "prime",
    "hspace",
    "overset",
    "cal",
    "sf",
    "tt",
    "it",
    "bf",
    "rm",
}


@given(PIECES | st.text(max_size=60))
def test_whatever_is_written_only_known_commands_come_out(latex: str) -> None:
    try:
        source = parse(latex).source
    except FormulaError:
        return
    assert set(re.findall(r"\\([A-Za-z]+)", source)) <= ALLOWED
    plain = re.sub(r"\\.", "", source)
    assert plain.count("{") == plain.count("}")
    assert source.isascii()
    assert not set(plain) & set("#%\0")
    assert source.count("\\ON{") == len(re.findall(r"\\OFF(?![A-Za-z])", source))


def test_the_work_grows_with_the_length_alone() -> None:
    """Hostile text of the greatest length: seconds if any part took time with its square."""
    for piece in (
        "{",
        "$",
        "\\[",
        "\\left(",
        "a_",
        "\\begin{array}{c}",
        "%",
        "\\text{",
        "^",
        "\\mathrm{",
        "\\\\[",
        "~ ",
    ):
        for latex in (piece * (MAX_CHARACTERS // len(piece)), "\\[" + piece * (MAX_CHARACTERS // len(piece) - 2)):
            try:
                parse(latex)
            except FormulaError:
                continue


def test_every_environment_has_delimiters_and_columns() -> None:
    assert all(len(each) == 3 for each in ENVIRONMENTS.values())


@pytest.mark.parametrize(
    "command", ["\\phantom", "\\smash", "\\overrightarrow", "\\underleftarrow", "\\xmapsto", "\\sqrt[3]"]
)
def test_what_latex_sets_several_times_is_not_nested_deeply(command: str) -> None:
    parse(f"{command}{{" * 3 + "a" + "}" * 3)
    with pytest.raises(FormulaError, match="deeply"):
        parse(f"{command}{{" * 6 + "a" + "}" * 6)


def test_roots_are_nested_as_braces_are() -> None:
    parse("\\sqrt{" * 25 + "a" + "}" * 25)


def test_a_length_takes_time_with_its_length_alone() -> None:
    assert not tokens._LENGTH.fullmatch(" " * 400_000 + "x")
    assert tokens._LENGTH.fullmatch(" - 1.5 em ")
