"""Fetch sessions replayed, against the same fetches told in full, the broker's log, and the log's data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.analysis.fold import MILLISECOND
from kdissect.exchange import Exchange
from tests.acceptance.test_payloads import PAYLOAD_CASES
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.amount import times
from tests.analysis.folds import events_of, fold, ids_of, logged, made, rows_of
from tests.analysis.traffic import commit, fetch
from tests.lab import Case

State = dict[int, int]
"""Partition: offset."""
TOPIC_ID = "lVhqmGaYRoKUVMnTbJRSXA"


def exchange_of(
    at: int, epoch: int, named: State, forgotten: list[int], told: dict[int, int], top: int = 0
) -> Exchange:
    """A Fetch: what it names and forgets, and the high watermarks that its response tells."""
    asked: dict[str, Any] = {"maxWaitMs": 1, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0, "rackId": ""}
    partitions = [
        {
            "partition": number,
            "currentLeaderEpoch": -1,
            "fetchOffset": offset,
            "lastFetchedEpoch": -1,
            "logStartOffset": -1,
            "partitionMaxBytes": 1,
        }
        for number, offset in named.items()
    ]
    asked["topics"] = [{"topicId": TOPIC_ID, "partitions": partitions}] if partitions else []
    gone = [{"topicId": TOPIC_ID, "partitions": forgotten}] if forgotten else []
    asked |= {"sessionId": 0 if epoch <= 0 else 7, "sessionEpoch": epoch, "forgottenTopicsData": gone}
    news = [
        {
            "partitionIndex": number,
            "errorCode": 0,
            "highWatermark": high,
            "lastStableOffset": high,
            "logStartOffset": 0,
            "abortedTransactions": None,
            "preferredReadReplica": -1,
            "records": "",
        }
        for number, high in told.items()
    ]
    answer: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": top, "sessionId": 7}
    answer["responses"] = [{"topicId": TOPIC_ID, "partitions": news}] if news else []
    return made("Fetch", 17, asked, answer, (10 * at + 1, 10 * at + 5))


@st.composite
def fetching(draw: st.DrawFn) -> tuple[list[Exchange], list[Exchange]]:
    """The same fetches twice: in sessions, in which only changes are told, and each told in full."""
    brief: list[Exchange] = []
    full: list[Exchange] = []
    before: State = {}
    told: State = {}
    high = dict.fromkeys(range(4), 0)
    epoch = 0
    for at in range(draw(st.integers(1, 12))):
        wanted = draw(st.dictionaries(st.integers(0, 3), st.integers(0, 20), max_size=4))
        high = {number: value + draw(st.integers(0, 3)) for number, value in high.items()}
        if draw(st.integers(0, 4)) == 0:
            epoch = 0
        tells = {number: high[number] for number in wanted}
        full.append(exchange_of(at, -1, wanted, [], tells))
        if epoch == 0:
            brief.append(exchange_of(at, 0, wanted, [], tells))
            told = dict(tells)
        else:
            named = {number: offset for number, offset in wanted.items() if before.get(number) != offset}
            forgotten = [number for number in before if number not in wanted]
            told = {number: value for number, value in told.items() if number in wanted}
            news = {number: value for number, value in tells.items() if told.get(number) != value}
            told |= news
            brief.append(exchange_of(at, epoch, named, forgotten, news))
        before = wanted
        epoch += 1
    return brief, full


SAME = ("partition", "position", "high_watermark", "lag", "fetches", "asked")


@settings(deadline=None, max_examples=times(50, 150))
@given(fetching())
def test_a_session_says_the_same_as_fetches_told_in_full(told: tuple[list[Exchange], list[Exchange]]) -> None:
    brief, full = ([{n: row[n] for n in SAME} for row in fold("positions", each).result()] for each in told)
    assert brief == full


@settings(deadline=None, max_examples=times(30, 100))
@given(fetching())
def test_a_session_cut_anywhere_and_merged_is_the_whole(
    told: tuple[list[Exchange], list[Exchange]],
) -> None:
    exchanges, _ = told
    whole = fold("positions", exchanges).result()
    for at in range(len(exchanges) + 1):
        for later in range(at, len(exchanges) + 1):
            found = fold("positions", exchanges[:at])
            middle = fold("positions", exchanges[at:later])
            middle.merge(fold("positions", exchanges[later:]))
            found.merge(middle)
            assert found.result() == whole


def test_partitions_that_a_response_leaves_out_are_as_told_before() -> None:
    steps = [
        exchange_of(0, 0, {0: 5, 1: 7}, [], {0: 20, 1: 7}),
        exchange_of(1, 1, {}, [], {}),
        exchange_of(2, 2, {0: 15}, [], {1: 9}),
        exchange_of(3, 3, {}, [1], {0: 21}),
    ]
    one, other = fold("positions", steps).result()
    names = ("position", "high_watermark", "lag", "max_lag", "fetches", "named", "asked", "from_start")
    assert [one[name] for name in names] == [15, 21, 6, 15, 4, 2, True, True]
    assert [other[name] for name in names] == [7, 9, 2, 2, 3, 1, False, True]


def test_a_session_that_began_before_the_capture_is_told_as_such() -> None:
    (row,) = fold(
        "positions", [exchange_of(0, 5, {}, [], {3: 20}), exchange_of(1, 6, {3: 18}, [], {})]
    ).result()
    assert (row["from_start"], row["position"], row["high_watermark"], row["lag"]) == (False, 18, 20, 2)
    assert (row["fetches"], row["max_lag"]) == (1, None)
    assert not all(row["from_start"] for row in rows_of("positions", "midstream"))


@pytest.mark.parametrize("case", LOGGED_CASES)
def test_replay_agrees_with_the_brokers_log(case: str) -> None:
    """A plain replay of the logged JSON: for every request all that its session asks for."""
    names = ids_of(case)
    asked: dict[int, dict[Any, int]] = {}
    high: dict[Any, int] = {}
    fetches: Counter[Any] = Counter()
    pairs = [pair for pair in logged(case) if pair[2].api == "Fetch"]
    pairs.sort(key=lambda pair: pair[2].number)
    for each, _, exchange in pairs:
        now = asked.setdefault(exchange.connection, {})
        if each.request.get("sessionEpoch", -1) in (0, -1):
            now.clear()
        for topic in each.request.get("forgottenTopicsData") or ():
            for number in topic["partitions"]:
                now.pop((name_in(topic, names), number), None)
        for topic in each.request["topics"]:
            for partition in topic["partitions"]:
                now[name_in(topic, names), partition["partition"]] = partition["fetchOffset"]
        fetches.update((exchange.connection, *key) for key in now)
        if exchange.response is not None:
            for topic in each.response["responses"]:
                for partition in topic["partitions"]:
                    key = (exchange.connection, name_in(topic, names), partition["partitionIndex"])
                    if partition["highWatermark"] >= 0:
                        high[key] = partition["highWatermark"]
    rows = {}
    for row in fold("positions", [exchange for *_, exchange in pairs]).result():
        rows[row["connection"], names.get(row["topic"], row["topic"]), row["partition"]] = row
    assert {key: row["fetches"] for key, row in rows.items() if row["fetches"]} == dict(fetches)
    still = {(connection, *key): offset for connection, now in asked.items() for key, offset in now.items()}
    assert {key: row["position"] for key, row in rows.items() if row["asked"]} == still
    cut = {exchange.connection for *_, exchange in pairs if exchange.response and exchange.response.is_cut}
    for key, value in high.items():
        if key[0] not in cut:
            assert rows[key]["high_watermark"] == value


def name_in(topic: dict[str, Any], names: dict[str, str]) -> str:
    found: str = topic.get("topic") or names.get(topic.get("topicId", ""), topic.get("topicId", ""))
    return found


@pytest.mark.parametrize("case", [case for case in PAYLOAD_CASES if case != "cluster43-combined"])
def test_what_was_fetched_reaches_as_far_as_what_consumers_got(case: str) -> None:
    got: dict[Any, int] = {}
    for row in Case(case).payloads():
        if row["role"] == "consumed":
            key = row["topic"], row["partition"]
            got[key] = max(got.get(key, -1), row["offset"])
    reached: dict[Any, int] = {}
    for event in events_of(case):  # one by one, as a consumer may go back
        for row in fold("positions", [event]).result():
            key = row["topic"], row["partition"]
            if row["fetched_to"] is not None:
                reached[key] = max(reached.get(key, 0), row["fetched_to"])
                assert row["high_watermark"] >= row["fetched_to"] or row["replica_id"] >= 0
    for key, offset in got.items():
        assert reached[key] > offset


def test_sessions_occur_in_the_captures() -> None:
    rows = rows_of("positions", "java43-groups")
    assert sum(row["fetches"] for row in rows) > 3 * sum(row["named"] for row in rows) > 0
    assert all(row["session_id"] for row in rows)
    assert any(isinstance(event, Exchange) and event.api == "Fetch" for event in events_of("java43-groups"))


def test_a_position_that_records_do_not_move_is_a_stall() -> None:
    events = [fetch((0, 10), 5, [(5, [1])], 20, epoch=0), fetch((20, 30), 6, [(6, [1])], 20)]
    events += [fetch((at, at + 5), None, [(6, [1])], 20) for at in range(100, 200, 10)]
    (row,) = fold("positions", events).result()
    assert (row["stalled"], row["stalled_at"]) == (11, 6)
    assert (row["stalled_first_ns"], row["stalled_last_ns"]) == (30 * MILLISECOND, 195 * MILLISECOND)
    (row,) = fold("positions", events[:2]).result()
    assert (row["stalled"], row["stalled_at"]) == (0, None)


def test_a_consumer_that_fetches_ahead_and_comes_back_does_not_move_on() -> None:
    events = [fetch((0, 10), 5, [(5, [1])], 20, epoch=0), fetch((20, 30), 6, [(6, [1])], 20)]
    for at in range(100, 200, 20):
        events += [fetch((at, at + 5), 20, [], 20), fetch((at + 10, at + 15), 6, [(6, [1])], 20)]
    (row,) = fold("positions", events).result()
    assert (row["begun_at"], row["stalled"], row["stalled_at"], row["rewinds"]) == (5, 5, 6, 5)
    assert (row["stalled_first_ns"], row["stalled_last_ns"]) == (115 * MILLISECOND, 195 * MILLISECOND)


def test_a_position_that_goes_back_is_a_rewind_and_the_lag_has_a_trend() -> None:
    events = [
        fetch((second * 1_000, second * 1_000 + 5), second * 10, [], second * 50) for second in range(20)
    ]
    (row,) = fold("positions", [*events, fetch((20_000, 20_005), 3, [], 1_000)]).result()
    assert (row["rewinds"], row["rewound_from"], row["rewound_to"]) == (1, 190, 3)
    assert row["lag_first"] == 0
    assert row["lag_per_s"] == pytest.approx(40, rel=0.05)


def test_the_group_of_a_fetcher_is_known_from_its_other_connection() -> None:
    fetches = [fetch((0, 10), 5, [(5, [1])], 20, epoch=0)]
    (row,) = fold("positions", fetches).result()
    assert row["group"] is None
    (row,) = fold("positions", [*fetches, commit((20, 21), 6)]).result()
    assert row["group"] == "readers"
    (row,) = fold("positions", [*fetches, commit((20, 21), 6), commit((20, 21), 6, group="others")]).result()
    assert row["group"] is None, "it may be of either"
