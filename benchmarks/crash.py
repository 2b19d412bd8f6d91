"""Kills runs, or breaks their engines, and tells what became of the pages: the long form of two tests.

Without ``--faults``: a run over ``--pages`` pages is killed (``SIGKILL``) at ``--kills`` random instants and resumed
each time; in the end its records, texts, documents and crops are compared with those of an undisturbed run, and
``pagemill verify`` looks at the directory. Prints where the kills hit, and exits with 1 when anything differs.

With ``--faults``: every fault of ``tests/integration/fault_engines.py`` on ``--each`` of ``--pages`` pages, in one run
those that end the process, in another those that it survives. Prints what became of the pages with each fault, and
exits with 1 when a page did not end as it must.

    python benchmarks/crash.py --kills 1000 --pages 2000
    python benchmarks/crash.py --faults --pages 100 --each 5
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))

from coded_pages import Corpus, CorpusMaker
from crash_run import CrashRun
from fault_engines import Fault
from fault_outcomes import DEADLY, HARMLESS, parse_with_faults, spread
from pagemill_process import OPTIONS, environment, install_engines, run
from run_contents import contents, differences, leftovers, records


def make_corpus(folder: Path, pages: int) -> Corpus:
    """Some ``pages`` pages: five in eight in PDFs, the others image files, TIFF frames and rows of a dataset."""
    folder.mkdir()
    maker = CorpusMaker(folder)
    eighth = max(1, pages // 8)
    for _ in range(5):
        maker.pdf(eighth)
    maker.images(eighth // 4)
    maker.tiff(max(1, eighth // 4))
    maker.parquet(max(1, pages - len(maker.corpus().pages)))
    return maker.corpus()


def crash(scratch: Path, kills: int, pages: int, seed: int) -> bool:
    """Kill a run again and again; whether nothing of it differs from an undisturbed one."""
    surroundings = environment(install_engines(scratch / "packages"))
    corpus = make_corpus(scratch / "inputs", pages)
    undisturbed, out = scratch / "undisturbed", scratch / "out"
    start = time.monotonic()
    if run(["parse", *corpus.paths, "-o", undisturbed, *OPTIONS], surroundings, scratch / "undisturbed.log"):
        raise SystemExit((scratch / "undisturbed.log").read_text())
    print(f"{len(corpus.pages)} pages, undisturbed in {time.monotonic() - start:.1f} s", flush=True)
    crashes = CrashRun(
        corpus,
        out,
        surroundings,
        kills=kills,
        seed=seed,
        full_size=(undisturbed / "ocr_results.jsonl").stat().st_size,
        progress=lambda done: print(f"{done} kills", flush=True) if done % 100 == 0 else None,
    )
    status = crashes.go()
    problems = [f"the last process ended with {status}"] if status else []
    problems += [f"{lines} records were lost by one kill" for lines in crashes.log.lost]
    problems += differences(contents(out), contents(undisturbed)) + [f"{name} is left" for name in leftovers(out)]
    if run(["verify", out], surroundings, scratch / "verify.log"):
        problems.append((scratch / "verify.log").read_text())
    print(crashes.log.table())
    endings = ", ".join(f"{times} with {code}" for code, times in sorted(crashes.log.endings.items())) or "none"
    print(f"{crashes.log.killed} kills, {crashes.log.starts} starts, {crashes.log.seconds:.0f} s")
    print(f"{crashes.log.unfinished} of them left a record whose line was not in ocr_results.jsonl yet")
    print(f"processes that ended before they could be killed: {endings}")
    print(f"{len(records(out))} records; {len(problems)} differences from the undisturbed run")
    print("\n".join(problems[:50]))
    return not problems


def break_engines(scratch: Path, faults: Sequence[Fault], pages: int, each: int, seed: int) -> bool:
    """Parse pages with some faults; whether each page ended as it must."""
    (scratch / "state").mkdir(parents=True)
    surroundings = environment(install_engines(scratch / "packages"), scratch / "state")
    chosen = spread(pages, pages // 2, each, faults, seed)
    ended = parse_with_faults(scratch, surroundings, chosen, pages=pages, images=pages // 2)
    print(ended.table())
    violations = ended.violations()
    print(f"{ended.seconds:.0f} s, exit status {ended.status}; {len(violations)} pages did not end as they must")
    print("\n".join(violations[:50]))
    return not violations


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--faults", action="store_true", help="break engines instead of killing processes")
    parser.add_argument("--each", type=int, default=5, help="pages of each fault")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if options.faults:
            groups = {"deadly": DEADLY, "harmless": HARMLESS}
            outcomes = [
                break_engines(scratch / name, faults, options.pages, options.each, options.seed)
                for name, faults in groups.items()
            ]
            sound = all(outcomes)
        else:
            sound = crash(scratch, options.kills, options.pages, options.seed)
    sys.exit(not sound)


if __name__ == "__main__":
    main()
