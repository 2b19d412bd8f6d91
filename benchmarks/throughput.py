"""Pages a second and character error rate: pagemill's whole pipeline against RapidOCR's own page-by-page loop.

Makes single-column English pages that look scanned (200 dpi, slight skew, noise, JPEG) from text whose truth is known,
then lets both read the same encoded bytes in turn, ``--rounds`` times: RapidOCR 3 as its documentation shows it
(``engine = RapidOCR(); engine(image)``, a page after the other, its own threading), and pagemill's pipeline with layout
detection, tables and Markdown included. Both are loaded and warmed up first. Prints both rates, the ratio of each
round, and the character error rate of both (NFC, runs of white space folded; lines of RapidOCR joined top to bottom).

    python benchmarks/throughput.py --pages 24
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import random
import statistics
import time
from contextlib import aclosing
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pagemill.config.machine import available_cores
from pagemill.config.modes import TextLayerMode
from pagemill.config.settings import ParseSettings
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources import SourceOptions
from pagemill_eval.text import character_error_rate

TEXT = """
the mill turns slowly in spring when water is high and paper dries on long racks beside the river every sheet carries
a mark that tells who made it where it was made and for which office it was meant clerks count bundles seal them with
wax and send them by boat to towns whose archives still hold letters orders accounts maps petitions and ledgers
written in a patient hand over many years of quiet work by people we no longer know
"""
WORDS = TEXT.split()


def make_page(seed: int) -> tuple[bytes, str]:
    """One A4 page at 200 dpi as JPEG bytes, with its text."""
    dice = random.Random(seed)
    font = ImageFont.truetype(str(find_font()), 31)  # 11 pt at 200 dpi
    image = Image.new("L", (1654, 2339), 255)
    draw = ImageDraw.Draw(image)
    paragraphs: list[str] = []
    y = 180.0
    while y < 2050:
        words = [dice.choice(WORDS) for _ in range(dice.randint(35, 80))]
        words[0] = words[0].capitalize()
        lines, line = [], words[0]
        for word in words[1:]:
            if draw.textlength(f"{line} {word}", font=font) > 1260:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}"
        lines.append(f"{line} {dice.randint(1700, 1999)}.")
        if y + 44 * len(lines) > 2180:
            break
        for text in lines:
            draw.text((190, y), text, font=font, fill=25)
            y += 44
        paragraphs.append(" ".join(lines))
        y += 34
    noisy = np.asarray(image.rotate(dice.uniform(-0.6, 0.6), Image.Resampling.BICUBIC, fillcolor=255), dtype=np.float32)
    noisy += np.random.default_rng(seed).normal(0, 9, noisy.shape)
    buffer = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).convert("RGB").save(buffer, "JPEG", quality=75)
    return buffer.getvalue(), "\n".join(paragraphs)


def find_font() -> Path:
    """A serif font of the system."""
    for name in ("liberation/LiberationSerif-Regular.ttf", "dejavu/DejaVuSerif.ttf", "dejavu/DejaVuSans.ttf"):
        path = Path("/usr/share/fonts/truetype", name)
        if path.exists():
            return path
    raise SystemExit("install a font first: apt-get install fonts-liberation")


def read_with_rapidocr(engine: object, pages: list[bytes]) -> list[str]:
    """RapidOCR's own loop."""
    texts = []
    for data in pages:
        result = engine(data)  # type: ignore[operator]
        texts.append(" ".join(result.txts or ()))
    return texts


async def read_with_pagemill(pipeline: Pipeline, pages: list[bytes]) -> list[str]:
    """The whole pipeline."""
    texts = [""] * len(pages)
    async with aclosing(pipeline.stream(pages, SourceOptions())) as results:
        async for page in results:
            assert isinstance(page, ParsedPage)  # the pages differ, so none is skipped as a duplicate
            texts[page.record.page_idx] = " ".join(region.content or "" for region in page.record.regions)
    return texts


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(available_cores()))
    from rapidocr import RapidOCR

    engine = RapidOCR(params={"Global.log_level": "error"})
    made = [make_page(seed) for seed in range(options.pages)]
    pages, truths = [data for data, _ in made], [text for _, text in made]
    settings = ParseSettings(languages=("en",), text_layer=TextLayerMode.NEVER, crops=False)
    ratios = []
    async with Pipeline(Services(settings)) as pipeline:
        read_with_rapidocr(engine, pages[:1])
        await read_with_pagemill(pipeline, pages[:2])
        for number in range(1, options.rounds + 1):
            start = time.perf_counter()
            theirs = read_with_rapidocr(engine, pages)
            middle = time.perf_counter()
            ours = await read_with_pagemill(pipeline, pages)
            end = time.perf_counter()
            rate_theirs, rate_ours = len(pages) / (middle - start), len(pages) / (end - middle)
            ratios.append(rate_ours / rate_theirs)
            errors = [
                statistics.fmean(character_error_rate(got, want) for got, want in zip(texts, truths, strict=True))
                for texts in (theirs, ours)
            ]
            print(
                f"round {number}: RapidOCR {rate_theirs:.2f} pages/s, CER {errors[0]:.4f}   "
                f"pagemill {rate_ours:.2f} pages/s, CER {errors[1]:.4f}   ratio {ratios[-1]:.2f}",
                flush=True,
            )
    print(f"{len(pages)} pages, {available_cores()} cores: median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    asyncio.run(main())
