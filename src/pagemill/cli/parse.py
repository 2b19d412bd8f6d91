"""``pagemill parse``."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import click

from pagemill.cli.directory_name import DirectoryName
from pagemill.cli.grouped_command import GroupedCommand
from pagemill.cli.recognition_options import recognition_options, recognition_settings
from pagemill.config.modes import ReadingMode, TextLayerMode
from pagemill.config.settings import RuntimeSettings

_LEAST_DECODER_GIB = 0.5
"""The libraries of a rendering process take 0.15 GiB and the largest page 0.07; its images need the rest."""
SILENCE_MARGIN_S = 5.0
"""A process that has been silent for a page's time limit and this much more hangs as a whole."""

_GROUPS = {
    "Input": (
        *("--pages", "--password", "--recursive", "--limit", "--image-column", "--id-column", "--skip-duplicates"),
    ),
    "Output": ("--output", "--crops", "--report", "--quiet"),
    "Reading": ("--lang", "--text-layer", "--layout-engine", "--layout-model", "--recognition-engine"),
    "With a model behind a server": (
        *("--model", "--server", "--served-model", "--reading", "--footnotes"),
        *("--workers", "--request-timeout", "--server-wait"),
    ),
    "Going on, trying again": ("--resume", "--fresh", "--retry-failed", "--max-attempts", "--page-timeout"),
    "This machine": ("--threads", "--decoders", "--decoder-memory", "--pages-in-flight", "--layout-batch"),
}


@click.command(name="parse", short_help="Parse documents.", cls=GroupedCommand, groups=_GROUPS)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option("-o", "--output", type=DirectoryName(), required=True, help="Directory to write to.")
@click.option(
    "--lang",
    default="auto",
    show_default=True,
    metavar="CODES",
    help="Languages to read, as in ko,en; auto detects the script of each page.",
)
@click.option(
    "--text-layer",
    type=click.Choice([mode.value for mode in TextLayerMode]),
    help="Take the text that a PDF carries: where it is sound, always, or never.  [default: auto; never where a model "
    "reads regions]",
)
@click.option("--pages", metavar="RANGES", help="Pages of each PDF or TIFF, as in 1,3-5,8-.")
@click.option(
    "--password",
    envvar="PAGEMILL_PASSWORD",
    metavar="TEXT",
    help="Password of encrypted PDFs (or set PAGEMILL_PASSWORD).",
)
@click.option("-r", "--recursive", is_flag=True, help="Go down into folders.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N pages.")
@click.option("--image-column", metavar="NAME", help="Image column of a dataset; found by its type otherwise.")
@click.option("--id-column", metavar="NAME", help="Page id column of a dataset; 'id' or 'page_id' otherwise.")
@click.option(
    "--layout-engine",
    default="onnx",
    show_default=True,
    metavar="NAME",
    help="Installed layout engine to use; other packages can add some.",
)
@click.option(
    "--layout-model",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Layout model to use: an ONNX file; for pp-doclayout-v3 a folder of weights or a TOML file of settings.",
)
@recognition_options
@click.option(
    "--page-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of one page, what a server reads of it aside.",
)
@click.option(
    "--threads", type=click.IntRange(min=0), default=0, metavar="N", help="Computing threads  [default: one a core]"
)
@click.option(
    "--decoders",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="PDF rendering processes  [default: one for two cores]",
)
@click.option(
    "--decoder-memory",
    type=click.FloatRange(min=_LEAST_DECODER_GIB),
    metavar="GIB",
    help=f"Memory limit of each of these processes (Linux)  [default: {RuntimeSettings().decoder_memory / 2**30:g}]",
)
@click.option(
    "--pages-in-flight",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Most pages under way at once  [default: three a thread, and as many more as keep the servers busy]",
)
@click.option(
    "--layout-batch",
    type=click.IntRange(min=0, max=256),
    default=0,
    metavar="N",
    help="Most pages in one call of pp-doclayout-v3  [default: 8 on a GPU, 1 on the CPU]",
)
@click.option("--crops/--no-crops", default=True, help="Save image and chart regions  [default: on]")
@click.option("--report/--no-report", default=True, help="Write report.html, or delete an earlier one  [default: on]")
@click.option("--resume", is_flag=True, help="Only go on with the run in the output directory; an error without one.")
@click.option("--fresh", is_flag=True, help="Start over: delete the run that the output directory holds.")
@click.option("--retry-failed", is_flag=True, help="Go on, and parse the failed pages again.")
@click.option(
    "--max-attempts",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Attempts at a page that crashes, hangs or throws before it is failed.",
)
@click.option("--skip-duplicates", is_flag=True, help="Skip files with the very content of an earlier one.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; failures only.")
def command(
    inputs: tuple[str, ...],
    output: Path,
    lang: str,
    text_layer: str | None,
    pages: str | None,
    password: str | None,
    recursive: bool,
    limit: int | None,
    image_column: str | None,
    id_column: str | None,
    layout_engine: str,
    layout_model: Path | None,
    page_timeout: float,
    threads: int,
    decoders: int,
    decoder_memory: float | None,
    pages_in_flight: int,
    layout_batch: int,
    crops: bool,
    report: bool,
    resume: bool,
    fresh: bool,
    retry_failed: bool,
    max_attempts: int,
    skip_duplicates: bool,
    quiet: bool,
    **reading: Any,
) -> int:
    """Parse documents into text, tables, Markdown and JSON records.

    INPUT is a PDF, an image, a folder, a glob, an Arrow or Parquet file of page images, hf://datasets/OWNER/NAME,
    or any URL that an installed fsspec filesystem opens.

    \b
    pagemill parse report.pdf -o out
    pagemill parse scans/ --recursive --lang ko,en -o out
    pagemill parse corpus.parquet --limit 100 -o out
    pagemill parse scans/ -o out --recognition-engine vlm --model glm-ocr --server http://127.0.0.1:8000

    A run that was stopped, killed or cut off from power goes on when the same command is given again.
    """  # noqa: D301 - click wants the control character
    from pagemill.cli import exit_status
    from pagemill.config.settings import ParseSettings
    from pagemill.runtime.supervisor import BUSY_DEATHS, RECYCLE, Life, supervise
    from pagemill.sources.options import PageRanges, SourceOptions

    if fresh and (resume or retry_failed):
        raise click.UsageError(f"--fresh starts over: it does not go with {'--resume' if resume else '--retry-failed'}")
    if "" in inputs:
        raise click.UsageError("an INPUT is empty: is a variable of the shell not set?")
    start = time.monotonic()
    recognition, languages = recognition_settings(**reading), _languages(lang)
    if recognition.reads_regions and languages is not None:
        raise click.UsageError(f"--lang is for reading lines: {recognition.engine} reads the languages of its model")
    needs_layout = recognition.reads_regions and recognition.reading_mode() is not ReadingMode.PAGES
    if needs_layout and layout_engine == "onnx" and not quiet:
        note = "Note: what the embedded layout model misses is not read; --layout-engine pp-doclayout-v3 finds more."
        click.echo(note, err=True)
    settings = ParseSettings(
        languages=languages,
        text_layer=TextLayerMode(text_layer) if text_layer else recognition.text_layer,
        crops=crops,
        recognition=recognition,
        page_timeout_s=page_timeout,
    )
    runtime = RuntimeSettings(
        threads=threads,
        decoders=decoders,
        pages_in_flight=pages_in_flight,
        layout_batch=layout_batch,
        **({} if decoder_memory is None else {"decoder_memory": int(decoder_memory * 2**30)}),
    )
    options = SourceOptions(
        pages=PageRanges.parse(pages) if pages else None,
        password=password,
        recursive=recursive,
        limit=limit,
        image_column=image_column,
        id_column=id_column,
        skip_duplicates=skip_duplicates,
    )

    def work(life: Life) -> int:
        """What the supervised process does; nothing heavy is imported outside of it."""
        import asyncio

        from pagemill.app.parse import parse_into
        from pagemill.cli.progress import ProgressDisplay, print_summary
        from pagemill.runtime.pipeline import Pipeline
        from pagemill.store.opening import OpenMode
        from pagemill.store.run_directory import PREVIEW_PAGES

        mode = OpenMode.FRESH if fresh else OpenMode.RESUME if resume or retry_failed else OpenMode.AUTO
        pipeline = Pipeline(
            dataclasses.replace(settings, preview_pages=PREVIEW_PAGES if report else 0),
            runtime,
            layout_engine=layout_engine,
            layout_model=layout_model,
        )
        with ProgressDisplay(quiet=quiet, life=life) as progress:
            outcome = asyncio.run(
                parse_into(
                    output,
                    inputs,
                    pipeline=pipeline,
                    options=options,
                    report=report,
                    mode=mode,
                    retry_failed=retry_failed,
                    max_attempts=max_attempts,
                    life=life,
                    progress=progress,
                )
            )
        if outcome.recycle:
            return RECYCLE
        if not quiet:
            print_summary(outcome, life.vitals, output, time.monotonic() - start)
        return outcome.exit_code

    return supervise(
        lambda life: exit_status(lambda: work(life)),
        busy_deaths=max(BUSY_DEATHS, max_attempts + 1),
        silence_s=page_timeout + SILENCE_MARGIN_S,
    )


def _languages(value: str) -> tuple[str, ...] | None:
    codes = tuple(code.strip().lower() for code in value.split(",") if code.strip())
    if not codes:
        raise click.BadParameter("name at least one language, or auto", param_hint="--lang")
    if "auto" in codes and len(codes) > 1:
        raise click.BadParameter("auto stands alone: it finds the languages itself", param_hint="--lang")
    return None if codes == ("auto",) else codes
