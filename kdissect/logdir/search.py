"""Where in a damaged segment the next batch begins."""

from __future__ import annotations

import re
from collections.abc import Callable

from kdissect.limits import Limits
from kdissect.record.messages import LOG_OVERHEAD
from kdissect.record.sets import frame_defect, read_record_set

ReadAt = Callable[[int, int], bytes]
"""(position, count) → so many bytes from there, or fewer where the file ends."""

PART = 1 << 20
"""Bytes of a file that are read at a time."""
HEAD = 17
"""Bytes of an entry up to its magic, which tells its form."""

_OFFSETS = 1 << 31
"""Offsets of a segment are its base offset and an int32."""
_EFFORT = 8
"""Bytes of one segment that are looked at in searches, and checksums in them, for each byte it has."""
_SIZE_AND_MAGIC = (
    rb"(?:\0\0\0[\x0e-\xff]|\0\0[^\0].|\0[^\0]..|[\x01-\x06]...)"  # a size of 14 bytes to 112 MiB
    rb".{4}[\0-\2]"
)


def announced_size(head: bytes) -> int | None:
    """The bytes that an entry announces, offset and size with it; None where too few are there."""
    if len(head) < LOG_OVERHEAD:
        return None
    return int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD


def goes_on(read_at: ReadAt, position: int, size: int, last: int | None) -> bool:
    """Whether at ``position`` the file ends, or an entry begins whose offset goes on after ``last``."""
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
    """The least offset that may come next."""
    return 0 if last is None else max(0, last + 1)


class BatchSearch:
    """Finds batches in one segment. It gives up when it has taken all the effort that the segment's size is
    worth. So no bytes can make it look at the same ones again and again.
    """

    def __init__(self, read_at: ReadAt, size: int, limits: Limits) -> None:
        self._read_at = read_at
        self._limits = limits
        self._effort = _EFFORT * size + PART

    def find(self, position: int, size: int, last: int | None) -> int | None:
        """Where a batch begins whose offsets go on after ``last`` and whose checksum fits."""
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
    """Where an entry may begin: the high bytes of its offset, its size and its magic are possible."""
    first = _first(last)
    high = {(offset >> 32).to_bytes(4, "big") for offset in (first, first + _OFFSETS)}
    offsets = b"|".join(map(re.escape, sorted(high)))
    return re.compile(rb"(?s)(?=(?:" + offsets + rb").{4}" + _SIZE_AND_MAGIC + rb")")


def zeros_to_end(read_at: ReadAt, position: int, size: int) -> bool:
    """Whether there are only zeros."""
    while position < size:
        part = read_at(position, min(PART, size - position))
        if not part or part.strip(b"\0"):
            return False
        position += len(part)
    return True
