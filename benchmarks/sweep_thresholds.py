"""Changes each threshold by a fifth, down and up, and tells how many pages change and how the scores move.

Thresholds are the numbers of all ``pagemill.*.thresholds`` modules, and with ``--constants`` the numbers that the
modules of a package hold themselves. What engines answer (layout model, text detection, lines read) is kept by the
digest of their input, so that a page costs what its assembly costs; what is inside of an engine is not swept. All
numbers that a page reads are changed at once; only if the page changes, they are searched by halves. A number that has
moved enough pages is not asked about any more, so that what is left costs two parses a page.

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
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import pagemill
from accuracy import file_of, seeds_of, severities_of
from page_scores import PageScore, score_page
from pagemill.config.machine import RuntimeSettings
from pagemill.config.settings import ParseSettings
from pagemill.parsing.page import ParsedPage, parse_page
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.runtime.text_reading import TextReading
from pagemill.sources.options import SourceOptions
from pagemill.tables.structure_model import packaged_model
from pages.draw import CACHE, Press

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion
    from pagemill.recognition.base import DetectedLine, RecognizedText
    from pagemill.recognition.reader import ReadPage
    from pagemill.runtime.flight import Ticket
    from pagemill.sources.base import EncodedImage, PageRef, PdfPage
    from pages.draw import Page

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
    ("pagemill.recognition.scripts", "script_shares"),
)


def remember() -> None:
    """Have the costly functions remembered, wherever they were imported to."""
    for owner, name in _COSTLY:
        function = getattr(sys.modules[owner], name)
        _put(name, function, Remembered(function))
    model = packaged_model()
    model.predict = Remembered(model.predict)  # type: ignore[method-assign]


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
        if not f"{owner}.".startswith(tuple(f"pagemill.{package}." for package in packages)):
            continue
        if owner.endswith(".thresholds"):
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
        whole = number.watched.now(number.name)
        number.watched.changed[number.name] = _replaced(whole, number.path, value)
        try:
            yield
        finally:
            number.watched.changed[number.name] = whole
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


class Kept(Services):
    """Services that keep what engines answer for a page, by their input; they compute where they are called.

    Args:
        settings: As of services.
        probe: Called with each page in turn, once it has been parsed.
    """

    def __init__(self, settings: ParseSettings, probe: Callable[[Kept, PageRef], Awaitable[None]]) -> None:
        super().__init__(settings, RuntimeSettings(threads=1, decoders=1))
        self.read_again = False
        """Whether the logic of recognition runs again on the lines read, instead of keeping its result."""
        self._probe = probe
        self._alone = asyncio.Lock()
        self._forget()

    @property
    def has_read(self) -> bool:
        """Whether lines of the page were recognized."""
        return bool(self._pages)

    def _forget(self) -> None:
        self._decoded: dict[int, DecodedPage] = {}
        self._regions: dict[bytes, list[DetectedRegion]] = {}
        self._pages: dict[tuple[bytes, Any], ReadPage] = {}

    async def probed(self, ref: PageRef) -> ParsedPage:
        """Parse a page, and probe it."""
        async with self._alone:
            self._forget()
            self._text = KeptText(self._text)
            await self._probe(self, ref)
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

    async def read(self, pixels: Pixels, languages: Sequence[str] | None, *, bends: bool = False) -> ReadPage:
        """Read a page once, or its lines once."""
        if self.read_again:
            return await super().read(pixels, languages, bends=bends)
        key = (digest(pixels), languages)
        if key not in self._pages:
            self._pages[key] = await super().read(pixels, languages, bends=bends)
        return copy.deepcopy(self._pages[key])

    async def compute(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function here and now."""
        return function(*args, **kwargs)


class Probing(Pipeline):
    """A pipeline that probes each page."""

    services: Kept

    async def _parse(self, ref: PageRef, ticket: Ticket) -> ParsedPage:
        return await self.services.probed(ref)


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


async def parsed(services: Services, ref: PageRef) -> bytes:
    """The record of a page without times, as JSON."""
    record = (await parse_page(ref, services, services.settings)).record
    record.timings = {}
    return msgspec.json.encode(record)


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


@dataclass(slots=True)
class Sweep:
    """What is known of the numbers so far.

    Args:
        truths: Drawn pages by the name of their file.
        factors: By which the numbers are changed.
        enough: Changed pages after which a number is not asked about any more.
        only: Numbers whose title holds this; empty for all.
    """

    truths: dict[str, Page]
    factors: Sequence[float]
    enough: int
    only: str = ""
    numbers: list[Number] = field(default_factory=list)
    before: dict[str, PageScore | None] = field(default_factory=dict)
    """Scores by page; None without truth."""
    reached: Counter[Number] = field(default_factory=Counter)
    after: dict[tuple[Number, float], dict[str, PageScore | None]] = field(default_factory=lambda: defaultdict(dict))
    """Scores of the pages that a number moves."""
    unsteady: list[str] = field(default_factory=list)
    """Pages that are not the same when parsed twice."""

    def pages_of(self, number: Number) -> set[str]:
        """The pages that a number is known to move."""
        return {name for factor in self.factors for name in self.after.get((number, factor), ())}

    async def probe(self, services: Kept, ref: PageRef) -> None:
        """Find the numbers that move a page."""
        start = time.perf_counter()
        name = f"{ref.document.uri}#{ref.page_number}"
        truth = self.truths.get(Path(ref.document.uri).name)
        with noted() as read:
            record = await parsed(services, ref)
        first = time.perf_counter() - start
        if await parsed(services, ref) != record:
            self.unsteady.append(name)
            return
        self.before[name] = _scored(truth, record)
        mine = [n for n in self.numbers if ((n.watched, n.name) in read if n.watched else services.has_read)]
        self.reached.update(mine)
        open_ = [number for number in mine if len(self.pages_of(number)) < self.enough]
        open_.sort(key=lambda number: -len(self.pages_of(number)))  # what may move it is soon found together
        moved = parses = 0
        for factor in self.factors:
            groups = [[n for n in open_ if n.watched is None], [n for n in open_ if n.watched is not None]]
            while groups:
                group = groups.pop()
                if not group:
                    continue
                with ExitStack() as changes:
                    for number in group:
                        changes.enter_context(changed(number, number.moved(factor)))
                    services.read_again = any(number.watched is None for number in group)
                    again = await parsed(services, ref)
                    services.read_again = False
                    parses += 1
                if again == record:
                    continue
                if len(group) == 1:
                    self.after[group[0], factor][name] = _scored(truth, again)
                    moved += 1
                else:
                    groups += [group[: len(group) // 2], group[len(group) // 2 :]]
        seconds = time.perf_counter() - start
        print(
            f"{len(self.before)} {name}: {len(mine)} numbers, {len(open_)} asked, {moved} moves, {parses} parses;"
            f" {first:.1f} of {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )

    def result(self) -> dict[str, Any]:
        """For JSON and :func:`report`."""
        rows = []
        for number in self.numbers:
            if not self.reached[number]:
                continue
            row: dict[str, Any] = {"number": number.title, "value": number.value, "reached": self.reached[number]}
            for factor in self.factors:
                after = self.after.get((number, factor), {})
                row[f"{factor:g}"] = {"pages": list(after), "moved": self._movement(after)}
            rows.append(row)
        return {
            "pages": len(self.before),
            "with_truth": sum(score is not None for score in self.before.values()),
            "factors": list(self.factors),
            "enough": self.enough,
            "unsteady": self.unsteady,
            "rows": rows,
            "unread": [number.title for number in self.numbers if not self.reached[number]],
        }

    def _movement(self, after: dict[str, PageScore | None]) -> dict[str, float]:
        known = {name: score for name, score in self.before.items() if score is not None}
        now = {name: after.get(name) or score for name, score in known.items()}
        return movement(list(known.values()), list(now.values()))


def _scored(truth: Page | None, record: bytes) -> PageScore | None:
    """The score of a page's record; None without truth."""
    if truth is None:
        return None
    values = msgspec.json.decode(record)
    return score_page(truth.blocks, values["markdown"], values["regions"])


async def run(sweep: Sweep, inputs: Sequence[Path], packages: Sequence[str], seconds: float, out: Path | None) -> None:
    """Probe the pages of files, one by one, and write what is known after each.

    Args:
        sweep: What to fill.
        inputs: Files to parse.
        packages: Packages whose modules' own numbers are swept, too.
        seconds: After so long, no other page is begun.
        out: Where to write to; None for nowhere.
    """
    start = time.perf_counter()
    numbers = watch()
    remember()
    sweep.numbers = [number for number in numbers + constants(packages) if sweep.only in number.title]
    async with Probing(Kept(ParseSettings(crops=False), sweep.probe)) as pipeline:
        async for _ in pipeline.stream(inputs, SourceOptions()):
            if out:
                out.write_text(json.dumps(sweep.result(), ensure_ascii=False, indent=1), encoding="utf-8")
            if time.perf_counter() - start > seconds:
                break


def report(result: dict[str, Any]) -> str:
    """The results as a Markdown table and lists."""
    factors = [f"{factor:g}" for factor in result["factors"]]
    lines = [
        f"{result['pages']} pages, {result['with_truth']} of them with truth; a number that moved {result['enough']}"
        " pages is not asked about any more. Scores in percent points; CER, order and formula are errors.",
        "",
        "| number | value | pages that read it |"
        + "".join(f" changed at × {factor} |" for factor in factors)
        + "".join(f" scores × {factor} |" for factor in factors),
        "|---|--:|--:|" + "--:|" * len(factors) + "---|" * len(factors),
    ]
    dead, lone = [], []
    for row in result["rows"]:
        sides = [row[factor] for factor in factors]
        moves = [", ".join(f"{k} {v:+.2f}" for k, v in side["moved"].items()) or "–" for side in sides]
        counts = [str(len(side["pages"])) for side in sides]
        cells = [row["number"], f"{row['value']:g}", str(row["reached"]), *counts, *moves]
        lines.append(f"| {' | '.join(cells)} |")
        pages = {page for side in sides for page in side["pages"]}
        if not pages:
            dead.append(f"{row['number']} ({row['reached']})")
        elif len(pages) == 1:
            lone.append(f"{row['number']} ({Path(pages.pop()).name})")
    lines += ["", f"Read by no page ({len(result['unread'])}): {', '.join(result['unread'])}", ""]
    lines += [f"Read, and moves nothing ({len(dead)}; pages that read it): {', '.join(dead)}", ""]
    lines += [f"Moves a single page ({len(lone)}): {', '.join(lone)}"]
    if result["unsteady"]:
        lines += ["", f"Not the same twice: {', '.join(result['unsteady'])}"]
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="*", type=Path, metavar="FILE", help="files without truth")
    parser.add_argument("--seeds", type=seeds_of, default="0-31", metavar="A-B", help="drawn pages (default 0-31)")
    parser.add_argument("--severity", type=severities_of, default="digital,0", help="as in accuracy.py")
    parser.add_argument(
        "--constants", default="", metavar="PACKAGES", help="also numbers of modules: recognition.reader,…"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="numbers whose name holds this")
    parser.add_argument("--factors", default="0.8,1.2", help="by which numbers are changed (default 0.8,1.2)")
    parser.add_argument("--enough", type=int, default=4, metavar="N", help="changed pages of a number (default 4)")
    parser.add_argument("--minutes", type=float, default=40, help="begin no other page after so long (default 40)")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where drawn pages are kept (default {CACHE})")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write the results")
    arguments = parser.parse_args()
    truths = {}
    inputs = list(arguments.inputs)
    with Press(arguments.cache) as press:
        pages = list(press.pages(arguments.seeds))
        for severity in arguments.severity:
            for page in pages:
                path = file_of(page, severity)
                truths[path.name] = page
                inputs.append(path)
    packages = [name for name in arguments.constants.split(",") if name]
    factors = [float(factor) for factor in arguments.factors.split(",")]
    sweep = Sweep(truths, factors, arguments.enough, arguments.only)
    asyncio.run(run(sweep, inputs, packages, arguments.minutes * 60, arguments.out))
    print(report(sweep.result()))


if __name__ == "__main__":
    main()
