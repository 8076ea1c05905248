"""The meaning of names of folders and files in a log directory (``UnifiedLog``, ``LogFileUtils``,
``Snapshots``).

A folder is a partition, ``<topic>-<partition>``. While the partition is being deleted or moved, or was found
not to belong to the broker, the folder is ``<topic>-<partition>.<unique id>-<state>``. Names of files begin
with the first offset in the file.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST_FOLDER = 255
"""Kafka cuts the topic so that the name of a folder with a state does not become longer than this."""

_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_WITH_STATE = re.compile(r"(.+)\.[0-9a-f]{32}-(delete|future|stray)")

_OFFSET = r"(?P<offset>[0-9]{20})"
_FORMS = (
    (
        # Names of indexes of remote segments have the segment's id after the offset.
        rf"(?:{_OFFSET}|(?P<remote>[0-9]{{1,19}})_[A-Za-z0-9_-]{{22}})\.(?P<kind>index|timeindex|txnindex)",
        {"index": "offset-index", "timeindex": "time-index", "txnindex": "transaction-index"},
    ),
    (rf"{_OFFSET}\.(?P<kind>log|snapshot)", {"log": "segment", "snapshot": "producer-snapshot"}),
    (rf"{_OFFSET}-(?P<epoch>[0-9]{{10}})\.(?P<kind>checkpoint)", {"checkpoint": "metadata-snapshot"}),
    (r"bootstrap\.(?P<kind>checkpoint)", {"checkpoint": "metadata-snapshot"}),
)
_NUMBERED = tuple(
    (re.compile(form + r"(?:\.deleted|\.cleaned|\.swap|\.part)?"), kinds) for form, kinds in _FORMS
)

_FIXED = {
    "recovery-point-offset-checkpoint": "offset-checkpoint",
    "replication-offset-checkpoint": "offset-checkpoint",
    "log-start-offset-checkpoint": "offset-checkpoint",
    "cleaner-offset-checkpoint": "offset-checkpoint",
    "leader-epoch-checkpoint": "leader-epoch-checkpoint",
    "partition.metadata": "properties",
    "meta.properties": "properties",
    "quorum-state": "quorum-state",
}
_SUFFIXES = {
    ".log": "segment",
    ".checkpoint": "metadata-snapshot",
    ".index": "offset-index",
    ".timeindex": "time-index",
    ".txnindex": "transaction-index",
    ".snapshot": "producer-snapshot",
}

TAKEN = f"{', '.join(_SUFFIXES)} and {', '.join(_FIXED)}"
"""The names of files, in words."""

BATCH_FILES = ("segment", "metadata-snapshot")
INDEXES = {"offset-index": "offset", "time-index": "time", "transaction-index": "transaction"}
"""The kind of a file, and the name of that index in the table of index entries."""


class Folder(NamedTuple):
    """The meaning of a folder's name."""

    topic: str | None = None
    """The topic; None also if Kafka may have cut it."""
    partition: int | None = None
    state: str | None = None
    """``delete``, ``future`` or ``stray``; None for a partition in use."""


class FileName(NamedTuple):
    """The meaning of a file's name."""

    kind: str
    """``segment``, ``metadata-snapshot``, a key of :data:`INDEXES`, ``producer-snapshot``,
    ``offset-checkpoint``, ``leader-epoch-checkpoint``, ``properties`` or ``quorum-state``."""
    base_offset: int | None = None
    epoch: int | None = None
    """The leader's epoch, for a metadata snapshot."""


def folder(name: str) -> Folder:
    """The topic and the partition; all None if the name is not a partition's."""
    with_state = _WITH_STATE.fullmatch(name)
    found = _PARTITION.fullmatch(with_state[1] if with_state else name)
    if found is None:
        return Folder()
    topic, partition = found[1], int(found[2])
    if topic in (".", "..") or partition >= 1 << 31:
        return Folder()
    if with_state is None:
        return Folder(topic, partition)
    return Folder(None if len(name) >= LONGEST_FOLDER else topic, partition, with_state[2])


def file(name: str, named_by_user: bool = False) -> FileName | None:
    """The kind of a file; None for a file that does not belong to a log directory.

    :param named_by_user: accept any name with a known ending, for files that were copied under other names.
    """
    if name in _FIXED:
        return FileName(_FIXED[name])
    for form, kinds in _NUMBERED:
        found = form.fullmatch(name)
        if found:
            parts = found.groupdict()
            offset, epoch = parts.get("offset") or parts.get("remote"), parts.get("epoch")
            return FileName(
                kinds[parts["kind"]],
                None if offset is None else int(offset),
                None if epoch is None else int(epoch),
            )
    if named_by_user:
        for suffix, kind in _SUFFIXES.items():
            if name.endswith(suffix):
                return FileName(kind)
    return None


def segment_beside(name: str) -> str | None:
    """The name of the segment that an index belongs to, with the same state."""
    stem, dot, rest = name.partition(".")
    _, dot, state = rest.partition(".")
    return f"{stem}.log{dot}{state}" if stem.isdigit() else None
