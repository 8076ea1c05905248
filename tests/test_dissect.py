"""Dissector: many connections, numbers and names across all of them, and when it forgets something."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import pytest

import kdissect.dissect
from kdissect.capture.files import read_packets
from kdissect.dissect import AT_THE_END, LINGER_NS, LINGERING, Dissector, Event, Numbering
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import RST, SYN, Endpoint, Fault, Packet, Segment
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID, TopicNames
from kdissect.protocol.cursor import uuid_text
from kdissect.session.briefs import Brief, Interest
from kdissect.session.conversation import Connection, Conversation
from tests.cli.run import CAPTURES
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response


def endpoint(host: int, port: int) -> Endpoint:
    return bytes((10, 0, 0, host)) + port.to_bytes(2, "big")


def talk(port: int, correlation: int = 1) -> Talk:
    ask = request("Metadata", 1, correlation, topics=[{"name": "orders"}])
    one = Talk(client=endpoint(1, port), broker=endpoint(2, 9092))
    return one.ask(ask).answer(response("Metadata", 1, correlation, **METADATA_RESPONSE_1))


def renumbered(*talks: list[Segment], start_ns: int = 0) -> list[Segment]:
    segments = [segment for one in talks for segment in one]
    return [s._replace(packet=i + 1, timestamp_ns=start_ns + i * 1000) for i, s in enumerate(segments)]


def with_a_hole(port: int) -> list[Segment]:
    """A connection with 1,000 bytes that wait after 100 uncaptured ones."""
    one = Talk(client=endpoint(1, port), broker=endpoint(2, 9092)).say(endpoint(1, port), b"x" * 100)
    del one.segments[-1]
    return one.say(one.client, b"y" * 1000).segments


def run(dissector: Dissector, segments: list[Segment]) -> list[Event]:
    out: list[Event] = []
    for segment in segments:
        out += dissector.feed(segment)
    return out


def exchanges(events: list[Event]) -> list[Exchange]:
    return [event for event in events if isinstance(event, Exchange)]


def connections(events: list[Event]) -> list[Connection]:
    return [event for event in events if isinstance(event, Connection)]


def test_numbers_count_over_all_connections() -> None:
    dissector = Dissector()
    events = run(dissector, renumbered(talk(1001).segments, talk(1002).segments))
    events += dissector.close()
    assert [(e.number, e.connection) for e in exchanges(events)] == [(1, 0), (2, 1)]
    assert [c.connection for c in connections(events)] == [0, 1]


def test_it_tells_the_ends_of_each_connection_that_it_remembers_once() -> None:
    dissector = Dissector()
    one, other = endpoint(1, 1001), endpoint(2, 9092)
    run(dissector, renumbered(talk(1001).segments, Talk(client=endpoint(3, 9), broker=other).segments))
    assert sorted(dissector.pairs()) == [(one, other), (other, endpoint(3, 9))]
    assert all(dissector.remembers_any([ends]) for ends in dissector.pairs())


def test_a_closed_connection_is_forgotten_when_it_has_lingered() -> None:
    dissector = Dissector()
    first = renumbered(talk(1001).close().segments)
    later = renumbered(talk(1002).segments, start_ns=LINGER_NS * 2)
    events = run(dissector, first)
    assert connections(events) == []
    events = run(dissector, later)
    assert [(c.connection, c.end, c.packets) for c in connections(events)] == [(0, "fin", len(first))]


def test_the_last_acknowledgements_still_count_for_the_closed_connection() -> None:
    dissector = Dissector()
    one = talk(1001).close()
    one._add(one.client)
    run(dissector, renumbered(one.segments))
    (row,) = connections(list(dissector.close()))
    assert row.packets == len(one.segments)


def test_the_same_endpoints_are_another_connection_once_it_has_lingered() -> None:
    dissector = Dissector()
    run(dissector, renumbered(talk(1001).close().segments))
    again = Talk(client=endpoint(1, 1001), broker=endpoint(2, 9092), syn=False)
    again.ask(request("Metadata", 1, 9, topics=[]))
    events = run(dissector, renumbered(again.segments, start_ns=LINGER_NS * 2)) + list(dissector.close())
    assert [e.connection for e in exchanges(events)] == [1]
    assert [c.connection for c in connections(events)] == [0, 1]


def test_a_syn_with_another_number_begins_another_connection_on_the_same_endpoints() -> None:
    dissector, one = Dissector(), talk(1001)
    events = run(dissector, renumbered(one.segments))
    again = [s._replace(seq=s.seq + 500_000, ack=s.ack and s.ack + 500_000) for s in talk(1001).segments]
    events += run(dissector, renumbered(again, start_ns=LINGER_NS // 2))
    assert [(c.connection, c.end, c.packets) for c in connections(events)] == [
        (0, "reused", len(one.segments))
    ]
    events += dissector.close()
    assert [e.connection for e in exchanges(events)] == [0, 1]


def test_more_connections_than_the_limit_evict_the_longest_silent() -> None:
    dissector = Dissector(DEFAULTS._replace(connections=20))
    ask = request("Metadata", 1, 1, topics=[])
    talks = [Talk(client=endpoint(1, 1000 + i), broker=endpoint(2, 9092)).ask(ask) for i in range(25)]
    events = run(dissector, renumbered(*(t.segments for t in talks)))
    assert [c.connection for c in connections(events)] == [0, 1, 2, 3, 4, 5]
    assert {c.end for c in connections(events)} == {"evicted"}
    assert [e.missing for e in exchanges(events)] == ["evicted"] * 6
    assert {event.kind for event in events if isinstance(event, Fault)} == {"too-many-connections"}


def holding(dissector: Dissector) -> set[Conversation]:
    """The connections with waiting data."""
    return {each for each in dissector._table.values() if each.counted_bytes}


def test_bytes_behind_holes_are_bounded_over_all_connections_and_the_oldest_wait_ends_first() -> None:
    limit = 50_000
    dissector = Dissector(DEFAULTS._replace(waiting_bytes=limit))
    events: list[Event] = []
    for i in range(100):
        events += run(dissector, renumbered(with_a_hole(1000 + i)))
        assert sum(c.held_bytes for c in dissector._table.values()) <= 2 * limit  # each is there twice
        assert dissector._held_bytes == sum(each.counted_bytes for each in holding(dissector))
    told = [event for event in events if isinstance(event, Fault) and event.kind == "buffer-limit"]
    given_up = [fault for fault in told if fault.layer == "tcp"]
    assert 50 < len(given_up) < 70
    assert [fault.connection for fault in given_up] == list(range(len(given_up)))
    assert "50,000 bytes wait in all connections" in given_up[0].message
    list(dissector.close())
    rest = [c.held_bytes for c in dissector._table.values()]
    assert rest == []


def waiting(kind: str, port: int) -> Talk:
    """A connection with about 20,000 waiting bytes."""
    one = Talk(client=endpoint(1, port), broker=endpoint(2, 9092))
    many = [{"name": f"topic-{i:04}"} for i in range(1500)]
    if kind == "not settled":
        return one.say(one.client, b"\x00\x00" + b"?" * 8_000)
    if kind == "a frame's beginning":
        one.ask(request("Metadata", 1, 1, topics=[]))
        answer = response("Metadata", 1, 1, brokers=[], controllerId=1, topics=[])
        return one.say(one.broker, (30_000).to_bytes(4, "big") + answer + bytes(18_000))
    if kind == "a request":
        return one.ask(request("Metadata", 1, 1, topics=many))
    for number in range(10):
        one.ask(request("Metadata", 1, number, topics=[]))
    return one


@pytest.mark.parametrize("kind", ["not settled", "a frame's beginning", "a request", "requests"])
def test_whatever_waits_is_bounded_over_all_connections(kind: str) -> None:
    limit = 200_000
    dissector = Dissector(DEFAULTS._replace(waiting_bytes=limit))
    events: list[Event] = []
    for i in range(100):
        events += run(dissector, renumbered(waiting(kind, 1000 + i).segments))
        assert 0 < dissector.held_bytes <= limit
        assert dissector.held_bytes == sum(c.held_bytes for c in set(dissector._table.values()))
    events += dissector.close()
    assert dissector.held_bytes == 0
    told = [event for event in events if isinstance(event, Fault) and event.kind == "buffer-limit"]
    found = exchanges(events)
    if kind == "not settled":
        assert [row.protocol for row in connections(events)] == ["unknown"] * 100
        assert 80 < len(told) < 100
        assert "does not show Kafka so far, so kdissect leaves it out" in told[0].message
        return
    assert 80 < len(told) < 100
    assert len(found) == (1000 if kind == "requests" else 100)
    given_up = {fault.connection for fault in told}
    assert {e.connection for e in found if e.missing == "evicted"} == given_up
    assert {e.missing for e in found} == {"evicted", "capture ended"}


def test_a_connection_whose_frame_was_given_up_goes_on_behind_it() -> None:
    dissector = Dissector(DEFAULTS._replace(waiting_bytes=30_000))
    one = waiting("a frame's beginning", 1000)
    answer = response("Metadata", 1, 1, brokers=[], controllerId=1, topics=[])
    one.say(one.broker, bytes(30_000 - len(answer) - 18_000))
    one.ask(request("Metadata", 1, 2, topics=[]))
    one.answer(response("Metadata", 1, 2, brokers=[], controllerId=1, topics=[]))
    events = run(dissector, renumbered(one.segments)) + list(dissector.close())
    first, second = exchanges(events)
    assert (first.missing, second.missing) == ("evicted", None)
    assert first.response is not None
    assert first.response.is_cut
    assert [event.kind for event in events if isinstance(event, Fault)] == ["buffer-limit", "skipped"] + [
        "skipped"
    ] * (len([event for event in events if isinstance(event, Fault)]) - 2)


def test_the_connections_that_hold_most_wait_no_longer() -> None:
    dissector = Dissector(DEFAULTS._replace(waiting_bytes=50_000))
    small = [waiting("requests", 1000 + i).segments[:4] for i in range(10)]
    events = run(dissector, renumbered(*small))
    events += run(dissector, renumbered(waiting("a request", 2000).segments))
    assert [e.connection for e in exchanges(events)] == [10]
    assert {event.connection for event in events if isinstance(event, Fault)} == {10}


def test_what_is_remembered_of_clients_is_bounded_too() -> None:
    limit = 200_000
    dissector = Dissector(DEFAULTS._replace(waiting_bytes=limit))
    ask = request("Metadata", 1, 1, "x" * 1_000, topics=[])
    answer = response("Metadata", 1, 1, brokers=[], controllerId=1, topics=[])
    talks = [Talk(client=endpoint(1, 1000 + i), broker=endpoint(2, 9092)) for i in range(150)]
    events: list[Event] = []
    for segment in renumbered(*(talk.ask(ask).answer(answer).segments for talk in talks)):
        events += dissector.feed(segment)
        assert dissector.held_bytes <= limit
    assert {row.end for row in connections(events)} == {"evicted"}
    assert [row.connection for row in connections(events)] == list(range(len(connections(events))))
    assert 40 < len(connections(events)) < 80
    assert len([e for e in exchanges(events) if e.request is not None]) == 150
    told = [event for event in events if isinstance(event, Fault)]
    assert {fault.kind for fault in told} == {"buffer-limit"}
    assert len([fault for fault in told if fault.connection is not None]) <= 5  # nothing of the others waited


def test_a_limit_that_only_what_is_remembered_reaches_is_not_reached_with_each_packet() -> None:
    """Otherwise each packet would cost a search through all connections."""
    limit = 400_000
    dissector = Dissector(DEFAULTS._replace(waiting_bytes=limit))
    ask = request("Metadata", 1, 1, "x" * 1_000, topics=[])
    answer = response("Metadata", 1, 1, brokers=[], controllerId=1, topics=[])
    talks = [Talk(client=endpoint(1, 1000 + i), broker=endpoint(2, 9092)) for i in range(196)]
    events = run(dissector, renumbered(*(talk.ask(ask).answer(answer).segments for talk in talks)))
    assert limit - 8_100 < dissector.held_bytes <= limit
    assert [event for event in events if isinstance(event, Fault)] == []
    asking = Talk(client=endpoint(1, 9), broker=endpoint(2, 9092))
    for number in range(100):
        asking.ask(request("Metadata", 1, number, topics=[]))
    events = run(dissector, renumbered(asking.segments, start_ns=1))
    told = [event for event in events if isinstance(event, Fault)]
    assert 1 <= len([fault for fault in told if fault.connection is None]) <= 10


def test_what_is_numbered_at_the_end_is_bounded_too() -> None:
    dissector = Dissector(DEFAULTS._replace(waiting_bytes=50_000))
    ask = request("Metadata", 1, 1, "client", topics=[{"name": "orders"}])
    events: list[Event] = []
    for i in range(100):
        cut = Talk(client=endpoint(1, 1000 + i), broker=endpoint(2, 9092))
        cut.say(cut.client, len(ask).to_bytes(4, "big") + ask[:-3])
        cut._add(cut.client, flags=RST)
        events += run(dissector, renumbered(cut.segments, start_ns=i * 2 * LINGER_NS))
        assert dissector.held_bytes <= 50_000
    assert len(exchanges(events)) > 50
    events += dissector.close()
    assert [e.number for e in exchanges(events)] == list(range(1, 101))


def test_connections_that_say_nothing_have_rows_until_an_exchange_was_told_in_brief() -> None:
    silent, later = (
        Talk(client=endpoint(1, port), broker=endpoint(2, 9092)).close() for port in (1001, 1002)
    )
    for talks, rows in (((silent,), [0]), ((silent, later), [0, 1]), ((talk(1003), silent, later), [])):
        dissector = Dissector(briefs=Interest())
        segments = renumbered(*(one.segments for one in talks))
        found = connections([*run(dissector, segments), *dissector.close()])
        assert [each.connection for each in found] == rows


def test_if_exchanges_may_be_brief_only_connections_that_are_not_ordinary_have_rows() -> None:
    unanswered = Talk(client=endpoint(1, 1001), broker=endpoint(2, 9092))
    unanswered.ask(request("Metadata", 1, 1, topics=[{"name": "orders"}])).close()
    skipped = talk(1002)
    skipped.say(skipped.client, b"GET / HTTP/1.1").close()
    lost = talk(1003).ask(request("Metadata", 1, 2, topics=None))
    del lost.segments[-1]
    lost.ask(request("Metadata", 1, 3, topics=None)).close()
    segments = renumbered(*(one.segments for one in (unanswered, skipped, lost)))
    reported: list[list[str]] = []
    for briefs, rows in ((None, [0, 1, 2]), (Interest(), [1, 2]), (Interest(faults=False), [])):
        dissector = Dissector(briefs=briefs)
        events = [*run(dissector, segments), *dissector.close()]
        assert [each.connection for each in connections(events)] == rows
        reported.append([event.kind for event in events if isinstance(event, Fault)])
    usual, brief, unasked = reported
    assert usual == brief
    assert {"bad-size", "skipped"} <= set(usual)
    assert not {"bad-size", "skipped"} & set(unasked), "nobody needs them"


def test_connections_that_are_evicted_leave_nothing_behind() -> None:
    dissector = Dissector(DEFAULTS._replace(connections=10))
    for i in range(3_000):
        run(dissector, [s._replace(timestamp_ns=0) for s in talk(1001 + i).close().segments])
    assert len(dissector._lingering) <= LINGERING + 2 * 10 + 1
    assert len(dissector._closed) <= 10


def test_names_of_topic_ids_are_bounded() -> None:
    ask = request(
        "Metadata", 13, 1, topics=None, allowAutoTopicCreation=False, includeTopicAuthorizedOperations=False
    )
    topics = [
        {
            "errorCode": 0,
            "name": f"t{i}",
            "topicId": uuid_text(bytes((i,)) * 16),
            "isInternal": False,
            "partitions": [],
            "topicAuthorizedOperations": 0,
        }
        for i in range(1, 11)
    ]
    answer = response(
        "Metadata", 13, 1, throttleTimeMs=0, brokers=[], clusterId=None, controllerId=1, errorCode=0,
        topics=topics,
    )  # fmt: skip
    one = Talk(client=endpoint(1, 1001), broker=endpoint(2, 9092)).ask(ask).answer(answer)
    dissector = Dissector(DEFAULTS._replace(topic_names=5))
    events = run(dissector, renumbered(one.segments)) + list(dissector.close())
    (told,) = [event for event in events if isinstance(event, Fault)]
    assert (told.kind, len(dissector.names)) == ("too-many-names", 5)
    assert "kdissect left out other names 6 times" in told.message


def test_names_told_again_are_not_more_than_the_limit() -> None:
    ask = request(
        "Metadata", 13, 1, topics=None, allowAutoTopicCreation=False, includeTopicAuthorizedOperations=False
    )
    topic = {
        "errorCode": 0, "name": "orders", "topicId": uuid_text(b"o" * 16), "isInternal": False,
        "partitions": [], "topicAuthorizedOperations": 0,
    }  # fmt: skip
    answer = response(
        "Metadata", 13, 1, throttleTimeMs=0, brokers=[], clusterId=None, controllerId=1, errorCode=0,
        topics=[topic],
    )  # fmt: skip
    one = Talk(client=endpoint(1, 1001), broker=endpoint(2, 9092)).ask(ask).answer(answer)
    one.ask(ask).answer(answer)
    dissector = Dissector(DEFAULTS._replace(topic_names=2))
    events = run(dissector, renumbered(one.segments)) + list(dissector.close())
    assert len(exchanges(events)) == 2
    assert [event for event in events if isinstance(event, Fault)] == []


def test_what_a_closed_or_evicted_connection_held_is_free_again() -> None:
    dissector = Dissector(DEFAULTS._replace(connections=10))
    for i in range(100):
        run(dissector, renumbered(with_a_hole(1000 + i)))
    assert dissector._held_bytes == sum(each.counted_bytes for each in holding(dissector))
    assert len(holding(dissector)) <= 10


def test_a_packet_from_an_endpoint_to_itself_is_a_connection_like_others() -> None:
    dissector = Dissector(DEFAULTS._replace(connections=1))
    here = endpoint(1, 9092)
    segments = [Segment(i, i, here, here, 1, None, SYN | RST, b"", 0) for i in range(3)]
    events = run(dissector, segments)
    events += run(dissector, renumbered(talk(1001).segments, talk(1002).segments, start_ns=LINGER_NS * 2))
    events += list(dissector.close())
    assert len(connections(events)) == dissector.connections


def test_endpoints_that_are_used_again_and_again_leave_nothing_behind() -> None:
    dissector = Dissector()
    client, broker = endpoint(1, 1001), endpoint(2, 9092)
    for i in range(500):
        run(dissector, [Segment(2 * i, 0, client, broker, 7 * i, None, SYN, b"", 0)])
        run(dissector, [Segment(2 * i + 1, 0, client, broker, 7 * i + 1, None, RST, b"", 0)])
    assert len(dissector._closed) == 1


def test_a_connection_that_goes_on_after_a_reset_does_not_keep_the_others() -> None:
    dissector = Dissector()
    goes_on = talk(1001).segments
    run(dissector, renumbered([*goes_on, goes_on[-1]._replace(flags=RST, payload=b"", length=0)]))
    run(dissector, renumbered(talk(1002).close().segments, start_ns=1_000_000))
    ended: list[Connection] = []
    for i in range(1, 6):
        acknowledgement = goes_on[-1]._replace(
            payload=b"", length=0, timestamp_ns=i * LINGER_NS * 2 // 3, packet=100 + i
        )
        ended += connections(run(dissector, [acknowledgement]))
    assert [row.connection for row in ended] == [1]


def test_a_topic_id_is_named_by_what_another_connection_told_before() -> None:
    topic_id = "6BkrV-dORm6UI_CZE0J8iw"
    told = {
        "throttleTimeMs": 0,
        "brokers": [],
        "clusterId": None,
        "controllerId": 1,
        "errorCode": 0,
        "topics": [
            {
                "errorCode": 0,
                "name": "orders",
                "topicId": topic_id,
                "isInternal": False,
                "partitions": [],
                "topicAuthorizedOperations": 0,
            }
        ],
    }
    ask = request(
        "Metadata", 13, 1, topics=None, allowAutoTopicCreation=False, includeTopicAuthorizedOperations=False
    )
    teaching = Talk(client=endpoint(1, 1001), broker=endpoint(2, 9092))
    teaching.ask(ask).answer(response("Metadata", 13, 1, **told))
    produce = request(
        "Produce",
        13,
        2,
        transactionalId=None,
        acks=0,
        timeoutMs=1,
        topicData=[{"topicId": topic_id, "partitionData": []}],
    )
    using = [Talk(client=endpoint(1, port), broker=endpoint(2, 9092)).ask(produce) for port in (1002, 1003)]
    segments = renumbered(using[0].segments, teaching.segments, using[1].segments)

    def topics(dissector: Dissector) -> list[list[str]]:
        events = run(dissector, segments) + list(dissector.close())
        return [e.topics for e in exchanges(events) if e.api == "Produce"]

    first = Dissector()
    assert topics(first) == [[topic_id], ["orders"]]
    assert topics(Dissector(names=first.names)) == [["orders"], ["orders"]]


def test_the_metadata_topics_id_is_kafkas_own() -> None:
    assert Dissector().names.up_to(AT_THE_END).get(METADATA_TOPIC_ID) == METADATA_TOPIC


def test_a_reset_connection_is_forgotten_when_it_was_silent() -> None:
    dissector = Dissector()
    one = talk(1001)
    one._add(one.client, flags=RST)
    run(dissector, renumbered(one.segments))
    events = run(dissector, renumbered(talk(1002).segments, start_ns=LINGER_NS * 2))
    assert [(c.connection, c.end) for c in connections(events)] == [(0, "rst")]


def test_what_only_a_forgotten_connection_brings_to_light_is_numbered_at_the_end() -> None:
    dissector = Dissector()
    cut = Talk(client=endpoint(1, 1001), broker=endpoint(2, 9092))
    ask = request("Metadata", 1, 1, "client", topics=[{"name": "orders"}])
    cut.say(cut.client, len(ask).to_bytes(4, "big") + ask[:-3])
    cut._add(cut.client, flags=RST)
    events = run(dissector, renumbered(cut.segments))
    events += run(dissector, renumbered(talk(1002).segments, start_ns=LINGER_NS * 2))
    assert [(c.connection, c.end) for c in connections(events)] == [(0, "rst")]
    events += dissector.close()
    assert [(e.number, e.connection) for e in exchanges(events)] == [(1, 1), (2, 0)]


def test_a_name_told_by_a_request_counts_before_its_response_comes() -> None:
    names = TopicNames()
    names.learn("id", "later", 20)
    names.learn("id", "orders", 10)
    assert names.up_to(9).get("id") is None
    assert names.up_to(10).get("id") == "orders"


def test_what_is_handed_out_is_nobody_elses() -> None:
    dissector = Dissector(briefs=Interest())
    one = talk(1001).close()
    for segment in [*one.segments, *talk(1002).segments]:
        found: Any = dissector.feed(segment)
        assert "mine" not in found
        if isinstance(found, list):
            found.append("mine")


def test_numbers_may_be_given_by_somebody_else() -> None:
    class Tens(Numbering):
        def connection(self, packet: int) -> int:
            return packet * 10

        def exchange(self, begun: Exchange | Brief) -> int:
            return super().exchange(begun) * 10

    dissector = Dissector(numbering=Tens())
    events = run(dissector, renumbered(talk(1001).segments, talk(1002).segments))
    first, second = exchanges(events)
    begins = len(talk(1001).segments) + 1
    assert [(e.number, e.connection) for e in (first, second)] == [(10, 10), (20, begins * 10)]


def test_time_that_passes_elsewhere_forgets_what_is_over() -> None:
    dissector = Dissector()
    segments = renumbered(talk(1001).close().segments)
    assert connections(run(dissector, segments)) == []
    last_ns = segments[-1].timestamp_ns
    assert dissector.feed(last_ns + LINGER_NS) == []
    assert dissector.remembered == 1
    (row,) = dissector.feed(last_ns + LINGER_NS + 1)
    assert isinstance(row, Connection)
    assert (row.end, dissector.remembered) == ("fin", 0)


def test_a_clock_that_ran_ahead_does_not_keep_others() -> None:
    # The first connection closed at a time that is an hour ahead. The second must not linger longer because
    # of it.
    ahead = [s._replace(timestamp_ns=s.timestamp_ns + 60 * LINGER_NS) for s in talk(1001).close().segments]
    other = talk(1002).close().segments
    segments = [s._replace(packet=at) for at, s in enumerate([*ahead, *other], 1)]
    dissector = Dissector()
    run(dissector, segments)
    (row,) = connections([*dissector.feed(other[-1].timestamp_ns + LINGER_NS + 1)])
    assert row.connection == 1


def test_a_clock_that_ran_ahead_is_forgotten_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later closes are appended to the others again, without a search for their place."""
    searched: list[object] = []
    monkeypatch.setattr("kdissect.dissect.insort", lambda waiting, entry: searched.append(entry))
    ahead = [s._replace(timestamp_ns=s.timestamp_ns + 60 * LINGER_NS) for s in talk(1001).close().segments]
    dissector = Dissector()
    run(dissector, ahead)
    assert connections([*dissector.feed(ahead[-1].timestamp_ns + LINGER_NS + 1)])
    run(dissector, renumbered(talk(1002).close().segments))
    assert not searched
    assert len(dissector._lingering) == 1


def test_a_connection_that_goes_on_after_its_end_and_ends_again_waits_once() -> None:
    dissector = Dissector()
    one = talk(1001).close()
    for _ in range(3):
        one.next = {who: number - 1 for who, number in one.next.items()}  # more data where the FINs were
        one.say(one.client, b"x").say(one.broker, b"y").close()
    run(dissector, [segment._replace(timestamp_ns=0) for segment in one.segments])
    assert len(dissector._lingering) == 1
    (row,) = connections([*dissector.feed(LINGER_NS + 1)])
    assert row.packets == len(one.segments)


def as_packets(segments: list[Segment]) -> list[Packet]:
    """The segments, each in a packet of Ethernet and IPv4."""
    found = []
    for at, each in enumerate(segments, 1):
        tcp = struct.pack(">IIBBHHH", each.seq, each.ack or 0, 5 << 4, each.flags, 1_000, 0, 0) + each.payload
        size = 20 + 4 + len(tcp)
        addresses = each.source[:4] + each.destination[:4]
        head = struct.pack(">BBHHHBBH", 0x45, 0, size, at & 0xFFFF, 0, 64, 6, 0) + addresses
        data = bytes(12) + b"\x08\0" + head + each.source[4:] + each.destination[4:] + tcp
        found.append(Packet(at, each.timestamp_ns, 1, data, len(data)))
    return found


def test_what_comes_together_is_handed_out_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    talks = Talk()
    for correlation in range(50):
        talks = talks.ask(request("Metadata", 1, correlation, topics=None)).answer(
            response("Metadata", 1, correlation, **METADATA_RESPONSE_1)
        )
    items: list[Packet | Fault] = [*as_packets(talks.close().segments)]
    alone = [event for item in items for event in Dissector().feed(item)]
    assert alone == []  # each one alone, with nothing before it
    machine = Dissector()
    expected = [repr(event) for item in items for event in machine.feed(item)]
    whole = list(Dissector().feed_all(items))
    assert [repr(event) for events in whole for event in events] == expected
    assert len(whole) == 1
    monkeypatch.setattr(kdissect.dissect, "PART_BYTES", 500)
    parts = list(Dissector().feed_all(items))
    assert [repr(event) for events in parts for event in events] == expected
    assert len(parts) > 5


def test_what_is_wrong_with_a_file_comes_behind_what_was_before_it() -> None:
    wrong = Fault("file", "bad-block", "damaged")
    items: list[Packet | Fault] = [*as_packets(talk(1).close().segments)]
    parts = list(Dissector().feed_all([*items, wrong, *items]))
    assert [wrong] in parts
    assert all(wrong not in events for events in parts if events != [wrong])
    assert any(isinstance(event, Exchange) for event in parts[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["share-group-kafka43.pcapng", "consumer-group-kip848.pcapng"])
def test_names_of_topics_do_not_depend_on_when_they_are_looked_up(name: str, seed: int) -> None:
    random = Random(seed)
    packets = [each for each in read_packets([CAPTURES / name]) if random.random() > 0.04]
    soon, late = Dissector(), Dissector()
    at_once = [each.topics for item in packets for each in soon.feed(item) if isinstance(each, Exchange)]
    events = [each for part in late.feed_all(packets) for each in part]
    assert [each.topics for each in events if isinstance(each, Exchange)] == at_once
