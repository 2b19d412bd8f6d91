"""Changes each threshold by a fifth, down and up, and tells how many pages change and how the scores move.

Thresholds are the numbers of all ``pagemill.*.thresholds`` modules, and with ``--constants`` the numbers that the
modules of a package hold themselves. What engines answer (layout model, text detection, lines read) is kept by the
digest of their input, so that a page costs what its assembly costs; what is inside of an engine is not swept. A page
is parsed anew only if it read the number.

Pages: drawn ones with truth (`accuracy.py` says what the scores are), and any files beside them, of which is only told
whether they change. A number that changes no page is dead or untested; one that a single page needs is suspect.

    python benchmarks/sweep_thresholds.py --seeds 0-31 --severity digital,0 samples/*.pdf --out sweep.json
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import dataclasses
import hashlib
import importlib
import inspect
import json
import pickle
import pkgutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import pagemill
from accuracy import file_of, seeds_of, severities_of
from page_scores import PageScore, score_page
from pagemill.config.settings import ParseSettings, RuntimeSettings
from pagemill.parsing.page import ParsedPage, parse_page
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.text_reading import TextReading
from pagemill.sources.options import SourceOptions
from pages.draw import CACHE, Press

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion
    from pagemill.recognition.base import DetectedLine, RecognizedText
    from pagemill.recognition.reader import ReadPage
    from pagemill.runtime.flight import Ticket
    from pagemill.sources.base import EncodedImage, PageRef, PdfPage
    from pages.draw import Page

SHARE = 0.2
_MEASURES = ("cer", "order", "teds", "teds_s", "formula")


class Watched:
    """Stands in for an object with thresholds: notes which ones are read, and gives other values for some."""

    def __init__(self, thresholds: Any) -> None:
        self.__dict__.update(thresholds=thresholds, changed={})

    def __getattr__(self, name: str) -> Any:
        for reads in _reading:
            reads.add((self, name))
        return self.now(name)

    def now(self, name: str) -> Any:
        """The present value, without a note of it."""
        return self.changed[name] if name in self.changed else getattr(self.thresholds, name)


_reading: list[set[tuple[Watched, str]]] = []
"""What is being noted: which thresholds are read, by each remembered function that runs and by the page."""


@contextmanager
def noted() -> Iterator[set[tuple[Watched, str]]]:
    """The thresholds that are read inside."""
    reads: set[tuple[Watched, str]] = set()
    _reading.append(reads)
    try:
        yield reads
    finally:
        _reading.pop()
        for outer in _reading:
            outer.update(reads)


class Remembered:
    """A costly function without side effects: computed once for its arguments and the thresholds that it reads."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._known: dict[bytes, list[tuple[dict[tuple[Watched, str], Any], Any]]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result."""
        key = hashlib.blake2b(pickle.dumps((args, kwargs), protocol=5), digest_size=16).digest()
        known = self._known.setdefault(key, [])
        for values, result in known:
            if all(watched.now(name) == value for (watched, name), value in values.items()):
                for reads in _reading:
                    reads.update(values)
                return result
        with noted() as reads:
            result = self._function(*args, **kwargs)
        known.append(({(watched, name): watched.now(name) for watched, name in reads}, result))
        return result


_COSTLY = (
    ("pagemill.tables.rules", "find_rules"),
    ("pagemill.tables.rules", "has_rules"),
    ("pagemill.parsing.text_layer_soundness", "judge"),
)


def remember() -> None:
    """Have the costly functions remembered, wherever they were imported to."""
    for owner, name in _COSTLY:
        function = getattr(sys.modules[owner], name)
        _put(name, function, Remembered(function))


def _put(name: str, old: Any, new: Any) -> list[Any]:
    """Put something else wherever a module holds an object by its name; the modules."""
    holders = [
        module
        for owner, module in list(sys.modules.items())
        if owner.startswith("pagemill") and vars(module).get(name) is old
    ]
    for holder in holders:
        setattr(holder, name, new)
    return holders


@dataclass(frozen=True, slots=True)
class Number:
    """A number that can be changed."""

    owner: str
    """The module it stands in."""
    name: str
    path: tuple[int, ...]
    """Of a number within a tuple: its place."""
    value: float
    whole: bool
    watched: Watched | None
    """None for a constant of a module."""

    @property
    def title(self) -> str:
        """As it is shown."""
        return f"{self.owner.removeprefix('pagemill.')}.{self.name}{''.join(f'[{i}]' for i in self.path)}"

    def moved(self, factor: float) -> float:
        """The value times a factor; a whole number moves by at least 1."""
        value = self.value * factor
        if not self.whole:
            return value
        step = max(1, round(abs(value - self.value)))
        return int(self.value + (step if factor > 1 else -step))


def watch() -> list[Number]:
    """Put every thresholds object under watch, wherever it was imported to; their numbers."""
    for found in pkgutil.walk_packages(pagemill.__path__, "pagemill."):
        if ".thresholds" in found.name:
            importlib.import_module(found.name)
    numbers = []
    for owner, module in list(sys.modules.items()):
        if not (owner.startswith("pagemill.") and owner.endswith(".thresholds")):
            continue
        for variable, thresholds in list(vars(module).items()):
            if not variable.isupper() or not type(thresholds).__module__.startswith(("pagemill", "builtins")):
                continue
            if not (inspect.isclass(thresholds) or hasattr(type(thresholds), "__dict__")):
                continue
            watched = Watched(thresholds)
            _put(variable, thresholds, watched)
            for name in dir(thresholds):
                if not name.startswith("_"):
                    numbers += _numbers(owner, name, getattr(thresholds, name), watched)
    return numbers


def constants(packages: Sequence[str]) -> list[Number]:
    """Numbers that the modules of some packages hold themselves."""
    numbers = []
    for owner, module in sorted(sys.modules.items()):
        if not any(owner.startswith(f"pagemill.{package}.") for package in packages) or owner.endswith(".thresholds"):
            continue
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            if name.isupper() and f"\n{name}" in source and isinstance(value, (int, float, tuple)):
                numbers += _numbers(owner, name, value, None)
    return numbers


def _numbers(owner: str, name: str, value: Any, watched: Watched | None, path: tuple[int, ...] = ()) -> list[Number]:
    if isinstance(value, tuple):
        return [n for i, part in enumerate(value) for n in _numbers(owner, name, part, watched, (*path, i))]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return []
    return [Number(owner, name, path, value, isinstance(value, int), watched)]


def _replaced(value: Any, path: tuple[int, ...], number: float) -> Any:
    if not path:
        return number
    return tuple(_replaced(part, path[1:], number) if i == path[0] else part for i, part in enumerate(value))


@contextmanager
def changed(number: Number, value: float) -> Iterator[None]:
    """Give a number another value for a while, everywhere."""
    if number.watched is not None:
        whole = getattr(number.watched.thresholds, number.name)
        number.watched.changed[number.name] = _replaced(whole, number.path, value)
        try:
            yield
        finally:
            del number.watched.changed[number.name]
        return
    original = vars(sys.modules[number.owner])[number.name]
    new = _replaced(original, number.path, value)
    holders = _put(number.name, original, new)
    try:
        yield
    finally:
        for holder in holders:
            setattr(holder, number.name, original)


def digest(pixels: Pixels) -> bytes:
    """Of every 25th pixel and the size: pages are told apart by it, and it takes no time."""
    sample = np.ascontiguousarray(pixels[::5, ::5])
    return hashlib.blake2b(sample.tobytes() + str(pixels.shape).encode(), digest_size=16).digest()


class Kept(Pipeline):
    """A pipeline that keeps what engines answer, by their input; it computes where it is called."""

    def __init__(self, settings: ParseSettings) -> None:
        super().__init__(settings, RuntimeSettings(threads=1, decoders=1))
        self.refs: list[PageRef] = []
        self.read_again = False
        """Whether the logic of recognition runs again on the lines read, instead of keeping its result."""
        self._decoded: dict[int, DecodedPage] = {}
        self._regions: dict[bytes, list[DetectedRegion]] = {}
        self._pages: dict[tuple[bytes, Any], ReadPage] = {}

    async def _parse(self, ref: PageRef, ticket: Ticket) -> ParsedPage:
        self.refs.append(ref)
        self._text = KeptText(self._text) if not isinstance(self._text, KeptText) else self._text
        return await parse_page(ref, self, self.settings)

    async def decode(self, payload: PdfPage | EncodedImage) -> DecodedPage:
        """Decode a page once."""
        if id(payload) not in self._decoded:
            self._decoded[id(payload)] = await super().decode(payload)
        page = self._decoded[id(payload)]
        return dataclasses.replace(page, text_layer=copy.deepcopy(page.text_layer))

    async def detect_regions(self, pixels: Pixels) -> list[DetectedRegion]:
        """Detect layout regions once."""
        key = digest(pixels)
        if key not in self._regions:
            self._regions[key] = await super().detect_regions(pixels)
        return copy.deepcopy(self._regions[key])

    async def read(self, pixels: Pixels, languages: Sequence[str] | None) -> ReadPage:
        """Read a page once, or its lines once."""
        if self.read_again:
            return await super().read(pixels, languages)
        key = (digest(pixels), languages)
        if key not in self._pages:
            self._pages[key] = await super().read(pixels, languages)
        return copy.deepcopy(self._pages[key])

    async def compute(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function here and now."""
        return function(*args, **kwargs)


class KeptText(TextReading):
    """Text reading that finds the lines of a page once, and reads each line image once."""

    def __init__(self, real: TextReading) -> None:
        self.__dict__.update(real.__dict__)
        self._found: dict[bytes, list[DetectedLine]] = {}
        self._read: dict[tuple[str, bytes], RecognizedText] = {}

    async def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find the lines of a page."""
        key = digest(page)
        if key not in self._found:
            self._found[key] = await super().detect(page)
        return list(self._found[key])

    async def recognize(self, engine: str, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images."""
        keys = [
            (engine, hashlib.blake2b(line.tobytes() + str(line.shape).encode(), digest_size=16).digest())
            for line in lines
        ]
        missing = [index for index, key in enumerate(keys) if key not in self._read]
        for index, text in zip(missing, await super().recognize(engine, [lines[i] for i in missing]), strict=True):
            self._read[keys[index]] = text
        return [self._read[key] for key in keys]

    async def compute(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function here and now."""
        return function(*args, **kwargs)


@dataclass(slots=True)
class Subject:
    """A page that is parsed again and again."""

    name: str
    ref: PageRef
    truth: Page | None
    record: bytes = b""
    score: PageScore | None = None
    read: set[tuple[Watched, str]] = field(default_factory=set)
    """Thresholds that it read."""


async def parsed(pipeline: Kept, subject: Subject) -> bytes:
    """The record of a page without times, as JSON."""
    record = (await parse_page(subject.ref, pipeline, pipeline.settings)).record
    record.timings = {}
    return msgspec.json.encode(record)


def scored(subject: Subject, record: bytes) -> PageScore | None:
    """The score of a page's record; None without truth."""
    if subject.truth is None:
        return None
    values = msgspec.json.decode(record)
    return score_page(subject.truth.blocks, values["markdown"], values["regions"])


def movement(before: Sequence[PageScore], after: Sequence[PageScore]) -> dict[str, float]:
    """How far the means of the measures move, in percent points."""
    moved = {}
    for measure in _MEASURES:
        means = []
        for scores in (before, after):
            values: list[float] = []
            for score in scores:
                value = getattr(score, measure)
                values += value if isinstance(value, list) else [] if value is None else [value]
            means.append(100 * float(np.mean(values)) if values else 0.0)
        if abs(means[1] - means[0]) > 1e-9:
            moved[measure] = round(means[1] - means[0], 4)
    return moved


async def sweep(
    inputs: Sequence[Path], truths: dict[str, Page], packages: Sequence[str], only: str, seconds: float
) -> dict[str, Any]:
    """Parse all pages, then again for each number and direction.

    Args:
        inputs: Files to parse.
        truths: Drawn pages by the name of their file.
        packages: Packages whose modules' own numbers are swept, too.
        only: Numbers whose title holds this; empty for all.
        seconds: After so long, no other number is begun.
    """
    start = time.perf_counter()
    async with Kept(ParseSettings(crops=False)) as pipeline:
        numbers = watch()
        remember()
        async for _ in pipeline.stream(inputs, SourceOptions()):
            pass
        numbers += constants(packages)
        numbers = [number for number in numbers if only in number.title]
        subjects = [
            Subject(f"{ref.document.uri}#{ref.page_number}", ref, truths.get(Path(ref.document.uri).name))
            for ref in pipeline.refs
        ]
        unsteady = []
        for subject in subjects:
            with noted() as subject.read:
                subject.record = await parsed(pipeline, subject)
            subject.score = scored(subject, subject.record)
            if await parsed(pipeline, subject) != subject.record:
                unsteady.append(subject.name)
        print(
            f"{len(subjects)} pages, {len(numbers)} numbers; {time.perf_counter() - start:.0f} s; not the same twice: "
            f"{unsteady or 'none'}",
            file=sys.stderr,
            flush=True,
        )
        before = [subject.score for subject in subjects if subject.score is not None]
        rows: list[dict[str, Any]] = []
        left: list[str] = []
        read = {(watched, name) for subject in subjects for watched, name in subject.read}
        unread = [n for n in numbers if n.watched is not None and (n.watched, n.name) not in read]
        for number in numbers:
            if number in unread:
                continue
            if time.perf_counter() - start > seconds:
                left.append(number.title)
                continue
            pipeline.read_again = number.watched is None
            reached = [s for s in subjects if number.watched is None or (number.watched, number.name) in s.read]
            row: dict[str, Any] = {"number": number.title, "value": number.value, "reached": len(reached)}
            for factor in (1 - SHARE, 1 + SHARE):
                row[f"{factor:g}"] = await _moved(pipeline, number, factor, reached, before, subjects)
            rows.append(row)
            counts = [len(row[f"{factor:g}"]["pages"]) for factor in (1 - SHARE, 1 + SHARE)]
            print(f"{number.title}: {len(reached)} pages read it, {counts} change", file=sys.stderr, flush=True)
    titles = [number.title for number in unread]
    return {"pages": len(subjects), "with_truth": len(before), "rows": rows, "unread": titles, "left": left}


async def _moved(
    pipeline: Kept,
    number: Number,
    factor: float,
    reached: Sequence[Subject],
    before: Sequence[PageScore],
    subjects: Sequence[Subject],
) -> dict[str, Any]:
    scores = {subject.name: subject.score for subject in subjects}
    names = []
    with changed(number, number.moved(factor)):
        for subject in reached:
            record = await parsed(pipeline, subject)
            if record != subject.record:
                names.append(subject.name)
                scores[subject.name] = scored(subject, record)
    after = [score for score in scores.values() if score is not None]
    return {"pages": names, "moved": movement(before, after)}


def report(result: dict[str, Any]) -> str:
    """The results as a Markdown table and lists."""
    low, high = (f"{1 + sign * SHARE:g}" for sign in (-1, 1))
    lines = [
        f"{result['pages']} pages, {result['with_truth']} of them with truth. Scores in percent points; CER, order and"
        " formula are errors.",
        "",
        f"| number | value | pages that read it | changed at × {low} | changed at × {high} | scores × {low} |"
        f" scores × {high} |",
        "|---|--:|--:|--:|--:|---|---|",
    ]
    dead, lone = [], []
    for row in result["rows"]:
        down, up = row[low], row[high]
        moves = [", ".join(f"{k} {v:+.2f}" for k, v in side["moved"].items()) or "–" for side in (down, up)]
        lines.append(
            f"| {row['number']} | {row['value']:g} | {row['reached']} | {len(down['pages'])} | {len(up['pages'])} |"
            f" {moves[0]} | {moves[1]} |"
        )
        pages = {*down["pages"], *up["pages"]}
        if not pages:
            dead.append(row["number"])
        elif len(pages) == 1:
            lone.append(f"{row['number']} ({Path(pages.pop()).name})")
    lines += ["", f"Read by no page ({len(result['unread'])}): {', '.join(result['unread'])}", ""]
    lines += [f"Read, and moves nothing ({len(dead)}): {', '.join(dead)}", ""]
    lines += [f"Moves a single page ({len(lone)}): {', '.join(lone)}"]
    if result["left"]:
        lines += ["", f"Not swept for want of time ({len(result['left'])}): {', '.join(result['left'])}"]
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="*", type=Path, metavar="FILE", help="files without truth")
    parser.add_argument("--seeds", type=seeds_of, default="0-31", metavar="A-B", help="drawn pages (default 0-31)")
    parser.add_argument("--severity", type=severities_of, default="digital,0", help="as in accuracy.py")
    parser.add_argument("--constants", default="", metavar="PACKAGES", help="also numbers of modules: recognition,…")
    parser.add_argument("--only", default="", metavar="TEXT", help="numbers whose name holds this")
    parser.add_argument("--minutes", type=float, default=40, help="begin no other number after so long (default 40)")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where drawn pages are kept (default {CACHE})")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write the results")
    arguments = parser.parse_args()
    truths = {}
    inputs = list(arguments.inputs)
    with Press(arguments.cache) as press:
        for page in press.pages(arguments.seeds):
            for severity in arguments.severity:
                path = file_of(page, severity)
                truths[path.name] = page
                inputs.append(path)
    packages = [name for name in arguments.constants.split(",") if name]
    result = asyncio.run(sweep(inputs, truths, packages, arguments.only, arguments.minutes * 60))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8")
    print(report(result))


if __name__ == "__main__":
    main()
