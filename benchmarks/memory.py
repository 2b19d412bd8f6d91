"""Peak memory of a run over many pages against a run over few: it must not grow with the input.

Builds two inputs of the same pages over and over (``--few`` and ``--many`` pages): Parquet files of page images, which
are read by recognition, or with ``--digital`` PDFs with their text layer. Parses each with ``pagemill parse``
in a process of its own and prints the peak resident memory of the whole process tree, sampled while it runs, and their
ratio.
The first pages of a run load models and fill pools, so ``--few`` should be well above the pages in flight.

    python benchmarks/memory.py samples/report-scan.pdf --few 50 --many 500
    python benchmarks/memory.py samples/report.pdf --digital
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pypdfium2 as pdfium


def write_dataset(pdf: Path, rows: int, path: Path, dpi: int) -> None:
    """Write a Parquet file of ``rows`` JPEG page images, the pages of ``pdf`` over and over."""
    encoded = []
    document = pdfium.PdfDocument(pdf)
    try:
        for page in document:
            buffer = io.BytesIO()
            page.render(scale=dpi / 72).to_pil().convert("RGB").save(buffer, "JPEG", quality=85)
            encoded.append(buffer.getvalue())
    finally:
        document.close()
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    with pq.ParquetWriter(path, pa.schema([("id", pa.string()), ("image", image)])) as writer:
        for start in range(0, rows, 50):
            numbers = range(start, min(start + 50, rows))
            images = [{"bytes": encoded[n % len(encoded)], "path": None} for n in numbers]
            writer.write_batch(
                pa.record_batch([pa.array([f"scan_{n}" for n in numbers]), pa.array(images, image)], writer.schema)
            )


def write_pdf(pdf: Path, pages: int, path: Path) -> None:
    """Write a PDF of ``pages`` pages, those of ``pdf`` over and over."""
    source, target = pdfium.PdfDocument(pdf), pdfium.PdfDocument.new()
    try:
        target.import_pages(source, [number % len(source) for number in range(pages)])
        target.save(path)
    finally:
        target.close()
        source.close()


def peak_of(command: list[str]) -> tuple[float, float]:
    """Run a command; return the peak resident memory of its process tree in MiB, and its seconds."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        watched, peak = psutil.Process(process.pid), 0
        while process.poll() is None:
            total = 0
            try:
                for member in [watched, *watched.children(recursive=True)]:
                    total += member.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            peak = max(peak, total)
            time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}")
    return peak / 2**20, time.monotonic() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path)
    parser.add_argument("--few", type=int, default=50)
    parser.add_argument("--many", type=int, default=500)
    parser.add_argument("--dpi", type=int, default=100, help="of the page images")
    parser.add_argument("--digital", action="store_true", help="PDFs with a text layer instead of page images")
    parser.add_argument("arguments", nargs="*", help="more options of pagemill parse, after --")
    options = parser.parse_args()
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in (options.few, options.many):
            source, out = (
                Path(folder, f"{rows}.pdf" if options.digital else f"{rows}.parquet"),
                Path(folder, f"out-{rows}"),
            )
            if options.digital:
                write_pdf(options.pdf, rows, source)
            else:
                write_dataset(options.pdf, rows, source, options.dpi)
            command = [sys.executable, "-m", "pagemill", "parse", str(source), "-o", str(out), "-q"]
            peak, seconds = peak_of([*command, *options.arguments])
            peaks.append(peak)
            print(f"{rows:6} pages  peak {peak:7.0f} MiB  {seconds:7.1f} s", flush=True)
    print(f"ratio  {peaks[1] / peaks[0]:.3f}")


if __name__ == "__main__":
    main()
