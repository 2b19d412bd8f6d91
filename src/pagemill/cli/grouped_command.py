"""Commands with more options than one list of them can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class GroupedCommand(click.Command):
    """A command whose help shows its options under headings.

    Args:
        groups: Headings in order, each with the long names of its options. What none of them names comes last.
        *arguments: Of :class:`click.Command`.
        **named: Of :class:`click.Command`.
    """

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to a formatter."""
        heading_of = {name: heading for heading, names in self.groups.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*self.groups, "Other options")}
        for option in self.get_params(ctx):
            if row := option.get_help_record(ctx):
                heading = next((heading_of[name] for name in option.opts if name in heading_of), "Other options")
                rows[heading].append(row)
        for heading, shown in rows.items():
            if shown:
                with formatter.section(heading):
                    formatter.write_dl(shown)
