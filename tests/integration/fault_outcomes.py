"""Runs over pages that break their engines, and what must become of every page."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coded_pages import CorpusMaker
from fault_engines import Fault
from pagemill_process import OPTIONS, run
from run_contents import records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from coded_pages import CodedPage

PAGE_TIMEOUT_S = 2
MAX_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How pages with one fault must end."""

    status: str
    category: str | None = None
    attempts: int | None = None
    """None where it depends on what was in flight beside the page: 1, or 2 after a neighbour's fault."""


EXPECTED: Mapping[Fault, Outcome] = {
    Fault.NONE: Outcome("done"),
    Fault.SEGFAULT: Outcome("failed", "crash", MAX_ATTEMPTS),
    Fault.OOM_KILL: Outcome("failed", "crash", MAX_ATTEMPTS),
    Fault.HANG: Outcome("failed", "timeout", MAX_ATTEMPTS),
    Fault.HANG_WITH_INTERPRETER_LOCK: Outcome("failed", "crash", MAX_ATTEMPTS),
    Fault.EXCEPTION: Outcome("failed", "engine", MAX_ATTEMPTS),
    Fault.TRANSIENT: Outcome("done", None, 2),
    Fault.TOO_FEW_ANSWERS: Outcome("failed", "engine", MAX_ATTEMPTS),
    Fault.SHORT_BOX: Outcome("failed", "engine", MAX_ATTEMPTS),
    Fault.NAN_BOX: Outcome("failed", "engine", MAX_ATTEMPTS),
    Fault.BATCH_OUT_OF_MEMORY: Outcome("done"),
    Fault.EMPTY_TEXT: Outcome("done", "empty_text"),  # a warning: perhaps nothing is there
    Fault.TEXT_EXCEPTION: Outcome("failed", "engine", MAX_ATTEMPTS),
    Fault.TEXT_TOO_FEW_ANSWERS: Outcome("failed", "engine", MAX_ATTEMPTS),
    Fault.TEXT_NAN_CONFIDENCE: Outcome("failed", "engine", MAX_ATTEMPTS),
    Fault.TEXT_SEGFAULT: Outcome("failed", "crash", MAX_ATTEMPTS),
}
DEADLY = (Fault.SEGFAULT, Fault.OOM_KILL, Fault.HANG, Fault.HANG_WITH_INTERPRETER_LOCK, Fault.TEXT_SEGFAULT)
"""Those that end the process, which costs all pages in flight an attempt."""
HARMLESS = tuple(fault for fault in EXPECTED if fault not in DEADLY and fault is not Fault.NONE)
"""Those that the process survives."""


@dataclass(frozen=True, slots=True)
class FaultRun:
    """What became of a run."""

    status: int
    seconds: float
    pages: Sequence[CodedPage]
    records: Sequence[Mapping[str, Any]]
    """By their place in the input."""
    messages: str

    def violations(self) -> list[str]:
        """Pages that did not end as they must, one short line each."""
        places = [record["page_idx"] for record in self.records]
        if places != list(range(len(self.pages))):
            return [f"{len(self.pages)} pages, but records of {places}", self.messages[-3000:]]
        return [
            f"page {page.number} ({page.fault.name}): {problem}"
            for page, record in zip(self.pages, self.records, strict=True)
            for problem in _problems(page, record)
        ]

    def table(self) -> str:
        """Outcomes by fault, as a Markdown table."""
        rows = ["| fault | pages | done | failed | categories | attempts |", "|---|--:|--:|--:|---|---|"]
        for fault in EXPECTED:
            numbers = {page.number for page in self.pages if page.fault is fault}
            mine = [record for record in self.records if record["page_idx"] in numbers]
            if not numbers:
                continue
            status = Counter(record["status"] for record in mine)
            categories = ", ".join(sorted({e["category"] for record in mine for e in record["errors"]}))
            attempts = ", ".join(str(number) for number in sorted({record["attempts"] for record in mine}))
            name = fault.name.lower().replace("_", " ")
            rows.append(
                f"| {name} | {len(numbers)} | {status['done']} | {status['failed']} | {categories} | {attempts} |"
            )
        return "\n".join(rows)


def spread(pages: int, images: int, each: int, faults: Sequence[Fault], seed: int) -> dict[int, Fault]:
    """Choose pages at random for faults, ``each`` of them for every fault.

    Args:
        pages: In the whole input.
        images: How many of these, at the end, have no text layer: recognition faults go there.
        each: Pages of each fault.
        faults: Which.
        seed: Of the choice.
    """
    dice = random.Random(seed)
    free = set(range(pages))
    chosen: dict[int, Fault] = {}
    for fault in sorted(faults, reverse=True):  # those of recognition first, as they have fewer pages to choose from
        candidates = sorted(page for page in free if fault < Fault.EMPTY_TEXT or page >= pages - images)
        for page in dice.sample(candidates, each):
            chosen[page] = fault
            free.discard(page)
    return chosen


def parse_with_faults(
    folder: Path,
    environment: dict[str, str],
    faults: dict[int, Fault],
    *,
    pages: int,
    images: int,
    page_timeout_s: float = PAGE_TIMEOUT_S,
) -> FaultRun:
    """Parse ``pages`` pages, the last ``images`` of them without a text layer, with a fault each where there is one."""
    inputs = folder / "inputs"
    inputs.mkdir()
    maker = CorpusMaker(inputs, faults)
    maker.pdf((pages - images) // 2)
    maker.pdf(pages - images - (pages - images) // 2)
    maker.parquet(images)
    corpus = maker.corpus()
    options = [*OPTIONS, "--page-timeout", str(page_timeout_s), "--max-attempts", str(MAX_ATTEMPTS)]
    start = time.monotonic()
    status = run(["parse", *corpus.paths, "-o", folder / "out", *options], environment, folder / "log")
    seconds = time.monotonic() - start
    messages = (folder / "log").read_text(encoding="utf-8", errors="replace")
    assert (folder / "out" / "ocr_results.jsonl").exists(), messages[-3000:]
    return FaultRun(status, seconds, corpus.pages, records(folder / "out"), messages)


def _problems(page: CodedPage, record: Mapping[str, Any]) -> list[str]:
    expected = EXPECTED[page.fault]
    problems = []
    if record["status"] != expected.status:
        problems.append(f"{record['status']} instead of {expected.status}: {record['errors']}")
        return problems
    categories = [error["category"] for error in record["errors"]]
    if categories != ([expected.category] if expected.category else []):
        problems.append(f"errors {categories} instead of {expected.category}")
    allowed = {expected.attempts} if expected.attempts else set(range(1, MAX_ATTEMPTS + 1))
    if record["attempts"] not in allowed:
        problems.append(f"{record['attempts']} attempts instead of {allowed}")
    says_number = re.search(rf"Coded page 0*{page.number}\b", record["markdown"]) is not None
    if record["status"] == "done" and says_number is (page.fault is Fault.EMPTY_TEXT):
        problems.append(f"reads {record['markdown'][:60]!r}")
    return problems
