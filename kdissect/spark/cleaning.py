"""What happens to a capture in a stream's folder when all of it was read.

The folder is listed before each batch. If captures stay there, this takes longer from day to day. So they may
be deleted or moved once the batch that read their end is final and nothing more will be added to them.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress

from kdissect.spark.spool import Position
from kdissect.spark.storage import (
    file_system,
    found_file,
    is_remote,
    join,
    name_below,
    open_file,
    plain_path,
    split_query,
)
from kdissect.spark.writing import create_file

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
KEEP, DELETE, MOVE = "keep", "delete", "move:"


def destination(when_read: str) -> str | None:
    """The folder to which captures are moved; None if they are not moved.

    :raises ValueError: it is not ``keep``, ``delete`` or ``move:DIR``.
    """
    if when_read in (KEEP, DELETE):
        return None
    place = when_read.removeprefix(MOVE)
    if place == when_read or not place:
        raise ValueError(f"{when_read!r}: keep, delete or move:DIR")
    return place


def clear(position: Position, folder: str, when_read: str) -> None:
    """Delete or move the captures that were read to their end. A capture that has grown since stays.

    :param position: how far all files were read, by final batches.
    :param folder: the folder of the stream.
    :param when_read: as for :func:`destination`.
    :raises ValueError: it is not understood.
    :raises OSError: a capture cannot be moved or deleted.
    :raises CaptureError: another file system cannot be asked.
    """
    if when_read == KEEP:
        return
    place = destination(when_read)
    for path, read in position.items():
        if not read.is_final:
            continue
        now = found_file(path)
        if now is None or now.is_folder or now.size != read.size:
            continue
        with suppress(FileNotFoundError):
            if place is None:
                _delete(path)
            else:
                _move(path, join(place, name_below(folder, path)))


def _delete(path: str) -> None:
    if is_remote(path):
        system, inner = file_system(path)
        system.delete_file(inner)
    else:
        os.unlink(plain_path(path))


def _move(path: str, target: str) -> None:
    """Move a file, but never over another one: ring buffers use the same names again."""
    free, number = target, 1
    base, query = split_query(target)
    while found_file(free) is not None:
        free, number = f"{base}.{number}{query}", number + 1
    if is_remote(path) and not is_remote(free):
        with open_file(path) as source, create_file(free) as copy:  # for its owner only
            shutil.copyfileobj(source, copy)
        _delete(path)
        return
    if is_remote(free):
        from pyarrow import fs

        system, inner = file_system(path)
        other, there = file_system(free)
        other.create_dir(there.rpartition("/")[0], recursive=True)
        fs.copy_files(inner, there, source_filesystem=system, destination_filesystem=other)
        system.delete_file(inner)
        return
    path, free = plain_path(path), plain_path(free)
    os.makedirs(os.path.dirname(free), mode=0o700, exist_ok=True)
    try:
        os.rename(path, free)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # The place is on another file system. An incomplete copy has another name.
        partial = f"{free}.{os.getpid()}~"
        with open(path, "rb") as source, open(os.open(partial, _NEW, 0o600), "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(partial, free)
        os.unlink(path)
