"""Messages of magic 0 and 1, and the sets of them that compressed ones wrap.

A message is offset, size, CRC, magic, attributes, in magic 1 a timestamp, then key and value with
int32 lengths. A compressed message is a wrapper: its value is a message set. The rules for what is
inside (KIP-31, KIP-32, ``AbstractLegacyRecordBatch.DeepRecordsIterator``):

* the wrapper's offset is that of its last message;
* magic 0: inner offsets are absolute. Magic 1: they are relative; the wrapper's offset minus the last
  inner one is what must be added, or nothing where the wrapper's offset is 0 (a producer may not set it);
* a wrapper with LogAppendTime gives its timestamp to every message in it;
* a wrapper in a wrapper is not allowed, and is not opened here.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from kdissect.faults import fault
from kdissect.model import DecodeError, Fault
from kdissect.record.records import Record, new_record, wrap64
from kdissect.wording import plural

MESSAGE_HEADER = Struct(">qiIbb")
"""Offset, size of what follows it, CRC, magic, attributes."""
LOG_OVERHEAD = 12
"""Bytes of offset and size, which the size does not count."""
SMALLEST_MESSAGE = (14, 22)
"""By magic: the least size, with null key and value."""

_int32 = Struct(">i").unpack_from
_int64 = Struct(">q").unpack_from
_crc_of = Struct(">I").unpack_from


def message_timestamp(data: bytes, position: int, magic: int) -> int:
    """The timestamp of the message at ``position``; -1 in magic 0, which has none."""
    timestamp: int = _int64(data, position + 18)[0] if magic == 1 else -1
    return timestamp


def message_crc_is_valid(data: bytes, position: int, end: int) -> bool:
    """CRC-32 from magic to the end."""
    valid: bool = zlib.crc32(memoryview(data)[position + 16 : end]) == _crc_of(data, position + 12)[0]
    return valid


def key_and_value(data: bytes, position: int, end: int, magic: int) -> tuple[int, int, int, int, int]:
    """Where key and value of the message at ``position`` are: key start and length, value start and
    length, and the end of the value. Length -1 is null.

    :raises DecodeError: a length that the message cannot hold.
    """
    at = position + (26 if magic == 1 else 18)
    key_length = _int32(data, at)[0]
    key_start = at + 4
    if key_length < -1 or key_length > end - key_start - 4:
        raise _no_room("key", key_length, end - key_start - 4, at)
    at = key_start + max(key_length, 0)
    value_length = _int32(data, at)[0]
    value_start = at + 4
    if value_length < -1 or value_length > end - value_start:
        raise _no_room("value", value_length, end - value_start, at)
    return key_start, key_length, value_start, value_length, value_start + max(value_length, 0)


def _no_room(what: str, length: int, left: int, at: int) -> DecodeError:
    text = f"a {what} of {plural(length, 'byte')} where {plural(left, 'is', 'are')} left"
    return DecodeError(text, at)


def piece(data: bytes, start: int, length: int) -> bytes | None:
    """``length`` bytes, or null for -1."""
    return None if length < 0 else data[start : start + length]


class Unwrapped(NamedTuple):
    """The messages of a wrapper."""

    records: list[Record]
    faults: list[Fault]
    found: int
    """Messages whose frame could be read; -1 where the set in the wrapper breaks off."""
    base_offset: int | None
    """Of the first message, be its contents broken or not; None where it cannot be told."""


def unwrap(
    data: bytes,
    complete: bool,
    wrapper_magic: int,
    wrapper_offset: int,
    append_timestamp: int | None,
    limit: int,
) -> Unwrapped:
    """Read the message set that was unpacked from a wrapper.

    :param complete: all of it could be unpacked.
    :param append_timestamp: the wrapper's, where its timestamp type is ``LogAppendTime``.
    :param limit: the most records to make.
    """
    inside = _read_inside(data, append_timestamp, limit)
    faults = _faults_inside(inside, complete)
    complete = complete and inside.stop is None
    records = inside.records
    base_offset = inside.first_offset if complete and inside.found else None
    if wrapper_magic == 1 and wrapper_offset != 0 and inside.found:
        try:
            base = _what_to_add(inside, complete, wrapper_offset)
        except DecodeError as error:
            left_out = plural(inside.found, "message")
            faults.append(fault("bad-batch", f"{left_out} left out: {error.reason}"))
            records, base_offset = [], None
        else:
            base_offset = wrap64(base + inside.first_offset)
            records = [record._replace(offset=wrap64(base + record.offset)) for record in records]
    return Unwrapped(records, faults, inside.found if complete else -1, base_offset)


@dataclass(slots=True)
class _Inside:
    """What a wrapper holds, with offsets as they stand there."""

    records: list[Record] = field(default_factory=list)
    found: int = 0
    """Messages whose frame could be read."""
    first_offset: int = -1
    last_offset: int = -1
    stop: DecodeError | None = None
    """Why reading ended before the end."""
    bad_crc: int = 0
    nested: int = 0
    broken: int = 0
    first_broken: str = ""
    """What is wrong with the first broken one."""
    excess: int = 0
    """Bytes after the values."""


def _read_inside(data: bytes, append_timestamp: int | None, limit: int) -> _Inside:
    """Message after message, until the end or a frame that leads no further."""
    inside = _Inside()
    position, end = 0, len(data)
    try:
        while position < end:
            offset, message_end, magic, attributes = _frame_inside(data, position)
            if inside.found >= limit:
                text = f"more than {plural(limit, 'message')}, the limit"
                raise DecodeError(text, position, "too-many-elements")
            if not inside.found:
                inside.first_offset = offset
            inside.found += 1
            inside.last_offset = offset
            if not message_crc_is_valid(data, position, message_end):
                inside.bad_crc += 1
            if attributes & 7:  # a codec
                inside.nested += 1
            else:
                _read_message_inside(inside, data, position, message_end, offset, magic, append_timestamp)
            position = message_end
    except DecodeError as error:
        inside.stop = error
    return inside


def _frame_inside(data: bytes, position: int) -> tuple[int, int, int, int]:
    """Offset, end, magic and attributes of the message at ``position``.

    :raises DecodeError: no message of magic 0 or 1 that is whole begins there.
    """
    left = len(data) - position
    if left < LOG_OVERHEAD + SMALLEST_MESSAGE[0]:
        raise DecodeError(f"{plural(left, 'byte')} where a message should begin", position, "bad-record")
    offset, size, _, magic, attributes = MESSAGE_HEADER.unpack_from(data, position)
    if magic not in (0, 1):
        text = f"magic {magic} inside a wrapper, at {position} of what it holds"
        raise DecodeError(text, position, "bad-magic")
    left -= LOG_OVERHEAD
    if not SMALLEST_MESSAGE[magic] <= size <= left:
        text = f"a message of {plural(size, 'byte')} where {plural(left, 'is', 'are')} left"
        raise DecodeError(text, position, "bad-record")
    return offset, position + LOG_OVERHEAD + size, magic, attributes


def _read_message_inside(
    inside: _Inside,
    data: bytes,
    position: int,
    end: int,
    offset: int,
    magic: int,
    append_timestamp: int | None,
) -> None:
    """Add one message's record, or that it is broken."""
    try:
        key, key_length, value, value_length, last = key_and_value(data, position, end, magic)
    except DecodeError as error:
        inside.broken += 1
        inside.first_broken = inside.first_broken or error.reason
        return
    inside.excess += end - last
    timestamp = append_timestamp
    if timestamp is None or magic == 0:
        timestamp = message_timestamp(data, position, magic)
    found_key = None if key_length < 0 else data[key : key + key_length]
    found_value = None if value_length < 0 else data[value:last]
    inside.records.append(new_record(Record, (offset, timestamp, found_key, found_value, (), -1)))


def _faults_inside(inside: _Inside, complete: bool) -> list[Fault]:
    """What is wrong with the messages. That a set of which not all could be unpacked breaks off goes
    without saying."""
    faults = []
    stop = inside.stop
    if stop is not None and stop.kind != "bad-record":
        faults.append(fault(stop.kind, stop.reason, layer="records"))
    elif stop is not None and complete:
        faults.append(fault(stop.kind, f"the set inside a wrapper breaks off: {stop.reason}"))
    if inside.bad_crc or inside.nested or inside.broken:
        among = f"of {plural(inside.found, 'message')} inside a wrapper"
        if inside.bad_crc:
            faults.append(fault("bad-crc", f"{inside.bad_crc:,} {among}"))
        if inside.nested:
            faults.append(fault("nested-compression", f"{inside.nested:,} {among}, compressed again"))
        if inside.broken:
            text = f"{inside.broken:,} broken {among}; the first: {inside.first_broken}"
            faults.append(fault("bad-record", text))
    if inside.excess:
        excess = plural(inside.excess, "byte")
        faults.append(fault("bad-record", f"{excess} after the values of messages inside a wrapper"))
    if not inside.found and complete and stop is None:
        faults.append(fault("bad-batch", "a wrapper without messages"))
    return faults


def _what_to_add(inside: _Inside, complete: bool, wrapper_offset: int) -> int:
    """What makes relative offsets absolute (magic 1).

    :raises DecodeError: it cannot be told.
    """
    if not complete:
        # They count from the last one, which is not there: a guess is worse than a gap.
        raise DecodeError("their offsets cannot be told", 0)
    if inside.last_offset > wrapper_offset:
        text = f"the last inner offset {inside.last_offset} is beyond the wrapper's {wrapper_offset}"
        raise DecodeError(text, 0)
    return wrapper_offset - inside.last_offset
