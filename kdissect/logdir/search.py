"""Finds the next batch in a damaged segment."""

from __future__ import annotations

import re
from collections.abc import Callable

from kdissect.limits import Limits
from kdissect.record.messages import LOG_OVERHEAD
from kdissect.record.sets import frame_defect, read_record_set

ReadAt = Callable[[int, int], bytes]
"""(position, count) → the bytes from there; fewer than ``count`` at the end of the file."""

PART = 1 << 20
"""The number of bytes read from a file at a time."""
HEAD = 17
"""The bytes of an entry up to and including its magic, which decides its form."""

_OFFSETS = 1 << 31
"""The number of offsets of a segment: each is the base offset plus an int32."""
_EFFORT = 8
"""How many bytes are searched and checksummed, for each byte of the segment."""
_SIZE_AND_MAGIC = (
    rb"(?:\0\0\0[\x0e-\xff]|\0\0[^\0].|\0[^\0]..|[\x01-\x06]...)"  # a size of 14 bytes to 112 MiB
    rb".{4}[\0-\2]"
)


def announced_size(head: bytes) -> int | None:
    """The size of an entry by its header, including offset and size; None if there are too few bytes."""
    if len(head) < LOG_OVERHEAD:
        return None
    return int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD


def goes_on(read_at: ReadAt, position: int, size: int, last: int | None) -> bool:
    """Whether ``position`` is the end of the file or the start of an entry with an offset after ``last``."""
    if position >= size:
        return position == size
    head = read_at(position, min(HEAD, size - position))
    defect = frame_defect(head, 0)
    if defect is not None and defect.kind != "partial-batch":
        return False
    first = _first(last)
    return (
        len(head) < LOG_OVERHEAD or first <= int.from_bytes(head[:8], "big", signed=True) < first + _OFFSETS
    )


def _first(last: int | None) -> int:
    """The smallest offset that may come next."""
    return 0 if last is None else max(0, last + 1)


class BatchSearch:
    """Finds batches in one segment. It gives up after an effort that is proportional to the segment's size.
    So no bytes can make it search the same place again and again."""

    def __init__(self, read_at: ReadAt, size: int, limits: Limits) -> None:
        self._read_at = read_at
        self._limits = limits
        self._effort = _EFFORT * size + PART

    def find(self, position: int, size: int, last: int | None) -> int | None:
        """The start of the next batch with offsets after ``last`` and the right checksum."""
        candidates, first = _candidates(last), _first(last)
        while size - position >= HEAD and self._effort > 0:
            part = self._read_at(position, min(PART + HEAD, size - position))
            self._effort -= len(part)
            for match in candidates.finditer(part):
                at = match.start()
                offset = int.from_bytes(part[at : at + 8], "big", signed=True)
                if not first <= offset < first + _OFFSETS:
                    continue
                announced = announced_size(part[at : at + HEAD])
                assert announced is not None
                if announced > min(size - position - at, self._limits.frame_bytes):
                    continue
                if self._fits(position + at, announced, first):
                    return position + at
                if self._effort <= 0:
                    return None
            if len(part) <= PART:
                return None
            position += PART
        return None

    def _fits(self, position: int, announced: int, first: int) -> bool:
        self._effort -= announced
        found = read_record_set(self._read_at(position, announced), self._limits).batches
        return bool(found and found[0].crc_valid and found[0].last_offset >= first)


def _candidates(last: int | None) -> re.Pattern[bytes]:
    """A pattern of places where an entry may begin: the high bytes of its offset, its size and its magic are
    possible."""
    first = _first(last)
    high = {(offset >> 32).to_bytes(4, "big") for offset in (first, first + _OFFSETS)}
    offsets = b"|".join(map(re.escape, sorted(high)))
    return re.compile(rb"(?s)(?=(?:" + offsets + rb").{4}" + _SIZE_AND_MAGIC + rb")")


def zeros_to_end(read_at: ReadAt, position: int, size: int) -> bool:
    """Whether all bytes up to the end are zeros."""
    while position < size:
        part = read_at(position, min(PART, size - position))
        if not part or part.strip(b"\0"):
            return False
        position += len(part)
    return True
