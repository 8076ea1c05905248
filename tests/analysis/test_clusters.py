"""Groups of two clusters that have one name have rows of their own; a group of one cluster stays whole."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.fold import MILLISECOND, Row
from kdissect.analysis.room import Room
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import Endpoint
from kdissect.present.form import Clock
from kdissect.present.options import PLAIN
from kdissect.present.statistics import STATISTICS
from kdissect.present.statistics_text import table_lines
from tests.analysis.folds import fold, made, rows_of_parts
from tests.analysis.grouped import Client
from tests.analysis.traffic import commit, end_transaction, fetch, produce, transaction_commit

EAST, WEST = "cluster-east", "cluster-west"
TABLES = ("lag", "lag,1s", "groups", "members", "stays", "rebalances", "rebalance_steps", "assignments")


def place(host: str, port: int = 9092) -> Endpoint:
    """An IPv4 address and a port, as on the wire."""
    return bytes(map(int, host.split("."))) + port.to_bytes(2, "big")


def at(host: str, *exchanges: Exchange, client: str | None = None) -> list[Exchange]:
    """The exchanges as the broker at a host answered them."""
    for each in exchanges:
        each.broker_endpoint = place(host)
        each._broker = None
        if client is not None:
            each.client_endpoint = place(client, 40_000)
            each._client = None
    return [*exchanges]


def metadata(cluster: str | None, *hosts: str, at_ms: int = 0) -> Exchange:
    """An answer to Metadata."""
    brokers = [{"nodeId": node, "host": host, "port": 9092, "rack": None} for node, host in enumerate(hosts)]
    asked = {"topics": None, "allowAutoTopicCreation": True}
    told: dict[str, Any] = {"throttleTimeMs": 0, "brokers": brokers, "clusterId": cluster}
    told |= {"controllerId": 0, "topics": []}
    return made("Metadata", 5, asked, told, (at_ms * MILLISECOND, at_ms * MILLISECOND + 1))


def of_a_cluster(cluster: str, host: str, high: int) -> list[Exchange]:
    """The group ``readers`` of a cluster: a member joins, reads and commits."""
    member = Client("app", 7, group="readers")
    joined = [*member.enter(10, 20, 1, f"m-{high}", roster=(f"m-{high}",))]
    joined.append(member.sync(21, 1, f"m-{high}", {f"m-{high}": (0,)}))
    joined += member.beats(3_000, 9_000, 1, f"m-{high}")
    read = [fetch((30, 40), high - 10, [], high), commit((50, 60), high - 10)]
    return at(host, metadata(cluster, host), *joined, *read)


def two() -> list[Exchange]:
    """Two clusters, as they were captured together."""
    events = [*of_a_cluster(EAST, "10.0.0.1", 100), *of_a_cluster(WEST, "10.9.0.1", 1_000)]
    return sorted(events, key=lambda each: each.ended_ns)


def rows(name: str, events: list[Exchange]) -> list[Row]:
    return fold(name, events).result()


@pytest.mark.parametrize("name", TABLES)
def test_groups_of_one_name_in_two_clusters_have_their_own_rows(name: str) -> None:
    for cluster, events in ((EAST, two()), (WEST, two())):
        alone = of_a_cluster(*((EAST, "10.0.0.1", 100) if cluster == EAST else (WEST, "10.9.0.1", 1_000)))
        found = [row for row in rows(name, events) if row["cluster_id"] == cluster]
        assert found
        assert found == [{**row, "cluster_id": cluster} for row in rows(name, alone)]
    assert {row["cluster_id"] for row in rows(name, two())} == {EAST, WEST}


@pytest.mark.parametrize("name", TABLES)
def test_the_rows_are_the_same_however_the_capture_is_cut(name: str) -> None:
    whole = rows(name, two())
    assert all(found == whole for found in rows_of_parts(name, two()))


@pytest.mark.parametrize("name", TABLES)
def test_a_group_whose_coordinator_moves_is_one(name: str) -> None:
    """The other broker is known by the list of the first, by its own word, or it is the only cluster."""
    stays = of_a_cluster(EAST, "10.0.0.1", 100)
    elsewhere = at("10.9.0.1", metadata(WEST, "10.9.0.1"))
    for told in ((EAST, "10.0.0.1", "10.0.0.2"), (EAST, "10.0.0.1")):
        moved = of_a_cluster(EAST, "10.0.0.1", 100)
        moved[0] = at("10.0.0.1", metadata(*told))[0]
        at("10.0.0.2", *moved[-4:])
        more = elsewhere if len(told) > 2 else []
        found = rows(name, [*moved, *more])
        assert found == rows(name, [*stays, *more])
        assert {row["cluster_id"] for row in found} == {EAST}
    moved = of_a_cluster(EAST, "10.0.0.1", 100)
    at("10.0.0.2", *moved[-4:])
    also = [*at("10.0.0.2", metadata(EAST, "b1", "b2")), *elsewhere]
    assert rows(name, [*moved, *also]) == rows(name, [*stays, *elsewhere])


@pytest.mark.parametrize("name", TABLES)
def test_what_is_unknown_is_not_told_apart(name: str) -> None:
    unknown = of_a_cluster(EAST, "10.0.0.1", 100)[1:]
    assert {row["cluster_id"] for row in rows(name, unknown)} == {None}
    elsewhere = at("10.9.0.1", metadata(WEST, "10.9.0.1"))
    other = at("10.8.0.1", metadata(EAST, "10.8.0.1"))
    assert {row["cluster_id"] for row in rows(name, [*unknown, *elsewhere, *other])} == {None}
    # Both clusters once were at this address.
    both = at("10.0.0.1", metadata(EAST, "10.0.0.1"), metadata(WEST, "10.0.0.1"))
    assert {row["cluster_id"] for row in rows(name, [*unknown, *both])} == {None}


def test_a_broker_that_lists_only_name_is_known_by_its_clients() -> None:
    known = Clusters(Room(DEFAULTS._replace(rows=100)))
    for each in (
        *at("10.0.0.1", metadata(EAST, "kafka-0", "kafka-1"), client="10.1.0.1"),
        *at("10.9.0.1", metadata(WEST, "kafka-0", "kafka-1"), client="10.1.0.2"),
    ):
        known.see(each)
    (asked,) = at("10.0.0.2", commit((1, 2), 5), client="10.1.0.1")
    assert known.known()(asked.broker) is None
    assert known.name_at(asked, "readers") == NameAt("readers", "10.0.0.2:9092")
    assert known.known()(asked.broker) == EAST
    (other,) = at("10.0.0.2", commit((1, 2), 5), client="10.1.0.2")
    other.connection = 8
    known.name_at(other, "readers")
    assert known.known()(asked.broker) is None  # a client of either cluster asks it
    elsewhere = at("10.0.0.3", commit((1, 2), 5), client="10.1.0.1")[0]
    elsewhere.connection = 9
    elsewhere.broker_endpoint, elsewhere._broker = place("10.0.0.3", 9_999), None
    known.name_at(elsewhere, "readers")
    assert known.known()(elsewhere.broker) is None  # no broker of its clients has this port


def test_clients_do_not_tell_of_more_brokers_than_their_cluster_has() -> None:
    """Two programs on one host have one client id. What the second one is told was not captured."""
    known = Clusters(Room(DEFAULTS))
    known.see(at("10.9.0.1", metadata(WEST, "kafka-0", "kafka-1"), client="10.1.0.2")[0])
    known.see(at("10.0.0.1", metadata(EAST, "kafka-0", "kafka-1"), client="10.1.0.1")[0])
    brokers = ("10.0.0.2", "10.9.0.2")
    for connection, host in enumerate(brokers):
        (asked,) = at(host, commit((1, 2), 5), client="10.1.0.1")
        asked.connection = connection
        known.name_at(asked, "readers")
        told = [known.known()(f"{each}:9092") for each in brokers]
        assert told == ([EAST, None] if not connection else [None, None])
    assert known.known()("10.0.0.1:9092") == EAST


def test_each_client_counts_that_speaks_on_a_connection() -> None:
    known = Clusters(Room(DEFAULTS))

    def said(host: str, client_id: str, exchange: Exchange) -> Exchange:
        (found,) = at(host, exchange, client="10.1.0.1")
        assert found.request is not None
        found.request.client_id = client_id
        return found

    known.see(said("10.0.0.1", "till", metadata(EAST, "kafka-0", "kafka-1")))
    known.see(said("10.9.0.1", "desk", metadata(WEST, "kafka-0")))
    for client_id, cluster in (("till", EAST), ("desk", None)):
        asked = said("10.0.0.2", client_id, commit((1, 2), 5))
        known.name_at(asked, "readers")
        assert known.known()(asked.broker) == cluster


def test_no_more_is_kept_than_the_limit() -> None:
    known = Clusters(Room(DEFAULTS._replace(rows=1)))
    for host in ("10.0.0.1", "10.0.0.2"):
        known.see(at(host, metadata(EAST, host))[0])
    other = Clusters(Room(DEFAULTS._replace(rows=0)))
    other.merge(known)
    assert other.known()("10.0.0.1:9092") is None


def test_transactions_and_logs_of_another_cluster_do_not_count() -> None:
    """One transactional id, one topic and one group in both; only one of the transactions was committed."""
    events = [
        *at("10.0.0.1", metadata(EAST, "10.0.0.1"), transaction_commit((5, 6), 10)),
        *at("10.9.0.1", metadata(WEST, "10.9.0.1"), transaction_commit((5, 7), 20)),
        *at("10.0.0.1", end_transaction((8, 9), True), produce((10, 11), 10, [1, 1])),
        *at("10.9.0.1", end_transaction((8, 9), False), produce((10, 12), 500, [1, 1])),
    ]
    (row,) = rows("lag", events)
    assert (row["cluster_id"], row["committed"], row["log_end"]) == (EAST, 10, 12)


def test_of_a_group_at_an_unknown_broker_no_log_of_two_clusters_counts() -> None:
    """It was asked for at a broker of one cluster and at one of which nothing is known."""
    ends = [*at("10.0.0.1", produce((10, 11), 10, [1, 1])), *at("10.9.0.1", produce((10, 12), 500, [1, 1]))]
    asked = [*at("10.0.0.1", commit((20, 21), 10)), *at("10.5.0.1", commit((22, 23), 10))]
    east, west = at("10.0.0.1", metadata(EAST, "10.0.0.1")), at("10.9.0.1", metadata(WEST, "10.9.0.1"))
    (row,) = rows("lag", [*east, *west, *ends, *asked])
    assert (row["cluster_id"], row["committed"], row["log_end"], row["lag"]) == (None, 10, None, None)
    (row,) = rows("lag", [*east, *west, ends[0], *asked])
    assert (row["log_end"], row["lag"]) == (12, 2), "only one cluster has the topic"


@pytest.mark.parametrize("hosts", [("10.0.0.1", "10.9.0.1"), ("10.0.0.1",)])
def test_of_a_group_at_an_unknown_broker_no_transaction_of_two_clusters_counts(
    hosts: tuple[str, ...],
) -> None:
    """What it committed may be newer than what is known, so nobody knows how far it is behind."""
    clusters = [*at("10.0.0.1", metadata(EAST, "10.0.0.1")), *at("10.9.0.1", metadata(WEST, "10.9.0.1"))]
    asked = [*at("10.5.0.1", commit((1, 2), 10)), *at("10.5.0.1", transaction_commit((5, 6), 12))]
    ended = [each for host in hosts for each in at(host, end_transaction((8, 9), True))]
    written = at("10.0.0.1", produce((10, 11), 10, [1, 1]))
    (row,) = rows("lag", [*clusters, *asked, *ended, *written])
    told = row["cluster_id"], row["committed"], row["log_end"], row["lag"]
    assert told == ((None, 12, 12, 0) if len(hosts) == 1 else (None, 10, None, None))


def test_a_member_is_as_the_coordinator_knows_it_that_it_asked_last() -> None:
    """The coordinator moves to another broker, and back."""
    events = at("10.0.0.1", metadata(EAST, "10.0.0.1", "10.0.0.2"))
    for turn, host in enumerate(("10.0.0.1", "10.0.0.2", "10.0.0.1")):
        joined = Client(f"app-{turn}", 7, group="readers").join(turn * 10 + 10, turn * 10 + 11, 1, "m")
        events += at(host, joined)
    for cut in range(len(events) + 1):
        first = fold("members", events[:cut])
        first.merge(fold("members", events[cut:]))
        (row,) = first.result()
        assert (row["client_id"], row["joins"]) == ("app-2", 3)


def test_the_column_is_shown_to_people_where_clusters_differ() -> None:
    def heading(events: list[Exchange]) -> str:
        table = STATISTICS["lag"]
        return next(iter(table_lines(table, rows("lag", events), PLAIN, Clock("r", 0))))

    assert "cluster_id" in heading(two())
    assert "cluster_id" not in heading(of_a_cluster(EAST, "10.0.0.1", 100))
