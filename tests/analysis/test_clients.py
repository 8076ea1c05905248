"""Clients, connections and intervals, against the broker's log and plain counts over the exchanges."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import interval_ns
from kdissect.exchange import Exchange
from kdissect.session.conversation import Connection
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.analysis.folds import events_of, fold, logged, made, rows_of

DRIVEN = ("sweep-39", "sweep-39-controller", "sweep-44")
"""Their driver names many a software on one connection, also in requests that the broker refuses."""


@pytest.mark.parametrize("case", [case for case in LOGGED_CASES if case not in (*DRIVEN, "midstream")])
def test_software_and_versions_are_those_that_the_broker_logged(case: str) -> None:
    """The broker says "unknown" of the requests up to the one that names the software."""
    spoken: defaultdict[Any, set[str]] = defaultdict(set)
    for each, line, exchange in logged(case):
        told = line["clientInformation"]
        client = each.header.get("clientId") or "", told["softwareName"], told["softwareVersion"]
        spoken[client].add(f"{exchange.api} v{exchange.api_version}")
    found: defaultdict[Any, set[str]] = defaultdict(set)
    for row in rows_of("clients", case):
        found[row["client_id"] or "", row["software"] or "unknown", row["software_version"] or "unknown"] |= {
            *row["apis"]
        }
    for (client_id, *software), versions in spoken.items():
        if software != ["unknown", "unknown"]:
            assert versions <= found[client_id, *software]
        else:
            assert versions <= {api for key, spoke in found.items() if key[0] == client_id for api in spoke}
    assert sum(row["exchanges"] for row in rows_of("clients", case)) >= len(logged(case))


def test_another_software_on_the_same_connection_is_told_apart() -> None:
    """franz-go's admin client says so on a connection of its general client."""
    rows = [row for row in rows_of("clients", "ipv6") if row["client_id"] == "franz-admin"]
    assert [(row["software"], row["connections"], row["exchanges"]) for row in rows] == [
        ("kadm", 1, 2),
        ("kgo", 3, 27),
    ]
    assert rows[0]["apis"] == ["ApiVersions v4", "DeleteGroups v2"]


def test_software_counts_from_where_it_is_named_and_the_first_before_that_too() -> None:
    def named(software: str) -> Exchange:
        answer = {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0}
        return made("ApiVersions", 3, {"clientSoftwareName": software, "clientSoftwareVersion": "1"}, answer)

    asked = {"groupId": "g", "generationId": 1, "memberId": "m"}
    beat = made("Heartbeat", 0, asked, {"errorCode": 0})
    exchanges = [beat, named("one"), beat, beat, named("two"), beat]
    for at in range(len(exchanges) + 1):
        found = fold("clients", exchanges[:at])
        found.merge(fold("clients", exchanges[at:]))
        counts = [(row["software"], row["exchanges"], row["connections"]) for row in found.result()]
        assert counts == [("one", 4, 1), ("two", 2, 1)]


def test_connections_have_what_went_over_them() -> None:
    events = events_of("java43-groups")
    exchanges = [event for event in events if isinstance(event, Exchange)]
    lines = {event.connection: event for event in events if isinstance(event, Connection)}
    rows = rows_of("connections", "java43-groups")
    assert [row["connection"] for row in rows] == sorted(lines)
    for row in rows:
        line = lines[row["connection"]]
        mine = [exchange for exchange in exchanges if exchange.connection == row["connection"]]
        assert row["requests"] == row["responses"] == len(mine) == line.exchanges
        # A size prefix of 4 bytes stands before each message.
        assert row["request_bytes"] + 4 * row["requests"] == line.bytes_to_broker
        assert row["response_bytes"] + 4 * row["responses"] == line.bytes_from_broker
        assert (row["software"], row["end"], row["first_ns"]) == (line.software, line.end, line.start_ns)
        assert row["max_ns"] == max((exchange.latency_ns or 0 for exchange in mine), default=None)
        assert row["errors"] + row["routine"] == sum(exchange.error is not None for exchange in mine)
    assert max(row["in_flight_max"] for row in rows) > 1


def test_connections_that_are_not_over_have_what_their_exchanges_tell() -> None:
    events = [event for event in events_of("java43-groups") if isinstance(event, Exchange)]
    for row in fold("connections", events).result():
        assert row["client"].startswith("127.0.0.1:")
        assert (row["end"], row["packets"], row["protocol"]) == (None, None, "kafka")
        assert row["first_ns"] <= row["last_ns"]


def test_connections_that_speak_something_else_are_there_too() -> None:
    (protocol,) = {row["protocol"] for row in rows_of("connections", "tls13")}
    assert protocol == "tls"


@pytest.mark.parametrize("case", ["java43-groups", "zk39-ibp28"])
@pytest.mark.parametrize("interval", ["1s", "100ms"])
def test_intervals_have_what_was_complete_in_them(case: str, interval: str) -> None:
    length = interval_ns("io", interval)
    want: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for event in events_of(case):
        if isinstance(event, Exchange):
            for message, name in ((event.request, "request"), (event.response, "response")):
                if message is not None:
                    here = want[message.frame.last_ns // length * length]
                    here.update({f"{name}s": 1, f"{name}_bytes": message.frame.size})
            if event.response is not None:
                graded = [event.class_of(code) for code, _ in event.error_codes()]
                here["routine"] += graded.count("routine")
                here["fatal"] += graded.count("fatal")
                here["errors"] += len(graded) - graded.count("routine")
    rows = rows_of(f"io,{interval}", case)
    assert [row["start_ns"] for row in rows] == sorted(want)
    for row in rows:
        assert row["interval_ns"] == length
        for name in (
            "requests",
            "responses",
            "request_bytes",
            "response_bytes",
            "errors",
            "fatal",
            "routine",
        ):
            assert row[name] == want[row["start_ns"]][name]
    topics = rows_of("topics", case)
    for name, directions in {"produced": ("produce",), "fetched": ("fetch", "replicate", "share")}.items():
        records = sum(row["records"] for row in topics if row["direction"] in directions)
        assert sum(row[f"records_{name}"] for row in rows) == records


@pytest.mark.parametrize(
    ("text", "ns"), [("1s", 10**9), ("0.5", 5 * 10**8), ("100ms", 10**8), ("5m", 300 * 10**9), ("1us", 1000)]
)
def test_intervals_are_read(text: str, ns: int) -> None:
    assert interval_ns("io", text) == ns


@pytest.mark.parametrize("text", ["io,0", "io,1x", "io,-1", "io,1e3", "io,", "io,0.1us", "io,1s,2s", "io,²"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(ValueError, match=r"^io,"):
        statistic(text)


def test_what_is_no_statistic() -> None:
    with pytest.raises(LookupError):
        statistic("topcs")
    with pytest.raises(ValueError, match="can be grouped by broker"):
        statistic("srt,brokers")
    with pytest.raises(ValueError, match="no grouping may follow"):
        statistic("topics,1s")
