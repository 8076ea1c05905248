"""Names of captures → files, here or wherever ``pyarrow.fs`` reaches (``s3://``, ``hdfs://``, ``gs://``).

A directory stands for the files in it, but for those whose names begin with ``.`` or ``_``, as Spark has
it; a glob for what it matches, here only.
"""

from __future__ import annotations

import os
from glob import glob, has_magic
from io import BufferedIOBase
from typing import Any, NamedTuple, cast

from kdissect.capture.files import open_capture, read_packets
from kdissect.model import CaptureError


class File(NamedTuple):
    """A file of the input."""

    path: str
    size: int
    """Bytes; 0 where that cannot be told."""


def is_remote(path: str) -> bool:
    """Whether it is the URI of another file system."""
    return "://" in path and not path.startswith("file://")


def list_files(paths: list[str]) -> list[File]:
    """The files that these names stand for, each once, in this order; those of a directory by name.

    A file that is not there is listed all the same: reading it tells why, as ``kdissect read`` does.

    :raises CaptureError: a directory is empty, a glob matches nothing, a file system cannot be reached.
    """
    found: dict[str, int] = {}
    for path in paths:
        for file in _remote(path) if is_remote(path) else _local(path.removeprefix("file://")):
            found.setdefault(file.path, file.size)
    return [File(path, size) for path, size in found.items()]


def open_file(path: str) -> BufferedIOBase:
    """Any of these files, opened for reading.

    :raises CaptureError: it is a directory.
    :raises OSError: it cannot be opened.
    """
    if not is_remote(path):
        return open_capture(path)
    system, inner = _system(path)
    return cast(BufferedIOBase, system.open_input_stream(inner, compression=None, buffer_size=1 << 20))


def refuse_unreadable(paths: list[str]) -> None:
    """See whether one of these files is a capture: some that are not are damage, all of them are a mistake.

    :raises CaptureError: none is.
    """
    first: CaptureError | None = None
    for path in paths:
        try:
            read_packets([path], opener=open_file).close()
        except CaptureError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise CaptureError(
            str(first) if len(paths) == 1 else f"none of {len(paths):,} files is a capture: {first}"
        )


def _local(path: str) -> list[File]:
    if os.path.isdir(path):
        inside = [entry for entry in os.scandir(path) if counts(entry.name) and entry.is_file()]
        if not inside:
            raise CaptureError(f"{path}: no file is in this directory")
        return sorted(File(entry.path, entry.stat().st_size) for entry in inside)
    if has_magic(path) and not os.path.exists(path):
        matched = sorted(each for each in glob(path) if os.path.isfile(each))
        if not matched:
            raise CaptureError(f"{path}: no file has such a name")
        return [File(each, os.path.getsize(each)) for each in matched]
    return [File(path, os.path.getsize(path) if os.path.isfile(path) else 0)]


def _remote(path: str) -> list[File]:
    from pyarrow import fs

    system, inner = _system(path)
    try:
        info = system.get_file_info(inner)
        if info.type != fs.FileType.Directory:
            return [File(path, info.size or 0)]
        inside = [
            each
            for each in system.get_file_info(fs.FileSelector(inner))
            if each.type == fs.FileType.File and counts(each.base_name)
        ]
    except OSError as error:
        raise CaptureError(f"{path}: cannot be listed: {error}") from None
    if not inside:
        raise CaptureError(f"{path}: no file is in this directory")
    return sorted(File(f"{path.rstrip('/')}/{each.base_name}", each.size) for each in inside)


def _system(path: str) -> tuple[Any, str]:
    from pyarrow import ArrowInvalid, fs

    try:
        system, inner = fs.FileSystem.from_uri(path)
    except (ArrowInvalid, OSError) as error:
        raise CaptureError(f"{path}: {error}") from None
    return system, inner


def counts(name: str) -> bool:
    """Whether a file of this name counts in a directory."""
    return not name.startswith((".", "_"))
