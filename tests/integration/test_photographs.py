"""Photographs of a page through the real engines: what is read, and whether the boxes lie on the words."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import pagemill
from pagemill_eval.text import character_error_rate
from pages.camera import photograph

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.document.page import PageResult
    from pages.camera import Photograph

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf"
SIZE = (1240, 1754)
TEXT = """the mill turns slowly in spring when water is high paper dries on long racks below the roof and every sheet
bears a mark that tells its maker and its year of harvest"""
WORDS = TEXT.split()
BAR = 0.03
"""Highest character error rate of the photograph: 0.002 to 0.012 where it is unwarped, 0.2 and more where it is not."""

Words = list[tuple[str, tuple[float, float, float, float]]]


def page() -> tuple[np.ndarray, str, Words]:
    """A page of six paragraphs: its pixels, its text, and each word with its box."""
    dice = random.Random(7)
    image = Image.new("RGB", SIZE, "white")
    draw, font = ImageDraw.Draw(image), ImageFont.truetype(FONT, 26)
    words: Words = []
    top = 120.0
    for _ in range(6):
        left = 130.0
        for number in range(45):
            word = dice.choice(WORDS)
            word = word.capitalize() if not number else word + "." * (number == 44)
            width = draw.textlength(word, font=font)
            if left + width > SIZE[0] - 130:
                left, top = 130.0, top + 40
            draw.text((left, top), word, font=font, fill=(25, 25, 25))
            words.append((word, tuple(map(float, draw.textbbox((left, top), word, font=font)))))
            left += width + 12
        top += 70
    return np.asarray(image), " ".join(word for word, _ in words), words


@pytest.fixture(scope="module")
def taken() -> tuple[Photograph, str, Words]:
    """The page, bent, seen from a slant, in bad light."""
    pixels, text, words = page()
    return photograph(np.ascontiguousarray(pixels[..., ::-1]), 0.7, 3), text, words


@pytest.fixture(scope="module")
def file(taken: tuple[Photograph, str, Words], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("photograph") / "photo.jpg"
    file.write_bytes(taken[0].jpeg)
    return file


def parsed(file: Path, **options: object) -> PageResult:
    (record,) = pagemill.parse(file, **options).pages
    return record


def read(record: PageResult) -> str:
    return " ".join(region.content or "" for region in record.regions)


def test_a_photographed_page_is_read_and_its_boxes_lie_on_the_words(taken, file):
    picture, text, words = taken
    record, alone = (parsed(file, threads=threads) for threads in (2, 1))
    assert msgspec.structs.replace(record, timings={}) == msgspec.structs.replace(alone, timings={})
    assert record.unwarped == "uvdoc" and (record.width, record.height) == picture.size
    assert character_error_rate(read(record), text) < BAR
    found = [word for region in record.regions for line in region.lines for word in line.words]
    centres = np.array([((w.box[0] + w.box[2]) / 2, (w.box[1] + w.box[3]) / 2) for w in found])
    off = []
    for word, (x1, y1, x2, y2) in words:
        shares = [(x / SIZE[0], y / SIZE[1]) for x, y in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))]
        middle = picture.map(shares).mean(axis=0)
        same = [index for index, other in enumerate(found) if other.text == word]
        if same:
            off.append(np.linalg.norm(centres[same] - middle, axis=1).min())
    assert len(off) > 0.95 * len(words)
    assert np.quantile(off, 0.95) < 12  # half a line


def test_a_photograph_that_lies_on_its_side_and_one_in_a_pdf_are_read_likewise(taken, tmp_path):
    picture, text, _ = taken
    upright = Image.open(io.BytesIO(picture.jpeg))
    lying = tmp_path / "lying.png"
    upright.transpose(Image.Transpose.ROTATE_90).save(lying)
    record = parsed(lying)
    assert (record.unwarped, record.rotation, (record.width, record.height)) == ("uvdoc", 90, picture.size)
    assert character_error_rate(read(record), text) < BAR
    document = tmp_path / "photo.pdf"
    upright.save(document, resolution=150)
    record = parsed(document)
    assert record.unwarped == "uvdoc"
    assert character_error_rate(read(record), text) < BAR


def test_never_reads_a_photograph_as_it_is(file):
    assert parsed(file, photographs="never").unwarped == ""
