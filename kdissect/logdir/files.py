"""Paths → the events of their log directories and files. Only this module opens files of log directories.

The files of a folder come first, in the order of their names, which begin with the offset. The folders in it
follow; folders of partitions are ordered by topic and number. A file that cannot be opened, or that does not
belong there, does not stop the reading of the others.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.logdir import names
from kdissect.logdir.checkpoints import read_facts
from kdissect.logdir.checks import Place, check_entries
from kdissect.logdir.events import Event, Fact, FileFault, IndexEntry, LogFile, SegmentBatch, SnapshotEntry
from kdissect.logdir.indexes import Entry, preallocated, read_entries
from kdissect.logdir.search import ReadAt
from kdissect.logdir.segment import read_batches
from kdissect.logdir.snapshot import read_snapshot
from kdissect.model import CaptureError, Fault
from kdissect.record.batch import Batch
from kdissect.wording import plural

NO_LOGS = "this folder contains no file of a log directory"
"""The message for a folder without log files."""


def read_logs(paths: Iterable[str], limits: Limits = DEFAULTS) -> Iterator[Event]:
    """All events of ``paths``, which are files, folders of a partition, or folders of folders.

    Faults of a batch's records come after the batch, if its records were read by then.

    :raises CaptureError: after everything else was read: some paths do not exist, cannot be read, or do not
        belong to a log directory.
    """
    problems: list[str] = []
    for path in paths:
        try:
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                if not (yield from _read_folders(path, limits)):
                    problems.append(f"{path}: {NO_LOGS}")
            elif not stat.S_ISREG(mode):
                problems.append(f"{path}: neither a file nor a folder")
            elif names.file(os.path.basename(path), named_by_user=True) is None:
                problems.append(f"{path}: this is not a file of a log directory; those are {names.TAKEN}")
            else:
                yield from _read_file(path, limits)
        except OSError as error:
            problems.append(f"{path}: cannot be read: {error.strerror or error}")
    if problems:
        raise CaptureError("; ".join(problems))


def files_of(paths: Iterable[str]) -> Iterator[str]:
    """The files that :func:`read_logs` reads for these paths, whether they can be opened or not."""
    for path in paths:
        if os.path.isdir(path):
            for folder, _, files in os.walk(path):
                yield from (os.path.join(folder, name) for name in files if names.file(name) is not None)
            continue
        yield path
        beside = names.segment_beside(os.path.basename(path))
        if beside is not None:
            yield os.path.join(os.path.dirname(path), beside)


def _read_folders(path: str, limits: Limits) -> Generator[Event, None, int]:
    """The events of a folder and of the folders in it. Returns how many files belong to log directories.

    Other files are reported if they are next to such files, and ignored elsewhere.
    """
    count = 0
    unreadable: list[OSError] = []
    for folder, folders, files in os.walk(path, onerror=unreadable.append):
        folders.sort(key=_folder_order)
        if not any(map(names.file, files)):
            continue
        for name in sorted(files):
            at = os.path.join(folder, name)
            try:
                if names.file(name) is None or not stat.S_ISREG(os.stat(at).st_mode):
                    yield LogFile(at, "unknown", os.lstat(at).st_size)
                else:
                    count += 1
                    yield from _read_file(at, limits)
            except OSError as error:
                yield from _unreadable(at, error)
    if unreadable and not count:
        raise unreadable[0]
    for each in unreadable:
        yield from _unreadable(str(each.filename), each)
    return count


def _folder_order(name: str) -> tuple[str, int, str]:
    found = names.folder(name)
    return found.topic or name, -1 if found.partition is None else found.partition, name


def _unreadable(path: str, error: OSError) -> Iterator[Event]:
    """The events of a file or folder that cannot be opened."""
    name = names.file(os.path.basename(path))
    try:
        found = os.lstat(path)
        size, is_folder = found.st_size, stat.S_ISDIR(found.st_mode)
    except OSError:
        size, is_folder = 0, False
    if is_folder:
        file = LogFile(path, "folder", 0)
    else:
        file = LogFile(path, "unknown" if name is None else name.kind, size)
    yield file
    yield _failed(file, error)


def _failed(file: LogFile, error: OSError) -> FileFault:
    return FileFault(file, fault("unreadable", f"{error.strerror or error}", offset=0))


@contextmanager
def _opened(path: str) -> Iterator[tuple[ReadAt, int]]:
    """A function that reads a file, and the file's current size."""
    with open(path, "rb") as file:

        def read_at(position: int, count: int) -> bytes:
            file.seek(position)
            return file.read(count)

        yield read_at, os.fstat(file.fileno()).st_size


def _read_file(path: str, limits: Limits) -> Iterator[Event]:
    name = names.file(os.path.basename(path), named_by_user=True)
    assert name is not None
    place = names.folder(os.path.basename(os.path.dirname(os.path.abspath(path))))
    with _opened(path) as (read_at, size):
        file = LogFile(path, name.kind, size, *place, name.base_offset, name.epoch)
        yield file
        try:
            if name.kind in names.BATCH_FILES:
                yield from _batches(file, read_at, limits)
            elif name.kind in names.INDEXES:
                yield from _index(file, read_at, limits)
            else:
                yield from _small(file, read_at, limits)
        except OSError as error:
            yield _failed(file, error)


def _batches(file: LogFile, read_at: ReadAt, limits: Limits) -> Iterator[Event]:
    for position, found in read_batches(read_at, file.size, limits, file.base_offset):
        if isinstance(found, Fault):
            yield FileFault(file, found)
            continue
        yield SegmentBatch(file, position, found)
        for each in found.faults:
            yield FileFault(file, each._replace(offset=position))


def _index(file: LogFile, read_at: ReadAt, limits: Limits) -> Iterator[Event]:
    kind = names.INDEXES[file.kind]
    base_offset = file.base_offset
    if base_offset is None:
        text = "the name does not say the base offset; offsets count from 0"
        yield FileFault(file, fault("bad-entry", text, offset=0))
        base_offset = 0
    entries = read_entries(kind, read_at, file.size, base_offset)
    segment = _SegmentBeside(file, limits)
    for each in check_entries(kind, entries, base_offset, segment if segment.exists() else None):
        if isinstance(each, Entry):
            yield IndexEntry(file, kind, each.values)
        else:
            yield FileFault(file, each)
    zeros = preallocated(kind, read_at, file.size)
    if zeros:
        yield Fact(file, {"preallocated": zeros})


class _SegmentBeside:
    """The batches of the segment that an index belongs to. Empty if the segment does not exist or cannot be
    read: that is a fault of the segment, not of the index."""

    def __init__(self, index: LogFile, limits: Limits) -> None:
        beside = names.segment_beside(os.path.basename(index.path))
        self._path = None if beside is None else os.path.join(os.path.dirname(index.path), beside)
        self._base_offset = index.base_offset
        self._limits = limits

    def exists(self) -> bool:
        if self._path is None:
            return False
        try:
            with _opened(self._path):
                return os.path.isfile(self._path)
        except OSError:
            return False

    def __iter__(self) -> Iterator[Place]:
        if self._path is None:
            return
        with _opened(self._path) as (read_at, size):
            for position, found in read_batches(read_at, size, self._limits, self._base_offset):
                if isinstance(found, Batch):
                    yield position, found


def _small(file: LogFile, read_at: ReadAt, limits: Limits) -> Iterator[Event]:
    data = read_at(0, limits.frame_bytes)
    if len(data) < file.size:
        left = plural(file.size - len(data), "byte")
        text = f"not read: {left} beyond the limit, or deleted meanwhile"
        yield FileFault(file, fault("cut-short", text, offset=len(data)))
    if file.kind == "producer-snapshot":
        producers, faults = read_snapshot(data)
        for values in producers:
            yield SnapshotEntry(file, values)
        for each in faults:
            yield FileFault(file, each)
        return
    for found in read_facts(file.kind, data):
        yield FileFault(file, found) if isinstance(found, Fault) else Fact(file, found)
