"""A run with regions read by stub servers that fail: what is drawn, what is done to it, what became of it. Linux."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import drill_layout
import numpy as np
from drill_layout import REGIONS
from installed_package import install_package
from pagemill_process import environment, run
from run_contents import records
from stub_process import StubProcess

from pagemill.document.labels import Label
from pagemill.errors import ExitCode
from pagemill.imaging.encode import encode_jpeg
from pagemill_bench.testing.drawn_pages import draw_page

SIZE = (800, 1100)
MODEL = "glm-ocr"
FAULTS: Mapping[str, float] = {"500": 0.05, "reset": 0.02, "hang": 0.01, "truncated": 0.01, "loop": 0.01}
READ = sum(label is not Label.IMAGE for label in REGIONS)
"""Regions of a page that are read."""
_ENTRY_POINTS = "[pagemill.layout_engines]\ndrill = drill_layout:create\n"


def install_layout(folder: Path) -> Path:
    """Lay the layout engine out as pip installs a package; give the folder for ``PYTHONPATH``."""
    code = Path(drill_layout.__file__).read_text(encoding="utf-8")
    return install_package(folder, "pagemill-vlm-drill", _ENTRY_POINTS, drill_layout=code)


def draw_pages(folder: Path, count: int) -> Path:
    """So many JPEG files, no two alike."""
    folder.mkdir()
    for number in range(count):
        page = np.ascontiguousarray(draw_page(number, SIZE))
        for place in range(len(REGIONS)):  # no two regions alike, either
            x, y = 20 + place % 2 * SIZE[0] // 2, 20 + place // 2 * SIZE[1] // 4
            for bit in range(20):
                shade = 0 if (number * len(REGIONS) + place) >> bit & 1 else 255
                page[y : y + 16, x + 16 * bit : x + 16 * bit + 16] = shade
        (folder / f"page-{number:05d}.jpg").write_bytes(encode_jpeg(page, quality=90))
    return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a run."""

    status: int
    """Exit status of ``pagemill parse``."""
    seconds: float
    pages: Counter[str]
    """By status."""
    contents: dict[tuple[int, int], str | None]
    """What was read, by page and region."""
    errors: Counter[str]
    """Errors of regions in the records, by category."""
    flawed: frozenset[tuple[int, int]]
    """The regions that these are about."""
    servers: tuple[Mapping[str, int], ...]
    """What each server counted."""

    def happened(self, name: str) -> int:
        """How often something happened on all servers."""
        return sum(counts.get(name, 0) for counts in self.servers)


def parse(
    scratch: Path, name: str, pages: Path, servers: Sequence[Sequence[str]], *, request_timeout_s: float
) -> Outcome:
    """Parse a folder of :func:`draw_pages` with the given stub servers.

    Args:
        scratch: Holds the packages, and takes the run.
        name: Of the run.
        pages: The folder.
        servers: The options of each server beside its model and answers.
        request_timeout_s: As ``--request-timeout``.
    """
    answers = ("--model", MODEL, "--text", "Region {image} reads so.")
    packages = scratch / "packages"
    if not packages.exists():
        install_layout(packages)
    with ExitStack() as stack:
        stubs = [stack.enter_context(StubProcess(*answers, *options)) for options in servers]
        out, start = scratch / name, time.monotonic()
        status = run(
            [
                *("parse", pages, "-o", out, "--quiet", "--layout-engine", "drill", "--recognition-engine", "vlm"),
                *("--model", MODEL, "--request-timeout", str(request_timeout_s), "--no-report"),
                *(word for stub in stubs for word in ("--server", stub.url)),
            ],
            environment(packages),
            scratch / f"{name}.log",
        )
        seconds = time.monotonic() - start
        counted = tuple(stub.counts() for stub in stubs)
    ended = records(out)
    wrong = [(record["page_idx"], error) for record in ended for error in record["errors"]]
    return Outcome(
        status=status,
        seconds=seconds,
        pages=Counter(record["status"] for record in ended),
        contents={
            (record["page_idx"], region["index"]): region["content"]
            for record in ended
            for region in record["regions"]
            if region["label"] != Label.IMAGE
        },
        errors=Counter(error["category"] for _, error in wrong),
        flawed=frozenset((page, error["region"]) for page, error in wrong if error["region"] is not None),
        servers=counted,
    )


def violations(outcome: Outcome, undisturbed: Outcome) -> list[str]:
    """In what a run with faults differs from one without, but for regions whose flaw the record tells.

    Regions without any content count, whatever the record tells of them: servers failed, but were there.
    """
    expected = ExitCode.PAGES_FAILED if outcome.errors else ExitCode.OK
    found = [] if outcome.status == expected else [f"exit status {outcome.status}"]
    if outcome.pages != undisturbed.pages:
        found.append(f"pages: {dict(outcome.pages)}, not {dict(undisturbed.pages)}")
    if outcome.contents.keys() != undisturbed.contents.keys():
        found.append(f"{len(outcome.contents)} regions, not {len(undisturbed.contents)}")
    found += [
        f"page {page}, region {region}: {content!r}"
        for (page, region), content in outcome.contents.items()
        if not content or (content != undisturbed.contents.get((page, region)) and (page, region) not in outcome.flawed)
    ]
    return found
