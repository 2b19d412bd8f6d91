"""Round trips: real Markdown set as PDF by many producers, parsed, and compared with what it was.

The documents are READMEs and manuals of the packages in `roundtrips/packages.txt`, which are downloaded once. Each is
set by every producer that is installed, in styles drawn by seed. PDFs are scored as produced and stripped of structure
tree, marked content and outline; with ``--scans`` also as images of 200 dpi. Half of the documents are held back for
reported figures.

Measures are F1 scores, means over the documents that have the kind, with 95 % bootstrap intervals over documents.
Texts match when their normalised indel similarity is at least .9, each used once. Words: as a bag. Levels: share of
pairs of matched headings whose levels compare as they should, times F1 of headings. Items: first paragraphs of list
items; depth: those at their depth. Code: without white space. Links: text, and exactly the target. Emphasis, struck
text and inline code: spans outside headings and tables. The ceiling is the truth without what a style does not show.

    python benchmarks/roundtrip.py --work DIR --limit 40
    python benchmarks/roundtrip.py --work DIR --limit 10 --producers groff --worst 5 code
    python benchmarks/roundtrip.py --work DIR --held-back --json scores.json --with "other=other-tool {pdf}"
    python benchmarks/roundtrip.py --work DIR --with "peer=python benchmarks/roundtrips/others.py NAME {in} {out}"
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pypdfium2

from roundtrips.corpus import digest
from roundtrips.files import PRODUCED, SCAN, STRIPPED, Sheet, corpus, sample, sheets, variant
from roundtrips.producers import producers
from roundtrips.scores import MEASURES, Comparison, compare, elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PACKAGES = Path(__file__).parent / "roundtrips" / "packages.txt"
PAGEMILL, CEILING = "pagemill", "ceiling"
_RESAMPLES = 1000
_TIMEOUT_S = 600

Outputs = dict[tuple[str, str], str]
"""Markdown by stem of the sheet and variant."""
Costs = dict[str, float]
"""Seconds of processor time by variant."""


def cpu_s() -> float:
    """Processor time of the processes that have finished."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def pagemill(files: Mapping[tuple[str, str], Path], work: Path, options: Sequence[str]) -> tuple[Outputs, Costs]:
    """Parse all files in one process, scans in another, and one small file alone, which gives the cost of the start.

    Args:
        files: PDFs by stem of the sheet and variant.
        work: Folder of the run.
        options: More options of ``pagemill parse``.

    Returns:
        Markdown, empty for documents that failed, and processor time; those not scanned share theirs.
    """

    def run(name: str, inputs: Iterable[tuple[str, Path]]) -> tuple[Path, float]:
        folder = work / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "in").mkdir(parents=True)
        for stem, path in inputs:
            (folder / "in" / f"{stem}.pdf").symlink_to(path.resolve())
        command = [sys.executable, "-m", "pagemill", "parse", str(folder / "in"), "-o", str(folder / "out")]
        before = cpu_s()
        done = subprocess.run(
            [*command, "--no-report", "--quiet", *options], capture_output=True, text=True, check=False
        )
        if not (folder / "out" / "documents").is_dir():
            sys.exit(f"pagemill ended with {done.returncode} and no documents:\n{done.stdout}{done.stderr}")
        return folder / "out" / "documents", cpu_s() - before

    small = min(files.values(), key=lambda path: path.stat().st_size)
    _, start = run("start", [("small", small)])
    outputs: Outputs = {}
    costs: Costs = {}
    for part, scanned in (("all", False), ("scans", True)):
        some = {key: path for key, path in files.items() if (key[1] == SCAN) == scanned}
        if not some:
            continue
        documents, used = run(part, ((f"{stem}-{name}", path) for (stem, name), path in some.items()))
        for stem, name in some:
            path = documents / f"{stem}-{name}.md"
            outputs[stem, name] = path.read_text(encoding="utf-8") if path.exists() else ""
        names = {name for _, name in some}
        costs |= dict.fromkeys(names, max(0.0, used - start) / len(names))
    return outputs, costs


def floor(files: Iterable[Path]) -> float:
    """Processor time that PDFium needs to load the pages of PDFs, extract their text and render them at 72 dpi."""
    begun = time.process_time()
    for path in files:
        with pypdfium2.PdfDocument(path) as pdf:
            for page in pdf:
                page.get_textpage().get_text_bounded()
                page.render()
                page.close()
    return time.process_time() - begun


def tool(command: str, files: Mapping[tuple[str, str], Path], folder: Path) -> tuple[Outputs, Costs]:
    """Run another tool on the files; what it wrote is kept and used again.

    Args:
        command: With ``{pdf}``, Markdown comes from standard output or is written to ``{out}``; with ``{in}``, it reads
            all PDFs of that folder and writes ``NAME.md`` for each to the folder ``{out}``.
        files: PDFs by stem of the sheet and variant.
        folder: Where its Markdown is kept.

    Returns:
        Markdown, empty where the tool failed, and processor time without that of its starts.
    """
    kept = folder / "costs.json"
    costs: dict[str, float] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    named = {f"{stem}-{name}": path for (stem, name), path in files.items()}

    def run(some: Mapping[str, Path], timeout: float) -> float:
        out = folder / f"{next(iter(some))}.md"
        with tempfile.TemporaryDirectory() as inputs:
            for name, path in some.items():
                (Path(inputs) / f"{name}.pdf").symlink_to(path.resolve())
            values = {"in": inputs, "out": str(folder if "{in}" in command else out), "pdf": f"{inputs}/{out.stem}.pdf"}
            line = [re.sub(r"\{(in|out|pdf)\}", lambda m: values[m[1]], part) for part in shlex.split(command)]
            before = cpu_s()
            try:
                done = subprocess.run(line, capture_output=True, timeout=timeout, check=False)
            except subprocess.TimeoutExpired:
                return cpu_s() - before
        if "{out}" not in command:
            out.write_bytes(done.stdout)
        return cpu_s() - before

    folder.mkdir(parents=True, exist_ok=True)
    if "" not in costs:
        blank = folder / "blank.pdf"
        with pypdfium2.PdfDocument.new() as pdf:
            pdf.new_page(595, 842)
            pdf.save(blank)
        costs[""] = min(run({"blank": blank}, _TIMEOUT_S) for _ in range(3))
    missing = {name: path for name, path in named.items() if name not in costs}
    batches = [missing] if "{in}" in command else [{name: path} for name, path in missing.items()]
    for batch in filter(None, batches):
        used = max(0.0, run(batch, _TIMEOUT_S * len(batch)) - costs[""])
        costs |= dict.fromkeys(batch, used / len(batch))
        kept.write_text(json.dumps(costs), encoding="utf-8")
    outputs = {}
    spent: Costs = defaultdict(float)
    for stem, name in files:
        spent[name] += costs[f"{stem}-{name}"]
        out = folder / f"{stem}-{name}.md"
        outputs[stem, name] = out.read_bytes().decode("utf-8", "replace") if out.exists() else ""
    return outputs, spent


def interval(values: Sequence[tuple[str, float]]) -> tuple[float, float]:
    """95 % bootstrap interval of a mean, over documents."""
    by_document: dict[str, list[float]] = defaultdict(list)
    for document, value in values:
        by_document[document].append(value)
    sums = np.array([sum(group) for group in by_document.values()])
    counts = np.array([len(group) for group in by_document.values()])
    drawn = np.random.default_rng(0).integers(0, len(sums), (_RESAMPLES, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def summary(scored: Sequence[tuple[Sheet, Comparison]]) -> dict[str, dict[str, float]]:
    """Mean, interval and number of documents by measure, and how much was found where there is nothing of a kind."""
    out: dict[str, dict[str, float]] = {}
    for measure in MEASURES:
        values = [(s.document.name, c.scores[measure]) for s, c in scored if measure in c.scores]
        if values:
            low, high = interval(values)
            mean = sum(value for _, value in values) / len(values)
            out[measure] = {"mean": mean, "low": low, "high": high, "n": len(values)}
            without = [len(c.extra[measure]) for _, c in scored if measure not in c.scores and measure in c.extra]
            if without:
                out[measure]["invented"] = sum(without) / len(without)
    return out


def row(name: str, scores: Mapping[str, Mapping[str, float]], more: str = "") -> str:
    """A line of the table."""
    figures = (f"{scores[m]['mean']:.3f}".replace("0.", ".") if m in scores else "–" for m in MEASURES)
    return f"| {name} | " + " | ".join(figures) + f" | {more} |"


def show_worst(scored: Sequence[tuple[Sheet, str, Comparison]], count: int, kind: str, folder: Path) -> None:
    """Print what was missed and added in the documents with the lowest scores of a kind."""
    of_kind = sorted((s for s in scored if kind in s[2].scores), key=lambda s: s[2].scores[kind])
    of = {"levels": "headings", "depth": "items"}.get(kind, kind)
    for sheet, name, comparison in of_kind[:count]:
        print(f"\n{comparison.scores[kind]:.3f} {sheet.producer}/{sheet.style} {name} {sheet.document.name}")
        print(f"  {variant(sheet, name)}\n  {folder}/{sheet.stem}-{name}.md")
        for sign, texts in (("-", comparison.missed[of]), ("+", comparison.extra[of])):
            for text in texts[:15]:
                print(f"  {sign} {text[:160]}")
        if of != kind:
            for text in comparison.extra[kind][:15]:
                print(f"  ~ {text[:160]}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--work", type=Path, required=True, help="folder of packages, PDFs and runs, kept and used again"
    )
    parser.add_argument("--limit", type=int, default=40, help="documents")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--styles", type=int, default=1, help="styles of each producer for a document")
    parser.add_argument("--held-back", action="store_true", help="documents for reported figures")
    parser.add_argument("--producers", help="only these, such as groff,chromium/web")
    parser.add_argument("--languages", help="only documents in these, such as ko,ja")
    parser.add_argument("--variants", default=f"{PRODUCED},{STRIPPED}", help="produced, stripped, scan")
    parser.add_argument("--scans", action="store_true", help="also as scans")
    parser.add_argument(
        "--with", dest="tools", action="append", default=[], metavar="NAME=COMMAND", help="another tool"
    )
    parser.add_argument("--without-pagemill", action="store_true", help="only the other tools")
    parser.add_argument("--options", default="", help="more options of `pagemill parse`")
    parser.add_argument("--json", type=Path, help="write all scores to this file")
    parser.add_argument("--worst", nargs=2, metavar=("N", "KIND"), help="show the N worst documents of a measure")
    parser.add_argument("--render-only", action="store_true", help="make the PDFs and stop")
    given = parser.parse_args()

    found = producers()
    if given.producers:
        names = given.producers.split(",")
        found = {
            p: {s: v for s, v in styles.items() if p in names or f"{p}/{s}" in names} for p, styles in found.items()
        }
        found = {producer: styles for producer, styles in found.items() if styles}
    documents = [d for d in corpus(PACKAGES, given.work) if d.held_back == given.held_back]
    if given.languages:
        documents = [d for d in documents if d.language in given.languages.split(",")]
    wanted = sample(documents, found, seed=given.seed, limit=given.limit, styles=given.styles)
    made = sheets(wanted, found, given.work)
    variants = [*given.variants.split(","), *([SCAN] if given.scans else [])]
    files = {(sheet.stem, name): variant(sheet, name) for name in variants for sheet in made}
    pages = sum(sheet.pages for sheet in made)
    print(
        f"{len({s.document.name for s in made})} documents, {len(made)} PDFs, {pages} pages: {', '.join(found)}",
        flush=True,
    )
    if given.render_only:
        return

    outputs: dict[str, tuple[Outputs, Costs]] = {}
    folders: dict[str, Path] = {}
    if not given.without_pagemill:
        import pagemill as installed

        folders[PAGEMILL] = given.work / "runs" / digest(Path(installed.__file__).resolve())
        outputs[PAGEMILL] = pagemill(files, folders[PAGEMILL], shlex.split(given.options))
        folders[PAGEMILL] = folders[PAGEMILL] / "all" / "out" / "documents"
    for named in given.tools:
        name, _, command = named.partition("=")
        folders[name] = given.work / "tools" / name / digest(command)
        outputs[name] = tool(command, files, folders[name])
    outputs[CEILING] = ({(s.stem, name): s.ceiling for s in made for name in variants}, {})

    truths = {sheet.stem: elements(sheet.truth) for sheet in made}
    report: dict[str, Any] = {
        "documents": len({s.document.name for s in made}),
        "pdfs": len(made),
        "pages": pages,
        "scores": {},
    }
    compared: dict[str, list[tuple[Sheet, str, Comparison]]] = {
        tool_name: [(s, v, compare(truths[s.stem], elements(texts[s.stem, v]))) for s in made for v in variants]
        for tool_name, (texts, _) in outputs.items()
    }
    least = floor(variant(s, PRODUCED) for s in made) / pages
    report["floor_cpu_s_a_page"] = least
    print(f"Floor (PDFium loads, extracts and renders at 72 dpi): {1000 * least:.1f} ms a page")
    head = "| " + " | ".join(["", *(m.replace("_", " ") for m in MEASURES), "CPU s a page"]) + " |"
    print(head + "\n|---|" + "--:|" * (len(MEASURES) + 1))
    for tool_name, (_, used) in outputs.items():
        costs = {name: used[name] / pages for name in variants if name in used}
        entry: dict[str, Any] = report["scores"].setdefault(tool_name, {"cpu_s_a_page": costs})
        for name in variants if tool_name != CEILING else variants[:1]:
            scored = [(s, c) for s, v, c in compared[tool_name] if v == name]
            entry[name] = {"all": summary(scored)}
            cost = f"{costs[name]:.3f} ({costs[name] / least:.0f} x)" if name in costs else ""
            print(row(f"{tool_name}, {name}" if tool_name != CEILING else CEILING, entry[name]["all"], cost))
            for key in ("producer", "style", "language"):
                groups: dict[str, list[tuple[Sheet, Comparison]]] = defaultdict(list)
                for s, c in scored:
                    group = {
                        "producer": s.producer,
                        "style": f"{s.producer}/{s.style}",
                        "language": s.document.language,
                    }
                    groups[group[key]].append((s, c))
                entry[name][key] = {group: summary(some) for group, some in sorted(groups.items())}
    for tool_name in outputs:
        entry = report["scores"][tool_name]
        for name in variants if tool_name == PAGEMILL else variants[:1]:
            print(f"\n{tool_name}, {name}\n{head}\n|---|" + "--:|" * (len(MEASURES) + 1))
            for key in ("style", "language") if tool_name == PAGEMILL else ("producer",):
                for group, scores in entry[name][key].items():
                    print(row(group, scores))
    if given.json:
        report["sheets"] = [
            {"document": s.document.name, "file": str(variant(s, v)), "variant": v, "tool": t, "scores": c.scores}
            for t, rows in compared.items() for s, v, c in rows
        ]  # fmt: skip
        given.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    if given.worst:
        first = next(iter(outputs))
        show_worst(compared[first], int(given.worst[0]), given.worst[1], folders.get(first, given.work))


if __name__ == "__main__":
    main()
