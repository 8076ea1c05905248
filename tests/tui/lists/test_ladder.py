from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.feed.index import Index
from kdissect.feed.rows import (
    FIRST,
    GRADES,
    GRAVEST,
    HAS_CORRELATION,
    HAS_LATENCY,
    HAS_REQUEST,
    HAS_RESPONSE,
    HAS_VERSION,
)
from kdissect.protocol.errors import FATAL
from kdissect.tui.lists.ladder import Ladder, events_of, hosts_of, lanes_of, of_client, of_numbers, snapshot
from tests.feed.feeds import index_with

BOTH = HAS_REQUEST | HAS_RESPONSE | HAS_LATENCY | HAS_VERSION | HAS_CORRELATION
FATAL_ERROR = BOTH | GRADES.index(FATAL) << GRAVEST | GRADES.index(FATAL) << FIRST
TEXTS = [
    "10.0.0.1:4001",
    "10.0.0.1:4002",
    "10.0.0.2:4001",
    "b1:9092",
    "b2:9092",
    "etl",
    "web",
    "Fetch",
    "BAD",
    "gap",
]
A1, A2, B1, BROKER1, BROKER2, ETL, WEB, FETCH, BAD, GAP = range(1, 11)


def exchange(connection: int, client: int, broker: int, time: int, **given: int) -> dict[str, int]:
    values = {"connection": connection, "client": client, "broker": broker, "time_ns": time, "api": FETCH}
    return {**values, "client_id": ETL, "latency_ns": 10, "flags": BOTH, **given}


INDEX = index_with(
    [
        exchange(0, A1, BROKER1, 100, correlation_id=1),
        exchange(1, A2, BROKER2, 105, correlation_id=2, error=BAD, response_size=90, flags=FATAL_ERROR),
        exchange(2, B1, BROKER1, 106, correlation_id=3),  # another host
        exchange(3, A2, BROKER1, 107, correlation_id=4, client_id=WEB),  # another client of the same host
        exchange(0, A1, BROKER1, 120, correlation_id=5, flags=HAS_REQUEST | HAS_CORRELATION, missing=GAP),
        exchange(0, A1, BROKER1, 130, client_id=0, flags=HAS_RESPONSE, latency_ns=0, missing=GAP),
    ],
    TEXTS,
)


def ladder_of(index: Index, place: int) -> Ladder:
    columns, hosts = snapshot(index), hosts_of(index.texts)
    places = of_client(columns, place, hosts[0])
    out = Ladder(index)
    out.show(events_of(columns, places), lanes_of(columns, places, hosts[0], is_one_client=True), hosts)
    return out


def test_the_exchanges_of_a_client_are_those_of_all_its_connections() -> None:
    columns, (hosts, _) = snapshot(INDEX), hosts_of(INDEX.texts)
    assert of_client(columns, 0, hosts).tolist() == [0, 1, 4, 5]
    assert of_client(columns, 1, hosts).tolist() == [0, 1, 4, 5]
    assert of_client(columns, 2, hosts).tolist() == [2]
    assert of_client(columns, 3, hosts).tolist() == [3]
    assert 5 in of_client(columns, 5, hosts)  # whose client id nothing tells
    assert of_numbers(columns, [2, 6, 77]).tolist() == [1, 5]


def test_requests_and_responses_stand_in_the_order_of_time() -> None:
    ladder = ladder_of(INDEX, 0)
    rows = [(ladder.place(row), ladder.is_response(row)) for row in range(len(ladder))]
    assert rows == [(0, False), (1, False), (0, True), (1, True), (4, False), (5, True)]
    assert ladder.events.in_flight.tolist() == [1, 2, 1, 0, 0, 0]
    assert ladder.row_of(4) == 4
    assert ladder.row_of(3) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 50), st.integers(-20, 50), st.sampled_from([BOTH, HAS_REQUEST, HAS_RESPONSE])
        )
    )
)
def test_every_message_is_one_event_and_time_does_not_go_back(rows: list[tuple[int, int, int]]) -> None:
    index = index_with(exchange(0, A1, BROKER1, t, latency_ns=d, flags=flags) for t, d, flags in rows)
    columns = snapshot(index)
    events = events_of(columns, np.arange(len(rows), dtype=np.uint32))
    wanted = {2 * at for at, row in enumerate(rows) if row[2] & HAS_REQUEST}
    wanted |= {2 * at + 1 for at, row in enumerate(rows) if row[2] & HAS_RESPONSE}
    assert sorted(events.which.tolist()) == sorted(wanted)
    times = [
        rows[which >> 1][0] + (rows[which >> 1][1] if which & 1 and rows[which >> 1][2] == BOTH else 0)
        for which in events.which.tolist()
    ]
    assert times == sorted(times)
    assert not len(rows) or events.in_flight[-1] <= len(rows)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_arrows_go_between_the_lanes_of_their_endpoints(width: int) -> None:
    ladder = ladder_of(INDEX, 0)
    asked, other, answered, failed, lost, alone = (ladder.cells(row, width)[1] for row in range(6))
    names = ladder.headings(width)[1].title
    assert "etl 10.0.0.1" in names
    assert "b1:9092" in names or "brokers" in names
    assert len({len(line) for line in (asked, other, answered, failed, lost, alone, names)}) == 1
    assert "Fetch v0 #1" in asked
    assert "▶│" in asked
    assert "│◀" in answered
    assert "✗ BAD (fatal)" in failed
    assert "[no" in lost or "…" in lost
    assert "◀" in alone
    if width > 80:
        assert other.index("▶") > asked.index("▶")
        assert "┼" in other
        assert "no response: gap" in lost
        assert "no request: gap" in alone


def test_latency_and_what_is_under_way() -> None:
    ladder = ladder_of(INDEX, 0)
    assert [ladder.cells(row, 120)[2] for row in range(4)] == ["", "", "10 ns", "10 ns"]
    assert [ladder.cells(row, 120)[3] for row in range(4)] == ["█ 1", "██ 2", "█ 1", ""]
    assert len(ladder.cells(0, 80)) == len(ladder.headings(80)) == 3
    assert [ladder.tone(row) for row in range(6)] == [
        None,
        None,
        None,
        "table--error",
        "table--warning",
        None,
    ]


def test_endpoints_without_room_share_a_lane() -> None:
    texts = [f"c{n}:1" for n in range(20)] + [f"b{n}:9092" for n in range(40)]
    rows = [exchange(n, 1 + n % 20, 21 + n, 100 * n, client_id=0) for n in range(40)]
    index = index_with(rows, texts)
    columns, hosts = snapshot(index), hosts_of(index.texts)
    places = np.arange(40, dtype=np.uint32)
    ladder = Ladder(index)
    ladder.show(events_of(columns, places), lanes_of(columns, places, hosts[0], is_one_client=False), hosts)
    for width in (40, 80, 120, 200):
        title = ladder.headings(width)[1].title
        assert "clients" in title or width < 80
        for row in range(len(ladder)):
            line = ladder.cells(row, width)[1]
            assert "▶" in line or "◀" in line
            assert len(line) == len(title)


def test_an_arrow_names_the_endpoints_that_share_its_lanes() -> None:
    texts = ["10.0.0.1:1", "10.0.0.2:1", "b:9092", "b:9093", "old", "new", "Fetch"]
    rows = [
        {"client": n, "client_id": 4 + n, "broker": 2 + n, "api": 7, "time_ns": 100 * n, "flags": BOTH}
        for n in (1, 2)
    ]
    index = index_with(rows, texts)
    columns, hosts = snapshot(index), hosts_of(index.texts)
    ladder, places = Ladder(index), np.arange(2, dtype=np.uint32)
    ladder.show(events_of(columns, places), lanes_of(columns, places, hosts[0], is_one_client=False), hosts)
    narrow, wide = ([ladder.cells(row, width)[1] for row in range(4)] for width in (80, 200))
    assert "2 clients" in ladder.headings(80)[1].title
    assert "old: Fetch v0 #1 to :9092" in narrow[0]
    assert "new: Fetch v0 #2 to :9093" in narrow[2]
    assert "from :9092 to old" in narrow[1]
    assert not any("old" in line or ":9092" in line for line in wide)


def test_wide_characters_do_not_shift_the_lanes() -> None:
    rows = [exchange(0, 1, 2, 0, client_id=3, api=3)]
    ladder = ladder_of(index_with(rows, ["c:1", "b:2", "日本語のクライアント" * 3]), 0)
    for width in (80, 200):
        assert "日" not in ladder.cells(0, width)[1]
        ladder.headings(width)


def test_nothing_is_a_ladder_of_no_lines() -> None:
    index = index_with([])
    columns, hosts = snapshot(index), hosts_of(index.texts)
    places = np.zeros(0, np.uint32)
    ladder = Ladder(index)
    ladder.show(events_of(columns, places), lanes_of(columns, places, hosts[0], is_one_client=True), hosts)
    assert len(ladder) == 0
    assert ladder.headings(120)


def test_the_time_of_day_has_the_room_it_needs() -> None:
    ladder = ladder_of(INDEX, 0)
    ladder.clock.letter = "a"
    for width in (80, 120):
        headings, cells = ladder.headings(width), ladder.cells(0, width)
        assert headings[0].width == len(cells[0]) == len("08:43:48.700000")
        fixed = sum(each.width for each in headings) + len(headings) - 1
        assert len(cells[1]) == width - fixed


def test_of_names_that_are_cut_the_port_the_host_and_the_version_stay() -> None:
    broker, client = f"{'broker' * 12}:9092", "client-" * 9
    api = "ConsumerGroupHeartbeat" * 2
    texts = ["10.0.0.1:4001", broker, client, api]
    values = {"client": 1, "broker": 2, "client_id": 3, "api": 4, "api_version": 1, "time_ns": 100}
    values |= {"latency_ns": 10, "flags": BOTH, "number": 12, "correlation_id": 7}
    index = index_with([values], texts)
    ladder = ladder_of(index, 0)
    title = ladder.headings(80)[1].title
    assert "… 10.0.0.1" in title
    assert "…:9092" in title
    assert "… v1 #12" in ladder.cells(0, 80)[1]


def test_the_first_name_takes_the_room_up_to_the_next() -> None:
    texts = ["127.0.0.1:4001", "127.0.0.1:9092", "raft-client-1"]
    index = index_with([{"client": 1, "broker": 2, "client_id": 3, "time_ns": 100, "flags": BOTH}], texts)
    for width in (80, 120):
        title = ladder_of(index, 0).headings(width)[1].title
        assert title.split() == ["raft-client-1", "127.0.0.1", "127.0.0.1:9092"]
