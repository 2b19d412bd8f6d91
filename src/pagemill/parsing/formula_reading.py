"""Display formulas of which only the signs are known, read from their picture by an engine where there is one."""

from __future__ import annotations

from collections.abc import Sequence

from pagemill.document.labels import Label, Task
from pagemill.document.page import ContentFormat, PageError, PageResult, Region
from pagemill.errors import PagemillError
from pagemill.formulas.check import renders
from pagemill.late import re
from pagemill.parsing.record import region_error
from pagemill.recognition.base import RecognizedFormula
from pagemill.recognition.vlm.guard import find_loop

_DELIMITERS = re.compile(r"^(?:\$\$?|\\\[|\\\()\s*|\s*(?:\$\$?|\\\]|\\\))$")


def unread_formulas(record: PageResult) -> list[Region]:
    """The display formulas that have no LaTeX of their own."""
    return [
        region
        for region in record.regions
        if region.label is Label.DISPLAY_FORMULA and region.content_format is ContentFormat.FORMULA_TEXT
    ]


def take_latex(
    record: PageResult, formulas: Sequence[Region], read: Sequence[RecognizedFormula | PagemillError], engine: str
) -> list[PageError]:
    """Give formulas the LaTeX that an engine read, as far as it is sound; the others keep their signs.

    Returns:
        What failed, each cause once.
    """
    failures: dict[str, PageError] = {}
    for region, answer in zip(formulas, read, strict=True):
        if isinstance(answer, PagemillError):
            failures.setdefault(answer.message, region_error(None, answer))
        elif (latex := sound(answer.latex)) is not None:
            region.content, region.content_format = latex, ContentFormat.LATEX
            region.engine, region.confidence = engine, None  # what the engine says of itself is not calibrated
    return list(failures.values())


def sound(latex: str) -> str | None:
    """LaTeX of an engine without delimiters and breaks; None where it does not render, or repeats itself."""
    latex = " ".join(_DELIMITERS.sub("", latex.strip()).split())
    loops = find_loop(latex, unfinished=True, task=Task.FORMULA) is not None
    return None if loops or not renders(latex) else latex
