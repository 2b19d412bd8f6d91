"""``pagemill publish``."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from pagemill.app.options import ImageSources
from pagemill.app.publish import Dataset, check_names, made_dataset
from pagemill.cli.options import run_directory, takes
from pagemill.cli.progress import LenientConsole, ProgressBar, messages, print_failures
from pagemill.publishing.hub import HubDataset
from pagemill.publishing.options import BuildOptions, Destination, Shape
from pagemill.publishing.storage import StoredDataset

_SHOWN = 20


@click.command(name="publish")
@run_directory
@takes(place=Destination, options=BuildOptions, sources=ImageSources, leave_out=ImageSources.NOT_NEEDED)
@click.option("--dry-run", is_flag=True, help="Make the files and print the dataset card; publish nothing.")
def command(out: Path, options: BuildOptions, place: Destination, sources: ImageSources, dry_run: bool) -> int:
    """Publish a run as a dataset: on the Hugging Face Hub, in a folder, or at any URL that fsspec can write to.

    The licence is that of the pages. To resume, repeat the command. Every published file is verified.

    \b
    pagemill publish out --repo me/pages --licence cc-by-4.0 --private
    pagemill publish out --to /data/pages --licence cc0-1.0 --dry-run
    """  # noqa: D301 - click wants the control character
    repo = place.repository
    if (repo is None) == (place.url is None) and not (dry_run and repo is None):
        raise click.UsageError("name one place: --repo USER/NAME or --to URL")
    if repo is None and (place.private or place.revision != "main"):
        raise click.UsageError("--private and --revision require --repo")
    if options.page_images and options.shape is not Shape.PARQUET:
        raise click.UsageError("--page-images requires --format parquet")
    if (sources.inputs or sources.options.image_column) and not options.page_images:
        raise click.UsageError("--input and --image-column require --page-images")
    # Required, not guessed: a dataset without a licence may not be used, and a wrong one is worse.
    if not options.licence:
        raise click.UsageError("name the licence of the pages: --licence ID, such as cc-by-4.0, other, unknown")
    check_names(repo, options.licence, option="--repo")
    options = replace(options, title=options.title or out.resolve().name)
    target: HubDataset | StoredDataset | None = None
    if not dry_run:
        hub = repo and HubDataset(repo, place.hf_token, place.revision, place.private)
        target = hub or StoredDataset(place.url or "")
    console = messages()
    with ExitStack() as stack:
        with ProgressBar(console, what="making") as bar:
            # Entered here and left after the upload: until then no other process may replace the files.
            dataset = stack.enter_context(made_dataset(out, options, target, sources, bar.update))
        _describe(dataset, console)
        if target is None:
            click.echo((dataset.folder / "README.md").read_text(encoding="utf-8"))
            console.print_line("Nothing was published (--dry-run).")
        else:
            size = sum(file.size for file in dataset.manifest.files)
            with ProgressBar(console, size, target.doing, size=True) as bar:
                address = target.publish(dataset.folder, dataset.manifest, lambda _, arrived: bar.advance(arrived))
            console.print_line(f"Published and verified: {address}")
    return dataset.exit_code


def _describe(dataset: Dataset, console: LenientConsole) -> None:
    files, pages = dataset.manifest.files, dataset.manifest.pages
    for file in files[:_SHOWN]:
        console.print_line(f"  {file.size:>14,}  {file.path}")
    if len(files) > _SHOWN:
        console.print_line(f"  ... and {len(files) - _SHOWN:,} more")
    size = sum(file.size for file in files)
    console.print_line(f"{pages:,} pages, {len(files):,} files, {size:,} bytes, in {dataset.folder}")
    console.print_line("(They are kept for the next time; delete the folder when you need the space.)")
    problems = [(f"{page_id} has no image", error.message, error.remedy) for page_id, error in dataset.problems]
    print_failures(problems[:_SHOWN], len(problems), console)
