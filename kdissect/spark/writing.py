"""Files that kdissect writes itself: here, or wherever ``pyarrow.fs`` reaches."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO, cast

from kdissect.model import CaptureError
from kdissect.spark.storage import file_system, is_remote, join, name_below, plain_path

ENDED = "_SUCCESS"
"""The file by which Spark, too, shows that a table is complete."""


def can_write(folder: str) -> bool:
    """Make a folder, here or on another file system, without Spark; return whether it exists now."""
    try:
        if not is_remote(folder):
            _make_folder(plain_path(folder))
            return True
        system, inner = file_system(folder)
        system.create_dir(inner, recursive=True)
    except (CaptureError, OSError):
        return False
    return True


def create_file(path: str) -> BinaryIO:
    """A new file, readable by its owner only if the file system can do that. Makes its folder.

    :raises OSError: it cannot be made.
    """
    if is_remote(path):
        system, inner = file_system(path)
        return cast(BinaryIO, system.open_output_stream(inner))
    path = plain_path(path)
    _make_folder(os.path.dirname(path))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def read_file(path: str) -> BinaryIO:
    """A file that a worker wrote.

    :raises OSError: it cannot be read.
    """
    if is_remote(path):
        system, inner = file_system(path)
        return cast(BinaryIO, system.open_input_file(inner))
    return open(plain_path(path), "rb")


def is_there(path: str) -> bool:
    """Whether a file of a worker is found. In an object store all processes find the same files."""
    return is_remote(path) or os.path.exists(plain_path(path))


def remove(path: str) -> None:
    """Remove a file, or a folder with all files in it. It may be gone already.

    :raises CaptureError: another file system cannot be reached.
    :raises OSError: a file cannot be removed. This does not hold for files in a folder of this machine: they
        stay, and nothing is raised.
    """
    if is_remote(path):
        from pyarrow import fs

        system, inner = file_system(path)
        kind = system.get_file_info(inner).type
        if kind == fs.FileType.Directory:
            system.delete_dir(inner)
        elif kind == fs.FileType.File:
            system.delete_file(inner)
        return
    path = plain_path(path)
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)


def move_files(files: Sequence[str], old: str, new: str) -> None:
    """Move some files of a folder to a new one, and remove the old folder with the rest.

    A local folder is renamed, so that all files are there at once. On other file systems they come one by
    one. The file ``_SUCCESS`` is the last: it shows readers that all files exist.

    :raises OSError: they cannot be moved.
    """
    if not is_remote(old) and not is_remote(new):
        old, new = plain_path(old), plain_path(new)
        _make_folder(old)
        wanted = {path.rpartition("/")[2] for path in files}
        for name in set(os.listdir(old)) - wanted:  # from attempts that failed
            os.unlink(f"{old}/{name}")
        create_file(join(old, ENDED)).close()
        _make_folder(os.path.dirname(new))
        os.rename(old, new)
        return
    from pyarrow import fs

    system, _ = file_system(old)
    other, inner = file_system(new)
    other.create_dir(inner, recursive=True)
    for path in files:
        target = f"{inner}/{name_below(old, path)}"
        if system.equals(other):
            system.move(file_system(path)[1], target)
        else:
            fs.copy_files(
                file_system(path)[1], target, source_filesystem=system, destination_filesystem=other
            )
    with other.open_output_stream(f"{inner}/{ENDED}"):
        pass
    remove(old)


def _make_folder(path: str) -> None:
    """Make a folder and those above it, for their owner only."""
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        _make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
