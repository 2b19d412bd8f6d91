from pathlib import Path

import pytest

from pagemill.formulas.check import KNOWN
from pagemill_eval.cdm import drawing
from pagemill_eval.cdm.commands import TEMPLATES
from pagemill_eval.cdm.drawing import Drawing, draw, unavailable
from pagemill_eval.cdm.tokens import Formula, Token

with_latex = pytest.mark.skipif(bool(unavailable()), reason=unavailable()[:80])
TOKEN = Token("x", "x")


def box(latex: str) -> dict[str, tuple[int, int, int, int]]:
    found = draw([latex])[latex]
    assert isinstance(found, Drawing), found
    return {token.name: tuple(edges) for token, edges in zip(found.tokens, found.boxes.tolist(), strict=True)}


@with_latex
def test_a_numerator_is_above_its_bar_and_that_above_the_denominator() -> None:
    boxes = box("\\frac{a}{b}")
    assert boxes["a"][3] <= boxes["\\frac"][1] + 3
    assert boxes["\\frac"][3] <= boxes["b"][1] + 3
    assert boxes["\\frac"][0] <= boxes["a"][0]


@with_latex
def test_both_delimiters_have_a_box_of_their_own() -> None:
    boxes = box("\\left( \\sum_{i}^{n} x \\right]^{2}")
    assert boxes["("][2] < boxes["\\sum"][0] < boxes["x"][0] < boxes["]"][0] < boxes["2"][0]
    assert boxes["n"][3] < boxes["\\sum"][3] < boxes["i"][3]
    assert boxes["2"][1] <= boxes["]"][1]


@with_latex
def test_a_letter_that_the_fonts_do_not_have_has_a_place() -> None:
    boxes = box("a \\text{字} b")
    assert boxes["a"][2] <= boxes["字"][0] + 2 < boxes["字"][2] <= boxes["b"][0] + 2


@with_latex
def test_what_is_not_drawn_has_no_box() -> None:
    assert set(box("a \\phantom{b} c")) == {"a", "c"}
    assert draw([""])[""] == "nothing is drawn"
    assert draw(["\\quad"])["\\quad"] == "nothing is drawn"


@with_latex
def test_a_formula_with_an_error_costs_no_other() -> None:
    found = draw(["a", "\\limits", "\\left(x\\right)", "\\nosuch", "b"])
    assert [isinstance(each, Drawing) for each in found.values()] == [True, False, True, False, True]


@with_latex
@pytest.mark.parametrize(
    "bad",
    ["\\end{document}", "}\\textsf{", "\\fonttwo", pytest.param("\\loop\\iftrue\\repeat", marks=pytest.mark.slow)],
)
def test_one_that_ends_the_run_costs_no_other(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What :func:`parse` does not let in, given to LaTeX all the same."""
    monkeypatch.setattr(drawing, "RUN_S", 5.0)
    bad = bad.replace("\\fonttwo", "\\font\\two=nosuch \\two x")
    sources = ["\\ON{0 0 .0039}a\\OFF ", bad, "\\ON{0 0 .0039}b\\OFF "]
    found = drawing._draw_all([Formula((TOKEN,), source) for source in sources])
    assert [isinstance(each, Drawing) for each in found] == [True, False, True]


@with_latex
def test_no_file_is_read_or_written_elsewhere(tmp_path: Path) -> None:
    """Even past :func:`parse`."""
    secret = tmp_path / "secret.tex"
    secret.write_text("\\ON{0 0 .0039}secret\\OFF ")
    sources = [
        f"\\input{{{secret}}}",
        f"\\immediate\\openout5={tmp_path}/out \\immediate\\write5{{x}}",
        "\\immediate\\write18{ls}",
    ]
    found = drawing._draw_all([Formula((TOKEN,), source) for source in sources])
    assert not any(isinstance(each, Drawing) for each in found)
    assert list(tmp_path.iterdir()) == [secret]


@with_latex
@pytest.mark.slow
def test_latex_itself_has_every_command_that_is_let_in() -> None:
    with_arguments = {name: template.count("#") + template.count("!") for name, template in TEMPLATES.items()}
    commands = with_arguments | {f"\\{name}": 0 for name in KNOWN - {name[1:] for name in TEMPLATES}}
    found = draw(name + "{a}" * arguments for name, arguments in commands.items())
    drawn = {name for name, arguments in commands.items() if isinstance(found[name + "{a}" * arguments], Drawing)}
    assert drawn >= {name for name, template in TEMPLATES.items() if template.startswith("@") and "[" not in template}
    reasons = {why for why in found.values() if isinstance(why, str)}
    assert not {why for why in reasons if "ndefined" in why or "LaTeX" in why}


@with_latex
def test_a_formula_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    draw(["q_1"])
    monkeypatch.setattr(drawing, "_draw_all", pytest.fail)
    assert isinstance(draw(["q_1"])["q_1"], Drawing)


def test_without_latex_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing.shutil, "which", lambda name: None)
    unavailable.cache_clear()
    try:
        assert "texlive-latex-base" in unavailable()
    finally:
        unavailable.cache_clear()


@with_latex
@pytest.mark.parametrize(
    "latex",
    [
        "\\begin{array}{c} \\textit{a $\\begin{array}{cc} b & c \\end{array}$} & d \\end{array}",
        "°^{2} \\degree^2",
        "\\left. \\frac{a}{b} \\middle/ c \\right|_{x=1}^{2}",
        "{\\bf a} \\over \\textbf{b \\emph{c}}",
        "\\substack{a \\\\ b} \\overset{\\text{def}}{=} \\mathop{\\rm lim}\\limits_{x}",
    ],
)
def test_constructions_that_latex_is_picky_about(latex: str) -> None:
    assert isinstance(draw([latex])[latex], Drawing)
