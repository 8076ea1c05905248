"""Rules on the network between clients and brokers, and on the connections themselves."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.connections import Connections
from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import Row
from kdissect.analysis.pace import Pace
from kdissect.analysis.tcp import Tcp
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import CRITICAL, INFO, Finding
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import MS, T0, WHOLE, Pair, S, check_pages, said, said_by, unjudged, zeros
from tests.shared import requires_shared, shared

IDS = tuple(each.id for each in RULES.values() if each.category == "network")


def tcp(**values: Any) -> tuple[type[Tcp], Row]:
    made = {"client": "10.0.0.7:5000", "broker": "10.0.0.2:9092", "client_id": "app", "exchanges": 100}
    return Tcp, zeros(Tcp, **{**made, "packets": 1_000, "rtt_min_ns": MS, "rtt_broker_ns": 0, **values})


def one(id: str, *rows: tuple[Any, Row]) -> Finding | None:
    found = said_by((id,), *rows).get(id, [])
    assert len(found) < 2
    return found[0] if found else None


def test_each_has_its_page() -> None:
    check_pages("network")


@pytest.mark.parametrize("name", ["basic-kafka43.pcapng", "consumer-group-kip848.pcapng", "broker-0.9.pcap"])
def test_healthy_captures_have_none(name: str) -> None:
    assert not [each for each in judged_file(CAPTURES / name).findings if each.id in IDS]


def far(rtt_ms: int, latency_ms: int, here_ms: int = 0, api: str = "Produce") -> Finding | None:
    """Captured so far from the broker."""
    taken = Pace, zeros(Pace, broker="b", client="10.0.0.7", client_id="app", api=api, count=60)
    taken[1]["latency_p50_ns"] = latency_ms * MS
    return one("far-away", tcp(rtt_min_ns=rtt_ms * MS, rtt_broker_ns=here_ms * MS), taken)


def test_who_is_20_ms_away_is_far_where_that_is_half_of_the_time() -> None:
    found = far(20, 1)
    assert found is not None
    assert (found.subject.client_id, found.measure) == ("app", 20)
    assert not far(19, 1)
    assert far(20, 20)
    assert not far(20, 21)  # with the way, 41
    assert far(20, 40, here_ms=20)  # the way is in it
    assert not far(20, 41, here_ms=20)
    assert not far(20, 1, api="Fetch")


def test_without_the_handshake_acknowledgements_may_just_be_late() -> None:
    taken = Pace, zeros(Pace, broker="b", client="10.0.0.7", client_id="app", api="Produce", count=60)
    assert not one("far-away", tcp(rtt_min_ns=40 * MS, handshake_ns=None), taken)


def test_lost_segments_are_told_from_ten_and_half_a_percent_on() -> None:
    def loss(lost: int, packets: int, hit: int = 0) -> Finding | None:
        values = {"retransmitted_segments": lost, "lost_to_broker": lost, "packets": packets}
        return one("packet-loss", tcp(**values, hit_exchanges=[*range(hit)]))

    found = loss(10, 2_000)
    assert found is not None
    assert (found.count, found.measure) == (10, 0.5)
    assert not loss(9, 100)
    assert not loss(10, 2_001)
    assert loss(3, 100_000, hit=3)
    assert not loss(3, 100_000, hit=2)


def test_what_a_follower_copies_over_a_lossy_connection_is_told() -> None:
    def message(client_id: str) -> str:
        found = one("packet-loss", tcp(retransmitted_segments=10, packets=99, client_id=client_id))
        assert found is not None
        return found.message

    told = message("broker-2-fetcher-0").partition(" the way back.")[2]
    assert told.startswith(" Broker 2 copies what 10.0.0.2:9092 leads over it, so writes")
    assert message("broker-fetcher").endswith(" the way back.")


def test_a_window_that_is_not_scaled_is_told_of_connections_that_matter() -> None:
    def lost(**values: Any) -> Finding | None:
        offers = {"wscale_client": 7, "wscale_broker": None, "mss_broker": 1460, "mss_client": 1460}
        short = {"last_ns": T0 + S, "bytes_to_broker": 2**20}
        return one("tcp-window-scaling-lost", tcp(**{**offers, **short, **values}))

    found = lost()
    assert found is not None
    assert (found.severity, found.subject.broker) == (CRITICAL, "10.0.0.2:9092")
    assert not lost(bytes_to_broker=2**20 - 1)
    assert lost(bytes_to_broker=0, last_ns=T0 + 60 * S)
    assert not lost(bytes_to_broker=0, last_ns=T0 + 60 * S - 1)
    assert not lost(wscale_client=None)
    assert not lost(wscale_broker=0)  # it scales by nothing, and agrees
    assert not lost(mss_broker=None)  # its SYN is not there


def test_a_closed_window_is_told_from_200_ms_or_a_twentieth_on() -> None:
    def shut(side: str, once_ms: int, whole_ms: int, life_s: int = 60) -> Finding | None:
        name = f"zero_window_{side}"
        values = {f"{name}_count": 3, f"{name}_max_ns": once_ms * MS, f"{name}_ns": whole_ms * MS}
        return one("zero-window", tcp(**values, last_ns=T0 + life_s * S))

    found = shut("client", 200, 200)
    assert found is not None
    assert (found.subject.client_id, found.subject.broker) == ("app", None)
    assert not shut("client", 199, 199)
    broker = shut("broker", 60, 100, life_s=2)
    assert broker is not None
    assert broker.subject.broker == "10.0.0.2:9092"
    assert not shut("broker", 60, 99, life_s=2)
    assert shut("broker", 50, 50, life_s=1)
    assert not shut("broker", 49, 49, life_s=0)


def test_large_messages_that_crawl_are_told_with_what_holds_them_up() -> None:
    def crawl(slow: int, large: int, **values: Any) -> str | None:
        made = {"slow_large": slow, "large": large, "slow_large_bytes_per_s": 600_000.0}
        found = one("slow-transfer", tcp(**{**made, **values}))
        return None if found is None else found.message

    assert "sent again" in (crawl(5, 99, retransmitted_segments=3) or "")
    assert "had a zero window" in (crawl(5, 99, zero_window_client_ns=S) or "")
    assert "a window of 65,535 bytes" in (crawl(5, 99, window_max_client=65_535, rtt_min_ns=100 * MS) or "")
    assert "neither losses nor windows" in (crawl(5, 99) or "")
    assert crawl(4, 99) is None
    assert crawl(3, 6)
    assert crawl(2, 2) is None
    assert said("slow-transfer", tcp(slow_large=50, large=100, slow_large_bytes_per_s=9.0), times=51)
    assert not said("slow-transfer", tcp(slow_large=49, large=100, slow_large_bytes_per_s=9.0), times=51)


def abandoned(*more: tuple[Any, Row], **values: Any) -> Finding | None:
    made = {"waiting_exchanges": [42], "waiting_apis": ["Produce"], "closed_by": "client"}
    made |= {"waiting_ns": S, "closed_ns": T0 + 50 * S, "left_ns": None}
    return one("request-abandoned", tcp(**{**made, **values}), *more)


@pytest.mark.parametrize(("connection", "gap_bytes", "found"), [(9, 0, 1), (9, 1, 0), (8, 1, 1)])
def test_where_bytes_are_missing_the_answer_may_be_among_them(
    connection: int, gap_bytes: int, found: int
) -> None:
    seen = Connections, zeros(Connections, connection=connection, gap_bytes=gap_bytes)
    waits = {"waiting_exchanges": [42], "waiting_apis": ["Produce"], "closed_by": "client", "left_ns": None}
    row = tcp(**waits, waiting_ns=S, closed_ns=T0 + 50 * S, connection=9)
    assert len(said("request-abandoned", row, seen)) == found
    assert len(unjudged("request-abandoned", row, seen)) == 1 - found


def test_a_connection_that_would_not_be_told_anyway_is_not_left_out() -> None:
    brief = tcp(closed_by="client", waiting_ns=S - 1, closed_ns=T0 + 50 * S, left_ns=None, connection=9)
    assert not unjudged("request-abandoned", brief, *lossy(9))
    assert not unjudged("request-abandoned", *cut(2), *lossy(0, 1))


@pytest.mark.parametrize(
    ("times", "lacking", "found"), [(3, (), 3), (3, (0,), 0), (4, (0,), 3), (3, (3,), 3)]
)
def test_where_bytes_of_a_connection_are_missing_it_was_perhaps_not_cut_off(
    times: int, lacking: tuple[int, ...], found: int
) -> None:
    """The last connection is the one that goes on: what it lacks does not matter."""
    rows = [*cut(times), *lossy(*lacking)]
    assert [each.count for each in said("request-abandoned", *rows)] == [found] * bool(found)
    is_cut_off_lacking = any(number < times for number in lacking)
    assert len(unjudged("request-abandoned", *rows)) == is_cut_off_lacking


@pytest.mark.parametrize(("one_sided", "found"), [(50, 1), (51, 0)])
def test_where_only_one_direction_was_captured_nobody_gave_up(one_sided: int, found: int) -> None:
    waits = {"waiting_exchanges": [42], "waiting_apis": ["Produce"], "closed_by": "client", "left_ns": None}
    row = tcp(**waits, waiting_ns=S, closed_ns=T0 + 50 * S)
    context = JudgingContext(T0, T0 + 60 * S, exchanges=100, one_sided=one_sided)
    assert len(said("request-abandoned", row, context=context)) == found


def test_a_client_that_closes_after_a_second_of_waiting_gave_up() -> None:
    found = abandoned()
    assert found is not None
    assert (found.exchanges, found.measure) == ((42,), 1)
    assert (found.first_ns, found.last_ns) == (T0 + 50 * S, T0 + 50 * S)  # when it gave up
    assert not abandoned(waiting_ns=S - 1)
    assert not abandoned(closed_by="broker")


def test_a_client_that_leaves_its_group_gives_nothing_up() -> None:
    leaves = tcp(left_ns=T0 + 49 * S + S // 2)
    assert not abandoned(leaves)
    assert not abandoned(tcp(left_ns=T0 + 49 * S))
    assert abandoned(tcp(left_ns=T0 + 49 * S - 1))
    assert abandoned(tcp(left_ns=T0 + 49 * S + S // 2, client_id="another"))


def test_timeouts_that_are_alike_are_guessed() -> None:
    both = [
        tcp(closed_by="client", waiting_ns=ns, closed_ns=T0, left_ns=None) for ns in (3 * S, 3 * S + 50 * MS)
    ]
    found = one("request-abandoned", *both)
    assert found is not None
    assert "looks like a timeout of 3.02 s" in found.message
    for low, words in ((950, True), (949, False)):
        ages = [
            tcp(closed_by="client", waiting_ns=age * 3 * MS, closed_ns=T0, left_ns=None)
            for age in (low, 1_000, 1_000)
        ]
        found = one("request-abandoned", *ages)
        assert found is not None
        assert ("looks like a timeout" in found.message) == words


def cut(times: int, life_s: int = 9, **values: Any) -> list[tuple[Any, Row]]:
    """Connections that the broker's side ends while a request waits, each with another after it."""
    made = {
        "waiting_exchanges": [5],
        "waiting_apis": ["Produce"],
        "answered_apis": ["Produce"],
        "left_ns": None,
    }
    rows = []
    for at in range(times + 1):
        begin = T0 + 10 * at * S
        ends = {"first_ns": begin, "closed_ns": begin + life_s * S, "closed_by": "broker", "waiting_ns": MS}
        rows.append(tcp(**{**made, **ends, "connection": at, **values}))
    rows[-1][1].update(closed_by=None, waiting_apis=[])
    return rows


def lossy(*connections: int) -> list[tuple[Any, Row]]:
    """Connections of which bytes are missing."""
    return [(Connections, zeros(Connections, connection=each, gap_bytes=100)) for each in connections]


def test_a_client_that_is_cut_off_again_and_again_while_it_waits_is_told() -> None:
    found = one("request-abandoned", *cut(3))
    assert found is not None
    assert (found.subject.client_id, found.count) == ("app", 3)
    assert not one("request-abandoned", *cut(2))
    # The broker never answers such a request: it does not know it.
    assert not one("request-abandoned", *cut(3, answered_apis=["ApiVersions"]))
    # Nobody came back at once: the broker had gone.
    assert one("request-abandoned", *cut(3, life_s=5))
    assert not one("request-abandoned", *cut(3, life_s=4))


@pytest.mark.parametrize(
    ("values", "lasted", "is_expired"),
    [
        ({"login_ns": MS}, True, True),
        ({"login_ns": 0}, True, False),
        ({"login_ns": MS, "handshake_ns": None}, False, False),
    ],
)
def test_connections_that_all_last_as_long_may_end_with_their_login(
    values: dict[str, Any], lasted: bool, is_expired: bool
) -> None:
    """librdkafka #3293: the version of SaslAuthenticate does not tell how long a login lasts."""
    found = one("request-abandoned", *cut(3, **values))
    assert found is not None
    assert ("Each of them had lasted 9 s." in found.message) == lasted
    assert ("connections.max.reauth.ms" in found.cause) == ("log in again" in found.fix) == is_expired


@pytest.mark.parametrize(("life_ms", "is_alike"), [(9_450, True), (9_460, False)])
def test_they_are_alike_within_some_percent(life_ms: int, is_alike: bool) -> None:
    rows = cut(3)
    rows[0][1]["closed_ns"] = rows[0][1]["first_ns"] + life_ms * MS
    found = one("request-abandoned", *rows)
    assert found is not None
    assert ("had lasted" in found.message) == is_alike


@pytest.mark.parametrize(
    ("ends_ms", "is_told"),
    [
        ((9_000, 9_005, 9_010), False),
        ((9_000, 9_000, 20_000), False),
        ((9_000, 9_900, 10_900), False),
        ((9_000, 9_910, 10_820), True),
    ],
)
def test_connections_that_one_event_cuts_off_tell_no_time(ends_ms: tuple[int, ...], is_told: bool) -> None:
    """Where a proxy starts again, its connections end that were opened together."""
    rows = cut(3, login_ns=MS)
    for (_, row), ms in zip(rows, ends_ms, strict=False):
        row.update(first_ns=T0 + (ms - 9_000) * MS, closed_ns=T0 + ms * MS)
    rows += cut(0)
    rows[-1][1].update(first_ns=T0 + 11 * S, connection=9)
    rows += cut(0)
    rows[-1][1].update(first_ns=T0 + 21 * S, connection=10)
    found = one("request-abandoned", *rows)
    assert found is not None
    assert found.count == 3
    assert ("had lasted" in found.message) == ("log in again" in found.fix) == is_told


@pytest.mark.parametrize(("life_ms", "is_told"), [(0, False), (999, False), (1_000, True)])
def test_connections_that_end_at_once_tell_no_time(life_ms: int, is_told: bool) -> None:
    rows = cut(3, login_ns=MS)
    for _, row in rows:
        row["first_ns"] = row["closed_ns"] - life_ms * MS
    rows += [cut(0)[0] for _ in range(3)]
    for at, (_, row) in enumerate(rows[-3:]):
        row.update(first_ns=T0 + (10 * at + 9) * S, connection=10 + at)
    found = one("request-abandoned", *rows)
    assert found is not None
    assert ("had lasted" in found.message) == is_told


def test_a_login_that_is_known_to_have_run_out_explains_what_it_cut_off() -> None:
    ends = [T0 + 10 * at * S + 9 * S for at in range(3)]
    logins = [
        (Exposure, zeros(Exposure, connection=at, client_id="app", client="10.0.0.7:5000", end="fin"))
        for at in range(3)
    ]
    for (_, login), ns in zip(logins, ends, strict=True):
        login.update(login_ends_ns=ns - S, first_ns=ns - 9 * S, last_ns=ns)

    def causes(*more: tuple[Any, Row], known: int = 3, **values: Any) -> list[str | None]:
        rows = (*cut(3, login_ns=MS, **values), *more, *logins[:known])
        found = said_by(("reauthentication-missed", "request-abandoned"), *rows)
        (told,) = found["reauthentication-missed"]
        assert told.key == "reauthentication-missed client=10.0.0.7 client_id=app"
        return [each.because and each.because.partition(" ")[0] for each in found["request-abandoned"]]

    assert causes() == causes(known=2) == ["reauthentication-missed"]
    assert causes(known=1) == [None], "so much else cut these off"
    elsewhere = {"client": "10.9.9.9:7000", "broker": "10.0.0.99:9092"}
    others = [(each, {**values, **elsewhere, "connection": 7}) for each, values in cut(1)]
    assert causes(*others) == [None], "some are of another host"
    gave_up = {"waiting_exchanges": [42], "waiting_apis": ["Produce"], "left_ns": None, "waiting_ns": 30 * S}
    gave_up |= {"closed_by": "client", "closed_ns": T0 + 50 * S, "connection": 77, **elsewhere}
    assert sorted(map(str, causes(tcp(**gave_up)))) == ["None", "reauthentication-missed"]


def test_connections_that_are_ready_late_are_told() -> None:
    def ready(count: int, ms: int) -> Finding | None:
        return one("slow-connect", *[tcp(setup_ns=ms * MS, handshake_ns=MS, login_ns=400 * MS)] * count)

    found = ready(10, 500)
    assert found is not None
    assert "400 ms to log in" in found.message
    assert not ready(9, 500)
    assert not ready(10, 499)


def test_answers_before_their_requests_show_a_bad_clock() -> None:
    def backwards(count: int) -> Finding | None:
        values = {"backwards_count": count, "backwards_max_ns": 2 * MS, "backwards_exchanges": [1]}
        return one("capture-clock", (Pace, zeros(Pace, **values)))

    assert backwards(5)
    assert not backwards(4)


def test_a_clock_that_was_set_back_is_told() -> None:
    assert not said("capture-clock")
    (found,) = said("capture-clock", context=WHOLE._replace(set_back=((1, 2),)))
    assert "was set back" in found.message
    assert (found.severity, found.count, found.measure, found.filter) == (INFO, 1, None, "")


def test_who_alone_gets_nothing_through_is_cut_off() -> None:
    def outage(ns: int, **other: Any) -> Finding | None:
        mine = tcp(outage_ns=ns, outage_from_ns=T0 + 5 * S)
        theirs = tcp(client_id="other", outage_ns=0, outage_from_ns=None, **other)
        return one("network-outage", mine, theirs)

    found = outage(3 * S)
    assert found is not None
    assert (found.subject.client_id, found.first_ns, found.last_ns) == ("app", T0 + 5 * S, T0 + 8 * S)
    assert not outage(3 * S - 1)
    assert not outage(3 * S, last_ns=T0 + 4 * S)


def link(client: str, broker: str, client_id: str, from_s: int = 5, for_s: int = 8) -> Pair:
    """A connection that was cut off, if for long."""
    ends = {"client": f"{client}:5000", "broker": f"{broker}:9092", "client_id": client_id}
    return tcp(outage_ns=for_s * S, outage_from_ns=T0 + from_s * S if for_s else None, **ends)


ELSEWHERE = link("10.0.0.90", "10.0.0.91", "elsewhere", for_s=0)
NODE_2 = (ClusterBrokers, zeros(ClusterBrokers, node_id=2, host="10.0.0.2", port=9092, cluster_id="c"))


def outages(*rows: Pair) -> list[tuple[str, int]]:
    return [(each.where, each.count) for each in said("network-outage", ELSEWHERE, *rows)]


def test_one_link_that_breaks_is_one_outage() -> None:
    of_host = link("10.0.0.7", "10.0.0.1", "web"), link("10.0.0.7", "10.0.0.2", "app", from_s=6)
    assert outages(*of_host) == [("client web@10.0.0.7", 2)]
    one_pair = link("10.0.0.7", "10.0.0.2", "web"), link("10.0.0.7", "10.0.0.2", "app")
    assert outages(*one_pair) == [("client app@10.0.0.7", 2)], "the first by time, then by name"
    (found,) = said("network-outage", ELSEWHERE, *of_host)
    assert "between 10.0.0.7 and others (10.0.0.1 and 10.0.0.2)" in found.message
    assert "The clients are app and web" in found.message
    assert (found.first_ns, found.last_ns) == (T0 + 5 * S, T0 + 14 * S)


@pytest.mark.parametrize(
    ("number", "values", "is_by_size"),
    [
        (2, {}, True),
        (1, {}, False),
        (2, {"opening": "silent"}, False),
        (2, {"answered_apis": []}, False),
        (2, {"first_ns": T0 + 5 * S}, False),
        (2, {"first_ns": T0 + 13 * S}, False),
        (2, {"broker": "10.0.0.3:9092"}, False),
    ],
)
def test_connections_that_begin_in_an_outage_and_stand_still_lose_large_packets(
    number: int, values: dict[str, Any], is_by_size: bool
) -> None:
    ends = {"client": "10.0.0.7:5000", "broker": "10.0.0.2:9092", "client_id": "web"}
    new = {
        "opening": "answered",
        "answered_apis": ["ApiVersions"],
        "first_ns": T0 + 6 * S,
        "outage_ns": 4 * S,
    }
    later = tcp(**{**ends, **new, "outage_from_ns": T0 + 7 * S, **values})
    (found, *_) = said("network-outage", ELSEWHERE, link("10.0.0.7", "10.0.0.2", "web"), *[later] * number)
    assert ("only small packets seem to get through" in found.message) == is_by_size
    assert ("fragmentation needed" in found.fix) == is_by_size


def test_a_broker_that_several_hosts_cannot_reach_is_the_subject() -> None:
    cut = link("10.0.0.7", "10.0.0.2", "web"), link("10.0.0.8", "10.0.0.2", "web")
    assert outages(*cut) == [("broker 10.0.0.2:9092", 2)]
    assert outages(*cut, NODE_2) == [("broker 2", 2)]
    own = link("10.0.0.2", "10.0.0.9", "raft-client-2"), link("10.0.0.2", "10.0.0.9", "2")
    assert outages(*own, NODE_2) == [("broker 2", 2)]
    assert outages(*own) == [("client 2@10.0.0.2", 2)]


def test_outages_at_other_times_or_of_other_hosts_are_others() -> None:
    first = link("10.0.0.7", "10.0.0.2", "web", from_s=5, for_s=8)
    assert outages(first, link("10.0.0.7", "10.0.0.1", "app", from_s=14)) == [
        ("client app", 1),
        ("client web", 1),
    ]
    assert len(outages(first, link("10.0.0.7", "10.0.0.1", "app", from_s=13))) == 1
    assert len(outages(first, link("10.0.0.8", "10.0.0.1", "app"))) == 2


def test_a_link_that_breaks_again_is_one_finding_with_the_time_of_the_worst() -> None:
    early = link("10.0.0.7", "10.0.0.2", "web", from_s=5, for_s=4)
    late = link("10.0.0.7", "10.0.0.2", "web", from_s=20, for_s=6)
    (found,) = said("network-outage", ELSEWHERE, early, late)
    assert (found.count, found.measure) == (2, 6.0)
    assert (found.first_ns, found.last_ns) == (T0 + 20 * S, T0 + 26 * S)
    assert "That happened 2 times." in found.message


def test_only_outages_count_during_which_others_went_on() -> None:
    """``early`` may have been the capture: the other connection began later."""
    early = link("10.0.0.7", "10.0.0.2", "web", from_s=5, for_s=9)
    late = link("10.0.0.7", "10.0.0.2", "web", from_s=20, for_s=6)
    later = tcp(outage_ns=0, outage_from_ns=None, client_id="other", first_ns=T0 + 19 * S)
    (found,) = said("network-outage", later, early, late)
    assert (found.count, found.measure) == (1, 6.0)


def local(client_id: str, port: int, from_s: int = 5) -> Pair:
    """A connection on one host that was cut off."""
    cut, row = link("127.0.0.1", "127.0.0.1", client_id, from_s)
    return cut, row | {"broker": f"127.0.0.1:{port}"}


def test_on_one_host_the_end_that_lost_most_others_is_told() -> None:
    """There is no link between them: a port was blocked, or a client."""
    port = local("web", 9092), local("app", 9092)
    assert outages(*port) == [("broker 127.0.0.1:9092", 2)]
    node = ClusterBrokers, zeros(ClusterBrokers, node_id=3, host="127.0.0.1", port=9092, cluster_id="c")
    other = ClusterBrokers, zeros(ClusterBrokers, node_id=4, host="127.0.0.1", port=9094, cluster_id="c")
    assert outages(*port, node) == [("broker 3", 2)]
    assert outages(*port, node, other) == [("broker 3", 2)]
    client = local("web", 9092), local("web", 9094)
    assert outages(*client) == [("client web", 2)]
    assert outages(*port, local("far", 9094)) == [("broker 127.0.0.1:9092", 2), ("client far", 1)]
    assert outages(local("web", 9092), local("app", 9094)) == [("client app", 1), ("client web", 1)]
    assert outages(local("web", 9092), local("app", 9092, from_s=20)) == [
        ("client app", 1),
        ("client web", 1),
    ]


def test_nothing_is_out_if_nothing_else_goes_on() -> None:
    one_pair = link("10.0.0.7", "10.0.0.2", "web"), link("10.0.0.7", "10.0.0.2", "app")
    assert not said("network-outage", *one_pair)
    assert not said("network-outage", *one_pair, link("10.0.0.7", "10.0.0.2", "app", for_s=0))
    assert said("network-outage", *one_pair, link("10.0.0.7", "10.0.0.2", "third", for_s=0))
    assert said("network-outage", *one_pair, link("10.0.0.7", "10.0.0.3", "app", for_s=0))


def test_an_outage_explains_the_losses_of_all_its_clients_and_of_no_other() -> None:
    cut = link("10.0.0.7", "10.0.0.2", "web"), link("10.0.0.8", "10.0.0.2", "app"), ELSEWHERE
    for _, row in cut:
        row["retransmitted_segments"] = 50
    found = said_by(("network-outage", "packet-loss"), *cut)["packet-loss"]
    assert {each.subject.client_id: each.because for each in found} == {
        "web": "network-outage broker=10.0.0.2:9092",
        "app": "network-outage broker=10.0.0.2:9092",
        "elsewhere": None,
    }


INCIDENTS = "testdata/incidents"


@requires_shared
@pytest.mark.parametrize("name", ["capture-client.pcapng", "capture-broker.pcapng.gz"])
def test_a_far_client_is_far_and_nothing_else_at_both_points(name: str) -> None:
    found = judged_file(shared(f"{INCIDENTS}/network-delay/{name}")).findings
    ours = [(each.id, each.subject.client_id) for each in found if each.id in IDS]
    assert ours == [("far-away", "far")]
    assert not [each for each in found if each.id in ("slow-broker", "broker-stalled", "head-of-line")]


@requires_shared
@pytest.mark.parametrize("name", ["capture-client.pcapng", "capture-broker.pcapng.gz"])
def test_losses_are_the_far_clients_at_both_points(name: str) -> None:
    found = judged_file(shared(f"{INCIDENTS}/packet-loss/{name}")).findings
    assert [(each.id, each.subject.client_id) for each in found if each.id in IDS] == [("packet-loss", "far")]


@requires_shared
@pytest.mark.parametrize("case", ["duplicates", "duplicates-idempotent"])
def test_produce_requests_without_answers_are_told(case: str) -> None:
    """A proxy between client and broker loses them."""
    found = judged_file(shared(f"{INCIDENTS}/{case}/capture-client.pcapng")).findings
    (ours,) = [each for each in found if each.id in IDS]
    assert (ours.id, ours.subject.client_id, ours.count) == ("request-abandoned", "till", 3)
