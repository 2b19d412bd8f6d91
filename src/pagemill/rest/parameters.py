"""Query parameters: unknown ones are refused, as a misspelt filter would return everything."""

from __future__ import annotations

from fastapi import Depends
from starlette.requests import Request

from pagemill.errors import UsageError


async def _only_known(request: Request) -> None:
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            raise UsageError(
                f"unknown parameter {name[:100]!r}",
                remedy=f"Available: {', '.join(known)}." if known else "This address takes none.",
            )


ONLY_KNOWN = Depends(_only_known)
"""Dependency of routes that refuse unknown parameters of the URL with a ``UsageError``."""
