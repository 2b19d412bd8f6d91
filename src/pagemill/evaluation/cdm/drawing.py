"""Where the tokens of formulas are when LaTeX has drawn them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import OrderedDict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pagemill.evaluation.cdm.tokens import Formula, FormulaError, Token, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

DPI = 200
MAX_PIXELS = 30_000_000
"""Of a drawn formula (90 MB); a page of A4 has 3.9 million."""
RUN_FORMULAS = 64
"""That one run of LaTeX draws: it starts in 0.1 s and draws a formula in 1 ms."""
RUN_S = 60.0
"""Of one run, which takes 0.2 s; formulas that take longer than 5 s of the processor end it before (Linux)."""
_RUN_PROCESSOR_S = 5
_RUN_MEMORY = 2**30
_RUN_FILE = 2**26
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
_FATAL = re.compile(r"^!(?:pdfTeX error: )?(.{1,80})", re.MULTILINE)
_PROGRESS = re.compile(r"^formula (\d+) 1$|^(!) |^(Output written on) ", re.MULTILINE)


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
        By formula; in place of one that cannot be drawn, why.
    """
    wanted = list(dict.fromkeys(formulas))
    found: dict[str, Drawing | str] = {}
    waiting: dict[str, Formula] = {}
    for latex in wanted:
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
        found.update(zip(run, _draw_all([waiting[latex] for latex in run]), strict=True))
    for latex in names:
        _drawn[latex] = found[latex]
    while len(_drawn) > _REMEMBERED:
        _drawn.popitem(last=False)
    return found


@cache
def unavailable() -> str:
    """Why nothing can be drawn here, and what helps; empty if LaTeX is there."""
    if shutil.which("pdflatex") is None:
        return f"unavailable: there is no pdflatex. {_REMEDY}"
    drawn = draw(["x"])["x"]
    return f"unavailable: pdflatex cannot draw a formula ({drawn}). {_REMEDY}" if isinstance(drawn, str) else ""


@cache
def version() -> str:
    """The program that draws, for stamps of scores."""
    if unavailable():
        return "no LaTeX"
    said = subprocess.run(["pdflatex", "--version"], capture_output=True, text=True, check=False, timeout=RUN_S).stdout
    return " ".join(said.split("\n")[0].split()[:2])


def _draw_all(formulas: Sequence[Formula]) -> list[Drawing | str]:
    """Draw in one run; what ends the run is left out, and the others are drawn without it."""
    if not formulas:
        return []
    with TemporaryDirectory(prefix="pagemill-") as name:
        folder = Path(name)
        lines = [f"\\draw{{{number}}}{{{formula.source}}}" for number, formula in enumerate(formulas)]
        (folder / "formulas.tex").write_text("\n".join([_HEAD, *lines, "\\end{document}\n"]), encoding="utf-8")
        ended = _run(folder)
        said = (folder / "said").read_text(encoding="utf-8", errors="replace")
        errors: dict[int, str] = {}
        number, complete = -1, False
        for match in _PROGRESS.finditer(said):
            if match[1]:
                number = int(match[1])
            elif match[2]:
                errors.setdefault(number, said[match.end() : match.end() + 80].split("\n")[0])
            else:
                complete = True
        if complete and ended == "" and number == len(formulas) - 1 and -1 not in errors:
            return _pages(folder / "formulas.pdf", formulas, errors)
    reason = ended or errors.get(number) or (f"LaTeX: {fatal[1]}" if (fatal := _FATAL.search(said)) else "LaTeX ended")
    if number < 0 or len(formulas) == 1:
        return [reason] * len(formulas)
    if ended or number == len(formulas) - 1:  # by any of them: what was said last is lost, or a font is not there
        middle = len(formulas) // 2
        return [*_draw_all(formulas[:middle]), *_draw_all(formulas[middle:])]
    return [*_draw_all(formulas[:number]), reason, *_draw_all(formulas[number + 1 :])]


def _run(folder: Path) -> str:
    """Run LaTeX without a shell, without files elsewhere, within limits; what it says is in a file.

    Returns:
        Why it was ended, if it was.
    """
    options = ["-no-shell-escape", "-interaction=nonstopmode", "-no-mktex=pk", "-no-mktex=tfm", "formulas.tex"]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "max_print_line": "1000"}
    environment |= {"openin_any": "p", "openout_any": "p", "TEXMFVAR": str(folder), "TEXMFHOME": str(folder)}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            ["pdflatex", *options],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            if sys.platform == "linux":
                _limit(process.pid)
            process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            return f"LaTeX took over {RUN_S:g} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return f"LaTeX was ended by signal {-process.returncode}" if process.returncode < 0 else ""


def _limit(process: int) -> None:
    import resource

    for what, most in (
        (resource.RLIMIT_AS, _RUN_MEMORY),
        (resource.RLIMIT_FSIZE, _RUN_FILE),
        (resource.RLIMIT_CPU, _RUN_PROCESSOR_S),
    ):
        resource.prlimit(process, what, (most, most))


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


def _boxes(page: object, formula: Formula) -> Drawing | str:
    """The box of each token that has pixels of its colour."""
    width, height = page.get_size()  # type: ignore[attr-defined]
    if width * height * (DPI / 72) ** 2 > MAX_PIXELS:
        return "the drawn formula is too large"
    pixels = page.render(  # type: ignore[attr-defined]
        scale=DPI / 72, draw_annots=False, no_smoothtext=True, no_smoothpath=True, rev_byteorder=True
    ).to_numpy()
    colours = (pixels[..., 0].astype(np.int64) << 16) | (pixels[..., 1].astype(np.int64) << 8) | pixels[..., 2]
    rows, columns = np.nonzero((colours > 0) & (colours <= len(formula.tokens)))
    numbers = colours[rows, columns] - 1
    boxes = np.empty((len(formula.tokens), 4), np.int64)
    boxes[:, :2], boxes[:, 2:] = np.iinfo(np.int64).max, -1
    for edge, (extreme, where) in enumerate(
        ((np.minimum, columns), (np.minimum, rows), (np.maximum, columns), (np.maximum, rows))
    ):
        extreme.at(boxes[:, edge], numbers, where)
    kept = np.flatnonzero(boxes[:, 2] >= 0)
    if not kept.size:
        return "nothing is drawn"
    boxes = boxes[kept] + np.array([-1, -1, 1, 1])
    boxes -= np.tile(boxes[:, :2].min(axis=0), 2)
    right, bottom = (int(edge) for edge in boxes[:, 2:].max(axis=0))
    return Drawing(tuple(formula.tokens[index] for index in kept), boxes, (right, bottom))
