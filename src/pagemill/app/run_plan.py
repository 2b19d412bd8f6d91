"""Plans ``pagemill run``: which steps, with which arguments, around which servers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from pagemill.app.doctor import Area, CheckResult, Readiness, examine
from pagemill.app.licence import foreign_places, licence_of
from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.parse_process import parse_words, word_of
from pagemill.app.publish import check_names
from pagemill.app.queries import AUTO, places_of, query_texts
from pagemill.app.run import Done, PlannedStep, RemoteServing, Step, of_embedding
from pagemill.config.hardware import Device, profile_names
from pagemill.config.machine import RaySettings
from pagemill.config.model_cards import ModelKind, load_card
from pagemill.config.model_files import find_model
from pagemill.config.modes import LAYOUT_MODEL, LINES, TRANSFORMERS, VLM, ReadingMode, TextLayerMode
from pagemill.config.options import Settings, option, servers_option, words
from pagemill.config.serving import ONE_PER_GPU, ServingOptions
from pagemill.config.settings import LayoutChoice
from pagemill.embedding.base import EngineSettings
from pagemill.errors import (
    MissingDependencyError,
    MissingInputError,
    NetworkError,
    PagemillError,
    UsageError,
    lacks_extra,
)
from pagemill.publishing.options import BuildOptions, Destination, licence_option, token_option
from pagemill.runtime.engines import LAYOUT_ENGINES, require
from pagemill.serving.addresses import base_url
from pagemill.serving.command import find_vllm
from pagemill.serving.detection import gpus, profile_of
from pagemill.serving.replicas import Serving, plan_for, prepare
from pagemill.sources.download import copies
from pagemill.sources.hub import DatasetAddress
from pagemill.sources.options import SourceOptions
from pagemill.store.paths import DATABASE

REFERENCE_CORPUS = "hf://datasets/SamsungSDS-Research/SDS-KoPub-VDR-Benchmark"
"""Parsed if no INPUT is named, as by the published pipeline."""
EMBEDDED = "ngram"
LARGE_EMBEDDING = "qwen3-vl-embedding-2b"
EMBEDDING, PUBLISHING = "Embedding", "Publishing"
"""Headings of the help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Settings):
    """Options of the whole pipeline."""

    inputs: tuple[str, ...] = ()
    out: Path = Path("output")
    steps: tuple[str, ...] = ()
    """Names of steps; none or ``all`` for all."""
    parse: ParseOptions = ParseOptions()
    directory: DirectoryOptions = DirectoryOptions()
    cluster: RaySettings = RaySettings()
    serving: ServingOptions = ServingOptions()
    layout_engine: str | None = None
    """None: the best installed one."""
    embedding_model: str | None = option(
        heading=EMBEDDING,
        results=True,
        help="Model card for embeddings, or ngram for the embedded engine.",
        shown_default="qwen3-vl-embedding-2b if vLLM is installed, else ngram",
    )
    embedding_weights: Path | None = option(
        heading=EMBEDDING, folder_exists=True, results=True, help="Folder of a checkpoint to use instead of the card's."
    )
    embedding_servers: tuple[str, ...] = servers_option(
        "--embedding-server", heading=EMBEDDING, help="Use this server for embeddings and start none"
    )
    queries: str | None = None
    """A file, or ``auto``."""
    hf_repo: str | None = option(
        heading=PUBLISHING, metavar="USER/NAME", results=False, help="Dataset on the Hub to publish to."
    )
    hf_token: str | None = token_option(heading=PUBLISHING)
    licence: str | None = licence_option(heading=PUBLISHING)
    private: bool = option(heading=PUBLISHING, default=False, results=False, help="Make the dataset private.")
    quiet: bool = False
    verbose: int = 0

    @property
    def chosen(self) -> frozenset[Step]:
        """The steps to do."""
        every = not self.steps or "all" in self.steps
        chosen = set(Step) if every else {Step(name) for name in self.steps}
        return frozenset(chosen - {Step.UPLOAD} if every and self.hf_repo is None else chosen)


def completed(options: RunOptions, *, dry: bool = False) -> tuple[RunOptions, list[str]]:
    """Take the reference corpus if no input is named, and the licence of an upload from the card of its dataset.

    Args:
        options: Options of the run.
        dry: The steps are only shown: a card that cannot be reached is noted.

    Returns:
        The options, and notes for the user.

    Raises:
        UsageError: The output holds a run of other inputs; no card names a licence, or several name different ones.
        PagemillError: A card cannot be read; its class gives the cause.
    """
    notes = []
    if Step.OCR in options.chosen and not options.inputs:
        there = places_of(options.out) if (options.out / DATABASE).exists() and not options.directory.fresh else []
        if foreign := foreign_places(there, [REFERENCE_CORPUS]):
            raise UsageError(
                f"INPUT is missing, and {options.out} contains pages of {foreign[0]}",
                remedy="Pass the inputs of that run, or another directory with -o to parse the reference corpus.",
            )
        notes.append(f"no INPUT: parsing the reference corpus, {REFERENCE_CORPUS} (40,781 pages).")
        options = replace(options, inputs=(REFERENCE_CORPUS,), queries=options.queries or AUTO)
    if Step.UPLOAD in options.chosen and options.hf_repo is not None and options.licence is None:
        check_names(options.hf_repo, None, option="--hf-repo")
        try:
            licence, cards = _licence(options)
        except UsageError:
            raise
        except PagemillError as error:
            if not dry:
                raise type(error)(error.message, remedy=f"{error.remedy or ''} Or add --licence ID.".strip()) from error
            notes.append(f"the licence of the pages cannot be looked up here ({error.message}).")
        else:
            notes.append(f"the pages are published under {licence}, according to {', '.join(cards[:3])}.")
            options = replace(options, licence=licence)
    return options, notes


def _licence(options: RunOptions) -> tuple[str, list[str]]:
    """The licence of the inputs (of a downloaded dataset as a whole) and of everything else that was parsed."""
    inputs = options.inputs if Step.OCR in options.chosen else ()
    fresh = options.directory.fresh and Step.OCR in options.chosen
    there = places_of(options.out) if (options.out / DATABASE).exists() and not fresh else []
    copied = {
        copy.address: str(copy.folder)
        for copy in (copies(inputs, options.parse.source) if inputs else ())
        if copy.files() is not None
    }
    places = [copied.get(address, each) if (address := DatasetAddress.parse(each)) else each for each in inputs]
    places += foreign_places(there, inputs)
    return licence_of(places, recursive=options.parse.source.recursive, parsed=there)


def plan(options: RunOptions, *, dry: bool = False) -> list[PlannedStep]:
    """Plan the steps. Whatever is known to be wrong is reported now, not after hours of parsing.

    Args:
        options: Options of the run.
        dry: The steps are only shown: what this machine lacks is noted (:attr:`Serving.lacking`).

    Raises:
        UsageError: Options do not go together; a model does not fit, or is unknown.
        MissingDependencyError: vLLM is not installed, and no server is named.
    """
    _refuse(options)
    makers = {Step.OCR: _recognition, Step.EMBED: _embedding, Step.UPLOAD: _upload}
    steps = [make(options, dry) for step, make in makers.items() if step in options.chosen]
    if not dry:
        return steps
    # Shown, not raised: a plan is often made on another machine than the one that will run it.
    return [replace(step, lacking=(*step.lacking, *_lacking_in(step.areas))) for step in steps]


def _lacking_in(areas: Sequence[Area]) -> Iterator[PagemillError]:
    """What this machine lacks in the areas that take no time to check."""
    for finding in examine(area for area in areas if area in (Area.VLM, Area.PUBLISH)):
        if finding.verdict is Readiness.MISSING:
            yield MissingDependencyError(f"{finding.what}: {finding.detail}", remedy=finding.remedy)


def _refuse(options: RunOptions) -> None:
    """Refuse missing options and invalid combinations.

    Raises:
        UsageError: There are some.
    """
    chosen, directory = options.chosen, options.directory
    if Step.OCR not in chosen and (directory.fresh or directory.retry_failed):
        flag = "--fresh" if directory.fresh else "--retry-failed"
        remedy = "To embed everything again: pagemill embed OUT --fresh"
        raise UsageError(f"{flag} requires the step ocr", remedy=remedy)
    if options.embedding_model == EMBEDDED and (options.embedding_weights or options.embedding_servers):
        flag = "--embedding-weights" if options.embedding_weights else "--embedding-server"
        raise UsageError(f"{flag} requires an embedding model", remedy=f"{EMBEDDED} is embedded and takes none.")
    if Step.UPLOAD not in chosen:
        return
    if options.hf_repo is None:
        raise UsageError("--step upload needs --hf-repo", remedy="Add --hf-repo USER/NAME.")
    check_names(options.hf_repo, options.licence, option="--hf-repo")


def commands(steps: Sequence[PlannedStep]) -> Iterator[str]:
    """Shell commands that do the same."""
    for step in steps:
        urls = []
        if step.serving is not None:
            yield "# In a terminal of its own; wait until it answers, and stop it with Ctrl-C after the next command:"
            yield from server_commands(step.serving)
            urls = [base_url(spec.host, spec.port or spec.preferred_port) for spec in step.serving.specs]
        yield shlex.join(step.command(urls))


def server_commands(serving: Serving) -> list[str]:
    """Shell commands that start servers."""
    lines = []
    for spec in serving.specs:
        device = spec.environment.get("CUDA_VISIBLE_DEVICES")
        chosen = [f"CUDA_VISIBLE_DEVICES={device}"] if device != os.environ.get("CUDA_VISIBLE_DEVICES") else []
        lines.append(shlex.join([*chosen, *spec.command(spec.port or spec.preferred_port)]))
    return lines


def check(options: RunOptions, steps: Sequence[PlannedStep], report: Callable[[CheckResult], None]) -> None:
    """Check what the steps need before anything is started.

    Args:
        options: Options of the run.
        steps: The plan.
        report: Called with each finding.

    Raises:
        MissingDependencyError: Something is missing.
        NetworkError: A server does not answer.
        InputError: The file of queries cannot be read.
    """
    lacking = []
    areas = dict.fromkeys(area for step in steps for area in step.areas)
    servers = dict.fromkeys(url for step in steps for url in step.asked)
    for finding in examine(areas, servers=list(servers)):
        report(finding)
        if finding.verdict is Readiness.MISSING:
            lacking.append(finding)
    if lacking:
        missing = ", ".join(finding.what for finding in lacking)
        # Then the exit status is that of the network, for which scripts try again.
        only_servers = all(finding.area is Area.VLM and "://" in finding.what for finding in lacking)
        raise (NetworkError if only_servers else MissingDependencyError)(
            f"the run needs what is missing here: {missing}", remedy="See the lines above."
        )
    if options.queries is not None and Step.EMBED in options.chosen:
        query_texts(options.queries, _places(options))


def _places(options: RunOptions) -> Sequence[str]:
    """Where to look for the queries of the dataset before it is parsed."""
    here = [str(copy.folder) for copy in copies(options.inputs, options.parse.source) if copy.files() is not None]
    return here or options.inputs or places_of(options.out)


def _recognition(options: RunOptions, dry: bool) -> PlannedStep:
    settings, recognition = options.parse.settings, options.parse.settings.recognition
    by_model = recognition.asked is not None and recognition.asked.engine == VLM
    model = _card_name(recognition.model, ModelKind.RECOGNITION)
    serving, remote = None, None
    if by_model and not recognition.servers:
        wanted = replace(options.serving, model=model)
        remote = _remote(options, wanted)
        serving = None if remote else _prepared(wanted, dry)
        # A profile that was measured knows how many requests saturate the server; otherwise the default holds.
        if serving and serving.plan.profile.measured and not recognition.workers:
            recognition = replace(recognition, workers=serving.plan.workers)
    layout, batch, notes = _layout(options, serving)
    lacking = tuple(_lacking_for(layout))
    if lacking and not dry:  # not after a server was started, nor quietly with the engine that finds less
        remedies = [error.remedy for error in lacking if error.remedy]
        remedies.append("Or take the embedded layout model, which finds less: --layout-engine onnx")
        raise type(lacking[0])("; ".join(error.message for error in lacking), remedy=". ".join(remedies))
    parse = replace(
        options.parse,
        settings=replace(settings, recognition=replace(recognition, model=model)),
        layout=layout,
        runtime=replace(options.parse.runtime, layout_batch=batch),
    )
    # The engine's own choice, which `parse` makes as well: not an option that somebody gave.
    resolved = ("text_layer",) if settings.text_layer is recognition.text_layer else ()
    given = (*words(parse, leave_out=resolved), *words(options.directory), *words(options.cluster))
    arguments = parse_words(options.inputs, options.out, given, quiet=options.quiet, verbose=options.verbose)
    areas = [
        Area.MACHINE,
        *([Area.VLM] if by_model and remote is None else []),
        *([] if recognition.reads_regions else [Area.PARSE]),
    ]
    areas += [Area.GPU] if layout.engine == LAYOUT_MODEL or recognition.engine == TRANSFORMERS else []
    return PlannedStep(
        step=Step.OCR,
        arguments=arguments,
        serving=serving,
        remote=remote,
        done=lambda: _parsed_already(options, parse),
        areas=tuple(areas),
        asked=recognition.servers,
        notes=(*notes, *_elsewhere(serving), *_on_cluster(remote)) if dry else notes,
        lacking=lacking,
    )


def _layout(options: RunOptions, serving: Serving | None) -> tuple[LayoutChoice, int, tuple[str, ...]]:
    """The layout engine of ``pagemill parse``, its batch size, and notes.

    The defaults for a model that reads whole pages: it finds the regions itself.
    """
    settings, model = options.parse.settings, options.parse.layout.model
    batch = options.parse.runtime.layout_batch
    pages = settings.recognition.reads_regions and settings.recognition.reading_mode() is ReadingMode.PAGES
    if pages and settings.text_layer is TextLayerMode.NEVER:
        given = {"--layout-engine": options.layout_engine, "--layout-model": model, "--batch-size": batch}
        ignored = [name for name, value in given.items() if value]
        name = load_card(settings.recognition.model).name
        note = f"{name} reads whole pages and finds the regions itself: {' and '.join(ignored)} ignored."
        return LayoutChoice(), 0, (note,) if ignored else ()
    engine = options.layout_engine
    if engine is None:  # the better one if its packages and its model are installed; a run with a model needs it
        is_here = settings.recognition.reads_regions or not any(_lacking_for(LayoutChoice(engine=LAYOUT_MODEL)))
        engine = LAYOUT_MODEL if is_here else "onnx"
    require(LAYOUT_ENGINES, engine)
    if not batch and serving and engine == LAYOUT_MODEL:
        batch = serving.plan.batch_size
    return LayoutChoice(engine=engine, model=model), batch, ()


def _embedding_serving(options: RunOptions, model: str) -> ServingOptions:
    """The server for an embedding model: what is asked for, but for the data type and length of answers."""
    asked = options.serving.wishes
    longest = load_card(model, ModelKind.EMBEDDING).server.max_model_len  # one option for the requests of both models
    wishes = replace(
        asked,
        dtype=None,
        max_tokens=None,
        max_model_len=None if asked.max_model_len is None else min(asked.max_model_len, longest),
    )
    return replace(options.serving, model=model, weights=options.embedding_weights, wishes=wishes)


def _embedding(options: RunOptions, dry: bool) -> PlannedStep:
    model, notes = (options.embedding_model, ()) if options.embedding_model else _default_embedding(options)
    engine, serving, remote = EngineSettings(), None, None
    if model != EMBEDDED:
        model = _card_name(model, ModelKind.EMBEDDING)
        engine = EngineSettings(engine="vllm", model=model, servers=options.embedding_servers)
        if not options.embedding_servers:
            wanted = _embedding_serving(options, model)
            remote = _remote(options, wanted)
            try:
                serving = None if remote else _prepared(wanted, dry)
            except PagemillError as error:
                raise of_embedding(error) from error
    arguments = (
        *("embed", word_of(options.out), *words(engine)),
        *(("--queries", options.queries) if options.queries else ()),
        # Page images are read from the dataset again.
        *words(SourceOptions(image_column=options.parse.source.image_column)),
        *(["--quiet"] if options.quiet else []),
    )
    return PlannedStep(
        step=Step.EMBED,
        arguments=arguments,
        serving=serving,
        remote=remote,
        done=lambda: _embedded_already(options, model),
        areas=() if model == EMBEDDED or remote else (Area.VLM,),
        asked=options.embedding_servers,
        notes=(*notes, *_elsewhere(serving), *_on_cluster(remote)) if dry else notes,
    )


def _upload(options: RunOptions, dry: bool) -> PlannedStep:
    place = Destination(repository=options.hf_repo, private=options.private)
    build = BuildOptions(licence=options.licence or "", crops=options.parse.settings.crops)
    arguments = ("publish", word_of(options.out), *words(place), *words(build))
    return PlannedStep(step=Step.UPLOAD, arguments=arguments, areas=(Area.PUBLISH,))


async def _parsed_already(options: RunOptions, parse: ParseOptions) -> Done | None:
    """Whether ``pagemill parse`` would find nothing to do."""
    from pagemill.app.preflight import find_nothing_to_do  # the whole pipeline, which no plan needs

    outcome = await find_nothing_to_do(options.out, options.inputs, parse, options.directory)
    return None if outcome is None else Done(f"all {outcome.summary.pages:,} pages are parsed", outcome.exit_code)


async def _embedded_already(options: RunOptions, model: str) -> Done | None:
    """Whether ``pagemill embed`` would find nothing to do."""
    from pagemill.app.embed import embedded_already  # pixels and vectors, which no plan needs

    queries = query_texts(options.queries, places_of(options.out), options.out)[0] if options.queries else ()
    vectors = await embedded_already(options.out, load_card(model).name, queries)
    return None if vectors is None else Done(f"all {vectors:,} vectors are there")


def _remote(options: RunOptions, serving: ServingOptions) -> RemoteServing | None:
    """Servers on the machines of a cluster; one within this machine is served by servers of this machine."""
    address = options.cluster.address
    return None if address in (None, "local") else RemoteServing(serving, address)


def _on_cluster(remote: RemoteServing | None) -> Iterator[str]:
    """A note on servers whose commands only the machines of the cluster know."""
    if remote is not None:
        each = remote.options.replicas == ONE_PER_GPU
        number = "one for each accelerator" if each else remote.options.replicas
        yield f"servers of {remote.options.model} on the cluster at {remote.address}: {number}, started with the step"


def _prepared(serving: ServingOptions, dry: bool) -> Serving:
    try:
        if not dry:
            find_vllm(serving.vllm)
    except MissingDependencyError as error:
        raise MissingDependencyError(
            error.message,
            remedy=f"{(error.remedy or '').rstrip('.')}. Or name a server that runs elsewhere, with --server and "
            f"--embedding-server; or run the model in this process: --recognition-engine {TRANSFORMERS}; or use the "
            f"CPU: --recognition-engine {LINES} --embedding-model {EMBEDDED}.",
        ) from error
    return prepare(serving, dry=dry)


def _card_name(model: str, kind: ModelKind) -> str:
    """The name of a model in commands: that of its card, also where its repository was named."""
    card = load_card(model, kind)
    return model if model.endswith(".toml") else card.name


def _lacking_for(layout: LayoutChoice) -> Iterator[PagemillError]:
    """What this machine lacks for a layout engine."""
    if layout.engine != LAYOUT_MODEL:
        return
    packages = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if packages:
        missing = f"{' and '.join(packages)} {'is' if len(packages) == 1 else 'are'} not installed"
        yield lacks_extra(f"{missing}, for layout detection with {LAYOUT_MODEL}", "gpu")
    if layout.model is None and find_model(load_card(LAYOUT_MODEL)) is None:
        message = f"the weights of {LAYOUT_MODEL}, for layout detection, are not on this machine"
        yield MissingInputError(message, remedy=f"Fetch them: pagemill models download {LAYOUT_MODEL}")


def _elsewhere(serving: Serving | None) -> Iterator[str]:
    """Notes on what another machine than this one may have: the accelerator, and the model's files."""
    if serving is None:
        return
    profile, card = serving.plan.profile, serving.card
    if profile.device is Device.CUDA and profile.name in profile_names():  # a profile of the user's own may be of any
        try:
            here = {profile_of(gpu).name: gpu.name for gpu in gpus()}
        except MissingDependencyError as error:
            yield f"{error.message}."
        else:
            if profile.name not in here:
                yield f"this machine has no {profile.title}: {', '.join(here.values()) or 'no NVIDIA GPU'}."
    if card.repository and serving.specs[0].model == card.repository and find_model(card) is None:
        size = card.download_bytes / 1e9
        fetch = f"pagemill models download {card.name}"
        yield f"{card.name} is not on this machine: vLLM fetches {size:.1f} GB when it starts, or in advance: {fetch}"


def _default_embedding(options: RunOptions) -> tuple[str, tuple[str, ...]]:
    """The large model if it can be served, its smaller form where only that fits, and a note of what does not."""
    if options.embedding_servers or options.embedding_weights:
        return LARGE_EMBEDDING, ()
    recognition = options.parse.settings.recognition
    if recognition.servers:  # the models run elsewhere: this machine need not serve another one
        return EMBEDDED, ()
    if recognition.engine != VLM or Step.OCR not in options.chosen:  # else vLLM is here, or nothing can be done
        try:
            find_vllm(options.serving.vllm)
        except MissingDependencyError:
            return EMBEDDED, ()
    if options.cluster.address not in (None, "local"):
        return LARGE_EMBEDDING, ()  # whose machines are not known here
    first = None
    for model in (LARGE_EMBEDDING, f"{LARGE_EMBEDDING}-fp8"):
        try:
            plan_for(_embedding_serving(options, model))
        except UsageError as error:
            # The reason of the model that was wanted; that of its smaller form says less.
            first = first or error
        else:
            return model, () if first is None else (f"{first.message}; {model} makes the vectors.",)
    assert first is not None
    return EMBEDDED, (f"{first.message}; the embedded engine {EMBEDDED} makes the vectors.",)
