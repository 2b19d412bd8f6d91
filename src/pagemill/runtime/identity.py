"""What makes the results of two runs comparable: the settings that change them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from pagemill.config.describing import GENERIC, DescribeSettings
from pagemill.config.model_cards import ModelKind, load_card
from pagemill.config.modes import (
    EMBEDDED_TABLES,
    TRANSFORMERS,
    VLM,
    ReadingMode,
    TextLayerMode,
    TorchDtype,
)
from pagemill.config.options import options_of, values_of
from pagemill.config.recognition import LocalModelSettings, RecognitionSettings
from pagemill.config.settings import LayoutChoice, ParseSettings, TableEngineSettings
from pagemill.document.page import RESUMABLE_SCHEMA
from pagemill.errors import MissingInputError
from pagemill.layout.settings import LayoutSettings

_CREDENTIALS = re.compile(r"//[^/?#]*@")

_NAMED = frozenset(
    (
        *("languages", "text_layer", "crops", "layout_engine", "layout_model", "recognition_engine", "model"),
        *("reading", "served_model", "max_tokens", "footnotes"),
    )
)
"""Named also where they are the default, as by the first runs. A key that is missing stands for the default."""


def settings_identity(settings: ParseSettings, layout: LayoutChoice) -> dict[str, Any]:
    """The options that change results, by their keys, as plain JSON values; digests instead of files.

    They are marked where they are declared. Left out is what this run makes no use of.

    Args:
        settings: Settings of the run.
        layout: The layout engine, and the model that the user gave for it.

    Raises:
        MissingInputError: The model cannot be read.
        UsageError: It is a settings file, or a model card, that is not valid.
    """
    asked = settings.recognition.asked
    unused = [] if asked else list(options_of(RecognitionSettings))
    unused += [] if settings.describing.kinds else options_of(DescribeSettings)
    without = {each.key for each in unused}
    values: dict[str, Any] = {"schema_version": RESUMABLE_SCHEMA} | {
        declared.key: value
        for part in (settings, layout)
        for declared, value in values_of(part)
        if declared.results and declared.key not in without and (declared.key in _NAMED or value != declared.default)
    }
    if asked is not None:
        values |= _recognition(asked)
    if settings.recognition.escalate is not None:
        values["escalate_from"] = settings.recognition.escalate_from
    if settings.describing.kinds:
        values |= _describing(settings)
    if settings.table_choice.name != EMBEDDED_TABLES:
        values["table_model"] = _table_model(settings.table_choice)
    if values.get("reading") is not ReadingMode.PAGES or settings.text_layer is not TextLayerMode.NEVER:
        values["layout_model"] = _layout_model(layout.engine, layout.model)
    else:  # no page is laid out, and the layout engine need not even be there
        values |= {"layout_engine": None, "layout_model": None}
    named = {key: value for key, value in values.items() if value is not None or key in _NAMED}
    identity: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(named))  # as it comes back from a file
    return identity


def _recognition(settings: RecognitionSettings) -> dict[str, Any]:
    """What the options alone do not determine about the results of a region engine."""
    local = settings.local if settings.engine == TRANSFORMERS else LocalModelSettings()
    return {
        "model": _model_name(settings.model),
        # A model that another package's engine knows by itself has no card.
        "model_card": _card_digest(settings.model) if settings.engine in (VLM, TRANSFORMERS) else None,
        "reading": settings.reading_mode(),
        "recognition_weights": _digest(Path(local.weights), "--recognition-weights") if local.weights else None,
        "recognition_dtype": None if local.dtype is TorchDtype.AUTO else local.dtype,
    }


def _describing(settings: ParseSettings) -> dict[str, Any]:
    recognition = settings.recognition
    chosen = settings.describing.beside(recognition.asked or recognition)
    model = chosen.model or GENERIC
    return {
        "describe": sorted(chosen.kinds),
        "describe_model": _model_name(model),
        "describe_card": _card_digest(model),
        "describe_served_model": chosen.served_model,
    }


def _model_name(model: str) -> str:
    return Path(model).name if model.endswith(".toml") else model


def _card_digest(model: str) -> str:
    """SHA-256 over the part of a model card about reading: not over its remarks, nor over how it is served."""
    card = load_card(model, ModelKind.RECOGNITION)
    decides = {
        "prompts": card.prompts,
        "system": card.system,
        "image_first": card.image_first,
        "sampling": card.sampling,
        "image": card.image,
        "cleanup": card.cleanup,
    }
    return hashlib.sha256(msgspec.json.encode(decides, order="sorted")).hexdigest()


def without_credentials(url: str) -> str:
    """A URL without the name and password, or the query, that it may hold."""
    return _CREDENTIALS.sub("//", url).split("?")[0]


def _layout_model(engine: str, model: Path | None) -> str | None:
    """Digest of the model; None for the one inside the package."""
    if engine == LayoutChoice().engine:  # as in most runs, which need not import what the other takes
        return None if model is None else _digest(model)
    from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine, deciding

    if engine != PPDocLayoutEngine.name:
        return None if model is None else _digest(model)
    settings, files = deciding(LayoutSettings(model_path=model))
    whole = hashlib.sha256(msgspec.json.encode(settings, order="sorted"))
    for file in files:
        whole.update(_digest(file).encode())
    return whole.hexdigest()


def _table_model(choice: TableEngineSettings) -> str | None:
    """Digest of what the table engine computes with; None where only another package's engine knows."""
    from pagemill.tables.table_transformer import TableTransformer, find_weights

    if choice.name != TableTransformer.name:
        return None if choice.model is None else _digest(Path(choice.model), "--table-model")
    digests = [_digest(folder, "--table-model") for folder in find_weights(choice.model)]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _digest(model: Path, option: str = "--layout-model") -> str:
    """SHA-256 of a file's bytes; of a folder, over the names and digests of the files in it."""
    try:
        if not model.is_dir():
            with model.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        whole = hashlib.sha256()
        for path in sorted(path for path in model.rglob("*") if path.is_file()):
            whole.update(
                f"{path.relative_to(model).as_posix()}\0{_digest(path, option)}\n".encode("utf-8", "surrogateescape")
            )
        return whole.hexdigest()
    except OSError as error:
        raise MissingInputError(
            f"the model {model} cannot be read: {error.strerror or error}", remedy=f"Check {option}."
        ) from error
