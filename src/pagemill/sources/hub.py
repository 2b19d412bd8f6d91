"""Datasets on the Hugging Face Hub: addresses, and which files are a configuration or a split of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pagemill.errors import MissingInputError
from pagemill.imaging.formats import SUFFIXES
from pagemill.sources.items import table_of

CARD = "README.md"
MAX_CARD = 2**20
"""Bytes of a dataset card that are read."""
_ADDRESS = re.compile(
    r"hf://datasets/(?P<name>[^/@:]+/[^/@:]+)(?:@(?P<revision>refs/(?:pr|convert)/[^/:]+|[^/:]+))?"
    r"(?::(?P<config>[^/]+))?(?:/(?P<place>.*))?"
)
_FRONT_MATTER = re.compile(rb"\A(?:\xef\xbb\xbf)?---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_SYNONYMS = (("train", "training"), ("validation", "valid", "val", "dev"), ("test", "testing", "eval", "evaluation"))
_MAX_LISTED = 20
_MAX_PATTERN = 1_000


@dataclass(frozen=True, slots=True)
class DatasetAddress:
    """``hf://datasets/OWNER/NAME[@revision][:config][/place]``."""

    name: str
    """``OWNER/NAME``."""
    revision: str | None = None
    config: str | None = None
    place: str = ""
    """A path in the repository, or the name of a split; the latter where there is a configuration."""

    @classmethod
    def parse(cls, url: str) -> DatasetAddress | None:
        """Read an address; None for any other."""
        match = _ADDRESS.fullmatch(url)
        if match is None:
            return None
        return cls(match["name"], match["revision"], match["config"], (match["place"] or "").strip("/"))

    @property
    def root(self) -> str:
        """The address of the whole dataset."""
        return f"hf://datasets/{self.name}" + (f"@{self.revision}" if self.revision else "")

    def selected(self, names: Sequence[str], card: bytes) -> list[str]:
        """The files of the configuration and split that the address names; all files if it names none.

        Args:
            names: Paths of all files, relative to the dataset.
            card: The dataset card, whose ``configs`` decide. Without them a configuration is a folder or a table of
                that name, and a split is a word in the path.

        Raises:
            MissingInputError: There is no such configuration or split.
        """
        configs = _configs(card)
        config, split = self.config, self.place
        if config is None:
            inside = [name for name in names if not split or name == split or name.startswith(f"{split}/")]
            if inside:
                return inside
        if not configs:
            found = [name for name in names if config is None or _belongs(name, config)]
            folders = {table_of(PurePosixPath(name).parts[0]) for name in names if _is_document(name)}
            _require(found, "configuration", config, folders)
            chosen = [name for name in found if not split or _has_word(name, split)]
            _require(chosen, "split", split, {table_of(name) for name in found if _is_document(name)})
            return chosen
        if config is not None:
            _require(config in configs, "configuration", config, configs)
            configs = {config: configs[config]}
        splits = [each for of_config in configs.values() for each in of_config]
        wanted = [patterns for name, patterns in splits if not split or name == split]
        _require(wanted, "split", split, {name or "train" for name, _ in splits})
        chosen = [name for name in names if any(_matches(name, patterns) for patterns in wanted)]
        _require(chosen, "files of the configuration", config, ())
        return chosen


def card_metadata(card: bytes) -> dict[str, Any]:
    """The metadata at the beginning of a dataset card; empty where there are none, or none that can be read."""
    import yaml  # comes with the Hub's client

    match = _FRONT_MATTER.match(card[:MAX_CARD].replace(b"\r\n", b"\n"))
    try:
        found = yaml.safe_load(match[1]) if match else None
    except (yaml.YAMLError, ValueError, RecursionError):  # a ValueError is a date that does not exist
        return {}
    return found if isinstance(found, dict) else {}


def _configs(card: bytes) -> dict[str, list[tuple[str, list[str]]]]:
    """Splits of each configuration of a card, with the patterns of their files."""
    listed = card_metadata(card).get("configs")
    configs: dict[str, list[tuple[str, list[str]]]] = {}
    for config in listed if isinstance(listed, list) else ():
        if isinstance(config, dict) and (splits := list(_splits(config))):
            configs[str(config.get("config_name", "default"))] = splits
    return configs


def _splits(config: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    files, folder = config.get("data_files"), config.get("data_dir")
    prefix = f"{folder.strip('/')}/" if isinstance(folder, str) and folder.strip("/") else ""
    if files is None:
        files = "**"
    if isinstance(files, dict):
        files = [{"split": split, "path": path} for split, path in files.items()]
    if isinstance(files, list) and any(isinstance(each, dict) for each in files):
        for each in files:
            if isinstance(each, dict):
                yield str(each.get("split", "train")), _patterns(prefix, each.get("path"))
    else:
        yield "train", _patterns(prefix, files)


def _patterns(prefix: str, given: Any) -> list[str]:
    each = given if isinstance(given, list) else [given]
    return [prefix + pattern.removeprefix("./") for pattern in each if isinstance(pattern, str)]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    from fsspec.utils import glob_translate

    return any(
        name == pattern or (len(pattern) < _MAX_PATTERN and re.match(glob_translate(pattern), name) is not None)
        for pattern in patterns
    )


def _belongs(name: str, config: str) -> bool:
    return config in PurePosixPath(name).parts[:-1] or table_of(PurePosixPath(name).name) == config


def _has_word(name: str, split: str) -> bool:
    words = next((known for known in _SYNONYMS if split in known), (split,))
    return any(re.search(rf"(?:^|[-._ /]){re.escape(word)}(?:[-._ /0-9]|$)", name) for word in words)


def _is_document(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def _require(found: object, what: str, name: str | None, there: Iterable[str]) -> None:
    if not found:
        known = sorted(there)
        listed = ", ".join(known[:_MAX_LISTED]) + (" …" if len(known) > _MAX_LISTED else "")
        remedy = f"There are: {listed}." if listed else "Check the card of the dataset."
        raise MissingInputError(f"the dataset has no {what} {name!r}", remedy=remedy)
