"""The output of a command: stdout or a file, as bytes, coloured or not."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from kdissect.cli.errors import Wrong

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

COLOURS = ("auto", "always", "never")
_BUFFER = 64 << 10

OUTPUT_FILE = click.option(
    "-o", "output", metavar="FILE", help="Write to this file instead of stdout. An existing file is replaced."
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print no progress and no closing line.")


@contextmanager
def open_output(path: str | None, inputs: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """The file to write to; stdout without a path or with ``-``.

    An existing file is replaced, as tshark's ``-w`` and the shell's ``>`` do. A file that is one of the
    ``inputs``, or is in a folder among them, is refused. The file is replaced when the first bytes come, or
    at the end if no bytes come. A command that fails earlier leaves it as it was.

    A new file can only be read by its owner, from the first moment on, because packets contain passwords. An
    existing file keeps its mode.
    """
    if path is None or path == "-":
        sys.stdout.flush()
        stdout = sys.stdout.buffer
        if isinstance(stdout, io.RawIOBase):
            # With PYTHONUNBUFFERED a signal may cut a write short, and the rest would not be written.
            buffered = io.BufferedWriter(stdout)
            try:
                yield cast(BinaryIO, buffered)
            finally:
                buffered.detach()
            return
        yield cast(BinaryIO, stdout)
        stdout.flush()
        return
    refuse_input(path, inputs)
    try:
        raw = _Replaced(path)
    except OSError as error:
        raise Wrong(f"{shown(path)}: cannot be written: {error.strerror}") from None
    with io.BufferedWriter(raw, _BUFFER) as file:
        try:
            yield file
        except Exception:
            file.flush()
            raw.leave()
            raise


def refuse_input(path: str, inputs: Iterable[str]) -> None:
    """Check that writing to ``path`` does not destroy an input.

    :raises Wrong: it is one of the ``inputs``, or a file in a folder among them.
    """
    if not os.path.lexists(path):
        return
    for each in inputs:
        if os.path.isdir(each):
            with suppress(OSError):  # a folder that cannot be listed is not read either
                refuse_input(path, [entry.path for entry in os.scandir(each) if entry.is_file()])
        elif each != "-" and os.path.exists(each) and is_same_file(path, each):
            raise Wrong(f"{shown(path)} is also an input, and writing would destroy it: give another name")


def refuse_same(path: str | None, other: str | None, option: str) -> None:
    """Check that ``path`` is not the file of another option, which may not exist yet.

    :param option: the other option: ``--key``.

    :raises Wrong: both are the same file.
    """
    if path is None or other is None or path == "-":
        return
    if os.path.realpath(path) == os.path.realpath(other):
        raise Wrong(f"-o and {option} both name {shown(path)}: give two different files")


INPUTS = (
    *("files", "more_files", "file", "data", "body", "raw", "log", "captures", "key_logs", "rsa_keys"),
    *("token_file", "password_file", "tls_ca", "tls_cert", "tls_key", "tls_key_password_file"),
)
"""Arguments and options that may name an input file."""


def inputs_of(given: Mapping[str, Any]) -> Iterator[str]:
    """The inputs of a command, by its arguments and options. Some may be contents instead of file names."""
    for name in INPUTS:
        value = given.get(name)
        yield from (value,) if isinstance(value, str) else value or ()


def shown(path: str) -> str:
    """The name of a file in a message; in quotes if it would be invisible there."""
    return path if path.strip() == path != "" else repr(path)


class _Replaced(io.FileIO):
    """A file opened for writing that keeps its contents until the first bytes come, or until it is closed."""

    def __init__(self, path: str) -> None:
        """:raises OSError: it cannot be written."""
        self._keeps = False
        is_new = not os.path.lexists(path)
        super().__init__(path, "wb", opener=_opened_unchanged)
        self._is_new = is_new
        # A pipe or a device has no contents.
        self._keeps = stat.S_ISREG(os.fstat(self.fileno()).st_mode)

    def write(self, data: ReadableBuffer) -> int:
        """Write, as any file does.

        :raises OSError: with the name of the file.
        """
        try:
            self._replace()
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from None

    def close(self) -> None:
        if not self.closed:
            self._replace()
        super().close()

    def leave(self) -> None:
        """Close it unchanged, if nothing was written."""
        if self._keeps and self._is_new:
            with suppress(OSError):
                os.unlink(self.name)
        self._keeps = False

    def _replace(self) -> None:
        if self._keeps:
            self._keeps = False
            self.truncate(0)


def _opened_unchanged(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o600)


def is_same_file(one: str, other: str) -> bool:
    """Whether two names, which may be ``-``, refer to the same file; devices do not count."""
    if "-" in (one, other):
        return one == other
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other) and os.path.isfile(one)
    return os.path.realpath(one) == os.path.realpath(other)


def refuse_terminal(form: str, path: str | None) -> None:
    """Refuse to write binary formats to a terminal.

    :raises Wrong: a binary format would go to one.
    """
    if path is None and sys.stdout.isatty():
        raise Wrong(f"{form} is binary: give -o FILE, or pipe it into something")


def stdout_pipe() -> int | None:
    """The descriptor of stdout if it is a pipe, whether or not its reader is still there."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (OSError, ValueError):
        return None  # it is no file


def uses_colour(choice: str, path: str | None) -> bool:
    """Whether to use colours: the flag counts before ``NO_COLOR``, then ``FORCE_COLOR`` and
    ``CLICOLOR_FORCE``, then the kind of stdout."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return path in (None, "-") and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class TextOutput:
    """Lines of text over a file of bytes. A character that the encoding lacks becomes an escape."""

    def __init__(self, file: BinaryIO, path: str | None = None, flush: bool = False) -> None:
        self._file = file
        to_terminal = path in (None, "-") and sys.stdout.isatty()
        self._encoding = (sys.stdout.encoding if to_terminal else None) or "utf-8"
        self._flushes = flush or to_terminal
        self.room = _terminal_columns() if to_terminal else None
        """The width of the terminal in cells; None if it is no terminal."""

    def line(self, text: str) -> None:
        """Write one line."""
        self.lines((text,))

    def lines(self, texts: Iterable[str]) -> None:
        """Write lines."""
        self._write("\n".join((*texts, "")).encode(self._encoding, "backslashreplace"))

    def write(self, lines: bytes) -> None:
        """Write whole lines in UTF-8."""
        if self._encoding.lower() not in ("utf-8", "utf8"):
            lines = lines.decode().encode(self._encoding, "backslashreplace")
        self._write(lines)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        if self._flushes:
            self._file.flush()


def colour_option(function: click.decorators.FC) -> click.decorators.FC:
    """``--color``."""
    return click.option(
        "--color", type=click.Choice(COLOURS), default=None, help="Use colour: auto means on a terminal only."
    )(function)


def _terminal_columns() -> int:
    from shutil import get_terminal_size  # importing it takes longer than this check

    return get_terminal_size().columns
