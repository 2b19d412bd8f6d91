"""What ``pagemill run`` does for its options: which steps, with which arguments, around which servers."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from pagemill.app.run import PlannedStep, Step
from pagemill.cli.run_options import EMBEDDED, RunOptions, refuse
from pagemill.config.hardware import Dtype
from pagemill.config.model_cards import Kind, load_card
from pagemill.config.model_files import find_model
from pagemill.config.modes import ReadingMode
from pagemill.errors import MissingDependencyError, NetworkError, UsageError
from pagemill.runtime.engines import LAYOUT_ENGINES, require
from pagemill.serving.addresses import base_url
from pagemill.serving.command import find_vllm
from pagemill.serving.memory import Wishes
from pagemill.serving.replicas import Serving, ServingOptions, prepare
from pagemill.serving.servers import ModelServers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pagemill.app.doctor import Area
    from pagemill.app.run import Done

LARGE_EMBEDDING = "qwen3-vl-embedding-2b"
LAYOUT_MODEL = "pp-doclayout-v3"


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step, and what has to be there for it."""

    planned: PlannedStep
    serving: Serving | None = None
    areas: tuple[Area, ...] = ()
    """What the machine needs for it."""
    asked: tuple[str, ...] = ()
    """Servers of others that it asks."""
    notes: tuple[str, ...] = ()
    """What the user should know of it beforehand."""


def plan(options: RunOptions, *, dry: bool = False) -> list[StepPlan]:
    """The steps for the options. Whatever can be known to be wrong is told now, not after a night of parsing.

    Args:
        options: Of the command line.
        dry: They are only to be shown: what this machine lacks is noted (:attr:`Serving.lacking`).

    Raises:
        click.UsageError: Options are missing or do not go together.
        UsageError: A model does not fit, or is not known.
        MissingDependencyError: There is no vLLM, and no server was named.
    """
    refuse(options)
    makers = {Step.OCR: _recognition, Step.EMBED: _embedding, Step.UPLOAD: _upload}
    return [make(options, dry) for step, make in makers.items() if step in options.chosen]


def commands(steps: Sequence[StepPlan]) -> Iterator[str]:
    """Lines for a shell that do the same."""
    from pagemill.cli.serve_model import server_commands

    for each in steps:
        urls = []
        if each.serving is not None:
            yield "# In a terminal of its own; wait until it answers, and stop it with Ctrl-C after the next command:"
            yield from server_commands(each.serving)
            urls = [base_url(spec.host, spec.port or spec.preferred_port) for spec in each.serving.specs]
        yield shlex.join(each.planned.command(urls))


def check(options: RunOptions, steps: Sequence[StepPlan]) -> None:
    """Look at what the steps need before anything is started, and say what is missing.

    Raises:
        MissingDependencyError: Something is missing.
        NetworkError: A server does not answer.
        InputError: The file of queries cannot be read.
    """
    from pagemill.app.doctor import Area, Verdict, examine

    lacking = []
    areas = dict.fromkeys(area for each in steps for area in each.areas)
    servers = dict.fromkeys(url for each in steps for url in each.asked)
    for finding in examine(areas, servers=list(servers), token=options.hf_token):
        if finding.verdict is Verdict.OK or (finding.verdict is Verdict.WARNING and options.quiet):
            continue
        click.echo(f"{finding.verdict}: {finding.what}: {finding.detail}", err=True)
        if finding.remedy:
            click.echo(f"  {finding.remedy}", err=True)
        if finding.verdict is Verdict.MISSING:
            lacking.append(finding)
    if lacking:
        missing = ", ".join(finding.what for finding in lacking)
        only_servers = all(finding.area is Area.VLM and "://" in finding.what for finding in lacking)
        raise (NetworkError if only_servers else MissingDependencyError)(
            f"what the run needs is not there: {missing}", remedy="See the lines above."
        )
    if options.queries is not None and Step.EMBED in options.chosen:
        from pagemill.embedding.queries import read_queries

        read_queries(options.queries)


def _recognition(options: RunOptions, dry: bool) -> StepPlan:
    from pagemill.app.doctor import Area

    by_model = options.recognition == "vlm"
    model = _card_name(options.model, Kind.RECOGNITION)
    serving = None
    if by_model and not options.servers:
        wishes = Wishes(
            memory_gib=options.memory,
            memory_share=options.gpu_mem_util,
            max_model_len=options.max_model_len,
            workers=options.workers,
            dtype=Dtype(options.ocr_dtype) if options.ocr_dtype else None,
        )
        serving = _prepared(options, model, options.weights, wishes, dry)
    layout, notes = _layout(options, serving)
    reading = (
        *("--recognition-engine", "vlm", "--model", model),
        *_option("--workers", options.workers),
        *_servers(options.servers),
    )
    arguments = (
        *("parse", *options.inputs, "-o", str(options.out), *layout),
        *(reading if by_model else _option("--lang", options.lang)),
        *_option("--limit", options.limit),
        *_option("--image-column", options.image_column),
        *_option("--id-column", options.id_column),
        *_flag("--recursive", options.recursive),
        *_flag("--no-crops", not options.crops),
        *_flag("--resume", options.resume),
        *_flag("--fresh", options.fresh),
        *_flag("--retry-failed", options.retry_failed),
        *_flag("--quiet", options.quiet),
    )
    areas = [Area.MACHINE, Area.VLM if by_model else Area.PARSE, *([Area.GPU] if LAYOUT_MODEL in layout else [])]
    return StepPlan(
        # The token also opens datasets that are read from the Hub.
        PlannedStep(
            step=Step.OCR,
            arguments=arguments,
            servers=_made(serving, options.quiet),
            done=lambda: _parsed_already(options, model),
            environment=options.token,
        ),
        serving,
        tuple(areas),
        options.servers,
        notes,
    )


def _layout(options: RunOptions, serving: Serving | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options of ``pagemill parse`` that say how regions are found, and notes.

    None for a model that reads whole pages: it tells the regions itself.
    """
    if options.recognition == "vlm" and (card := load_card(options.model)).reads is ReadingMode.PAGES:
        given = {
            "--layout-engine": options.layout_engine,
            "--layout-model": options.layout_model,
            "--batch-size": options.batch_size,
        }
        without_use = [name for name, value in given.items() if value is not None]
        note = f"{card.name} reads whole pages and finds the regions itself: nothing comes of"
        return (), (f"{note} {' and '.join(without_use)}.",) if without_use else ()
    engine = options.layout_engine or _layout_engine()
    require(LAYOUT_ENGINES, engine)
    batch = options.batch_size or (serving.plan.batch_size if serving and engine == LAYOUT_MODEL else None)
    model = _option("--layout-model", options.layout_model)
    return ("--layout-engine", engine, *model, *_option("--layout-batch", batch)), ()


def _embedding(options: RunOptions, dry: bool) -> StepPlan:
    from pagemill.app.doctor import Area

    model = options.embedding_model or _default_embedding(options)
    common = (
        *_option("--queries", options.queries),
        *_option("--image-column", options.image_column),  # page images are read from the dataset again
        *_flag("--quiet", options.quiet),
    )
    if model == EMBEDDED:
        arguments: tuple[str, ...] = ("embed", str(options.out), "--engine", EMBEDDED, *common)
        return StepPlan(PlannedStep(step=Step.EMBED, arguments=arguments))
    model, serving = _card_name(model, Kind.EMBEDDING), None
    if not options.embedding_servers:
        # Vectors of one corpus are compared with each other: weights as they were published, not quantised.
        wishes = Wishes(memory_gib=options.memory, memory_share=options.gpu_mem_util, dtype=Dtype.AUTO)
        serving = _prepared(options, model, options.embedding_weights, wishes, dry)
    arguments = (
        *("embed", str(options.out), "--engine", "vllm", "--model", model),
        *common,
        *_servers(options.embedding_servers),
    )
    return StepPlan(
        # As in the step before: pages of a dataset are read again where they lie.
        PlannedStep(
            step=Step.EMBED,
            arguments=arguments,
            servers=_made(serving, options.quiet),
            done=lambda: _embedded_already(options, model),
            environment=options.token,
        ),
        serving,
        (Area.VLM,),
        options.embedding_servers,
    )


def _upload(options: RunOptions, dry: bool) -> StepPlan:
    from pagemill.app.doctor import Area

    arguments = (
        *("publish", str(options.out), "--repo", str(options.hf_repo), "--licence", str(options.licence)),
        *_flag("--private", options.private),
        *_flag("--no-crops", not options.crops),
    )
    planned = PlannedStep(step=Step.UPLOAD, arguments=arguments, environment=options.token)
    return StepPlan(planned, areas=(Area.PUBLISH,))


async def _parsed_already(options: RunOptions, model: str) -> Done | None:
    """Whether ``pagemill parse`` would find nothing to do; the settings are those that its arguments stand for."""
    import asyncio

    from pagemill.app.pending import parsed_already
    from pagemill.config.modes import VLM
    from pagemill.config.settings import ParseSettings, RecognitionSettings
    from pagemill.runtime.identity import settings_identity
    from pagemill.sources import SourceOptions
    from pagemill.store.opening import OpenMode

    recognition = RecognitionSettings(engine=VLM, model=model)
    settings = ParseSettings(text_layer=recognition.text_layer, crops=options.crops, recognition=recognition)
    engine = options.layout_engine or _layout_engine()
    identity = await asyncio.to_thread(settings_identity, settings, engine, options.layout_model)
    del identity["served_model"]  # what the server will say
    resume = options.resume or options.retry_failed
    with _in_environment(options.token):
        return await parsed_already(
            options.out,
            options.inputs,
            SourceOptions(
                recursive=options.recursive,
                limit=options.limit,
                image_column=options.image_column,
                id_column=options.id_column,
                password=os.environ.get("PAGEMILL_PASSWORD"),  # as pagemill parse has it
            ),
            identity=identity,
            mode=OpenMode.FRESH if options.fresh else OpenMode.RESUME if resume else OpenMode.AUTO,
            retry_failed=options.retry_failed,
        )


async def _embedded_already(options: RunOptions, model: str) -> Done | None:
    """Whether ``pagemill embed`` would find nothing to do."""
    from pagemill.app.pending import embedded_already
    from pagemill.embedding.queries import read_queries

    queries = read_queries(options.queries) if options.queries else ()
    return await embedded_already(options.out, load_card(model).name, queries)


@contextmanager
def _in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have variables in this process's environment for a while, as a step has them in its own."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _prepared(options: RunOptions, model: str, weights: Path | None, wishes: Wishes, dry: bool) -> Serving:
    try:
        if not dry:
            find_vllm(options.vllm)
    except MissingDependencyError as error:
        raise MissingDependencyError(
            error.message,
            remedy=f"{(error.remedy or '').rstrip('.')}. Or name a server that runs elsewhere, with --server and "
            f"--embedding-server; or let this machine's processor do it: --recognition-engine lines --embedding-model "
            f"{EMBEDDED}.",
        ) from error
    return prepare(
        ServingOptions(
            model=model,
            weights=weights,
            profile=options.profile,
            wishes=wishes,
            replicas=options.replicas,
            port=options.port,
            vllm=options.vllm,
        ),
        dry=dry,
    )


def _card_name(model: str, kind: Kind) -> str:
    """What a model is called in commands: a repository's name and its card's are the same to a run."""
    card = load_card(model)
    if card.kind is not kind:
        raise UsageError(f"{card.name} is a model for {card.kind}, not for {kind}", remedy="See: pagemill models list")
    return model if model.endswith(".toml") else card.name


def _layout_engine() -> str:
    """The better engine where all that it needs is there."""
    installed = find_spec("torch") is not None and find_spec("transformers") is not None
    return LAYOUT_MODEL if installed and find_model(load_card(LAYOUT_MODEL)) is not None else "onnx"


def _default_embedding(options: RunOptions) -> str:
    """The large model where it can be served."""
    if options.embedding_servers or options.embedding_weights:
        return LARGE_EMBEDDING
    if options.servers:  # the models are somewhere else: this machine is not asked for a second one
        return EMBEDDED
    if options.recognition == "vlm" and Step.OCR in options.chosen:  # it is served here, or nothing is done
        return LARGE_EMBEDDING
    try:
        find_vllm(options.vllm)
    except MissingDependencyError:
        return EMBEDDED
    return LARGE_EMBEDDING


def _made(serving: Serving | None, quiet: bool) -> Callable[[], ModelServers] | None:
    """What makes the servers of a step."""
    if serving is None:
        return None
    from pagemill.cli.server_display import ServerDisplay

    return lambda: ModelServers(serving.specs, tell=ServerDisplay(quiet=quiet))


def _servers(urls: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for url in urls for word in ("--server", url))


def _option(name: str, value: object) -> tuple[str, ...]:
    return () if value is None else (name, str(value))


def _flag(name: str, wanted: bool) -> tuple[str, ...]:
    return (name,) if wanted else ()
