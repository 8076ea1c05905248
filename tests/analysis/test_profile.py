"""What a profile counts of batches and errors."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.limits import Limits
from tests.analysis.folds import fold
from tests.analysis.produced import batch, fetch, produce

Counts = dict[str, tuple[int, int | None]]


def counted(area: str, *exchanges: Exchange) -> Counts:
    """The count and the total of each quantity of an area with one subject."""
    rows = [row for row in fold("profile", exchanges).result() if row["area"] == area]
    assert len({row["subject"] for row in rows}) == 1
    return {row["what"]: (row["count"], row["total"]) for row in rows}


def test_the_batches_of_a_record_set_count_one_by_one() -> None:
    plain, packed = batch("a", "b"), batch("c", "d", "e", codec=1)
    size = len(plain) + len(packed)
    found = counted("topic", produce(0, plain + packed, 0), fetch(5, plain + packed, 5), fetch(6, b"", 5))
    assert found["records written"] == found["records read"] == (2, 5)
    assert found["bytes written"] == found["bytes read"] == (2, size)
    assert found["batch size"] == (2, size)
    assert found["records per batch"] == (2, 5)
    assert (found["codec none"], found["codec gzip"]) == ((2, 1), (2, 1))


def test_an_error_has_a_share_of_the_exchanges_of_each_subject() -> None:
    exchanges = [produce(0, batch("a"), error=29), produce(1, batch("b"), error=6), produce(2, batch("c"), 0)]
    for area in ("api", "broker", "client", "topic"):
        found = counted(area, *exchanges)
        assert found["errors"] == (3, 2)
        assert found["fatal error TOPIC_AUTHORIZATION_FAILED"] == (3, 1)
        assert found["error NOT_LEADER_OR_FOLLOWER"] == (3, 1)


def test_what_has_no_room_is_counted_for_each_batch_and_error() -> None:
    one, two = (
        fold("profile", [produce(0, data, error=29)], Limits(rows=1)).left_out
        for data in (batch("a"), batch("a") + batch("b"))
    )
    assert two - one == 6  # records, bytes, size, records per batch, number, codec
