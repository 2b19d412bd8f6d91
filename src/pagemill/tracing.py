"""What computes when, and what is decided: spans of time for profiles, and a log of decisions by page.

Neither costs much while nobody listens. A listener, the page and the stage are context variables: tasks inherit them,
and no service has to hand them on.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypeVar

R = TypeVar("R")

INPUT, LOAD, WRITE = "input", "load", "write"
"""Stages that no page's record has: listing and opening sources, loading models, writing to the run directory."""


class Span(NamedTuple):
    """A piece of work on one worker. Times are those of :func:`time.perf_counter`, in seconds."""

    stage: str
    """Stage as in ``PageResult.timings``, or one of this module."""
    operation: str
    resource: str
    """The pool that did it: a name of threads, processes, or servers."""
    worker: int
    """Thread id; 0 where the resource has no threads of ours."""
    queued: float
    started: float
    ended: float
    items: int
    """Pages or lines in a microbatch."""
    page: str
    """Page id; empty for microbatches, which hold several pages."""
    cpu: float
    """CPU time of the thread."""


class Listener(Protocol):
    """Who gets the spans, from any thread."""

    def work(self, span: Span) -> None:
        """A piece of work has finished."""

    def waited(self, stage: str, page: str, started: float, ended: float) -> None:
        """A page has left a stage, waiting included."""

    def moved(self, stage: str, size: int) -> None:
        """Bytes have gone through a stage."""

    def ended(self, page: str, *, failed: bool) -> None:
        """A page is final and written."""


LISTENER: ContextVar[Listener | None] = ContextVar("pagemill.listener", default=None)
PAGE: ContextVar[str] = ContextVar("pagemill.page", default="")
STAGE: ContextVar[str] = ContextVar("pagemill.stage", default=INPUT)


class PageLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs the decisions of a module; each message starts with the id of the page that is being parsed."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a message about the current page."""
        if self.isEnabledFor(level):
            # The id as an argument: made of a file's name, it may hold a percent sign.
            self.logger.log(level, f"%s: {msg}", PAGE.get(), *args, **kwargs)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a listener get the spans of the block, beside one that listens already."""
    before = LISTENER.get()
    LISTENER.set(listener if before is None else _Both(before, listener))
    try:
        yield
    finally:
        # Not by token: an asynchronous generator may be closed in another context than that it started in.
        LISTENER.set(before)


class _Both(NamedTuple):
    """Two listeners."""

    first: Listener
    second: Listener

    def work(self, span: Span) -> None:
        self.first.work(span)
        self.second.work(span)

    def waited(self, stage: str, page: str, started: float, ended: float) -> None:
        self.first.waited(stage, page, started, ended)
        self.second.waited(stage, page, started, ended)

    def moved(self, stage: str, size: int) -> None:
        self.first.moved(stage, size)
        self.second.moved(stage, size)

    def ended(self, page: str, *, failed: bool) -> None:
        self.first.ended(page, failed=failed)
        self.second.ended(page, failed=failed)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """The work of the block belongs to a stage."""
    token = STAGE.set(name)
    started = time.perf_counter()
    try:
        yield
    finally:
        STAGE.reset(token)
        if (listener := LISTENER.get()) is not None:
            listener.waited(name, PAGE.get(), started, time.perf_counter())


def timed(
    function: Callable[[], R], resource: str, *, operation: str = "", items: int = 1, stage: str = ""
) -> Callable[[], R]:
    """The function, which reports to the listener when it was called; queued from now on.

    Args:
        function: It may run on another thread.
        resource: Resource that runs it.
        operation: Of what is done for no page or for several; by default the function's name, for the caller's page.
        items: In a microbatch.
        stage: By default that of the caller.
    """
    listener = LISTENER.get()
    # Without a profile nothing is wrapped: every call of a run comes here.
    if listener is None:
        return function
    page = "" if operation else PAGE.get()
    name, at, queued = operation or _name(function), stage or STAGE.get(), time.perf_counter()

    def call() -> R:
        started, cpu = time.perf_counter(), time.thread_time()
        try:
            return function()
        finally:
            spent, ended = time.thread_time() - cpu, time.perf_counter()
            listener.work(Span(at, name, resource, threading.get_ident(), queued, started, ended, items, page, spent))

    return call


@contextmanager
def span(operation: str, resource: str) -> Iterator[None]:
    """What the block waits for is work of a resource that is not ours, such as a server."""
    started = time.perf_counter()
    try:
        yield
    finally:
        if (listener := LISTENER.get()) is not None:
            ended = time.perf_counter()
            listener.work(Span(STAGE.get(), operation, resource, 0, started, started, ended, 1, PAGE.get(), 0.0))


def moved(size: int) -> None:
    """Bytes have gone through the stage."""
    if (listener := LISTENER.get()) is not None:
        listener.moved(STAGE.get(), size)


def ended(page: str, *, failed: bool) -> None:
    """A page is final and written."""
    if (listener := LISTENER.get()) is not None:
        listener.ended(page, failed=failed)


def _name(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__qualname__", type(function).__name__).removeprefix("_")
