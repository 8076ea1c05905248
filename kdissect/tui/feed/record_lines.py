"""Records → lines of fixed size in a temporary file, for a list of which only what is on the screen is read.

A capture of a million exchanges may hold a hundred million records. What a list needs of one takes 256
bytes, the beginnings of key and value among them, and stands in a file without a name at its row's place:
the screens keep nothing of a record, and read the lines that they draw. The whole record is read anew from
the spool, by its place in the index and its address in the exchange.

No more than :data:`MOST_RECORDS` are listed, a file of 244 MiB; a filter chooses others.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Any, BinaryIO, NamedTuple

from kdissect.exchange import Exchange
from kdissect.filter.compiled import Filter
from kdissect.present.options import Options
from kdissect.present.payload import framing_of
from kdissect.present.records import Address, addressed_rows
from kdissect.present.sanitise import sanitise
from kdissect.present.secret_names import REDACTED
from kdissect.protocol.json_form import dumps
from kdissect.system import read_at
from kdissect.tui.feed.rows import Texts

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


class RecordLines:
    """Writes the lines of a list into ``file``, from its beginning, and counts them."""

    def __init__(self, file: BinaryIO, chosen: Filter | None, options: Options) -> None:
        self._file = file
        # Where a filter says nothing of records, it chose the exchanges, and all their records are shown.
        asks = chosen is not None and any(name.startswith("record.") for name in chosen.fields)
        self._filter = chosen if asks else None
        self._options = options
        self.texts = Texts()
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
    decoded = row.get(f"{side}Decoded")
    if row["control"] is not None:
        return dumps(row["control"]) if side == "value" else None
    if decoded is not None:
        version = "" if decoded["version"] is None else f" v{decoded['version']}"
        return f"{decoded['name'] or 'Unknown'}{version} {dumps(decoded['data'])}"
    return REDACTED if is_redacted(row, side) else None


def is_redacted(row: dict[str, Any], side: str) -> bool:
    """Whether a value is hidden. It may be that it says so itself: then the size differs."""
    return side == "value" and row["value"] == REDACTED.encode() and row["value_size"] != len(REDACTED)
