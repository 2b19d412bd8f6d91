"""The settings of parsing, with their defaults and the options that set them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from pagemill.config.modes import (
    EMBEDDED_TABLES,
    LINES,
    TRANSFORMERS,
    VLM,
    Described,
    PhotographMode,
    ReadingMode,
    ScheduleMode,
    TablesMode,
    TextLayerMode,
    TorchDevice,
    TorchDtype,
)
from pagemill.config.options import Settings, option
from pagemill.errors import UsageError

INPUT, OUTPUT, RECOGNITION, MODEL_SERVER, LOCAL_MODEL, DESCRIPTIONS, RESUME, MACHINE, MACHINES = (
    "Input",
    "Output",
    "Recognition",
    "Recognition by a model behind a server",
    "Recognition by a model in this process",
    "Descriptions",
    "Resume and retry",
    "This machine",
    "Many machines",
)
"""Headings of the help."""
ESCALATE_FROM = 1.5
"""Characters expected to be wrong: 28 % of the regions of drawn scans and photographs have as many, and hold 81 % of
the errors (``benchmarks/escalation.py``)."""


def _languages(given: Sequence[str]) -> tuple[str, ...] | None:
    if isinstance(given, str):
        raise UsageError(f"languages is {given!r}", remedy=f"Pass a list: {given.split(',')!r}.")
    codes = tuple(code.strip().lower() for code in given if code.strip())
    if not codes:
        raise UsageError("no language is given", remedy="Name at least one language, or auto.")
    if "auto" in codes and len(codes) > 1:
        raise UsageError("auto detects the languages and excludes others", remedy="Name languages, or auto alone.")
    return None if codes == ("auto",) else codes


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModelSettings(Settings):
    """How a recognition model runs in this process."""

    HEADING: ClassVar = LOCAL_MODEL

    weights: str | None = option(
        key="recognition_weights",
        metavar="FOLDER",
        help="Folder of a checkpoint to use instead of the model card's.",
        shown_default="as `pagemill models download` keeps it",
    )
    device: TorchDevice = option(
        key="recognition_device",
        default=TorchDevice.AUTO,
        help="Where the model runs.",
        shown_default="the first there",
    )
    dtype: TorchDtype = option(
        key="recognition_dtype",
        default=TorchDtype.AUTO,
        help="Data type of the model's weights.",
        shown_default="bfloat16 where the device computes in it, else float32",
    )
    batch: int = option(
        key="recognition_batch",
        default=0,
        minimum=0,
        maximum=1024,
        help="Maximum number of regions per call of the model.",
        shown_default="by the free memory, halved when it runs out",
    )
    trust_remote_code: str | None = option(
        metavar="MODEL",
        help="Run the Python code in the checkpoint of this model, named as in --model. Without it, only architectures "
        "of transformers itself run.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionSettings(Settings):
    """Which engine recognizes the content of a page, and how."""

    HEADING: ClassVar = MODEL_SERVER

    engine: str = option(
        key="recognition_engine",
        default=LINES,
        heading=RECOGNITION,
        help="Recognition engine: lines (CPU OCR), vlm (vision-language model behind --server), transformers (such a "
        "model in this process), or an installed region engine.",
    )
    model: str = option(
        default="glm-ocr", help="Model card: a name listed by `pagemill models list`, or a file CARD.toml."
    )
    servers: tuple[str, ...] = option(
        "--server",
        default=(),
        metavar="URL[,URL...]",
        comma_separated=True,
        help="Base URL of an OpenAI-compatible server with the model, such as http://127.0.0.1:8000; may be repeated.",
    )
    reading: ReadingMode | None = option(
        help="Send the model regions found by a layout engine, or whole pages.", shown_default="as the model card says"
    )
    footnotes: bool = option(
        default=True,
        help="Recognize footnotes and put them at the end of their page.",  # GLM-OCR's own pipeline leaves them out
    )
    served_model: str | None = option(help="Name of the model on the servers.", shown_default="detected")
    max_tokens: int | None = option(
        metavar="TOKENS", minimum=1, help="Longest answer to a request.", shown_default="by the model card"
    )
    workers: int = option(
        default=0,
        minimum=0,
        help="Requests in flight per server.",
        shown_default="adaptive: raised until throughput stops improving",
    )
    request_timeout_s: float = option(
        "--request-timeout", default=300.0, above=0, maximum=1e6, help="Time limit of one request."
    )
    server_wait_s: float = option(
        "--server-wait",
        default=600.0,
        above=0,
        help="How long to wait for a server that does not answer before the run stops. It can be resumed.",
    )
    escalate: str | None = option(
        metavar="ENGINE",
        help="Recognize with line recognition or the text layer, send only the doubtful regions to this region engine "
        "(vlm: the model behind --server), and keep the better reading.",
    )
    escalate_from: float = option(
        default=ESCALATE_FROM,
        minimum=0,
        metavar="CHARACTERS",
        help="With --escalate, send regions in which so many characters or more are expected to be wrong; 0 sends all.",
    )

    local: LocalModelSettings = LocalModelSettings()

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.escalate is not None and (self.reads_regions or self.escalate == LINES):
            raise UsageError(
                f"--escalate {self.escalate} asks a region engine about what line recognition is not sure of",
                remedy="Name a region engine, such as vlm, with --recognition-engine lines.",
            )
        if self.escalate is None and self.escalate_from != ESCALATE_FROM:
            raise UsageError("--escalate-from goes with --escalate", remedy="Add --escalate vlm.")

    @property
    def reads_regions(self) -> bool:
        """Whether a region engine recognizes regions or pages, instead of the embedded line recognition."""
        return self.engine != LINES

    @property
    def asked(self) -> RecognitionSettings | None:
        """The settings of the region engine that is asked at all: about every page, or about doubtful regions."""
        if self.escalate is None:
            return self if self.reads_regions else None
        settings = replace(self, engine=self.escalate, escalate=None, escalate_from=ESCALATE_FROM)
        return replace(settings, reading=ReadingMode.REGIONS)

    def reading_mode(self) -> ReadingMode | None:
        """What the model is sent, as far as known without the engine: opens the model card.

        Raises:
            UsageError: There is no such model card, or it is not valid.
        """
        if self.reading is not None or self.engine not in (VLM, TRANSFORMERS):
            return self.reading
        from pagemill.config.model_cards import load_card

        return load_card(self.model).reads

    @property
    def text_layer(self) -> TextLayerMode:
        """The default use of text layers: never with a region engine."""
        return TextLayerMode.NEVER if self.reads_regions else TextLayerMode.AUTO


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
        help="Have a model describe figures, charts, tables, formulas (comma-separated): summary, keywords, and the "
        "data of charts.",
    )
    servers: tuple[str, ...] = option(
        "--describe-server",
        key="describe_servers",
        default=(),
        metavar="URL[,URL...]",
        comma_separated=True,
        help="Server with the model that describes; may be repeated.",
        shown_default="that of --server",
    )
    model: str | None = option(
        key="describe_model",
        help="Model card of the model that describes.",
        shown_default="generic; that of --model without --describe-server",
    )
    served_model: str | None = option(
        key="describe_served_model", help="Name of that model on its servers.", shown_default="detected"
    )
    limit: int = option(
        key="describe_limit",
        default=0,
        minimum=0,
        help="Maximum number of elements that the model is asked about.",
        shown_default="no limit",
    )

    def beside(self, reader: RecognitionSettings) -> DescribeSettings:
        """These settings, with what they leave open taken from the model that reads."""
        if self.servers:
            return self
        if self.model is not None:
            return replace(self, servers=reader.servers)
        served_model = self.served_model or reader.served_model
        return replace(self, servers=reader.servers, model=reader.model, served_model=served_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEngineSettings(Settings):
    """Which model finds rows and columns of tables."""

    HEADING: ClassVar = RECOGNITION

    name: str = option(
        key="table_engine",
        default=EMBEDDED_TABLES,
        help="Model that --tables auto and model ask: slanet-plus (embedded), table-transformer (PyTorch), or an "
        "installed table engine.",
    )
    model: str | None = option(
        key="table_model",
        metavar="FOLDER",
        help="Checkpoint of the table engine.",
        shown_default="as `pagemill models download` keeps it",
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.model is not None and self.name == EMBEDDED_TABLES:
            raise UsageError("--table-model goes with a table engine", remedy="Add --table-engine table-transformer.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseSettings(Settings):
    """Settings that decide the result of a page."""

    HEADING: ClassVar = RECOGNITION

    languages: tuple[str, ...] | None = option(
        "--lang",
        metavar="CODES",
        comma_separated=True,
        parse=_languages,
        help="Languages to recognize, such as ko,en; auto detects the script of each page.",
        shown_default="auto",
    )
    text_layer: TextLayerMode = option(
        help="Use the text layer of PDFs: where it is sound, always, or never.",
        shown_default="auto; never with a region engine",
    )
    photographs: PhotographMode = option(
        default=PhotographMode.AUTO,
        help="Unwarp pages that are recognized, not taken from a text layer: photographs (auto), all (always), or none "
        "(never).",
    )
    tables: TablesMode = option(
        default=TablesMode.AUTO,
        help="How rows and columns of tables are found: by drawn rules and the places of the text, with the embedded "
        "model where these leave doubt (auto) or without it (rules), or by the model wherever it finds some (model).",
    )
    crops: bool = option(default=True, heading=OUTPUT, help="Save image, chart and formula regions.")
    table_choice: TableEngineSettings = TableEngineSettings()
    recognition: RecognitionSettings = RecognitionSettings()
    describing: DescribeSettings = DescribeSettings()
    preview_pages: int = 0
    """Make a small image for the report of this many pages, from the start of the input."""
    page_timeout_s: float = option(
        "--page-timeout",
        default=300.0,
        heading=RESUME,
        above=0,
        help="Time limit of one page after decoding, not counting requests to servers.",
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.text_layer is None:  # None: whoever chose a region engine wants it to read
            object.__setattr__(self, "text_layer", self.recognition.text_layer)
        if self.describing != DescribeSettings() and not self.describing.kinds:
            raise UsageError("nothing is to be described", remedy="Say what: --describe figures,charts,tables.")
        if self.table_choice != TableEngineSettings() and self.tables is TablesMode.RULES:
            raise UsageError("--tables rules asks no table engine", remedy="Leave out one of the options.")
        if self.languages and self.recognition.reads_regions:
            raise UsageError(
                f"languages apply to line recognition: {self.recognition.engine} recognizes those of its model",
                remedy="Leave out the languages (--lang).",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChoice(Settings):
    """Which layout engine finds the regions of a page."""

    HEADING: ClassVar = RECOGNITION

    engine: str = option(
        key="layout_engine",
        default="onnx",
        help="Installed layout engine: onnx (embedded), pp-doclayout-v3, or one of another package.",
    )
    model: Path | None = option(
        key="layout_model",
        help="Model of the layout engine: an ONNX file; for pp-doclayout-v3 a folder of weights or a TOML file.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSettings(Settings):
    """Settings that decide speed and memory, not results. 0 means: choose for this machine."""

    HEADING: ClassVar = MACHINE

    threads: int = option(default=0, minimum=0, help="Compute threads.", shown_default="one per core")
    decoders: int = option(
        default=0, minimum=0, help="PDF rendering processes.", shown_default="one per two cores, at most 8"
    )
    decoder_memory_gib: float = option(
        "--decoder-memory",
        default=2.0,
        metavar="GIB",
        # A process needs 0.15 GiB for its libraries and 0.07 for the largest page; the rest is for the page's images.
        minimum=0.5,
        help="Memory limit of each PDF rendering process (Linux).",
    )
    pages_in_flight: int = option(
        default=0,
        minimum=0,
        help="Maximum number of pages in flight.",
        shown_default="three per thread, plus those that keep the servers busy",
    )
    layout_batch: int = option(
        "--layout-batch",
        "--batch-size",
        default=0,
        minimum=0,
        maximum=256,
        help="Maximum number of pages per call of pp-doclayout-v3.",
        shown_default="8 on a GPU, 1 on the CPU",
    )
    schedule: ScheduleMode = option(
        default=ScheduleMode.STREAMING,
        help="Order in which the stages of pages run. All but streaming are slower, and there to be compared with it: "
        "see `pagemill profile`.",
    )
    bytes_in_flight: int = 2 * 2**30
    """Maximum number of bytes of decoded pixels in flight."""
    postponed_bytes: int = 256 * 2**20
    """Maximum number of bytes of encoded pages that wait for their retry at the end of the input; beyond it pages are
    retried at once."""

    @property
    def decoder_memory(self) -> int:
        """Bytes of address space that a PDF rendering process may use."""
        return int(self.decoder_memory_gib * 2**30)

    def resolved(self, *, waiting_pages: int = 0) -> RuntimeSettings:
        """Replace every 0 by a number for this machine.

        Args:
            waiting_pages: How many more pages may be in flight because they wait for responses of servers.
        """
        cores = available_cores()
        threads = self.threads or cores
        return replace(
            self,
            threads=threads,
            decoders=self.decoders or min(8, max(1, cores // 2)),
            pages_in_flight=self.pages_in_flight or 3 * threads + waiting_pages,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RaySettings(Settings):
    """Which Ray cluster parses the pages, if any, and what of it. They decide speed, not results."""

    HEADING: ClassVar = MACHINES

    address: str | None = option(
        "--ray",
        key="ray",
        metavar="ADDRESS",
        help="Parse on the Ray cluster at HOST:PORT, on the one that this machine is part of (auto), or on one that is "
        "started within this machine (local).",
    )
    workers: int = option(
        key="ray_workers",
        default=0,
        minimum=0,
        help="Workers, of --threads CPUs each.",
        shown_default="as many as the machines have room for, also those that join",
    )
    gpus: float = option(
        key="ray_gpus", default=0.0, minimum=0, metavar="GPUS", help="GPUs that each worker takes for its layout model."
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.address is None and (self.workers or self.gpus):
            raise UsageError("--ray-workers and --ray-gpus go with --ray", remedy="Name the cluster with --ray.")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEngineSettings(Settings):
    """Where the engines are that made the vectors, if not where they were."""

    servers: tuple[str, ...] = option(
        "--server",
        default=(),
        metavar="URL[,URL...]",
        comma_separated=True,
        help="Server that embeds queries, for vectors made by a server; may be repeated.",
    )
    model: str | None = option(help="Path of the vectors' model, if it has moved.")
    device: str | None = option(help="Device of the model, such as cuda or cpu.")


def available_cores() -> int:
    """Cores that this process may use: its CPU affinity if the system reports one, bounded by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _cgroup_quota(Path("/sys/fs/cgroup/cpu.max")) or cores))


def _cgroup_quota(path: Path) -> int | None:
    """Cores granted by the control group (``docker run --cpus``), rounded up; None without a quota."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return None if quota == "max" else math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
