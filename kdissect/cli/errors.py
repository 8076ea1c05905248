"""How commands fail: an exception with its exit code, and the one line that the user sees."""

from __future__ import annotations

import re
import sys
from contextlib import suppress

import click

from kdissect.cli.exit_codes import NOT_PERMITTED, OTHER_SIDE_FAILED, UNREADABLE, USAGE
from kdissect.model import Fault
from kdissect.present.sanitise import sanitise

MOST_COMPLAINTS = 10
"""Damage to files that is told one by one; what goes beyond is counted."""


class Wrong(click.ClickException):
    """What was asked for cannot be done as it was asked: usage, a name, an output."""

    exit_code = USAGE

    def __init__(self, message: str, below: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.below = below
        """Lines that show the place, safe to print."""


class Unreadable(click.ClickException):
    """The input cannot be read."""

    exit_code = UNREADABLE


class OtherSideFailed(click.ClickException):
    """A broker did not do what was asked of it."""

    exit_code = OTHER_SIDE_FAILED


class CaptureRefused(click.ClickException):
    """The system does not permit to capture."""

    exit_code = NOT_PERMITTED


class ClosedPipeError(Exception):
    """The reader of our output has gone."""


class StoppedError(Exception):
    """The user pressed Ctrl-C."""


def complain(message: str, usage: click.UsageError | None = None) -> None:
    """One line on stderr."""
    text = re.sub(r"\s*\n\s*", " ", message)
    if usage is not None and usage.ctx is not None:
        text = f"{text.rstrip('.')} (see {usage.ctx.command_path} --help)"
    with suppress(OSError):  # where nothing can be said, the exit code still is
        print(f"kdissect: {sanitise(text, None)}", file=sys.stderr)  # noqa: T201


class Complaints:
    """Damage to files, told as it comes to light: one by one at first, then only counted."""

    def __init__(self) -> None:
        self._count = 0

    def tell(self, name: str | None, fault: Fault) -> None:
        """What is wrong with a file; without a name the message has it."""
        where = "" if fault.offset is None else f" (at byte {fault.offset:,})"
        self.say(f"{'' if name is None else f'{name}: '}{fault.message}{where}")

    def say(self, text: str) -> None:
        """One more, in words."""
        self._count += 1
        if self._count <= MOST_COMPLAINTS:
            complain(text)

    def __bool__(self) -> bool:
        """Whether there was any."""
        return self._count > 0

    def close(self) -> None:
        """Nothing more comes."""
        if self._count > MOST_COMPLAINTS:
            complain(f"and {self._count - MOST_COMPLAINTS} more such places")
