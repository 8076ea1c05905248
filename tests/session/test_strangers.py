"""Connections of clients that are newer than the definitions, or a vendor's: they are Kafka's all the same,
as far as what they say shows it."""

from __future__ import annotations

import pickle

import pytest

from kdissect.limits import DEFAULTS
from kdissect.protocol import apis
from kdissect.session.chain import PAIRS, STRANGE_PAIRS, USUAL_STRANGE_PAIRS
from kdissect.session.conversation import Conversation
from tests.kafka import Talk, framed, request
from tests.session.runs import completed, metadata, metadata_answer, run
from tests.session.strangers import VENDOR_KEY, strange_talk, stranger, stranger_answer
from tests.tcp.segments import BROKER, CLIENT

USUAL = BROKER[:-2] + (9092).to_bytes(2, "big")


def test_a_request_of_an_unknown_api_does_not_cost_those_behind_it() -> None:
    talk = Talk().ask(stranger(1, VENDOR_KEY, 0)).answer(stranger_answer(1))
    talk.ask(metadata(2)).answer(metadata_answer(2))
    exchanges, faults, connection = run(talk.segments)
    assert [(e.api, e.correlation_id, e.missing) for e in exchanges] == [
        ("Unknown(10001)", 1, None),
        ("Metadata", 2, None),
    ]
    assert (faults, connection.protocol) == ([], "kafka")


def test_requests_of_a_newer_version_do_not_cost_those_behind_them() -> None:
    talk = strange_talk(28)
    talk.ask(metadata(29)).answer(metadata_answer(29))
    exchanges, faults, _ = run(talk.segments)
    assert [e.api for e in exchanges] == ["Fetch"] * 28 + ["Metadata"]
    assert all(e.response is not None for e in exchanges)
    assert {fault.kind for e in exchanges[:28] for fault in e.faults} == {"unknown-api"}
    assert faults == []


def told_after(ids: list[int], clients: list[str] | None = None) -> int | None:
    """After how many of these exchanges it was told that they are Kafka; None if not."""
    for count in range(1, len(ids) + 1):
        talk = Talk()
        for at, correlation in enumerate(ids[:count]):
            client_id = "app" if clients is None else clients[at]
            talk.ask(stranger(correlation % (1 << 32), client_id=client_id))
            talk.answer(stranger_answer(correlation % (1 << 32)))
        if run(talk.segments)[2].protocol == "kafka":
            return count
    return None


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([0, 1, 2], 3),
        ([-1, 0, 1], 3),
        ([(1 << 31) - 2, (1 << 31) - 1, -1 << 31, 1 - (1 << 31)], 3),
        ([5, 6, 2, 3, 4], 5),
        ([0, 1, -1 << 31, 1 - (1 << 31)], 3),
        ([0, 1, 2 - (1 << 31), 3 - (1 << 31), 4 - (1 << 31)], 5),
        ([0, 0, 1, 2], None),
        ([1, 2, 2, 3], None),
    ],
)
def test_correlation_ids_count_up_also_over_the_largest_number(ids: list[int], told: int | None) -> None:
    assert told_after(ids) == told


@pytest.mark.parametrize("clients", [["app", "app", "apple"], ["apple", "app", "app"], ["app", "app", "apq"]])
def test_requests_of_two_clients_are_no_evidence_together(clients: list[str]) -> None:
    assert told_after([1, 2, 3], clients) is None


@pytest.mark.parametrize("syn", [True, False])
@pytest.mark.parametrize("skipped", range(4))
def test_exchanges_of_a_newer_version_alone_are_seen_from_anywhere(syn: bool, skipped: int) -> None:
    whole = strange_talk(20, syn=syn).segments
    first = skipped if not syn else 0
    exchanges, faults, connection = run(whole[first:])
    assert connection.protocol == "kafka"
    pairs = [e for e in exchanges if e.request is not None and e.response is not None]
    assert len(pairs) == 20 - (first + 1) // 2
    assert all(e.inferred and e.inferred.startswith("role: ") for e in exchanges)
    assert faults == []


def test_apis_that_are_not_known_take_more_exchanges() -> None:
    for count, protocol in ((STRANGE_PAIRS - 1, "unknown"), (STRANGE_PAIRS, "kafka")):
        exchanges, _, connection = run(strange_talk(count, key=VENDOR_KEY, version=3).segments)
        assert connection.protocol == protocol
        assert len(exchanges) == (count if protocol == "kafka" else 0)
    assert run(strange_talk(PAIRS).segments)[2].protocol == "kafka"
    assert run(strange_talk(PAIRS - 1).segments)[2].protocol == "unknown"


def test_the_usual_port_adds_to_the_evidence() -> None:
    def protocol(count: int) -> str:
        talk = Talk(broker=USUAL)
        for correlation in range(count):
            talk.ask(stranger(correlation, VENDOR_KEY, 3)).answer(stranger_answer(correlation))
        return run(talk.segments)[2].protocol

    assert (protocol(USUAL_STRANGE_PAIRS - 1), protocol(USUAL_STRANGE_PAIRS)) == ("unknown", "kafka")


def test_requests_whose_bodies_are_broken_take_more_exchanges() -> None:
    def protocol(count: int) -> str:
        talk = Talk()
        for number in range(count):
            broken = request("Metadata", 1, number, topics=[])[:-4] + b"\x7f\xff\xff\xff"
            talk.ask(broken).answer(stranger_answer(number))
        return run(talk.segments)[2].protocol

    assert (protocol(STRANGE_PAIRS - 1), protocol(STRANGE_PAIRS)) == ("unknown", "kafka")


def test_what_stays_unrecognised_is_told() -> None:
    _, (told,), connection = run(strange_talk(1, key=VENDOR_KEY, version=0).segments)
    assert (told.kind, connection.protocol) == ("broken-request", "unknown")
    assert told.message == (
        "from 10.0.0.1:50000: this looks like Unknown(10001) v0 of the client 'app': unknown API key 10001, "
        "one of Confluent's own (kdissect schema import --vendor confluent JAR imports them); "
        "kdissect does not treat it as Kafka (-d tcp.port==19092,kafka does)"
    )


def test_ids_that_do_not_match_or_stay_the_same_or_another_client_show_nothing() -> None:
    other_ids, same_ids, other_clients, gone_astray = Talk(), Talk(), Talk(), Talk()
    for number in range(20):
        other_ids.ask(stranger(number)).answer(stranger_answer(number + 100))
        same_ids.ask(stranger(7)).answer(stranger_answer(7))
        other_clients.ask(stranger(number, client_id=f"app-{number}")).answer(stranger_answer(number))
        gone_astray.ask(stranger(number)).say(BROKER, framed(stranger_answer(number)) + b"\0")
    for talk in (other_ids, same_ids, other_clients, gone_astray):
        assert run(talk.segments)[2].protocol == "unknown"


def test_an_answer_to_nothing_shows_that_it_is_something_else() -> None:
    talk = strange_talk(PAIRS - 1).answer(stranger_answer(999))
    for number in range(100, 120):
        talk.ask(stranger(number)).answer(stranger_answer(number))
    assert run(talk.segments)[2].protocol == "unknown"


def test_a_response_larger_than_what_is_held_does_not_hide_a_newer_client() -> None:
    talk = Talk(syn=False)
    for number in range(1, 9):
        talk.ask(stranger(number)).answer(stranger_answer(number, bytes(100_000)))
    exchanges, faults, connection = run(talk.segments)
    assert connection.protocol == "kafka"
    whole = [e.correlation_id for e in exchanges if e.request is not None and e.response is not None]
    assert whole == list(range(PAIRS + 1, 9))
    assert {fault.kind for fault in faults} == {"skipped"}
    assert "before it was clear that they are Kafka" in faults[0].message
    told = sum(int(fault.message.split()[0].replace(",", "")) for fault in faults)
    assert told == connection.skipped_bytes


def test_a_capture_that_begins_inside_a_large_response_finds_the_next_request() -> None:
    talk = Talk(syn=False).say(BROKER, bytes(range(256)) * 1_000)
    talk.ask(metadata(2)).answer(metadata_answer(2))
    (exchange,), faults, connection = run(talk.segments)
    assert (exchange.api, exchange.missing) == ("Metadata", None)
    assert connection.protocol == "kafka"
    assert connection.skipped_bytes == 256_000
    assert [fault.kind for fault in faults] == ["skipped"]


def test_a_connection_that_was_seen_from_its_first_byte_and_is_no_kafka_is_left_alone() -> None:
    talk = Talk().say(CLIENT, b"hello\r\n").say(BROKER, b"x" * (DEFAULTS.settle_bytes + 1))
    talk.ask(metadata(2)).answer(metadata_answer(2))
    exchanges, _, connection = run(talk.segments)
    assert (exchanges, connection.protocol) == ([], "unknown")
    assert connection.skipped_bytes == connection.bytes_to_broker + connection.bytes_from_broker


def test_what_a_gap_cuts_is_skipped_once() -> None:
    talk = Talk(syn=False).say(CLIENT, b"hello")
    talk.segments[-1] = talk.segments[-1]._replace(length=13)
    talk.next[CLIENT] += 8
    _, _, connection = run(talk.say(BROKER, b"bye").segments)
    assert (connection.gaps, connection.skipped_bytes) == (1, 8)


def test_nothing_is_held_of_what_is_waited_for() -> None:
    talk = Talk(syn=False).ask(stranger(1)).answer(stranger_answer(1, bytes(1_000_000)))
    conversation = Conversation(0, talk.segments[0])
    most = 0
    for segment in talk.segments:
        conversation.feed(segment)
        most = max(most, conversation.held_bytes)
    assert most < 4 * DEFAULTS.settle_bytes
    assert conversation.held_bytes == 0
    row = conversation.summary()
    assert row.skipped_bytes == row.bytes_to_broker + row.bytes_from_broker


def test_it_can_be_stored_between_any_two_segments() -> None:
    for talk in (strange_talk(6), strange_talk(6, syn=False)):
        conversation = Conversation(0, talk.segments[0])
        for segment in talk.segments:
            conversation = pickle.loads(pickle.dumps(conversation))
            conversation.feed(segment)
        assert conversation.summary().exchanges == 6


@pytest.mark.parametrize("mss", [1, 2, 3, 7, 50])
def test_the_size_of_segments_does_not_matter_where_all_was_captured(mss: int) -> None:
    talk = Talk(mss=mss)
    for number in range(PAIRS):
        talk.ask(stranger(number)).answer(stranger_answer(number))
    exchanges, faults, _ = run(talk.segments)
    assert [e.missing for e in exchanges] == [None] * PAIRS
    assert faults == []


def test_behind_a_gap_a_newer_client_is_found_again() -> None:
    talk = strange_talk(20)
    asks = [s for s in talk.segments if s.source == CLIENT and s.payload]
    answers = [s for s in talk.segments if s.source == BROKER and s.payload]
    exchanges, _, _ = run([s for s in talk.segments if s not in (asks[8], answers[14])])
    missing = {e.correlation_id: e.missing for e in exchanges if e.missing}
    assert missing == {9: "gap", 15: "gap"}


def test_a_number_in_the_midst_of_bytes_is_no_answer_to_an_unknown_request() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).ask(stranger(2))
    noise = b"\xff" * 40 + framed(stranger_answer(2)) + b"\xff" * 40
    talk.say(BROKER, noise)
    exchanges, faults, _ = run(talk.segments)
    assert [e.missing for e in exchanges] == [None, "skipped"]
    assert [fault.kind for fault in faults] == ["bad-size", *["skipped"] * (len(faults) - 1)]


def test_a_newer_version_of_api_versions_that_opens_is_not_waited_for() -> None:
    talk = Talk().ask(stranger(0, apis.API_VERSIONS, apis.versions(apis.API_VERSIONS).stop))
    talk.answer(stranger_answer(0, b"\0\x23\0\0\0\0")).ask(stranger(1)).answer(stranger_answer(1))
    talk.ask(stranger(2)).answer(stranger_answer(2))
    conversation = Conversation(0, talk.segments[0])
    for segment in talk.segments:
        conversation.feed(segment)
    assert conversation.summary().exchanges == PAIRS


def test_bytes_that_old_librdkafka_leaves_behind_are_not_waited_for_and_make_no_conclusion() -> None:
    talk = Talk().ask(request("ApiVersions", 0, 0, "rdkafka") + bytes(4)).answer(stranger_answer(0))
    for number in range(1, PAIRS):
        talk.ask(request("Metadata", 1, number, "rdkafka", topics=[])).answer(metadata_answer(number))
    conversation = Conversation(0, talk.segments[0])
    found = [each for segment in talk.segments for each in completed(conversation.feed(segment))]
    assert [(each.api, each.inferred) for each in found] == [
        ("ApiVersions", None),
        *[("Metadata", None)] * (PAIRS - 1),
    ]
