"""Dissector: many connections, numbers and names over all of them, and what is forgotten when."""

from __future__ import annotations

from kdissect.dissect import AT_THE_END, LINGER_NS, Dissector, Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import RST, Endpoint, Segment
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID, TopicNames
from kdissect.session.conversation import Connection
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


def run(dissector: Dissector, segments: list[Segment]) -> list[Event]:
    out: list[Event] = []
    for segment in segments:
        out += dissector.feed_segment(segment)
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


def test_more_connections_than_the_limit_evict_the_longest_silent() -> None:
    dissector = Dissector(DEFAULTS._replace(connections=20))
    ask = request("Metadata", 1, 1, topics=[])
    talks = [Talk(client=endpoint(1, 1000 + i), broker=endpoint(2, 9092)).ask(ask) for i in range(25)]
    events = run(dissector, renumbered(*(t.segments for t in talks)))
    assert [c.connection for c in connections(events)] == [0, 1, 2, 3, 4, 5]
    assert {c.end for c in connections(events)} == {"evicted"}
    assert [e.missing for e in exchanges(events)] == ["evicted"] * 6


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
