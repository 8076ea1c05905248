"""How often each key of records occurs."""

from __future__ import annotations

from kdissect.analysis.frequent import KeyCount, RecordSpot, digest_of, tops

ONE, OTHER = digest_of(b"one"), digest_of(b"other")


def count(*spots: tuple[int, int, int]) -> KeyCount:
    """Of records by time, partition and offset."""
    found = KeyCount()
    for ns, partition, offset in spots:
        found.add(RecordSpot(ns, ns, 0, partition, offset))
    return found


def test_the_most_frequent_key_and_its_first_record() -> None:
    counts = {("t", ONE): count((2, 0, 8), (1, 0, 7)), ("t", OTHER): count((0, 1, 3))}
    top = tops(counts)["t",]
    assert (top.keys, top.records, top.partition, top.offset) == (2, 2, 0, 7)


def test_of_two_the_one_that_came_first_in_any_order() -> None:
    counts = {("t", ONE): count((5, 0, 5)), ("t", OTHER): count((4, 1, 4))}
    assert tops(counts) == tops(dict(reversed(counts.items())))
    assert tops(counts)["t",].offset == 4


def test_a_key_in_several_partitions_has_none_however_it_was_counted() -> None:
    spots = (1, 0, 1), (2, 0, 2), (3, 1, 1)
    for at in range(4):
        parts = count(*spots[:at])
        parts.merge(count(*spots[at:]))
        assert parts == count(*spots)
        assert tops({("t", ONE): parts})["t",].partition == -1
