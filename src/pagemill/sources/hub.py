"""Datasets on the Hugging Face Hub: addresses, configurations and splits."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, TypeGuard

import msgspec

from pagemill.errors import MissingInputError
from pagemill.imaging.formats import SUFFIXES
from pagemill.late import re
from pagemill.sources.items import table_of

CARD = "README.md"
MAX_CARD = 2**20
"""Bytes of a dataset card that are read."""
_ADDRESS = re.compile(
    r"hf://datasets/(?P<name>[^/@:]+/[^/@:]+)(?:@(?P<revision>refs/(?:pr|convert)/[^/:]+|[^/:]+))?"
    r"(?::(?P<config>[^/]+))?(?:/(?P<place>.*))?"
)
_SYNONYMS = (("train", "training"), ("validation", "valid", "val", "dev"), ("test", "testing", "eval", "evaluation"))
_MAX_LISTED = 20
_MAX_PATTERN = 1_000
"""Characters of a pattern; a longer one is the name of no file."""
_MAX_PATTERNS = 1_000
"""Patterns with wildcards that are compared with all files."""
_MAX_NAME = 256
"""Characters of the name of a configuration or split."""
_MAX_METADATA = 2 * MAX_CARD
"""Characters and values of a card's metadata, each as often as aliases repeat it."""
_MAX_NUMBER = 1_000
_BOM = b"\xef\xbb\xbf"


class DatasetAddress(msgspec.Struct, frozen=True):
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
            MissingInputError: There is no such configuration or split, or its patterns are too many to compare.
        """
        configs = _configs(card)
        config, split = self.config, self.place
        # A path in the repository goes before a split of that name: it is what the user can see on the Hub.
        if config is None:
            inside = [name for name in names if not split or name == split or name.startswith(f"{split}/")]
            if inside:
                return inside
        if not configs:
            found = [name for name in names if config is None or _belongs(name, config)]
            folders = {table_of(PurePosixPath(name).parts[0]) for name in names if is_document(name)}
            _require(found, "configuration", config, folders)
            chosen = [name for name in found if not split or _has_word(name, split)]
            _require(chosen, "split", split, {table_of(name) for name in found if is_document(name)})
            return chosen
        if config is not None:
            _require(config in configs, "configuration", config, configs)
            configs = {config: configs[config]}
        splits = [each for of_config in configs.values() for each in of_config]
        wanted = [patterns for name, patterns in splits if not split or name == split]
        _require(wanted, "split", split, {name or "train" for name, _ in splits})
        chosen = _matching(names, dict.fromkeys(itertools.chain(*wanted)))
        _require(chosen, "files of the configuration", config, ())
        return chosen


def card_metadata(card: bytes) -> dict[str, Any]:
    """The metadata at the start of a dataset card; empty if there are none, or if they cannot be read."""
    import yaml  # comes with the Hub's client

    # Cards are untrusted, and PyYAML fails in many ways on a value that does not match its tag: with KeyError,
    # IndexError, AttributeError, OverflowError and others, besides its own errors and RecursionError.
    try:
        loader = yaml.SafeLoader(_front_matter(card[:MAX_CARD]))
        root = loader.get_single_node()
        if root is None or not _is_bounded(root):
            return {}
        found = loader.construct_document(root)
    except Exception:
        return {}
    return found if isinstance(found, dict) else {}


def _front_matter(card: bytes) -> bytes:
    """The lines between a first line ``---`` and the next one."""
    lines = [line.rstrip() for line in card.removeprefix(_BOM).split(b"\n")]
    if lines[0] != b"---" or b"---" not in lines[1:]:
        return b""
    return b"\n".join(lines[1 : lines.index(b"---", 1)])


def _is_bounded(root: Any) -> bool:
    """Whether metadata, with its aliases expanded, is of bounded size, and its numbers of bounded length."""
    import yaml

    # Aliases of aliases multiply: a card of 1 kB can expand to gigabytes ("billion laughs").
    left, nodes = _MAX_METADATA, [root]
    while nodes:
        node = nodes.pop()
        left -= 1 + len(node.value)
        if left < 0:
            return False
        if isinstance(node, yaml.MappingNode):
            nodes.extend(each for pair in node.value for each in pair)
        elif isinstance(node, yaml.SequenceNode):
            nodes.extend(node.value)
        elif len(node.value) > _MAX_NUMBER and not node.tag.endswith(":str"):
            return False
    return True


def _configs(card: bytes) -> dict[str, list[tuple[str, list[str]]]]:
    """Splits of each configuration of a card, with the patterns of their files."""
    listed = card_metadata(card).get("configs")
    configs: dict[str, list[tuple[str, list[str]]]] = {}
    for config in listed if isinstance(listed, list) else ():
        if isinstance(config, dict) and (splits := list(_splits(config))):
            name = config.get("config_name", "default")
            if _is_name(name):
                configs[name] = splits
    return configs


def _splits(config: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    files, folder = config.get("data_files"), config.get("data_dir")
    if isinstance(folder, str) and len(folder) > _MAX_PATTERN:
        return
    prefix = f"{folder.strip('/')}/" if isinstance(folder, str) and folder.strip("/") else ""
    # As the datasets library does for a configuration with a folder alone.
    if files is None:
        files = "**"
    if isinstance(files, dict):
        files = [{"split": split, "path": path} for split, path in files.items()]
    if isinstance(files, list) and any(isinstance(file, dict) for file in files):
        for each in files:
            if isinstance(each, dict) and _is_name(split := each.get("split", "train")):
                yield split, _patterns(prefix, each.get("path"))
    else:
        yield "train", _patterns(prefix, files)


def _patterns(prefix: str, given: Any) -> list[str]:
    each = given if isinstance(given, list) else [given]
    patterns = [prefix + pattern.removeprefix("./") for pattern in each if isinstance(pattern, str)]
    return [pattern for pattern in patterns if len(pattern) <= _MAX_PATTERN]


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _MAX_NAME


def _matching(names: Sequence[str], patterns: Iterable[str]) -> list[str]:
    exact = set(patterns)
    # Exact names are looked up in a set: only patterns with wildcards cost a comparison with every file.
    wild = [pattern.split("/") for pattern in patterns if glob.has_magic(pattern)]
    if len(wild) > _MAX_PATTERNS:
        raise MissingInputError(
            f"the dataset card has {len(wild):,} patterns for these files; the limit is {_MAX_PATTERNS:,}",
            remedy="Name a configuration, or a folder or file of the dataset.",
        )
    parts = [name.split("/") for name in names]
    found = {at for pattern in wild for at, name in enumerate(parts) if _matches(name, pattern)}
    return [name for at, name in enumerate(names) if at in found or name in exact]


def _matches(name: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a pattern matches a path, both split into components; ``**`` matches any number of components.

    Linear in both: one regular expression for the whole path would backtrack without bound on hostile patterns.
    """
    reached: Collection[int] = {0}  # the numbers of components that the pattern up to here can be
    for at, part in enumerate(pattern, 1):
        if part == "**":  # at the end it is one component or more: a/** is not a
            reached = range(min(reached) + (at == len(pattern)), len(name) + 1)
        else:
            reached = {end + 1 for end in reached if end < len(name) and fnmatchcase(name[end], part)}
        if not reached:
            return False
    return len(name) in reached


def _belongs(name: str, config: str) -> bool:
    return config in PurePosixPath(name).parts[:-1] or table_of(PurePosixPath(name).name) == config


def _has_word(name: str, split: str) -> bool:
    words = next((known for known in _SYNONYMS if split in known), (split,))
    return any(re.search(rf"(?:^|[-._ /]){re.escape(word)}(?:[-._ /0-9]|$)", name) for word in words)


def is_document(name: str) -> bool:
    """Whether pagemill reads a file of a dataset, by its name."""
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def _require(found: object, what: str, name: str | None, there: Iterable[str]) -> None:
    if not found:
        known = sorted(there)
        listed = ", ".join(known[:_MAX_LISTED]) + (" …" if len(known) > _MAX_LISTED else "")
        remedy = f"Available: {listed}." if listed else "Check the card of the dataset."
        raise MissingInputError(f"the dataset has no {what} {name!r}", remedy=remedy)
