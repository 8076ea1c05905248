"""Whether a reader of committed records got records that it must not count (KIP-98).

A broker gives such a reader only records before the last stable offset. The answer names the aborted
transactions among them, and the reader leaves out their batches.
"""

from __future__ import annotations

from typing import Any

from kdissect.analysis.headers import Header
from kdissect.analysis.shared_parts import SharedSet
from kdissect.record.sets import read_record_set

ABORT = b"\0\0"
"""The type in the key of a control record, after two bytes of version."""


def first_beyond(found: SharedSet, partition: dict[str, Any]) -> int | None:
    """The offset of the first batch at or after the last stable offset in the same answer. One such answer
    proves nothing: a broker notes that offset before it reads the log, so the offset may have moved on in
    between."""
    stable, end = partition.get("lastStableOffset", -1), found.batches.end
    if stable < 0 or end is None or end <= stable:
        return None
    beyond = (each.base_offset for each in found.headers if not each.is_control)
    return min((offset for offset in beyond if offset >= stable), default=None)


def has_unnamed(found: SharedSet, partition: dict[str, Any]) -> bool:
    """Whether the answer has an abort marker with batches before it, and does not name that transaction.
    Batches whose marker is in another answer are not judged."""
    if "abortedTransactions" not in partition or not found.batches.control:
        return False
    named = [
        (each.get("producerId"), each.get("firstOffset", -1))
        for each in partition["abortedTransactions"] or ()
    ]
    begun: dict[int, int] = {}
    for each in found.headers:
        if not each.is_control:
            if each.is_transactional:
                begun.setdefault(each.producer_id, each.base_offset)
            continue
        first = begun.pop(each.producer_id, None)
        if first is None or not _aborts(found, each):
            continue
        if not any(producer_id == each.producer_id and offset <= first for producer_id, offset in named):
            return True
    return False


def _aborts(found: SharedSet, batch: Header) -> bool:
    data = found.place.data[batch.position : batch.position + batch.size]
    records = read_record_set(data, found.limits).records()
    return any(record.key is not None and record.key[2:4] == ABORT for record in records)
