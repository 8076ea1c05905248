"""Names of captures → files, here or wherever ``pyarrow.fs`` reaches: ``s3://`` (``s3a://`` is the same),
``gs://``, ``abfss://``, ``hdfs://`` (:mod:`kdissect.spark.hdfs`).

A directory stands for the files in it, without those whose names begin with ``.`` or ``_``: that is Spark's
rule. A glob stands for the files that it matches. With a ``/`` at its end, it stands for the files in the
directories that it matches. A directory of this machine that cannot be listed stands for itself: reading it
reports the reason. On other file systems only the last part of a path may be a glob (``*`` and ``[``). If the
environment has settings for an object store, such as ``AWS_ACCESS_KEY_ID``, workers need them too.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from fnmatch import fnmatchcase
from glob import glob, has_magic
from io import BufferedIOBase
from itertools import chain
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from kdissect.capture.files import counts, each_folder_in, no_file_in, open_capture, read_packets
from kdissect.model import CaptureError
from kdissect.spark.hdfs import hdfs, is_hdfs


class InputFile(NamedTuple):
    """A file of the input."""

    path: str
    size: int
    """The size in bytes; 0 if unknown."""
    is_folder: bool = False
    """Whether it is a folder of this machine that cannot be listed."""


class FoundFile(NamedTuple):
    """An existing file or folder."""

    size: int
    """The size in bytes; 0 for a folder."""
    modified_ns: int
    """The time of the last write; 0 if unknown."""
    is_folder: bool = False
    """Whether it is a folder of this machine. In a list of files, it is a folder that cannot be listed."""


_ELSEWHERE = ("s3", "gs", "abfss", "hdfs")
"""The supported file systems, for the message about another one."""
_LOST = "lost+found"
"""A folder of root in many file systems. It has no captures, so it is left out unless the user names it."""
_PASSWORD = re.compile(r"\w[\w+.-]*://[^/@]*:[^/@]*@")
_MAGIC = re.compile(r"[*\[]")


def is_remote(path: str) -> bool:
    """Whether a path is the URI of another file system."""
    return "://" in path and not path.startswith("file:")


def join(place: str, name: str) -> str:
    """The path of a name in a folder. The query of a URI (``?endpoint_override=…``) stays at its end."""
    base, query = split_query(place)
    return f"{base.rstrip('/')}/{name}{query}"


def name_below(folder: str, path: str) -> str:
    """The name that :func:`join` gave to a path in a folder."""
    return without_query(path)[len(without_query(folder).rstrip("/")) + 1 :]


def without_query(place: str) -> str:
    """A path, or a URI in the form for Spark and Delta, whose own configuration has the settings of the
    query."""
    return split_query(place)[0]


def is_inside(path: str, folder: str) -> bool:
    """Whether a folder is the same as another one, or inside it."""
    if is_remote(path) is not is_remote(folder):
        return False
    if not is_remote(path):
        whole = os.path.abspath(plain_path(folder))
        return os.path.commonpath((whole, os.path.abspath(plain_path(path)))) == whole
    inner, outer = (f"{_as_s3(without_query(each)).rstrip('/')}/" for each in (path, folder))
    return inner.startswith(outer)


def split_query(place: str) -> tuple[str, str]:
    """A URI without its query, and the query with the ``?``. A path on this machine has none."""
    base, mark, query = place.partition("?") if is_remote(place) else (place, "", "")
    return base, mark + query


def _as_s3(uri: str) -> str:
    return re.sub("^s3[an]:", "s3:", uri)


def list_files(paths: list[str]) -> list[InputFile]:
    """The files that these names stand for, each once, in this order; those of a directory by name.

    A missing file is listed too: reading it reports the error, as ``kdissect read`` does.

    :raises CaptureError: a directory is empty, a glob matches nothing, a file system cannot be reached.
    :raises ValueError: a URI has a password in it, which would be printed with it.
    """
    found: dict[str, InputFile] = {}
    for path in paths:
        for file in _remote(path) if is_remote(path) else _local(plain_path(path)):
            found.setdefault(file.path, file)
    return list(found.values())


def found_file(path: str) -> FoundFile | None:
    """Size and time of a file; None if it does not exist.

    :raises CaptureError: another file system cannot be asked.
    """
    if not is_remote(path):
        try:
            status = os.stat(plain_path(path))
        except OSError:
            return None
        is_folder = stat.S_ISDIR(status.st_mode)
        return FoundFile(0 if is_folder else status.st_size, status.st_mtime_ns, is_folder)
    from pyarrow import fs

    system, inner = file_system(path)
    try:
        info = system.get_file_info(inner)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {_first_line(error)}") from None
    if info.type != fs.FileType.File:
        return None
    return FoundFile(info.size or 0, info.mtime_ns or 0)


def may_be_there(path: str) -> bool:
    """Whether a file that is not listed may still exist, because its folder cannot be listed. On other file
    systems everything is listed, or nothing."""
    if is_remote(path):
        return False
    try:
        return not stat.S_ISDIR(os.stat(plain_path(path)).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def is_folder(path: str) -> bool:
    """Whether a folder exists. An object store has a folder if an object is in it.

    :raises CaptureError: the file system cannot be reached.
    """
    if not is_remote(path):
        return os.path.isdir(plain_path(path))
    from pyarrow import fs

    system, inner = file_system(path)
    try:
        return bool(system.get_file_info(inner).type == fs.FileType.Directory)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be listed: {_first_line(error)}") from None


def refuse_no_folder(folder: str, given: str, purpose: str = "the tables") -> None:
    """Check that a folder exists and can be listed.

    :param given: the folder as the user named it.
    :param purpose: what the folder is for, in words.
    :raises FileNotFoundError: it does not exist.
    :raises NotADirectoryError: it is a file.
    :raises CaptureError: it cannot be listed, or another file system does not answer.
    """
    if is_folder(folder):
        if not is_remote(folder) and (error := unlisted(plain_path(folder))) is not None:
            raise CaptureError(f"{given}: cannot be listed: {error.strerror}")
        return
    if not is_remote(folder) and os.path.lexists(plain_path(folder)):
        raise NotADirectoryError(f"{given}: is a file; name the folder of {purpose}")
    words = absent("folder", folder) if is_remote(folder) else "there is no such folder"
    raise FileNotFoundError(f"{given}: {words}")


def folders_in(folder: str) -> list[str]:
    """The names of the folders in a folder, without names that do not count.

    :raises FileNotFoundError: it does not exist.
    :raises CaptureError: it cannot be listed, or another file system cannot be asked.
    """
    if not is_remote(folder):
        try:
            found = [each.name for each in os.scandir(plain_path(folder)) if each.is_dir()]
        except PermissionError as error:
            raise CaptureError(f"{folder}: cannot be listed: {error.strerror}") from error
        return sorted(filter(counts, found))
    from pyarrow import fs

    system, inner = file_system(folder)
    try:
        infos = system.get_file_info(fs.FileSelector(inner))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CaptureError(f"{folder}: cannot be listed: {_first_line(error)}") from None
    return sorted(
        each.base_name for each in infos if each.type == fs.FileType.Directory and counts(each.base_name)
    )


def files_below(folder: str) -> dict[str, FoundFile]:
    """The files that count in a folder and its inner folders, by path. An inner folder that cannot be listed
    stands for its files; opening it reports the reason.

    :raises CaptureError: the folder cannot be listed, or another file system cannot be asked.
    """
    return _remote_below(folder) if is_remote(folder) else _local_below(plain_path(folder))


def open_file(path: str, at: int = 0) -> BufferedIOBase:
    """Any of these files, opened for reading.

    :param at: the first byte that is read.
    :raises CaptureError: it is a directory.
    :raises OSError: it cannot be opened, or it is a directory that cannot be listed.
    """
    if not is_remote(path):
        if (error := unlisted(path)) is not None:
            raise OSError(error.errno, f"the files in it cannot be listed ({error.strerror})", path)
        file = open_capture(path)
        if at:
            file.seek(at)
        return file
    system, inner = file_system(path)
    try:
        if at:
            whole = system.open_input_file(inner)
            whole.seek(at)
            return cast(BufferedIOBase, whole)
        return cast(BufferedIOBase, system.open_input_stream(inner, compression=None, buffer_size=1 << 20))
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, absent("file or folder", path), path) from None


def absent(what: str, uri: str) -> str:
    """The message that another file system has no such file or folder.

    :param what: what was looked for, in words.
    """
    return f"there is no such {what}; check {'the path' if is_hdfs(uri) else 'the bucket and the path'}"


def unopened(path: str) -> OSError | None:
    """Why a file of this machine cannot be opened; None if it can, and for files on other file systems."""
    if not is_remote(path):
        try:
            open_file(path).close()
        except OSError as error:
            return error
    return None


def counting(took: Callable[[int], None]) -> Callable[[str], BufferedIOBase]:
    """A function that opens a file like :func:`open_file`, and reports how many bytes of it are read."""

    def opened(path: str) -> BufferedIOBase:
        return cast(BufferedIOBase, _CountedFile(open_file(path), took))

    return opened


class _CountedFile:
    """A file, with the methods that readers of captures use."""

    def __init__(self, file: BufferedIOBase, took: Callable[[int], None]) -> None:
        self._file = file
        self._took = took

    def read1(self, size: int) -> bytes:
        data = self._file.read1(size)
        self._took(len(data))
        return data

    def close(self) -> None:
        self._file.close()


def refuse_password(path: str) -> None:
    """Refuse a URI with a password.

    :raises ValueError: it is one; the password would be printed and stored.
    """
    if _PASSWORD.match(path):
        where = path.partition("://")[0] + "://…@" + path.partition("@")[2]
        raise ValueError(f"{where}: everybody sees a password in a URI; put it into the environment")


def refuse_unreadable(paths: list[str]) -> None:
    """Check that one of these files is a capture. If some are not, they are damaged; if all are not, the user
    made a mistake.

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


def unlisted(path: str) -> OSError | None:
    """Why a folder of this machine cannot be listed, or cannot be entered. None if both are possible, or if
    it is no folder."""
    if not os.path.isdir(path):
        return None
    try:
        os.scandir(path).close()
    except (FileNotFoundError, NotADirectoryError):
        return None  # it is gone by now
    except OSError as error:
        return error
    try:
        os.stat(os.path.join(path, os.curdir))
    except PermissionError as error:  # only names may be read
        return OSError(error.errno, f"{error.strerror}: the folder cannot be entered", path)
    except OSError:
        pass
    return None


def _local(path: str) -> list[InputFile]:
    if os.path.isdir(path):
        inside = _files_in(path)
        if not inside:
            raise CaptureError(no_file_in(path, each_folder_in(path) if folders_in(path) else None))
        return inside
    if has_magic(path) and not os.path.exists(path):
        matched = [InputFile(each, os.path.getsize(each)) for each in glob(path) if os.path.isfile(each)]
        if path.endswith("/"):
            folders = [each for each in glob(path) if os.path.basename(each.rstrip("/")) != _LOST]
            matched += chain.from_iterable(map(_files_in, folders))
        matched += [InputFile(each, 0, is_folder=True) for each in _unlisted_by(path)]
        if not matched:
            raise CaptureError(f"{path}: no file has such a name")
        return sorted(matched)
    return [InputFile(path, os.path.getsize(path) if os.path.isfile(path) else 0)]


def _files_in(folder: str) -> list[InputFile]:
    """The files that count in a folder of this machine, by name. If it cannot be listed, the folder
    itself."""
    if unlisted(folder) is not None:
        return [InputFile(folder, 0, is_folder=True)]
    inside = [entry for entry in os.scandir(folder) if counts(entry.name) and entry.is_file()]
    return sorted(InputFile(entry.path, entry.stat().st_size) for entry in inside)


def _unlisted_by(pattern: str) -> list[str]:
    """The folders that a glob searches and that cannot be listed."""
    head, tail = os.path.split(pattern)
    if not has_magic(head):
        folders, found = [head or os.curdir], []
    else:
        folders, found = glob(head), _unlisted_by(head)
        if has_magic(os.path.basename(head)):
            folders = [each for each in folders if os.path.basename(each) != _LOST]
    if has_magic(tail):
        found += [each for each in folders if unlisted(each) is not None]
    return found


def _local_below(folder: str) -> dict[str, FoundFile]:
    if (error := unlisted(folder)) is not None:
        raise CaptureError(f"{folder}: cannot be listed: {error.strerror}") from error
    found: dict[str, FoundFile] = {}

    def is_refused(path: str) -> bool:
        if unlisted(path) is None:
            return False
        if os.path.basename(path) != _LOST:
            found[path] = FoundFile(0, 0, True)
        return True

    for parent, folders, names in os.walk(folder, onerror=lambda error: is_refused(error.filename)):
        if is_refused(parent):
            folders.clear()
            continue
        folders[:] = filter(counts, folders)
        for name in filter(counts, names):
            path = os.path.join(parent, name)
            if (known := found_file(path)) is not None:  # otherwise it was renamed or removed meanwhile
                found[path] = known
    return found


def _remote_below(uri: str) -> dict[str, FoundFile]:
    from pyarrow import fs

    system, inner = file_system(uri)
    try:
        infos = system.get_file_info(fs.FileSelector(inner, recursive=True))
    except FileNotFoundError:
        raise CaptureError(f"{uri}: {absent('folder', uri)}") from None
    except OSError as error:
        raise CaptureError(f"{uri}: cannot be listed: {_first_line(error)}") from None
    found = {}
    for each in infos:
        name = each.path[len(inner.rstrip("/")) + 1 :]
        if each.type == fs.FileType.File and all(map(counts, name.split("/"))):
            found[join(uri, name)] = FoundFile(each.size or 0, each.mtime_ns or 0)
    return found


def plain_path(path: str) -> str:
    """The path in a URI of this file system; any other path unchanged."""
    if not path.startswith("file:/"):
        return path
    path = "/" + path.removeprefix("file:").lstrip("/")
    return path if os.path.exists(path) else unquote(path)


def _remote(uri: str) -> list[InputFile]:
    from pyarrow import fs

    refuse_password(uri)
    path, query = split_query(uri)
    parent, _, name = path.rstrip("/").rpartition("/")
    pattern = name if _MAGIC.search(name) else None
    folder = (path.rstrip("/") if pattern is None else parent) + query
    system, inner = file_system(folder)
    try:
        info = system.get_file_info(inner)
        if pattern is None and info.type != fs.FileType.Directory:
            return [InputFile(uri, info.size or 0)]
        inside = [
            each
            for each in system.get_file_info(fs.FileSelector(inner))
            if each.type == fs.FileType.File
            and (counts(each.base_name) if pattern is None else fnmatchcase(each.base_name, pattern))
        ]
    except OSError as error:
        raise CaptureError(f"{uri}: cannot be listed: {_first_line(error)}") from None
    if not inside and pattern is not None:
        raise CaptureError(f"{uri}: no file has such a name")
    if not inside:
        raise CaptureError(no_file_in(uri, "the names of these folders" if folders_in(uri) else None))
    return sorted(InputFile(join(folder, each.base_name), each.size) for each in inside)


def file_system(uri: str) -> tuple[Any, str]:
    """The file system, and the path in it.

    :raises CaptureError: no file system has that name, or it cannot be reached.
    """
    from pyarrow import ArrowInvalid, fs

    try:
        system, inner = hdfs(uri) if is_hdfs(uri) else fs.FileSystem.from_uri(_as_s3(uri))
    except ArrowInvalid as error:
        known = ", ".join(f"{each}://" for each in _ELSEWHERE)
        raise CaptureError(f"{uri}: {_first_line(error)}; files may be at {known}") from None
    except (ImportError, OSError) as error:
        raise CaptureError(f"{uri}: {_first_line(error)}") from None
    return system, inner


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
