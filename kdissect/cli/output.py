"""Where a command's data goes: stdout or a file, as bytes; and whether it is coloured."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import click

from kdissect.cli.errors import Wrong

COLOURS = ("auto", "always", "never")


@contextmanager
def open_output(path: str | None, inputs: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """The file to write to; stdout without a path or with ``-``.

    A file that is there is replaced, as tshark's ``-w`` and the shell's ``>`` do, unless it is one of
    the ``inputs``.
    """
    if path is None or path == "-":
        stdout = cast(BinaryIO, sys.stdout.buffer)
        sys.stdout.flush()
        yield stdout
        stdout.flush()
        return
    with open_file(path, inputs) as file:
        yield file


def open_file(path: str, inputs: Iterable[str] = ()) -> BinaryIO:
    """A file opened for writing.

    :raises Wrong: it cannot be, or it is an input.
    """
    for each in inputs:
        if each != "-" and is_same_file(path, each):
            raise Wrong(f"{path} is an input too; writing would destroy it: give another name")
    try:
        return open(path, "wb")
    except OSError as error:
        raise Wrong(f"{path}: cannot be written: {error.strerror}") from None


def is_same_file(one: str, other: str) -> bool:
    """Whether two names, ``-`` among them, are of one place; devices are no place."""
    if "-" in (one, other):
        return one == other
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other) and os.path.isfile(one)
    return os.path.realpath(one) == os.path.realpath(other)


def refuse_terminal(form: str, path: str | None) -> None:
    """Binary formats are nothing for a terminal."""
    if path is None and sys.stdout.isatty():
        raise Wrong(f"{form} is binary: give -o FILE, or pipe it into something")


def wants_colour(choice: str, path: str | None) -> bool:
    """Flag before ``NO_COLOR``, before ``FORCE_COLOR`` and ``CLICOLOR_FORCE``, before what stdout is."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return path in (None, "-") and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class TextOutput:
    """Lines of text over a file of bytes; a character that its encoding lacks becomes an escape."""

    def __init__(self, file: BinaryIO, path: str | None = None, flush: bool = False) -> None:
        self._file = file
        to_terminal = path in (None, "-") and sys.stdout.isatty()
        self._encoding = (sys.stdout.encoding if to_terminal else None) or "utf-8"
        self._flushes = flush or to_terminal

    def line(self, text: str) -> None:
        """Write one line."""
        self._file.write(text.encode(self._encoding, "backslashreplace") + b"\n")
        if self._flushes:
            self._file.flush()


def colour_option(function: click.decorators.FC) -> click.decorators.FC:
    """``--color``."""
    return click.option(
        "--color", type=click.Choice(COLOURS), default=None, help="Colour: auto is on a terminal only."
    )(function)
