"""What makes the results of two runs comparable: the settings that change them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.document.page import SCHEMA_VERSION
from pagemill.errors import MissingInputError
from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine, deciding
from pagemill.layout.settings import LayoutSettings

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.config.settings import ParseSettings


def settings_identity(settings: ParseSettings, layout_engine: str, layout_model: Path | None) -> dict[str, Any]:
    """The settings that change results, by the names that users know, as plain JSON values.

    Left out is what changes speed or patience alone (threads, time limits) and what concerns the report (previews).

    Args:
        settings: Of the run.
        layout_engine: The layout engine's name.
        layout_model: What the user gave as ``--layout-model``; None for the engine's own.

    Raises:
        MissingInputError: The model cannot be read.
        UsageError: It is a settings file that is not valid.
    """
    values = {
        "languages": settings.languages,
        "text_layer": settings.text_layer,
        "crops": settings.crops,
        "layout_engine": layout_engine,
        "layout_model": _layout_model(layout_engine, layout_model),
        "schema_version": SCHEMA_VERSION,
    }
    identity: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))  # as it comes back from a file
    return identity


def _layout_model(engine: str, model: Path | None) -> str | None:
    """Digest of the model; None for the one inside the package."""
    if engine != PPDocLayoutEngine.name:
        return None if model is None else _digest(model)
    settings, files = deciding(LayoutSettings(model_path=model))
    whole = hashlib.sha256(msgspec.json.encode(settings, order="sorted"))
    for file in files:
        whole.update(_digest(file).encode())
    return whole.hexdigest()


def _digest(model: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, over the names and digests of the files in it."""
    try:
        if not model.is_dir():
            with model.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        whole = hashlib.sha256()
        for path in sorted(path for path in model.rglob("*") if path.is_file()):
            whole.update(f"{path.relative_to(model).as_posix()}\0{_digest(path)}\n".encode("utf-8", "surrogateescape"))
        return whole.hexdigest()
    except OSError as error:
        raise MissingInputError(
            f"the layout model {model} cannot be read: {error.strerror or error}", remedy="Check --layout-model."
        ) from error
