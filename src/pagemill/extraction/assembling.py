"""The result of a document, from the answers about its pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pagemill._version import __version__
from pagemill.document.geometry import Box, union_box
from pagemill.document.page import PageResult, Status
from pagemill.errors import PagemillError
from pagemill.extraction.grounding import PageText, Place, choose_places
from pagemill.extraction.merging import Leaf, merged, plain, tree_of
from pagemill.extraction.result import ExtractedField, Extraction, ExtractionProblem, ExtractionStatus, Source
from pagemill.extraction.schema import ExtractionSchema, leaves, pointer

if TYPE_CHECKING:
    from pagemill.extraction.asking import PartResult


def failed_pages(pages: Iterable[PageResult]) -> list[ExtractionProblem]:
    """Pages of the document that were not read, so that no model is asked about them."""
    return [
        ExtractionProblem(
            pages=(page.page_number,),
            category=page.errors[0].category if page.errors else "internal",
            message=page.errors[0].message if page.errors else "the page was not read",
            remedy=page.errors[0].remedy if page.errors else None,
        )
        for page in pages
        if page.status is Status.FAILED
    ]


def assembled(
    doc_id: str,
    source: str,
    texts: Sequence[PageText],
    results: Iterable[PartResult],
    problems: Sequence[ExtractionProblem],
    schema: ExtractionSchema,
    *,
    model: str,
    pages: int,
) -> Extraction:
    """Find the values of each answer on its pages, merge the answers, and check them against the schema.

    Args:
        doc_id: Id of the document.
        source: Source of the document.
        texts: Texts of its pages, by :attr:`pagemill.extraction.prompting.PagePart.index`.
        results: Answers, in any order.
        problems: Problems of pages that the model did not see.
        schema: Schema of the values.
        model: Name of the model.
        pages: Number of pages of the document.
    """
    # In page order, whichever answer came first: merging prefers earlier pages, and a rerun gives the same result.
    ordered = sorted(results, key=lambda each: each.parts[0].index)
    by_index = {text.index: text for text in texts}
    tree: dict[str, Any] = {}
    for result in ordered:
        if result.values is not None:
            # Only pages that the model saw: the same value on another page is not where it comes from.
            shown = [by_index[index] for index in dict.fromkeys(part.index for part in result.parts)]
            places = choose_places(list(leaves(result.values)), shown)
            sources = {path: _source(place, by_index[place.page]) for path, place in places.items()}
            tree = merged(tree, tree_of(result.values, sources))
    checked = schema.checked(plain(tree), tree)
    problems = [*problems, *(each.problem for each in ordered if each.problem is not None)]
    has_values = any(each.values is not None for each in ordered)
    is_whole = not (problems or checked.missing or checked.invalid)
    status = ExtractionStatus.DONE if is_whole else ExtractionStatus.INCOMPLETE
    return Extraction(
        doc_id=doc_id,
        source=source,
        status=status if has_values else ExtractionStatus.FAILED,
        values=checked.values,
        fields=[_field(pointer(path), leaf) for path, leaf in leaves(tree)],
        missing=checked.missing,
        invalid=checked.invalid,
        problems=problems,
        pages=pages,
        requests=[each.request for each in ordered],
        schema=schema.name,
        schema_sha256=schema.digest,
        model=model,
        version=__version__,
    )


def failed(doc_id: str, source: str, error: PagemillError, schema: ExtractionSchema, model: str) -> Extraction:
    """The result of a document that could not be processed at all."""
    problem = ExtractionProblem(pages=(), category=error.category, message=error.message, remedy=error.remedy)
    return assembled(doc_id, source, [], [], [problem], schema, model=model, pages=0)


def _field(path: str, leaf: Leaf) -> ExtractedField:
    return ExtractedField(
        path=path,
        value=leaf.value,
        founded=leaf.source is not None,
        source=leaf.source,
        alternatives=tuple(leaf.alternatives),
    )


def _source(place: Place, page: PageText) -> Source:
    x1, y1, x2, y2 = union_box(place.boxes)
    width, height = page.size
    thousandths = [x1 / width, y1 / height, x2 / width, y2 / height]
    left, top, right, bottom = (min(1000, max(0, round(1000 * thousandth))) for thousandth in thousandths)
    return Source(
        page=page.number,
        page_id=page.page_id,
        bbox=_rounded((x1, y1, x2, y2)),
        bbox_2d=(left, top, right, bottom),
        boxes=tuple(map(_rounded, place.boxes)),
        text=place.text,
        score=round(place.score, 4),
    )


def _rounded(box: Box) -> Box:
    x1, y1, x2, y2 = box
    return (round(x1, 1), round(y1, 1), round(x2, 1), round(y2, 1))
