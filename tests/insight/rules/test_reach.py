"""Rules on addresses of brokers and what is spoken there, and on versions and linger."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kdissect.analysis.clients import Clients
from kdissect.analysis.connections import Connections
from kdissect.analysis.delivery import Delivery
from kdissect.analysis.endpoints import Endpoints
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.lingers import Lingers
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.versions import Versions
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, NOTICE, WARNING, Finding
from kdissect.insight.judge import judge
from tests.insight.made import unjudged
from tests.insight.rules.shipped import found_in, of_rule

GRADES = {
    "listener-unreachable": (CRITICAL, CERTAIN),
    "controller-port": (CRITICAL, LIKELY),
    "connection-limit": (WARNING, LIKELY),
    "nothing-listens": (WARNING, LIKELY),
    "tls-on-plaintext-port": (CRITICAL, CERTAIN),
    "http-on-kafka": (NOTICE, CERTAIN),
    "request-refused-by-close": (WARNING, CERTAIN),
    "client-breaks-on-4": (CRITICAL, CERTAIN),
    "broker-limits-clients": (INFO, CERTAIN),
    "linger-long": (NOTICE, CERTAIN),
}


@pytest.mark.parametrize("id", GRADES)
def test_severities_are_those_of_the_catalogue(id: str) -> None:
    assert (RULES[id].severity, RULES[id].confidence) == GRADES[id]
    assert RULES[id].page.what
    assert RULES[id].page.do


NOTHING = JudgingContext()


def said(id: str, rows: dict[Any, list[Row]], context: JudgingContext = NOTHING) -> list[Finding]:
    every = {each: rows.get(each, []) for each in RULES[id].needs}
    return judge({id: RULES[id]}, every, context).findings


def endpoint(broker: str, **values: Any) -> Row:
    row: Row = dict.fromkeys((column.name for column in Endpoints.columns), 0)
    row |= {
        name: [] for name in ("nodes", "told_to", "told_by", "client_ids", "clients", "failed", "exchanges")
    }
    row |= {"broker": broker, "failed_first_ns": None, "failed_last_ns": None}
    return row | values


TOLD = {"told": 3, "told_to": ["app@10.0.0.1"], "told_by": ["10.0.0.9:9092"], "told_last_ns": 6 * SECOND}
REFUSED = {"connections": 3, "refused": 3, "clients": ["10.0.0.1"], "failed": [4], "failed_first_ns": 1}
REFUSED |= {"failed_last_ns": 2}


@pytest.mark.parametrize(
    ("rows", "confidence"),
    [
        ([endpoint("10.0.0.5:9092", **TOLD, **REFUSED)], CERTAIN),
        ([endpoint("10.0.0.5:9092", **TOLD, **REFUSED | {"refused": 2})], None),
        ([endpoint("10.0.0.5:9092", **TOLD, **REFUSED, answered=1)], None),
        ([endpoint("10.0.0.5:9092", **TOLD, **REFUSED | {"clients": ["10.0.0.2"]})], None),
        ([endpoint("10.0.0.5:9092", **REFUSED)], None),
        # By its name: the port tells which address it may be.
        ([endpoint("kafka-1:9999", **TOLD), endpoint("10.0.0.5:9999", **REFUSED)], CERTAIN),
        ([endpoint("kafka-1:9999", **TOLD), endpoint("10.0.0.5:9999", **REFUSED, answered=1)], None),
        # Nobody even tries: it is told again and again, and the client does nothing else.
        ([endpoint("kafka-1:9999", **TOLD | {"told": 10})], LIKELY),
        ([endpoint("kafka-1:9999", **TOLD | {"told": 9})], None),
        ([endpoint("kafka-1:9999", **TOLD | {"told": 10, "told_last_ns": 21 * SECOND})], None),
    ],
)
def test_an_address_that_is_told_and_cannot_be_reached(rows: list[Row], confidence: str | None) -> None:
    found = said("listener-unreachable", {Endpoints: rows})
    assert [each.confidence for each in found] == ([confidence] if confidence else [])
    assert all(f"kdissect client metadata {each.subject.broker}" in each.fix for each in found)


def test_a_broker_that_went_before_the_capture_began_is_told_until_its_session_is_over() -> None:
    other = endpoint("10.0.0.6:9092", **TOLD, answered=1, connections=1, clients=["10.0.0.1"])
    rows = [endpoint("10.0.0.5:9092", **TOLD, **REFUSED), other]
    late = JudgingContext(mid_stream=1)
    assert said("listener-unreachable", {Endpoints: rows})
    assert not said("listener-unreachable", {Endpoints: rows}, late)
    assert said("listener-unreachable", {Endpoints: rows[:1]}, late)  # no other broker works for the client
    rows[0]["told_last_ns"] = 21 * SECOND
    assert said("listener-unreachable", {Endpoints: rows}, late)


def test_a_client_that_works_through_another_address_reaches_its_broker() -> None:
    rows = [endpoint("kafka-1:9999", **TOLD | {"told": 10})]
    client: Row = dict.fromkeys(column.name for column in Clients.columns)
    client |= {"client": "10.0.0.1", "client_id": "app", "apis": ["ApiVersions v4", "Metadata v13"]}
    assert said("listener-unreachable", {Endpoints: rows, Clients: [client]})
    client["apis"].append("Produce v12")
    assert not said("listener-unreachable", {Endpoints: rows, Clients: [client]})
    client["client_id"] = "another"  # on the same host
    assert said("listener-unreachable", {Endpoints: rows, Clients: [client]})


def asks(api: str = "FindCoordinator", **values: Any) -> Row:
    row: Row = dict.fromkeys(column.name for column in Repeats.columns)
    row |= {"client_id": "app", "client": "10.0.0.1:5000", "api": api, "count": 10}
    return row | {"first_ns": 0, "last_ns": 5 * SECOND, **values}


def told_a_name(*repeats: Row, apis: tuple[str, ...] = ("Metadata", "FindCoordinator"), **more: Any) -> Any:
    """What is said of a client that is told a name with the port of the address that it began with."""
    rows = [endpoint("kafka-1:9092", **TOLD), endpoint("10.0.0.9:9092", connections=1, answered=1)]
    rows[1]["clients"] = ["10.0.0.1"]
    clients = []
    for client_id, of_client in {"app": apis, **more}.items():
        client: Row = dict.fromkeys(column.name for column in Clients.columns)
        clients.append(
            client
            | {"client": "10.0.0.1", "client_id": client_id, "apis": [f"{each} v1" for each in of_client]}
        )
        rows[0]["told_to"] = [*{*rows[0]["told_to"], f"{client_id}@10.0.0.1"}]
    return said("listener-unreachable", {Endpoints: rows, Repeats: [*repeats], Clients: clients})


def test_a_name_that_a_client_cannot_look_up_is_told_though_its_port_answers() -> None:
    (found,) = told_a_name(asks())
    assert (found.severity, found.confidence, found.count) == (WARNING, LIKELY, 10)
    assert (found.subject.client_id, found.subject.broker) == ("app", "kafka-1:9092")
    assert "app asked where to connect 10 times and did nothing else" in found.message


@pytest.mark.parametrize(
    ("repeats", "apis"),
    [
        ([asks(count=9)], ("FindCoordinator",)),
        ([asks(last_ns=5 * SECOND - 1)], ("FindCoordinator",)),
        ([asks(last_ns=21 * SECOND)], ("FindCoordinator",)),  # seldom
        ([asks()], ("FindCoordinator", "JoinGroup")),
        ([asks(error="COORDINATOR_NOT_AVAILABLE")], ("FindCoordinator",)),
        ([asks(), asks(count=3, error="COORDINATOR_NOT_AVAILABLE")], ("FindCoordinator",)),
        ([asks("Metadata")], ("Metadata",)),  # who only looks around
    ],
)
def test_a_client_that_works_or_has_another_trouble_reaches_the_name(
    repeats: list[Row], apis: tuple[str, ...]
) -> None:
    assert not told_a_name(*repeats, apis=apis)


def test_a_producer_that_only_asks_for_metadata_is_told_if_nobody_works_there() -> None:
    apis = ("Metadata", "InitProducerId")
    assert told_a_name(asks("Metadata"), apis=apis)
    assert not told_a_name(asks("Metadata"), apis=apis, other=("Fetch",))
    assert told_a_name(asks(), other=("Fetch",))  # a coordinator is asked for only by who needs it


def named_and_reached(names: int, *reached: str) -> list[Finding]:
    """What is said of a client that is told so many names and reaches these addresses; others reach more."""
    rows = [endpoint(f"kafka-{at}:9092", **TOLD) for at in range(1, names + 1)]
    for at in (7, 8, 9):
        place = f"10.0.0.{at}:9092"
        clients = ["10.0.0.1", "10.0.0.2"] if place in reached else ["10.0.0.2"]
        rows.append(endpoint(place, connections=1, answered=1, clients=clients))
    client: Row = dict.fromkeys(column.name for column in Clients.columns)
    client |= {"client": "10.0.0.1", "client_id": "app", "apis": ["FindCoordinator v4"]}
    return said("listener-unreachable", {Endpoints: rows, Repeats: [asks()], Clients: [client]})


def test_a_client_may_speak_with_brokers_that_were_not_captured() -> None:
    """A capture at one broker shows its own address, and those that brokers reach."""
    assert not named_and_reached(2, "10.0.0.9:9092")
    assert not named_and_reached(3, "10.0.0.9:9092", "10.0.0.8:9092")
    (found,) = named_and_reached(2, "10.0.0.9:9092", "10.0.0.8:9092")
    assert "to connect to kafka-1:9092 and kafka-2:9092. app asked" in found.message
    assert "perhaps these names cannot be looked up there" in found.message
    assert (found.subject.client_id, found.subject.broker, found.count) == ("app", None, 10)


def test_a_name_that_a_real_client_cannot_look_up_is_told() -> None:
    found, effect = found_in("advertised-name-unknown")
    assert (found.id, found.subject.client_id) == ("listener-unreachable", "jc")
    assert (effect.id, effect.because) == ("metadata-storm", found.key)


FAILED = {"refused": 5, "clients": ["10.0.0.1"], "failed": [4], "failed_first_ns": 0}
FAILED |= {"failed_last_ns": 5 * SECOND, "connections": 5}


@pytest.mark.parametrize(
    ("rows", "is_told"),
    [
        ([endpoint("10.0.0.5:9092", **FAILED)], True),
        ([endpoint("10.0.0.5:9092", **FAILED | {"refused": 4, "silent": 1})], True),
        ([endpoint("10.0.0.5:9092", **FAILED | {"refused": 4})], False),
        ([endpoint("10.0.0.5:9092", **FAILED | {"failed_last_ns": 5 * SECOND - 1})], False),
        ([endpoint("10.0.0.5:9092", **FAILED, answered=1)], False),
        ([endpoint("10.0.0.5:9092", **FAILED, told=1)], False),  # listener-unreachable
        ([endpoint("10.0.0.5:9092", **FAILED), endpoint("kafka-5:9092", told=1)], False),
        ([endpoint("10.0.0.5:8080", **FAILED)], False),  # perhaps no Kafka at all
        ([endpoint("10.0.0.5:9090", **FAILED)], False),
        ([endpoint("10.0.0.5:9093", **FAILED)], False),
        ([endpoint("10.0.0.5:9092", **FAILED | {"connections": 25})], False),  # others were accepted
        ([endpoint("10.0.0.5:9092", **FAILED), endpoint("10.0.0.6:31000", kafka=1)], False),
        ([endpoint("10.0.0.5:31000", **FAILED), endpoint("10.0.0.6:31000", kafka=1)], True),
    ],
)
def test_an_address_at_which_nothing_ever_answers(rows: list[Row], is_told: bool) -> None:
    assert bool(said("nothing-listens", {Endpoints: rows})) == is_told


def test_clients_that_have_only_a_closed_port_are_told() -> None:
    (found,) = found_in("bootstrap-port-closed")
    assert (found.id, found.subject.broker, found.count) == ("nothing-listens", "127.0.0.1:9092", 304)


@pytest.mark.parametrize(
    ("values", "confidence"),
    [
        ({"kafka_alerted": 1}, CERTAIN),
        ({"kafka_alerted": 1, "kafka": 1}, None),
        ({"kafka_closed": 3, "tls": 1}, CERTAIN),
        ({"kafka_closed": 2, "tls": 1}, None),
        ({"kafka_closed": 3}, None),
        ({"tls_closed": 1, "kafka": 1}, CERTAIN),
        ({"tls_closed": 1, "kafka": 1, "tls": 1}, None),
        ({"tls_closed": 3}, LIKELY),
        ({"tls_closed": 2}, None),
    ],
)
def test_tls_meets_a_port_without_it_or_the_other_way(values: dict[str, int], confidence: str | None) -> None:
    rows = {Endpoints: [endpoint("10.0.0.9:9093", **values, answered=values.get("kafka", 0))]}
    found = said("tls-on-plaintext-port", rows)
    assert [each.confidence for each in found] == ([confidence] if confidence else [])


def test_the_fix_says_which_side_speaks_tls() -> None:
    def fix(**values: int) -> str:
        rows = {Endpoints: [endpoint("10.0.0.9:9093", **values)]}
        (found,) = said("tls-on-plaintext-port", rows)
        return found.fix

    assert fix(kafka_alerted=1).startswith("The listener at this port speaks TLS: set security.protocol of")
    assert fix(kafka_closed=3, tls=1) == fix(kafka_alerted=1)
    assert fix(tls_closed=1, kafka=1).startswith("The listener at this port does not speak TLS")
    assert fix(tls_closed=3) == RULES["tls-on-plaintext-port"].page.do, "nobody knows what the port speaks"


def test_clients_that_speak_tls_are_not_named() -> None:
    """The ids are those of clients that speak without TLS at the port."""

    def message(**values: Any) -> str:
        rows = {Endpoints: [endpoint("10.0.0.9:9093", client_ids=["a", "b"], **values)]}
        (found,) = said("tls-on-plaintext-port", rows)
        return found.message

    assert message(kafka_alerted=1).startswith("Clients (a, b) sent requests without TLS")
    assert message(tls_closed=1, kafka=1).startswith("Clients sent a TLS ClientHello")
    assert message(tls_closed=3).startswith("Clients sent a TLS ClientHello")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"kafka_alerted": 1, "client_ids": ["c"]}, True),
        ({"kafka_closed": 3, "tls": 1}, True),
        ({"tls_closed": 3, "kafka": 1}, False),  # others use TLS there, and this one does not
    ],
)
def test_a_port_with_tls_explains_what_it_refuses(values: dict[str, Any], told: bool) -> None:
    ids = ("tls-on-plaintext-port", "request-refused-by-close")
    rows: dict[Any, list[Row]] = {each: [] for id in ids for each in RULES[id].needs}
    failed = {"failed_first_ns": 1, "failed_last_ns": 5}
    rows[Endpoints] = [endpoint("10.0.0.9:9092", **values, **failed)]
    rows[Tcp] = [refused_by_close()]
    found = judge({id: RULES[id] for id in ids}, rows, NOTHING).findings
    assert [each.because is not None for each in found if each.id == "request-refused-by-close"] == [told]


def test_http_is_told_where_the_port_is_a_brokers() -> None:
    row: Row = dict.fromkeys(column.name for column in Connections.columns)
    row |= {"connection": 2, "broker": "10.0.0.9:9092", "protocol": "http", "first_ns": 1, "last_ns": 2}
    rows = {Endpoints: [endpoint("10.0.0.9:9092", kafka=1)], Connections: [row]}
    assert len(said("http-on-kafka", rows)) == 1
    assert not said("http-on-kafka", {**rows, Endpoints: [endpoint("10.0.0.9:8080", kafka=1)]})


def refused_by_close() -> Row:
    row: Row = dict.fromkeys(column.name for column in Tcp.columns)
    row |= {"connection": 1, "client": "10.0.0.1:5000", "broker": "10.0.0.9:9092", "client_id": "c"}
    row |= {"closed_by": "broker", "waiting_exchanges": [7], "waiting_apis": ["Produce"]}
    return row | {"waiting_ns": 50 * MILLISECOND, "first_ns": 1, "closed_ns": 5, "last_ns": 5}


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ({}, True),
        ({"waiting_ns": 51 * MILLISECOND}, False),
        ({"closed_by": "client"}, False),
        ({"waiting_apis": ["Fetch"]}, False),
        ({"waiting_apis": ["LeaderAndIsr"]}, False),
        ({"waiting_exchanges": []}, False),
    ],
)
def test_a_request_that_is_answered_by_closing_is_refused(change: dict[str, Any], fires: bool) -> None:
    row = refused_by_close()
    assert bool(said("request-refused-by-close", {Tcp: [row | change]})) == fires
    other = row | {"connection": 2, "closed_by": None, "waiting_exchanges": [], "answered_apis": ["Produce"]}
    assert not said("request-refused-by-close", {Tcp: [row | change, other]}), "it is answered elsewhere"


@pytest.mark.parametrize(("connection", "gap_bytes", "fires"), [(1, 0, True), (1, 1, False), (2, 9, True)])
def test_an_answer_may_be_among_what_is_missing(connection: int, gap_bytes: int, fires: bool) -> None:
    seen = {"connection": connection, "gap_bytes": gap_bytes}
    rows = {Tcp: [refused_by_close()], Connections: [seen]}
    assert bool(said("request-refused-by-close", rows)) == fires
    assert bool(unjudged("request-refused-by-close", rows)) == (not fires)


def test_a_broker_that_stops_refuses_nothing() -> None:
    row = refused_by_close()
    served = row | {"connection": 2, "waiting_exchanges": [], "waiting_apis": [], "client_id": "other"}
    assert not said("request-refused-by-close", {Tcp: [row, served]})
    later, elsewhere = {"closed_ns": row["closed_ns"] + 2 * SECOND}, {"broker": "other:9092"}
    for apart in (later, elsewhere, {"closed_by": "client"}):
        assert said("request-refused-by-close", {Tcp: [row, served | apart]})


def test_that_logins_are_refused_shows_no_stop() -> None:
    row = refused_by_close()
    login = row | {"connection": 2, "waiting_exchanges": [], "waiting_apis": [], "client_id": "other"}
    login |= {"answered_apis": ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]}
    twice = [row, login, login | {"connection": 3}]
    assert said("request-refused-by-close", {Tcp: twice})
    for change in ({"answered_apis": ["Metadata"]}, {"first_ns": row["closed_ns"] - SECOND}):
        changed = login | change
        assert not said("request-refused-by-close", {Tcp: [row, changed, changed | {"connection": 3}]})


def test_a_broker_that_goes_on_refuses_though_it_closes_an_idle_connection() -> None:
    row = refused_by_close() | {"closed_ns": 5 * SECOND, "last_ns": 5 * SECOND}
    idle = row | {"connection": 2, "waiting_exchanges": [], "waiting_apis": [], "client_id": "other"}
    goes_on = idle | {"connection": 3, "closed_by": None, "closed_ns": None, "last_ns": 7 * SECOND}
    assert not said("request-refused-by-close", {Tcp: [row, idle]})
    assert said("request-refused-by-close", {Tcp: [row, idle, goes_on]})
    for ends in ({"last_ns": 6 * SECOND}, {"opening": "refused"}, {"first_ns": 7 * SECOND}):
        assert not said("request-refused-by-close", {Tcp: [row, idle, goes_on | ends]})
    again = {"first_ns": row["closed_ns"] + SECOND // 2}
    assert not said("request-refused-by-close", {Tcp: [row, idle, goes_on | again]}), "it may have restarted"
    other = idle | {"connection": 4}
    assert not said("request-refused-by-close", {Tcp: [row, idle, other, goes_on]}), "one of several brokers"


def too_large(sent: int = 1000, **more: Any) -> Row:
    """A request that announces 1,000 bytes, and that the broker closed at."""
    return refused_by_close() | {"waiting_bytes": 1000, "bytes_to_broker": sent} | more


def test_a_request_that_was_never_sent_whole_is_too_large() -> None:
    (found,) = said("request-refused-by-close", {Tcp: [too_large(999)]})
    assert "each announces 1,000 bytes or more, and the client could send at most 999" in found.message
    assert found.confidence == "likely"
    assert "socket.request.max.bytes" in found.cause
    (found,) = said("request-refused-by-close", {Tcp: [too_large(1000)]})
    assert "without an answer" in found.message
    assert found.confidence == "certain"


def test_one_of_many_requests_is_too_large_if_that_happens_again() -> None:
    """Others of the API are answered. A broker that crashes breaks one off, too."""
    well = too_large(connection=9, closed_by=None, waiting_exchanges=[], answered_apis=["Produce"])
    first, second = too_large(999), too_large(999, connection=2, closed_ns=5 * SECOND)
    assert len(said("request-refused-by-close", {Tcp: [first, second, well]})) == 1
    assert not said("request-refused-by-close", {Tcp: [first, well]})
    whole = [each | {"bytes_to_broker": 1000} for each in (first, second)]
    assert not said("request-refused-by-close", {Tcp: [*whole, well]})


def spoken(**more: Any) -> Row:
    row: Row = dict.fromkeys(column.name for column in Versions.columns)
    row |= {"client_id": "c", "broker": "10.0.0.9:9092", "api": "Metadata", "api_version": 12}
    return row | {"offered_min": 0, "offered_max": 13} | more


@pytest.mark.parametrize(
    ("change", "version", "wants_login"),
    [
        ({}, {}, True),
        ({}, {"api_version": 13}, True),
        ({}, {"api_version": 14}, False),  # which the broker does not know
        ({}, {"offered_min": None, "offered_max": None}, False),
        ({"waiting_bytes": 65_535}, {}, True),
        ({"waiting_bytes": 65_536}, {}, False),
        ({"answered_apis": []}, {}, False),
        ({"answered_apis": ["ApiVersions", "SaslHandshake"]}, {}, False),
        ({"waiting_apis": ["SaslHandshake"]}, {}, False),
    ],
)
def test_a_port_that_closes_at_the_first_request_after_api_versions_wants_a_login(
    change: dict[str, Any], version: dict[str, Any], wants_login: bool
) -> None:
    row = too_large(10**9, waiting_bytes=40, waiting_apis=["Metadata"], answered_apis=["ApiVersions"])
    (found,) = said("request-refused-by-close", {Tcp: [row | change], Versions: [spoken(**version)]})
    assert ("clients must log in" in found.message) == wants_login
    assert ("sent no SaslHandshake" in found.cause) == wants_login
    assert found.confidence == ("likely" if wants_login else "certain")
    other = spoken(broker="10.0.0.8:9092")
    (found,) = said("request-refused-by-close", {Tcp: [row | change], Versions: [other]})
    assert "clients must log in" not in found.message


def at_controllers(**more: Any) -> Row:
    row = refused_by_close() | {"waiting_exchanges": [], "waiting_apis": [], "opening": "answered"}
    row |= {"answered_apis": ["ApiVersions"], "end": "fin", "last_exchange": 7, "first_ns": SECOND}
    return row | {"last_ns": 2 * SECOND} | more


def sent_to_controllers(*rows: Row, end_s: int = 60, **place: Any) -> list[Finding]:
    there = endpoint("10.0.0.9:9092", **{"is_controllers": True, **place})
    return said("controller-port", {Tcp: list(rows), Endpoints: [there]}, JudgingContext(0, end_s * SECOND))


def test_a_client_that_gets_no_further_than_api_versions_was_sent_to_controllers() -> None:
    times = [at_controllers(connection=number) for number in range(3)]
    (found,) = sent_to_controllers(*times)
    assert (found.severity, found.confidence, found.count) == (CRITICAL, LIKELY, 3)
    assert (found.subject.client_id, found.subject.broker) == ("c", "10.0.0.9:9092")
    assert not sent_to_controllers(*times[:2])
    assert not sent_to_controllers(*times, is_controllers=False)
    assert not sent_to_controllers(*times, is_controllers=None)
    assert not sent_to_controllers(*(each | {"client_id": "raft-client-3"} for each in times))
    assert sent_to_controllers(*times[1:], at_controllers(waiting_apis=["Metadata"], last_api="Metadata"))
    for other in (
        {"answered_apis": ["ApiVersions", "DescribeCluster"]},
        {"answered_apis": ["ApiVersions", "Metadata"]},
        {"waiting_apis": ["Vote"]},
        {"last_api": "BrokerRegistration"},
        {"opening": None},
    ):
        assert not sent_to_controllers(*times[1:], at_controllers(**other)), "it may get what it wants"


def test_who_is_served_at_another_controller_was_not_sent_to_it_by_mistake() -> None:
    there = [endpoint(broker, is_controllers=True) for broker in ("10.0.0.9:9092", "10.0.0.8:9092")]
    idle = at_controllers(last_ns=6 * SECOND)
    served = at_controllers(broker="10.0.0.8:9092", answered_apis=["ApiVersions", "DescribeCluster"])
    for other, fires in ((served, False), (served | {"client": "10.0.0.2:5000"}, True)):
        rows = {Tcp: [idle, other], Endpoints: there}
        assert bool(said("controller-port", rows, JudgingContext(0, 60 * SECOND))) == fires


@pytest.mark.parametrize(
    ("ends", "fires"),
    [
        ({"last_ns": 6 * SECOND}, True),
        ({"last_ns": 6 * SECOND - 1}, False),
        ({"end": "open"}, True),
        ({"end": "open", "first_ns": 56 * SECOND}, False),
    ],
)
def test_one_connection_that_stays_for_seconds_is_enough(ends: dict[str, Any], fires: bool) -> None:
    assert bool(sent_to_controllers(at_controllers(**ends))) == fires


def turned_away(number: int, **more: Any) -> Row:
    row = refused_by_close() | {"connection": number, "opening": "answered", "bytes_from_broker": 0}
    row |= {"bytes_to_broker": 60, "exchanges": 1, "waiting_apis": ["ApiVersions"], "answered_apis": []}
    return row | {"first_ns": SECOND, "closed_ns": SECOND + 50 * MILLISECOND} | more


SERVED = {"bytes_from_broker": 900, "waiting_apis": [], "waiting_exchanges": [], "closed_by": None}
SERVED |= {"answered_apis": ["ApiVersions", "Fetch"], "first_ns": 0, "closed_ns": None, "last_ns": 9 * SECOND}


def test_a_broker_that_turns_away_whom_it_accepted_has_enough_connections() -> None:
    away = [turned_away(number) for number in range(3)]
    served = turned_away(9, **SERVED)
    (found,) = said("connection-limit", {Tcp: [*away, served, served | {"connection": 10}]})
    assert (found.severity, found.confidence, found.count) == (WARNING, LIKELY, 3)
    assert "closed 3 connections of 10.0.0.1 within 50 ms" in found.message
    assert found.message.endswith("Meanwhile it served 2 other connections.")
    silent = away[2] | {"waiting_apis": [], "exchanges": 0, "client_id": None}
    assert said("connection-limit", {Tcp: [*away[:2], silent, served]})
    assert not said("connection-limit", {Tcp: [*away[:2], served]})
    assert not said("connection-limit", {Tcp: away}), "the broker may have stopped"
    for other in (
        {"answered_apis": ["Metadata"]},  # it may not know such a request
        {"first_ns": 2 * SECOND},  # it may have started meanwhile
        {"last_ns": SECOND + 50 * MILLISECOND},
        {"broker": "10.0.0.8:9092"},
    ):
        assert not said("connection-limit", {Tcp: [*away, served | other]})


@pytest.mark.parametrize(
    "other",
    [
        {"closed_by": "client"},
        {"bytes_from_broker": 7},
        {"opening": None},
        {"exchanges": 2},
        {"bytes_to_broker": 65_536},
        {"closed_ns": SECOND + 50 * MILLISECOND + 1},
    ],
)
def test_others_are_closed_for_other_reasons(other: dict[str, Any]) -> None:
    rows = [turned_away(0), turned_away(1), turned_away(2, **other), turned_away(9, **SERVED)]
    assert not said("connection-limit", {Tcp: rows})


def test_where_bytes_are_missing_a_broker_may_have_answered() -> None:
    rows = [*map(turned_away, range(3)), turned_away(9, **SERVED)]
    seen = {Tcp: rows, Connections: [{"connection": 1, "gap_bytes": 1}]}
    assert not said("connection-limit", seen)
    assert unjudged("connection-limit", seen)


@pytest.mark.parametrize(
    ("protocol", "tls", "fires"),
    [("kafka", None, True), ("tls", "1.3", False), ("http", None, False), ("unknown", None, False)],
)
def test_a_broker_closes_at_what_it_does_not_understand(protocol: str, tls: str | None, fires: bool) -> None:
    strange = {"waiting_apis": [], "waiting_exchanges": [], "exchanges": 0}
    rows = [*(turned_away(number, **strange) for number in range(3)), turned_away(9, **SERVED)]
    served: Row = {"connection": 9, "gap_bytes": 0, "protocol": "kafka", "tls": None}
    seen = [served | {"connection": number, "protocol": protocol, "tls": tls} for number in range(3)]
    assert bool(said("connection-limit", {Tcp: rows, Connections: [*seen, served]})) == fires
    alike = [served | {"protocol": protocol, "tls": tls}, *seen]
    assert said("connection-limit", {Tcp: rows, Connections: alike}), "it serves others that speak so"
    silent = [row | {"bytes_to_broker": 0} for row in rows]
    assert said("connection-limit", {Tcp: silent, Connections: [*seen, served]})


def test_a_broker_closes_at_a_request_before_the_login() -> None:
    served = turned_away(9, **SERVED | {"answered_apis": ["ApiVersions", "SaslHandshake", "Metadata"]})
    for api, fires in (("Metadata", False), ("ApiVersions", True), ("SaslHandshake", True)):
        rows = [*(turned_away(number, waiting_apis=[api]) for number in range(3)), served]
        assert bool(said("connection-limit", {Tcp: rows})) == fires


def test_many_closed_connections_are_judged_in_one_pass() -> None:
    row = refused_by_close()
    ends = [
        {"first_ns": ns - 1, "closed_ns": ns, "last_ns": ns} for ns in range(0, 8_000 * SECOND, 2 * SECOND)
    ]
    every = [row | end | {"connection": at} for at, end in enumerate(ends)]
    idle = {"waiting_exchanges": [], "waiting_apis": [], "client_id": "other"}
    every += [each | idle | {"connection": 4_000 + at} for at, each in enumerate(every)]
    began = time.process_time()
    assert not said("request-refused-by-close", {Tcp: every})
    assert time.process_time() - began < 2, "each was compared with each"


def version(**values: Any) -> Row:
    row: Row = dict.fromkeys(column.name for column in Versions.columns)
    row |= {"client_id": "c", "client": "10.0.0.1", "broker": "b", "api": "Fetch", "api_version": 3}
    row |= {"offered_min": 0, "offered_max": 17, "limited_by": "client", "count": 9, "verdict": "breaks"}
    return row | {"removed_in": "4.0"} | values


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "will not work with brokers from Kafka 4.0 on"),
        ({"offered_min": 4}, "does not work with this broker"),
        ({"api": "Produce", "api_version": 2, "offered_max": 12}, "does not work with this broker"),
        ({"api": "Produce", "api_version": 2, "offered_max": 11}, "will not work"),
        ({"limited_by": "unknown", "offered_max": None, "offered_min": None}, "did not ask"),
        ({"verdict": "upgrade-broker-first"}, None),
        ({"verdict": "ok"}, None),
    ],
)
def test_versions_that_kafka_4_removed_are_told(change: dict[str, Any], words: str | None) -> None:
    found = said("client-breaks-on-4", {Versions: [version(**change)]})
    assert [words in each.message for each in found if words] == [True] * bool(words)
    assert bool(found) == bool(words)


def test_who_tries_all_versions_of_a_request_may_need_no_old_one() -> None:
    for side in ("client", "broker", "unknown"):
        rows = {Versions: [version(removed_in="4.0", verdict="tried", limited_by=side)]}
        assert not said("client-breaks-on-4", rows)
        assert unjudged("client-breaks-on-4", rows)
    assert not unjudged("client-breaks-on-4", {Versions: [version(removed_in="4.0", verdict="unknown")]})


def test_an_old_broker_is_no_fault_of_clients() -> None:
    assert said("broker-limits-clients", {Versions: [version(verdict="upgrade-broker-first")]})


LATE = {
    "linger_p50_ns": 500,
    "youngest_p50_ns": 5,
    "create_to_fetched_p50_ns": 900,
    "send_to_fetched_p50_ns": 9,
}


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ({}, True),
        ({"linger_p50_ns": 499}, False),
        ({"create_to_fetched_p50_ns": 1_001}, False),
        ({"youngest_p50_ns": 250}, False),
        ({"linger_p50_ns": None}, False),
    ],
)
def test_linger_is_told_where_it_is_most_of_the_way(change: dict[str, Any], fires: bool) -> None:
    times = {name: value and value * MILLISECOND for name, value in {**LATE, **change}.items()}
    row: Row = dict.fromkeys(column.name for column in Delivery.columns)
    row |= {"topic": "t", "consumer": "c", "producers": ["p"], "records": 20, "sets": 4, **times}
    kept: Row = {"topic": "t", "linger_max_ns": 500 * MILLISECOND}
    found = said("linger-long", {Lingers: [kept], Delivery: [row]})
    assert [each.subject.client_id for each in found] == ["p"] * fires
    assert not said("linger-long", {Lingers: [kept], Delivery: [row | {"records": 19}]})
    for rows in ([], [kept | {"topic": "other"}], [kept | {"linger_max_ns": 490 * MILLISECOND}]):
        assert not said("linger-long", {Lingers: rows, Delivery: [row]})


@pytest.mark.parametrize(
    ("case", "id", "subject"),
    [
        ("wrong-advertised-listener", "listener-unreachable", {"broker": "127.0.0.1:9999"}),
        ("plaintext-client-on-tls-port", "tls-on-plaintext-port", {"broker": "127.0.0.1:9093"}),
        ("client-0.10.2-on-4.3", "client-breaks-on-4", {"client_id": "museum-p"}),
        ("latency-by-linger", "linger-long", {"client_id": "lingerer", "topic": "batchy"}),
    ],
)
def test_trouble_of_real_clients_is_found(case: str, id: str, subject: dict[str, Any]) -> None:
    (found,) = of_rule(case, id)
    assert {name: getattr(found.subject, name) for name in subject} == subject
    assert found.because is None
    worse = [each for each in found_in(case) if each.because is None and each.severity == CRITICAL]
    assert worse in ([], [found])


def test_each_old_client_is_told_and_the_current_one_is_not() -> None:
    found = of_rule("client-0.10.2-on-3.9", "client-breaks-on-4")
    assert {each.subject.client_id for each in found} == {"antique-p", "antique-c"}
    assert all("will not work" in each.message for each in found)
