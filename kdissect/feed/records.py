"""The records of chosen exchanges, listed by a separate process.

    screens ── Ask: some exchanges, the filter ──► process ── Found: how many records now ──► screens
                                    lines of fixed size ──► a file that both have open

The screens send a few exchanges at a time. So neither side waits for the other's pipe, and the request of a
new filter does not wait behind the old one. Every new request has a higher generation; with it the process
begins its file again.

Records → lines of fixed size in a temporary file, for a list that only reads the lines on the screen.

A capture of a million exchanges may hold a hundred million records. A list needs 256 bytes of each, including
the beginnings of key and value. They are in a file without a name, in the order of the rows. The screens keep
nothing of a record: they read the lines that they draw. The whole record is read again from the spool, by its
place in the index and its address in the exchange.

At most :data:`MOST_RECORDS` are listed, a file of 244 MiB; a filter chooses others.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from kdissect.exchange import Exchange
from kdissect.feed.batches import Ended, Feed, read_exchange
from kdissect.feed.decoder import Decoded
from kdissect.feed.index import Places
from kdissect.feed.rows import TextNumbers
from kdissect.feed.side_process import Here, Process, Shared, Worker
from kdissect.filter.compiled import Filter
from kdissect.limits import Limits
from kdissect.payload.framing import framing_of
from kdissect.present.decoded import part_of
from kdissect.present.options import Options
from kdissect.present.records import Address, addressed_rows
from kdissect.present.sanitise import sanitise
from kdissect.present.secret_names import REDACTED
from kdissect.present.whole_record import is_redacted
from kdissect.protocol.json_form import dumps
from kdissect.system import read_at, temporary_file

if TYPE_CHECKING:
    pass

MOST_RECORDS = 1_000_000
"""The largest number of lines in a list."""

KEY_BYTES, VALUE_BYTES = 40, 158
"""The number of bytes of key and value in a line."""

IS_RELATIVE, HAS_TIME, IS_CONTROL, KEY_IS_WORDS, VALUE_IS_WORDS, KEY_FRAMED, VALUE_FRAMED = (
    1 << bit for bit in range(7)
)
"""The bits of ``flags``: the offset is the sender's own; there is a timestamp; it is a control record; words
replace the bytes of the key or of the value; the key or the value has a header with its schema."""

_LINE = Struct(f"<IIIIIIqqiiiHHBB{KEY_BYTES}s{VALUE_BYTES}s")
LINE_BYTES = _LINE.size
assert LINE_BYTES == 256
_PLACE_BYTES = 4
"""The size of the place at the beginning of a line."""

_INT32 = (1 << 31) - 1


class RecordLine(NamedTuple):
    """The fields of a record in a list."""

    place: int
    """The place of its exchange in the index."""
    record_set: int
    batch: int
    record: int
    topic: int
    """The number of a text."""
    codec: int
    """The number of a text."""
    timestamp: int
    """ms since the epoch."""
    offset: int
    partition: int
    """-1 if unknown."""
    key_size: int
    """-1 for null."""
    value_size: int
    headers: int
    """The number of headers."""
    flags: int
    key_length: int
    """The number of bytes used in ``key``."""
    value_length: int
    key: bytes
    value: bytes

    @property
    def address(self) -> Address:
        return Address(self.record_set, self.batch, self.record)


def read_lines(descriptor: int, start: int, count: int) -> list[RecordLine]:
    """The lines from a place on; fewer at the end of the file.

    :raises OSError: it cannot be read.
    """
    data = read_at(descriptor, count * LINE_BYTES, start * LINE_BYTES)
    whole = len(data) - len(data) % LINE_BYTES
    lines = map(RecordLine._make, _LINE.iter_unpack(data[:whole]))
    return [
        line._replace(key=line.key[: line.key_length], value=line.value[: line.value_length])
        for line in lines
    ]


def read_places(descriptor: int, start: int, count: int) -> Places:
    """The index places of the exchanges of the lines from a place on.

    :raises OSError: it cannot be read.
    """
    data = read_at(descriptor, count * LINE_BYTES, start * LINE_BYTES)
    lines = np.frombuffer(data[: len(data) - len(data) % LINE_BYTES], np.uint8).reshape(-1, LINE_BYTES)
    return lines[:, :_PLACE_BYTES].copy().view("<u4")[:, 0].astype(np.uint32)


class RecordLines:
    """Writes the lines of a list into ``file``, from its beginning, and counts them."""

    def __init__(self, file: BinaryIO, chosen: Filter | None, options: Options) -> None:
        self._file = file
        # A filter without record fields chose the exchanges, and all their records are shown.
        asks = chosen is not None and any(name.startswith("record.") for name in chosen.fields)
        self._filter = chosen if asks else None
        self._options = options
        self.texts = TextNumbers()
        self.count = 0
        file.seek(0)
        file.truncate()

    @property
    def is_full(self) -> bool:
        """Whether no more are listed."""
        return self.count >= MOST_RECORDS

    def add(self, place: int, exchange: Exchange) -> Iterable[None]:
        """Write the records of an exchange. It yields from time to time, so that the caller can stop."""
        for address, row in addressed_rows(exchange, self._options):
            if self._filter is None or self._filter.matches_record(exchange, row):
                if self.is_full:
                    return
                self._file.write(self._line(place, address, row))
                self.count += 1
            if not address.record & 0xFF:
                yield

    def _line(self, place: int, address: Address, row: dict[str, Any]) -> bytes:
        key, key_said = _shown(row, "key")
        value, value_said = _shown(row, "value")
        assigned, timestamp, headers = row["assigned_offset"], row["timestamp"], row["headers"]
        flags = 0
        flags |= IS_RELATIVE if assigned is None and row["direction"] == "produce" else 0
        flags |= HAS_TIME if timestamp is not None else 0
        flags |= IS_CONTROL if row["control"] is not None else 0
        flags |= KEY_IS_WORDS if key_said else 0
        flags |= VALUE_IS_WORDS if value_said else 0
        if headers:
            flags |= KEY_FRAMED if framing_of(b"", headers, "key") else 0
            flags |= VALUE_FRAMED if framing_of(b"", headers, "value") else 0
        partition = row["partition"]
        return _LINE.pack(
            place,
            *address,
            self.texts.number(row["topic"] or row["topic_id"]),
            self.texts.number(row["codec"]),
            timestamp or 0,
            row["offset"] if assigned is None else assigned,
            -1 if partition is None else partition,
            -1 if row["key_size"] is None else min(row["key_size"], _INT32),
            -1 if row["value_size"] is None else min(row["value_size"], _INT32),
            min(len(headers), 0xFFFF),
            flags,
            len(key),
            len(value),
            key,
            value,
        )


_ROOM = {"key": KEY_BYTES, "value": VALUE_BYTES}


def _shown(row: dict[str, Any], side: str) -> tuple[bytes, bool]:
    """The beginning of a key or value, and whether it is words instead of the bytes. Words are used for
    control records, internal topics and secrets."""
    room, data = _ROOM[side], row[side]
    text = words_of(row, side)
    if text is not None:
        return sanitise(text, room).encode("utf-8", "replace")[:room], True
    return (data or b"")[:room], False


def words_of(row: dict[str, Any], side: str) -> str | None:
    """Words that replace the bytes of a key or value: ``OffsetCommit v3 {…}``; None if the bytes are
    shown."""
    if row["control"] is not None:
        return dumps(row["control"]) if side == "value" else None
    decoded = part_of(row, side)
    if decoded is not None:
        return f"{decoded.name} {dumps(decoded.value)}"
    return REDACTED if is_redacted(row, side) else None


SPAN = Struct("<IqI")
"""An exchange: its place in the index, its place in the spool and its length there."""

ASK_EXCHANGES = 2_048
"""The largest number of exchanges sent at a time; they fit in a pipe."""
_STEP_SECONDS = 0.02
"""The longest duration of one step, so that new requests are read soon."""
_FOUND_SECONDS = 0.1
"""The longest time that results wait before they are sent."""


class AskRecords(NamedTuple):
    """Exchanges whose records are to be listed."""

    generation: int
    chosen: Filter | None
    """The filter of the listed records; None for all."""
    spans: bytes
    """Packed :data:`SPAN` values."""


class FoundRecords(NamedTuple):
    """The progress of the list."""

    generation: int
    records: int
    """The number of lines in the file."""
    exchanges: int
    """The number of exchanges finished since the last report."""
    texts: list[str]
    """The new entries of the list of texts."""
    is_full: bool = False
    """Whether further records are not listed."""


class Lister:
    """Lists records in the process.

    :param spool: the descriptor of the spool.
    :param lines: the descriptor of the file for the lines, which belongs to the lister from now on.
    """

    def __init__(self, spool: int, lines: int, limits: Limits, options: Options) -> None:
        self._spool = spool
        self._file = os.fdopen(lines, "wb")
        self._limits = limits
        self._options = options
        self._generation = 0
        self._lines = RecordLines(self._file, None, options)
        self._waiting: deque[AskRecords] = deque()
        self._run: Iterator[FoundRecords | None] | None = None
        """The current work."""

    def take(self, order: AskRecords) -> None:
        """List the records of these exchanges too; with a new generation, only of these."""
        if order.generation != self._generation:
            self._generation = order.generation
            self._lines = RecordLines(self._file, order.chosen, self._options)
            self._waiting.clear()
            self._run = None
        self._waiting.append(order)

    @property
    def wait(self) -> float | None:
        """0 with work; None without: until an order comes."""
        return 0.0 if self._waiting or self._run is not None else None

    def step(self) -> Iterator[FoundRecords]:
        """List for a moment, and give the progress."""
        until = time.monotonic() + _STEP_SECONDS
        while time.monotonic() < until:
            if self._run is None:
                if not self._waiting:
                    return
                self._run = self._listed(self._waiting.popleft())
            for found in self._run:
                if found is not None:
                    yield found
                if time.monotonic() >= until:
                    return
            self._run = None

    def _listed(self, asked: AskRecords) -> Iterator[FoundRecords | None]:
        """Give the progress from time to time, and None wherever the work may be interrupted."""
        done, due = 0, time.monotonic() + _FOUND_SECONDS
        for place, at, length in SPAN.iter_unpack(asked.spans):
            exchange = read_exchange(self._spool, at, length, self._limits)
            for _ in self._lines.add(place, exchange):
                yield None
                if time.monotonic() >= due:
                    yield self._found(done)
                    done, due = 0, time.monotonic() + _FOUND_SECONDS
            done += 1
        yield self._found(done)

    def _found(self, done: int) -> FoundRecords:
        lines = self._lines
        self._file.flush()
        return FoundRecords(self._generation, lines.count, done, lines.texts.take(), lines.is_full)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ListedRecords:
    """The screens' side of the lister and its lines.

    :param is_at_once: whether they are listed here, on demand.
    """

    def __init__(self, spool: int, limits: Limits, options: Options, *, is_at_once: bool = False) -> None:
        self._file = temporary_file(".records")
        self._here: Lister | None = None
        if is_at_once:
            self._here = Lister(spool, os.dup(self._file.fileno()), limits, options)
            self.worker: Worker[AskRecords, FoundRecords] = Here(self._here)
        else:
            shared = Shared(spool), Shared(self._file.fileno())
            self.worker = Process("the process that lists records", Lister, *shared, limits, options)

    def request(self, asked: AskRecords) -> None:
        """Send some exchanges."""
        self.worker.send(asked)

    def poll(self) -> Sequence[FoundRecords | Ended]:
        """The progress since the last call."""
        return self.worker.poll()

    def lines(self, start: int, count: int) -> list[RecordLine]:
        """Lines that were reported to be there.

        :raises OSError: they cannot be read.
        """
        return read_lines(self._file.fileno(), start, count)

    def places(self, start: int, count: int) -> Places:
        """The index places of the exchanges of lines that were reported to be there.

        :raises OSError: they cannot be read.
        """
        return read_places(self._file.fileno(), start, count)

    def close(self) -> None:
        """Stop, and close everything."""
        self.worker.close()
        if self._here is not None:
            self._here.close()
        self._file.close()


def records_of(feed: Feed, options: Options) -> ListedRecords:
    """The lister for a feed's exchanges: a separate process like the feed, or at once."""
    return ListedRecords(feed.descriptor, feed.source.limits, options, is_at_once=isinstance(feed, Decoded))
