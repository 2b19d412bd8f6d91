"""Display of pages and regions in notebooks, and counts in words."""

from __future__ import annotations

import importlib


def count(number: int, noun: str) -> str:
    """A number and its noun, in singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Shown:
    """Base of objects that a notebook displays; :mod:`pagemill.export.notebook` is imported on demand."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(importlib.import_module("pagemill.export.notebook").html_of(self))

    def _repr_markdown_(self) -> str:
        return str(importlib.import_module("pagemill.export.notebook").markdown_of(self))
