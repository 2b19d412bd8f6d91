"""Is there anything left to do? Asked before a model server is started: minutes of a GPU, for nothing otherwise.

Where it cannot be told for certain the answer is that there is: the step itself finds out, and mends what is damaged.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.app.parse import RunOutcome
from pagemill.app.run import Done
from pagemill.embedding.contents import contents, query
from pagemill.embedding.vectors import FOLDER, Part, VectorFile, VectorPaths, read_identity
from pagemill.errors import DamagedRunError, DifferentRunError, InputError, MissingInputError, OutputError
from pagemill.runtime.decoding import DecodingService
from pagemill.sources import resolve
from pagemill.sources.locate import expand
from pagemill.sources.stream import on_thread
from pagemill.store import paths
from pagemill.store.catalogue import LedgerCatalogue
from pagemill.store.documents import missing_documents
from pagemill.store.files import size_of
from pagemill.store.ledger import Ledger
from pagemill.store.opening import OpenMode, preflight
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageState
from pagemill.store.view import LedgerView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pagemill.embedding.base import EngineIdentity
    from pagemill.embedding.vectors import VectorRow
    from pagemill.sources import SourceOptions

_CORPUS = (Part.TEXT, Part.REGIONS, Part.IMAGES)


async def parsed_already(
    out: Path,
    inputs: Sequence[str],
    options: SourceOptions,
    *,
    identity: Mapping[str, Any],
    mode: OpenMode,
    retry_failed: bool,
) -> Done | None:
    """Whether a run has parsed all pages of its inputs, those that came to them since included.

    Args:
        out: The run directory; it need not be there. Nothing in it is changed.
        inputs: As for :func:`pagemill.sources.resolve`.
        options: What to take of them.
        identity: The settings that decide about results, as far as they are known without a server.
        mode: What is to be done with what the directory holds.
        retry_failed: Failed pages are to be parsed again.

    Returns:
        None where there is something to do.

    Raises:
        OutputError: The run cannot be opened, as :func:`pagemill.store.opening.preflight` says.
        PagemillError: None of the inputs is there; the error of the first one.
    """
    await asyncio.to_thread(preflight, out, identity=identity, mode=mode)
    if mode is OpenMode.FRESH or not (out / paths.LEDGER).exists():
        await asyncio.to_thread(_require_one, inputs, options)
        return None
    try:
        with RunReader.open(out) as reader:
            summary = reader.summary
    except OutputError:  # damaged, or not begun
        return None
    written = all((out / name).exists() for name in (paths.RUN_JSON, paths.REPORT))
    if summary.finished is None or summary.interrupted or not written:
        return None
    if (retry_failed and summary.failed) or summary.skipped_by_kind.get("duplicate"):
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="pagemill-") as folder:
            copy = Path(folder) / "ledger.sqlite"
            with closing(LedgerView(out / paths.LEDGER)) as view:
                await asyncio.to_thread(view.copy_to, copy)
            with closing(Ledger(copy)) as ledger:
                if await asyncio.to_thread(_lacks_files, out, ledger) or await _is_page_left(ledger, inputs, options):
                    return None
    except (OutputError, OSError):  # no room for a copy, say
        return None
    return Done(f"all {summary.pages:,} pages are parsed", RunOutcome(summary).exit_code)


async def embedded_already(out: Path, model: str, queries: Sequence[tuple[str, str]]) -> Done | None:
    """Whether the vectors of a run are up to date: page texts, regions and images, and those of queries.

    Args:
        out: The run directory.
        model: The model card whose vectors they are to be, of the engine ``vllm``.
        queries: Ids and texts.

    Returns:
        None where there is something to do.

    Raises:
        DifferentRunError: There are vectors of another model.
        OutputError: There is no run, or it cannot be read.
    """
    rows: dict[Part, list[VectorRow]] = {part: [] for part in _CORPUS}
    with RunReader.open(out) as reader:
        for part in [*_CORPUS, *([Part.QUERIES] if queries else [])]:
            _refuse_others(VectorPaths(out / FOLDER, part), model)
        if not all(VectorPaths(out / FOLDER, part).vectors.exists() for part in _CORPUS):
            return None
        try:
            async with aclosing(on_thread(reader.pages())) as pages:
                async for page in pages:
                    for part in _CORPUS:
                        rows[part] += (content.row for content in contents(page, part, images=True))
        except DamagedRunError:
            return None
    if queries:
        rows[Part.QUERIES] = [query(query_id, text).row for query_id, text in queries]
    for part, wanted in rows.items():
        if not await asyncio.to_thread(_are_the_vectors, VectorPaths(out / FOLDER, part), model, wanted):
            return None
    return Done(f"all {sum(map(len, rows.values())):,} vectors are there")


def _require_one(inputs: Sequence[str], options: SourceOptions) -> None:
    """Make sure that there is something to open: a name that is misspelt is told now."""
    first = None
    for item in expand(inputs, recursive=options.recursive):
        if item.error is None:
            return
        first = first or item.error
    raise first or InputError("the inputs hold no page", remedy="Check that the files and datasets are not empty.")


def _lacks_files(out: Path, ledger: Ledger) -> bool:
    """Whether files of the run hold less than was written, or are not there: they are made again."""
    results, texts, _ = ledger.sizes()
    is_short = size_of(out / paths.RESULTS) < results or size_of(out / paths.TEXTS) < texts
    return is_short or any(missing_documents(out, ledger))


async def _is_page_left(ledger: Ledger, inputs: Sequence[str], options: SourceOptions) -> bool:
    """Whether the inputs hold a page that has not ended, or the run a source that they do not hold any more.

    Sources that did not open are tried each time, and need no server as long as they do not.

    Args:
        ledger: A copy: sources that are met are noted there.
        inputs: Of the run.
        options: What to take of them.
    """
    changed: list[int] = []
    unopened = 0
    async with DecodingService(workers=1) as decoding:
        source = resolve(
            inputs, options=options, decoder=decoding, catalogue=LedgerCatalogue(ledger, replace=changed.append)
        )
        async with aclosing(source.pages()) as refs:
            async for ref in refs:
                known = await asyncio.to_thread(ledger.state, ref.key)
                if ref.error is None or known is None or known.state is not PageState.FAILED:
                    return True
                unopened += 1
    return bool(changed) or (source.complete and unopened != ledger.unopened())


def _refuse_others(files: VectorPaths, model: str) -> None:
    """Say, as the step would, that there are vectors of another model."""
    identity = read_identity(files)
    if identity is not None and not _is_made_by(identity, model):
        raise DifferentRunError(
            f"{files.folder} holds vectors of {files.part.plural} that were made by {identity.model} of the engine"
            f" {identity.engine}, not by {model}",
            remedy="Name the model that made them with --embedding-model, or remove that folder to make all anew.",
        )


def _is_made_by(identity: EngineIdentity, model: str) -> bool:
    return (identity.engine, identity.model) == ("vllm", model)


def _are_the_vectors(files: VectorPaths, model: str, wanted: list[VectorRow]) -> bool:
    if files.partial.exists():
        return False
    try:
        with VectorFile.open_in(files) as vectors:
            return _is_made_by(vectors.info.identity, model) and vectors.rows == wanted
    except (MissingInputError, OutputError):  # damaged, too
        return False
