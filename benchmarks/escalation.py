"""What `--escalate` is worth: the share of regions sent to a model against the errors that are left.

Pages are drawn ones with exact truth (`pages/`), and PDFs whose text layer is sound, read from their pixels. A region
is compared with the stretch of its page's truth that is nearest to it. A stub stands for the model: it answers with
that truth, so the curve is an upper bound for any model; what pagemill does with the answer is its own rule. Regions
are sent as pagemill sends them: those with a warning first, then by the number of characters expected to be wrong.
Baselines: random regions (mean over shuffles), and those with most errors, which nobody knows beforehand. Regions of
which nothing was read are left out: their truth has no place here.

    python benchmarks/escalation.py --seeds 0-63 --severity 0,0.5
    python benchmarks/escalation.py --pdfs scans/*.pdf
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from accuracy import DEFAULT_SEEDS, parse, seeds_of, severities_of
from page_scores import element_text, nearest, plain_text
from pagemill.config.recognition import ESCALATE_FROM
from pagemill.document.page import ContentFormat, PageResult
from pagemill.export.embedding_text import region_text
from pagemill.parsing.escalation import expected_wrong, is_better, to_ask
from pagemill.recognition.base import RegionReading
from pages.draw import CACHE, Press

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
SHUFFLES = 200


class Asked(NamedTuple):
    """A region that may be sent."""

    warned: bool
    """It, or its page, has a warning."""
    expected: float
    """Characters that are expected to be wrong."""
    misread: int
    """Errors of its lines, each compared by itself."""
    errors: int
    """Errors of its whole text, in which lines and cells may also be torn apart or in another order."""
    taken: bool
    """Whether pagemill takes the stub's answer, which leaves no error."""
    characters: int


def errors_in(text: str, truth: str) -> tuple[str, int, str]:
    """The text as it is compared, its edits (at most one a character), and the stretch of the truth it stands for."""
    text = plain_text(text)[0].strip()
    if text in truth:
        return text, 0, text
    stretches, edits = nearest(text, truth)
    return text, min(edits, len(text)), " ".join(truth[start:end] for start, end in stretches)


def regions_of(record: PageResult, truth: str) -> Iterator[Asked]:
    """The regions of a page that may be sent."""
    always = to_ask(record, float("inf"))
    for index in to_ask(record, 0.0):
        region = record.regions[index]
        text, errors, told = errors_in(region_text(region).replace(" | ", " "), truth)
        misread = sum(errors_in(line.text, truth)[1] for line in region.lines)
        answer = RegionReading(content=told, content_format=ContentFormat.MARKDOWN, engine="stub")
        taken = is_better(region, answer)
        if text:
            yield Asked(index in always, expected_wrong(region), misread, errors, taken, len(text))


def curve(regions: Sequence[Asked]) -> str:
    """A Markdown table: errors that are left by the share of regions sent, however they are chosen."""
    warned, expected, misread, errors, taken, sizes = (np.array(values) for values in zip(*regions, strict=True))
    ours = np.lexsort((-expected, ~warned))
    random = np.random.default_rng(0)
    shuffles = [random.permutation(len(regions)) for _ in range(SHUFFLES)]

    def left(wrong: NDArray[np.int64], order: NDArray[np.int64], share: float) -> float:
        sent = order[: round(share * len(order))]
        return float(wrong.sum() - (wrong * taken)[sent].sum()) / float(sizes.sum())

    rows = [
        "| regions sent | misread characters left | at random | at best | all errors left | at random |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for share in SHARES:
        values = [left(misread, ours, share), np.mean([left(misread, each, share) for each in shuffles])]
        values += [left(misread, np.argsort(-misread * taken), share), left(errors, ours, share)]
        values.append(np.mean([left(errors, each, share) for each in shuffles]))
        rows.append(f"| {share:.0%} | {' | '.join(f'{value:.2%}' for value in values)} |")
    sent = warned | (expected >= ESCALATE_FROM)
    gains = [(wrong * taken)[sent].sum() / max(1, (wrong * taken).sum()) for wrong in (misread, errors)]
    rows += ["", f"{len(regions):,} regions, {sizes.sum():,} characters. The default sends {sent.mean():.0%} of the"]
    rows[-1] += f" regions ({sizes[sent].sum() / sizes.sum():.0%} of the characters) and has {gains[0]:.0%} of what"
    rows[-1] += f" sending all gains in misread characters, {gains[1]:.0%} in all errors."
    return "\n".join(rows)


def of_pdfs(pdfs: Sequence[Path], work: Path, jobs: int) -> Iterator[Asked]:
    """The regions of PDFs, read from their pixels; the truth is what their sound text layers say."""
    records: list[dict[str, PageResult]] = []
    for mode in ("auto", "never"):
        out = work / f"pdfs-{mode}"
        command = [sys.executable, "-m", "pagemill", "parse", *map(str, pdfs), "-o", str(out), "--no-report", "-q"]
        subprocess.run([*command, "--text-layer", mode, "--threads", str(jobs), "--no-crops"], check=False)
        with (out / "ocr_results.jsonl").open("rb") as lines:
            pages = [msgspec.json.decode(line, type=PageResult) for line in lines]
        records.append({page.page_id: page for page in pages})
    for name, page in records[1].items():
        layer = records[0].get(name)
        if layer is not None and layer.text_source == "text-layer" and not layer.review:
            truth = " ".join(region_text(region).replace(" | ", " ") for region in layer.regions)
            yield from regions_of(page, plain_text(truth)[0])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=DEFAULT_SEEDS, metavar="A-B", help=f"default {DEFAULT_SEEDS}: held back")
    parser.add_argument("--severity", type=severities_of, default="0,0.5", metavar="LIST", help="default 0,0.5")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where drawn pages are kept (default {CACHE})")
    parser.add_argument("--pdfs", type=Path, nargs="+", default=(), help="these PDFs instead of drawn pages")
    parser.add_argument("--work", type=Path, help="keep the runs here")
    parser.add_argument("--again", action="store_true", help="take the runs in --work, without parsing")
    parser.add_argument("--jobs", type=int, default=2, help="compute threads (default 2)")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write the regions")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = arguments.work or Path(scratch)
        if arguments.pdfs:
            regions = list(of_pdfs(arguments.pdfs, work, arguments.jobs))
        else:
            with Press(arguments.cache) as press:
                pages = press.pages(seeds_of(arguments.seeds))
            regions = []
            for severity in arguments.severity:
                read, _ = parse(pages, severity, work / severity, None, arguments.jobs, "auto", arguments.again)
                for page in pages:
                    if (record := read.get(page.seed)) is not None and record["status"] == "done":
                        truth = " ".join(map(element_text, page.blocks))
                        regions += regions_of(msgspec.convert(record, PageResult), truth)
    if arguments.out:
        arguments.out.write_text(json.dumps(regions), encoding="utf-8")
    print(curve(regions))


if __name__ == "__main__":
    main()
