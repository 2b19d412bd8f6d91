"""``pagemill publish``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from pagemill.cli.options import NOT_FOR_IMAGES, input_option, licence_option, run_directory, takes, token_option
from pagemill.sources.options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pagemill.app.publish import PublishOutcome
    from pagemill.publishing.hub import HubDataset
    from pagemill.publishing.manifest import PublishedFile
    from pagemill.publishing.storage import StoredDataset

_SHOWN = 20


@click.command(name="publish")
@run_directory
@click.option("--repo", metavar="USER/NAME", help="Dataset on the Hugging Face Hub; created if it does not exist.")
@click.option("--to", "url", metavar="URL", help="Publish to a folder, or to a URL such as s3://bucket/name.")
@licence_option()
@click.option(
    *("--format", "shape"),
    type=click.Choice(["parquet", "files"]),
    default="parquet",
    show_default=True,
    help="Parquet including the crops, or JSON lines, crops and vectors as files.",
)
@click.option("--title", metavar="TEXT", help="Title of the dataset  [default: the name of OUT]")
@click.option("--private", is_flag=True, help="Make the repository private.")
@click.option("--revision", default="main", show_default=True, metavar="BRANCH", help="Branch of the repository.")
@click.option("--crops/--no-crops", default=True, help="Include the crops  [default: on]")
@click.option("--embeddings/--no-embeddings", default=True, help="Include the vectors  [default: on]")
@click.option("--page-images", is_flag=True, help="parquet: include the image of each page, read from its source.")
@input_option
@takes(sources=SourceOptions, leave_out=NOT_FOR_IMAGES)
@click.option("--partial", is_flag=True, help="Publish an unfinished run.")
@click.option("--dry-run", is_flag=True, help="Make the files and print the dataset card; upload nothing.")
@token_option()
def command(
    out: Path,
    repo: str | None,
    url: str | None,
    licence: str | None,
    title: str | None,
    private: bool,
    revision: str,
    inputs: tuple[str, ...],
    sources: SourceOptions,
    dry_run: bool,
    hf_token: str | None,
    **dataset: Any,
) -> int:
    """Publish a run as a dataset: on the Hugging Face Hub, in a folder, or at any URL that fsspec can write to.

    The licence is that of the pages. To resume an upload, repeat the command. Every uploaded file is verified.

    \b
    pagemill publish out --repo me/pages --licence cc-by-4.0 --private
    pagemill publish out --to /data/pages --licence cc0-1.0 --dry-run
    """  # noqa: D301 - click wants the control character
    if (repo is None) == (url is None) and not (dry_run and repo is None):
        raise click.UsageError("name one place: --repo USER/NAME or --to URL")
    if repo is None and (private or revision != "main"):
        raise click.UsageError("--private and --revision go with --repo")
    if dataset["page_images"] and dataset["shape"] != "parquet":
        raise click.UsageError("--page-images goes with --format parquet")
    if (inputs or sources.image_column) and not dataset["page_images"]:
        raise click.UsageError("--input and --image-column go with --page-images")
    if licence is None:
        if not sys.stdin.isatty():
            raise click.UsageError("name the licence of the pages: --licence ID, such as cc-by-4.0, other, unknown")
        licence = click.prompt("Licence of the pages (cc-by-4.0, cc0-1.0, other, unknown, ...)", err=True)

    from dataclasses import replace

    from pagemill.app.publish import check_licence, check_repository, publish
    from pagemill.cli.progress import ProgressBar
    from pagemill.publishing.build import BuildOptions, Shape
    from pagemill.publishing.hub import HubDataset
    from pagemill.publishing.storage import StoredDataset

    if repo is not None:
        check_repository(repo, "--repo")
    check_licence(str(licence))
    dataset["shape"] = Shape(dataset["shape"])
    options = BuildOptions(licence=str(licence), title=title or out.resolve().name, repository=repo, **dataset)
    target: HubDataset | StoredDataset | None = None
    if not dry_run:
        target = HubDataset(repo, hf_token, revision, private) if repo else StoredDataset(url or "")
    with ExitStack() as bars:

        def making(steps: int) -> Callable[[], None]:
            return bars.enter_context(ProgressBar(steps, "making")).advance

        def made(outcome: PublishOutcome) -> Callable[[PublishedFile, int], None]:
            bars.close()
            _describe(outcome)
            size = sum(file.size for file in outcome.manifest.files)
            bar = bars.enter_context(ProgressBar(size, "uploading", quiet=dry_run, size=True))
            return lambda file, arrived: bar.advance(arrived)

        outcome = publish(
            out,
            options,
            target,
            inputs=inputs,
            sources=replace(sources, recursive=True),
            making=making,
            made=made,
        )
    if outcome.address is None:
        click.echo((outcome.folder / "README.md").read_text(encoding="utf-8"))
        click.echo("Nothing was uploaded (--dry-run).", err=True)
    else:
        click.echo(f"Published and verified: {outcome.address}", err=True)
    return outcome.exit_code


def _describe(outcome: PublishOutcome) -> None:
    files, pages = outcome.manifest.files, outcome.manifest.pages
    for file in files[:_SHOWN]:
        click.echo(f"  {file.size:>14,}  {file.path}", err=True)
    if len(files) > _SHOWN:
        click.echo(f"  ... and {len(files) - _SHOWN:,} more", err=True)
    size = sum(file.size for file in files)
    click.echo(f"{pages:,} pages, {len(files):,} files, {size:,} bytes, in {outcome.folder}", err=True)
    click.echo("(They are kept for the next time; delete the folder when you need the space.)", err=True)
    shown = outcome.problems[:_SHOWN]
    for page_id, error in shown:
        click.echo(f"{page_id} has no image: {error.message}", err=True)
    for remedy in dict.fromkeys(error.remedy for _, error in shown if error.remedy):
        click.echo(f"  {remedy}", err=True)
    if len(outcome.problems) > _SHOWN:
        click.echo(f"... and {len(outcome.problems) - _SHOWN:,} more", err=True)
