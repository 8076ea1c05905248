"""Rules on versions: old software, old versions between brokers, brokers that differ."""

from __future__ import annotations

import pytest

from kdissect.analysis.clients import Clients
from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.offers import Offers
from kdissect.analysis.replication import Replication
from kdissect.analysis.versions import Versions
from kdissect.insight.finding import Finding
from kdissect.insight.software import newer_than
from tests.insight.made import row, said


@pytest.mark.parametrize(
    ("software", "version", "is_old"),
    [
        ("apache-kafka-java", "2.8.2", True),
        ("apache-kafka-java", "3.0.0", False),
        ("apache-kafka-java", "4.3.1", False),
        ("apache-kafka-java", "6.2.1-ccs", True),
        ("apache-kafka-java", "7.0.0-ccs", False),
        ("librdkafka", "1.8.0", True),
        ("librdkafka", "1.8.2", False),
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0", False),
        ("sarama", "v1.29.1", True),
        ("sarama", "v1.61.1", False),
        ("apache-kafka-java", "unknown", False),
        ("something", "0.1", False),
    ],
)
def test_what_counts_as_old(software: str, version: str, is_old: bool) -> None:
    assert (newer_than(software, version) is not None) is is_old


def client(version: str, client_id: str = "till") -> Row:
    made = {"client": "10.0.0.1", "client_id": client_id, "software": "apache-kafka-java"}
    return row(Clients, **made, software_version=version, first_ns=1, last_ns=2)


def test_old_software_is_told_once_for_all_who_run_it() -> None:
    (one,) = said("old-client", {Clients: [client("2.8.2"), client("3.9.0", "web")]})
    assert one.message == "till runs apache-kafka-java 2.8.2, which is older than 3.0.0 of September 2021."
    (two,) = said("old-client", {Clients: [client("2.8.2"), client("2.8.2", "web")]})
    assert (two.subject.client_id, two.count) == (None, 2)
    assert not said("old-client", {Clients: [client("3.0.0")]})


def asked(*versions: int) -> list[Row]:
    made = {"client": "10.0.0.1", "client_id": "till", "broker": "b:9092", "api": "ApiVersions"}
    return [row(Versions, **made, api_version=each) for each in versions]


def test_a_second_question_is_told_where_it_was_asked() -> None:
    refused = row(
        Errors,
        api="ApiVersions",
        error="UNSUPPORTED_VERSION",
        client="10.0.0.1",
        client_id="till",
        broker="b:9092",
        count=3,
        first_exchange=1,
        last_exchange=9,
        first_ns=1,
        last_ns=2,
    )
    (found,) = said("api-versions-fallback", {Errors: [refused], Versions: asked(0, 4)})
    assert (found.count, found.severity) == (3, "info")
    assert "does not know (4)" in found.message
    assert not said("api-versions-fallback", {Errors: [refused], Versions: asked(4)})
    assert not said("api-versions-fallback", {Versions: asked(0, 4)})


@pytest.mark.parametrize(("api", "version", "release"), [("Fetch", 3, "4.0"), ("ShareFetch", 0, "4.1")])
def test_the_release_that_removed_a_version_is_told(api: str, version: int, release: str) -> None:
    """Kafka 4.0 has versions for early access to share groups, which 4.1 removed."""
    made = {"client": "10.0.0.1", "client_id": "till", "broker": "b:9092", "count": 1}
    used = row(
        Versions,
        **made,
        limited_by="unknown",
        api=api,
        api_version=version,
        removed_in=release,
        verdict="breaks",
    )
    (found,) = said("client-breaks-on-4", {Versions: [used]})
    assert f"will not work with brokers from Kafka {release} on" in found.message
    assert f"{api} {version}, which Kafka {release} no longer understands" in found.message
    (found,) = said("broker-limits-clients", {Versions: [used | {"verdict": "upgrade-broker-first"}]})
    assert f"that Kafka {release} removed" in found.message


def test_each_release_that_no_longer_understands_a_client_is_told() -> None:
    made = {"client": "10.0.0.1", "client_id": "till", "broker": "b:9092", "count": 1, "limited_by": "client"}
    rows = [
        row(Versions, **made, api=api, api_version=0, removed_in=release, verdict="breaks")
        for api, release in (("ShareFetch", "4.1"), ("Fetch", "4.0"))
    ]
    (found,) = said("client-breaks-on-4", {Versions: rows})
    assert "will not work with brokers from Kafka 4.0 on" in found.message
    told = (
        "it sends Fetch 0, which Kafka 4.0 no longer understands, and ShareFetch 0, which Kafka 4.1 no longer"
    )
    assert told in found.message
    assert found.measure == 2
    (later,) = said("client-breaks-on-4", {Versions: rows[:1]})
    assert "4.0" not in later.message
    offered = [each | {"offered_min": at} for at, each in enumerate(rows)]
    (now,) = said("client-breaks-on-4", {Versions: offered})
    assert "does not work with this broker: it sends Fetch 0, which Kafka 4.0" in now.message
    assert "ShareFetch 0, which Kafka 4.1" in now.message


def offer(port: int, fetch: int, at_s: float, **more: list[int]) -> Row:
    offered = {"Produce": [0, 11], "Fetch": [0, fetch], "Metadata": [0, 12], **more}
    ns = int(at_s * SECOND)
    return row(Offers, broker=f"10.0.0.1:{port}", offered=offered, exchanges=[port], first_ns=ns, last_ns=ns)


NODES = [
    row(ClusterBrokers, cluster_id="c", node_id=each, host="10.0.0.1", port=each, from_ns=0)
    for each in (1, 2)
]


def mixed(*offers: Row) -> list[Finding]:
    return said("mixed-broker-versions", {Offers: list(offers), ClusterBrokers: NODES})


def test_brokers_that_differ_for_a_minute_are_told() -> None:
    (found,) = mixed(offer(1, 17, 1), offer(2, 16, 40))
    assert "The highest version of Fetch: broker 1 17, broker 2 16." in found.message
    assert not mixed(offer(1, 17, 1), offer(2, 17, 40))
    assert not mixed(offer(1, 17, 1), offer(2, 16, 41))  # 59 s before the end of the capture
    assert not mixed(offer(1, 17, 1), offer(2, 16, 2), offer(2, 17, 9))  # it was upgraded
    assert not mixed(offer(1, 17, 1), offer(3, 16, 2))  # not known to be of the cluster


def test_a_controller_that_is_no_broker_is_not_compared() -> None:
    other = offer(2, 16, 40)
    del other["offered"]["Produce"]
    assert not mixed(offer(1, 17, 1), other)


def between(version: int, *offers: Row) -> list[Finding]:
    pair = row(
        Replication,
        node_id=1,
        broker="10.0.0.1:2",
        fetch_version=version,
        first_ns=1,
        last_ns=2,
        exchanges=[3],
    )
    return said("ibp-too-old", {Replication: [pair], Offers: list(offers), ClusterBrokers: NODES})


def test_brokers_that_could_speak_a_newer_version_are_told() -> None:
    (found,) = between(12, offer(1, 17, 1), offer(2, 16, 1))
    assert (found.measure, found.threshold) == (12, 16)
    assert "version 12 of Fetch, though the software of both knows version 16" in found.message
    assert not between(16, offer(1, 17, 1), offer(2, 16, 1))  # the older of the two is the limit
    assert not between(12, offer(2, 16, 1))  # what the follower can is not known
