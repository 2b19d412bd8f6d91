"""The name of an output directory, as an option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class DirectoryName(click.Path):
    """The name of a directory. An empty one would be the current directory, which nobody means by it."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name."""
        if value == "":
            self.fail("it is empty: is a variable of the shell not set?", param, ctx)
        return super().convert(value, param, ctx)
