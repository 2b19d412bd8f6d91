"""Check that everything in a run directory is whole and agrees, without the inputs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from pagemill._version import __version__
from pagemill.errors import LockedError, OutputError
from pagemill.store import checks, paths
from pagemill.store.derived import check_documents, check_report
from pagemill.store.findings import Kind, Verdict
from pagemill.store.lock import RunLock, owner_of
from pagemill.store.previous import refuse_earlier_version
from pagemill.store.rebuilding import read_run_json
from pagemill.store.summary import Counters, RunSummary
from pagemill.store.survey import Survey
from pagemill.store.survey_ledger import LedgerFacts, copy_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pagemill.store.exporters import Exporters
    from pagemill.store.lock import Owner

_TRIES = 3
"""How often a directory in use is read anew when what was read does not fit together: the run may have changed it."""
_COUNTED = (
    "pages",
    "failed",
    "regions",
    "crops",
    "regions_by_label",
    "failures_by_kind",
    "warnings_by_kind",
)
"""Counts of a run that its records tell."""
_LOSING = (Kind.TORN_RECORD, Kind.DOUBLED_RECORD, Kind.RECORD_WITHOUT_ROW, Kind.ROW_WITHOUT_RECORD)


class Examination(NamedTuple):
    """A verification with all it has found, to be closed with its survey."""

    survey: Survey
    verdict: Verdict
    facts: LedgerFacts | None
    """None if the ledger is not whole."""


def verify(path: Path, *, exporters: Exporters, quick: bool = False) -> Verdict:
    """Check a run directory: records, ledger, crops, texts, documents, report, ``run.json``, left-over files.

    Changes nothing. Of a directory that another process works on, what it has committed is checked. Memory does not
    grow with the pages; the system's folder for temporary files needs some 600 bytes a page and 150 a crop.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: Crops by their size only, documents and report only for being there.

    Raises:
        OutputError: There is no run in the directory, or it cannot be read.
    """
    with _idle(path) as owner:
        for _ in range(_TRIES):
            with examine(path, exporters=exporters, quick=quick, owner=owner) as examination:
                if owner is None or (not examination.verdict.damaged and _unchanged(path, examination.facts)):
                    return examination.verdict
        return examination.verdict


@contextlib.contextmanager
def examine(
    path: Path, *, exporters: Exporters, quick: bool = False, owner: Owner | None = None
) -> Iterator[Examination]:
    """Check a run directory as :func:`verify` does, and keep all that was found until the context ends.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: As in :func:`verify`.
        owner: The process that works on it; None if the caller makes sure that there is none.
    """
    require_run(path)
    with contextlib.closing(Survey(path)) as survey:
        facts = _facts(survey)
        run_json = read_run_json(path)
        other_version = run_json.version if run_json and run_json.version != __version__ else None
        counters = Counters()
        survey.read_records(
            counters,
            None if facts or other_version else exporters.embedding_text,
            end=facts.results if facts and owner else None,
        )
        survey.read_texts(end=facts.texts if facts and owner else None)
        for folder in (paths.CROPS, paths.DOCUMENTS, "", paths.FOLDER):
            survey.list_files(folder)
        survey.index()
        _check_records(survey, ledger=facts is not None)
        if owner is None:
            checks.files(survey)
            compare = not quick and other_version is None
            check_documents(survey, exporters, facts, compare=compare)
            _check_counts(survey, counters, facts, run_json)
            if facts and facts.summary.finished and exporters.report and run_json and run_json.finished:
                # A report that was made when all previews were there is better than one that can be made now.
                compare = compare and next(survey.found(Kind.LOST_PREVIEW), None) is None
                check_report(survey, exporters.report, run_json, compare=compare)
        checks.crops(survey, quick=quick)
        yield Examination(survey, _verdict(survey, counters, facts, owner, other_version), facts)


def require_run(path: Path) -> None:
    """Make sure that there is anything of a run that this version can check.

    Raises:
        OutputError: There is not.
    """
    refuse_earlier_version(path)
    if not any((path / name).exists() for name in (paths.RESULTS, paths.RUN_JSON, paths.LEDGER)):
        raise OutputError(f"{path} holds no run", remedy="Name a directory that pagemill parse has written to.")


def _check_records(survey: Survey, *, ledger: bool) -> None:
    checks.torn_lines(survey)
    checks.doubled_lines(survey)
    if ledger:
        checks.records_and_rows(survey)
        checks.previews(survey)
    checks.texts(survey, ledger=ledger)


def _facts(survey: Survey) -> LedgerFacts | None:
    try:
        facts = copy_ledger(survey)
    except ValueError as error:
        survey.add(Kind.MALFORMED_LEDGER, paths.LEDGER, detail=str(error))
        return None
    if facts.renaming:
        survey.renaming = True
    return facts


def _check_counts(survey: Survey, counted: Counters, facts: LedgerFacts | None, run_json: RunSummary | None) -> None:
    whole = next(survey.found(*_LOSING), None) is None  # else the counts cannot agree, which goes without saying
    if facts and whole and (wrong := _differences(facts.summary, counted)):
        survey.add(Kind.OTHER_LEDGER_COUNTS, paths.LEDGER, detail=wrong)
    if run_json is None:
        # A run that has only begun has none yet; one that has not ended gets it when it goes on.
        if facts is None or facts.summary.finished or (survey.path / paths.RUN_JSON).exists():
            survey.add(Kind.OTHER_COUNTS, paths.RUN_JSON, detail="missing, or no summary of a run")
    elif facts and facts.summary.finished:
        wrong = _differences(run_json, counted) if whole else None
        if run_json.skipped != facts.summary.skipped:
            wrong = wrong or f"skipped is {run_json.skipped}, the ledger has {facts.summary.skipped}"
        if run_json.finished != facts.summary.finished:
            wrong = wrong or "finished is not what the ledger has"
        if wrong:
            survey.add(Kind.OTHER_COUNTS, paths.RUN_JSON, detail=wrong)


def _differences(told: Counters, counted: Counters) -> str | None:
    for name in _COUNTED:
        if getattr(told, name) != getattr(counted, name):
            return f"{name} is {getattr(told, name)}, the records have {getattr(counted, name)}"
    return None


def _verdict(
    survey: Survey, counters: Counters, facts: LedgerFacts | None, owner: Owner | None, other_version: str | None
) -> Verdict:
    if facts:
        states = dict(survey.db.execute("SELECT state, count(*) FROM rows GROUP BY state"))
    else:
        states = {"done": counters.pages - counters.failed, "failed": counters.failed}
    return Verdict(
        groups=survey.groups(),
        states={name: states.get(name, 0) for name in ("done", "failed", "skipped", "waiting", "running")},
        crops=counters.crops,
        documents=survey.db.execute("SELECT count(DISTINCT doc_id) FROM lines WHERE fault IS NULL").fetchone()[0],
        in_use_by=owner,
        other_version=other_version,
    )


@contextlib.contextmanager
def _idle(path: Path) -> Iterator[Owner | None]:
    """Keep others from working on the directory, or tell who does. Without the right to write, nobody is kept off."""
    lock = None
    owner = None
    if (path / paths.FOLDER).is_dir():
        try:
            lock = RunLock(path / paths.LOCK)
        except LockedError:
            owner = owner_of(path / paths.LOCK)
            if owner is None:  # it has just come, or just gone
                raise
        except OutputError:
            owner = owner_of(path / paths.LOCK)
            if owner is not None and owner.alive() is False:
                owner = None
    try:
        yield owner
    finally:
        if lock is not None:
            lock.release()


def _unchanged(path: Path, facts: LedgerFacts | None) -> bool:
    """Whether the files of the records are still those that the ledger spoke of."""
    with contextlib.closing(Survey(path)) as survey, contextlib.suppress(ValueError):
        now = copy_ledger(survey)
        return facts is not None and now.generation == facts.generation
    return False
