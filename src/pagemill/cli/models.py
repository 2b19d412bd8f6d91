"""``pagemill models``."""

from __future__ import annotations

from pathlib import Path

import click

_USE = {
    "recognition": "parse --recognition-engine vlm --model {name}",
    "embedding": "embed --engine vllm --model {name}",
    "layout": "parse --layout-engine {name}",
}


@click.group(name="models", short_help="List, find and download models.")
def command() -> None:
    """Models that pagemill can use: what they are for, how large they are, under which licence, where they lie.

    The engines that come with pagemill need none of them. Models are looked for in the folder that PAGEMILL_MODELS
    names, then in the Hub's cache; with HF_HUB_OFFLINE=1 nothing is asked of the network.
    """


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def list_command(as_json: bool) -> None:
    """List the models that pagemill has cards of."""
    from pagemill.config.model_cards import card_names, load_card
    from pagemill.config.model_files import find_model

    models = [(card, find_model(card)) for card in map(load_card, card_names())]
    if as_json:
        import json

        rows = [
            {
                "name": card.name,
                "title": card.title,
                "kind": card.kind.value,
                "repository": card.repository or None,
                "parameters": card.parameters,
                "download_bytes": card.download_bytes,
                "licence": card.licence,
                "licence_source": card.licence_source,
                "languages": card.languages,
                "languages_source": card.languages_source,
                "folder": None if folder is None else str(folder),
                "use": _USE[card.kind].format(name=card.name),
            }
            for card, folder in models
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for card, folder in models:
        if card.repository:
            size = f"{card.download_bytes / 1e9:.1f} GB, {card.licence}"
            here = folder or f"no; get it with: pagemill models download {card.name}"
        else:
            size, here = card.licence, None
        click.echo(f"{click.style(card.name, bold=True)}  {card.title} ({size})")
        for label, value in (
            ("use", f"pagemill {_USE[card.kind].format(name=card.name)}"),
            ("from", card.repository or "your own server"),
            ("here", here),
            ("languages", card.languages),
        ):
            if value is not None:
                click.echo(f"  {label:<10} {value}")


@command.command(name="where", short_help="Print the folder of a model's files.")
@click.argument("name")
def where_command(name: str) -> None:
    """Print the folder of a model's files; an error when they are not all there."""
    from pagemill.config.model_cards import load_card
    from pagemill.config.model_files import find_model
    from pagemill.errors import MissingInputError

    folder = find_model(load_card(name))
    if folder is None:
        raise MissingInputError(
            f"the files of {name} are not (all) on this machine", remedy=f"Get them: pagemill models download {name}"
        )
    click.echo(folder)


@command.command(name="download", short_help="Fetch models ahead of a run.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--to", "folder", type=click.Path(path_type=Path), help="Folder to make a folder of each model in.")
@click.option("--mirror", metavar="URL", help="Mirror of the Hub to download from  [default: HF_ENDPOINT]")
def download_command(names: tuple[str, ...], folder: Path | None, mirror: str | None) -> None:
    """Fetch models ahead of a run; a download that stopped goes on with the files that it lacks.

    \b
    pagemill models download glm-ocr pp-doclayout-v3
    pagemill models download glm-ocr --to /data/models   # then: export PAGEMILL_MODELS=/data/models
    """  # noqa: D301 - click wants the control character
    from pagemill.config.model_cards import load_card
    from pagemill.config.model_files import MODELS_VARIABLE, download_model

    for card in [load_card(name) for name in names]:
        fetched = download_model(card, folder=folder / card.name if folder else None, endpoint=mirror)
        click.echo(f"{card.name}: {fetched}")
    if folder:
        click.echo(f"Let pagemill find them: export {MODELS_VARIABLE}={folder}")
