"""The grid of a table as CSV and as data frames."""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pagemill.errors import MissingDependencyError
from pagemill.installation import pip_install

_FORMULA_START = re.compile(r"\s*[=+\-@＝＋－＠]")
_NUMBER = re.compile(r"[+\-－＋]?\s?\(?[$€£¥₩]?\s?\d[\d.,'\u00a0\u202f ]*\)?\s?[%‰]?|-+")


def inert(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would compute or run: text from ``=``, ``+``, ``-``, ``@`` on.

    Numbers (``-5.2``, ``+3 %``) and dashes stay as they are. Source: OWASP, "CSV Injection".
    """
    return f"'{text}" if _FORMULA_START.match(text) and not _NUMBER.fullmatch(text.strip()) else text


def csv_text(grid: Sequence[Sequence[str]]) -> str:
    """A grid as CSV (RFC 4180), its texts made :func:`inert`."""
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([inert(text) for text in row] for row in grid)
    return stream.getvalue()


def data_frame(package: str, grid: Sequence[Sequence[str]], header_rows: int) -> Any:
    """A grid as a data frame of ``pandas`` or ``polars``. All values are text.

    Raises:
        MissingDependencyError: The package is not installed.
    """
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise MissingDependencyError(
            f"{package} is not installed", remedy=f"Install it: {pip_install(package)}"
        ) from error
    names = column_names(grid[:header_rows], len(grid[0]) if grid else 0)
    columns = {name: [row[column] for row in grid[header_rows:]] for column, name in enumerate(names)}
    typed = {"dtype": str} if package == "pandas" else {"schema": dict.fromkeys(names, module.String)}
    return module.DataFrame(columns, **typed)


def column_names(header: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Names of columns, each once: the header cells above each other, joined by `` / ``; else ``column_1``."""
    seen: Counter[str] = Counter()
    names: dict[str, None] = {}
    for column in range(columns):
        # A cell over several rows is repeated in each of them.
        parts = [text for text, _ in groupby(" ".join(row[column].split()) for row in header) if text]
        name = " / ".join(parts) or f"column_{column + 1}"
        while name in names:
            seen[name] += 1
            name = f"{name}_{seen[name] + 1}"
        names[name] = None
    return list(names)
