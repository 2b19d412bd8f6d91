"""``pagemill publish``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pagemill.publishing.manifest import Manifest

LICENCE = re.compile(r"[a-z0-9][a-z0-9.+\-]{0,63}")
REPOSITORY = re.compile(r"[\w.\-]{1,96}/[\w.\-]{1,96}")


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
    partial: bool,
    dry_run: bool,
    hf_token: str | None,
) -> None:
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
    if licence is None:
        if not sys.stdin.isatty():
            raise click.UsageError("name the licence of the pages: --licence ID, such as cc-by-4.0, other, unknown")
        licence = click.prompt("Licence of the pages (cc-by-4.0, cc0-1.0, other, unknown, ...)", err=True)
    if not LICENCE.fullmatch(licence):
        raise click.BadParameter("it is an identifier such as cc-by-4.0", param_hint="--licence")

    from pagemill.publishing.build import BuildOptions, Shape, build
    from pagemill.publishing.hub import HubDataset
    from pagemill.publishing.storage import StoredDataset
    from pagemill.store.reading import RunReader

    options = BuildOptions(
        licence=licence,
        title=title or out.resolve().name,
        repository=repo,
        shape=Shape(shape),
        crops=crops,
        embeddings=embeddings,
        partial=partial,
    )
    target: HubDataset | StoredDataset = (
        HubDataset(repo, hf_token, revision, private) if repo else StoredDataset(url or "")
    )
    with (
        RunReader.open(out) as reader,
        click.progressbar(length=reader.summary.pages, label="Making", file=sys.stderr) as bar,
    ):
        folder, manifest = build(reader, out, options, lambda page: bar.update(1))
    _describe(folder, manifest)
    if dry_run:
        click.echo((folder / "README.md").read_text(encoding="utf-8"))
        click.echo("Nothing was uploaded (--dry-run).", err=True)
        return
    size = sum(file.size for file in manifest.files)
    with click.progressbar(length=size, label="Uploading", file=sys.stderr) as bar:
        address = target.publish(folder, manifest, lambda file: bar.update(file.size))
    click.echo(f"Published and verified: {address}", err=True)


def _describe(folder: Path, manifest: Manifest) -> None:
    for file in manifest.files:
        click.echo(f"  {file.size:>14,}  {file.path}", err=True)
    size = sum(file.size for file in manifest.files)
    click.echo(f"{manifest.pages:,} pages, {len(manifest.files):,} files, {size:,} bytes, in {folder}", err=True)
