"""Checks index entries against each other and against the batches of their segment: where a lookup would go
wrong.

The rules, which every release of Kafka keeps:

* Offset index. The position is the start of a batch, and all offsets before it are smaller. Up to 0.10.0 the
  offset is the first of that batch. Since then it is the last offset of one append, which up to 3.9 may be
  several batches. So it is in that batch, or it is the last offset of a later one.
* Time index. The offset is in a batch whose largest timestamp is the entry's.
* Transaction index. The last offset is that of the control record that aborted a transaction of the producer.
  The last stable offset is at most the one after it.
* Entries ascend. In the transaction index, the last offset ascends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from kdissect.embedded.control import control_column
from kdissect.faults import fault
from kdissect.logdir.indexes import OFFSET, TIME, TRANSACTION, Entry
from kdissect.model import Fault
from kdissect.record.batch import Batch

Place = tuple[int, Batch]
"""The position of a batch in the segment, and the batch."""

AT_A_TIME = 1 << 17
"""The number of entries in memory at a time; the segment is read once for them. Kafka's default sizes allow
two such parts."""

_ASCENDING = {OFFSET: ("offset", "position"), TIME: ("timestamp", "offset"), TRANSACTION: ("lastOffset",)}
_STRICTLY = {OFFSET: "offset", TIME: "timestamp", TRANSACTION: "lastOffset"}


def check_entries(
    kind: str, entries: Iterable[Entry | Fault], base_offset: int, segment: Iterable[Place] | None
) -> Iterator[Entry | Fault]:
    """The same entries and faults, each entry followed by its faults.

    :param segment: its batches, read again at every ``iter``; None if the segment does not exist.
    """
    source = iter(entries)
    before: Entry | None = None
    while part := list(islice(source, AT_A_TIME)):
        own = [each for each in part if isinstance(each, Entry)]
        problems = {} if segment is None else _against_segment(kind, own, iter(segment), base_offset)
        for each in part:
            yield each
            if isinstance(each, Entry):
                problem = _form(kind, each, before, base_offset) or problems.get(each.at)
                if problem is not None:
                    yield fault("index-mismatch", problem, offset=each.at)
                before = each


def _form(kind: str, entry: Entry, before: Entry | None, base_offset: int) -> str | None:
    """The fault of an entry that shows without the segment."""
    values = entry.values
    if kind == TRANSACTION:
        if values["version"] != 0:
            return f"version {values['version']}, only 0 is known"
        if not values["firstOffset"] <= values["lastOffset"]:
            return f"a transaction from offset {values['firstOffset']} to {values['lastOffset']}"
        if values["lastStableOffset"] > values["lastOffset"] + 1:
            return (
                f"last stable offset {values['lastStableOffset']} and a last offset of {values['lastOffset']}"
            )
    elif values["offset"] < base_offset:
        return f"offset {values['offset']} in an index from {base_offset} on"
    for name in _ASCENDING[kind]:
        if before is None:
            break
        least = before.values[name] + (name == _STRICTLY[kind])
        if values[name] < least:
            return f"{name} {values[name]} after {before.values[name]}"
    return None


def _against_segment(
    kind: str, entries: Sequence[Entry], batches: Iterator[Place], base_offset: int
) -> dict[int, str]:
    """The faults of the entries, by their position in the index."""
    if kind == OFFSET:
        return _offset_problems(entries, batches, base_offset)
    if kind == TIME:
        return _time_problems(entries, batches)
    return _transaction_problems(entries, batches)


def _offset_problems(entries: Sequence[Entry], batches: Iterator[Place], base_offset: int) -> dict[int, str]:
    problems: dict[int, str] = {}
    by_position: dict[int, list[Entry]] = {}
    for entry in entries:
        by_position.setdefault(entry.values["position"], []).append(entry)
    later: dict[int, list[Entry]] = {}
    before = base_offset - 1
    for position, batch in batches:
        for entry in by_position.pop(position, ()):
            offset = entry.values["offset"]
            if offset <= before:
                problems[entry.at] = (
                    f"offset {offset} at position {position}, but offset {before} is before it"
                )
            elif offset > batch.last_offset:
                later.setdefault(offset, []).append(entry)
        later.pop(batch.last_offset, None)
        before = max(before, batch.last_offset)
    for position, those in by_position.items():
        for entry in those:
            problems[entry.at] = (
                f"offset {entry.values['offset']} at position {position}, where no batch begins"
            )
    for offset, those in later.items():
        for entry in those:
            position = entry.values["position"]
            problems[entry.at] = (
                f"offset {offset} at position {position}: the batch there does not contain it, and no "
                "later batch ends with it"
            )
    return problems


def _time_problems(entries: Sequence[Entry], batches: Iterator[Place]) -> dict[int, str]:
    problems: dict[int, str] = {}
    ordered = sorted(entries, key=lambda entry: entry.values["offset"])
    done = 0
    for _, batch in batches:
        while done < len(ordered) and ordered[done].values["offset"] <= batch.last_offset:
            entry = ordered[done]
            done += 1
            timestamp, offset = entry.values["timestamp"], entry.values["offset"]
            if timestamp != batch.max_timestamp:
                largest = batch.max_timestamp
                text = f"timestamp {timestamp} at offset {offset}, but the largest in its batch is {largest}"
                problems[entry.at] = text
    for entry in ordered[done:]:
        problems[entry.at] = (
            f"timestamp {entry.values['timestamp']} at offset {entry.values['offset']}, which is in no batch"
        )
    return problems


def _transaction_problems(entries: Sequence[Entry], batches: Iterator[Place]) -> dict[int, str]:
    problems: dict[int, str] = {}
    by_offset: dict[int, list[Entry]] = {}
    for entry in entries:
        by_offset.setdefault(entry.values["lastOffset"], []).append(entry)
    for _, batch in batches:
        for entry in by_offset.pop(batch.last_offset, ()):
            producer = entry.values["producerId"]
            if not _aborts(batch, producer):
                text = f"at offset {batch.last_offset} no transaction of producer {producer} was aborted"
                problems[entry.at] = text
    for offset, those in by_offset.items():
        for entry in those:
            problems[entry.at] = f"a transaction aborted at offset {offset}, which no batch ends with"
    return problems


def _aborts(batch: Batch, producer: int) -> bool:
    """Whether a batch is the producer's abort marker. An empty batch passes: compaction has removed its
    record."""
    if not batch.is_control or batch.producer_id != producer:
        return False
    records = batch.records()
    if not records:
        return True
    found = control_column(records[-1].key, records[-1].value)
    return found is not None and found["type"] == "ABORT"


def is_damage(fault: Fault) -> bool:
    """Whether a fault concerns the file, so that every form of output reports it."""
    return fault.layer == "file" or fault.kind == "bad-crc"
