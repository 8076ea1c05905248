from __future__ import annotations

from contextlib import closing

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kdissect.faults import fault
from kdissect.feed.batches import CountedFault, FeedBatch
from kdissect.feed.index import Index
from kdissect.feed.rows import FIRST, GRADES, GRAVEST
from kdissect.protocol.errors import FATAL, RETRIABLE, ROUTINE
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of, index_with, row


def test_it_grows_and_keeps_what_it_has() -> None:
    index = Index()
    for start in range(0, 5_000, 500):
        index.add(FeedBatch(b"".join(row(number=n, time_ns=-n) for n in range(start, start + 500))))
    assert len(index) == 5_000
    assert index.column("number").tolist() == list(range(5_000))
    assert index.column("time_ns").tolist() == [-n for n in range(5_000)]
    assert index.bytes_an_exchange <= 120


def test_rows_that_came_late_stand_in_their_place() -> None:
    index = index_with([{"number": n} for n in (2, 4, 1, 3)])
    assert index.column("number")[index.view()].tolist() == [1, 2, 3, 4]
    assert index.column("number")[index.view(descending=True)].tolist() == [4, 3, 2, 1]


def test_only_some_of_the_rows() -> None:
    index = index_with([{"connection": n % 3} for n in range(9)])
    assert index.view(places=np.array([1, 4, 7], np.uint32)).tolist() == [1, 4, 7]
    assert index.view("number", True, np.array([1, 4, 7], np.uint32)).tolist() == [7, 4, 1]


def test_texts_sort_by_what_they_say_and_none_comes_last() -> None:
    index = index_with([{"api": n} for n in (0, 1, 2, 3, 2)], ["Produce", "Fetch", "ApiVersions"])
    assert [index.text("api", place) for place in index.view("api")] == [
        "ApiVersions",
        "Fetch",
        "Fetch",
        "Produce",
        "",
    ]
    assert [index.value("number", place) for place in index.view("api", True)] == [2, 3, 5, 4, 1]


def test_an_exchange_without_a_latency_comes_last_either_way() -> None:
    index = index_with([{"latency_ns": 5}, {}, {"latency_ns": -3}, {}])
    assert index.view("latency_ns").tolist() == [2, 0, 1, 3]
    assert index.view("latency_ns", True).tolist() == [0, 2, 1, 3]


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1), max_size=50), st.booleans())
def test_sorting_keeps_every_row_once_and_equal_ones_in_order(times: list[int], descending: bool) -> None:
    index = index_with([{"time_ns": time} for time in times])
    places = index.view("time_ns", descending).tolist()
    sign = -1 if descending else 1
    assert places == sorted(range(len(times)), key=lambda place: (sign * times[place], place))


def graded(grade: str) -> int:
    """The flags of a row whose only error is of this class."""
    return GRADES.index(grade) << GRAVEST | GRADES.index(grade) << FIRST


def test_errors_are_counted_by_how_grave_they_are() -> None:
    classes = ("", FATAL, ROUTINE, FATAL, RETRIABLE)
    index = index_with(
        [{"error": int(bool(each)), "flags": graded(each)} for each in classes], ["SOME_ERROR"]
    )
    assert dict(zip(GRADES, index.graded, strict=True)) == {"": 1, ROUTINE: 1, RETRIABLE: 1, FATAL: 2}
    assert index.is_bad().tolist() == [False, True, False, True, True]
    index.add(FeedBatch(row(number=9, error=1, flags=graded(FATAL))))
    assert index.graded[GRADES.index(FATAL)] == 3


def test_faults_are_counted_by_kind_and_the_first_is_kept() -> None:
    index = Index()
    first, second = fault("gap", "one", 1), fault("gap", "two", 2)
    index.add(FeedBatch(faults={("tcp", "gap"): CountedFault(2, first)}))
    index.add(FeedBatch(faults={("tcp", "gap"): CountedFault(3, second)}))
    assert index.faults == {("tcp", "gap"): CountedFault(5, first)}
    assert index.fault_count() == 5


def test_an_empty_index_has_empty_views() -> None:
    assert len(Index().view()) == len(Index().view("api")) == 0
    assert not any(Index().graded)


@given(st.lists(st.lists(st.integers(1, 60), unique=True, max_size=20), max_size=6))
def test_the_order_is_kept_as_rows_come(parts: list[list[int]]) -> None:
    index, seen = Index(), set[int]()
    for part in parts:
        new = [number for number in part if number not in seen]
        seen.update(new)
        before = index.order()
        kept = before.tolist()
        index.add(FeedBatch(b"".join(row(number=number) for number in new)))
        assert index.column("number")[index.order()].tolist() == sorted(seen)
        assert before.tolist() == kept, "who shows it goes on to show it"


def test_ports_of_addresses() -> None:
    index = index_with([{}], ["10.0.0.1:9092", "[fe80::1]:40000", "orders", "a:b", "x:999999", "y:"])
    assert index.ports().tolist() == [-1, 9092, 40000, -1, -1, -1, -1]
    index.add(FeedBatch(texts=["z:1"]))
    assert index.ports().tolist()[-1] == 1


def test_names_of_topic_ids_can_be_asked_whenever_they_were_told() -> None:
    with closing(decoded(CAPTURES / "basic-kafka43.pcapng")) as feed:
        index = index_of(feed)
    told = {topic_id: name for topic_id, name, _ in index.names}
    assert "java43-basic" in told.values()
    assert {each: index.all_names().get(each) for each in told} == told
