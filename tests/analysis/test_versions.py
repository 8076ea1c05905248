"""Who limits the version, and what Kafka 4 would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.versions import limit, verdict
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from tests.analysis.connected import over
from tests.analysis.folds import events_of, fold, made, rows_of
from tests.lab import LAB, Case

OFFERS = [(0, 0, 2), (1, 0, 3), (3, 0, 2), (18, 0, 0)]
"""Of a broker 0.10.2: API key, lowest and highest version of Produce, Fetch, Metadata, ApiVersions."""


BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}
UNSUPPORTED_VERSION = 35


def asked(connection: int = 0, offers: list[tuple[int, int, int]] | None = OFFERS) -> Exchange:
    keys = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, low, high in offers or ()]
    return made(
        "ApiVersions",
        0,
        {},
        None if offers is None else {"errorCode": 0, "apiKeys": keys},
        (1, 2),
        connection,
    )


def produced(version: int, connection: int = 0) -> Exchange:
    body: dict[str, Any] = {"acks": 1, "timeoutMs": 1, "topicData": []}
    body |= {"transactionalId": None} if version >= 3 else {}
    return made("Produce", version, body, None, (3, 4), connection)


def fetched(version: int, replica_id: int, connection: int = 0) -> Exchange:
    body = {"replicaId": replica_id, "maxWaitMs": 1, "minBytes": 1, "maxBytes": 1, "topics": []}
    return made("Fetch", version, body, None, (5, 6), connection)


def judged(events: list[Event], api: str = "Produce") -> list[tuple[Any, ...]]:
    rows = [row for row in fold("versions", events).result() if row["api"] == api]
    return [(row["api_version"], row["offered_max"], row["limited_by"], row["verdict"]) for row in rows]


def test_the_highest_that_the_broker_offers_is_its_limit() -> None:
    assert judged([asked(), produced(2)]) == [(2, 2, "broker", "upgrade-broker-first")]
    assert judged([asked(), produced(1)]) == [(1, 2, "client", "breaks")]


def test_a_version_that_was_not_removed_is_fine_whoever_limits_it() -> None:
    newer = [(0, 0, 9), (18, 0, 3)]
    assert judged([asked(offers=newer), produced(3)]) == [(3, 9, "client", "ok")]
    assert judged([asked(offers=newer), produced(9)]) == [(9, 9, "broker", "ok")]


def test_what_the_broker_offers_on_other_connections_counts() -> None:
    assert judged([asked(connection=1), produced(1), over(opened=False)]) == [(1, 2, "client", "breaks")]
    newer = [(0, 0, 9), (18, 0, 3)]
    mixed: list[Event] = [asked(connection=1, offers=newer), asked(), produced(2)]
    assert judged(mixed) == [(2, 2, "broker", "upgrade-broker-first")]  # its own connection first


def test_without_any_offer_nobody_knows_who_limits_it() -> None:
    assert judged([produced(2)]) == [(2, None, "unknown", "unknown")]
    assert judged([asked(offers=None), produced(2), over()]) == [(2, None, "unknown", "unknown")]


def test_a_version_that_the_broker_answers_to_anyone_is_offered() -> None:
    """Where the capture begins after ApiVersions."""
    part: dict[str, Any] = {"opened": False}

    def answered(version: int, error: int = 0) -> Exchange:
        out = made("Heartbeat", version, BEAT, {"errorCode": error, "throttleTimeMs": 0}, (5, 6), 1)
        out.broker_endpoint = produced(0).broker_endpoint
        return out

    def beat() -> Exchange:
        return made("Heartbeat", 0, BEAT, None, (3, 4))

    assert judged([beat(), over(**part)], "Heartbeat")[0][2] == "unknown"
    both: list[Event] = [beat(), answered(1), over(**part)]
    assert {row[0]: row[2] for row in judged(both, "Heartbeat")} == {0: "client", 1: "unknown"}
    refused: list[Event] = [beat(), answered(1, UNSUPPORTED_VERSION), over(**part)]
    assert {row[0]: row[2] for row in judged(refused, "Heartbeat")} == {0: "unknown", 1: "unknown"}


def metadata(version: int) -> Exchange:
    more = {"allowAutoTopicCreation": True} if version >= 4 else {}
    return made("Metadata", version, {"topics": [], **more}, None, (5, 6))


def test_who_tries_many_versions_of_a_request_may_need_none_of_them() -> None:
    newer = [(0, 0, 9), (1, 0, 9), (18, 0, 3)]
    two: list[Event] = [asked(offers=newer), produced(2), produced(3)]
    assert judged(two) == [(2, 9, "client", "breaks"), (3, 9, "client", "ok")]
    three = [*two, produced(4), fetched(2, -1)]
    assert judged(three)[0] == (2, 9, "client", "tried")
    assert judged(three, "Fetch") == [(2, 9, "client", "breaks")], "it tries no other version of Fetch"
    apart = [*two, produced(4, connection=1)]
    assert judged(apart)[0] == (2, 9, "client", "breaks")
    old: list[Event] = [asked(offers=newer), produced(0), produced(1), produced(2)]
    assert {row[-1] for row in judged(old)} == {"breaks"}, "Kafka 4 has none of them"


def test_a_client_that_tries_metadata_needs_the_versions_of_other_requests() -> None:
    """kafka-python 1.4.7 asks Metadata 0, 1 and 5 on one connection."""
    newer = [(0, 0, 11), (3, 0, 12), (18, 0, 4)]
    events: list[Event] = [asked(offers=newer), *map(metadata, (0, 1, 5)), produced(2)]
    assert judged(events) == [(2, 11, "client", "breaks")]


def test_a_client_that_never_asks_breaks() -> None:
    assert judged([produced(2), over()]) == [(2, None, "unknown", "breaks")]
    assert judged([asked(connection=1), produced(2), over(), over(1)]) == [
        (2, 2, "broker", "upgrade-broker-first")
    ]  # it asked elsewhere
    other = asked(connection=1)
    other.client_endpoint = other.broker_endpoint
    assert judged([other, produced(2), over(), over(1)]) == [(2, 2, "client", "breaks")]


@pytest.mark.parametrize("known", [{"opened": False}, {"gaps": 1}])
def test_what_was_not_captured_accuses_nobody(known: dict[str, Any]) -> None:
    assert judged([produced(2), over(**known)]) == [(2, None, "unknown", "unknown")]


@pytest.mark.parametrize("events", [[fetched(1, 5), produced(1)], [produced(1), fetched(1, 5)]])
def test_what_brokers_ask_each_other_is_no_clients(events: list[Event]) -> None:
    assert fold("versions", [asked(), *events]).result() == []
    first = fold("versions", events[:1])
    first.merge(fold("versions", events[1:]))
    assert first.result() == []
    assert judged([asked(), fetched(1, -1)], "Fetch") == [(1, 3, "client", "breaks")]


def test_what_a_filter_hides_is_known_and_not_counted() -> None:
    found = fold("versions", [produced(1)])
    found.see(asked())
    (row,) = found.result()
    assert (row["api"], row["limited_by"], row["count"]) == ("Produce", "client", 1)


def test_what_nobody_knows_is_not_called_fine() -> None:
    (row,) = [row for row in rows_of("versions", "wrong-requests") if row["api"].startswith("Unknown")]
    assert (row["reads"], row["verdict"], row["removed_in"]) == (False, "unknown", None)


@pytest.mark.parametrize(
    ("offer", "asks", "limited_by", "judgement"),
    [
        (None, True, "unknown", "unknown"),
        (None, False, "unknown", "breaks"),
        ((0, 2), True, "broker", "upgrade-broker-first"),
        ((0, 1), True, "broker", "upgrade-broker-first"),
        ((0, 3), True, "client", "breaks"),
        ((0, 2), False, "client", "breaks"),
    ],
)
def test_the_rule(offer: tuple[int, int] | None, asks: bool, limited_by: str, judgement: str) -> None:
    assert limit(2, offer, asks) == limited_by
    assert verdict(True, "4.0", limited_by, asks) == judgement
    assert verdict(True, None, limited_by, asks) == "ok"


OLD = {
    "java09-on-39": {"Fetch", "ListOffsets", "Produce"},
    "broker-0.9": {"Fetch", "ListOffsets", "Produce"},
    "broker-1.1": {"ListOffsets", "OffsetCommit"},
    "librdkafka-api-0.10": {"ListOffsets", "OffsetCommit"},
    "zk39-ibp28": {"Fetch", "ListOffsets", "Produce"},
}
"""Cases whose clients Kafka 4 would refuse, by what they ask."""


@pytest.mark.parametrize("case", sorted(path.name for path in LAB.iterdir()))
def test_only_old_clients_break(case: str) -> None:
    if Case(case).is_tls or case.startswith("sweep") or not events_of(case):
        return  # nothing to see; and the sweeps ask everything in every version
    rows = rows_of("versions", case)
    breaking = {row["api"] for row in rows if row["verdict"] == "breaks"}
    if case == "broker-0.10.2-new-clients":
        assert not breaking
        assert {row["limited_by"] for row in rows if row["removed_in"]} == {"broker"}
    assert breaking == OLD.get(case, set())
    if case == "java09-on-39":
        assert sum(row["verdict"] == "breaks" for row in rows) == 7
