"""Packaged data: hardware profiles and model cards, one TOML file each."""

from __future__ import annotations

from importlib.resources import files


def builtin(folder: str) -> dict[str, str]:
    """The texts of the TOML files in a folder of this package, sorted by name."""
    entries = sorted(files("pagemill.config").joinpath(folder).iterdir(), key=lambda entry: entry.name)
    return {
        entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
        for entry in entries
        if entry.name.endswith(".toml")
    }
