"""``pagemill run``."""

from __future__ import annotations

import dataclasses
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pagemill.errors import ExitCode, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pagemill.doctor import Area
    from pagemill.serving.replicas import Serving
    from pagemill.serving.server import Servers
    from pagemill.steps import PlannedStep, Step

_EMBEDDED = "ngram"
_LARGE_EMBEDDING = "qwen3-vl-embedding-2b"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """What the command line says."""

    inputs: tuple[str, ...]
    out: Path
    steps: tuple[str, ...]
    resume: bool
    fresh: bool
    retry_failed: bool
    recursive: bool
    limit: int | None
    image_column: str | None
    id_column: str | None
    model: str
    weights: Path | None
    servers: tuple[str, ...]
    profile: str
    replicas: int
    vllm: str | None
    ocr_dtype: str | None
    gpu_mem_util: float | None
    workers: int | None
    layout_engine: str | None
    layout_model: Path | None
    batch_size: int | None
    crops: bool
    embedding_model: str | None
    embedding_weights: Path | None
    embedding_servers: tuple[str, ...]
    queries: Path | None
    hf_repo: str | None
    hf_token: str | None
    licence: str | None
    private: bool


@click.command(name="run", short_help="The whole pipeline: recognition, embeddings, upload.")
@click.argument("inputs", metavar="INPUT...", nargs=-1)
@click.option("-o", "--output", "--output-dir", "out", type=click.Path(path_type=Path), default=Path("output"),
    show_default=True, help="Directory to write to.")  # fmt: skip
@click.option("--step", "steps", multiple=True, type=click.Choice(["all", "ocr", "embed", "upload"]),
    help="Do this step only; repeatable  [default: all]")  # fmt: skip
@click.option("--resume", is_flag=True, help="Only go on with the run in the output directory; an error without one.")
@click.option("--fresh", is_flag=True, help="Start over: delete the run that the output directory holds.")
@click.option("--retry-failed", is_flag=True, help="Parse the failed pages again.")
@click.option("-r", "--recursive", is_flag=True, help="Go down into folders.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N pages.")
@click.option("--image-column", metavar="NAME", help="Image column of a dataset; found by its type otherwise.")
@click.option("--id-column", metavar="NAME", help="Page id column of a dataset.")
@click.option("--model", default="glm-ocr", show_default=True, help="Who reads: a model card, by name or CARD.toml.")
@click.option("--weights", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of its checkpoint, in place of the card's.")  # fmt: skip
@click.option("--server", "servers", multiple=True, metavar="URL", help="Use this server and start none; repeatable.")
@click.option("--profile", default="auto", show_default=True, help="Hardware, as for pagemill plan.")
@click.option("--replicas", type=click.IntRange(min=1), default=1, show_default=True, help="Servers, one a GPU.")
@click.option("--vllm", metavar="PATH", help="vLLM: its program or environment.  [env: PAGEMILL_VLLM]")
@click.option("--ocr-dtype", type=click.Choice(["fp8", "bf16", "auto"]), help="Weights of the model  [by the profile]")
@click.option("--gpu-mem-util", type=float, metavar="SHARE", help="Memory that vLLM claims  [by the profile]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N",
    help="Requests in flight at each server  [default: as many as it bears]")  # fmt: skip
@click.option("--layout-engine", metavar="NAME", help="[default: pp-doclayout-v3 where it is installed, else onnx]")
@click.option("--layout-model", type=click.Path(path_type=Path), metavar="PATH", help="As for pagemill parse.")
@click.option("--batch-size", type=click.IntRange(1, 256), metavar="N", help="Pages a layout batch  [by the profile]")
@click.option("--crops/--no-crops", default=True, help="Save image and chart regions  [default: on]")
@click.option("--embedding-model", metavar="NAME",
    help=f"A model card, or {_EMBEDDED}  [default: {_LARGE_EMBEDDING} where vLLM is, else {_EMBEDDED}]")  # fmt: skip
@click.option("--embedding-weights", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of its checkpoint.")  # fmt: skip
@click.option("--embedding-server", "embedding_servers", multiple=True, metavar="URL",
    help="Use this server and start none; repeatable.")  # fmt: skip
@click.option("--queries", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="Embed queries, too.")  # fmt: skip
@click.option("--hf-repo", metavar="USER/NAME", help="Dataset on the Hub to publish to; without it nothing is.")
@click.option("--hf-token", envvar="HF_TOKEN", metavar="TOKEN", help="Better set HF_TOKEN, or: hf auth login")
@click.option("--licence", "--license", "licence", metavar="ID", help="Of the pages; needed for --hf-repo.")
@click.option("--private", is_flag=True, help="Make the dataset private.")
@click.option("--dry-run", is_flag=True, help="Print the commands of all steps and do nothing.")
@click.option("-q", "--quiet", is_flag=True, help="Say less.")
def command(dry_run: bool, quiet: bool, **options: object) -> int:
    """Do all of it: check the machine, start a model server, parse, stop it, embed, publish.

    Each step is a command of its own (pagemill serve-model, parse, embed, publish) that this one starts and prints;
    what was stopped goes on with the same command. The server is ended with the step that needs it, whatever happens.

    \b
    pagemill run hf://datasets/OWNER/NAME -o output --vllm vllm-env
    pagemill run scans/ -r -o output --server http://gpu-box:8000 --step ocr
    pagemill run corpus.parquet -o output --hf-repo me/pages --licence cc-by-4.0
    """  # noqa: D301 - click wants the control character
    import asyncio

    from pagemill.steps import Pipeline

    wanted = _Options(**options)  # type: ignore[arg-type]  # click made them
    steps = list(_plan(wanted, quiet=quiet))
    if dry_run:
        for planned in steps:
            _print_plan(planned)
        return ExitCode.OK
    _check(wanted, steps)
    return asyncio.run(Pipeline([planned.step for planned in steps], _Display(quiet=quiet)).run())


@dataclasses.dataclass(frozen=True, slots=True)
class _Planned:
    """A step, and what is known of its servers before they are started."""

    step: PlannedStep
    serving: Serving | None = None


def _plan(options: _Options, *, quiet: bool) -> Iterator[_Planned]:
    from pagemill.steps import Step

    chosen = set(Step) if not options.steps or "all" in options.steps else {Step(name) for name in options.steps}
    if Step.OCR in chosen and not options.inputs:
        raise click.UsageError("name an INPUT to parse: files, folders, hf://datasets/OWNER/NAME")
    if Step.UPLOAD in chosen and "upload" in options.steps and options.hf_repo is None:
        raise click.UsageError("--step upload needs --hf-repo USER/NAME")
    if options.hf_repo is not None and options.licence is None and Step.UPLOAD in chosen:
        raise click.UsageError("name the licence of the pages for --hf-repo: --licence ID, such as cc-by-4.0")
    if Step.OCR in chosen:
        yield _recognition(options, quiet=quiet)
    if Step.EMBED in chosen:
        yield _embedding(options, quiet=quiet)
    if Step.UPLOAD in chosen and options.hf_repo is not None:
        yield _upload(options)


def _recognition(options: _Options, *, quiet: bool) -> _Planned:
    from pagemill.config.hardware import Dtype
    from pagemill.serving.planning import Wishes
    from pagemill.serving.replicas import ServingOptions, prepare
    from pagemill.steps import PlannedStep, Step

    serving = None
    if not options.servers:
        serving = prepare(
            ServingOptions(
                model=options.model,
                weights=options.weights,
                profile=options.profile,
                wishes=Wishes(
                    memory_share=options.gpu_mem_util,
                    workers=options.workers,
                    dtype=Dtype(options.ocr_dtype) if options.ocr_dtype else None,
                ),
                replicas=options.replicas,
                vllm=options.vllm,
            )
        )
    layout = options.layout_engine or _layout_engine()
    batch = options.batch_size or (serving.plan.batch_size if serving and layout != "onnx" else None)
    arguments = [
        *("parse", *options.inputs, "-o", str(options.out), "--recognition-engine", "vlm", "--model", options.model),
        *("--layout-engine", layout),
        *_option("--layout-model", options.layout_model),
        *_option("--layout-batch", batch),
        *_option("--workers", options.workers),
        *_option("--limit", options.limit),
        *_option("--image-column", options.image_column),
        *_option("--id-column", options.id_column),
        *(word for url in options.servers for word in ("--server", url)),
        *_flag("--recursive", options.recursive),
        *_flag("--no-crops", not options.crops),
        *_flag("--resume", options.resume),
        *_flag("--fresh", options.fresh),
        *_flag("--retry-failed", options.retry_failed),
        *_flag("--quiet", quiet),
    ]
    return _Planned(PlannedStep(step=Step.OCR, arguments=tuple(arguments), servers=_servers(serving, quiet)), serving)


def _embedding(options: _Options, *, quiet: bool) -> _Planned:
    from pagemill.config.hardware import Dtype
    from pagemill.serving.planning import Wishes
    from pagemill.serving.replicas import ServingOptions, prepare
    from pagemill.steps import PlannedStep, Step

    model = options.embedding_model or _default_embedding(options)
    arguments = ["embed", str(options.out), *_option("--queries", options.queries), *_flag("--quiet", quiet)]
    if model == _EMBEDDED:
        return _Planned(PlannedStep(step=Step.EMBED, arguments=(*arguments, "--engine", _EMBEDDED)))
    arguments += ["--engine", "vllm", "--model", model]
    if options.embedding_servers:
        arguments += [word for url in options.embedding_servers for word in ("--server", url)]
        return _Planned(PlannedStep(step=Step.EMBED, arguments=tuple(arguments)))
    serving = prepare(
        ServingOptions(
            model=model,
            weights=options.embedding_weights,
            profile=options.profile,
            # Vectors of one corpus are compared with each other: weights as they were published, no quantisation.
            wishes=Wishes(memory_share=options.gpu_mem_util, dtype=Dtype.AUTO),
            replicas=options.replicas,
            vllm=options.vllm,
        )
    )
    return _Planned(PlannedStep(step=Step.EMBED, arguments=tuple(arguments), servers=_servers(serving, quiet)), serving)


def _upload(options: _Options) -> _Planned:
    from pagemill.steps import PlannedStep, Step

    assert options.hf_repo is not None
    assert options.licence is not None
    arguments = ("publish", str(options.out), "--repo", options.hf_repo, "--licence", options.licence)
    return _Planned(
        PlannedStep(
            step=Step.UPLOAD,
            arguments=(*arguments, *_flag("--private", options.private), *_flag("--no-crops", not options.crops)),
            environment={"HF_TOKEN": options.hf_token} if options.hf_token else {},
        )
    )


def _layout_engine() -> str:
    """The better engine where all that it needs is there."""
    from pagemill.config.model_cards import load_card
    from pagemill.config.model_files import find_model

    installed = find_spec("torch") is not None and find_spec("transformers") is not None
    return "pp-doclayout-v3" if installed and find_model(load_card("pp-doclayout-v3")) is not None else "onnx"


def _default_embedding(options: _Options) -> str:
    """The large model where it can be served."""
    from pagemill.serving.command import find_vllm

    if options.embedding_servers or options.embedding_weights:
        return _LARGE_EMBEDDING
    if options.servers:  # the models are somewhere else: this machine is not asked for a second one
        return _EMBEDDED
    try:
        find_vllm(options.vllm)
    except MissingDependencyError:
        return _EMBEDDED
    return _LARGE_EMBEDDING


def _servers(serving: Serving | None, quiet: bool) -> _MakeServers | None:
    return None if serving is None else _MakeServers(serving, quiet)


@dataclasses.dataclass(frozen=True, slots=True)
class _MakeServers:
    """Makes the servers of a step."""

    serving: Serving
    quiet: bool

    def __call__(self) -> Servers:
        from pagemill.cli.server_display import ServerDisplay
        from pagemill.serving.server import Servers

        return Servers(self.serving.specs, tell=ServerDisplay(quiet=self.quiet))


def _check(options: _Options, steps: list[_Planned]) -> None:
    """Look at what the steps need, and say what is missing before anything is started.

    Raises:
        MissingDependencyError: Something is missing.
    """
    from pagemill.doctor import Verdict, examine

    lacking = []
    servers = options.servers + options.embedding_servers
    for finding in examine(_areas(steps), servers=servers, vllm=options.vllm):
        if finding.verdict is Verdict.OK:
            continue
        click.echo(f"{finding.verdict}: {finding.what}: {finding.detail}", err=True)
        if finding.remedy:
            click.echo(f"  {finding.remedy}", err=True)
        if finding.verdict is Verdict.MISSING:
            lacking.append(finding.what)
    if lacking:
        raise MissingDependencyError(f"this machine lacks {', '.join(lacking)}", remedy="Mend it as said above.")


def _areas(steps: list[_Planned]) -> list[Area]:
    from pagemill.doctor import Area
    from pagemill.steps import Step

    areas: list[Area] = []
    for planned in steps:
        words = planned.step.arguments
        if planned.step.step is Step.OCR:
            areas += [Area.PARSE, Area.VLM, *([Area.GPU] if "pp-doclayout-v3" in words else [])]
        elif planned.step.step is Step.EMBED and "vllm" in words:
            areas.append(Area.VLM)
        elif planned.step.step is Step.UPLOAD:
            areas.append(Area.PUBLISH)
    return list(dict.fromkeys(areas))


def _print_plan(planned: _Planned) -> None:
    import shlex

    if planned.serving is not None:
        for spec in planned.serving.specs:
            click.echo(shlex.join(spec.command(spec.port or spec.preferred_port)))
    click.echo(shlex.join(["pagemill", *planned.step.arguments]))


def _option(name: str, value: object) -> tuple[str, ...]:
    return () if value is None else (name, str(value))


def _flag(name: str, wanted: bool) -> tuple[str, ...]:
    return (name,) if wanted else ()


class _Display:
    """Says on standard error which step begins."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def step(self, step: Step, command: str) -> None:
        if not self._quiet:
            bold = os.environ.get("NO_COLOR") is None
            click.echo(click.style(f"[{step}] {command}", bold=bold), err=True)
