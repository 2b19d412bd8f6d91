"""Characters found on a drawn newspaper page at several resolutions, and what ordinary pages cost.

The page is a broadsheet of 11 x 17.7 inches: eight justified columns of 6.5 point type, closely set, under headlines,
with rules, grey paper, grain and a slight skew, as a JPEG. Its truth is exact. A word counts as found as often as the
output holds it, up to how often it was drawn, with its number of characters; one wrong letter loses the word.

    python benchmarks/newspaper.py --dpi 150 300 450
    python benchmarks/newspaper.py --ordinary PDF...

With ``--ordinary`` pages of PDFs at 200 dpi are read twice in turn: with the scale of detection chosen by the size of
the letters, and at 1,280 pixels always. Printed is the ratio of CPU time for finding and reading the lines.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.imaging.types import Pixels

FOLDER = Path("/usr/share/fonts/truetype")
FONTS = ("dejavu/DejaVuSerifCondensed.ttf", "liberation/LiberationSerif-Regular.ttf", "dejavu/DejaVuSerif.ttf")
TEXT = """
the council met on Tuesday to hear a report on the new bridge over the river and voted to raise the toll for carts from
two pence to three before winter; farmers from the northern parishes spoke against it, while merchants said that repairs
could not wait. Prices at market were steady: wheat 41 shillings, barley 27, oats 19 and hay scarce. Captain Harding of
the Arabella, 312 tons, arrived from Lisbon with wine, oranges and cork. A fire in Mill Lane destroyed two barns but
nobody was hurt. The theatre opens again in March with a comedy by Mrs Inchbald; seats from one shilling.
"""
WORDS = TEXT.split()
WIDTH, HEIGHT = 11.0, 17.67
COLUMNS, MARGIN, GUTTER = 8, 0.5, 0.12  # inches
TYPE, LEADING = 6.5, 7.0  # points


def draw(dpi: int, seed: int = 0) -> tuple[Image.Image, list[str]]:
    """A page at a resolution, with the words on it."""
    dice = random.Random(seed)
    path = next((FOLDER / name for name in FONTS if (FOLDER / name).exists()), None)
    if path is None:
        raise SystemExit("install a font first: apt-get install fonts-liberation")
    image = Image.new("L", (round(WIDTH * dpi), round(HEIGHT * dpi)), 228)
    pen = ImageDraw.Draw(image)
    words: list[str] = []

    def font(points: float) -> ImageFont.FreeTypeFont:
        return ImageFont.truetype(str(path), points * dpi / 72)

    def write(text: str, x: float, y: float, points: float) -> None:
        pen.text((x * dpi, y * dpi), text, font=font(points), fill=40)
        words.extend(text.split())

    write("The Weekly Courier", 2.2, 0.45, 60)
    write("Saturday, 14 November 1874. Price one penny.", 4.0, 1.5, 10)
    pen.rectangle((MARGIN * dpi, 1.8 * dpi, (WIDTH - MARGIN) * dpi, 1.8 * dpi + dpi / 100), fill=40)
    pitch = (WIDTH - 2 * MARGIN + GUTTER) / COLUMNS
    body = font(TYPE)
    for column in range(COLUMNS):
        left, top = MARGIN + column * pitch, 1.95
        if column:
            x = (left - GUTTER / 2) * dpi
            pen.line((x, 1.9 * dpi, x, (HEIGHT - 0.5) * dpi), fill=90, width=max(1, dpi // 150))
        while top < HEIGHT - 1.0:
            write(" ".join(dice.sample(["Fire", "Market", "Bridge", "News", "Ships", "Prices"], 2)), left, top, 12)
            top += 0.25
            for _ in range(dice.randint(12, 40)):
                if top > HEIGHT - 0.6:
                    break
                words += _justified(pen, dice, body, (left * dpi, top * dpi), (pitch - GUTTER) * dpi)
                top += LEADING / 72
            top += 0.1
    return image, words


def _justified(
    pen: ImageDraw.ImageDraw,
    dice: random.Random,
    font: ImageFont.FreeTypeFont,
    place: tuple[float, float],
    width: float,
) -> list[str]:
    """Draw a line of words spread over the width; the words."""
    line = [dice.choice(WORDS)]
    while pen.textlength(" ".join((*line, word := dice.choice(WORDS))), font=font) < width:
        line.append(word)
    free = width - sum(pen.textlength(word, font=font) for word in line)
    x, y = place
    for word in line:
        pen.text((x, y), word, font=font, fill=40)
        x += pen.textlength(word, font=font) + free / max(1, len(line) - 1)
    return line


def scanned(image: Image.Image, seed: int = 0) -> bytes:
    """The page turned a little, with grain, as JPEG."""
    turned = np.asarray(image.rotate(0.25, Image.Resampling.BICUBIC, fillcolor=228), dtype=np.float32)
    turned = turned + np.random.default_rng(seed).normal(0, 7, turned.shape).astype(np.float32)
    buffer = io.BytesIO()
    Image.fromarray(turned.clip(0, 255).astype(np.uint8)).convert("RGB").save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def found_share(text: str, words: Sequence[str]) -> float:
    """Share of the characters drawn whose words are in a text."""
    drawn, read = Counter(words), Counter(text.split())
    return sum(min(n, read[word]) * len(word) for word, n in drawn.items()) / sum(len(word) for word in words)


def read_pages(resolutions: Sequence[int]) -> None:
    """Read the page at each resolution with the whole pipeline and print what was found."""
    import pagemill

    for dpi in resolutions:
        image, words = draw(dpi)
        data = scanned(image)
        start, cpu = time.perf_counter(), time.process_time()
        (page,) = pagemill.parse(data, languages=("en",), crops=False).pages
        text = " ".join(region.content or "" for region in page.regions)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{dpi} dpi, {image.width} x {image.height}: {found_share(text, words):.1%} of {sum(map(len, words))} "
            f"characters found, {page.status}, {time.perf_counter() - start:.1f} s, "
            f"CPU {time.process_time() - cpu:.1f} s, peak {peak:.0f} MiB so far; {[e.message for e in page.errors]}",
            flush=True,
        )


def compare_ordinary(files: Sequence[Path], rounds: int = 3) -> None:
    """CPU time for finding and reading the lines of each page, over that with the scale fixed; least of the rounds."""
    import pypdfium2

    from pagemill.imaging.transforms import crop_quad
    from pagemill.recognition.rapidocr_engine import LONG_SIDE, RapidOcrDetector, RapidOcrRecognizer

    class FixedScale(RapidOcrDetector):
        def _scale(self, page: Pixels, letters: NDArray[np.float64]) -> float:
            return float(min(LONG_SIDE / max(page.shape[:2]), 2.0))

    chosen, fixed = RapidOcrDetector(), FixedScale()
    recognizer = RapidOcrRecognizer(latin=True)
    sums = [0.0, 0.0]
    for file in files:
        with pypdfium2.PdfDocument(file) as document:
            for number in range(min(3, len(document))):
                page = np.ascontiguousarray(
                    document[number].render(scale=200 / 72, rev_byteorder=True).to_numpy()[..., :3]
                )
                times: list[list[float]] = [[], []]
                for _ in range(rounds):
                    for which, detector in enumerate((chosen, fixed)):
                        start = time.thread_time()
                        lines = detector.detect(page)
                        times[which].append(time.thread_time() - start)
                start = time.thread_time()
                recognizer.recognize([crop_quad(page, line.polygon) for line in lines])
                reading = time.thread_time() - start
                new, old = (min(each) + reading for each in times)
                sums = [sums[0] + new, sums[1] + old]
                print(f"{file.name} page {number + 1}: {len(lines)} lines, {new:.2f} s / {old:.2f} s = {new / old:.3f}")
    print(f"all pages: {sums[0]:.1f} s / {sums[1]:.1f} s = {sums[0] / sums[1]:.3f}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dpi", type=int, nargs="+", default=[150, 300, 450])
    parser.add_argument("--ordinary", type=Path, nargs="+", metavar="PDF")
    options = parser.parse_args()
    if options.ordinary:
        compare_ordinary(options.ordinary)
    else:
        read_pages(options.dpi)


if __name__ == "__main__":
    main()
