"""``kdissect`` itself: the list of commands, and the behaviour without a command."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from kdissect import __version__
from kdissect.cli.errors import ClosedPipeError, StoppedError
from kdissect.cli.group import HelpfulGroup
from kdissect.cli.terminals import can_draw_screens
from kdissect.present.nearest import nearest

COMMANDS = {
    "read": "Captures → exchanges, records, connections, faults.",
    "live": "An interface → exchanges, as they happen.",
    "explain": "Captures → what is wrong, why, and what to do.",
    "report": "Captures → one page to send, with all that is known of them.",
    "diff": "Two captures → what changed: findings, rates, times, errors, versions, sizes.",
    "stats": "Captures → response times, topics, groups, connections, clients, errors, io.",
    "cluster": "Captures → brokers, topics, leaders and settings at a time, and what changed.",
    "graph": "Captures → who exchanges what with whom: dot, graphml, mermaid, json.",
    "scrub": "A capture → one to send away: no names, addresses, contents or secrets.",
    "tui": "Captures on the screen: list, tree and bytes.",
    "web": "The screens in a browser.",
    "spark": "Many captures → tables, on Spark.",
    "wireshark": "kdissect inside Wireshark: a plug-in and interfaces.",
    "extcap": "The interfaces that Wireshark asks kdissect for.",
    "interfaces": "The interfaces of this machine.",
    "log": "Broker log directories and files → records, batches, index entries.",
    "bytes": "Raw bytes of messages, records or internal records → decoded, and back.",
    "schema": "Kafka's messages, field by field.",
    "client": "Requests of any version to a broker: metadata, produce, fetch, send, conformance.",
    "fields": "The columns, their aliases, and the kinds of faults.",
    "help": "The documentation, page by page.",
    "doctor": "What is installed, what is missing, what is in use.",
    "completion": "Completion for bash, zsh or fish.",
}
"""The summary of each command. A command is ``command`` in the module of its name."""


def _is_word(text: str) -> bool:
    """Whether a word may be meant as a command: it is no option and does not look like a file name."""
    return not text.startswith("-") and "." not in text and os.path.basename(text) == text


def _command(name: str) -> click.Command:
    found: click.Command = import_module(f"kdissect.cli.commands.{name}").command
    return found


def _is_for_screens(args: list[str]) -> bool:
    """Whether the screens have every given option."""
    options = (each for each in _command("tui").params if isinstance(each, click.Option))
    known = {name for option in options for name in option.opts}
    given = {
        arg.partition("=")[0] if arg.startswith("--") else arg[:2] for arg in args if arg[:1] == "-" != arg
    }
    return given <= known


def _has_terminal(args: list[str]) -> bool:
    """Whether there is a terminal that can show the screens."""
    streams = [sys.stdout, sys.stderr] if "-" in args else [sys.stdin, sys.stdout, sys.stderr]
    return all(stream.isatty() for stream in streams) and can_draw_screens()


class Root(HelpfulGroup):
    """Imports a command when it runs. Anything else counts as files: for the screens on a terminal, else for
    ``read``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return _command(cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Treat ``kdissect FILE…`` and ``kdissect -r FILE`` as ``kdissect tui …``, or as ``kdissect read …``
        without a terminal or with an option that the screens do not have."""
        if not args and _has_terminal(args):
            args = ["tui"]
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if args and args[0] not in COMMANDS and args[0] not in own:
            if _is_word(args[0]) and not os.path.exists(args[0]):
                hint = nearest(args[0], COMMANDS) or f"; there are {', '.join(COMMANDS)}"
                raise click.UsageError(f"there is no command or file {args[0]}{hint}", ctx)
            is_for_screens = _has_terminal(args) and _is_for_screens(args)
            args = ["tui" if is_for_screens else "read", *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ClosedPipeError from None  # click would end the process itself
        except KeyboardInterrupt:
            raise StoppedError from None  # click would print an empty line


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    subcommand_metavar="COMMAND [OPTION]… | FILE…",
)
@click.version_option(__version__, prog_name="kdissect", message="%(prog)s %(version)s")
def root() -> None:
    """The network protocol analyzer for Apache Kafka.

    On a terminal, kdissect FILE… opens the screens, as kdissect tui does. Elsewhere it prints, as kdissect
    read does.
    """
