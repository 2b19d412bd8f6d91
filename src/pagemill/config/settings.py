"""The settings of a run, typed, with their defaults."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from pagemill.config.modes import LINES, VLM, ReadingMode, TextLayerMode
from pagemill.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionSettings:
    """Who reads a page's regions."""

    engine: str = LINES
    """``lines``: lines of text are found and read on the CPU; else the name of an installed region engine (``vlm``)."""
    model: str = "glm-ocr"
    """Model card by name, or the path of one (``.toml``)."""
    reading: ReadingMode | None = None
    """What the model is given at a time; None: what its card, or the engine of another package, says it is made for."""
    servers: tuple[str, ...] = ()
    """Base URLs of OpenAI-compatible servers, such as ``http://127.0.0.1:8000``, all with the same model."""
    footnotes: bool = True
    """Have footnotes read as well; GLM-OCR's own pipeline leaves them out."""
    served_model: str | None = None
    """The model's name on the servers; None: the only one they serve, or the one that is called like the card."""
    workers: int = 0
    """Requests in flight a server; 0 adapts them to what it bears."""
    request_timeout_s: float = 300.0
    """Time limit of one request for a region, in seconds."""
    server_wait_s: float = 600.0
    """How long a region waits for a server to answer (again) before its page fails, in seconds."""

    def __post_init__(self) -> None:
        for url in self.servers:
            try:
                parts = urlsplit(url)
                is_server = parts.scheme in ("http", "https") and bool(parts.hostname)
            except ValueError:  # a bracket without the other
                is_server = False
            if not is_server:
                raise UsageError(f"{url!r} is no URL of a server", remedy="It looks like http://127.0.0.1:8000.")
        if self.reading is not None:
            try:
                object.__setattr__(self, "reading", ReadingMode(self.reading))  # from Python it may be a plain word
            except ValueError:
                raise UsageError(
                    f"a model reads {' or '.join(ReadingMode)}, not {self.reading!r}", remedy="Check reading."
                ) from None
        if not (0 < self.request_timeout_s < math.inf and self.server_wait_s > 0):  # nor no numbers at all
            raise UsageError(
                "the time limits of requests and for servers must be over 0 seconds, and a request's finite"
            )
        if self.workers < 0:
            raise UsageError("the number of requests in flight must be 0 (adapt them) or more")

    @property
    def reads_regions(self) -> bool:
        """Whether a region engine reads whole regions, or pages, in place of the embedded reading of lines."""
        return self.engine != LINES

    def reading_mode(self) -> ReadingMode | None:
        """What the model is given at a time, as far as it is known without the engine: opens the model card.

        Raises:
            UsageError: There is no such model card, or it is not valid.
        """
        if self.reading is not None or self.engine != VLM:
            return self.reading
        from pagemill.config.model_cards import load_card

        return load_card(self.model).reads

    @property
    def text_layer(self) -> TextLayerMode:
        """What is done with the text of a PDF unless the user says otherwise: a region engine is chosen to read."""
        return TextLayerMode.NEVER if self.reads_regions else TextLayerMode.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseSettings:
    """What decides about a page's result."""

    languages: tuple[str, ...] | None = None
    """Languages to read (``en``, ``ko``, ...); None detects the script of each page."""
    text_layer: TextLayerMode = TextLayerMode.AUTO
    crops: bool = True
    """Cut and encode the image, chart and formula regions."""
    recognition: RecognitionSettings = RecognitionSettings()
    preview_pages: int = 0
    """Make a small image for the report of this many pages, from the start of the input."""
    page_timeout_s: float = 300.0
    """Time limit of a page over all stages after decoding, in seconds, waiting for shared services included; but not
    for what a region engine reads elsewhere, which has limits of its own."""

    def __post_init__(self) -> None:
        if not self.page_timeout_s > 0:  # nor no number at all
            raise UsageError("the page timeout must be over 0 seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings:
    """What decides about speed and memory, not about results. 0 means: choose for this machine."""

    threads: int = 0
    """Threads that compute (layout, recognition, image decoding, assembling); 0: one a core."""
    decoders: int = 0
    """Processes that render PDF pages; 0: one for two cores, at most 8."""
    decoder_memory: int = 2 * 2**30
    """Most bytes of address space of one of these processes (Linux). What it covers beside a page's pixels: 0.15 GB of
    libraries, and the images of the page while they are decoded."""
    pages_in_flight: int = 0
    """Most pages under way at once; 0: three a thread, and with a region engine as many more as may wait for it."""
    layout_batch: int = 0
    """Most pages in one call of a layout engine that takes several; 0: what suits its device."""
    bytes_in_flight: int = 2 * 2**30
    """Most bytes of decoded pixels under way at once."""
    postponed_bytes: int = 256 * 2**20
    """Most bytes of encoded pages that wait for the end of the input to be tried again; over it they run at once."""

    def resolved(self, *, waiting_pages: int = 0) -> RuntimeSettings:
        """The same with every 0 replaced by a number for this machine.

        Args:
            waiting_pages: How many pages may be under way beside those that this machine works at: they wait for
                answers from elsewhere.
        """
        cores = available_cores()
        threads = self.threads or cores
        return replace(
            self,
            threads=threads,
            decoders=self.decoders or min(8, max(1, cores // 2)),
            pages_in_flight=self.pages_in_flight or 3 * threads + waiting_pages,
        )


def available_cores() -> int:
    """Cores this process may use: its CPU affinity where the system tells, else all; a container's quota counts too."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _cgroup_quota(Path("/sys/fs/cgroup/cpu.max")) or cores))


def _cgroup_quota(path: Path) -> int | None:
    """Cores that the control group grants (``docker run --cpus``), rounded up; None without a quota."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return None if quota == "max" else math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
