"""Memory of a run: it must grow neither with the number of pages nor with the time.

Two measurements. The first parses ``--few`` and ``--many`` pages, the same ones over and over: Parquet files of page
images, which are read by recognition, or with ``--digital`` PDFs with their text layer. It prints the peak resident
memory of the whole process tree, sampled while ``pagemill parse`` runs, and their ratio. The first pages of a run load
models and fill pools, so ``--few`` should be well above the pages in flight.

The second (``--mixed PAGES``) parses a folder in which pages of very different kinds and sizes take turns: PDF pages
and scans from A6 to A0, 1 to 16 bits, images of 144 megapixels, and damaged and empty files. It samples the resident
memory of the process tree and of the parsing process, and compares the last third of the run with the first. With
``--fake-engines`` layout and recognition cost nothing and hold nothing, so that a thousand pages show what decoding and
all the rest hold; the PDF has to have a text layer then. Without it the embedded models run.

    python benchmarks/memory.py samples/report-scan.pdf --few 50 --many 500
    python benchmarks/memory.py samples/report.pdf --digital
    python benchmarks/memory.py samples/report.pdf --mixed 1100 --fake-engines
    python benchmarks/memory.py samples/report-scan.pdf --mixed 160
"""

from __future__ import annotations

import argparse
import io
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pypdfium2 as pdfium
from PIL import Image, ImageDraw

POINTS_OF_A4 = (595, 842)
PIXELS_PER_INCH = 72
# The slowest page takes seconds: a sample a tenth of a second misses no peak that lasts.
SAMPLE_S = 0.1


def drawn_page(scale: float, mode: str, seed: int) -> Image.Image:
    """A page of strokes on white at ``scale`` pixels per point of A4; the top stays white, as the fake engines want."""
    width, height = (round(side * scale) for side in POINTS_OF_A4)
    page = Image.new("L", (width, height), 255)
    draw, place = ImageDraw.Draw(page), random.Random(seed)
    for line in range(15, 90, 3):
        for start in range(10, 85, 8):
            x, y = start * width / 100, line * height / 100
            draw.rectangle((x, y, x + width * place.uniform(0.02, 0.07), y + height / 80), fill=place.randrange(90))
    return page.convert(mode)


def huge_png(side: int) -> bytes:
    """A square of 16-bit grey samples."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    packer, row = zlib.compressobj(1), b"\0" + b"\xff" * (2 * side)
    data = b"".join([packer.compress(row) for _ in range(side)]) + packer.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def mixed_files(pdf: Path) -> list[tuple[str, bytes]]:
    """Suffix and content of the files that take turns."""

    def image(file_format: str, scale: float, mode: str, **options: object) -> tuple[str, bytes]:
        buffer = io.BytesIO()
        drawn_page(scale, mode, seed=round(scale * 100)).save(buffer, file_format, **options)
        return file_format.lower(), buffer.getvalue()

    def resized(scale: float) -> bytes:
        source, buffer = pdfium.PdfDocument(pdf), io.BytesIO()
        page = source[0]
        page.set_mediabox(0, 0, *(side * scale for side in page.get_size()))
        source.save(buffer)
        source.close()
        return buffer.getvalue()

    scan, whole = image("JPEG", 200 / PIXELS_PER_INCH, "RGB"), pdf.read_bytes()
    ordinary = [
        ("pdf", whole),
        image("PNG", 1.5, "RGB"),
        scan,
        ("pdf", resized(0.3)),
        ("jpeg", scan[1][: len(scan[1]) // 2]),
        image("JPEG", 100 / PIXELS_PER_INCH, "L"),
        ("pdf", whole[: len(whole) // 3]),
        image("WEBP", 2, "RGB"),
        ("png", b""),
        image("TIFF", 1.5, "CMYK"),
        image("BMP", 1, "RGB"),
    ]
    large = [
        image("TIFF", 600 / PIXELS_PER_INCH, "1", compression="group4"),
        image("PNG", 300 / PIXELS_PER_INCH, "RGBA"),
        ("pdf", resized(4)),
        image("PNG", 600 / PIXELS_PER_INCH, "L"),
        ("png", huge_png(12_000)),
    ]
    return [file for each in large for file in (*ordinary, each)]


def write_mixed(pdf: Path, files: int, folder: Path) -> int:
    """Fill a folder with files of all kinds in turn, hard links of one another; gives the number of files of a turn."""
    folder.mkdir()
    kinds = mixed_files(pdf)
    for kind, (suffix, content) in enumerate(kinds):
        (folder.parent / f"kind-{kind}.{suffix}").write_bytes(content)
    for number in range(files):
        kind = number % len(kinds)
        suffix = kinds[kind][0]
        os.link(folder.parent / f"kind-{kind}.{suffix}", folder / f"{number:05d}.{suffix}")
    return len(kinds)


def memory_trace(command: Sequence[str], environment: dict[str, str]) -> Iterator[tuple[float, float]]:
    """Run a command; yield MiB of its process tree and of its largest process, sampled to its end."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            sizes = []
            for member in [watched, *watched.children(recursive=True)]:
                try:
                    sizes.append(member.memory_info().rss / 2**20)
                except psutil.NoSuchProcess:
                    continue
            if sizes:
                yield sum(sizes), max(sizes)
            time.sleep(SAMPLE_S)


def at_rest(samples: Sequence[float]) -> float:
    """What a process holds between large pages: a tenth of the samples are below."""
    return statistics.quantiles(samples, n=10)[0]


def measure_mixed(options: argparse.Namespace) -> None:
    """Print the memory of the first and the last third of a run over mixed files."""
    with tempfile.TemporaryDirectory() as folder:
        inputs, environment, extra = Path(folder, "inputs"), dict(os.environ), list(options.arguments)
        turn = write_mixed(options.pdf, options.mixed, inputs)
        if options.fake_engines:
            sys.path.append(str(Path(__file__).parents[1] / "tests" / "integration"))
            import pagemill_process

            environment = pagemill_process.environment(pagemill_process.install_engines(Path(folder, "engines")))
            extra = [*pagemill_process.OPTIONS, *extra]
        command = [sys.executable, "-m", "pagemill", "parse", str(inputs), "-o", str(Path(folder, "out")), "-q", *extra]
        start = time.monotonic()
        trace = list(memory_trace(command, environment))
        print(f"{options.mixed} files  {time.monotonic() - start:.0f} s  {len(trace)} samples")
    if options.trace:
        options.trace.write_text("".join(f"{tree:.1f},{largest:.1f}\n" for tree, largest in trace), encoding="ascii")
    # Until all kinds were met once, models are loaded and pools are filled.
    trace = trace[len(trace) * turn // options.mixed :]
    third = len(trace) // 3
    for what, samples in zip(("process tree", "parsing process"), zip(*trace, strict=True), strict=True):
        first, last = samples[:third], samples[-third:]
        for figure, of in (("mean", statistics.mean), ("least tenth", at_rest), ("peak", max)):
            before, after = of(first), of(last)
            print(f"{what:16} {figure:12} {before:6.0f} -> {after:6.0f} MiB ({after / before - 1:+.1%})")


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
    parser.add_argument("--mixed", type=int, metavar="PAGES", help="files of all kinds in turn, thirds compared")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="with --mixed: write all samples to a CSV file")
    parser.add_argument("--fake-engines", action="store_true", help="with --mixed: no models")
    options = parser.parse_args()
    if options.mixed:
        measure_mixed(options)
        return
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
