"""Positions of the tokens of formulas, drawn by LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill_eval.cdm.tokens import Formula, FormulaError, Token, parse
from pagemill_eval.limited import Ended, run_limited

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

DPI = 200
MAX_PIXELS = 30_000_000
"""Pixels of a drawn formula (90 MB); a page of A4 has 3.9 million."""
RUN_FORMULAS = 64
"""That one run of LaTeX draws: it starts in 0.1 s and draws a formula in 1 ms."""
RUN_S = 60.0
"""Formulas of one run, which takes 0.2 s."""
_RUN_CPU_S = 5
_RUN_MEMORY = 2**30
_REMEMBERED = 4096
"""Drawn formulas of a process: truths come again for every tool, and short formulas often."""
_REMEDY = (
    "Install LaTeX: apt-get install texlive-latex-base (Debian, Ubuntu), dnf install texlive-scheme-basic (Fedora),"
    " brew install basictex (macOS)."
)
_HEAD = r"""\documentclass[12pt]{article}
\usepackage{amsmath,amssymb}
\pdfhorigin=2bp \pdfvorigin=2bp
\def\ON#1{\pdfcolorstack0 push{#1 rg #1 RG}}
\def\OFF{\pdfcolorstack0 pop\relax}
\newbox\drawn
\def\draw#1#2{\typeout{formula #1 \the\currentgrouplevel}%
\setbox\drawn\hbox{$\displaystyle #2$}%
\pdfpagewidth=\dimexpr\wd\drawn+4bp\relax\pdfpageheight=\dimexpr\ht\drawn+\dp\drawn+4bp\relax
\shipout\box\drawn}
\begin{document}
"""
_PROGRESS = re.compile(r"^(?:formula (\d+) 1$|! ?(.{1,80}))", re.MULTILINE)
"""The number of a formula that begins, outside of any other's groups; an error."""


class Drawing(NamedTuple):
    """A formula's tokens, and the box of each: left, top, right and bottom pixel, and one around them."""

    tokens: tuple[Token, ...]
    boxes: NDArray[np.int64]
    size: tuple[int, int]
    """Width and height of all."""


_drawn: OrderedDict[str, Drawing | str] = OrderedDict()


def draw(formulas: Iterable[str]) -> dict[str, Drawing | str]:
    """Draw formulas, those of this process's last ones from memory.

    Args:
        formulas: LaTeX, in delimiters or not.

    Returns:
        By formula; instead of one that cannot be drawn, why.
    """
    found: dict[str, Drawing | str] = {}
    waiting: dict[str, Formula] = {}
    for latex in dict.fromkeys(formulas):
        if latex in _drawn:
            _drawn.move_to_end(latex)
            found[latex] = _drawn[latex]
            continue
        try:
            waiting[latex] = parse(latex)
        except FormulaError as error:
            found[latex] = str(error)
    names = list(waiting)
    for start in range(0, len(names), RUN_FORMULAS):
        run = names[start : start + RUN_FORMULAS]
        drawn = dict(zip(run, _draw_all([waiting[latex] for latex in run]), strict=True))
        found |= drawn
        _drawn.update(drawn)
    while len(_drawn) > _REMEMBERED:
        _drawn.popitem(last=False)
    return found


@cache
def unavailable() -> str:
    """The reason that nothing can be drawn here, with the remedy; empty if LaTeX is installed."""
    if shutil.which("pdflatex") is None:
        return f"unavailable: there is no pdflatex. {_REMEDY}"
    drawn = draw(["x"])["x"]
    return f"unavailable: pdflatex cannot draw a formula ({drawn}). {_REMEDY}" if isinstance(drawn, str) else ""


@cache
def version() -> str:
    """The program that draws, for stamps of scores."""
    if unavailable():
        return "no LaTeX"
    banner = subprocess.run(
        ["pdflatex", "--version"], capture_output=True, text=True, check=False, timeout=RUN_S
    ).stdout
    return " ".join(banner.split("\n")[0].split()[:2])


def _draw_all(formulas: Sequence[Formula]) -> list[Drawing | str]:
    """Draw in one run; a formula that ends the run is left out, and the others are drawn again."""
    if not formulas:
        return []
    with TemporaryDirectory(prefix="pagemill-") as name:
        folder = Path(name)
        lines = [f"\\draw{{{number}}}{{{formula.source}}}" for number, formula in enumerate(formulas)]
        (folder / "formulas.tex").write_text("\n".join([_HEAD, *lines, "\\end{document}\n"]), encoding="utf-8")
        run = _run(folder)
        ended = f"LaTeX {run.reason}" if run.reason else ""
        errors: dict[int, str] = {}
        number, reason = -1, ended or "LaTeX ended"
        for formula, error in _PROGRESS.findall(run.output):
            if formula:
                number = int(formula)
            else:
                reason = errors[number] = errors.get(number, error)
        if not ended and number == len(formulas) - 1 and "\nOutput written on " in run.output:
            return _pages(folder / "formulas.pdf", formulas, errors)
    if number < 0 or len(formulas) == 1:
        return [reason] * len(formulas)
    if ended or number == len(formulas) - 1:  # by any of them: the last output is lost, or a font is not there
        middle = len(formulas) // 2
        return [*_draw_all(formulas[:middle]), *_draw_all(formulas[middle:])]
    return [*_draw_all(formulas[:number]), reason, *_draw_all(formulas[number + 1 :])]


def _run(folder: Path) -> Ended:
    """Run LaTeX without files elsewhere, within limits."""
    options = ["-no-shell-escape", "-interaction=nonstopmode", "-no-mktex=pk", "-no-mktex=tfm", "formulas.tex"]
    environment = {"max_print_line": "1000", "TEXMFVAR": str(folder), "TEXMFHOME": str(folder)}
    environment |= {"openin_any": "p", "openout_any": "p"}
    return run_limited(
        ["pdflatex", *options],
        folder,
        seconds=RUN_S,
        cpu_seconds=_RUN_CPU_S,
        memory=_RUN_MEMORY,
        environment=environment,
    )


def _pages(file: Path, formulas: Sequence[Formula], errors: dict[int, str]) -> list[Drawing | str]:
    import pypdfium2 as pdfium

    document = pdfium.PdfDocument(file)
    try:
        return [
            errors[number] if number in errors else _boxes(document[number], formula)
            for number, formula in enumerate(formulas)
        ]
    finally:
        document.close()


def _boxes(page: PdfPage, formula: Formula) -> Drawing | str:
    """The box of each token that has pixels of its colour."""
    width, height = page.get_size()
    if width * height * (DPI / 72) ** 2 > MAX_PIXELS:
        return "the drawn formula is too large"
    pixels = page.render(
        scale=DPI / 72, draw_annots=False, no_smoothtext=True, no_smoothpath=True, rev_byteorder=True
    ).to_numpy()
    colours = pixels[..., 1].astype(np.uint16) << 8 | pixels[..., 2]  # no token has red
    rows, columns = np.nonzero((pixels[..., 0] == 0) & (colours > 0) & (colours <= len(formula.tokens)))
    numbers = colours[rows, columns].astype(np.int64) - 1
    if not numbers.size:
        return "nothing is drawn"
    points = np.stack([columns, rows], axis=1)
    low, high = (np.full((len(formula.tokens), 2), start) for start in (np.iinfo(np.int64).max, -1))
    np.minimum.at(low, numbers, points)
    np.maximum.at(high, numbers, points)
    kept = np.flatnonzero(high[:, 0] >= 0)
    low, high = low[kept] - 1, high[kept] + 1
    boxes = np.hstack([low, high]) - np.tile(low.min(axis=0), 2)
    right, bottom = boxes[:, 2:].max(axis=0).tolist()
    return Drawing(tuple(formula.tokens[index] for index in kept), boxes, (right, bottom))
