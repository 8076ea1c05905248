"""Rules on what members of a group read at the same time, or once more."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.deliveries import Arrival, read_again
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.positions import Positions
from kdissect.analysis.rebalances import Rebalances
from kdissect.analysis.rereads import Rereads
from kdissect.insight.finding import CRITICAL, LIKELY, NOTICE, Finding
from tests.insight.made import row, said
from tests.insight.rules.shipped import found_in, of_rule


def reader(client_id: str, *spells: tuple[float, float], **values: Any) -> Row:
    made = {"group": "g", "topic": "sales", "partition": 0, "client_id": client_id, "client": "10.0.0.1:5000"}
    reading = [int(at * SECOND) for spell in spells for at in spell]
    return row(Positions, **{**made, "connection": 1, "reading": reading, **values})


def rebalance(begin_s: float, end_s: float) -> Row:
    made = {"group": "g", "begin_ns": int(begin_s * SECOND), "synced_ns": int(end_s * SECOND)}
    return row(Rebalances, **made, completed=True)


def both(*rows: Row, shifts: tuple[Row, ...] = ()) -> list[Finding]:
    return said("double-ownership", {Positions: list(rows), Rebalances: list(shifts)})


def test_two_members_that_read_one_partition_for_5_s_are_told() -> None:
    (found,) = both(reader("one", (0, 20)), reader("two", (10, 15)))
    assert (found.severity, found.confidence, found.measure) == (CRITICAL, LIKELY, 5)
    assert found.message.startswith("one and two both got records of sales-0 for 5.00 s")
    assert not both(reader("one", (0, 20)), reader("two", (10, 14.9)))
    assert not both(reader("one", (0, 20)), reader("two", (10, 15), partition=1))
    assert not both(reader("one", (0, 20)), reader("two", (10, 15), group="h"))
    assert not both(reader("one", (0, 20)), reader("one", (10, 15)))  # it may be one consumer
    assert not both(reader("one", (0, 9), (16, 20)), reader("two", (10, 15)))  # one after the other


def test_each_pair_that_overlaps_is_found_in_any_order_of_the_rows() -> None:
    rows = (
        reader("one", (0, 20)),
        reader("two", (15, 40)),
        reader("late", (50, 60)),
        reader("three", (30, 48)),
    )
    for some in (rows, rows[::-1], (rows[2], rows[0], rows[3], rows[1])):
        (found,) = both(*some)
        assert found.measure == 10  # two and three; one and two only have 5 s
        assert (found.first_ns, found.last_ns) == (15 * SECOND, 40 * SECOND)


def test_what_a_rebalance_parts_is_not_at_the_same_time() -> None:
    rows = reader("one", (0, 20)), reader("two", (10, 18))
    assert both(*rows)
    assert not both(*rows, shifts=(rebalance(13, 14),))


def arrival(base: int, last: int, ns: int, offset: int | None = None) -> Arrival:
    return Arrival(offset, base, last, ns, ns, None, None, None, True)


def test_what_another_member_fetched_before_is_fetched_again() -> None:
    found = read_again({"one": [arrival(0, 99, 1, 0)], "two": [arrival(50, 149, 5, 60)]})
    assert (found.records, found.again, found.clients) == (150, 40, ["two"])  # asked for from 60 on
    assert (found.first_ns, found.last_ns) == (5, 5)
    assert read_again({"one": [arrival(0, 9, 1), arrival(10, 19, 2)]}).again == 0


def test_what_is_not_asked_for_is_known_but_not_counted() -> None:
    first, second = arrival(0, 99, 1, 0), arrival(50, 149, 5, 50)
    found = read_again({"one": [first._replace(counts=False)], "two": [second]})
    assert (found.records, found.again, found.clients) == (50, 50, ["two"])
    found = read_again({"one": [first], "two": [second._replace(counts=False)]})
    assert (found.records, found.again, found.clients, found.first_ns) == (100, 0, [], None)


def test_the_offsets_of_a_topic_that_was_made_again_are_not_those_of_the_former() -> None:
    both = {"one": [arrival(0, 99, 1, 0), arrival(0, 49, 5, 0), arrival(40, 59, 9, 40)]}
    assert read_again(both).again == 70
    found = read_again(both, [3])
    assert (found.records, found.again) == (160, 10)
    assert read_again(both, [3, 4]).again == 10


def test_a_hundred_records_that_were_read_before_are_told() -> None:
    def again(*counts: int) -> list[Finding]:
        made = {
            "group": "g",
            "topic": "sales",
            "records": 500,
            "clients": ["two"],
            "first_ns": 1,
            "last_ns": 2,
        }
        return said("records-read-twice", {Rereads: [row(Rereads, **made, again=each) for each in counts]})

    (found,) = again(60, 40)
    assert (found.severity, found.measure, found.count) == (NOTICE, 100, 2)
    assert not again(60, 39)


def test_what_a_lost_member_had_read_is_read_again_because_of_it() -> None:
    (found,) = of_rule("max-poll-exceeded", "records-read-twice")
    assert (found.because or "").startswith("poll-interval-exceeded")


def test_a_healthy_group_reads_once() -> None:
    assert not {"records-read-twice", "double-ownership"} & {
        each.id for each in found_in("healthy-cluster-idle")
    }
