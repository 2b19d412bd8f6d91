"""What makes the results of two runs comparable: the settings that change them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from pagemill.config.model_cards import ModelKind, load_card
from pagemill.config.modes import (
    EMBEDDED_TABLES,
    TRANSFORMERS,
    VLM,
    FurnitureMode,
    PhotographMode,
    ReadingMode,
    TablesMode,
    TextLayerMode,
    TorchDtype,
)
from pagemill.config.recognition import RecognitionSettings
from pagemill.config.settings import LayoutChoice, ParseSettings, TableEngineSettings
from pagemill.document.page import RESUMABLE_SCHEMA
from pagemill.errors import MissingInputError
from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine, deciding
from pagemill.layout.settings import LayoutSettings
from pagemill.tables.table_transformer import TableTransformer, find_weights

_CREDENTIALS = re.compile(r"//[^/?#]*@")


def settings_identity(settings: ParseSettings, layout: LayoutChoice) -> dict[str, Any]:
    """The settings that change results, by the names that users know, as plain JSON values.

    Left out is what changes speed or patience alone (threads, time limits) and what concerns the report (previews).

    Args:
        settings: Of the run.
        layout: The layout engine, and the model that the user gave for it.

    Raises:
        MissingInputError: The model cannot be read.
        UsageError: It is a settings file, or a model card, that is not valid.
    """
    asked = settings.recognition.asked
    recognition: dict[str, Any] = _recognition(asked) if asked is not None else {}
    if settings.recognition.escalate is not None:  # a run without it does not name it
        recognition["recognition_engine"] = settings.recognition.engine
        recognition["escalate"] = settings.recognition.escalate
        recognition["escalate_from"] = settings.recognition.escalate_from
    values: dict[str, Any] = {
        "languages": settings.languages,
        "text_layer": settings.text_layer,
        # None where it is the default: runs of older versions do not name it.
        "photographs": None if settings.photographs is PhotographMode.AUTO else settings.photographs,
        "crops": settings.crops,
        "layout_engine": None,
        "layout_model": None,
        "schema_version": RESUMABLE_SCHEMA,
        **recognition,
    }
    if not settings.inline_marks:  # as below
        values["inline_marks"] = False
    if settings.tables is not TablesMode.AUTO:  # runs that are older than this setting can be resumed
        values["tables"] = settings.tables
    if settings.furniture is not FurnitureMode.PROVEN:  # likewise
        values["furniture"] = settings.furniture
    if settings.table_choice.name != EMBEDDED_TABLES:
        values["table_engine"] = settings.table_choice.name
        values["table_model"] = _table_model(settings.table_choice)
    if recognition.get("reading") is not ReadingMode.PAGES or settings.text_layer is not TextLayerMode.NEVER:
        # Else no page is laid out, and the layout engine need not even be there.
        values |= {"layout_engine": layout.engine, "layout_model": _layout_model(layout.engine, layout.model)}
    identity: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))  # as it comes back from a file
    return identity


def _recognition(settings: RecognitionSettings) -> dict[str, str | int | None]:
    """What decides about what a region engine reads; not which servers do it, nor how many requests at once."""
    return {
        "recognition_engine": settings.engine,
        "model": _model_name(settings.model),
        "model_card": _card_digest(settings),
        "reading": settings.reading_mode(),
        "served_model": settings.served_model,
        "max_tokens": settings.max_tokens,
        "footnotes": settings.footnotes,
        **_local(settings),
    }


def _local(settings: RecognitionSettings) -> dict[str, str]:
    """What decides about the answers of a model in this process, where it is not the default."""
    decides = {}
    if settings.engine == TRANSFORMERS:
        if settings.local.weights is not None:
            decides["recognition_weights"] = _digest(Path(settings.local.weights), "--recognition-weights")
        if settings.local.dtype is not TorchDtype.AUTO:
            decides["recognition_dtype"] = settings.local.dtype.value
    return decides


def _model_name(model: str) -> str:
    return Path(model).name if model.endswith(".toml") else model


def _card_digest(settings: RecognitionSettings) -> str | None:
    """SHA-256 over what a model card says of reading: not over its remarks, nor over how it is served.

    None for a model that another package's engine knows by itself.
    """
    if settings.engine not in (VLM, TRANSFORMERS):
        return None
    card = load_card(settings.model, ModelKind.RECOGNITION)
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
    if engine != PPDocLayoutEngine.name:
        return None if model is None else _digest(model)
    settings, files = deciding(LayoutSettings(model_path=model))
    whole = hashlib.sha256(msgspec.json.encode(settings, order="sorted"))
    for file in files:
        whole.update(_digest(file).encode())
    return whole.hexdigest()


def _table_model(choice: TableEngineSettings) -> str | None:
    """Digest of what the table engine computes with; None where only another package's engine knows."""
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
