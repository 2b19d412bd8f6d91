"""Settings of recognition: the engine, the model, and where it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pagemill.config.headings import LOCAL_MODEL, MODEL_SERVER, RECOGNITION
from pagemill.config.modes import LINES, TRANSFORMERS, VLM, ReadingMode, TextLayerMode, TorchDevice, TorchDtype
from pagemill.config.options import Settings, option, servers_option
from pagemill.errors import UsageError

ESCALATE_FROM = 1.5
"""Characters expected to be wrong: 28 % of the regions of drawn scans and photographs have as many, and hold 81 % of
the errors (``benchmarks/escalation.py``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModelSettings(Settings):
    """How a recognition model runs in this process."""

    HEADING: ClassVar = LOCAL_MODEL

    weights: str | None = option(
        key="recognition_weights",
        metavar="FOLDER",
        results=True,
        help="Folder of a checkpoint to use instead of the model card's.",
        shown_default="as `pagemill models download` keeps it",
    )
    device: TorchDevice = option(
        key="recognition_device",
        default=TorchDevice.AUTO,
        results=False,
        help="Where the model runs.",
        shown_default="the first there",
    )
    dtype: TorchDtype = option(
        key="recognition_dtype",
        default=TorchDtype.AUTO,
        results=True,
        help="Data type of the model's weights.",
        shown_default="bfloat16 where the device computes in it, else float32",
    )
    batch: int = option(
        key="recognition_batch",
        default=0,
        minimum=0,
        maximum=1024,
        results=False,
        help="Maximum number of regions per call of the model.",
        shown_default="by the free memory, halved when it runs out",
    )
    trust_remote_code: str | None = option(
        metavar="MODEL",
        results=False,
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
        results=True,
        jobs=True,
        help="Recognition engine: lines (CPU OCR), vlm (vision-language model behind --server), transformers (such a "
        "model in this process), or an installed region engine.",
    )
    model: str = option(
        default="glm-ocr",
        results=True,
        help="Model card: a name listed by `pagemill models list`, or a file CARD.toml.",
    )
    servers: tuple[str, ...] = servers_option(
        help="Base URL of an OpenAI-compatible server with the model, such as http://127.0.0.1:8000",
    )
    reading: ReadingMode | None = option(
        results=True,
        help="Send the model regions found by a layout engine, or whole pages.",
        shown_default="as the model card says",
    )
    footnotes: bool = option(
        default=True,
        results=True,
        help="Recognize footnotes and put them at the end of their page.",  # GLM-OCR's own pipeline leaves them out
    )
    served_model: str | None = option(results=True, help="Name of the model on the servers.", shown_default="detected")
    max_tokens: int | None = option(
        metavar="TOKENS",
        minimum=1,
        results=True,
        help="Longest answer to a request.",
        shown_default="by the model card",
    )
    workers: int = option(
        default=0,
        minimum=0,
        results=False,
        help="Requests in flight per server.",
        shown_default="adaptive: raised until throughput stops improving",
    )
    request_timeout_s: float = option(
        "--request-timeout", default=300.0, above=0, maximum=1e6, results=False, help="Time limit of one request."
    )
    server_wait_s: float = option(
        "--server-wait",
        default=600.0,
        above=0,
        results=False,
        help="How long to wait for a server that does not answer before the run stops. It can be resumed.",
    )
    escalate: str | None = option(
        metavar="ENGINE",
        results=True,
        help="Recognize with line recognition or the text layer, send only the doubtful regions to this region engine "
        "(vlm: the model behind --server), and keep the better reading.",
    )
    escalate_from: float = option(
        default=ESCALATE_FROM,
        minimum=0,
        metavar="CHARACTERS",
        results=True,
        help="With --escalate, send regions with at least this many characters expected to be wrong; 0 sends all.",
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
            raise UsageError("--escalate-from requires --escalate", remedy="Add --escalate vlm.")

    @property
    def reads_regions(self) -> bool:
        """Whether a region engine recognizes regions or pages, instead of the embedded line recognition."""
        return self.engine != LINES

    @property
    def asked(self) -> RecognitionSettings | None:
        """The settings of the region engine in use, for every page or for doubtful regions."""
        if self.escalate is None:
            return self if self.reads_regions else None
        settings = replace(self, engine=self.escalate, escalate=None, escalate_from=ESCALATE_FROM)
        return replace(settings, reading=ReadingMode.REGIONS)

    def reading_mode(self) -> ReadingMode | None:
        """The model's input (regions or pages), as far as its card defines it.

        Raises:
            UsageError: There is no such model card, or it is not valid.
        """
        if self.reading is not None or self.engine not in (VLM, TRANSFORMERS):
            return self.reading
        from pagemill.config.model_cards import ModelKind, load_card

        return load_card(self.model, ModelKind.RECOGNITION).reads

    @property
    def text_layer(self) -> TextLayerMode:
        """The default use of text layers: never with a region engine."""
        return TextLayerMode.NEVER if self.reads_regions else TextLayerMode.AUTO
