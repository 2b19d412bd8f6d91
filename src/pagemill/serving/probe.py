"""Probes: whether a server is healthy, which models it offers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from pagemill.errors import PagemillError
from pagemill.inference.exchange import AttemptFailedError, Cause
from pagemill.inference.models import Served, decode_served

if TYPE_CHECKING:
    from pagemill.inference.exchange import Exchange


class Health(StrEnum):
    """What ``/health`` returned."""

    HEALTHY = "healthy"
    FAILING = "failing"  # any status but 200, or no HTTP at all
    SILENT = "no response"  # within the time limit
    ABSENT = "not reachable"  # nobody listens


async def health(exchange: Exchange, url: str, timeout_s: float) -> Health:
    """Ask a server's ``/health``."""
    try:
        await exchange.request(f"{url}/health", timeout_s)
    except AttemptFailedError as error:
        return {Cause.UNREACHABLE: Health.ABSENT, Cause.TIMEOUT: Health.SILENT}.get(error.cause, Health.FAILING)
    except PagemillError:
        return Health.FAILING
    return Health.HEALTHY


async def served_models(exchange: Exchange, url: str, timeout_s: float) -> list[Served]:
    """The models that a server offers; empty when it offers none or returns an invalid response."""
    try:
        return decode_served(await exchange.request(f"{url}/v1/models", timeout_s))
    except (AttemptFailedError, PagemillError, ValueError, RecursionError):
        return []
