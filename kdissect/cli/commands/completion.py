"""``kdissect completion``: the script that makes a shell complete kdissect's commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash   source <(kdissect completion bash)
    zsh    source <(kdissect completion zsh)
    fish   kdissect completion fish | source
    """
    from kdissect.cli.root import root

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "kdissect", "_KDISSECT_COMPLETE").source())
