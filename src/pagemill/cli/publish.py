"""``pagemill publish``."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pagemill.errors import ExitCode

if TYPE_CHECKING:
    from pagemill.app.published_images import PublishedImages
    from pagemill.errors import PagemillError
    from pagemill.publishing.build import BuildOptions
    from pagemill.publishing.hub import HubDataset
    from pagemill.publishing.manifest import Manifest, PublishedFile
    from pagemill.publishing.storage import StoredDataset
    from pagemill.store.reading import RunReader

LICENCE = re.compile(r"[a-z0-9][a-z0-9.+\-]{0,63}")
REPOSITORY = re.compile(r"[\w.\-]{1,96}/[\w.\-]{1,96}")

_SHOWN = 20


@click.command(name="publish", short_help="Publish a run as a dataset.")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--repo", metavar="USER/NAME", help="Dataset on the Hugging Face Hub; made if it is not there.")
@click.option("--to", "url", metavar="URL", help="Instead: a folder, or a URL such as s3://bucket/name.")
@click.option("--licence", "--license", "licence", metavar="ID", help="Of the pages, as the Hub calls it: cc-by-4.0.")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["parquet", "files"]),
    default="parquet",
    show_default=True,
    help="Parquet with pictures in it, or the JSON lines, crops and vectors as files.",
)
@click.option("--title", metavar="TEXT", help="Of the dataset  [default: the name of OUT]")
@click.option("--private", is_flag=True, help="Make the repository private.")
@click.option("--revision", default="main", show_default=True, metavar="BRANCH", help="Branch of the repository.")
@click.option("--crops/--no-crops", default=True, help="Take pictures and charts along  [default: on]")
@click.option("--embeddings/--no-embeddings", default=True, help="Take the vectors along  [default: on]")
@click.option("--page-images", is_flag=True, help="parquet: take the image of each page along, from its source.")
@click.option("--input", "inputs", multiple=True, metavar="PATH", help="Where the parsed files lie now, for images.")
@click.option("--image-column", metavar="NAME", help="Image column of a dataset, as for pagemill parse.")
@click.option("--password", envvar="PAGEMILL_PASSWORD", metavar="TEXT", help="Password of encrypted PDFs, for images.")
@click.option("--partial", is_flag=True, help="Publish a run that is not at its end.")
@click.option("--dry-run", is_flag=True, help="Make the files and show the card; upload nothing.")
@click.option(
    "--hf-token",
    envvar="HF_TOKEN",
    metavar="TOKEN",
    help="Token for the Hub; better set HF_TOKEN, or log in with hf auth login.",
)
def command(
    out: Path,
    repo: str | None,
    url: str | None,
    licence: str | None,
    shape: str,
    title: str | None,
    private: bool,
    revision: str,
    crops: bool,
    embeddings: bool,
    page_images: bool,
    inputs: tuple[str, ...],
    image_column: str | None,
    password: str | None,
    partial: bool,
    dry_run: bool,
    hf_token: str | None,
) -> int:
    """Publish a run as a dataset: on the Hugging Face Hub, in a folder, or at any URL that fsspec can write to.

    The licence is that of the pages, so you have to name it. An upload that stops goes on with the same command; what
    arrived is compared with what was sent, file by file.

    \b
    pagemill publish out --repo me/pages --licence cc-by-4.0 --private
    pagemill publish out --to /data/pages --licence cc0-1.0 --dry-run
    """  # noqa: D301 - click wants the control character
    if (repo is None) == (url is None) and not (dry_run and repo is None):
        raise click.UsageError("name one place: --repo USER/NAME or --to URL")
    if repo is not None and not REPOSITORY.fullmatch(repo):
        raise click.BadParameter("it looks like USER/NAME", param_hint="--repo")
    if repo is None and (private or revision != "main"):
        raise click.UsageError("--private and --revision go with --repo")
    if page_images and shape != "parquet":
        raise click.UsageError("--page-images goes with --format parquet")
    if (inputs or image_column) and not page_images:
        raise click.UsageError("--input and --image-column go with --page-images")
    if licence is None:
        if not sys.stdin.isatty():
            raise click.UsageError("name the licence of the pages: --licence ID, such as cc-by-4.0, other, unknown")
        licence = click.prompt("Licence of the pages (cc-by-4.0, cc0-1.0, other, unknown, ...)", err=True)
    if not LICENCE.fullmatch(licence):
        raise click.BadParameter("it is an identifier such as cc-by-4.0", param_hint="--licence")

    from pagemill.app.published_images import PublishedImages
    from pagemill.publishing.build import LOCK, BuildOptions, Shape
    from pagemill.publishing.hub import HubDataset
    from pagemill.publishing.storage import StoredDataset
    from pagemill.sources import SourceOptions
    from pagemill.store.lock import RunLock
    from pagemill.store.reading import RunReader

    options = BuildOptions(
        licence=licence,
        title=title or out.resolve().name,
        repository=repo,
        shape=Shape(shape),
        crops=crops,
        embeddings=embeddings,
        page_images=page_images,
        partial=partial,
    )
    target: HubDataset | StoredDataset = (
        HubDataset(repo, hf_token, revision, private) if repo else StoredDataset(url or "")
    )
    with ExitStack() as stack:
        reader = stack.enter_context(RunReader.open(out))
        lock = RunLock(out / LOCK)
        stack.callback(lock.release)
        if not dry_run:
            target.check(out)
        images = PublishedImages(
            reader, out, inputs, SourceOptions(password=password, image_column=image_column, recursive=True)
        )
        folder, manifest = _make(reader, out, options, images)
        _describe(folder, manifest)
        _tell_problems(images.problems)
        if dry_run:
            click.echo((folder / "README.md").read_text(encoding="utf-8"))
            click.echo("Nothing was uploaded (--dry-run).", err=True)
        else:
            click.echo(f"Published and verified: {_upload(target, folder, manifest)}", err=True)
    return ExitCode.PAGES_FAILED if images.problems else ExitCode.OK


def _make(reader: RunReader, out: Path, options: BuildOptions, images: PublishedImages) -> tuple[Path, Manifest]:
    from pagemill.publishing.build import build

    if not options.page_images:
        with click.progressbar(length=reader.summary.pages, label="Making", file=sys.stderr) as bar:
            return build(reader, out, options, lambda page: bar.update(1))
    # Two steps for each page: its image is taken, its row is written.
    with click.progressbar(length=2 * reader.summary.pages, label="Making", file=sys.stderr) as bar:
        images.tell = lambda: bar.update(1)
        return build(reader, out, options, lambda page: bar.update(1), images.opened)


def _upload(target: HubDataset | StoredDataset, folder: Path, manifest: Manifest) -> str:
    size = sum(file.size for file in manifest.files)
    with click.progressbar(length=size, label="Uploading", file=sys.stderr, item_show_func=_path) as bar:
        return target.publish(folder, manifest, lambda file, arrived: bar.update(arrived, file))


def _path(file: PublishedFile | None) -> str | None:
    return None if file is None else file.path


def _tell_problems(problems: list[tuple[str, PagemillError]]) -> None:
    shown = problems[:_SHOWN]
    for page_id, error in shown:
        click.echo(f"{page_id} has no image: {error.message}", err=True)
    for remedy in dict.fromkeys(error.remedy for _, error in shown if error.remedy):
        click.echo(f"  {remedy}", err=True)
    if len(problems) > _SHOWN:
        click.echo(f"... and {len(problems) - _SHOWN:,} more", err=True)


def _describe(folder: Path, manifest: Manifest) -> None:
    for file in manifest.files[:_SHOWN]:
        click.echo(f"  {file.size:>14,}  {file.path}", err=True)
    if len(manifest.files) > _SHOWN:
        click.echo(f"  ... and {len(manifest.files) - _SHOWN:,} more", err=True)
    size = sum(file.size for file in manifest.files)
    click.echo(f"{manifest.pages:,} pages, {len(manifest.files):,} files, {size:,} bytes, in {folder}", err=True)
    click.echo("(They stay there, so that nothing is made twice; delete the folder when you need the space.)", err=True)
