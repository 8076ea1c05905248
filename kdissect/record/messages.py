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
from struct import Struct
from typing import NamedTuple

from kdissect.faults import fault
from kdissect.model import DecodeError, Fault
from kdissect.record.records import Record, wrap64

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
        raise DecodeError(f"a key of {key_length} bytes where {end - key_start - 4} are left", at)
    at = key_start + max(key_length, 0)
    value_length = _int32(data, at)[0]
    value_start = at + 4
    if value_length < -1 or value_length > end - value_start:
        raise DecodeError(f"a value of {value_length} bytes where {end - value_start} are left", at)
    return key_start, key_length, value_start, value_length, value_start + max(value_length, 0)


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
    records: list[Record] = []
    faults: list[Fault] = []
    position, end = 0, len(data)
    found = bad_crc = nested = broken = excess = 0
    first_broken = ""
    first_inner = last_inner = -1
    reason = None
    while position < end:
        if end - position < LOG_OVERHEAD + SMALLEST_MESSAGE[0]:
            reason = f"{end - position} bytes where a message should begin"
            break
        offset, size, _, magic, attributes = MESSAGE_HEADER.unpack_from(data, position)
        if magic not in (0, 1):
            faults.append(
                fault("bad-magic", f"magic {magic} inside a wrapper, at {position} of what it holds")
            )
            complete = False
            break
        if size < SMALLEST_MESSAGE[magic] or size > end - position - LOG_OVERHEAD:
            reason = f"a message of {size} bytes where {end - position - LOG_OVERHEAD} are left"
            break
        if found >= limit:
            faults.append(
                fault("too-many-elements", f"more than {limit} messages, the limit", layer="records")
            )
            complete = False
            break
        if not found:
            first_inner = offset
        found += 1
        last_inner = offset
        message_end = position + LOG_OVERHEAD + size
        if not message_crc_is_valid(data, position, message_end):
            bad_crc += 1
        if attributes & 7:
            nested += 1
        else:
            try:
                key, key_length, value, value_length, last = key_and_value(data, position, message_end, magic)
                excess += message_end - last
                timestamp = message_timestamp(data, position, magic)
                if append_timestamp is not None and magic == 1:
                    timestamp = append_timestamp
                records.append(
                    Record(offset, timestamp, piece(data, key, key_length), piece(data, value, value_length))
                )
            except DecodeError as error:
                broken += 1
                first_broken = first_broken or error.reason
        position = message_end
    if reason and complete:
        faults.append(fault("bad-record", f"the set inside a wrapper breaks off: {reason}"))
        complete = False
    if bad_crc:
        faults.append(fault("bad-crc", f"{bad_crc} of {found} messages inside a wrapper"))
    if nested:
        faults.append(
            fault("nested-compression", f"{nested} of {found} messages inside a wrapper are wrappers")
        )
    if broken:
        faults.append(
            fault(
                "bad-record",
                f"{broken} of {found} messages do not have their form; the first: {first_broken}",
            )
        )
    if excess:
        faults.append(fault("bad-record", f"{excess} bytes after the values of messages inside a wrapper"))
    if not found and complete:
        faults.append(fault("bad-batch", "a wrapper without messages"))
    base_offset = first_inner if complete and found else None
    if wrapper_magic == 1 and wrapper_offset != 0 and found:
        if not complete:
            # Relative offsets count from the last one, which is not there: a guess is worse than a gap.
            faults.append(fault("bad-batch", f"{found} messages left out: their offsets cannot be told"))
            records = []
        elif last_inner > wrapper_offset:
            faults.append(
                fault(
                    "bad-batch",
                    f"{found} messages left out: the last inner offset {last_inner} is beyond the wrapper's "
                    f"{wrapper_offset}",
                )
            )
            records, base_offset = [], None
        else:
            base = wrapper_offset - last_inner
            base_offset = wrap64(base + first_inner)
            records = [record._replace(offset=wrap64(base + record.offset)) for record in records]
    return Unwrapped(records, faults, found if complete else -1, base_offset)
