"""``kdissect help``: the documentation pages, rendered on a terminal."""

from __future__ import annotations

import os
import shutil
import sys

import click
from click.shell_completion import CompletionItem

from kdissect.cli.errors import Wrong
from kdissect.help import TOPICS, page, title
from kdissect.present.help_tables import HELP_TABLES
from kdissect.present.nearest import nearest

WIDEST = 110
"""The most columns of a rendered page: longer lines are hard to read."""


def _a_topic(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(topic, help=title(topic)) for topic in TOPICS if topic.startswith(incomplete)]


@click.command()
@click.argument("topic", required=False, shell_complete=_a_topic)
def command(topic: str | None) -> None:
    """Show a page of the documentation, or list the pages.

    A terminal shows the page rendered, through the pager of PAGER. Elsewhere it is Markdown.
    """
    if topic is None:
        width = max(map(len, TOPICS))
        for each in TOPICS:
            click.echo(f"{each:<{width}}  {title(each)}")
        click.echo("\nkdissect help TOPIC shows a page, kdissect COMMAND --help the options of a command.")
        return
    try:
        text = page(topic, HELP_TABLES)
    except LookupError:
        hint = nearest(topic, TOPICS) or f"; there are {', '.join(TOPICS)}"
        raise Wrong(f"there is no page {topic}{hint}") from None
    if sys.stdout.isatty():
        click.echo_via_pager(_rendered(text))
    else:
        click.echo(text, nl=False)


def _rendered(text: str) -> str:
    """Markdown rendered for this terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    width = min(shutil.get_terminal_size().columns, WIDEST)
    console = Console(width=width, force_terminal=True, no_color="NO_COLOR" in os.environ)
    with console.capture() as capture:
        console.print(Markdown(text))
    return capture.get()
