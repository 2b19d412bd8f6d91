"""Whether damage inside the streams of PDFs is noticed: 64-byte holes and single flipped bits, in copies of sound PDFs.

Each PDF is written anew in several ways (plain, object streams, linearised, encrypted, ASCII85 around Flate, without
compression), and each copy is damaged many times, at one place. A case is silent where the text of a page differs from
that of the sound copy and nothing is said. Pictures have no text: of streams of their codecs the table shows how much
is noticed. Prints the rates; exits with 1 where more than 1 in 200 is silent in compressed streams. The cases are the
same for the same seed.

With ``--cost`` nothing is damaged: it prints what the check takes of the processor time of decoding a page, by kind.
"""

from __future__ import annotations

import argparse
import base64
import random
import re
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pikepdf

from pagemill.errors import PagemillError
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import describe, open_pdf, render_page
from pagemill.imaging.pdf_damage import PdfDamage

HOLE = 64
MOST_SILENT = 1 / 200
PAGES = 3
"""Of a copy; more only take longer."""
_STREAM = re.compile(rb"<<((?:(?!endobj)[\s\S]){0,2000}?)>>\s*stream\r?\n([\s\S]*?)\r?\n?endstream")
HEAVY = 100_000
"""Bytes of the content of a page, of which most are drawings then."""
_CODECS = {b"/DCTDecode": "JPEG", b"/CCITTFaxDecode": "CCITT", b"/JPXDecode": "JPEG 2000", b"/JBIG2Decode": "JBIG2"}


def copies(source: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The first pages of a PDF, written in several ways."""
    objects = pikepdf.ObjectStreamMode
    ways: dict[str, dict[str, object]] = {
        "plain": {"object_stream_mode": objects.disable},
        "object streams": {"object_stream_mode": objects.generate},
        "linearised": {"linearize": True},
        "encrypted (RC4)": {"encryption": pikepdf.Encryption(owner="o", user="", R=3, aes=False, metadata=False)},
        "encrypted (AES)": {"encryption": pikepdf.Encryption(owner="o", user="", R=6)},
        "ASCII85": {"object_stream_mode": objects.disable},
        "uncompressed": {"stream_decode_level": pikepdf.StreamDecodeLevel.generalized, "compress_streams": False},
    }
    for way, options in ways.items():
        with pikepdf.open(source) as pdf:
            del pdf.pages[PAGES:]
            if way == "ASCII85":
                _use_ascii85(pdf)
            path = folder / f"{source.stem}-{way}.pdf"
            pdf.save(path, **options)  # type: ignore[arg-type]
            yield way, path
    yield "as it is", source


def _use_ascii85(pdf: pikepdf.Pdf) -> None:
    for page in pdf.pages:
        page.contents_coalesce()
        packed = base64.a85encode(zlib.compress(page.Contents.read_bytes())) + b"~>"
        names = pikepdf.Array([pikepdf.Name.ASCII85Decode, pikepdf.Name.FlateDecode])
        page.Contents = pikepdf.Stream(pdf, packed, Filter=names)


def read(path: Path) -> tuple[list[str], bool]:
    """The text of the first pages, and whether anything is said of them."""
    texts: list[str] = []
    try:
        with open_pdf(path, None) as document:
            info = describe(document)
            is_noticed = info.announced > info.page_count or info.broken > 0
            for index in range(min(info.page_count, PAGES)):
                page = render_page(document, index, DecodeLimits(dpi=40))
                lines = page.text_layer.lines if page.text_layer else ()
                texts.append("\n".join(line.text for line in lines))
                is_noticed = is_noticed or any(warning.category == "corrupt" for warning in page.warnings)
    except PagemillError:
        return [], True
    return texts, is_noticed


def places(data: bytes, way: str) -> list[tuple[str, int, int]]:
    """Kind, start and end of each stream."""
    found = []
    for match in _STREAM.finditer(data):
        codec = next((name for key, name in _CODECS.items() if key in match[1]), None)
        kind = "compressed" if b"/FlateDecode" in match[1] or b"/LZWDecode" in match[1] else "uncompressed"
        if match.end(2) > match.start(2) and (way != "uncompressed" or codec or kind == "uncompressed"):
            found.append((codec or kind, match.start(2), match.end(2)))
    return found


def print_costs(paths: list[Path]) -> None:
    """What the check takes of the first pages of sound PDFs. The first page pays for what others share with it."""
    check, spent = PdfDamage.of_page, 0.0

    def timed(*arguments: object, **options: object) -> str | None:
        nonlocal spent
        start = time.thread_time()
        try:
            return check(*arguments, **options)  # type: ignore[arg-type]
        finally:
            spent = time.thread_time() - start

    PdfDamage.of_page = timed  # type: ignore[method-assign]
    costs: dict[str, list[tuple[float, float]]] = {}
    for path in paths:
        try:
            with open_pdf(path, None) as document, pikepdf.open(path, suppress_warnings=True) as pdf:
                for index in range(min(describe(document).page_count, len(pdf.pages), PAGES)):
                    start, spent = time.thread_time(), 0.0
                    page = render_page(document, index, DecodeLimits())
                    whole = time.thread_time() - start
                    if spent and not any(warning.category == "corrupt" for warning in page.warnings):
                        kind = "with images" if page.image_boxes else _kind(pdf.pages[index])
                        costs.setdefault(kind, []).append((1000 * spent, 1000 * whole))
        except (PagemillError, pikepdf.PdfError) as error:
            print(f"{path.name}: {error}", file=sys.stderr)
    print("| page | pages | ms, mean | median | 95 % | worst | of decoding |\n|---|--:|--:|--:|--:|--:|--:|")
    for kind, pages in sorted(costs.items()):
        times = sorted(cost for cost, _ in pages)
        figures = (sum(times) / len(times), times[len(times) // 2], times[len(times) * 95 // 100], times[-1])
        share = sum(times) / sum(whole for _, whole in pages)
        print(f"| {kind} | {len(times)} | {' | '.join(f'{figure:.1f}' for figure in figures)} | {share:.1%} |")


def _kind(page: pikepdf.Page) -> str:
    """Of a page without images, by what it costs to check."""
    resources = page.obj.get("/Resources", pikepdf.Dictionary())
    fonts = resources.get("/Font", pikepdf.Dictionary()).as_dict().values()
    if any("/CharProcs" in font for font in fonts):
        return "Type 3 fonts"
    contents = page.obj.get("/Contents", ())
    streams = [contents] if isinstance(contents, pikepdf.Stream) else list(contents)
    return "drawings" if sum(len(stream.read_bytes()) for stream in streams) > HEAVY else "text"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path, nargs="+", metavar="PDF", help="sound PDFs")
    parser.add_argument("--cases", type=int, default=20, help="cases of each copy and damage")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cost", action="store_true", help="what the check costs on sound PDFs")
    arguments = parser.parse_args()
    if arguments.cost:
        print_costs(arguments.pdf)
        return 0
    table: dict[tuple[str, str, str], Counter[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for source in arguments.pdf:
            for way, path in copies(source, Path(scratch)):
                sound, was_noticed = read(path)
                if was_noticed:
                    print(f"{path.name} is not sound", file=sys.stderr)
                    continue
                data = path.read_bytes()
                for damage in ("hole", "bit"):
                    chance = random.Random(f"{arguments.seed}/{path.name}/{damage}")
                    for _ in range(arguments.cases):
                        kind, start, end = chance.choice(places(data, way))
                        damaged, place = bytearray(data), chance.randrange(start, end)
                        if damage == "bit":
                            damaged[place] ^= 1 << chance.randrange(8)
                        else:
                            damaged[place : min(place + HOLE, end)] = bytes(min(place + HOLE, end) - place)
                        if damaged == data:
                            continue
                        case = Path(scratch) / "case.pdf"
                        case.write_bytes(damaged)
                        texts, is_noticed = read(case)
                        outcome = "noticed" if is_noticed else "same text" if texts == sound else "silent"
                        table.setdefault((kind, way, damage), Counter())[outcome] += 1
                        if outcome == "silent":
                            print(f"silent: {path.name}, {damage} at {place}", file=sys.stderr)
    print("| stream | written | damage | cases | noticed | same text | silent |\n|---|---|---|--:|--:|--:|--:|")
    for (kind, way, damage), ends in sorted(table.items()):
        row = (ends.total(), ends["noticed"], ends["same text"], ends["silent"])
        print(f"| {kind} | {way} | {damage} | {' | '.join(map(str, row))} |")
    compressed: Counter[str] = sum((ends for (kind, *_), ends in table.items() if kind == "compressed"), Counter())
    print(f"\nsilent in compressed streams: {compressed['silent']} of {compressed.total()}")
    return int(compressed["silent"] > MOST_SILENT * compressed.total())


if __name__ == "__main__":
    sys.exit(main())
