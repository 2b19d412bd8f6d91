"""Results of jobs as docling-serve gives them, piece by piece: no document is in memory as a whole."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import msgspec

from pagemill.document.jobs import JobError, JobState
from pagemill.document.json_text import json_text
from pagemill.document.page import DOUBTS, DocumentInfo, PageError, PageResult, Status
from pagemill.export.chunks import cut
from pagemill.export.formats import About, export_format
from pagemill.export.markdown import page_markdown
from pagemill.export.token_count import token_counter
from pagemill.rest.docling_options import FORMATS, Chunking, Conversion
from pagemill.rest.errors import sentence
from pagemill.rest.results import JobResults
from pagemill.store.files import encoded

MAX_ERRORS = 1000
"""Errors of pages that an answer lists."""
_CATEGORIES = {"timeout": "timeout", "network": "source_unavailable", "corrupt": "backend_failure"}
_COMPONENTS = {"source": "document_backend", "decode": "document_backend", "text_layer": "document_backend"}


@dataclass(slots=True)
class ConvertedDocument:
    """One document of a job, in the formats of a request.

    Args:
        results: Results of the job.
        conversion: The requested conversion.
        number: Number of the document, from 0.
    """

    results: JobResults
    conversion: Conversion
    number: int = 0
    _token: str = field(default_factory=lambda: f"picture-{secrets.token_hex(12)}")

    @property
    def name(self) -> str:
        """Name given by the client."""
        return self.results.documents[self.number].name

    def status(self) -> str:
        """``success``, ``partial_success`` or ``failure``; a job that was cut short has no success."""
        is_whole, states = self.results.row.state is JobState.FINISHED, set[Status]()
        for page in self._pages(regions=False):
            states.add(page.status)
            is_whole = is_whole and page.status is Status.DONE and not any(_counting(page))
        if Status.DONE not in states:
            return "failure"
        return "success" if is_whole else "partial_success"

    def content(self, wanted: str) -> Iterator[str]:
        """The document in a format, piece by piece."""
        text, pages = export_format(FORMATS[wanted]).text, self._pages()
        assert text is not None
        broken = wanted == "md" and self.conversion.page_break
        for piece in self._with_breaks(pages) if broken else text(pages, About(self._info())):
            yield self._with_pictures(piece)

    def _with_breaks(self, pages: Iterable[PageResult]) -> Iterator[str]:
        """Markdown with the client's page separator."""
        between = ""
        for page in pages:
            yield between + page_markdown(page, crops_root="")
            between = f"\n\n{self.conversion.page_break}\n\n"

    def files(self, formats: list[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Files of an archive, by their suffix."""
        for each in formats:
            yield export_format(FORMATS[each]).suffix[1:], encoded(self.content(each))

    def json(self, seconds: float) -> Iterator[str]:
        """The answer for one document: docling-serve's ConvertDocumentResponse.

        Args:
            seconds: Duration in seconds.
        """
        yield "{"
        yield from self._item("document")
        timing = {"scope": "document", "count": 1, "times": [seconds], "start_timestamps": []}
        rest = {"processing_time": seconds, "timings": {"pipeline_total": timing}, "confidence": None}
        yield f",{json_text(rest)[1:]}"

    def item(self) -> Iterator[str]:
        """The document beside chunks: docling-serve's ExportResult."""
        yield '{"kind":"ExportResult",'
        yield from self._item("content")
        yield ',"timings":{}}'

    def _item(self, key: str) -> Iterator[str]:
        status = self.status()
        yield f'"{key}":{{"filename":{json_text(self.name)}'
        for each in FORMATS:
            yield f',"{each}_content":'
            if each not in self.conversion.formats or status == "failure":
                yield "null"
            elif each == "json":
                yield from self.content(each)
            else:
                yield '"'
                for piece in self.content(each):
                    yield json_text(piece)[1:-1]
                yield '"'
        yield f'}},"status":"{status}","errors":{json_text(self.errors())}'

    def chunks(self, wanted: Chunking) -> Iterator[dict[str, Any]]:
        """The chunks of the document, each docling-serve's ChunkedDocumentResultItem."""
        if self.status() == "failure":
            return
        for chunk in cut(self._pages(), token_counter(None), wanted.max_tokens, 0):
            yield {
                "filename": self.name,
                "chunk_index": chunk.index,
                "text": chunk.contextualized,
                "raw_text": chunk.text if wanted.raw_text else None,
                "num_tokens": chunk.tokens,
                "headings": chunk.headings or None,
                "captions": None,
                "doc_items": [place.element for place in chunk.places],
                "page_numbers": chunk.pages,
                "metadata": {"id": chunk.id, "places": msgspec.to_builtins(chunk.places)},
            }

    def errors(self) -> list[dict[str, Any]]:
        """Errors of pages, and options without effect."""
        warnings = [_item("user_input", "options", warning, "policy") for warning in self.conversion.warnings]
        if self.results.row.state is not JobState.FINISHED:
            reason = failure(self.results)
            return [_item("pipeline", "job", reason["message"], reason["category"]), *warnings]
        found = [_page_item(page, error) for page in self._pages(regions=False) for error in _counting(page)]
        # Bounded: a scan of ten thousand pages may have as many errors, and the answer is one JSON object.
        return [*found[:MAX_ERRORS], *warnings]

    def _pages(self, *, regions: bool = True) -> Iterator[PageResult]:
        if (reader := self.results.reader()) is None:
            return
        with reader:
            for page in self.results.pages_of(reader, self.results.documents[self.number]):
                if regions:
                    self._name_pictures(page)
                # Clients look for their own name; ours is the number of the file in the job.
                page.doc_id = PurePosixPath(self.name).stem or page.doc_id
                yield self.results.named(page)

    def _info(self) -> DocumentInfo:
        return self.results.info_of(self.results.documents[self.number])

    def _name_pictures(self, page: PageResult) -> None:
        """Replace pictures by placeholder names until the text is written, or remove them."""
        if self.conversion.images == "placeholder":
            page.image_crops = []
        page.image_crops = [
            msgspec.structs.replace(crop, path=f"{self._token}-{PurePosixPath(crop.path).name}")
            for crop in page.image_crops
        ]

    def _with_pictures(self, text: str) -> str:
        # Most pieces contain no picture.
        if self._token not in text:
            return text

        def shown(match: re.Match[str]) -> str:
            name = match[1]
            if self.conversion.images == "referenced":
                return f"/v1/jobs/{self.results.row.id}/crops/{name}"
            kind = "png" if name.lower().endswith(".png") else "jpeg"
            return f"data:image/{kind};base64,{base64.b64encode(self.results.crop(name)).decode()}"

        return re.sub(rf"{self._token}-([^\s\"')\\]+)", shown, text)


def _counting(page: PageResult) -> Iterator[PageError]:
    """Missing parts of a page, as for the exit status of pagemill parse: doubts about recognized text do not count."""
    return (error for error in page.errors if page.status is Status.FAILED or error.category not in DOUBTS)


def _page_item(page: PageResult, error: PageError) -> dict[str, Any]:
    message = f"page {page.page_number}: {error.message}" if page.page_number else error.message
    category = _CATEGORIES.get(error.category, "unknown")
    return _item(_COMPONENTS.get(error.component, "pipeline"), error.component, message, category, page.page_number)


def _item(component: str, module: str, message: str, category: str, page: int | None = None) -> dict[str, Any]:
    return {
        "component_type": component,
        "module_name": f"pagemill.{module}",
        "error_message": message,
        "category": category,
        "page_no": page,
    }


def task_status(results: JobResults, position: int | None, kind: str = "convert") -> dict[str, Any]:
    """The state of a job: docling-serve's TaskStatusResponse."""
    row = results.row
    total = len(results.documents)
    meta = {"num_docs": total, "num_processed": total if row.has_ended else 0}
    status = _STATES[row.state]
    meta |= {"num_succeeded": total if status == "success" else 0, "num_failed": total if status == "failure" else 0}
    fields: dict[str, Any] = {
        "task_id": row.id,
        "task_type": kind,
        "task_status": status,
        "task_position": position,
        "task_meta": meta,
        "error_message": None,
        "failure": None,
    }
    if status == "failure":
        fields["failure"] = failure(results)
        fields["error_message"] = fields["failure"]["message"]
    return fields


def failure(results: JobResults) -> dict[str, Any]:
    """Why a job failed: docling-serve's PublicFailureInfo."""
    error = results.row.error or JobError(category="cancelled", message="the job was cancelled")
    return {
        "category": _CATEGORIES.get(error.category, "unknown"),
        "message": sentence(error.message, error.remedy),
        "retryable": error.category in ("timeout", "network", "no_space"),
        "phase": "execution",
        "details": {},
    }


_STATES = {
    JobState.QUEUED: "pending",
    JobState.RUNNING: "started",
    JobState.FINISHED: "success",
    JobState.FAILED: "failure",
    JobState.CANCELLED: "failure",
}
