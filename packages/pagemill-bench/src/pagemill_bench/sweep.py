"""A sweep: a server is started for each setting, and its saturation measured."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pagemill.config.hardware import Profile
from pagemill.config.serving import ServingOptions
from pagemill.errors import NetworkError, ServerError, UsageError
from pagemill.inference.exchange import RequestRefusedError
from pagemill.profiling.gpu_use import Gpus
from pagemill.serving.addresses import free_port
from pagemill.serving.diagnosis import exceptions
from pagemill.serving.planning import ServingPlan
from pagemill.serving.replicas import prepare
from pagemill.serving.servers import ModelServers
from pagemill.serving.spec import Event, Patience, Report, What
from pagemill_bench.saturation import Knee, Level, Load, knee_of, saturate

Setting = dict[str, Any]
"""Values by the names of the fields of :class:`pagemill.config.serving.Wishes`."""

_REASON_WIDTH = 240
_PREFIX = re.compile(r"^[ |]*(?:\(\w+ pid=\d+\) )?(?:\w+ [\d-]+ [\d:]+ \[[^\]]*\] *)?")
"""Start of a line of vLLM's log, which is left out of quotations: process, level, time, place in the code."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, and what was measured with it."""

    setting: Setting
    start_s: float | None = None
    """Until the server was ready."""
    levels: tuple[Level, ...] = ()
    failure: str | None = None
    """The reason for a missing or invalid measurement."""
    log: str = ""
    """The end of the server's log, if it did not start."""

    @property
    def best(self) -> Level | None:
        """The level with the highest throughput; None where nothing was measured."""
        measured = [] if self.failure else [level for level in self.levels if level.requests_per_s > 0]
        return max(measured, key=lambda level: level.requests_per_s, default=None)

    @property
    def knee(self) -> Knee | None:
        """The knee of the levels."""
        return None if self.failure else knee_of(self.levels)


def settings_of(values: Mapping[str, Sequence[float | int]]) -> list[Setting]:
    """Every combination of the values."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


@dataclass(slots=True)
class Sweep:
    """Measures settings, one after the other.

    Args:
        options: The servers; a setting replaces some of their wishes.
        load: The load; its servers are those that are started.
        patience: Time limit of a start.
        gpus: Sampled meanwhile.
        report: Called with the events of servers.
    """

    options: ServingOptions
    load: Load
    patience: Patience
    gpus: Gpus | None
    report: Report
    rows: list[Row] = field(default_factory=list)
    """What has been measured so far."""
    plans: list[ServingPlan | None] = field(default_factory=list)
    """The plan of each row; None where there is none."""
    _servers: ModelServers | None = None

    async def run(self, settings: Sequence[Setting], report_row: Callable[[Row], object]) -> None:
        """Measure settings. One that does not fit, does not start or dies is a row with the reason.

        Raises:
            MissingDependencyError: vLLM is not there.
            MissingInputError: The model is not there.
        """
        for setting in settings:
            self.plans.append(None)
            # In a task of its own: a task group of Python 3.11 that fails leaves its task counted as cancelled, and
            # then a signal would be taken for the second one.
            self.rows.append(await asyncio.create_task(self._measure(setting)))
            report_row(self.rows[-1])

    def kill(self) -> None:
        """Kill the running server immediately."""
        if self._servers is not None:
            self._servers.kill()

    async def _measure(self, setting: Setting) -> Row:
        died: list[str] = []

        def report(event: Event) -> None:
            self.report(event)
            if event.what in (What.DIED, What.GIVEN_UP):
                died.append(event.text)

        start = asyncio.get_running_loop().time()
        started = None
        levels: list[Level] = []
        try:
            serving = prepare(replace(self.options, wishes=replace(self.options.wishes, **setting)))
            self.plans[-1] = serving.plan
            # A port of its own: a server that is there already has other settings.
            specs = [replace(spec, port=free_port(spec.host)) for spec in serving.specs]
            self._servers = ModelServers(specs, patience=self.patience, report=report)
            async with self._servers as servers:
                started = asyncio.get_running_loop().time() - start
                await saturate(replace(self.load, servers=servers.urls), self.gpus, levels.append)
        except (UsageError, ServerError, NetworkError, RequestRefusedError) as error:
            failure, _, log = error.message.partition("\n")
            reason = ": ".join(filter(None, [failure, _cause(log)]))
            return Row(setting=setting, start_s=started, levels=tuple(levels), failure=reason, log=log)
        finally:
            self._servers = None
        why = None
        if died:
            why = f"the server died while it was measured: {died[0].splitlines()[0]}"
        elif not any(level.requests_per_s for level in levels):
            why = ": ".join(["no request was answered", *itertools.islice(levels[-1].failures, 1)])
        return Row(setting=setting, start_s=started, levels=tuple(levels), failure=why)


def best_of(rows: Sequence[Row]) -> int | None:
    """The index of the row with the highest throughput; None where nothing was measured."""
    rates = [(row.best.requests_per_s, -index) for index, row in enumerate(rows) if row.best]
    return -max(rates)[1] if rates else None


def measured_profile(row: Row, plan: ServingPlan, *, name: str, of: int, swept: Sequence[str]) -> Profile:
    """A profile with which a server is started as it was measured.

    Args:
        row: The measurement.
        plan: Its plan.
        name: Name of the profile.
        of: Number of measured settings.
        swept: The varied settings.
    """
    assert row.best is not None
    assert row.knee is not None
    profile, day = plan.profile, time.strftime("%Y-%m-%d")
    found = f"{row.best.requests_per_s:.1f} requests/s with {plan.model}, {row.best.in_flight} in flight"
    several = f"the best of {of} settings: " if of > 1 else ""
    reason = profile.batched_tokens_reason
    return msgspec.structs.replace(
        profile,
        name=name,
        match=(),
        memory_gib=plan.budget.memory_gib,
        memory_share=plan.budget.share,
        dtype=plan.dtype,
        workers=row.knee.in_flight,
        max_num_seqs=plan.bounds.max_num_seqs,
        max_model_len=plan.budget.max_model_len if "max_model_len" in swept else profile.max_model_len,
        batched_tokens_reason=f"{several}{found}" if "max_num_batched_tokens" in swept else reason,
        measured=True,
        note=f"Measured by pagemill bench sweep on {day}; {several}{found}.",
    )


def _cause(log: str) -> str:
    """The line at a log's end with the cause: what vLLM finds wrong with a setting, or the first exception."""
    lines = [_PREFIX.sub("", line) for line in log.splitlines()]
    refused = (line for line in lines if line.startswith("Value error"))
    found = next(refused, None) or next(iter(exceptions(lines)), "")
    return found if len(found) <= _REASON_WIDTH else f"{found[:_REASON_WIDTH]} ..."
