"""Events of one task → files → other tasks, which make rows of them.

    Keeper ─► file: piece, piece, …   ─► kept_pieces
              file: names of topic ids ─► kept_names

Dissecting a capture is about a tenth of the work; making rows is the rest. A capture must be dissected in
order. So one task dissects everything once, and keeps the events as plain values. The rows of an event do not
depend on other events.

A piece is pickled, and loading it runs code from it. So each piece has a digest that only the tasks of the
same job can make, because the driver gives them the key.
"""

from __future__ import annotations

import hashlib
import hmac
import pickle
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, BinaryIO, NamedTuple

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.names import TopicNames
from kdissect.plain import exchange_of, plain_exchange
from kdissect.spark.replay import size_of
from kdissect.spark.storage import join
from kdissect.spark.writing import create_file, read_file, remove

FOLDER = "_kept"
"""The folder of the files, in the folder of a job."""
PIECE_BYTES = 4 << 20
"""A piece is full when its messages have this many bytes …"""
PIECE_EVENTS = 4_096
"""… or it has this many events …"""
PIECE_PACKETS = 8_192
"""… or rows of this many packets."""

_DIGEST_BYTES = 16
_HEAD = Struct(f"<Q{_DIGEST_BYTES}s")
"""The size of a piece, and its digest."""


class KeptFile(NamedTuple):
    """A file of pieces."""

    path: str
    pieces: int
    size: int
    """The bytes of all pieces."""


class KeptEvents(NamedTuple):
    """Some consecutive events."""

    events: list[Event]
    packets: list[dict[str, Any]]
    """Rows of packets."""


class KeptError(OSError):
    """A file has changed since it was written."""


class Keeper:
    """Keeps the events of one task.

    :param folder: the folder of its files.
    :param key: the key for digests.
    :param file_bytes: the approximate size of a file.
    :raises OSError: each method except :meth:`abandon` may raise it, because a file cannot be written.
    """

    def __init__(self, folder: str, key: bytes, file_bytes: int) -> None:
        self.files: list[KeptFile] = []
        """The complete files."""
        self._folder = folder
        self._key = key
        self._file_bytes = file_bytes
        self._events: list[Any] = []
        self._packets: list[dict[str, Any]] = []
        self._bytes = 0
        self._file: BinaryIO | None = None
        self._open = KeptFile("", 0, 0)

    def add(self, event: Event) -> None:
        """Keep the next event."""
        if isinstance(event, Exchange):
            known = event.topic_names
            self._bytes += size_of(event)
            self._events.append(
                (plain_exchange(event), known.packet, known.count)  # type: ignore[attr-defined]
            )
        else:
            self._events.append(event)
        if self._bytes >= PIECE_BYTES or len(self._events) >= PIECE_EVENTS:
            self._flush()

    def add_packets(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep the next rows of packets."""
        self._packets += rows
        if len(self._packets) >= PIECE_PACKETS:
            self._flush()

    def close(self, names: TopicNames) -> KeptFile:
        """Keep the rest, and the names of topic ids; return the file of the names."""
        self._flush()
        self._end_file()
        self._write(pickle.dumps(names.order, pickle.HIGHEST_PROTOCOL))
        self._end_file()
        return self.files.pop()

    def abandon(self) -> None:
        """Remove all files, because the task failed."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        for each in (*self.files, self._open):
            if each.path:
                with suppress(OSError):
                    remove(each.path)

    def _flush(self) -> None:
        if not self._events and not self._packets:
            return
        self._write(pickle.dumps((self._events, self._packets), pickle.HIGHEST_PROTOCOL))
        self._events, self._packets, self._bytes = [], [], 0
        if self._open.size >= self._file_bytes:
            self._end_file()

    def _write(self, data: bytes) -> None:
        if self._file is None:
            path = join(self._folder, f"{FOLDER}/{uuid.uuid4().hex}.events")
            self._file = create_file(path)
            self._open = KeptFile(path, 0, 0)
        self._file.write(_HEAD.pack(len(data), _digest(data, self._key)))
        self._file.write(data)
        self._open = self._open._replace(pieces=self._open.pieces + 1, size=self._open.size + len(data))

    def _end_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self.files.append(self._open)
        self._file, self._open = None, KeptFile("", 0, 0)


def kept_names(kept: KeptFile, key: bytes) -> TopicNames:
    """All names of topic ids that a task knew at its end.

    :param kept: the result of :meth:`Keeper.close`.
    :param key: the key of the :class:`Keeper`.
    :raises KeptError: the file was changed.
    :raises OSError: it cannot be read.
    """
    names = TopicNames()
    for value in _values(kept, key):
        for each in value:
            names.learn(*each)
    return names


def kept_pieces(kept: KeptFile, key: bytes, names: TopicNames, limits: Limits) -> Iterator[KeptEvents]:
    """The contents of a file, in order, piece by piece.

    :param key: the key of the :class:`Keeper`.
    :param names: all names of topic ids. Each exchange knows those that came before it.
    :raises KeptError: the file was changed.
    :raises OSError: it cannot be read.
    """
    for events, packets in _values(kept, key):
        yield KeptEvents([_event(each, names, limits) for each in events], packets)


def _event(plain: Any, names: TopicNames, limits: Limits) -> Event:
    if type(plain) is not tuple:  # other events are named tuples
        event: Event = plain
        return event
    exchange, packet, count = plain
    return exchange_of(exchange, names.up_to(packet, count), limits)


def _values(kept: KeptFile, key: bytes) -> Iterator[Any]:
    with read_file(kept.path) as file:
        for _ in range(kept.pieces):
            head = _read(file, _HEAD.size, kept)
            size, digest = _HEAD.unpack(head)
            data = _read(file, min(size, kept.size), kept)
            if not hmac.compare_digest(_digest(data, key), digest):
                raise _changed(kept)
            yield pickle.loads(data)  # it is from a task of this job: the digest proves it


def _read(file: BinaryIO, size: int, kept: KeptFile) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise _changed(kept)
    return data


def _changed(kept: KeptFile) -> KeptError:
    return KeptError(f"{kept.path}: the file was changed after it was written")


def _digest(data: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(data, key=key, digest_size=_DIGEST_BYTES).digest()
