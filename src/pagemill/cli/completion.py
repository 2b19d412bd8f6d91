"""``pagemill completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script by which a shell completes commands and options.

    \b
    pagemill completion bash >> ~/.bashrc
    pagemill completion zsh >> ~/.zshrc
    pagemill completion fish > ~/.config/fish/completions/pagemill.fish
    """  # noqa: D301 - click wants the control character
    from pagemill.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "pagemill", "_PAGEMILL_COMPLETE").source())
