"""What the command line of ``pagemill run`` says, and what of it makes no sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from pagemill.app.run import Step

if TYPE_CHECKING:
    from pathlib import Path

EMBEDDED = "ngram"
_OF_A_MODEL = ("model", "weights", "servers", "workers", "ocr_dtype", "max_model_len")
"""Options that say how a model reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
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
    recognition: str
    lang: str | None
    model: str
    weights: Path | None
    profile: str
    memory: float | None
    gpu_mem_util: float | None
    max_model_len: int | None
    ocr_dtype: str | None
    servers: tuple[str, ...]
    replicas: int
    port: int | None
    vllm: str | None
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
    quiet: bool

    @property
    def chosen(self) -> frozenset[Step]:
        """The steps that are to be done."""
        every = not self.steps or "all" in self.steps
        chosen = set(Step) if every else {Step(name) for name in self.steps}
        return frozenset(chosen - {Step.UPLOAD} if every and self.hf_repo is None else chosen)

    @property
    def token(self) -> dict[str, str]:
        """The token for the Hub, as an environment."""
        return {"HF_TOKEN": self.hf_token} if self.hf_token else {}


def refuse(options: RunOptions) -> None:
    """Refuse what does not go together.

    Raises:
        click.UsageError: Something does not.
    """
    from pagemill.cli.publish import LICENCE, REPOSITORY

    chosen = options.chosen
    if Step.OCR in chosen and not options.inputs:
        raise click.UsageError("name an INPUT to parse: files, folders, hf://datasets/OWNER/NAME")
    if "" in options.inputs:
        raise click.UsageError("an INPUT is empty: is a variable of the shell not set?")
    if options.fresh and (options.resume or options.retry_failed):
        raise click.UsageError("--fresh starts over: it goes with neither --resume nor --retry-failed")
    if Step.OCR not in chosen and (options.fresh or options.retry_failed):
        option = "--fresh" if options.fresh else "--retry-failed"
        raise click.UsageError(
            f"{option} goes with the step ocr; vectors are made anew by `pagemill embed OUT --fresh`"
        )
    if options.embedding_model == EMBEDDED and (options.embedding_weights or options.embedding_servers):
        option = "--embedding-weights" if options.embedding_weights else "--embedding-server"
        raise click.UsageError(f"{option} goes with a model; {EMBEDDED} is embedded and needs none")
    if options.recognition == "vlm" and options.lang:
        raise click.UsageError("--lang goes with --recognition-engine lines; a model reads the languages that it knows")
    if options.recognition == "lines":
        context = click.get_current_context()
        for parameter in context.command.params:
            source = context.get_parameter_source(parameter.name or "")
            if parameter.name in _OF_A_MODEL and source is not click.core.ParameterSource.DEFAULT:
                raise click.UsageError(f"{parameter.opts[0]} goes with --recognition-engine vlm")
    if Step.UPLOAD not in chosen:
        return
    if options.hf_repo is None:
        raise click.UsageError("--step upload needs --hf-repo USER/NAME")
    if options.licence is None:
        raise click.UsageError("name the licence of the pages for --hf-repo: --licence ID, such as cc-by-4.0")
    if not REPOSITORY.fullmatch(options.hf_repo):
        raise click.BadParameter("it looks like USER/NAME", param_hint="--hf-repo")
    if not LICENCE.fullmatch(options.licence):
        raise click.BadParameter("it is an identifier such as cc-by-4.0", param_hint="--licence")
