"""A pipeline that needs no engines: it gives the pages that it was made with."""

import asyncio
from typing import ClassVar

from pagemill.document.identity import PageKey
from pagemill.document.page import PageError, PageResult, Status
from pagemill.errors import ExitCode, LanguageError
from pagemill.parsing.page import ParsedPage, SkippedPage
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef

DIGEST = "d" * 64
KINDS = {ExitCode.INPUT: "corrupt", ExitCode.CRASH: "crash"}


def page(number: int, code: ExitCode = ExitCode.OK, *, warning: bool = False, pages: int = 3) -> ParsedPage:
    failed = code is not ExitCode.OK
    kind = KINDS.get(code, "corrupt")
    error = PageError(component="decode", category=kind, message="it is damaged", remedy="Get it again.")
    record = PageResult(
        page_id=f"d_{number}",
        page_key=str(PageKey(DIGEST, number)),
        page_idx=number - 1,
        doc_id="d",
        source="d.pdf",
        page_number=number,
        status=Status.FAILED if failed else Status.DONE,
        errors=[error] if failed or warning else [],
    )
    return ParsedPage(document=DocumentRef(doc_id="d", uri="d.pdf", page_count=pages), record=record)


def ref(page: ParsedPage) -> PageRef:
    record = page.record
    return PageRef(
        document=page.document,
        key=PageKey.parse(record.page_key),
        position=record.page_idx,
        page_number=record.page_number,
        page_id=record.page_id,
        payload=EncodedImage(source=b""),
    )


class FakePipeline:
    """Gives the pages it was made with, after what the others say; then waits until it is told to stop.

    Args:
        pages: Each ends well or badly for good; those in ``postponed`` end badly first.
        postponed: As said.
        problem: Raised at the end of the input.
        endless: Do not end by itself.
    """

    total: int | None = None
    skipped_earlier = 0
    described = None
    is_remote = False
    skipped_files: ClassVar[dict[str, int]] = {}
    skipped_links: ClassVar[list[str]] = []
    skipped_tables: ClassVar[list[str]] = []
    complete = True

    def __init__(
        self,
        *pages: ParsedPage | SkippedPage,
        postponed: tuple[ParsedPage, ...] = (),
        problem: Exception | None = None,
        endless: bool = False,
    ) -> None:
        self.pages, self.postponed, self.problem, self.endless = pages, postponed, problem, endless
        self.source = self.services = self
        self.closed = False
        self.stuck = asyncio.Event()
        self._stop = asyncio.Event()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.closed = True

    def describe(self):
        return {}

    async def identity(self):
        return {"languages": "auto"}

    async def prepare(self) -> None:
        if isinstance(self.problem, LanguageError):
            raise self.problem

    def stop_admitting(self) -> None:
        self._stop.set()

    async def stream(self, inputs, options, *, catalogue, journal, answers, max_attempts):
        catalogue.register(DIGEST, "d.pdf")
        for each in self.postponed:
            await journal.started(ref(each), alone=False)
            await journal.postponed(each)
        for each in self.pages:
            if isinstance(each, ParsedPage):
                await journal.started(ref(each), alone=each in self.postponed)
            yield each
        if self.problem:
            raise self.problem
        if self.endless:
            await self._stop.wait()
