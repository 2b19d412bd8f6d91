"""Settings of the second pass, in which a model describes elements of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pagemill.config.headings import DESCRIPTIONS
from pagemill.config.modes import Described
from pagemill.config.options import Settings, option, servers_option
from pagemill.config.recognition import RecognitionSettings
from pagemill.errors import UsageError

GENERIC = "generic"
"""The default model card."""


def _kinds(given: Sequence[str]) -> tuple[Described, ...]:
    if isinstance(given, str):
        given = given.split(",")
    try:
        return tuple(dict.fromkeys(Described(kind.strip().lower()) for kind in given if kind.strip()))
    except ValueError:
        raise UsageError(f"--describe is {', '.join(given)}", remedy=f"Choose from {', '.join(Described)}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSettings(Settings):
    """The second pass: which elements a model describes, and which model."""

    HEADING: ClassVar = DESCRIPTIONS

    kinds: tuple[Described, ...] = option(
        "--describe",
        key="describe",
        default=(),
        metavar="KINDS",
        comma_separated=True,
        parse=_kinds,
        results=True,
        help="Have a model describe figures, charts, tables, formulas (comma-separated): summary, keywords, and the "
        "data of charts.",
    )
    servers: tuple[str, ...] = servers_option(
        "--describe-server",
        key="describe_servers",
        help="Server with the model that describes",
        shown_default="that of --server",
    )
    model: str | None = option(
        key="describe_model",
        results=True,
        help="Model card of the model that describes.",
        shown_default="generic; that of --model without --describe-server",
    )
    served_model: str | None = option(
        key="describe_served_model", results=True, help="Name of that model on its servers.", shown_default="detected"
    )
    limit: int = option(
        key="describe_limit",
        default=0,
        minimum=0,
        results=False,
        help="Maximum number of elements to describe.",
        shown_default="no limit",
    )

    def beside(self, reader: RecognitionSettings) -> DescribeSettings:
        """These settings, completed from those of the recognition model."""
        if self.servers:
            return self
        if self.model is not None:
            return replace(self, servers=reader.servers)
        served_model = self.served_model or reader.served_model
        return replace(self, servers=reader.servers, model=reader.model, served_model=served_model)
