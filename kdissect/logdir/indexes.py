"""Index files → their entries.

| file | entry | Kafka's class |
|---|---|---|
| ``.index`` | offset relative to the base (int32), position in the segment (int32). | ``OffsetIndex`` |
| ``.timeindex`` | timestamp (int64), relative offset (int32). | ``TimeIndex`` |
| ``.txnindex`` | version (int16), then the fields of ``AbortedTxn`` (int64 each). | ``TransactionIndex`` |

Offset and time indexes are preallocated: after the last entry they may be filled with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from kdissect.faults import fault
from kdissect.logdir.search import PART, ReadAt
from kdissect.model import Fault
from kdissect.wording import plural

OFFSET, TIME, TRANSACTION = "offset", "time", "transaction"

_FORMS = {OFFSET: Struct(">ii"), TIME: Struct(">qi"), TRANSACTION: Struct(">hqqqq")}
_PREALLOCATED = (OFFSET, TIME)
TRANSACTION_FIELDS = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")


class Entry(NamedTuple):
    """One entry of an index."""

    at: int
    """Its position in the index file."""
    values: dict[str, int]
    """The fields; relative offsets are converted to absolute ones."""


def read_entries(kind: str, read_at: ReadAt, size: int, base_offset: int) -> Iterator[Entry | Fault]:
    """The entries of an index file of the ``kind`` offset, time or transaction."""
    form = _FORMS[kind]
    end = _end_of_entries(kind, read_at, size)
    position = 0
    while end - position >= form.size:
        want = min(PART // form.size * form.size, (end - position) // form.size * form.size)
        part = read_at(position, want)
        part = part[: len(part) // form.size * form.size]
        if not part:
            yield fault(
                "cut-short",
                f"the file had {plural(size, 'byte')}, {position:,} could be read",
                offset=position,
            )
            return
        for at, numbers in enumerate(form.iter_unpack(part)):
            yield _entry(kind, position + at * form.size, numbers, base_offset)
        position += len(part)
    if end > position:
        text = f"{plural(end - position, 'byte')} after the last entry; entries have {form.size}"
        yield fault("trailing-bytes", text, offset=position)
    elif (size - end) % form.size:
        text = (
            f"{plural((size - end) % form.size, 'byte')} of zero after what was preallocated "
            f"for entries of {form.size}"
        )
        yield fault("trailing-bytes", text, offset=size - size % form.size)


def preallocated(kind: str, read_at: ReadAt, size: int) -> int:
    """The number of zero bytes after the last entry."""
    return size - _end_of_entries(kind, read_at, size)


def _end_of_entries(kind: str, read_at: ReadAt, size: int) -> int:
    if kind not in _PREALLOCATED:
        return size
    step, end = _FORMS[kind].size, size
    while end > 0:
        start = max(0, end - PART)
        used = len(read_at(start, end - start).rstrip(b"\0"))
        if used:
            # The last entry may itself end with zeros: round up to a whole entry.
            return min(size, -(-(start + used) // step) * step)
        end = start
    return 0


def _entry(kind: str, at: int, numbers: tuple[int, ...], base_offset: int) -> Entry:
    if kind == OFFSET:
        return Entry(at, {"offset": base_offset + numbers[0], "position": numbers[1]})
    if kind == TIME:
        return Entry(at, {"timestamp": numbers[0], "offset": base_offset + numbers[1]})
    return Entry(at, dict(zip(TRANSACTION_FIELDS, numbers, strict=True)))
