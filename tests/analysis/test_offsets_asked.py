"""Who asked for committed offsets, and how often there were none."""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.offsets_asked import MOST, OffsetsAsked
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from tests.analysis.folds import made
from tests.analysis.traffic import TOPIC, asked_offsets


def fed(events: Sequence[Exchange], limits: Limits | None = None) -> OffsetsAsked:
    found = OffsetsAsked(limits) if limits is not None else OffsetsAsked()
    for event in events:
        found.feed(event)
    return found


def test_the_last_answer_is_kept_with_the_counts() -> None:
    events = [asked_offsets((1, 2), 5, 6), asked_offsets((3, 4), -1, 6), asked_offsets((5, 6), -1, -1)]
    first, later = fed(events[:2]), fed(events[2:])
    first.merge(later)
    (row,) = first.result()
    assert (row["group"], row["answers"], row["without"]) == ("readers", 3, 2)
    assert (row["last_partitions"], row["last_without"], row["last_ns"]) == (2, 2, 6 * MILLISECOND)
    assert (row["topics"], row["exchanges"]) == ([TOPIC], [3 * MILLISECOND, 5 * MILLISECOND])
    assert row["brokers"] == [events[0].broker]


def test_the_last_answer_is_the_same_whichever_part_is_fed_first() -> None:
    events = [asked_offsets((1, 2), 5), asked_offsets((3, 4), -1)]
    rows = fed(events).result()
    later = fed(events[1:])
    later.merge(fed(events[:1]))
    assert [row["last_ns"] for row in later.result()] == [row["last_ns"] for row in rows] == [4 * MILLISECOND]
    assert later.result()[0]["last_without"] == 1


def test_a_row_for_each_group() -> None:
    rows = fed([asked_offsets((1, 2), 5), asked_offsets((3, 4), -1, group="others")]).result()
    assert [(row["group"], row["answers"], row["without"]) for row in rows] == [
        ("others", 1, 1),
        ("readers", 1, 0),
    ]


def test_an_older_version_names_its_group_in_the_request() -> None:
    partition = {"partitionIndex": 0, "committedOffset": -1, "metadata": "", "errorCode": 0}
    answer = {"throttleTimeMs": 0, "topics": [{"name": TOPIC, "partitions": [partition]}], "errorCode": 0}
    (row,) = fed([made("OffsetFetch", 4, {"groupId": "old", "topics": None}, answer)]).result()
    assert (row["group"], row["answers"], row["without"]) == ("old", 1, 1)


def test_what_was_refused_or_not_answered_is_no_answer() -> None:
    refused = asked_offsets((1, 2), -1, error=16)
    nothing = asked_offsets((3, 4))
    lost = asked_offsets((5, 6), -1)
    lost.response, lost.missing = None, "gap"
    assert fed([refused, nothing, lost]).result() == []


def test_no_more_is_kept_than_the_limits() -> None:
    events = [asked_offsets((2 * at + 1, 2 * at + 2), -1) for at in range(2 * MOST)]
    (row,) = fed(events).result()
    assert (row["answers"], len(row["exchanges"])) == (2 * MOST, MOST)
    few = fed([asked_offsets((1, 2), 5), asked_offsets((3, 4), 5, group="others")], Limits(rows=1))
    assert (len(few.result()), few.left_out) == (1, 1)
