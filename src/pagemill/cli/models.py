"""``pagemill models``."""

from __future__ import annotations

from pathlib import Path

import click

from pagemill.cli.options import json_option
from pagemill.cli.wording import indented_json
from pagemill.config.model_cards import ModelCard, card_names, load_card, tessdata_names
from pagemill.config.model_files import MODELS_VARIABLE, download_model, find_model
from pagemill.errors import MissingInputError

_USE = {
    "recognition": "parse --recognition-engine vlm --model {name}",
    "embedding": "embed --engine vllm --model {name}",
    "layout": "parse --layout-engine {name}",
    "lines": "parse, which takes it as soon as it is here",
    "formulas": "parse, which takes it as soon as it is here",
    "tables": "parse --table-engine table-transformer",
}

CPU_BEST = "cpu-best"
"""Name for all models that improve parsing on the CPU."""
_LISTED = (
    *("name", "title", "kind", "repository", "parameters", "download_bytes"),
    *("licence", "licence_source", "languages", "languages_source"),
)
"""Fields of a card that are printed as JSON."""


@click.group(name="models")
def command() -> None:
    """List, find and download the models that pagemill can use.

    The embedded engines need none of them. Models are searched in the folder named by PAGEMILL_MODELS, then in the
    Hub's cache, or in ~/.cache/pagemill for those that are not on the Hub. With HF_HUB_OFFLINE=1 the network is not
    used.
    """


@command.command(name="list")
@json_option
def list_command(as_json: bool) -> None:
    """List the models for which pagemill has cards."""
    data = [(card, find_model(card)) for card in map(load_card, tessdata_names())]
    models = [(card, find_model(card)) for card in map(load_card, card_names())]
    if as_json:
        rows = [
            {name: getattr(card, name) for name in _LISTED}
            | {"repository": card.repository or None, "folder": None if folder is None else str(folder)}
            | {"use": _USE[card.kind].format(name=card.name)}
            for card, folder in [*models, *data]
        ]
        click.echo(indented_json(rows))
        return
    for card, folder in models:
        if card.repository or card.files:
            size = f"{_size(card.download_bytes)}, {card.licence}"
            here = folder or f"no; download it: pagemill models download {card.name}"
        else:
            size, here = card.licence, None
        click.echo(f"{click.style(card.name, bold=True)}  {card.title} ({size})")
        for label, value in (
            ("use", f"pagemill {_USE[card.kind].format(name=card.name)}"),
            ("from", card.repository or ", ".join(file.url for file in card.files) or "your own server"),
            ("here", here),
            ("languages", card.languages),
        ):
            if value is not None:
                click.echo(f"  {label:<10} {value}")

    click.echo(f"{click.style('tessdata:NAME', bold=True)}  Tesseract's data of further scripts (Apache-2.0)")
    for label, found in (("here", True), ("not here", False)):
        # In one line: there are as many as Tesseract has languages, and they differ in name and size alone.
        if names := [f"{card.name} ({_size(card.download_bytes)})" for card, folder in data if bool(folder) is found]:
            click.echo(f"  {label:<10} {', '.join(names)}")


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def _cpu_best() -> list[ModelCard]:
    return [card for card in map(load_card, card_names()) if card.cpu_best]


@command.command(name="where", short_help="Print the folder of a model's files.")
@click.argument("name")
def where_command(name: str) -> None:
    """Print the folder of a model's files, or fail if some are missing."""
    folder = find_model(load_card(name))
    if folder is None:
        raise MissingInputError(
            f"files of {name} are missing on this machine", remedy=f"Download them: pagemill models download {name}"
        )
    click.echo(folder)


@command.command(name="download", short_help="Download models.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--to", "folder", type=click.Path(path_type=Path), help="Folder for the folders of the models.")
@click.option("--mirror", metavar="URL", help="Mirror of the hosts of the models  [default: HF_ENDPOINT for the Hub]")
def download_command(names: tuple[str, ...], folder: Path | None, mirror: str | None) -> None:
    """Download models. To resume a download, repeat the command.

    The name cpu-best stands for all models that improve parsing on the CPU.

    \b
    pagemill models download cpu-best
    pagemill models download tessdata:heb tessdata:kat   # Hebrew, Georgian
    pagemill models download glm-ocr pp-doclayout-v3
    pagemill models download glm-ocr --to /data/models   # then: export PAGEMILL_MODELS=/data/models
    """  # noqa: D301 - click wants the control character
    wanted = [each for name in names for each in (_cpu_best() if name == CPU_BEST else [load_card(name)])]
    for card in wanted:
        fetched = download_model(card, folder=folder / card.folder if folder else None, endpoint=mirror)
        click.echo(f"{card.name}: {fetched}")
    if folder:
        click.echo(f"To let pagemill find them: export {MODELS_VARIABLE}={folder}")
