"""The text of pictures inside of documents, recognized as pages are."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from pagemill.config.describing import DescribeSettings
from pagemill.document.geometry import Box, clip, normalise_1000
from pagemill.document.labels import FURNITURE_LABELS, PICTURES, TITLES, Label
from pagemill.document.page import DOUBTS, WHOLE_PAGE, PageError, PageResult, Region
from pagemill.errors import PagemillError, PageTimeoutError
from pagemill.parsing.line_reading import read_again, read_by_lines
from pagemill.parsing.model_reading import read_by_model
from pagemill.parsing.page_run import DECODE, PageRun
from pagemill.readers.base import Part
from pagemill.sources.base import EncodedImage

_LEAST_SIDES = (16, 32)
"""Pixels of the sides of a picture that may hold a word. Not measured."""
_LEAST_CONFIDENCE = 0.6
"""Confidence of text in a picture; below it are textures and drawings. Not measured."""
_AS_TEXT = TITLES | PICTURES | FURNITURE_LABELS | {Label.FIGURE_TITLE}
"""Labels that would say something of the document where they are of a picture."""


class PictureText(msgspec.Struct, frozen=True, kw_only=True):
    """What was recognized in a picture."""

    regions: tuple[Region, ...] = ()
    size: tuple[int, int] = (1, 1)
    languages: tuple[str, ...] = ()
    errors: tuple[PageError, ...] = ()

    def add_to(self, record: PageResult, picture: Region) -> None:
        """Add the text to the record, behind the picture and in its place on the page."""
        left, top, right, bottom = picture.bbox
        across, down = (right - left) / self.size[0], (bottom - top) / self.size[1]
        for region in self.regions:
            x0, y0, x1, y1 = region.bbox
            box: Box = (left + x0 * across, top + y0 * down, left + x1 * across, top + y1 * down)
            box = picture.bbox if picture.source == WHOLE_PAGE else clip(box, record.width, record.height)
            record.regions.append(
                msgspec.structs.replace(
                    region,
                    index=len(record.regions),
                    bbox=box,
                    bbox_2d=normalise_1000(box, record.width, record.height),
                    label=Label.TEXT if region.label in _AS_TEXT else region.label,
                    source=picture.source,
                    polygon=None,
                    level=None,
                    furniture=None,
                    caption_of=None,
                    style=None,
                    continues=False,
                    lines=(),
                )
            )
        record.languages = tuple(dict.fromkeys((*record.languages, *self.languages)))
        record.errors += (
            msgspec.structs.replace(each, region=picture.index, message=f"in a picture: {each.message}")
            for each in self.errors
        )


async def read_pictures(run: PageRun, part: Part) -> dict[int, PictureText]:
    """Recognize the pictures of a part that are large enough; those with text, or with an error, by their place."""
    found: dict[int, PictureText] = {}
    for place, block in enumerate(part.blocks):
        if block.picture is not None and block.picture.data:
            text = await _read(run, block.picture.data)
            if text is not None and (text.regions or text.errors):
                found[place] = text
    return found


async def _read(run: PageRun, data: bytes) -> PictureText | None:
    """What a picture says; an error of its own is no failure of the page, but for one that others would have, too."""
    settings = replace(run.settings, crops=False, preview_pages=0, describing=DescribeSettings())
    inner = replace(run, settings=settings, ticket=None)
    try:
        with inner.stage(DECODE):
            inner.page = await run.services.decode(EncodedImage(source=data))
        size = inner.page.size
        if min(size) < _LEAST_SIDES[0] or max(size) < _LEAST_SIDES[1]:
            return None
        if settings.recognition.reads_regions:
            prepared = await read_by_model(inner, None)
        else:
            lines = await read_by_lines(inner)
            assert lines is not None  # there is no text layer
            prepared = await read_again(inner, lines)
    except PageTimeoutError:
        raise
    except PagemillError as error:
        run.unserved |= inner.unserved
        if error.retryable or inner.unserved:
            raise
        told = PageError(component="recognition", category=error.category, message=error.message, remedy=error.remedy)
        return PictureText(errors=(told,))
    record = prepared.record
    return PictureText(
        regions=tuple(filter(_is_text, record.regions)),
        size=(record.width, record.height),
        languages=record.languages,
        errors=tuple(error for error in record.errors if error.category not in DOUBTS),
    )


def _is_text(region: Region) -> bool:
    is_sure = region.confidence is None or region.confidence >= _LEAST_CONFIDENCE
    return bool(region.content) and is_sure
