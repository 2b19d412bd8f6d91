"""``pagemill publish``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from pagemill.app.options import ImageSources
from pagemill.app.publish import Dataset, check_names, made_dataset
from pagemill.cli.options import choice, licence_option, run_directory, takes, token_option
from pagemill.cli.progress import LenientConsole, ProgressBar, messages, print_failures
from pagemill.publishing.hub import HubDataset
from pagemill.publishing.options import BuildOptions, Shape
from pagemill.publishing.storage import StoredDataset

_SHOWN = 20


@click.command(name="publish")
@run_directory
@click.option("--repo", metavar="USER/NAME", help="Dataset on the Hugging Face Hub; created if it does not exist.")
@click.option("--to", "url", metavar="URL", help="Publish to a folder, or to a URL such as s3://bucket/name.")
@licence_option()
@click.option(
    *("--format", "shape"),
    type=choice(Shape),
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
@takes(sources=ImageSources, leave_out=ImageSources.NOT_NEEDED)
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
    sources: ImageSources,
    dry_run: bool,
    hf_token: str | None,
    **build: Any,
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
    if build["page_images"] and build["shape"] != "parquet":
        raise click.UsageError("--page-images goes with --format parquet")
    if (sources.inputs or sources.options.image_column) and not build["page_images"]:
        raise click.UsageError("--input and --image-column go with --page-images")
    if licence is None:
        if not sys.stdin.isatty():
            raise click.UsageError("name the licence of the pages: --licence ID, such as cc-by-4.0, other, unknown")
        licence = click.prompt("Licence of the pages (cc-by-4.0, cc0-1.0, other, unknown, ...)", err=True)
    check_names(repo, str(licence), option="--repo")
    build["shape"] = Shape(build["shape"])
    options = BuildOptions(licence=str(licence), title=title or out.resolve().name, repository=repo, **build)
    target: HubDataset | StoredDataset | None = None
    if not dry_run:
        target = HubDataset(repo, hf_token, revision, private) if repo else StoredDataset(url or "")
    console = messages()
    with ExitStack() as stack:
        with ProgressBar(console, what="making") as bar:
            dataset = stack.enter_context(made_dataset(out, options, target, sources, bar.update))
        _describe(dataset, console)
        if target is None:
            click.echo((dataset.folder / "README.md").read_text(encoding="utf-8"))
            console.say("Nothing was uploaded (--dry-run).")
        else:
            size = sum(file.size for file in dataset.manifest.files)
            with ProgressBar(console, size, "uploading", size=True) as bar:
                address = target.publish(dataset.folder, dataset.manifest, lambda _, arrived: bar.advance(arrived))
            console.say(f"Published and verified: {address}")
    return dataset.exit_code


def _describe(dataset: Dataset, console: LenientConsole) -> None:
    files, pages = dataset.manifest.files, dataset.manifest.pages
    for file in files[:_SHOWN]:
        console.say(f"  {file.size:>14,}  {file.path}")
    if len(files) > _SHOWN:
        console.say(f"  ... and {len(files) - _SHOWN:,} more")
    size = sum(file.size for file in files)
    console.say(f"{pages:,} pages, {len(files):,} files, {size:,} bytes, in {dataset.folder}")
    console.say("(They are kept for the next time; delete the folder when you need the space.)")
    problems = [(f"{page_id} has no image", error.message, error.remedy) for page_id, error in dataset.problems]
    print_failures(problems[:_SHOWN], len(problems), console)
