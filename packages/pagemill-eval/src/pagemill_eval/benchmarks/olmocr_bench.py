"""olmOCR-bench: pass or fail tests of single pages. The rules are those of the ``olmocr`` package."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec
from rapidfuzz import fuzz

from pagemill.errors import CorruptInputError, InputError, MissingInputError
from pagemill_eval import benchmark as base
from pagemill_eval.benchmark import Figure, Prediction, Rules, Sample, SampleScore
from pagemill_eval.benchmarks.olmocr_tables import Grid, html_grids, markdown_grids
from pagemill_eval.benchmarks.omnidocbench.elements import images, replaced
from pagemill_eval.files import read_json_lines

BASELINE = "baseline"
"""Kind of the tests that every page has. Those that no file names are a file of their own in the score."""
_MAX_REPEATS = 30
_MAX_NGRAM = 5
_DISALLOWED = re.compile(
    "[\u4e00-\u9fff\u3040-\u309f\u30a0-\u30ff\U0001f600-\U0001f64f\U0001f300-\U0001f5ff\U0001f680-\U0001f6ff"
    "\U0001f1e0-\U0001f1ff]"
)
_ASCII = str.maketrans(
    {
        **dict.fromkeys("‘’‚", "'"),
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("–—‑‒−", "-"),
        "＿": "_",
        "\u00b5": "\u03bc",
    }
)
_MARKUP = (
    (re.compile(r"<br/?>"), " "),
    (re.compile(r"\s+"), " "),
    (re.compile(r"\*\*(.*?)\*\*"), r"\1"),
    (re.compile(r"__(.*?)__"), r"\1"),
    (re.compile(r"</?[bi]>"), ""),
    (re.compile(r"\*(.*?)\*"), r"\1"),
    (re.compile(r"_(.*?)_"), r"\1"),
)
_DELIMITERS = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))


class PageTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a page; fields are those of its kind."""

    pdf: str
    page: int
    id: str
    type: Literal["present", "absent", "order", "table", "math", "baseline"]
    max_diffs: int = 0
    text: str = ""
    case_sensitive: bool = True
    first_n: int | None = None
    last_n: int | None = None
    before: str = ""
    after: str = ""
    cell: str = ""
    up: str | None = ""
    down: str | None = ""
    left: str | None = ""
    right: str | None = ""
    top_heading: str | None = ""
    left_heading: str | None = ""
    ignore_markdown_tables: bool = False
    math: str = ""
    ignore_dollar_delimited: bool = False
    max_length: int | None = None
    max_length_skips_image_alt_tags: bool = False
    max_repeats: int = _MAX_REPEATS
    check_disallowed_characters: bool = True


class FileTest(msgspec.Struct, frozen=True):
    """A test, and the file that it counts for."""

    file: str
    test: PageTest


class OlmOcrBench(base.Benchmark):
    """olmOCR-bench: tests of pages, the mean of their files' pass rates.

    Official rules have no score where a page has no prediction; by pagemill's rules its tests fail. One repeat is
    scored. Tests of formulas need the package ``olmocr[bench]`` and its browser, unless the formula is there letter by
    letter; without them they are left out and reported.
    """

    name = "olmocr-bench"
    title = "olmOCR-bench"
    kind = base.Kind.MARKDOWN
    origin = "allenai/olmocr f7cfe4c"
    hub_id = "allenai/olmOCR-bench"
    primary = "pass_rate"
    packages = ("fuzzysearch", "beautifulsoup4")
    metrics = (base.Metric(name="pass_rate", description="Share of the page's tests that pass"),)

    def load(self, path: Path) -> list[Sample]:
        """Pages of a folder with ``*.jsonl`` files of tests and ``pdfs/``."""
        if not path.is_dir():
            raise MissingInputError(
                f"{path} is not a folder", remedy="Pass the folder that contains *.jsonl and pdfs/."
            )
        folder = path / "bench_data" if (path / "bench_data").is_dir() else path
        files = sorted(folder.glob("*.jsonl"))
        if not files:
            raise InputError(f"{folder} contains no *.jsonl", remedy="Pass the folder that contains *.jsonl and pdfs/.")
        pages: dict[tuple[str, int], list[FileTest]] = defaultdict(list)
        with_baseline: set[str] = set()
        ids: set[str] = set()
        for file in files:
            for test in read_json_lines(file, PageTest):
                if test.id in ids:
                    raise CorruptInputError(f"{file}: the test {test.id!r} appears twice", remedy="Correct the file.")
                ids.add(test.id)
                pages[test.pdf, test.page].append(FileTest(file.stem, test))
                if test.type == BASELINE:
                    with_baseline.add(test.pdf)
        for pdf in dict.fromkeys(pdf for pdf, _ in pages):
            if pdf not in with_baseline:  # the official scorer tests the first page alone
                added = PageTest(pdf=pdf, page=1, id=f"{pdf}_baseline", type="baseline")
                pages[pdf, 1].append(FileTest(BASELINE, added))
        return base.checked_ids([_sample(folder, pdf, page, tests) for (pdf, page), tests in pages.items()], folder)

    def score(self, sample: Sample, prediction: Prediction, rules: Rules = Rules.PAGEMILL) -> SampleScore:
        """Run the page's tests. None of a page without a prediction passes."""
        is_scored = prediction.status is base.Status.SCORED
        text = prediction.scored_text
        results = [(each, run(each.test, text) if is_scored else False) for each in sample.truth]
        counted = [passed for _, passed in results if passed is not None]
        pairs = [
            base.Pair(
                kind=base.Kind.TEXT,
                truth=_described(each.test),
                prediction=text,
                metric="passed",
                score=float(bool(passed)),
                note=f"{each.test.id} ({each.test.type}{'' if passed is not None else ', not run'})",
            )
            for each, passed in results
        ]
        metrics = {"pass_rate": sum(counted) / len(counted) if counted else None}
        terms = {"tests": [[each.file, each.test.id, each.test.type, passed] for each, passed in results]}
        return prediction.score(sample, metrics, *pairs, terms=terms)

    def aggregate(self, scores: Sequence[SampleScore], rules: Rules = Rules.PAGEMILL) -> dict[str, Figure]:
        """Mean over files of their pass rates, and each file's; baseline tests that no file names are a file."""
        files: dict[str, list[float | None]] = defaultdict(list)
        for score in scores:
            for file, _, _, passed in score.terms.get("tests", ()):
                files[file].append(None if passed is None else float(passed))
        left_out = sum(value is None for values in files.values() for value in values)
        note = f"{left_out} tests of formulas were not run: they need olmocr[bench] and its browser" if left_out else ""
        rates = {file: base.mean(values, "share of tests") for file, values in sorted(files.items())}
        overall = base.mean([rate.value for rate in rates.values()], "mean over files of pass rates", note)
        if rules is Rules.OFFICIAL and any(score.status is not base.Status.SCORED for score in scores):
            void = "a page without a prediction voids the score"
            overall = Figure(value=None, samples=0, aggregation=overall.aggregation, note=void)
        return {"overall": overall, **{f"pass_rate_{file}": rate for file, rate in rates.items()}}


def run(test: PageTest, markdown: str) -> bool | None:
    """Whether a page passes a test; None if this machine cannot decide it."""
    match test.type:
        case "present" | "absent":
            return _has_text(test, markdown) == (test.type == "present")
        case "order":
            return _is_ordered(test, markdown)
        case "table":
            return _has_cell(test, markdown)
        case "math":
            return _has_formula(test, markdown)
        case "baseline":
            return _is_sound(test, markdown)


def normal(text: str) -> str:
    """Text without emphasis, white space and typographic variants of ASCII."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return unicodedata.normalize("NFC", text).translate(_ASCII)


def _sample(folder: Path, pdf: str, page: int, tests: list[FileTest]) -> Sample:
    relative = base.contained(pdf)
    stem = str(PurePosixPath(pdf).with_suffix(""))
    file = folder / "pdfs" / relative
    return Sample(
        id=f"{stem}_pg{page}",
        truth=tests,
        input=base.Input(path=file, page=page) if file.is_file() else None,
        prediction_names=(f"{stem}_pg{page}_repeat1.md",),
    )


def _described(test: PageTest) -> str:
    match test.type:
        case "order":
            return f"{test.before!r} before {test.after!r}"
        case "table":
            sides = ("up", "down", "left", "right", "top_heading", "left_heading")
            asked = [f"{side} {value!r}" for side in sides if (value := getattr(test, side))]
            return f"a cell {test.cell!r}" + (f" with {', '.join(asked)}" if asked else "")
        case "math":
            return f"the formula {test.math}"
        case "baseline":
            return "readable text" if test.max_length is None else f"at most {test.max_length} letters and digits"
    return f"{test.type}: {test.text!r}"


def _threshold(test: PageTest, text: str) -> float:
    return 1.0 - test.max_diffs / max(1, len(text))


def _has_text(test: PageTest, markdown: str) -> bool:
    query, content = normal(test.text), normal(markdown)
    if not test.case_sensitive:
        query, content = query.lower(), content.lower()
    if test.first_n and test.last_n:
        content = content[: test.first_n] + content[-test.last_n :]
    elif test.first_n:
        content = content[: test.first_n]
    elif test.last_n:
        content = content[-test.last_n :]
    return fuzz.partial_ratio(query, content) / 100.0 >= _threshold(test, query)


def _is_ordered(test: PageTest, markdown: str) -> bool:
    from fuzzysearch import find_near_matches

    content = normal(markdown)
    before, after = normal(test.before), normal(test.after)
    if not before or not after:  # the official scorer does not load such a test
        return False
    starts = [
        [match.start for match in find_near_matches(text, content, max_l_dist=test.max_diffs)]
        for text in (before, after)
    ]
    return all(starts) and min(starts[0]) < max(starts[1])


def _is_sound(test: PageTest, markdown: str) -> bool:
    if test.max_length is not None:
        skipped = images(markdown) if test.max_length_skips_image_alt_tags else ()
        content = replaced(markdown, [(start, end) for start, end, _ in skipped], "")
        return sum(character.isalnum() for character in content) <= test.max_length
    if not any(character.isalnum() for character in markdown):
        return False
    if any(repeats > test.max_repeats for repeats in final_repeats(markdown)):
        return False
    return not (test.check_disallowed_characters and _DISALLOWED.search(markdown))


def final_repeats(text: str) -> list[int]:
    """Number of repetitions of the last 1, 2, ... 5 characters at the end of a text."""
    text = re.sub(r"\s+", " ", text)
    found = []
    for size in range(1, _MAX_NGRAM + 1):
        repeats = 0
        while (end := len(text) - size * repeats) >= size and text[end - size : end] == text[-size:]:
            repeats += 1
        found.append(repeats)
    return found


def _has_cell(test: PageTest, markdown: str) -> bool:
    found = html_grids(markdown) if test.ignore_markdown_tables else [*markdown_grids(markdown), *html_grids(markdown)]
    return any(_grid_has_cell(test, grid) for grid in found)


def _grid_has_cell(test: PageTest, grid: Grid) -> bool:
    cells = [[normal(cell) for cell in row] for row in grid.cells]
    for row, column in ((row, column) for row in range(len(cells)) for column in range(len(cells[0]))):
        if not _alike(test, normal(test.cell), [cells[row][column]]):
            continue
        neighbours = (
            (test.up, [cells[row - 1][column]] if row else None),
            (test.down, [cells[row + 1][column]] if row + 1 < len(cells) else None),
            (test.left, [cells[row][column - 1]] if column else None),
            (test.right, [cells[row][column + 1]] if column + 1 < len(cells[0]) else None),
        )
        # A neighbour out of the table is not asked for.
        if not all(_alike(test, normal(text), cell) for text, cell in neighbours if text and cell is not None):
            continue
        above = [(index, cells[index][column]) for index in range(row) if grid.cells[index][column].strip()]
        before = [(index, cells[row][index]) for index in range(column) if grid.cells[row][index].strip()]
        if not _is_headed(test, test.top_heading, grid.above.get(column, ()), above, grid.heading_rows):
            continue
        if _is_headed(test, test.left_heading, grid.before.get(row, ()), before, grid.heading_columns):
            return True
    return False


def _alike(test: PageTest, text: str, others: Iterable[str]) -> bool:
    return any(fuzz.ratio(text, other) / 100.0 >= max(0.5, _threshold(test, text)) for other in others)


def _is_headed(
    test: PageTest, asked: str | None, headings: Iterable[str], walk: Sequence[tuple[int, str]], lines: set[int]
) -> bool:
    """Whether a cell has a heading: a known one, one in a heading row or column, or, without any, a cell before it."""
    if not asked:
        return True
    text = normal(asked)
    known = [*map(normal, headings), *(cell for index, cell in walk if index in lines)]
    if not any(fuzz.ratio(text, each) > 0 for each in known):
        known = [cell for _, cell in walk]
    return _alike(test, text, known)


def _has_formula(test: PageTest, markdown: str) -> bool | None:
    equations: list[str] = []
    for opener, closer in _DELIMITERS[:2] if test.ignore_dollar_delimited else _DELIMITERS:
        found, markdown = _between(markdown, opener, closer)
        equations += found
    if test.math in equations:
        return True
    if not equations:
        return False
    try:
        from olmocr.bench.katex.render import compare_rendered_equations, render_equation
    except ImportError:
        return None
    try:
        reference = render_equation(test.math)
        if reference is None:
            return None
        renders = (
            render_equation(equation) for equation in sorted(equations, key=lambda each: -fuzz.ratio(each, test.math))
        )
        return any(render and compare_rendered_equations(reference, render) for render in renders)
    except Exception:  # no browser, or one that died: nothing is known about the formula
        return None


def _between(text: str, opener: str, closer: str) -> tuple[list[str], str]:
    """What is between delimiters, of one character at the least, and the text without it; once through the text."""
    found: list[str] = []
    rest: list[str] = []
    place = 0
    while (start := text.find(opener, place)) >= 0 and (end := text.find(closer, start + len(opener) + 1)) >= 0:
        rest.append(text[place:start])
        found.append(text[start + len(opener) : end].strip())
        place = end + len(closer)
    return found, "".join([*rest, text[place:]])
