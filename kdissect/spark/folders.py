"""A folder of small files, each of which is complete or missing: here, or wherever ``pyarrow.fs`` reaches.

Names are relative to the folder, with ``/`` between. A new file replaces one with the same name.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, Protocol

from kdissect.spark.hdfs import is_hdfs
from kdissect.spark.storage import file_system, is_remote, plain_path


class UntrustedError(Exception):
    """Another user may have written a file; the text is one line."""


class SmallFiles(Protocol):
    """The folder. On other file systems, each method also raises CaptureError: the file system cannot be
    reached."""

    def prepare(self) -> None:
        """Make the folder, if it is not there.

        :raises OSError: it cannot be made.
        """

    def names(self) -> list[str]:
        """The existing files, also those in folders in it; empty if the folder does not exist.

        :raises OSError: another file system does not answer.
        """

    def read(self, name: str) -> bytes:
        """All bytes of a file.

        :raises FileNotFoundError: it does not exist.
        :raises OSError: it cannot be read.
        """

    def first_line(self, name: str) -> bytes:
        """The bytes of a file up to its first newline, which may be included; all bytes if it has none.

        :raises OSError: it cannot be read.
        """

    def write(self, name: str, data: bytes) -> None:
        """Write a file, and make the folders that its name needs.

        :raises OSError: it cannot be written.
        """

    def move(self, old: str, new: str) -> None:
        """Rename a folder in it. On this machine, a folder with the new name is removed first. On other file
        systems the files are moved into it one by one.

        :raises OSError: it cannot be moved.
        """

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its contents, if it exists.

        :raises OSError: a file cannot be removed.
        """

    def tidy(self) -> None:
        """Remove folders without files, and unfinished files of killed processes.

        :raises OSError: a file cannot be removed.
        """

    def refuse_others(self, name: str = "") -> None:
        """Check that no other user can write to a file, or to the folder itself. On other file systems nobody
        knows, and a signature must show it.

        :param name: the name of the file; empty for the folder.
        :raises UntrustedError: other users can.
        :raises OSError: it does not exist.
        """


def small_files(folder: str) -> SmallFiles:
    """The folder of this name, or URI."""
    return ElsewhereFiles(folder) if is_remote(folder) else LocalFiles(plain_path(folder))


class LocalFiles:
    """A folder on this machine, or on a file system that it mounts. Only the owner can read files."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def prepare(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def names(self) -> list[str]:
        return [path for path in self._all() if not _is_partial(path)]

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def first_line(self, name: str) -> bytes:
        with (self._folder / name).open("rb") as file:
            return file.readline()

    def write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        for parent in reversed(path.relative_to(self._folder).parents):
            (self._folder / parent).mkdir(mode=0o700, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}~")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)

    def move(self, old: str, new: str) -> None:
        rmtree(self._folder / new, ignore_errors=True)
        os.rename(self._folder / old, self._folder / new)

    def remove(self, name: str) -> None:
        path = self._folder / name
        if path.is_dir():
            rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def tidy(self) -> None:
        for name in self._all():
            if _is_partial(name):
                (self._folder / name).unlink(missing_ok=True)
        for parent, _, _ in os.walk(self._folder, topdown=False):
            if Path(parent) != self._folder:
                with suppress(OSError):  # it is not empty
                    os.rmdir(parent)

    def refuse_others(self, name: str = "") -> None:
        path = self._folder / name if name else self._folder
        found = os.stat(path)
        if found.st_uid != os.geteuid():
            raise UntrustedError(
                f"{path} belongs to another user, and loading a checkpoint runs code from it: use your own"
            )
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UntrustedError(
                f"other users can write to {path}, and loading a checkpoint runs code from it: chmod go-w"
                f" {path}"
            )

    def _all(self) -> list[str]:
        return [
            os.path.relpath(os.path.join(parent, name), self._folder)
            for parent, _, names in os.walk(self._folder)
            for name in names
        ]


class ElsewhereFiles:
    """A folder in another file system. Nobody knows who may write there.

    An object store stores a file at once. In HDFS others can see a file while it is written, so it gets its
    name when it is complete.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")
        self._found: tuple[Any, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_uri": self._uri, "_found": None}

    @property
    def _system(self) -> tuple[Any, str]:
        if self._found is None:
            self._found = file_system(self._uri)
        return self._found

    def _path(self, name: str) -> str:
        return f"{self._system[1]}/{name}"

    def prepare(self) -> None:
        system, inner = self._system
        system.create_dir(inner, recursive=True)

    def names(self) -> list[str]:
        return [name for name in self._all() if not _is_partial(name)]

    def read(self, name: str) -> bytes:
        with self._system[0].open_input_stream(self._path(name), compression=None) as file:
            return bytes(file.read())

    def first_line(self, name: str) -> bytes:
        pieces: list[bytes] = []
        with self._system[0].open_input_stream(self._path(name), compression=None, buffer_size=4096) as file:
            while piece := bytes(file.read(4096)):
                before, newline, _ = piece.partition(b"\n")
                pieces.append(before)
                if newline:
                    break
        return b"".join(pieces)

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        self._system[0].create_dir(path.rpartition("/")[0], recursive=True)
        partial = f"{path}.{os.getpid()}~" if is_hdfs(self._uri) else path
        with self._system[0].open_output_stream(partial, compression=None) as file:
            file.write(data)
        if partial != path:
            self._system[0].move(partial, path)

    def move(self, old: str, new: str) -> None:
        for name in self.names():
            if name.startswith(f"{old}/"):
                target = self._path(new + name.removeprefix(old))
                self._system[0].create_dir(target.rpartition("/")[0], recursive=True)
                self._system[0].move(self._path(name), target)
        self.remove(old)

    def remove(self, name: str) -> None:
        from pyarrow import fs

        system, path = self._system[0], self._path(name)
        kind = system.get_file_info(path).type
        if kind == fs.FileType.Directory:
            system.delete_dir(path)
        elif kind == fs.FileType.File:
            system.delete_file(path)

    def tidy(self) -> None:
        from pyarrow import fs

        for name in self._all():
            if _is_partial(name):
                self.remove(name)
        system, inner = self._system
        used = {name.rpartition("/")[0] for name in self.names()}
        for each in system.get_file_info(fs.FileSelector(inner, allow_not_found=True)):
            name = each.base_name
            if each.type == fs.FileType.Directory and not any(
                folder == name or folder.startswith(f"{name}/") for folder in used
            ):
                # Another process may have written since: only a folder that is empty now is removed.
                inside = system.get_file_info(fs.FileSelector(each.path, recursive=True))
                if all(found.type == fs.FileType.Directory for found in inside):
                    system.delete_dir(each.path)

    def refuse_others(self, name: str = "") -> None:
        pass  # a signature shows who wrote it

    def _all(self) -> list[str]:
        from pyarrow import fs

        system, inner = self._system
        found = system.get_file_info(fs.FileSelector(inner, allow_not_found=True, recursive=True))
        size = len(inner) + 1
        return [each.path[size:] for each in found if each.type == fs.FileType.File]


def _is_partial(name: str) -> bool:
    return name.endswith("~")
