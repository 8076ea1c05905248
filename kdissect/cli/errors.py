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
"""The most faults of files that are reported one by one; further ones are only counted."""


class Wrong(click.ClickException):
    """The request cannot be done as it was given: usage, a name, an output."""

    exit_code = USAGE

    def __init__(self, message: str, below: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.below = below
        """Lines that show the place, safe to print."""


class Unreadable(click.ClickException):
    """The input cannot be read."""

    exit_code = UNREADABLE


class OtherSideFailed(click.ClickException):
    """A broker did not do what it was asked."""

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
    with suppress(OSError):  # without stderr the exit code still tells
        print(f"kdissect: {sanitise(text, None)}", file=sys.stderr)  # noqa: T201


class Complaints:
    """Damage to files, reported when it is found: one by one at first, then only counted."""

    def __init__(self) -> None:
        self._count = 0

    def report_fault(self, name: str | None, fault: Fault) -> None:
        """Report damage to a file; without a name, the message contains it."""
        where = "" if fault.offset is None else f" (at byte {fault.offset:,})"
        self.report(f"{'' if name is None else f'{name}: '}{fault.message}{where}")

    def report(self, text: str) -> None:
        """Report a further damage, in words."""
        self._count += 1
        if self._count <= MOST_COMPLAINTS:
            complain(text)

    def __bool__(self) -> bool:
        """Whether there was any damage."""
        return self._count > 0

    def close(self) -> None:
        """At the end, report the number of further faults."""
        if self._count > MOST_COMPLAINTS:
            complain(f"and {self._count - MOST_COMPLAINTS} more such places")
