"""Index entries that do not agree with their segment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from kdissect.logdir.checks import Place, check_entries
from kdissect.logdir.indexes import TRANSACTION_FIELDS, Entry
from kdissect.model import Fault
from kdissect.record.write import write_batch
from tests.logdir.build import NOW, batch_of, marker_of, places, read
from tests.record.build import message, wrapper

BATCHES = [batch_of(offset) for offset in range(10, 20, 2)]
SEGMENT = b"".join(BATCHES)
SIZE = len(BATCHES[0])
PRODUCER, ABORT, COMMIT = 4, 0, 1


class Anew:
    """The batches of a segment, walked as often as asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __iter__(self) -> Iterator[Place]:
        return places(self.data)


def mismatches(kind: str, rows: Iterable[tuple[int, ...]], data: bytes | None = SEGMENT) -> list[int]:
    """The entries (by number) that are told to be wrong."""
    names = {
        "offset": ("offset", "position"),
        "time": ("timestamp", "offset"),
        "transaction": TRANSACTION_FIELDS,
    }
    entries = [Entry(at, dict(zip(names[kind], row, strict=True))) for at, row in enumerate(rows)]
    found = list(check_entries(kind, entries, 10, None if data is None else Anew(data)))
    assert [each for each in found if isinstance(each, Entry)] == entries
    faults = [each for each in found if isinstance(each, Fault)]
    assert all(fault.kind == "index-mismatch" for fault in faults)
    return [fault.offset for fault in faults if fault.offset is not None]


def test_the_last_offset_of_the_batch_at_the_position_fits() -> None:
    assert mismatches("offset", [(13, SIZE), (17, 3 * SIZE)]) == []


def test_so_does_its_first_as_before_0_10_1() -> None:
    assert mismatches("offset", [(12, SIZE), (16, 3 * SIZE)]) == []


def test_so_does_the_last_offset_of_a_later_batch_of_the_same_append() -> None:
    assert mismatches("offset", [(17, SIZE)]) == []


@pytest.mark.parametrize(
    "wrong",
    [
        (13, SIZE + 1),  # inside a batch
        (13, 5 * SIZE),  # the end
        (13, -1),
        (11, SIZE),  # in the batch before
        (16, SIZE),  # inside a later batch
        (20, SIZE),  # after the last
        (9, 0),  # before the base offset
    ],
)
def test_one_wrong_entry_is_told_and_costs_no_other(wrong: tuple[int, int]) -> None:
    assert mismatches("offset", [(11, 0), wrong]) == [1]
    assert mismatches("offset", [wrong]) == [0]


def test_entries_that_do_not_ascend_are_told() -> None:
    assert mismatches("offset", [(15, 2 * SIZE), (13, SIZE), (17, 3 * SIZE)]) == [1]
    assert mismatches("offset", [(15, 2 * SIZE), (15, 2 * SIZE)], None) == [1]
    assert mismatches("time", [(NOW + 13, 13), (NOW + 13, 13)], None) == [1]
    assert mismatches("transaction", [(0, 1, 10, 12, 13), (0, 1, 10, 12, 13)], None) == [1]


def test_without_a_segment_only_the_entries_are_compared() -> None:
    assert mismatches("offset", [(11, 3), (13, 77)], None) == []


def test_a_wrapper_covers_the_offsets_after_the_one_before() -> None:
    inner = b"".join(message(1, 0, offset, b"x") for offset in range(3))
    first, second = wrapper(1, 1, 12, inner), wrapper(1, 1, 15, inner)
    for offset in (13, 14, 15):
        assert mismatches("offset", [(offset, len(first))], first + second) == []
    assert mismatches("offset", [(12, len(first))], first + second) == [0]


def test_the_largest_timestamp_of_the_batch_that_has_the_offset_fits() -> None:
    assert mismatches("time", [(NOW + 13, 13), (NOW + 19, 19)]) == []
    assert mismatches("time", [(NOW + 13, 12)]) == [], "the record's own offset will do"


@pytest.mark.parametrize(
    "wrong", [(NOW + 12, 13), (NOW + 14, 13), (NOW + 13, 15), (NOW + 19, 20), (NOW + 13, 9)]
)
def test_another_timestamp_or_offset_is_told(wrong: tuple[int, int]) -> None:
    assert mismatches("time", [wrong]) == [0]


TRANSACTION = batch_of(10, producer_id=PRODUCER) + marker_of(12, PRODUCER, ABORT)


def test_the_marker_that_aborted_the_transaction_fits() -> None:
    assert mismatches("transaction", [(0, PRODUCER, 10, 12, 13)], TRANSACTION) == []


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (TRANSACTION, (1, PRODUCER, 10, 12, 13)),
        (TRANSACTION, (0, PRODUCER + 1, 10, 12, 13)),
        (TRANSACTION, (0, PRODUCER, 10, 11, 13)),
        (TRANSACTION, (0, PRODUCER, 10, 13, 13)),
        (TRANSACTION, (0, PRODUCER, 13, 12, 13)),
        (TRANSACTION, (0, PRODUCER, 10, 12, 14)),
        (batch_of(10) + marker_of(12, PRODUCER, COMMIT), (0, PRODUCER, 10, 12, 13)),
    ],
)
def test_anything_else_is_told(data: bytes, wrong: tuple[int, ...]) -> None:
    assert mismatches("transaction", [wrong], data) == [0]


def test_a_marker_that_compaction_emptied_says_no_more_what_it_was() -> None:
    emptied = write_batch(
        [], base_offset=12, last_offset=12, producer_id=PRODUCER, transactional=True, control=True
    )
    assert read(batch_of(10) + emptied, 10).faults == []
    assert mismatches("transaction", [(0, PRODUCER, 10, 12, 13)], batch_of(10) + emptied) == []
