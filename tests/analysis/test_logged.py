"""Counts, sizes and times, told apart in each way, against the broker's request log."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from kdissect.analysis.fold import MILLISECOND, interval_ns
from tests.acceptance.request_log import address
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.analysis.folds import fold, ids_of, logged
from tests.analysis.test_errors import codes
from tests.analysis.test_srt import GRAIN_NS, own_ns


def answered(case: str) -> list[tuple[Any, dict[str, Any], Any]]:
    return [each for each in logged(case) if each[2].response is not None and not each[2].response.is_cut]


@pytest.mark.parametrize("case", LOGGED_CASES)
@pytest.mark.parametrize("by", ["broker", "client", "client_id"])
def test_response_times_of_each_broker_and_client(case: str, by: str) -> None:
    """As many as were logged, and none quicker than the quickest that the broker logged."""
    count: Counter[Any] = Counter()
    quickest: dict[Any, int] = {}
    total: Counter[Any] = Counter()
    for each, line, _ in answered(case):
        told = {"broker": each.broker, "client": each.client[0], "client_id": each.header.get("clientId")}
        key = told[by], each.header["requestApiKey"], each.header["requestApiVersion"]
        count[key] += 1
        total[key] += own_ns(line) - GRAIN_NS
        quickest[key] = min(quickest.get(key, own_ns(line)), own_ns(line))
    keys = {
        (exchange.api, exchange.api_version): (exchange.api_key, exchange.api_version)
        for *_, exchange in answered(case)
    }
    found = {}
    for row in fold(f"srt,{by}", [exchange for *_, exchange in answered(case)]).result():
        who = row[by]
        if by == "broker":
            who = address(who)
        elif by == "client":
            who = address(f"{who}:0")[0]
        found[who, *keys[row["api"], row["api_version"]]] = row
    assert {key: row["count"] for key, row in found.items()} == dict(count)
    for key, row in found.items():
        assert row["min_ns"] >= quickest[key] - GRAIN_NS
        assert row["mean_ns"] * row["count"] >= total[key] - row["count"]
        assert row["min_ns"] <= row["p50_ns"] <= row["p90_ns"] <= row["p99_ns"] <= row["max_ns"]


@pytest.mark.parametrize("case", LOGGED_CASES)
def test_throttling_is_what_the_broker_logged(case: str) -> None:
    told = [
        each.response["throttleTimeMs"] for each, *_ in answered(case) if each.response.get("throttleTimeMs")
    ]
    rows = fold("srt", [exchange for *_, exchange in answered(case)]).result()
    assert sum(row["throttled"] for row in rows) == len(told)
    assert sum(row["throttle_ms"] for row in rows) == sum(told)


@pytest.mark.parametrize("case", LOGGED_CASES)
def test_requests_and_errors_of_each_connection(case: str) -> None:
    requests: Counter[Any] = Counter()
    errors: Counter[Any] = Counter()
    own: defaultdict[Any, int] = defaultdict(int)
    for each, line, _ in answered(case):
        ends = each.client, each.broker
        requests[ends] += 1
        errors[ends] += any(True for _ in codes(each.response, (None, None), {}))
        own[ends] = max(own[ends], own_ns(line))
    rows = fold("connections", [exchange for *_, exchange in answered(case)]).result()
    found: Counter[Any] = Counter()
    wrong: Counter[Any] = Counter()
    for row in rows:
        ends = address(row["client"]), address(row["broker"])
        found[ends] += row["requests"]
        wrong[ends] += row["errors"] + row["routine"]
        assert row["responses"] == row["requests"]
        assert 1 <= row["in_flight_mean"] <= row["in_flight_max"] <= row["requests"]
    assert found == requests
    assert wrong == errors
    longest = {(address(row["client"]), address(row["broker"])): 0 for row in rows}
    for row in rows:
        ends = address(row["client"]), address(row["broker"])
        longest[ends] = max(longest[ends], row["max_ns"])
    assert all(longest[ends] >= time - GRAIN_NS for ends, time in own.items())


@pytest.mark.parametrize("case", LOGGED_CASES)
def test_intervals_together_are_the_whole_log(case: str) -> None:
    exchanges = [exchange for *_, exchange in answered(case)]
    rows = fold("io,100ms", exchanges).result()
    assert sum(row["requests"] for row in rows) == sum(row["responses"] for row in rows) == len(exchanges)
    logged_errors = sum(
        1 for each, *_ in answered(case) for _ in codes(each.response, (None, None), ids_of(case))
    )
    assert sum(row["errors"] + row["routine"] for row in rows) == logged_errors
    assert {row["interval_ns"] for row in rows} == {interval_ns("io", "100ms")} == {100 * MILLISECOND}


@pytest.mark.parametrize("case", LOGGED_CASES)
def test_errors_of_partitions_are_those_that_the_broker_logged(case: str) -> None:
    """In the table of topics: what Produce, Fetch and ShareFetch said of a partition."""
    names = ids_of(case)
    want: Counter[Any] = Counter()
    exchanges = []
    for each, _, exchange in answered(case):
        if exchange.api in ("Produce", "Fetch", "ShareFetch", "FetchSnapshot"):
            exchanges.append(exchange)
            for _, (topic, partition) in codes(each.response, (None, None), names):
                if partition is not None:
                    want[topic, partition] += 1
    got: Counter[Any] = Counter()
    for row in fold("topics", exchanges).result():
        got[names.get(row["topic"], row["topic"]), row["partition"]] += row["errors"] + row["routine"]
    assert +got == want


@pytest.mark.parametrize("case", LOGGED_CASES)
def test_rates_are_counts_over_the_time_between_the_first_and_the_last(case: str) -> None:
    for row in fold("topics", [exchange for *_, exchange in answered(case)]).result():
        seconds = (row["last_ns"] - row["first_ns"]) / 1e9
        for rate, count in (("records_per_s", "records"), ("bytes_per_s", "bytes")):
            if not seconds:
                assert row[rate] is None
            else:
                assert row[rate] == pytest.approx(row[count] / seconds)
        if row["batches"]:
            assert row["batch_bytes_min"] <= row["batch_bytes_mean"] <= row["batch_bytes_max"]


@pytest.mark.parametrize("case", [case for case in LOGGED_CASES if not case.startswith("sweep")])
def test_clients_speak_the_versions_that_were_logged(case: str) -> None:
    exchanges = [exchange for *_, exchange in logged(case)]
    apis = {(exchange.api_key, exchange.api_version): exchange.api for exchange in exchanges}
    spoken: defaultdict[Any, set[str]] = defaultdict(set)
    count: Counter[Any] = Counter()
    for each, *_ in logged(case):
        who = each.client[0], each.header.get("clientId")
        key = each.header["requestApiKey"], each.header["requestApiVersion"]
        spoken[who].add(f"{apis[key]} v{key[1]}")
        count[who] += 1
    found: defaultdict[Any, set[str]] = defaultdict(set)
    requests: Counter[Any] = Counter()
    for row in fold("clients", exchanges).result():
        who = address(f"{row['client']}:0")[0], row["client_id"]
        found[who] |= set(row["apis"])
        requests[who] += row["exchanges"]
    assert found == spoken
    assert requests == count
