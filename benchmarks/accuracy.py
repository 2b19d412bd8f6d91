"""Accuracy on drawn pages, whose truth is exact: per language, layout and severity of the photograph.

Each seed is a page in one of 14 languages and one of 26 layouts (`pages/`); of each million 400,000 to 499,999 are
receipts, menus, forms, tables of contents and statements of accounts, 500,000 to 999,999 pages of the press. It is
parsed as a PDF (``digital``), as a clean scan (severity 0) and as a photograph of some severity up to 1. Pages are
drawn once, by a headless Chromium, and kept. Seeds from 1,000,000 are held back for reported figures; develop with
those below.

CER: edits to the characters of all elements, wherever they stand, also torn in two, and characters that belong to none,
per true character; spaces count; formulas within lines as plain characters; cells of tables row by row; running heads,
page numbers and marginalia are optional. TEDS and TEDS-S: mean over tables; a table that was not found counts 0. Order:
edit distance of the sequence of found elements, per element; the articles of a page of the press may come in any order,
but not mixed. Pairs: share of labels of forms whose value follows them in one row of the Markdown; a third of the
label's letters and a quarter of the value's may be wrong. Formula: normalised edit distance of displayed formulas as
OmniDocBench normalises them; what is not ``$$ … $$`` counts 1. Means are over pages, with a 95 % bootstrap interval; a
failed page counts as empty. Silent: pages with over half of the characters wrong that have neither failed nor a
warning. Lost: words in the record that the Markdown lacks.

    python benchmarks/accuracy.py --out after.json --compare before.json
    python benchmarks/accuracy.py --seeds 0-63 --scripts th,ru --severity 0,0.5
    python benchmarks/accuracy.py --seeds 400000-400039
"""

from __future__ import annotations

import argparse
import json
import os
import resource
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

from page_scores import differences, plain_text, score_page
from pages.camera import SCENES
from pages.draw import CACHE, DPI, HELD_BACK, Page, Press, composition
from pages.languages import LANGUAGES
from pages.layouts import LAYOUTS, Block

if TYPE_CHECKING:
    from collections.abc import Sequence

DIGITAL = "digital"
DEFAULT_SEEDS = f"{HELD_BACK}-{HELD_BACK + 63}"
_MEASURES = ("cer", "order", "teds", "teds_s", "pairs", "formula")


def seeds_of(text: str) -> list[int]:
    """Seeds named as ``A-B`` or ``A,B,C-D``."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def severities_of(text: str) -> list[str]:
    """``digital`` and numbers from 0 to 1, also with a scene of the camera, as they stand in the results."""
    names = []
    for part in text.split(","):
        number, colon, scene = part.partition(":")
        if part != DIGITAL and not (0 <= float(number) <= 1 and (scene in SCENES if colon else True)):
            raise argparse.ArgumentTypeError("a severity is digital, or between 0 and 1, with a scene if wanted")
        names.append(part if part == DIGITAL else f"{float(number):g}{colon}{scene}")
    return names


def file_of(page: Page, severity: str) -> Path:
    """The file to parse."""
    if severity == DIGITAL:
        return page.pdf
    number, _, scene = severity.partition(":")
    return page.scan if number == "0" and not scene else page.photograph(float(number), scene)


def parse(
    pages: Sequence[Page], severity: str, out: Path, tree: Path | None, jobs: int, languages: str, again: bool = False
) -> tuple[dict[int, dict[str, Any]], float]:
    """Parse pages with the command line of a source tree.

    Args:
        pages: What to parse.
        severity: As which file.
        out: Folder of the run.
        tree: The source tree; None for the pagemill that is installed.
        jobs: Compute threads.
        languages: ``--lang``.
        again: Take the run that is there, where it is.

    Returns:
        Records by seed, and the seconds of processor time of the run.
    """
    if again and (out / "cpu_s").exists():
        return _records(out), float((out / "cpu_s").read_text(encoding="utf-8"))
    inputs = out / "pages"
    shutil.rmtree(out, ignore_errors=True)
    inputs.mkdir(parents=True)
    for page in pages:
        source = file_of(page, severity)
        (inputs / f"{page.seed}{source.suffix}").symlink_to(source.resolve())
    environment = dict(os.environ)
    if tree:
        environment["PYTHONPATH"] = str(tree.resolve() / "src")
    command = [sys.executable, "-m", "pagemill", "parse", str(inputs), "-o", str(out / "run"), "--no-report", "--quiet"]
    command += ["--threads", str(jobs), "--lang", languages]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = out / "run" / "ocr_results.jsonl"
    if not results.exists():
        sys.exit(f"pagemill ended with {done.returncode} and no records:\n{done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    (out / "cpu_s").write_text(f"{cpu:.2f}", encoding="utf-8")
    return _records(out), cpu


def _records(out: Path) -> dict[int, dict[str, Any]]:
    with (out / "run" / "ocr_results.jsonl").open(encoding="utf-8") as lines:
        return {int(Path(record["source"]).stem): record for record in map(json.loads, lines)}


def score(page: Page, severity: str, record: dict[str, Any] | None) -> dict[str, Any]:
    """One row of the results."""
    failed = record is None or record["status"] != "done"
    usable = {} if failed or record is None else record
    errors = [] if record is None else record["errors"]
    row = score_page(page.blocks, usable.get("markdown", ""), usable.get("regions", [])).as_dict()
    row |= {"seed": page.seed, "language": page.language, "layout": page.layout, "severity": severity}
    row |= {"failed": failed, "warnings": sorted({str(error.get("category")) for error in errors})}
    row["message"] = str(errors[0].get("message", ""))[:200] if errors else ""
    row["silent"] = not failed and not errors and row["cer"] > 0.5
    row["tables"] = [block.style for block in page.blocks if block.kind == "table"]
    return row


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean; always the same for the same values."""
    data = np.asarray(values)
    means = data[np.random.default_rng(0).integers(0, len(data), (1000, len(data)))].mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def values_of(rows: Sequence[dict[str, Any]], measure: str) -> list[float]:
    """The values of a measure: one a page, or one a table or formula."""
    values: list[float] = []
    for row in rows:
        value = row.get(measure)  # earlier results have fewer
        values += value if isinstance(value, list) else [] if value is None else [value]
    return values


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means, intervals and counts of some rows."""
    result: dict[str, Any] = {"pages": len(rows)}
    for measure in _MEASURES:
        if values := values_of(rows, measure):
            low, high = interval(values)
            result[measure] = {"mean": float(np.mean(values)), "low": low, "high": high, "count": len(values)}
    cers = values_of(rows, "cer")
    result["median_cer"] = float(np.median(cers)) if cers else None
    for name in ("failed", "silent", "lost_words", "false_tables", "missing"):
        result[name] = int(sum(row[name] for row in rows))
    return result


def groups_of(rows: Sequence[dict[str, Any]]) -> dict[str, dict[tuple[str, str], list[dict[str, Any]]]]:
    """Rows by what they have in common: all, language, layout, style of the tables; each by severity."""
    groups: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {
        name: defaultdict(list) for name in ("all", "language", "layout")
    }
    for row in rows:
        for name in groups:
            groups[name][("all" if name == "all" else row[name], row["severity"])].append(row)
    return groups


def report(result: dict[str, Any], old: dict[str, Any] | None = None) -> str:
    """The results as Markdown tables.

    Args:
        result: What `main` writes as JSON.
        old: Earlier results: pages that both have are compared, old → new.
    """
    rows = result["rows"]
    before: dict[tuple[str, str], list[dict[str, Any]]] = {}
    if old:
        known = {(row["seed"], row["severity"]) for row in rows}
        kept = [row for row in old["rows"] if (row["seed"], row["severity"]) in known]
        before = {key: found for group in groups_of(kept).values() for key, found in group.items()}
        both = {(row["seed"], row["severity"]) for row in kept}
        rows = [row for row in rows if (row["seed"], row["severity"]) in both]
    lines = []
    for name, group in groups_of(rows).items():
        lines += [
            f"| {name} | severity | pages | CER % | median % | order | TEDS | TEDS-S | pairs % | formula"
            " | false tables | lost words | failed | silent |",
            "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for key, found in sorted(group.items()):
            new, past = summary(found), summary(before[key]) if key in before else None
            cells = [_shown(new, past, measure) for measure in _MEASURES]
            cells.insert(1, _change(past["median_cer"] if past else None, new["median_cer"], 100, 1))
            counts = [
                _change(past[count] if past else None, new[count], 1, 0)
                for count in ("false_tables", "lost_words", "failed", "silent")
            ]
            lines.append(f"| {key[0]} | {key[1]} | {new['pages']} | {' | '.join([*cells, *counts])} |")
        lines.append("")
    lines += ["| severity | CPU s a page |", "|---|--:|"]
    for severity, seconds in result["cpu_s_a_page"].items():
        past_cpu = old["cpu_s_a_page"].get(severity) if old else None
        lines.append(f"| {severity} | {_change(past_cpu, seconds, 1, 2)} |")
    for name, said in result.get("data", {}).items():
        past_said = old.get("data", {}).get(name) if old else None
        lines += ["", f"{name}:", *([f"before: {past_said}"] if past_said else []), said]
    return "\n".join(lines)


def _change(old: float | None, new: float | None, factor: float, digits: int) -> str:
    shown = "–" if new is None else f"{new * factor:.{digits}f}"
    return shown if old is None else f"{old * factor:.{digits}f} → {shown}"


def _shown(new: dict[str, Any], past: dict[str, Any] | None, measure: str) -> str:
    if measure not in new:
        return "–"
    factor, digits = (100, 1) if measure in ("cer", "pairs") else (1, 3)
    value = new[measure]
    old = past[measure]["mean"] if past and measure in past else None
    spread = f"{value['low'] * factor:.{digits}f}–{value['high'] * factor:.{digits}f}"
    return f"{_change(old, value['mean'], factor, digits)} ({spread})"


def data_results(data: Path, work: Path, tree: Path | None, jobs: int, scorer: Path | None) -> dict[str, str]:
    """What the benchmarks on public data say, by name; only of data that is there.

    Args:
        data: Folder with ``olmocr-bench-sample``, ``pubtabnet`` and ``korean`` as far as there.
        work: Scratch folder.
        tree: Source tree to score, with its own benchmarks; None for this one.
        jobs: Compute threads.
        scorer: A Python that has ``olmocr[bench]``; without it that row is left out.
    """
    scripts = tree / "benchmarks" if tree else Path(__file__).parent
    environment = dict(os.environ)
    if tree:
        sources = [tree.resolve() / "src", *tree.resolve().glob("packages/*/src")]
        environment["PYTHONPATH"] = os.pathsep.join(map(str, sources))
    results = {}

    def run(name: str, start: str, *command: str | Path) -> None:
        line = [sys.executable, *map(str, command)]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        said = done.stdout[done.stdout.find(start) :] if start in done.stdout else done.stderr[-300:]
        results[name] = said.strip()

    if (data / "pubtabnet").is_dir():
        with tempfile.TemporaryDirectory() as scores:
            evaluated = ("-m", "pagemill", "eval", "run", "pubtabnet", data / "pubtabnet", "--lang", "en", "-o", scores)
            run("PubTabNet", "PubTabNet,", *evaluated)
    if (data / "olmocr-bench-sample").is_dir() and scorer:
        sample = data / "olmocr-bench-sample"
        run(
            "olmOCR sample",
            "Final Summary",
            scripts / "olmocr_bench.py",
            sample,
            work / "olmocr",
            "--scorer-python",
            scorer,
        )
    if pdfs := sorted((data / "korean").glob("*.pdf")):
        results["Korean"] = _korean(pdfs, work, tree, jobs)
    return results


def _korean(pdfs: Sequence[Path], work: Path, tree: Path | None, jobs: int) -> str:
    """How far the pages of born-digital PDFs, read as scans, are from what their text layer says."""
    work.mkdir(parents=True, exist_ok=True)
    pages: list[Page] = []
    for pdf in pdfs:
        document = pypdfium2.PdfDocument(pdf)
        for number in range(len(document)):
            seed = len(pages)
            single = pypdfium2.PdfDocument.new()
            single.import_pages(document, [number])
            single.save(work / f"{seed}.pdf")
            single.close()
            document[number].render(scale=DPI / 72).to_pil().save(work / f"{seed}.png")
            pages.append(Page(seed, "ko", pdf.stem, (), work))
        document.close()
    layers, _ = parse(pages, DIGITAL, work / "layers", tree, jobs, "auto")
    scans, _ = parse(pages, "0", work / "scans", tree, jobs, "auto")
    errors = []
    for page in pages:
        paragraphs = layers[page.seed]["markdown"].split("\n\n")
        blocks = [Block("text", text) for paragraph in paragraphs if (text := plain_text(paragraph)[0])]
        if blocks:
            errors.append(score_page(blocks, scans[page.seed]["markdown"] or "", []).cer)
    return f"CER of {len(errors)} pages as scans against their text layer: {100 * float(np.mean(errors)):.1f} %"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=DEFAULT_SEEDS, metavar="A-B",
                        help=f"seeds (default {DEFAULT_SEEDS}: held back; use 0 to 999,999 to develop)")  # fmt: skip
    parser.add_argument("--scripts", metavar="CODES", help=f"only these languages, of {','.join(LANGUAGES)}")
    parser.add_argument("--layouts", metavar="NAMES", help=f"only these layouts, of {','.join(LAYOUTS)}")
    parser.add_argument("--severity", type=severities_of, default="digital,0,0.5", metavar="LIST",
                        help="digital, and severities from 0 (a clean scan) to 1 (default digital,0,0.5), also as "
                        f"0.5:SCENE, of {', '.join(SCENES)}")  # fmt: skip
    parser.add_argument("--tree", type=Path, help="source tree whose pagemill is scored (default: the one installed)")
    parser.add_argument("--lang", default="auto", help="--lang of pagemill parse (default auto)")
    parser.add_argument("--jobs", type=int, default=2, help="compute threads (default 2)")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where drawn pages are kept (default {CACHE})")
    parser.add_argument("--work", type=Path, help="keep the runs here, one folder a severity, to look at them")
    parser.add_argument("--again", action="store_true", help="score the runs in --work once more, without parsing")
    parser.add_argument("--data", type=Path, help="also run the benchmarks on public data below this folder")
    parser.add_argument("--scorer-python", type=Path, help="for the olmOCR sample: a Python that has olmocr[bench]")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write the results")
    parser.add_argument("--compare", type=Path, metavar="JSON", help="earlier results: show old → new")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also show the N pages with the highest CER")
    parser.add_argument("--draw-only", action="store_true", help="draw and photograph the pages, parse nothing")
    arguments = parser.parse_args()

    scripts = arguments.scripts.split(",") if arguments.scripts else LANGUAGES
    layouts = arguments.layouts.split(",") if arguments.layouts else list(LAYOUTS)
    for name in (*scripts, *layouts):
        if name not in (*LANGUAGES, *LAYOUTS):
            parser.error(f"{name} is neither a language nor a layout")
    chosen = [s for s in arguments.seeds if composition(s)[0] in scripts and composition(s)[1] in layouts]
    if not chosen:
        parser.error("no seed has these languages and layouts")
    start = time.perf_counter()
    with Press(arguments.cache) as press:
        pages = press.pages(chosen)
    for severity in arguments.severity:
        for page in pages:
            file_of(page, severity)
    print(f"{len(pages)} pages drawn or found in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    if arguments.draw_only:
        return

    result: dict[str, Any] = {"rows": [], "cpu_s_a_page": {}, "lang": arguments.lang}
    read: dict[tuple[int, str], tuple[Page, str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        work = arguments.work or Path(scratch)
        for severity in arguments.severity:
            start = time.perf_counter()
            records, cpu = parse(
                pages, severity, work / severity, arguments.tree, arguments.jobs, arguments.lang, arguments.again
            )
            result["cpu_s_a_page"][severity] = cpu / len(pages)
            read |= {(p.seed, severity): (p, (records.get(p.seed) or {}).get("markdown") or "") for p in pages}
            result["rows"] += [score(page, severity, records.get(page.seed)) for page in pages]
            print(f"{severity}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        if arguments.data:
            result["data"] = data_results(
                arguments.data, work / "data", arguments.tree, arguments.jobs, arguments.scorer_python
            )
    if arguments.out:
        arguments.out.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8")
    old = json.loads(arguments.compare.read_text(encoding="utf-8")) if arguments.compare else None
    print(report(result, old))
    for row in sorted(result["rows"], key=lambda row: -row["cer"])[: arguments.worst]:
        print(
            f"{row['seed']} {row['language']} {row['layout']} {row['severity']}: CER {row['cer']:.3f} {row['message']}"
        )
        page, markdown = read[row["seed"], row["severity"]]
        print(*differences(page.blocks, markdown), sep="\n")


if __name__ == "__main__":
    main()
