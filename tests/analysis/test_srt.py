"""Response times, against the broker's own timings of the same requests."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.fold_set import Together
from kdissect.analysis.waits import Wait, served_in_brief, split, waited_in_brief
from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector, Event
from kdissect.session.briefs import NOT_KNOWN, Brief, Interest
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.amount import fewer_again, some
from tests.analysis.folds import fold, logged, made, rows_of
from tests.damaged import packets_of
from tests.test_dissect_short import LARGE, OTHERS, SHIPPED

GRAIN_NS = 1_000
"""The log's times are rounded to microseconds."""
TIMER_GRAIN_MS = 1
"""The broker's timer counts whole milliseconds."""


def own_ns(line: dict[str, Any]) -> int:
    """How long the broker itself worked and waited, as it says."""
    return int((line["localTimeMs"] + line["remoteTimeMs"]) * MILLISECOND)


@pytest.mark.parametrize("case", fewer_again(LOGGED_CASES, 8))
def test_counts_and_times_are_those_of_the_logged_requests(case: str) -> None:
    pairs = logged(case)
    latencies: dict[Any, list[int]] = {}
    unanswered: Counter[Any] = Counter()
    for each, line, exchange in pairs:
        key = (each.header["requestApiKey"], each.header["requestApiVersion"])
        if exchange.response is None or exchange.request is None:
            unanswered[key] += 1
            continue
        latency = exchange.response.frame.first_ns - exchange.request.frame.last_ns
        assert latency >= own_ns(line) - GRAIN_NS, (exchange.api, exchange.number)
        latencies.setdefault(key, []).append(latency)
    keys = {
        (exchange.api, exchange.api_version): (exchange.api_key, exchange.api_version)
        for *_, exchange in pairs
    }
    rows = fold("srt", [exchange for *_, exchange in pairs]).result()
    assert {keys[row["api"], row["api_version"]] for row in rows} == {*latencies, *unanswered}
    for row in rows:
        times = sorted(latencies.get(keys[row["api"], row["api_version"]], []))
        assert row["count"] == len(times)
        assert row["unanswered"] == unanswered[keys[row["api"], row["api_version"]]]
        if times:
            assert (row["min_ns"], row["max_ns"]) == (times[0], times[-1])
            assert row["mean_ns"] == sum(times) // len(times)
            for percent in (50, 90, 99):
                exact = times[ceil(percent * len(times) / 100) - 1]
                assert abs(row[f"p{percent}_ns"] - exact) * 256 <= exact


@pytest.mark.parametrize("case", fewer_again(LOGGED_CASES, 8))
def test_a_wait_that_is_said_to_be_waited_out_was(case: str) -> None:
    """The broker logs as remote time how long a request lay in its purgatory; the time to lie there runs
    from when it is put in, at the end of what is logged as local time."""
    found = Counter[Wait]()
    for each, line, exchange in logged(case):
        if exchange.latency_ns is None:
            continue
        known = split(exchange)
        found[known.wait] += 1
        if known.wait is Wait.WAITED_OUT:
            longest = each.request["maxWaitMs"]
            assert own_ns(line) >= (longest - TIMER_GRAIN_MS) * MILLISECOND
            assert line["remoteTimeMs"] > 0.95 * longest
            assert exchange.served_ns is not None
            assert known.wait_ns is not None
            assert known.wait_ns == min(longest * MILLISECOND, exchange.served_ns)
            assert known.broker_ns == exchange.served_ns - known.wait_ns
        elif known.wait is Wait.POSSIBLE:
            assert exchange.api in ("Fetch", "ShareFetch", "JoinGroup", "SyncGroup")
            assert known.broker_ns is None
    row = fold("srt", [exchange for *_, exchange in logged(case)]).result()
    assert sum(each["waited_out"] for each in row) == found[Wait.WAITED_OUT]
    assert sum(each["may_wait"] for each in row) == found[Wait.WAITED_OUT] + found[Wait.POSSIBLE]
    assert sum(each["work_count"] for each in row) == found[Wait.WAITED_OUT] + found[Wait.NONE]


def test_waits_of_consumers_are_found() -> None:
    (row,) = [row for row in rows_of("srt", "java43-groups") if row["api"] == "Fetch"]
    assert (row["count"], row["may_wait"], row["waited_out"]) == (82, 82, 69)
    assert row["p50_ns"] > 499 * MILLISECOND > 50 * MILLISECOND > row["work_max_ns"]


def test_what_requests_wait_behind_others_is_no_work() -> None:
    """Half a second behind a long poll; the broker says that none of these took it longer than 11 ms."""
    rows = [row for row in rows_of("srt", "zk39-ibp28") if row["api"] == "ListOffsets"]
    longest = max(
        line["totalTimeMs"] for _, line, exchange in logged("zk39-ibp28") if exchange.api == "ListOffsets"
    )
    assert max(row["max_ns"] for row in rows) > 500 * MILLISECOND
    assert max(row["work_max_ns"] for row in rows) < (longest + 2) * MILLISECOND


def test_where_the_wait_behind_others_is_not_known_the_work_is_not() -> None:
    exchange = made("Heartbeat", 0, {"groupId": "g", "generationId": 1, "memberId": "m"}, {"errorCode": 0})
    exchange.behind_ns = None
    (row,) = fold("srt", [exchange]).result()
    assert (row["count"], row["may_wait"], row["work_count"]) == (1, 0, 0)


_ASKED: dict[str, Any] = {"maxWaitMs": 500, "minBytes": 1, "topics": []}
_ANSWER: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": []}
_PARTITION: dict[str, Any] = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 1, "lastStableOffset": 1}
_PARTITION |= {"logStartOffset": 0, "abortedTransactions": None, "preferredReadReplica": -1, "records": ""}


def answered(**partition: Any) -> dict[str, Any]:
    return {**_ANSWER, "responses": [{"topic": "t", "partitions": [_PARTITION | partition]}]}


def fetched(asked: dict[str, Any], answer: dict[str, Any], ms: int) -> Wait:
    times = (1, 1 + ms * MILLISECOND)
    whole: dict[str, Any] = {
        "replicaId": -1,
        "maxBytes": 1,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": -1,
    }
    whole |= {"forgottenTopicsData": [], "rackId": ""}
    exchange = made("Fetch", 11, whole | asked, answer, times)
    assert exchange.latency_ns is not None
    return split(exchange).wait


def test_what_shows_that_a_wait_was_waited_out() -> None:
    assert fetched(_ASKED, _ANSWER, 500) is Wait.WAITED_OUT
    assert fetched(_ASKED, answered(), 501) is Wait.WAITED_OUT
    assert fetched(_ASKED, _ANSWER, 499) is Wait.POSSIBLE
    assert fetched(_ASKED, answered(errorCode=6), 501) is Wait.POSSIBLE
    assert fetched(_ASKED, answered(records="AAAA"), 501) is Wait.POSSIBLE
    assert fetched(_ASKED, answered(preferredReadReplica=3), 501) is Wait.POSSIBLE
    assert fetched(_ASKED, {**_ANSWER, "throttleTimeMs": 9}, 501) is Wait.POSSIBLE
    assert fetched({**_ASKED, "minBytes": 0}, _ANSWER, 501) is Wait.POSSIBLE
    assert fetched({**_ASKED, "minBytes": 9}, answered(records="AAAA"), 501) is Wait.WAITED_OUT
    assert fetched({**_ASKED, "maxWaitMs": 0}, _ANSWER, 501) is Wait.NONE


def test_throttling_is_counted() -> None:
    asked = {"groupId": "g", "generationId": 1, "memberId": "m"}
    answers = [{"throttleTimeMs": ms, "errorCode": 0} for ms in (30, 0, 12)]
    exchanges = [made("Heartbeat", 1, asked, answer) for answer in answers]
    (row,) = fold("srt", exchanges).result()
    assert (row["throttled"], row["throttle_ms"], row["throttle_max_ms"]) == (2, 42, 30)


def test_rows_are_told_apart_as_asked() -> None:
    plain = rows_of("srt", "java43-groups")
    assert {row["client_id"] for row in plain} == {None}
    by_client = rows_of("srt,client_id,broker", "java43-groups")
    assert {row["broker"] for row in by_client} == {"127.0.0.1:20008"}
    assert "eager0" in {row["client_id"] for row in by_client}
    assert sum(row["count"] for row in by_client) == sum(row["count"] for row in plain) == 427
    assert {row["client"] for row in rows_of("srt,client", "ipv6")} == {"[::1]"}


@pytest.mark.parametrize(
    "path", fewer_again([*SHIPPED, *OTHERS], 10), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_exchanges_in_brief_count_as_whole_ones_do(path: Path) -> None:
    if path.stat().st_size > LARGE:
        pytest.skip("large")
    rows = []
    for briefs in (None, Interest()):
        dissector = Dissector(briefs=briefs)
        asked = [statistic(text)[1] for text in ("srt", "srt,broker,client,client_id,topic")]
        counted = Together(asked)
        events: list[Event] = []
        for step in dissector.feed_all(read_packets([str(path)])):
            events += step
        events += dissector.close()
        for event in events:
            counted.feed(event)
            if isinstance(event, Brief) and event.response_data is not None:
                assert _told_of(event) == split(event.exchange())
        rows.append([each.result() for each in asked])
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "path", some([*SHIPPED, *OTHERS], 8), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_briefs_of_which_no_faults_are_asked_count_as_whole_ones_do(path: Path) -> None:
    """Of damaged messages too: what is wrong with record sets is no time of an answer."""
    if path.stat().st_size > LARGE:
        pytest.skip("large")
    for seed, text in product((None, 1, 2), ("srt", "srt,topic")):
        rows = []
        for briefs in (None, statistic(text)[1].briefs):
            dissector, counted = Dissector(briefs=briefs), statistic(text)[1]
            for events in (*dissector.feed_all(packets_of(path, seed)), dissector.close()):
                for event in events:
                    counted.feed(event)
            rows.append(counted.result())
        assert rows[0] == rows[1]


def _told_of(brief: Brief) -> tuple[Wait, int | None, int | None]:
    """Wait and work of an exchange in brief, as :func:`split` gives them of a whole one."""
    waited, served = waited_in_brief(brief), served_in_brief(brief)
    if waited == NOT_KNOWN:
        return Wait.POSSIBLE, None, None
    wait = min(served, waited) if waited else 0
    return Wait.WAITED_OUT if waited else Wait.NONE, wait, served - wait


def test_who_counts_briefs_says_so() -> None:
    numbers = Interest(errors=False, records=False, names=False, bodies=False, faults=False)
    assert Together([statistic("srt")[1]]).briefs == numbers
    assert Together([statistic("srt,topic")[1]]).briefs == numbers._replace(names=True)
    assert Together([statistic("srt")[1], statistic("topics")[1]]).briefs is None


def test_a_statistic_that_knows_no_briefs_counts_the_exchanges_that_they_tell() -> None:
    path = next(each for each in SHIPPED if each.stem.startswith("basic"))
    rows = []
    for briefs in (None, Interest()):
        versions = statistic("versions")[1]
        dissector = Dissector(briefs=briefs)
        for events in dissector.feed_all(read_packets([str(path)])):
            for event in events:
                versions.feed(event)
        rows.append(versions.result())
    assert rows[0] == rows[1]
    assert rows[0]
