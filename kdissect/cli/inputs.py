"""Files on the command line → packets.

An input that can be read only once is kept in a file if it must be read twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedIOBase
from typing import IO, Any

import click

from kdissect.capture.files import Capture, in_folders, open_capture, read_packets
from kdissect.capture.reader import Points
from kdissect.cli.errors import Unreadable, Wrong
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError
from kdissect.system import named_file

FILES = click.argument("files", nargs=-1, metavar="FILE… | -")
MORE_FILES = click.option(
    "-r", "more_files", multiple=True, metavar="FILE", help="A capture, as with tshark."
)
PORTS = click.option(
    "-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Treat traffic of this port as Kafka."
)


def packets_of(paths: Iterable[str], limits: Limits = DEFAULTS, points: Points | None = None) -> Capture:
    """The packets of these files, of these capture points.

    :raises Unreadable: no file can be read.
    """
    try:
        return read_packets(paths, limits, open_file, points=points)
    except CaptureError as error:
        raise Unreadable(str(error)) from None


def captures_of(given: dict[str, Any]) -> tuple[str, ...]:
    """The captures of ``-r`` and of the arguments, in the form of :func:`listed`.

    :raises Unreadable: a folder has no files.
    """
    return listed((*given["more_files"], *given["files"]))


def listed(paths: Iterable[str]) -> tuple[str, ...]:
    """The captures, with each folder replaced by the files in it.

    :raises Unreadable: a folder has no files.
    """
    try:
        return in_folders(paths)
    except CaptureError as error:
        raise Unreadable(str(error)) from None


_DECODE_AS = r"tcp\.port==([0-9]{1,19}),kafka"


def ports_of(rules: Iterable[str]) -> frozenset[int]:
    """The ports of ``-d`` rules.

    :raises Wrong: a rule has another form, or an impossible port.
    """
    ports = set()
    for rule in rules:
        found = re.fullmatch(_DECODE_AS, rule.replace(" ", ""), re.IGNORECASE)
        if found is None:
            raise Wrong(f"-d {rule}: the form is tcp.port==N,kafka")
        port = int(found[1])
        if not 0 < port < 65_536:
            raise Wrong(f"-d {rule}: there is no port {port}: ports are 1 to 65535")
        ports.add(port)
    return frozenset(ports)


class KeptInput(str):
    """The path of an input that can be read only once, with a file that keeps its contents."""

    kept: str
    """The path of that file."""
    files: ExitStack
    """Closes the files that nothing else closes."""


def reads_once(path: str) -> bool:
    """Whether an input can be read only once: standard input, a named pipe, a shell's ``<(…)``."""
    if path == "-" or isinstance(path, KeptInput):
        return not isinstance(path, KeptInput)
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def read_twice(paths: tuple[str, ...], twice: bool) -> Iterator[tuple[str, ...]]:
    """Paths that can be read more than once. Other inputs are first kept in temporary files.

    :raises Unreadable: one of those cannot be read.
    """
    with ExitStack() as files:
        kept: list[str] = []
        for path in paths:
            if twice and reads_once(path):
                spool = files.enter_context(named_file(".spool"))
                kept.append(_spooled(path, spool, files))
            else:
                kept.append(path)
        yield tuple(kept)


def _spooled(path: str, file: IO[bytes], files: ExitStack) -> KeptInput:
    from shutil import copyfileobj  # only reading twice needs it

    try:
        source = open_capture(path)
        copyfileobj(source, file)
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror or error}") from None
    if path != "-":
        source.close()
    file.flush()
    out = KeptInput(path)
    out.kept, out.files = file.name, files
    return out


def open_file(path: str) -> BufferedIOBase:
    """Open a file as :func:`open_capture` does. Readers of standard input never close it, even if a file
    keeps it."""
    if not isinstance(path, KeptInput):
        return open_capture(path)
    file = open_capture(path.kept)
    return path.files.enter_context(file) if path == "-" else file
