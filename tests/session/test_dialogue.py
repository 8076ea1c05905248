"""Who asks here? Connections on which the roles turn round."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kdissect.model import Direction
from kdissect.session.conversation import Conversation
from kdissect.session.dialogue import Dialogue
from tests.kafka import Talk, request, response
from tests.session.runs import completed, frame, metadata, metadata_answer, run
from tests.session.strangers import VENDOR_KEY, stranger, stranger_answer
from tests.tcp.segments import BROKER, CLIENT

FETCH: dict[str, Any] = {
    "replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1000, "isolationLevel": 0, "sessionId": 0,
    "sessionEpoch": -1, "forgottenTopicsData": [], "rackId": "",
    "topics": [{"topic": "orders", "partitions": [{"partition": 0, "currentLeaderEpoch": 1, "fetchOffset": 5,
        "lastFetchedEpoch": -1, "logStartOffset": -1, "partitionMaxBytes": 100}]}],
}  # fmt: skip
FETCHED: dict[str, Any] = {
    "throttleTimeMs": 0, "errorCode": 0, "sessionId": 0,
    "responses": [{"topic": "orders", "partitions": [{"partitionIndex": 0, "errorCode": 0,
        "highWatermark": 9, "lastStableOffset": 9, "logStartOffset": 0, "abortedTransactions": [],
        "preferredReadReplica": -1, "records": None}]}],
}  # fmt: skip


def link_metadata(correlation: int) -> bytes:
    return request("Metadata", 1, correlation, "link", topics=[{"name": "orders"}])


def fetch(correlation: int) -> bytes:
    return request("Fetch", 12, correlation, "link", **FETCH)


def fetched(correlation: int) -> bytes:
    return response("Fetch", 12, correlation, **FETCHED)


def linked(syn: bool = True) -> Talk:
    """The source dials and asks a little; then it is asked, on the same connection."""
    talk = Talk(syn=syn)
    talk.ask(metadata(1)).answer(metadata_answer(1))
    talk.ask(stranger(2, VENDOR_KEY, 0, "test")).answer(stranger_answer(2))
    for number in range(20, 25):
        talk.answer(link_metadata(number)).ask(metadata_answer(number))
        talk.answer(fetch(number + 100)).ask(fetched(number + 100))
    return talk


def test_where_the_broker_asks_its_requests_and_their_responses_are_exchanges() -> None:
    exchanges, faults, connection = run(linked().segments)
    assert [(e.api, e.client, e.broker) for e in exchanges[:2]] == [
        ("Metadata", "10.0.0.1:50000", "10.0.0.2:19092"),
        ("Unknown(10001)", "10.0.0.1:50000", "10.0.0.2:19092"),
    ]
    assert [(e.api, e.client, e.broker, e.client_id) for e in exchanges[2:]] == [
        ("Metadata", "10.0.0.2:19092", "10.0.0.1:50000", "link"),
        ("Fetch", "10.0.0.2:19092", "10.0.0.1:50000", "link"),
    ] * 5
    assert all(e.request is not None and e.response is not None and not e.missing for e in exchanges)
    assert [fault.kind for e in exchanges for fault in e.faults] == ["unknown-api"] * 2
    assert exchanges[-1].request.frame.direction is Direction.TO_BROKER  # type: ignore[union-attr]
    assert faults == []
    assert (connection.exchanges, connection.client, connection.client_id) == (12, "10.0.0.1:50000", "test")


def test_a_connection_that_is_seen_only_after_the_roles_turned_has_those_it_shows() -> None:
    whole = linked(syn=False).segments
    exchanges, _, connection = run(whole[4:])
    assert {(e.client, e.broker) for e in exchanges} == {("10.0.0.2:19092", "10.0.0.1:50000")}
    assert (connection.client, connection.exchanges) == ("10.0.0.2:19092", 10)


def test_requests_of_unknown_versions_are_the_brokers_own_where_there_is_nothing_to_answer() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1))
    talk.answer(stranger(40, client_id="link")).ask(stranger_answer(40))
    exchanges, faults, _ = run(talk.segments)
    assert [(e.api, e.client, e.missing) for e in exchanges] == [
        ("Metadata", "10.0.0.1:50000", None),
        ("Fetch", "10.0.0.2:19092", None),
    ]
    assert faults == []


def test_a_response_whose_request_was_lost_is_no_request() -> None:
    talk = linked()
    lost = next(s for s in talk.segments if s.source == BROKER and b"link" in s.payload)
    exchanges, _, _ = run([s for s in talk.segments if s is not lost])
    assert not [e for e in exchanges if e.api == "Produce" or e.missing == "acks=0"]
    alone = [e for e in exchanges if e.request is None]
    assert [(e.correlation_id, e.client, e.missing) for e in alone] == [
        (20, "10.0.0.2:19092", "not captured")
    ]
    assert len(exchanges) == 12


def test_both_ends_may_go_on_asking() -> None:
    talk = linked()
    talk.ask(metadata(3)).answer(fetch(200)).answer(metadata_answer(3)).ask(fetched(200))
    exchanges, faults, _ = run(talk.segments)
    assert [(e.api, e.client[-5:], e.missing) for e in exchanges[-2:]] == [
        ("Metadata", "50000", None),
        ("Fetch", "19092", None),
    ]
    assert faults == []


@pytest.mark.parametrize("side", [CLIENT, BROKER])
def test_behind_a_gap_either_kind_is_found(side: bytes) -> None:
    talk = linked()
    said = [s for s in talk.segments if s.source == side and s.payload]
    exchanges, _, _ = run([s for s in talk.segments if s is not said[6]])
    assert [e.missing for e in exchanges if e.missing] == ["gap"]
    assert len(exchanges) == 12


def test_it_can_be_stored_between_any_two_segments() -> None:
    talk = linked()
    conversation = Conversation(0, talk.segments[0])
    done = 0
    for segment in talk.segments:
        conversation = pickle.loads(pickle.dumps(conversation))
        done += len(completed(conversation.feed(segment)))
    assert done == 12


def test_what_waits_of_either_end_is_given_out_in_the_end() -> None:
    dialogue = Dialogue(0, CLIENT, BROKER)
    dialogue.feed(frame(metadata(1)), 1)
    dialogue.feed(frame(fetch(7), Direction.FROM_BROKER), 2)
    assert dialogue.is_waiting
    assert dialogue.held_bytes() > 0
    assert dialogue.exchanges == 2
    dialogue.end("connection closed")
    left = completed(dialogue.close())
    assert [(e.api, e.missing) for e in left] == [
        ("Metadata", "connection closed"),
        ("Fetch", "connection closed"),
    ]
    assert not dialogue.is_waiting


def test_what_waits_of_either_end_is_given_up() -> None:
    dialogue = Dialogue(0, CLIENT, BROKER)
    dialogue.feed(frame(metadata(1)), 1)
    dialogue.feed(frame(fetch(7), Direction.FROM_BROKER), 2)
    assert [e.missing for e in completed(dialogue.give_up())] == ["evicted", "evicted"]


def test_a_broken_request_of_the_client_stays_one() -> None:
    dialogue = Dialogue(0, CLIENT, BROKER)
    dialogue.feed(frame(metadata(1)), 1)
    broken = request("Metadata", 1, 2, "other", topics=[])[:-4] + b"\x7f\xff\xff\xff"
    dialogue.feed(frame(broken), 2)
    assert [(e.api, e.correlation_id) for e in completed(dialogue.close())] == [
        ("Metadata", 1),
        ("Metadata", 2),
    ]
