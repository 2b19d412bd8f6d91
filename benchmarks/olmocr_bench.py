"""olmOCR-bench on a folder of its data: write Markdown candidates, score them with the ``olmocr`` package.

DATA holds ``pdfs/`` and ``*.jsonl`` as the benchmark ships them. OUT receives ``<name>/<pdf>_pg<page>_repeat1.md``
(one repeat: pagemill is deterministic) for every page, an empty file where a page failed, so that a missing answer
counts as wrong. The scorer runs in an environment of its own (``pip install olmocr[bench]``) that ``--scorer-python``
names; math tests are left out, since they need a browser to render formulas.

Overall is the scorer's own figure: the mean of the pass rates of each jsonl file and of the baseline tests.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def parse_with_pagemill(pdf: Path, languages: tuple[str, ...], text_layer: str, furniture: str) -> list[str]:
    """Markdown of every page of a PDF through the public API; empty for a failed page."""
    import pagemill

    document = pagemill.parse(pdf, languages=languages, text_layer=text_layer, furniture=furniture)
    return [page.markdown for page in document.pages]


def parse_with_tesseract(pdf: Path) -> list[str]:
    """Plain Tesseract text of every page, rendered by pdftoppm at 200 dpi: the base line to compare with."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["pdftoppm", "-r", "200", "-png", str(pdf), f"{scratch}/page"], check=True, capture_output=True)
        return [
            subprocess.run(
                ["tesseract", str(image), "-", "-l", "eng"], check=True, capture_output=True, text=True
            ).stdout
            for image in sorted(Path(scratch).glob("*.png"))
        ]


def write_candidate(
    data: Path, candidate: Path, engine: str, languages: tuple[str, ...], text_layer: str, furniture: str
) -> None:
    """Parse every PDF under ``data/pdfs`` into the scorer's folder layout, telling seconds and failures."""
    pdfs = data / "pdfs"
    for pdf in sorted(pdfs.rglob("*.pdf")):
        start = time.perf_counter()
        error = ""
        try:
            if engine == "tesseract":
                pages = parse_with_tesseract(pdf)
            else:
                pages = parse_with_pagemill(pdf, languages, text_layer, furniture)
        except Exception as failure:  # a benchmark goes on and counts the document as wrong
            pages, error = [""], f"  FAILED: {failure}"
        target = candidate / pdf.relative_to(pdfs).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        for number, markdown in enumerate(pages, start=1):
            target.with_name(f"{target.name}_pg{number}_repeat1.md").write_text(markdown, encoding="utf-8")
        print(f"{pdf.relative_to(pdfs)}: {len(pages)} pages, {time.perf_counter() - start:.1f} s{error}", flush=True)


def score(data: Path, candidate: Path, scorer_python: Path) -> str:
    """Run the scorer without math tests in a scratch folder; its standard output.

    Raises:
        subprocess.CalledProcessError: The scorer did not run; its messages were printed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        bench = Path(scratch)
        (bench / "pdfs").symlink_to((data / "pdfs").resolve(), target_is_directory=True)
        for tests in data.glob("*.jsonl"):
            lines = [line for line in tests.read_text(encoding="utf-8").splitlines() if line.strip()]
            kept = [line for line in lines if json.loads(line)["type"] != "math"]
            (bench / tests.name).write_text("\n".join(kept) + "\n", encoding="utf-8")
        shutil.copytree(candidate, bench / candidate.name)
        # --force: a page whose only tests were math is no error.
        command = [str(scorer_python), "-m", "olmocr.bench.benchmark", "--force"]
        command += ["--dir", str(bench), "--candidate", candidate.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        done.check_returncode()
    return done.stdout


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with pdfs/ and *.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder that receives one folder of candidates")
    parser.add_argument("--engine", choices=("pagemill", "tesseract", "none"), default="pagemill",
                        help="what makes the candidates; none: score those already in OUT/NAME")  # fmt: skip
    parser.add_argument("--name", help="candidate folder's name (default: the engine and its text-layer mode)")
    parser.add_argument("--lang", default="en", help="languages for pagemill, comma-separated, or auto")
    parser.add_argument("--text-layer", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--furniture", choices=("proven", "likely"), default="proven",
                        help="which running heads and feet are left out; the benchmark wants none")  # fmt: skip
    parser.add_argument(
        "--scorer-python", type=Path, help="a Python that has olmocr[bench]; without it nothing is scored"
    )
    parser.add_argument("--failures", action="store_true", help="also print every failed test")
    arguments = parser.parse_args()

    name = arguments.name or f"{arguments.engine}-{arguments.text_layer}-{arguments.furniture}"
    candidate = arguments.out / name
    if arguments.engine != "none":
        languages = tuple(arguments.lang.split(","))
        write_candidate(
            arguments.data, candidate, arguments.engine, languages, arguments.text_layer, arguments.furniture
        )
    if arguments.scorer_python is None:
        return
    output = score(arguments.data, candidate, arguments.scorer_python)
    if arguments.failures:
        print(*re.findall(r"^ +\[FAIL\].*$", output, re.MULTILINE), sep="\n")
    print(output[output.index("Final Summary") :].strip())
    print("\nmath tests left out; scorer: olmocr package, olmocr.bench.benchmark")


if __name__ == "__main__":
    main()
