"""How commands fail: an exception with its exit code, and the one line that the user sees."""

from __future__ import annotations

import sys

import click

from kdissect.cli import UNREADABLE, USAGE
from kdissect.present.sanitise import sanitise


class Wrong(click.ClickException):
    """What was asked for cannot be done as it was asked: usage, a name, an output."""

    exit_code = USAGE


class Unreadable(click.ClickException):
    """The input cannot be read."""

    exit_code = UNREADABLE


class ClosedPipeError(Exception):
    """Whoever read our output has gone."""


class StoppedError(Exception):
    """The user pressed Ctrl-C."""


def complain(message: str, usage: click.UsageError | None = None) -> None:
    """One line on stderr."""
    text = " ".join(message.split("\n"))
    if usage is not None and usage.ctx is not None:
        text = f"{text.rstrip('.')} (see {usage.ctx.command_path} --help)"
    print(f"kdissect: {sanitise(text, None)}", file=sys.stderr)  # noqa: T201
