"""Rules on brokers and controllers."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.broker_clocks import BrokerClocks
from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row, Statistic
from kdissect.analysis.producers import Producers
from kdissect.analysis.quorum import Quorum
from kdissect.analysis.stalls import Stalls
from kdissect.analysis.tcp import Tcp
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import SLEPT, Some
from kdissect.insight.finding import CERTAIN, CRITICAL, LIKELY, NOTICE, POSSIBLE, WARNING, Finding
from kdissect.insight.judge import judge
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import WHOLE, row, said, unjudged

IDS = (
    *("broker-gone", "controller-moved", "broker-restarted", "broker-fenced", "log-dir-offline"),
    *("heartbeat-late", "election-storm", "voter-behind", "broker-clock"),
)
BROKER = "10.0.0.1:9092"


def connection(number: int, first_s: float, last_s: float, **more: Any) -> tuple[type[Tcp], Row]:
    values = {
        "connection": number,
        "broker": BROKER,
        "opening": "answered",
        "exchanges": 9,
        "end": "fin",
        "first_ns": int(first_s * SECOND),
        "last_ns": int(last_s * SECOND),
    }
    return Tcp, row(Tcp, **{**values, **more})


REFUSED = {"opening": "refused", "exchanges": 0, "end": "rst"}


def refused(number: int, at_s: float) -> tuple[type[Tcp], Row]:
    return connection(number, at_s, at_s, **REFUSED)


def at_node(node: int = 1, host: str = "10.0.0.1") -> tuple[type[ClusterBrokers], Row]:
    return ClusterBrokers, row(ClusterBrokers, node_id=node, host=host, port=9092, from_ns=0)


def change(what: str, at_s: float, **more: Any) -> tuple[type[ClusterChanges], Row]:
    values = {
        "ns": int(at_s * SECOND),
        "what": what,
        "subject": "orders-0",
        "exchange": 7,
        "told_by": "Metadata",
    }
    return ClusterChanges, row(ClusterChanges, **{**values, **more})


def node(number: int = 2, **more: Any) -> tuple[type[Quorum], Row]:
    return Quorum, row(Quorum, node=number, role="voter", **more)


def of_capture(name: str) -> list[Finding]:
    return [
        each for each in judged_file(CAPTURES / "incidents" / f"{name}.pcapng.gz").findings if each.id in IDS
    ]


# -- broker-gone ------------------------------------------------------------------------------------------


def test_a_broker_is_gone_whose_connections_end_together_and_that_refuses_all_after() -> None:
    (found,) = said("broker-gone", connection(0, 1, 10), connection(1, 2, 10.4), refused(2, 11), at_node())
    assert (found.severity, found.subject.broker, found.count) == (CRITICAL, "1", 1)
    assert found.where == f"broker 1 ({BROKER})"
    assert "its 2 connections ended within a second" in found.message
    assert found.resolved_ns is None


def test_a_client_that_keeps_its_half_open_does_not_hide_that_its_broker_is_gone() -> None:
    half = connection(1, 2, 14, closed_by="broker", closed_ns=10 * SECOND)
    (found,) = said("broker-gone", connection(0, 1, 10), half, refused(2, 11), at_node())
    assert "its 2 connections ended within a second" in found.message
    served = connection(1, 2, 14, closed_by="client", closed_ns=14 * SECOND)
    assert not said("broker-gone", connection(0, 1, 10), served, refused(2, 11), at_node())


def test_without_the_cluster_the_address_is_named() -> None:
    (found,) = said("broker-gone", connection(0, 1, 10), refused(1, 11))
    assert found.subject.broker == BROKER


def served(last_s: float, idle_s: float = 0, **more: Any) -> tuple[type[Tcp], Row]:
    """A connection on which the broker answered until so long before the end."""
    times = {"closed_ns": int(last_s * SECOND), "idle_ns": int(idle_s * SECOND)}
    return connection(0, 1, last_s, closed_by="broker", **{**times, **more})


HANDED_OVER = change("leader-moved", 8, node_id=1, before="1", after="2")


def test_a_broker_that_hands_over_and_comes_back_was_stopped_in_an_orderly_way() -> None:
    rows = served(10), refused(1, 11), connection(2, 25, 90), at_node()
    handed = change("leader-moved", 8, node_id=1, before="1", after="2")
    (found,) = said("broker-gone", *rows, handed)
    assert found.severity == NOTICE
    assert "orderly" in found.message
    assert (found.first_ns, found.resolved_ns, found.measure) == (8 * SECOND, 25 * SECOND, 15.0)
    (killed,) = said("broker-gone", *rows)
    assert killed.severity == CRITICAL


@pytest.mark.parametrize(
    ("last", "severity"),
    [
        (served(10, 1.9), NOTICE),
        (served(10, 2.1), WARNING),  # it answered nobody after its leaders had moved
        (served(10, last_missing="no response"), WARNING),
        (connection(0, 1, 10), WARNING),
    ],
)
def test_a_machine_that_dies_is_fenced_while_its_clients_hang_on(
    last: tuple[type[Tcp], Row], severity: str
) -> None:
    rows = last, refused(1, 11), connection(2, 25, 90), at_node()
    (found,) = said("broker-gone", *rows, HANDED_OVER)
    assert found.severity == severity
    assert ("orderly" in found.message) == (severity == NOTICE)
    assert ("1 partition had to get another leader" in found.message) == (severity == WARNING)


@pytest.mark.parametrize(("back_s", "severity"), [(310, NOTICE), (311, WARNING)])
def test_a_broker_that_is_away_for_long_is_a_warning(back_s: int, severity: str) -> None:
    rows = served(10), refused(1, 11), connection(2, back_s, back_s + 9), at_node()
    (found,) = said("broker-gone", *rows, HANDED_OVER)
    assert found.severity == severity


@pytest.mark.parametrize(
    ("back_s", "grown_s", "limits", "severity"),
    [
        (25, 325, {}, NOTICE),
        (25, 326, {}, WARNING),
        (311, 312, {}, WARNING),
        (25, 30, {"tries": 5}, WARNING),
        (25, 30, {"orderly_s": 14}, WARNING),
    ],
)
def test_copies_catch_up_soon_after_a_restart(
    back_s: int, grown_s: int, limits: dict[str, float], severity: str
) -> None:
    made = (
        *(served(10), refused(1, 11), connection(2, back_s, 900), at_node(), HANDED_OVER),
        change("isr-shrunk", 9, node_id=1, before="1,2", after="2"),
        change("isr-grown", grown_s, node_id=1, before="2", after="1,2"),
    )
    rows: dict[type[Statistic], list[Row]] = {need: [] for need in RULES["isr-shrunk"].needs}
    for kind, each in made:
        rows[kind].append(each)
    rule = {"isr-shrunk": RULES["isr-shrunk"]}
    (found,) = judge(rule, rows, WHOLE._replace(last_ns=999 * SECOND), {"broker-gone": limits}).findings
    assert found.severity == severity


@pytest.mark.parametrize(
    ("gap_bytes", "grown_s", "rows", "severity"),
    [
        (1, 30, (), NOTICE),
        (0, 30, (), WARNING),
        (1, 609, (), NOTICE),
        (1, 610, (), WARNING),  # no restart takes so long
        (1, 30, (connection(0, 1, 10), connection(2, 25, 900)), NOTICE),
        (1, 30, (connection(0, 1, 900),), WARNING),  # it went on
        (1, 30, (connection(0, 1, 900, last_missing="gap"),), NOTICE),
        (1, 30, (connection(0, 1, 10), refused(1, 11), connection(2, 25, 900)), WARNING),  # it died
    ],
)
def test_a_restart_may_be_among_the_bytes_that_the_capture_lacks(
    gap_bytes: int, grown_s: int, rows: tuple[tuple[type[Tcp], Row], ...], severity: str
) -> None:
    shrunk = change("isr-shrunk", 9, node_id=1, before="1,2", after="2")
    grown = change("isr-grown", grown_s, node_id=1, before="2", after="1,2")
    context = WHOLE._replace(last_ns=999 * SECOND, gap_bytes=gap_bytes)
    (found,) = said("isr-shrunk", *rows, at_node(), shrunk, grown, context=context)
    assert found.severity == severity
    assert ("a restart of the broker perhaps among them" in found.message) == (severity == NOTICE)


@pytest.mark.parametrize(
    "rows",
    [
        (connection(0, 1, 10),),  # nobody tries again
        (refused(0, 1), refused(1, 2)),  # it was never there
        (connection(0, 1, 10), connection(1, 2, 50, end="open"), refused(2, 11)),  # others go on
        (connection(0, 1, 10), refused(1, 60)),  # long after a client had gone by itself
        (connection(0, 1, 99, end="open"), refused(1, 99.5)),
    ],
)
def test_a_broker_that_lives_is_not_gone(rows: tuple[tuple[type[Tcp], Row], ...]) -> None:
    assert said("broker-gone", *rows, at_node()) == []


@pytest.mark.parametrize(("syns", "tries", "found"), [(1, 1, 0), (1, 2, 0), (1, 3, 1), (2, 1, 1)])
def test_one_packet_that_nobody_answered_may_be_lost(syns: int, tries: int, found: int) -> None:
    lone = {"opening": "unanswered", "exchanges": 0, "syns": syns}
    rows = [connection(1 + number, 11 + number, 11 + number, **lone) for number in range(tries)]
    assert len(said("broker-gone", connection(0, 1, 10), *rows, at_node())) == found


def test_a_listener_of_brokers_goes_with_its_broker() -> None:
    inner = {"broker": "10.0.0.1:9093"}
    rows = connection(0, 1, 10), refused(1, 11), connection(2, 1, 10.2, **inner)
    (found,) = said(
        "broker-gone", *rows, connection(3, 11, 11, **inner, opening="refused", exchanges=0), at_node()
    )
    assert "its 2 connections" in found.message


def test_two_listeners_of_one_broker_that_go_together_are_one_loss() -> None:
    inner = {"broker": "10.0.0.1:9093"}
    rows = connection(0, 1, 10), refused(1, 11), connection(2, 1, 10.2, **inner)
    inner_gone = connection(3, 11, 11, **inner, opening="refused", exchanges=0)
    also = ClusterBrokers, row(ClusterBrokers, node_id=1, host="10.0.0.1", port=9093, from_ns=0)
    moved = change("leader-moved", 10.5, node_id=1, before="1", after="2")
    (found,) = said("broker-gone", *rows, inner_gone, at_node(), also, moved)
    assert "its 2 connections" in found.message
    assert "times" not in found.message
    assert len(found.connections) == 4
    assert [step.text for step in found.steps].count("orders-0: leader 1, then 2") == 1


def test_a_listener_that_closes_seconds_later_is_of_the_same_loss() -> None:
    """So controllers do that stop in an orderly way."""
    inner = {"broker": "10.0.0.1:9093"}
    later = connection(3, 0, 12, **inner), connection(4, 13, 13, **inner, opening="refused", exchanges=0)
    also = ClusterBrokers, row(ClusterBrokers, node_id=1, host="10.0.0.1", port=9093, from_ns=0)
    outer = connection(0, 1, 10), refused(2, 11)
    (found,) = said("broker-gone", *outer, *later, at_node(), also)
    assert "its 2 connections ended within 2.0 s" in found.message
    # Where the first was back before the other went, each went alone, and the broker was never gone.
    alone = *outer, connection(5, 11.5, 90), *later, at_node(), also
    assert not said("broker-gone", *alone)
    (found,) = said("listener-gone", *alone)
    assert "That happened 2 times" in found.message


def test_a_broker_that_registers_anew_is_back_though_no_client_needs_it() -> None:
    rows = connection(0, 1, 10), refused(1, 11), at_node()
    (found,) = said("broker-gone", *rows, change("broker-registered", 24, node_id=1))
    assert (found.resolved_ns, found.measure) == (24 * SECOND, 14.0)
    for other in (change("broker-registered", 24, node_id=2), change("broker-registered", 5, node_id=1)):
        (found,) = said("broker-gone", *rows, other)
        assert found.resolved_ns is None


@pytest.mark.parametrize(
    ("change", "is_back"),
    [
        ({}, True),
        ({"client_id": "broker-2-fetcher-0"}, False),  # another broker
        ({"client_id": "billing"}, False),
        ({"first_ns": 10 * SECOND}, False),  # before it was gone
        ({"opening": None}, False),  # it may have begun before the capture
        ({"exchanges": 0}, False),
        ({"broker": "10.0.0.7:9092"}, False),  # an address that nobody tells of
    ],
)
def test_a_broker_that_copies_from_others_is_back_though_no_client_needs_it(
    change: dict[str, Any], is_back: bool
) -> None:
    """So after a rolling restart, in which it leads nothing any more."""
    other = ClusterBrokers, row(ClusterBrokers, node_id=2, host="10.0.0.2", port=9092, from_ns=0)
    known = {"broker": "10.0.0.2:9092", "client": "10.0.0.1:50000", "client_id": "broker-1-fetcher-0"}
    rows = served(10), refused(1, 11), at_node(), other, HANDED_OVER
    (found,) = said("broker-gone", *rows, connection(5, 24, 90, **{**known, **change}))
    assert (found.resolved_ns == 24 * SECOND) == is_back
    assert found.severity == (NOTICE if is_back else CRITICAL)
    assert ("It came back 14.0 s later." in found.message) == is_back


def test_a_broker_of_another_cluster_that_copies_is_not_back() -> None:
    def at(node: int, cluster: str) -> tuple[type[ClusterBrokers], Row]:
        host = f"10.0.0.{node}" if cluster == "east" else f"10.0.1.{node}"
        known = {"node_id": node, "host": host, "port": 9092, "cluster_id": cluster}
        return ClusterBrokers, row(ClusterBrokers, **known, from_ns=0)

    places = [at(node, cluster) for node in (1, 2) for cluster in ("east", "west")]
    for place, is_back in (("10.0.0.2:9092", True), ("10.0.1.2:9092", False)):
        again = connection(5, 24, 90, broker=place, client_id="broker-1-fetcher-0")
        (found,) = said("broker-gone", connection(0, 1, 10), refused(1, 11), *places, again)
        assert (found.resolved_ns is not None) == is_back


@pytest.mark.parametrize(("apart_s", "lives_on"), [(60, False), (61, True)])
def test_listeners_that_end_far_apart_are_no_loss_of_one_broker(apart_s: int, lives_on: bool) -> None:
    inner, ends_s = {"broker": "10.0.0.1:9093"}, 10 + apart_s
    later = connection(3, 0, ends_s, **inner), connection(4, ends_s + 1, ends_s + 1, **inner, **REFUSED)
    also = ClusterBrokers, row(ClusterBrokers, node_id=1, host="10.0.0.1", port=9093, from_ns=0)
    rows = connection(0, 1, 10), refused(2, 11), *later, at_node(), also
    (found,) = said("broker-gone", *rows)
    assert (found.connections == (3, 4)) == lives_on
    assert (f"ended within {apart_s}.0 s" in found.message) == (not lives_on)
    assert [each.first_ns for each in said("listener-gone", *rows)] == [10 * SECOND] * lives_on


OTHER_LISTENER = ClusterBrokers, row(ClusterBrokers, node_id=1, host="10.0.0.1", port=9093, from_ns=0)


def test_a_listener_goes_alone_while_its_broker_answers_at_another() -> None:
    inner = connection(2, 1, 90, broker="10.0.0.1:9093", end="open")
    rows = connection(0, 1, 10), connection(1, 2, 10.4), refused(3, 11), at_node(), OTHER_LISTENER, inner
    assert not said("broker-gone", *rows)
    (found,) = said("listener-gone", *rows)
    assert (found.severity, found.subject.broker, found.resolved_ns) == (CRITICAL, "1", None)
    assert found.where == f"broker 1 ({BROKER})"
    assert f"no longer takes connections at {BROKER}: its 2 connections ended" in found.message
    assert "it went on to answer at 10.0.0.1:9093." in found.message
    (back,) = said("listener-gone", *rows, connection(4, 20, 30))
    assert back.message.endswith("Later it was there again.")
    assert back.resolved_ns == 20 * SECOND


@pytest.mark.parametrize(
    ("inner", "told", "lives_on"),
    [
        ({"last_s": 11.5}, {}, False),  # it answered no more than a second later
        ({"last_s": 11.6}, {}, True),
        ({"first_s": 10.5}, {}, False),  # after a restart
        ({"last_missing": "connection closed"}, {}, False),
        ({"last_s": 70, "closed_by": "broker", "closed_ns": 70 * SECOND, "idle_ns": 0}, {}, False),
        ({"last_s": 71, "closed_by": "broker", "closed_ns": 71 * SECOND, "idle_ns": 0}, {}, True),
        ({"last_s": 71, "closed_by": "client", "closed_ns": 71 * SECOND, "idle_ns": 61 * SECOND}, {}, False),
        ({}, {"node_id": 2}, False),
        ({}, {"cluster_id": "other"}, False),  # whose node has the same number
        # A broker closes the listener of controllers last.
        ({"client_id": "raft-client-2", "last_s": 70}, {}, False),
        ({"client_id": "raft-client-2", "last_s": 71}, {}, True),
        ({"client_id": "broker-2-fetcher-0", "last_s": 70}, {}, True),
        ({}, {"from_ns": 11 * SECOND}, False),
    ],
)
def test_only_what_was_answered_through_the_time_shows_that_a_broker_runs(
    inner: dict[str, Any], told: dict[str, Any], lives_on: bool
) -> None:
    values = {"first_s": 1, "last_s": 90, "broker": "10.0.0.1:9093", "end": "open", **inner}
    other = OTHER_LISTENER[0], {**OTHER_LISTENER[1], **told}
    rows = connection(0, 1, 10.5), refused(3, 11), at_node(), other, connection(2, **values)
    assert bool(said("listener-gone", *rows)) == lives_on
    assert bool(said("broker-gone", *rows)) == (not lives_on)


def test_a_broker_that_goes_twice_is_told_so_and_each_step_once() -> None:
    rows = connection(0, 1, 10), refused(1, 11), connection(2, 12, 20), refused(3, 21)
    moved = change("leader-moved", 10.5, node_id=1, before="1", after="2")
    (found,) = said("broker-gone", *rows, at_node(), moved)
    assert "That happened 2 times" in found.message
    assert [step.text for step in found.steps].count("orders-0: leader 1, then 2") == 1


def test_after_a_pause_nobody_knows_how_long_a_broker_was_away() -> None:
    rows = served(10), refused(1, 11), connection(2, 790, 800), at_node(), HANDED_OVER
    whole = WHOLE._replace(last_ns=900 * SECOND)
    (found,) = said("broker-gone", *rows, context=whole)
    assert (found.severity, found.measure) == (WARNING, 780.0)
    (found,) = said("broker-gone", *rows, context=whole._replace(silences=((20 * SECOND, 780 * SECOND),)))
    assert (found.severity, found.measure) == (NOTICE, 16.0)
    assert "It came back later." in found.message


def test_a_killed_broker_explains_what_follows() -> None:
    found = {
        each.id: each for each in judged_file(CAPTURES / "incidents" / "leader-killed.pcapng.gz").findings
    }
    gone = found["broker-gone"]
    assert (gone.severity, gone.subject.broker) == (CRITICAL, "1")
    assert found["leader-moved"].because == gone.key
    assert found["isr-shrunk"].because == gone.key


def test_an_orderly_stop_is_told_so() -> None:
    path = CAPTURES / "incidents" / "controlled-shutdown.pcapng.gz"
    found = {each.id: each for each in judged_file(path).findings}
    assert found["broker-gone"].severity == found["isr-shrunk"].severity == NOTICE
    assert "orderly" in found["broker-gone"].message
    assert found["isr-shrunk"].because == found["broker-gone"].key


def test_a_broker_may_come_back_at_another_address() -> None:
    """confluent-kafka-python #990: a pod gets a new address, and clients go on with the old one."""
    rows = served(10), refused(1, 11), refused(3, 40), at_node(), HANDED_OVER
    new = {"broker": "10.0.0.9:9092"}
    there = ClusterBrokers, row(ClusterBrokers, node_id=1, host="10.0.0.9", port=9092, from_ns=20 * SECOND)
    (found,) = said("broker-gone", *rows, connection(2, 24, 90, **new), there)
    assert (found.severity, found.measure, found.resolved_ns) == (NOTICE, 14.0, 24 * SECOND)
    assert "It came back 14.0 s later at another address, 10.0.0.9:9092." in found.message
    still = there[0], {**there[1], "host": "10.0.0.1", "from_ns": 12 * SECOND}
    assert (
        "another address" in said("broker-gone", *rows, connection(2, 24, 90, **new), still, there)[0].message
    )
    before = connection(4, 5, 90, **new)
    early = there[0], {**there[1], "from_ns": 0}
    other = there[0], {**there[1], "node_id": 2}
    idle = connection(2, 24, 90, **new, exchanges=0)
    again = there[0], {**there[1], "host": "10.0.0.1", "from_ns": 30 * SECOND}
    port = there[0], {**there[1], "host": "10.0.0.1", "port": 9093}
    listener = connection(2, 24, 90, broker="10.0.0.1:9093")
    cases = (
        (before, there),
        (connection(2, 24, 90, **new), early),
        (idle, there),
        (before, other),
        (connection(2, 24, 90, **new), there, again),
        (listener, port),
    )
    for more in cases:
        (found,) = said("broker-gone", *rows, *more)
        assert (found.severity, found.resolved_ns) == (CRITICAL, None)


@pytest.mark.parametrize(
    ("at_s", "to", "by", "is_effect"),
    [
        (24.5, "1", None, True),
        (355, "1", "ops@10.0.0.5", True),
        (355.5, "1", None, False),
        (9.5, "1", None, False),
        (26, "3", None, False),
    ],
)
def test_leaders_come_back_to_a_broker_that_is_back(
    at_s: float, to: str, by: str | None, is_effect: bool
) -> None:
    rows = served(10), refused(1, 11), connection(2, 25, 90), at_node(), HANDED_OVER
    again = change("leader-moved", at_s, node_id=2, before="2", after=to, by=by)
    facts = _by_statistic(*rows, again)
    both = {id: RULES[id] for id in ("broker-gone", "leader-moved")}
    context = WHOLE._replace(last_ns=400 * SECOND)
    found = {each.where: each for each in judge(both, facts, context).findings if each.id == "leader-moved"}
    assert (found["broker 2"].because is not None) == is_effect


@pytest.mark.parametrize(
    ("from_s", "replicas", "is_effect"),
    [
        (8, ("1,2", "1,3"), True),
        (1, ("1,2", "1,3"), False),
        (8, ("3,2", "3,1"), False),  # those of another broker
        (8, ("3,2", "1,2"), True),  # some may be those of the broker that was gone
        (8, (None, None), True),
    ],
)
def test_until_its_leaders_come_back_others_lead_because_it_was_gone(
    from_s: int, replicas: tuple[str | None, str | None], is_effect: bool
) -> None:
    rows = served(10), refused(1, 11), connection(2, 25, 90), at_node(), HANDED_OVER
    led = {"topic": "orders", "leader": 2, "preferred": False, "from_ns": from_s * SECOND}
    elsewhere = [
        (
            ClusterPartitions,
            row(ClusterPartitions, **led, partition=each, source_exchange=each, replicas=replicas[each]),
        )
        for each in (0, 1)
    ]
    both = {id: RULES[id] for id in ("broker-gone", "leader-not-preferred")}
    found = {each.id: each for each in judge(both, _by_statistic(*rows, *elsewhere), WHOLE).findings}
    assert (found["leader-not-preferred"].because is not None) == is_effect


def _by_statistic(*given: tuple[type[Statistic], Row]) -> dict[type[Statistic], list[Row]]:
    return {of: [row for each, row in given if each is of] for of, _ in given}


def test_a_restart_of_which_packets_are_cut_may_have_been_orderly() -> None:
    rows = connection(0, 1, 10), refused(1, 11), connection(2, 25, 90)
    cut = WHOLE._replace(cut_packets=9, cut=Some(1, (0,)))
    (whole,) = said("broker-gone", *rows)
    (found,) = said("broker-gone", *rows, context=cut)
    assert (whole.severity, found.severity) == (CRITICAL, NOTICE)
    assert unjudged("broker-gone", *rows, context=cut)
    assert said("broker-gone", *rows[:2], context=cut)[0].severity == CRITICAL
    other = cut._replace(cut=Some(1, (7,)))  # packets of somebody else
    assert said("broker-gone", *rows, context=other)[0].severity == CRITICAL
    one_sided = WHOLE._replace(with_one_side=Some(1, (0,)))
    assert said("broker-gone", *rows, context=one_sided)[0].severity == NOTICE
    many = cut._replace(cut=Some(9, (7,)))  # which they are is not known of all
    assert said("broker-gone", *rows, context=many)[0].severity == NOTICE
    late = connection(2, 311, 320)
    assert (
        said("broker-gone", *rows[:2], late, context=cut._replace(last_ns=400 * SECOND))[0].severity
        == CRITICAL
    )
    for table, severity in (("cluster_changes", NOTICE), ("cluster_brokers", NOTICE), ("topics", CRITICAL)):
        full = WHOLE._replace(incomplete=frozenset({table}))
        assert said("broker-gone", *rows, context=full)[0].severity == severity


def lacks(number: int) -> tuple[type[Connections], Row]:
    """A connection that lacks bytes."""
    return Connections, row(Connections, connection=number, gap_bytes=9)


@pytest.mark.parametrize(
    ("lacking", "complete_s", "last_api", "idle_s", "severity"),
    [
        (0, None, "Fetch", 0, NOTICE),  # nobody knows when
        (0, 10, "Fetch", 0, CRITICAL),  # the other connection shows that it led to the end
        (0, 10, "Metadata", 0, NOTICE),
        (0, 10, "Fetch", 2, NOTICE),
        (1, 10, "Fetch", 0, NOTICE),
        (0, -1, "Metadata", 0, CRITICAL),  # it had not begun to stop
        (7, 10, "Metadata", 0, CRITICAL),  # bytes of somebody else
    ],
)
def test_a_restart_may_have_been_orderly_only_if_missing_bytes_may_show_that(
    lacking: int, complete_s: int | None, last_api: str, idle_s: int, severity: str
) -> None:
    lacking_all = [lacks(0), lacks(1)] if complete_s is None else [lacks(lacking)]
    since = {} if complete_s is None else {lacking: complete_s * SECOND}
    idle = {"closed_ns": 10 * SECOND, "idle_ns": idle_s * SECOND, "last_api": last_api}
    links = connection(0, 1, 10), connection(1, 1, 10, **idle), refused(2, 11), connection(3, 25, 90)
    context = WHOLE._replace(complete_since=since)
    assert said("broker-gone", *links, *lacking_all, context=context)[0].severity == severity


def test_a_broker_that_no_longer_led_may_have_said_so_more_often() -> None:
    idle = {"closed_ns": 10 * SECOND, "idle_ns": 0, "last_api": "Fetch"}
    links = connection(0, 1, 10), connection(1, 1, 10, **idle), refused(2, 11), connection(3, 25, 90)
    context = WHOLE._replace(complete_since={0: 10 * SECOND})
    assert said("broker-gone", *links, lacks(0), context=context)[0].severity == CRITICAL
    assert said("broker-gone", *links, lacks(0), no_longer(9), context=context)[0].severity == NOTICE


def test_that_a_broker_is_back_may_be_among_what_had_no_room() -> None:
    rows = connection(0, 1, 10), refused(1, 11)
    for table, severity in (("tcp", WARNING), ("cluster_brokers", WARNING), ("topics", CRITICAL)):
        full = WHOLE._replace(incomplete=frozenset({table}))
        assert said("broker-gone", *rows, context=full)[0].severity == severity
        assert bool(unjudged("broker-gone", *rows, context=full)) == (severity == WARNING)


def no_longer(at_s: float, **more: Any) -> tuple[type[Errors], Row]:
    """The broker answers that it does not lead."""
    ns = int(at_s * SECOND)
    made = {"error": "NOT_LEADER_OR_FOLLOWER", "broker": BROKER, "topic": "orders", "partition": 0}
    return Errors, row(Errors, **{**made, "first_ns": ns, "last_ns": ns, **more})


@pytest.mark.parametrize(
    ("refusal", "last", "severity"),
    [
        ({}, {}, WARNING),
        ({"error": "FENCED_LEADER_EPOCH"}, {}, WARNING),
        ({"error": "UNKNOWN_TOPIC_OR_PARTITION"}, {}, CRITICAL),
        ({}, {"last_exchange": 31}, CRITICAL),  # it served records after that
        ({}, {"last_api": "Metadata"}, CRITICAL),
        ({"last_ns": -SECOND}, {}, CRITICAL),  # long before
        ({"broker": "10.0.0.2:9092"}, {}, CRITICAL),
    ],
)
def test_a_broker_whose_last_answers_were_refusals_was_probably_restarted(
    refusal: dict[str, Any], last: dict[str, Any], severity: str
) -> None:
    """Who sees one broker only sees no leader move."""
    fetched = {"last_api": "Fetch", "last_exchange": 30, **last}
    rows = connection(0, 1, 10, **fetched), connection(1, 1, 10, last_api="ApiVersions", last_exchange=3)
    told = no_longer(8, **{"last_exchange": 30, **refusal})
    (found,) = said("broker-gone", *rows, refused(2, 11), connection(3, 25, 90), told)
    assert (found.severity, found.confidence) == (severity, LIKELY if severity == WARNING else CERTAIN)
    assert ("as a broker does that somebody stops" in found.message) == (severity == WARNING)
    (gone,) = said("broker-gone", *rows, refused(2, 11), told)
    assert gone.severity == CRITICAL


GROUP = {"error": "NOT_COORDINATOR", "group": "g", "topic": None, "partition": None}


@pytest.mark.parametrize(
    ("answers", "is_orderly"),
    [
        ((no_longer(1), no_longer(9, **GROUP)), True),
        ((no_longer(1), no_longer(9, partition=1)), True),
        ((no_longer(0.9), no_longer(9, partition=1)), False),  # one of them is too long ago
        ((no_longer(8), no_longer(9)), False),  # the same partition
        ((no_longer(8), no_longer(9, partition=1, broker="10.0.0.2:9092")), False),
        ((no_longer(8), no_longer(9, partition=1, error="FENCED_LEADER_EPOCH")), False),
        ((no_longer(8), no_longer(11.1, partition=1)), False),
    ],
)
def test_a_broker_that_answers_that_it_leads_no_more_was_stopped_in_an_orderly_way(
    answers: tuple[tuple[type[Errors], Row], ...], is_orderly: bool
) -> None:
    """Where no leaders are known, as in a capture that begins later than its connections."""
    rows = connection(0, 1, 11, opening=None), refused(1, 11.5)
    (found,) = said("broker-gone", *rows, connection(2, 25, 90), *answers)
    assert ("orderly" in found.message) == is_orderly
    assert (found.severity, found.first_ns) == (
        (NOTICE, answers[0][1]["first_ns"]) if is_orderly else (CRITICAL, 11 * SECOND)
    )
    assert said("broker-gone", *rows, *answers)[0].severity == CRITICAL  # it does not come back


@pytest.mark.parametrize(("came_s", "is_orderly"), [(70, True), (70.1, False)])
def test_a_broker_that_comes_and_dies_refuses_what_clients_believe_it_leads(
    came_s: float, is_orderly: bool
) -> None:
    rows = connection(0, came_s, 105), refused(1, 105.5), connection(2, 115, 190)
    (found,) = said("broker-gone", *rows, no_longer(100), no_longer(101, partition=1))
    assert ("orderly" in found.message) == is_orderly


def test_a_broker_whose_leaders_move_only_after_it_is_gone_was_not_stopped() -> None:
    moved = change("leader-moved", 12, node_id=1, before="1", after="2")
    rows = connection(0, 1, 11), refused(1, 11.5), at_node(), moved
    (found,) = said("broker-gone", *rows, no_longer(8), no_longer(9, partition=1))
    assert "orderly" not in found.message


def test_a_leader_that_moved_before_for_another_reason_makes_no_orderly_stop() -> None:
    rows = connection(0, 1, 30), refused(1, 31), at_node()
    one = change("leader-moved", 5, node_id=1, before="1", after="2")
    others = [change("leader-moved", 40, node_id=1, before="1", after="2") for _ in range(2)]
    (found,) = said("broker-gone", *rows, one, *others)
    assert "orderly" not in found.message
    assert "2 partitions had to get another leader" in found.message
    assert (found.severity, found.first_ns) == (CRITICAL, 30 * SECOND)


def test_a_broker_that_does_not_come_back_is_told_as_gone() -> None:
    rows = connection(0, 1, 10), refused(1, 11)
    stopping = change("broker-stopping", 9, node_id=1)
    (found,) = said("broker-gone", *rows, at_node(), stopping)
    assert (found.severity, "It had said before that it would stop." in found.message) == (CRITICAL, True)
    (found,) = said("broker-gone", *rows, connection(2, 12, 20), at_node(), stopping)
    assert found.severity == NOTICE


def test_idle_brokers_are_well() -> None:
    assert of_capture("healthy-cluster-idle") == []


# -- controllers and heartbeats ------------------------------------------------------------------------------


def test_a_new_controller_is_told() -> None:
    (found,) = said("controller-moved", change("controller-moved", 3, before="1", after="2"))
    assert found.subject.broker == "2"
    assert "node 2 became" in found.message.lower()


def test_a_controller_that_went_explains_the_next_one() -> None:
    def gone(node: int, at_s: float) -> tuple[tuple[type[Any], Row], ...]:
        place = {"broker": f"10.0.0.{node}:9092"}
        tried = connection(10 + node, at_s + 1, at_s + 1, **place, **REFUSED)
        return connection(node, 1, at_s, **place), tried, at_node(node, f"10.0.0.{node}")

    moved = change("controller-moved", 23, before="2", after="1")
    found = judged_rows(("broker-gone", "controller-moved"), *gone(1, 10), *gone(2, 20), moved)
    assert found["controller-moved"].because == "broker-gone broker=2"
    found = judged_rows(("broker-gone", "controller-moved"), *gone(1, 10), moved)
    assert found["controller-moved"].because == "broker-gone broker=1", "which one it was is not known"


def judged_rows(ids: tuple[str, ...], *given: tuple[type[Any], Row]) -> dict[str, Finding]:
    """What several rules say together, by rule."""
    facts = {need: [row for of, row in given if of is need] for id in ids for need in RULES[id].needs}
    return {each.id: each for each in judge({id: RULES[id] for id in ids}, facts, WHOLE, {}).findings}


def test_a_restart_that_waited_for_the_session_says_for_how_long() -> None:
    refusal = change("broker-refused", 3, node_id=2, after="DUPLICATE_BROKER_REGISTRATION")
    (found,) = said("broker-restarted", refusal, change("broker-registered", 5, node_id=2))
    assert (found.measure, found.cost_ns) == (2.0, 2 * SECOND)
    (plain,) = said("broker-restarted", change("broker-registered", 5, node_id=2))
    assert plain.measure is None


def test_only_a_broker_that_lives_is_fenced_wrongly() -> None:
    late = node(2, heartbeat_max_ns=10 * SECOND)
    (found,) = said("broker-fenced", change("broker-fenced", 5, node_id=2, after="alive"), late)
    assert "10.0 s after the one before" in found.message
    assert said("broker-fenced", change("broker-fenced", 5, node_id=2), late) == []
    assert said("broker-fenced", change("broker-fenced", 5, node_id=2, after="as it asked"), late) == []


def test_a_failed_disk_is_told_once_a_broker() -> None:
    rows = [change("log-dirs-offline", at, node_id=2, after="1") for at in (1, 3, 5)]
    (found,) = said("log-dir-offline", *rows)
    assert (found.subject.broker, found.count) == ("2", 3)


def disk_error(**more: Any) -> tuple[type[Errors], Row]:
    values = {"error": "KAFKA_STORAGE_ERROR", "broker": BROKER, "topic": "orders", "partition": 0, "count": 2}
    return Errors, row(Errors, **{**values, "first_ns": SECOND, "last_ns": 2 * SECOND, **more})


def test_a_broker_that_answers_of_its_disk_has_one_that_failed() -> None:
    (found,) = said("log-dir-offline", disk_error(), at_node())
    assert (found.severity, found.subject.broker, found.count) == (CRITICAL, "1", 2)
    assert found.message == (
        f"Broker 1 ({BROKER}) answered 2 times that a disk of it failed (KAFKA_STORAGE_ERROR), for orders-0: "
        "it cannot read or write there."
    )
    (found,) = said("log-dir-offline", disk_error())
    assert found.subject.broker == BROKER
    (found,) = said("log-dir-offline", disk_error(partition=None))
    assert "(KAFKA_STORAGE_ERROR), for orders: it cannot" in found.message
    assert not said("log-dir-offline", disk_error(error="NOT_LEADER_OR_FOLLOWER"), at_node())
    told = change("log-dirs-offline", 3, node_id=1, after="1")
    (found,) = said("log-dir-offline", disk_error(), told, at_node())
    assert "says that 1 log directory" in found.message
    told = change("log-dirs-offline", 3, node_id=1, after="1", cluster_id="other")
    assert len(said("log-dir-offline", disk_error(), told, at_node())) == 1
    assert said("log-dir-offline", disk_error(), told, at_node())[0].count == 3, "of node 1 of both clusters"


def test_a_heartbeat_is_late_from_four_and_a_half_seconds_on() -> None:
    late = {"heartbeat_max_ns": 4_500 * MILLISECOND, "heartbeat_late": 1, "heartbeat_gap_ns": 9 * SECOND}
    (found,) = said("heartbeat-late", node(2, **late))
    assert found.measure == 4.5
    assert (found.first_ns, found.last_ns) == (9 * SECOND, 13_500 * MILLISECOND)
    assert said("heartbeat-late", node(2, heartbeat_max_ns=4_499 * MILLISECOND)) == []
    lossy = WHOLE._replace(gap_bytes=10)
    assert said("heartbeat-late", node(2, heartbeat_max_ns=9 * SECOND), context=lossy) == []


TWO = (
    (ClusterBrokers, row(ClusterBrokers, cluster_id="a", node_id=2, host="10.0.0.2", port=9092, from_ns=0)),
    (ClusterBrokers, row(ClusterBrokers, cluster_id="b", node_id=2, host="10.9.0.2", port=9092, from_ns=0)),
)
"""Two clusters that both have a node 2."""


def test_heartbeats_and_votes_of_nodes_of_two_clusters_are_not_judged() -> None:
    late = node(2, heartbeat_max_ns=9 * SECOND, heartbeat_late=1, heartbeat_gap_ns=9 * SECOND)
    for id, given in (
        ("heartbeat-late", late),
        ("election-storm", node(2, elections_60s=4, elections=4)),
        ("voter-behind", node(2, behind_max_offsets=1000, behind_max_ns=2 * SECOND)),
    ):
        assert said(id, given, TWO[0])
        assert said(id, given, *TWO) == []
        assert unjudged(id, given, *TWO)


@pytest.mark.parametrize("id", ["log-dir-offline", "broker-restarted", "broker-fenced"])
def test_brokers_of_two_clusters_with_one_number_are_two_subjects(id: str) -> None:
    what = {"log-dir-offline": "log-dirs-offline", "broker-restarted": "broker-registered"}.get(id, id)
    after = {"log-dir-offline": "1", "broker-fenced": "alive"}.get(id)
    rows = [change(what, 5, node_id=2, after=after, cluster_id=cluster) for cluster in ("a", "b")]
    assert [each.subject.broker for each in said(id, *rows, *TWO)] == ["10.0.0.2:9092", "10.9.0.2:9092"]
    assert [each.subject.broker for each in said(id, rows[0], TWO[0])] == ["2"]


def test_a_broker_that_is_gone_has_the_name_that_other_findings_give_it() -> None:
    rows = connection(0, 1, 10, broker="10.9.0.2:9092"), refused(1, 11)
    other = connection(2, 1, 90, broker="10.0.0.2:9092")
    at = connection(1, 11, 11, broker="10.9.0.2:9092", **REFUSED)
    (found,) = said("broker-gone", rows[0], at, other, *TWO)
    assert found.subject.broker == "10.9.0.2:9092"


def test_an_interrupted_network_explains_late_heartbeats_of_the_same_broker() -> None:
    late = node(2, heartbeat_max_ns=14 * SECOND, heartbeat_late=1, heartbeat_gap_ns=9 * SECOND)
    cut = {"outage_from_ns": 10 * SECOND, "outage_ns": 12 * SECOND, "opening": None, "client": "10.0.0.2:5"}
    other = connection(5, 1, 90, client_id="app", client="10.0.0.8:7")

    def cause(client_id: str) -> str | None:
        of = connection(4, 1, 90, client_id=client_id, **cut)
        both = {id: RULES[id] for id in ("network-outage", "heartbeat-late")}
        rows = _by_statistic(late, of, other)
        rows |= {ClusterBrokers: [], Stalls: []}
        found = {each.id: each for each in judge(both, rows, WHOLE).findings}
        return found["heartbeat-late"].because

    assert cause("2") == "network-outage client_id=2"
    assert cause("raft-client-2") == "network-outage client_id=raft-client-2"
    assert cause("raft-client-3") is None


# -- a broker that nobody misses ----------------------------------------------------------------------------

CLOSED = {"closed_by": "broker", "closed_ns": 10 * SECOND, "idle_ns": 0}


def stops(*what: str, at_s: float = 9) -> list[tuple[type[ClusterChanges], Row]]:
    return [change(each, at_s, node_id=1) for each in what]


def test_a_broker_that_closes_all_and_is_no_longer_told_of_is_gone_though_nobody_tries_to_reach_it() -> None:
    lived = connection(0, 1, 10, **CLOSED), connection(1, 2, 10, **CLOSED), at_node()
    (found,) = said("broker-gone", *lived, *stops("broker-gone", at_s=11))
    assert (found.subject.broker, found.severity, found.count) == ("1", CRITICAL, 1)
    assert "the cluster said that it stops or is not there any more" in found.message
    (orderly,) = said("broker-gone", *lived, *stops("broker-stopping"))
    assert orderly.severity == WARNING
    back = change("broker-registered", 20, node_id=1)
    (restart,) = said("broker-gone", *lived, *stops("broker-stopping"), back)
    assert (restart.severity, restart.resolved_ns) == (NOTICE, 20 * SECOND)


def test_a_broker_that_nobody_misses_is_not_gone_without_a_word_of_the_cluster_or_if_it_goes_on() -> None:
    lived = connection(0, 1, 10, **CLOSED), at_node()
    told = stops("broker-gone", at_s=11)
    assert said("broker-gone", *lived, *told)
    assert said("broker-gone", *lived) == []
    assert said("broker-gone", *lived, *stops("broker-gone", at_s=90)) == []
    assert said("broker-gone", *lived, *told, connection(1, 1, 90)) == []  # another goes on
    assert said("broker-gone", connection(0, 1, 10), at_node(), *told) == []  # the client closed it
    assert said("broker-gone", *lived, *stops("leader-moved")) == []
    assert said("broker-gone", *lived, change("broker-gone", 11, node_id=2)) == []
    idle = connection(0, 1, 40, **{**CLOSED, "closed_ns": 40 * SECOND}), at_node()
    assert said("broker-gone", *idle, *stops("broker-stopping"))
    assert said("broker-gone", *idle, *stops("broker-gone", at_s=11)) == []  # it was told too early
    back = change("broker-appeared", 20, node_id=1)
    assert said("broker-gone", *idle, *stops("broker-stopping"), back) == []  # and back before


def test_a_connection_that_closed_before_it_began_shows_no_end_of_its_broker() -> None:
    """The clock was set back during the connection."""
    lived = connection(0, 15, 20, **CLOSED), at_node()
    assert said("broker-gone", *lived, *stops("broker-gone", at_s=11)) == []


def test_a_listener_that_nobody_tries_to_reach_is_not_gone() -> None:
    port = row(ClusterBrokers, cluster_id=None, node_id=1, host="10.0.0.1", port=9093, from_ns=0)
    lived = connection(0, 1, 10, **CLOSED), connection(1, 1, 90, broker="10.0.0.1:9093")
    assert (
        said("listener-gone", *lived, at_node(), (ClusterBrokers, port), *stops("broker-gone", at_s=11)) == []
    )


def test_a_broker_that_is_fenced_is_so_until_it_is_not() -> None:
    rows = change("broker-fenced", 5, node_id=2, after="alive"), change("broker-unfenced", 9, node_id=2)
    (found,) = said("broker-fenced", *rows)
    assert (found.last_ns, found.resolved_ns) == (9 * SECOND, 9 * SECOND)
    (still,) = said("broker-fenced", rows[0], change("broker-unfenced", 9, node_id=3))
    assert still.last_ns == 5 * SECOND
    assert "heartbeats came" not in found.message


def test_four_elections_in_a_minute_are_a_storm() -> None:
    (found,) = said(
        "election-storm", node(1, elections_60s=4, elections=3), node(2, elections_60s=4, elections=1)
    )
    assert "node 1 asked in 3 elections, node 2 asked in 1 election" in found.message
    assert said("election-storm", node(1, elections_60s=3, elections=3)) == []


def test_a_quorum_without_a_leader_is_told() -> None:
    rows = node(1, leaderless_ns=5 * SECOND, leaderless_from_ns=9 * SECOND, epoch=1)
    (found,) = said("election-storm", rows)
    assert (found.severity, found.first_ns, found.last_ns) == (CRITICAL, 9 * SECOND, 14 * SECOND)
    assert "had no leader for 5.0 s" in found.message
    assert "nobody took connections" not in found.message
    assert said("election-storm", node(1, leaderless_ns=5 * SECOND - 1)) == []
    lossy = WHOLE._replace(gap_bytes=10)
    assert said("election-storm", rows, context=lossy) == []
    assert unjudged("election-storm", rows, context=lossy)
    assert not unjudged("election-storm", node(1, leaderless_ns=5 * SECOND - 1), context=lossy)
    assert not unjudged("election-storm", context=lossy), "a capture without controllers"
    assert said("election-storm", node(1, elections_60s=4, elections=4), context=lossy)


ASKED = "10.0.0.3:9093"
LED = "10.0.0.1:9093"
RAFT = connection(0, 1, 90, client="10.0.0.3:7", client_id="raft-client-3", broker=ASKED)


def shut(number: int, at_s: float, broker: str = LED, **more: Any) -> tuple[type[Tcp], Row]:
    return connection(number, at_s, at_s, **{"client": "10.0.0.3:8", "broker": broker, **REFUSED, **more})


def alone(**more: Any) -> tuple[type[Quorum], Row]:
    return node(1, **{"leaderless_ns": 10 * SECOND, "leaderless_from_ns": 9 * SECOND, "epoch": 1, **more})


def test_controllers_that_nobody_reaches_are_named_if_there_is_no_leader() -> None:
    def addresses(*rows: tuple[type[Tcp], Row]) -> str:
        (found,) = said("election-storm", alone(), RAFT, *rows)
        return found.message.partition("change: no topic and no partition leader.")[2].strip()

    tries = [shut(at, 10 + at) for at in (1, 2, 3)]
    assert addresses(*tries) == f"In that time nobody took connections at {LED}."
    assert addresses(*tries[:2]) == ""
    back = connection(9, 14, 90, client="10.0.0.3:9", broker=LED)
    assert addresses(*tries, back).startswith("For most of that time nobody")
    back[1]["first_ns"] -= SECOND
    assert addresses(*tries, back) == "", "half of the time it did"
    assert addresses(*(shut(at, 10 + at, client="10.0.0.9:8") for at in (1, 2, 3))) == "", "no node tried"


def leads(host: str = "10.0.0.1") -> tuple[type[ClusterBrokers], Row]:
    told = {"node_id": 1, "host": host, "port": 9093, "from_ns": 0, "controller": True}
    return ClusterBrokers, row(ClusterBrokers, **told)


@pytest.mark.parametrize("quorum", [alone(leaderless_from_ns=2 * SECOND), alone(epoch=None)])
def test_a_leader_that_the_capture_never_shows_must_refuse_connections(
    quorum: tuple[type[Quorum], Row],
) -> None:
    tries = [shut(at, 10 + at) for at in (0, 1, 2)]
    assert said("election-storm", quorum, RAFT, leads(), *tries)
    for rows in (
        (RAFT, leads()),
        (RAFT, *tries),
        (RAFT, leads("10.0.0.5"), *tries),
        (RAFT, leads(), *(shut(at, 10 + at, opening="unanswered") for at in (0, 1, 2))),
    ):
        assert not said("election-storm", quorum, *rows)
        assert unjudged("election-storm", quorum, *rows)


TO_LEADER = {"broker": LED, "client_id": "raft-client-3", "client": "10.0.0.3:5"}


@pytest.mark.parametrize(
    ("ended_s", "client_id", "is_cause"),
    [(9.5, "raft-client-3", True), (10.1, "raft-client-3", False), (9.5, "app", False)],
)
def test_the_loss_of_the_leading_controller_explains_that_there_is_none(
    ended_s: float, client_id: str, is_cause: bool
) -> None:
    ended = connection(5, 1, ended_s, **{**TO_LEADER, "client_id": client_id})
    tries = (shut(at, 10 + at) for at in (1, 2, 3))
    found = judged_rows(("broker-gone", "election-storm"), alone(), RAFT, ended, *tries)
    assert found["election-storm"].because == (found["broker-gone"].key if is_cause else None)


def test_a_controller_that_is_gone_is_told_from_a_broker() -> None:
    rows = connection(5, 1, 10, **TO_LEADER), shut(6, 11), leads()
    (found,) = said("broker-gone", *rows)
    assert found.message.startswith("Controller 1 is gone: its only connection ended")
    assert "half of the controllers" in found.fix
    (found,) = said("broker-gone", *rows[:2])
    assert found.message.startswith(f"The controller at {LED} is gone")
    (found,) = said("broker-gone", *rows, connection(7, 1, 10, broker=LED, client_id="app"))
    assert found.message.startswith("Broker 1 is gone")
    (found,) = said(
        "broker-gone", connection(5, 1, 10, **{**TO_LEADER, "client_id": "2"}), shut(6, 11), leads()
    )
    assert found.message.startswith("Broker 1 is gone"), "the controller may be a broker, with ZooKeeper"
    assert "advertised.listeners" in found.fix


@pytest.mark.parametrize(("gap_s", "is_cause"), [(20, True), (21, False)])
def test_late_heartbeats_follow_from_a_quorum_without_a_leader(gap_s: int, is_cause: bool) -> None:
    late = {"heartbeat_max_ns": gap_s * SECOND, "heartbeat_gap_ns": 8 * SECOND, "heartbeat_late": 1}
    found = judged_rows(("election-storm", "heartbeat-late"), alone(**late))
    assert found["heartbeat-late"].because == (found["election-storm"].key if is_cause else None)


def test_a_voter_is_behind_by_records_or_by_time() -> None:
    assert said("voter-behind", node(2, behind_max_offsets=1000, behind_max_ns=2 * SECOND))
    assert said("voter-behind", node(2, behind_max_offsets=999, behind_max_ns=2 * SECOND)) == []
    assert said("voter-behind", node(2, behind_max_offsets=50, behind_max_ns=5 * SECOND))
    assert said("voter-behind", node(2, behind_max_offsets=999, behind_max_ns=5 * SECOND - 1)) == []
    assert said("voter-behind", (Quorum, row(Quorum, node=2, role="broker"))) == []
    observer = row(Quorum, node=2, role="observer", behind_max_offsets=1000, behind_max_ns=5 * SECOND)
    assert said("voter-behind", (Quorum, observer)) == []


def test_a_voter_that_lacks_much_for_a_moment_is_not_behind() -> None:
    assert said("voter-behind", node(2, behind_max_offsets=5000, behind_max_ns=2 * SECOND - 1)) == []
    assert said("voter-behind", node(2, behind_max_offsets=5000, behind_max_ns=0, lag_offsets=5000)) == []


def test_a_node_that_may_be_no_more_than_a_broker_is_no_voter() -> None:
    values = {"node": 2, "role": "follower", "behind_max_offsets": 1000, "behind_max_ns": 2 * SECOND}
    assert said("voter-behind", (Quorum, row(Quorum, **values, heartbeats=0)))
    assert said("voter-behind", (Quorum, row(Quorum, **values, heartbeats=9))) == []


@pytest.mark.parametrize(("to_s", "is_cause"), [(17.2, True), (17.1, False)])
def test_a_stall_of_nearly_the_whole_time_explains_late_heartbeats(to_s: float, is_cause: bool) -> None:
    late = node(2, heartbeat_max_ns=9 * SECOND, heartbeat_late=1, heartbeat_gap_ns=9 * SECOND)
    both = {id: RULES[id] for id in ("broker-stalled", "heartbeat-late")}
    stood: dict[str, Any] = {"from_ns": 10 * SECOND, "to_ns": round(to_s * SECOND), "stalled_ns": 6 * SECOND}
    stood |= {"waiting": 2, "alone": 1, "connections": [1, 2], "exchanges": [7], "clients": ["x"]}
    rows = _by_statistic(late, (Stalls, row(Stalls, broker="10.0.0.7:9092", **stood)))
    rows = {need: rows.get(need, []) for rule in both.values() for need in rule.needs}
    (found,) = [each for each in judge(both, rows, WHOLE).findings if each.id == "heartbeat-late"]
    assert (found.because == "broker-stalled broker=10.0.0.7:9092") == is_cause


@pytest.mark.parametrize(
    ("host", "to_s", "told"), [("10.0.0.2", 13.5, True), ("10.0.0.2", 13.4, False), ("10.0.0.1", 18, False)]
)
def test_a_node_that_stands_still_falls_behind(host: str, to_s: float, told: bool) -> None:
    behind = node(2, behind_max_offsets=50, behind_max_ns=9 * SECOND, behind_from_ns=9 * SECOND)
    nodes = of_cluster("k", 1, "10.0.0.1"), of_cluster("k", 2, "10.0.0.2")
    stood = stall(f"{host}:9092", 9, to_s)
    found = judged_rows(("broker-stalled", "voter-behind"), behind, *nodes, stood)["voter-behind"]
    assert (found.because is not None) == told


def cause_of_late(*given: tuple[type[Any], Row]) -> str | None:
    """What explains that no heartbeat of node 2 came from second 9 to second 18."""
    late = node(2, heartbeat_max_ns=9 * SECOND, heartbeat_late=1, heartbeat_gap_ns=9 * SECOND)
    return judged_rows(("broker-stalled", "heartbeat-late"), late, *given)["heartbeat-late"].because


def stall(broker: str, from_s: float = 9, to_s: float = 18) -> tuple[type[Stalls], Row]:
    stood: dict[str, Any] = {"from_ns": round(from_s * SECOND), "to_ns": round(to_s * SECOND)}
    stood |= {"stalled_ns": stood["to_ns"] - stood["from_ns"], "clients": ["x"], "exchanges": [7]}
    stood |= {"waiting": 2, "alone": 1, "connections": [1, 2]}
    return Stalls, row(Stalls, broker=broker, **stood)


def of_cluster(cluster: str, number: int, host: str) -> tuple[type[ClusterBrokers], Row]:
    told = {"cluster_id": cluster, "node_id": number, "host": host, "port": 9092, "from_ns": 0}
    return ClusterBrokers, row(ClusterBrokers, **told)


def test_a_broker_of_another_cluster_does_not_explain_late_heartbeats() -> None:
    brokers = of_cluster("a", 2, "10.0.0.2"), of_cluster("a", 1, "10.0.0.1"), of_cluster("b", 5, "10.9.0.5")
    assert cause_of_late(*brokers, stall("10.0.0.1:9092")) == "broker-stalled broker=10.0.0.1:9092"
    assert cause_of_late(*brokers, stall("10.9.0.5:9092")) is None
    assert cause_of_late(*brokers, stall("10.0.0.7:9092")) is None, "nobody tells of which cluster it is"
    assert cause_of_late(*brokers[:2], stall("10.0.0.7:9092")) == "broker-stalled broker=10.0.0.7:9092"


def test_of_several_brokers_the_one_that_stood_still_longest_explains_late_heartbeats() -> None:
    one, other = stall("10.0.0.1:9092", 10, 18), stall("10.0.0.7:9092")
    assert cause_of_late(one, other) == cause_of_late(other, one) == "broker-stalled broker=10.0.0.7:9092"


def test_a_voter_that_caught_up_again_was_behind() -> None:
    was = {"behind_max_offsets": 50, "behind_max_ns": 6 * SECOND, "behind_from_ns": 10 * SECOND}
    (found,) = said("voter-behind", node(2, **was, lag_offsets=0))
    assert (found.first_ns, found.last_ns, found.resolved_ns) == (10 * SECOND, 16 * SECOND, 16 * SECOND)
    (found,) = said("voter-behind", node(2, **was, lag_offsets=50))
    assert found.resolved_ns is None


@pytest.mark.parametrize(("closed_s", "is_told"), [(7.9, True), (8, False), (12, False), (12.1, True)])
def test_a_voter_that_was_stopped_is_not_behind(closed_s: float, is_told: bool) -> None:
    was = {"behind_max_offsets": 50, "behind_max_ns": 6 * SECOND, "behind_from_ns": 10 * SECOND}
    link = connection(0, 1, closed_s, client_id="raft-client-2", closed_ns=round(closed_s * SECOND))
    assert bool(said("voter-behind", node(2, **was), link)) == is_told
    other = connection(0, 1, 10, client_id="raft-client-3", closed_ns=10 * SECOND)
    assert said("voter-behind", node(2, **was), other)


def test_the_longest_pause_of_a_real_controller_is_told() -> None:
    (found,) = of_capture("controller-paused")
    assert (found.id, found.subject.broker) == ("voter-behind", "3")
    assert "for 22.5 s and lacked up to 110 records" in found.message


# -- broker-clock -----------------------------------------------------------------------------------------


def clock(low_ms: int, high_ms: int, place: str = BROKER, **more: Any) -> tuple[type[BrokerClocks], Row]:
    """Times of a broker whose clock differs at least by the first, and at most by the second."""
    known = {"broker": place, "answers": 10, "low_min_ms": low_ms, "low_max_ms": low_ms}
    known |= {"high_min_ms": high_ms, "high_max_ms": high_ms, "first_ns": 1, "last_ns": 2, "exchanges": [4]}
    return BrokerClocks, row(BrokerClocks, **{**known, **more})


RIGHT = clock(-30, 10, "10.0.0.2:9092")


def dated(skew_ms: int, client: str = "10.0.0.9") -> tuple[type[Producers], Row]:
    return Producers, row(Producers, client=client, skew_max_ms=skew_ms)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (clock(5_000, 5_040), "5 s ahead of"),
        (clock(4_999, 5_040), None),
        (clock(-5_040, -5_000), "5 s behind"),
        (clock(-5_040, -4_999), None),
        (clock(-30_000, 30_000), None),  # the answer took a minute
        (clock(9_000, 9_040, answers=9), None),
        (clock(9_000, 9_040, low_min_ms=4_499), None),  # the clock was set
        (clock(9_000, 9_040, low_min_ms=4_500), "9 s ahead of"),
        (clock(-9_040, -9_000, high_max_ms=-4_499), None),
        (clock(-7_200_040, -7_200_000), "2.0 h behind"),
    ],
)
def test_a_clock_of_a_broker_differs(given: tuple[type[BrokerClocks], Row], words: str | None) -> None:
    found = said("broker-clock", given, RIGHT, at_node())
    assert len(found) == (words is not None)
    for each in found:
        assert each.message.startswith(f"The clock of broker 1 is {words} that of the capture")
        assert (each.subject.broker, each.severity, each.confidence) == ("1", WARNING, LIKELY)


@pytest.mark.parametrize(
    ("witnesses", "words"),
    [
        ([RIGHT], "The clock of another broker agrees"),
        ([clock(9_000, 9_040, "10.0.0.2:9092")], None),
        ([clock(-30, 10, "10.0.0.2:9092", answers=9)], None),
        ([dated(-3), dated(900, "10.0.0.8")], "Producers on 2 other hosts date their records"),
        ([dated(-3), dated(-3)], None),  # perhaps the host of the capture
        ([dated(-3), dated(1_001, "10.0.0.8")], None),
        ([dated(-3), dated(-1_001, "10.0.0.8")], None),
        ([dated(-3), dated(-3, "10.0.0.1")], None),  # the broker's own host
    ],
)
def test_whose_clock_is_wrong_needs_a_witness(
    witnesses: list[tuple[type[Any], Row]], words: str | None
) -> None:
    every = said("broker-clock", clock(9_000, 9_040), *witnesses)
    found = [each for each in every if each.subject.broker == BROKER]
    (each,) = found
    if words is None:
        assert (each.severity, each.confidence) == (NOTICE, POSSIBLE)
        assert "Nothing else in the capture shows which of both clocks is wrong." in each.message
    else:
        assert (each.severity, each.confidence) == (WARNING, LIKELY)
        assert f"{words}" in each.message
        assert each.message.endswith(", so the broker's clock is the wrong one.")


def test_a_clock_of_the_capture_that_was_set_judges_no_broker() -> None:
    context = WHOLE._replace(set_back=((1, 2),))
    assert not said("broker-clock", clock(9_000, 9_040), RIGHT, context=context)
    assert unjudged("broker-clock", clock(9_000, 9_040), RIGHT, context=context) == [SLEPT]


def test_a_broker_whose_clock_is_two_hours_slow_and_that_dates_records_itself() -> None:
    judged = judged_file(CAPTURES / "incidents" / "broker-dates-records.pcap.gz").findings
    (found,) = (each for each in judged if each.severity in (CRITICAL, WARNING))
    assert (found.id, found.subject.broker, round(found.measure or 0)) == ("broker-clock", "2", 7200)
