"""The licence of the pages of a run: that of the cards of the datasets that they come from."""

from __future__ import annotations

import functools
import glob
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from pagemill.app.publish import LICENCE
from pagemill.errors import UsageError, lacks_extra
from pagemill.sources.download import source_of
from pagemill.sources.hub import CARD, MAX_CARD, DatasetAddress, card_metadata
from pagemill.sources.items import is_url
from pagemill.sources.locate import absolute, expand, folder_of
from pagemill.sources.remote import dataset_card

_REMEDY = "Pass the licence of the pages with --licence ID, such as cc-by-4.0."


def licence_of(places: Iterable[str], *, recursive: bool = False, parsed: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The licence that the cards of datasets name, and the cards.

    Args:
        places: Inputs, or parsed files: paths, patterns and URLs.
        recursive: Folders are read with the folders in them, which may have cards of their own.
        parsed: Parsed files. Those in the places count even if the places no longer name them.

    Raises:
        UsageError: A place has no card with a licence, or the cards name different ones.
        MissingDependencyError: The Hub's client is not installed, which reads cards.
        NetworkError: The Hub cannot be reached.
    """
    if find_spec("huggingface_hub") is None:
        raise lacks_extra("the licence of a dataset's card cannot be read without the Hub's client", "hub")
    before = list(dict.fromkeys(folder_of(each) for each in parsed if not is_url(each)))
    cards = dict.fromkeys(each for place in places for each in _cards_of(place, recursive, before))
    licences: dict[str, str] = {}
    for candidates in cards:
        for card in candidates:
            if licence := _named(_read(card)):
                licences[card] = licence
                break
        else:
            where = candidates[-1].removesuffix(f"/{CARD}") if candidates else "the input"
            raise UsageError(f"--hf-repo needs a licence, and no dataset card of {where} names one", remedy=_REMEDY)
    # Which one holds for the whole is a question for a lawyer, not for a program.
    if len(set(licences.values())) > 1:
        named = "; ".join(f"{licence} by {card}" for card, licence in list(licences.items())[:3])
        raise UsageError(f"the pages are under different licences: {named}", remedy=_REMEDY)
    if not licences:
        raise UsageError("--hf-repo needs a licence, and there are no pages whose dataset names one", remedy=_REMEDY)
    return next(iter(licences.values())), list(licences)


def foreign_places(places: Iterable[str], inputs: Sequence[str]) -> list[str]:
    """Parsed files that are in none of the inputs."""
    dataset_of = functools.cache(source_of)  # which reads a file that may be large

    def is_in(place: str, given: str) -> bool:
        if (address := DatasetAddress.parse(given)) is None:
            return _is_in(place, given)
        # On the Hub, with any revision, or in a copy of it.
        source = DatasetAddress.parse((place if is_url(place) else dataset_of(folder_of(place))) or "")
        return source is not None and source.name == address.name

    return [place for place in places if not any(is_in(place, given) for given in inputs)]


def _is_in(place: str, given: str) -> bool:
    if is_url(given):
        return place.startswith(given)
    return Path(place).is_relative_to(folder_of(given) if glob.has_magic(given) else absolute(given))


def _cards_of(place: str, recursive: bool, before: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """Where the card of each folder with files of a place may be, nearest first.

    Last in the folder above the place, as for ``NAME/data``. Not further up: what else lies there has cards of its own,
    of models and programs.

    Args:
        place: An input, or a parsed file.
        recursive: Folders are read with the folders in them.
        before: Folders of parsed files.
    """
    if address := DatasetAddress.parse(place):
        yield (f"{address.root}/{CARD}",)
        return
    if is_url(place):
        yield ()
        return
    top = folder_of(place)
    folders = [top]
    is_folder = absolute(place).is_dir() or (glob.has_magic(place) and not absolute(place).exists())
    if is_folder and source_of(top) is None:  # the card of a dataset on the Hub is for all of it
        items = expand([place], recursive=recursive)
        found = [*(absolute(item.content).parent for item in items if isinstance(item.content, Path)), *before]
        folders = list(dict.fromkeys(each for each in found if each.is_relative_to(top))) or folders
    for folder in folders:
        inside = len(folder.parts) - len(top.parts)
        yield tuple(f"{parent}/{CARD}" for parent in (folder, *folder.parents[: inside + 1]))


def _read(card: str) -> bytes:
    if is_url(card):
        return dataset_card(card.removesuffix(f"/{CARD}"))
    try:
        with Path(card).open("rb") as file:
            return file.read(MAX_CARD)
    except OSError:  # none, or none that we may read: the next one
        return b""


def _named(card: bytes) -> str | None:
    """The licence in the metadata of a card, if it is one."""
    found = card_metadata(card).get("license")
    # The Hub's metadata allow a list; several licences are not an answer.
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    # Cards are written by strangers, and what they name goes into the metadata of a new dataset.
    return found if isinstance(found, str) and LICENCE.fullmatch(found) else None
