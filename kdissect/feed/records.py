"""The records of chosen exchanges, listed by a process of its own.

    screens ── Ask: some exchanges, the filter ──► process ── Found: how many records now ──► screens
                                    lines of fixed size ──► a file that both have open

The screens hand over a few exchanges at a time. So neither side waits for the other's pipe, and the question
of a new filter does not wait behind the old one. Every new question has a higher generation; the process
begins its file again with it.

Records → lines of fixed size in a temporary file, for a list of which only what is on the screen is read.

A capture of a million exchanges may hold a hundred million records. A list needs 256 bytes of each, the
beginnings of key and value among them. They stand in a file without a name, at the place of the row. The
screens keep nothing of a record: they read the lines that they draw. The whole record is read anew from the
spool, by its place in the index and its address in the exchange.

No more than :data:`MOST_RECORDS` are listed, a file of 244 MiB; a filter chooses others.
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
from kdissect.feed.beside import Here, Process, Shared, Worker
from kdissect.feed.decoder import Decoded
from kdissect.feed.index import Places
from kdissect.feed.rows import TextNumbers
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
"""Lines of a list."""

KEY_BYTES, VALUE_BYTES = 40, 158
"""How much of key and value a line has."""

IS_RELATIVE, HAS_TIME, IS_CONTROL, KEY_IS_SAID, VALUE_IS_SAID, KEY_FRAMED, VALUE_FRAMED = (
    1 << bit for bit in range(7)
)
"""Bits of ``flags``: the offset is the sender's own; there is a timestamp; it is a control record; key or
value are not the bytes but words for them; a header tells the schema of key or value."""

_LINE = Struct(f"<IIIIIIqqiiiHHBB{KEY_BYTES}s{VALUE_BYTES}s")
LINE_BYTES = _LINE.size
assert LINE_BYTES == 256
_PLACE_BYTES = 4
"""The first of a line."""

_INT32 = (1 << 31) - 1


class RecordLine(NamedTuple):
    """What a list knows of a record."""

    place: int
    """Of its exchange, in the index."""
    record_set: int
    batch: int
    record: int
    topic: int
    """Number of a text."""
    codec: int
    """Number of a text."""
    timestamp: int
    """ms since the epoch."""
    offset: int
    partition: int
    """-1 where nothing tells it."""
    key_size: int
    """-1 for null."""
    value_size: int
    headers: int
    """How many."""
    flags: int
    key_length: int
    """Bytes of ``key`` that are used."""
    value_length: int
    key: bytes
    value: bytes

    @property
    def address(self) -> Address:
        return Address(self.record_set, self.batch, self.record)


def read_lines(descriptor: int, start: int, count: int) -> list[RecordLine]:
    """Lines from a place on; fewer where the file ends.

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
    """The places of exchanges in the index that lines from a place on have.

    :raises OSError: it cannot be read.
    """
    data = read_at(descriptor, count * LINE_BYTES, start * LINE_BYTES)
    lines = np.frombuffer(data[: len(data) - len(data) % LINE_BYTES], np.uint8).reshape(-1, LINE_BYTES)
    return lines[:, :_PLACE_BYTES].copy().view("<u4")[:, 0].astype(np.uint32)


class RecordLines:
    """Writes the lines of a list into ``file``, from its beginning, and counts them."""

    def __init__(self, file: BinaryIO, chosen: Filter | None, options: Options) -> None:
        self._file = file
        # Where a filter says nothing of records, it chose the exchanges, and all their records are shown.
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
        """Write the records of an exchange. Gives back now and then, so that whoever runs it can stop."""
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
        flags |= KEY_IS_SAID if key_said else 0
        flags |= VALUE_IS_SAID if value_said else 0
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
    """The beginning of a key or value, and whether it is words instead of the bytes: of a control record, of
    an internal topic, of a secret."""
    room, data = _ROOM[side], row[side]
    text = said(row, side)
    if text is not None:
        return sanitise(text, room).encode("utf-8", "replace")[:room], True
    return (data or b"")[:room], False


def said(row: dict[str, Any], side: str) -> str | None:
    """Words for a key or value where its bytes are not what to show: ``OffsetCommit v3 {…}``; None else."""
    if row["control"] is not None:
        return dumps(row["control"]) if side == "value" else None
    decoded = part_of(row, side)
    if decoded is not None:
        return f"{decoded.name} {dumps(decoded.value)}"
    return REDACTED if is_redacted(row, side) else None


SPAN = Struct("<IqI")
"""An exchange: its place in the index, its place in the spool and its length there."""

ASK_EXCHANGES = 2_048
"""How many are handed over at a time, at most: less than a pipe holds."""
_STEP_SECONDS = 0.02
"""How long one step goes on, so that what is asked anew is heard soon."""
_FOUND_SECONDS = 0.1
"""How long what was found waits, at most, before it is told."""


class AskRecords(NamedTuple):
    """Exchanges whose records are to be listed."""

    generation: int
    chosen: Filter | None
    """Which records are listed; None for all."""
    spans: bytes
    """Packed :data:`SPAN`."""


class FoundRecords(NamedTuple):
    """How far it is."""

    generation: int
    records: int
    """Lines of the file, all told."""
    exchanges: int
    """Done since the last was told."""
    texts: list[str]
    """What the list of texts grew by."""
    is_full: bool = False
    """More records are not listed."""


class Lister:
    """The machine that lists records.

    :param spool: descriptor of the spool.
    :param lines: descriptor of the file for the lines, which is its own from now on.
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
        """What is under way."""

    def take(self, order: AskRecords) -> None:
        """List the records of these exchanges too; with another generation, of these only."""
        if order.generation != self._generation:
            self._generation = order.generation
            self._lines = RecordLines(self._file, order.chosen, self._options)
            self._waiting.clear()
            self._run = None
        self._waiting.append(order)

    @property
    def wait(self) -> float | None:
        """Nothing, or until there is an order."""
        return 0.0 if self._waiting or self._run is not None else None

    def step(self) -> Iterator[FoundRecords]:
        """List on for a moment; gives how far it is."""
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
        """Gives what was found now and then, and None wherever it may be stopped."""
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
        """Let go of the file."""
        self._file.close()


class ListedRecords:
    """The lister and its lines, as the screens see them.

    :param is_at_once: whether they are listed here, when they are asked for.
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

    def ask(self, asked: AskRecords) -> None:
        """Hand over some exchanges."""
        self.worker.send(asked)

    def poll(self) -> Sequence[FoundRecords | Ended]:
        """What came since the last call."""
        return self.worker.poll()

    def lines(self, start: int, count: int) -> list[RecordLine]:
        """Lines that were told to be there.

        :raises OSError: they cannot be read.
        """
        return read_lines(self._file.fileno(), start, count)

    def places(self, start: int, count: int) -> Places:
        """The places of exchanges in the index that lines have, of those that were told to be there.

        :raises OSError: they cannot be read.
        """
        return read_places(self._file.fileno(), start, count)

    def close(self) -> None:
        """Stop, and let go of everything."""
        self.worker.close()
        if self._here is not None:
            self._here.close()
        self._file.close()


def records_of(feed: Feed, options: Options) -> ListedRecords:
    """What lists the records of a feed's exchanges: beside the screens as the feed is, or at once."""
    return ListedRecords(feed.descriptor, feed.source.limits, options, is_at_once=isinstance(feed, Decoded))
