"""Conversation: what each shape of a connection must yield."""

from __future__ import annotations

import pickle
import random
import tracemalloc
from base64 import b64encode, urlsafe_b64encode
from time import process_time
from typing import Any

import pytest

from kdissect.limits import DEFAULTS
from kdissect.model import SYN
from kdissect.session.briefs import Brief, Interest, PairLayout
from kdissect.session.conversation import Conversation
from kdissect.session.expected import Expected
from kdissect.session.pairing import Completed
from kdissect.session.quick import PairLayouts, QuickSession
from kdissect.tcp.copies import Copies
from kdissect.tcp.duplex import Duplex
from kdissect.tcp.reassembly import Reassembler, RoundTrips
from tests.kafka import Talk, framed, request, response
from tests.session.runs import completed, metadata, metadata_answer, run
from tests.tcp.segments import BROKER, CLIENT

PLAIN = {bool, bytes, dict, float, frozenset, int, set, str}
"""Types whose values can be compared."""


def test_a_request_and_its_response_are_one_exchange() -> None:
    (exchange,), faults, connection = run(Talk().ask(metadata(7)).answer(metadata_answer(7)).segments)
    assert (exchange.api, exchange.api_version, exchange.correlation_id) == ("Metadata", 1, 7)
    assert exchange.client_id == "test"
    assert exchange.response is not None
    assert exchange.response.body()["topics"][0]["name"] == "orders"
    assert exchange.topics == ["orders"]
    assert (exchange.client, exchange.broker) == ("10.0.0.1:50000", "10.0.0.2:19092")
    assert exchange.latency_ns == 1_000_000
    assert not faults
    assert (connection.protocol, connection.exchanges, connection.end) == ("kafka", 1, "open")


def test_the_roles_come_from_the_bytes_not_from_ports_or_from_who_opened() -> None:
    talk = Talk(client=BROKER, broker=CLIENT).ask(metadata(1)).answer(metadata_answer(1))
    (exchange,), _, _ = run(talk.segments)
    assert (exchange.client, exchange.broker) == ("10.0.0.2:19092", "10.0.0.1:50000")
    swapped = Talk()
    swapped.client, swapped.broker = swapped.broker, swapped.client  # the broker's side sent the SYN
    (exchange,), _, _ = run(swapped.ask(metadata(1)).answer(metadata_answer(1)).segments)
    assert exchange.client == "10.0.0.2:19092"


def test_pipelined_requests_are_matched_by_correlation_id() -> None:
    talk = Talk().ask(metadata(1), metadata(2), metadata(3))
    talk.answer(metadata_answer(1), metadata_answer(2)).answer(metadata_answer(3))
    exchanges, faults, _ = run(talk.segments)
    assert [e.correlation_id for e in exchanges] == [1, 2, 3]
    assert all(e.response and e.response.correlation_id == e.correlation_id for e in exchanges)
    assert not faults


def test_a_response_out_of_order_is_matched_and_reported() -> None:
    talk = Talk().ask(metadata(1), metadata(2)).answer(metadata_answer(2), metadata_answer(1))
    exchanges, _, _ = run(talk.segments)
    assert all(e.response and e.response.correlation_id == e.correlation_id for e in exchanges)
    assert [[f.kind for f in e.faults] for e in exchanges] == [[], ["out-of-order"]]


def test_among_equal_correlation_ids_the_oldest_request_is_answered() -> None:
    talk = Talk().ask(metadata(5), request("ListGroups", 0, 5))
    talk.answer(metadata_answer(5), response("ListGroups", 0, 5, errorCode=0, groups=[]))
    exchanges, _, _ = run(talk.segments)
    assert [e.api for e in exchanges] == ["Metadata", "ListGroups"]
    assert all(e.response for e in exchanges)
    assert [f.kind for f in exchanges[1].faults] == ["duplicate-correlation"]


def test_w1_a_produce_request_with_acks_0_has_no_response_in_any_version() -> None:
    for version in range(12):
        body = {"transactionalId": None} if version >= 3 else {}
        ask = [
            request("Produce", version, 1, acks=acks, timeoutMs=1, topicData=[], **body) for acks in (0, 1)
        ]
        answer = response("Produce", version, 1, responses=[], **({"throttleTimeMs": 0} if version else {}))
        exchanges, faults, _ = run(Talk().ask(*ask).answer(answer).segments)
        assert [e.missing for e in exchanges] == ["acks=0", None], version
        assert exchanges[1].response is not None
        assert not faults


def test_w7_an_unsupported_api_versions_request_is_answered_in_version_0() -> None:
    ask = request("ApiVersions", 3, 1, clientSoftwareName="c", clientSoftwareVersion="1")
    answer = response(
        "ApiVersions", 0, 1, errorCode=35, apiKeys=[{"apiKey": 18, "minVersion": 0, "maxVersion": 2}]
    )
    (exchange,), _, connection = run(Talk().ask(ask).answer(answer).segments)
    assert exchange.error == "UNSUPPORTED_VERSION"
    assert exchange.response is not None
    assert exchange.response.body()["apiKeys"] == [{"apiKey": 18, "minVersion": 0, "maxVersion": 2}]
    assert exchange.faults == []
    assert connection.software == "c 1"


def test_w8_tokens_after_sasl_handshake_v0_are_named_and_what_follows_is_decoded() -> None:
    talk = Talk()
    talk.ask(request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    talk.answer(response("SaslHandshake", 0, 1, errorCode=0, mechanisms=["PLAIN"]))
    talk.ask(b"\0alice\0secret").answer(b"")
    talk.ask(metadata(2)).answer(metadata_answer(2))
    exchanges, faults, connection = run(talk.segments)
    assert [e.api for e in exchanges] == ["SaslHandshake", "SaslToken", "Metadata"]
    token = exchanges[1]
    assert (token.api_key, token.api_version, token.correlation_id) == (None, None, None)
    assert token.response is not None
    assert token.response.frame.size == 0
    assert exchanges[2].response is not None
    assert not faults
    assert connection.sasl is not None
    assert connection.sasl["mechanism"] == "PLAIN"
    assert connection.sasl["principal"] == "alice"


def test_tokens_of_several_rounds_are_paired_in_order() -> None:
    talk = Talk()
    talk.ask(request("SaslHandshake", 0, 1, mechanism="SCRAM-SHA-256"))
    talk.answer(response("SaslHandshake", 0, 1, errorCode=0, mechanisms=["SCRAM-SHA-256"]))
    talk.ask(b"n,,n=bob,r=nonce").answer(b"r=nonce2,s=salt,i=4096").ask(b"c=biws,r=nonce2,p=proof").answer(
        b"v=sig"
    )
    talk.ask(metadata(2)).answer(metadata_answer(2))
    exchanges, _, connection = run(talk.segments)
    assert [e.api for e in exchanges] == ["SaslHandshake", "SaslToken", "SaslToken", "Metadata"]
    assert all(e.response for e in exchanges)
    assert connection.sasl is not None
    assert connection.sasl["principal"] == "bob"


def test_bare_gssapi_tokens_are_named_and_what_follows_is_decoded() -> None:
    talk = Talk().ask(b"\x60\x82\x02\x00" + bytes(range(200))).answer(b"\x60\x10" + bytes(16))
    talk.ask(b"").answer(b"\x05\x04\x01\xff" + bytes(28)).ask(b"\x05\x04\x00\xff" + bytes(28))
    talk.ask(metadata(0)).answer(metadata_answer(0))
    exchanges, faults, connection = run(talk.segments)
    assert [e.api for e in exchanges] == ["SaslToken", "SaslToken", "SaslToken", "Metadata"]
    assert exchanges[3].response is not None
    assert not faults
    assert connection.protocol == "kafka"


def test_an_unknown_version_shows_its_header_and_says_that_the_body_is_opaque() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1))
    newer = (3).to_bytes(2, "big") + (99).to_bytes(2, "big") + metadata(2)[4:]
    talk.ask(newer).answer((2).to_bytes(4, "big") + b"\0whatever")
    exchanges, _, _ = run(talk.segments)
    assert exchanges[1].api_version == 99
    assert exchanges[1].client_id == "test"
    assert exchanges[1].request is not None
    assert "unknown version 99" in (exchanges[1].request.decoded().opaque or "")
    assert {f.kind for f in exchanges[1].faults} == {"unknown-api"}


def test_an_unknown_api_is_shown_by_its_number() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1))
    talk.ask((4711).to_bytes(2, "big") + bytes(2) + (2).to_bytes(4, "big") + b"\0\x04test" + b"body")
    exchanges, _, _ = run(talk.segments)
    assert exchanges[1].api == "Unknown(4711)"
    assert exchanges[1].correlation_id == 2


def test_a_request_without_response_says_why() -> None:
    (open_end,), _, _ = run(Talk().ask(metadata(1)).segments)
    assert open_end.missing == "capture ended"
    (closed,), _, _ = run(Talk().ask(metadata(1)).close().segments)
    assert closed.missing == "connection closed"


def test_a_response_without_request_says_so() -> None:
    talk = Talk(syn=False).answer(metadata_answer(1)).ask(metadata(2)).answer(metadata_answer(2))
    exchanges, _, _ = run(talk.segments)
    by_id = {e.correlation_id: e for e in exchanges}
    assert (by_id[1].api, by_id[1].missing) == (None, "not captured")
    assert (by_id[2].api, by_id[2].missing) == ("Metadata", None)


def test_a_capture_that_begins_inside_a_message_finds_the_next() -> None:
    talk = Talk(syn=False, mss=50)
    for i in range(4):
        talk.ask(metadata(i)).answer(metadata_answer(i))
    exchanges, _, _ = run([s for s in talk.segments if s.payload][2:])
    assert [(e.correlation_id, e.missing) for e in exchanges][-3:] == [(1, None), (2, None), (3, None)]


def test_an_answer_in_bytes_that_were_skipped_is_no_broken_order() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1))
    whole = talk.segments[-1]
    talk.segments[-1] = whole._replace(payload=b"\xff" * len(whole.payload))
    for number in (2, 3, 4):
        talk.ask(metadata(number)).answer(metadata_answer(number))
    exchanges, faults, _ = run(talk.segments)
    assert [fault.kind for fault in faults] == ["bad-size", "skipped"]
    assert {each.correlation_id: each.missing for each in exchanges} == {
        1: "skipped",
        2: None,
        3: None,
        4: None,
    }
    assert not any(each.faults for each in exchanges)


def test_the_rest_of_a_cut_answer_holds_no_other() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1))
    whole = talk.segments.pop()
    middle = len(whole.payload) // 2
    first = whole._replace(payload=whole.payload[: middle - 5], length=middle)
    talk.segments.append(first)
    talk.ask(metadata(2))
    talk.segments[-1] = talk.segments[-1]._replace(ack=whole.seq + middle)
    rest = whole._replace(
        payload=whole.payload[middle:], length=whole.length - middle, seq=whole.seq + middle
    )
    talk.segments.append(rest._replace(packet=talk.segments[-1].packet + 1))
    exchanges, faults, _ = run(talk.segments)
    assert [fault.kind for fault in faults] == ["gap", "skipped"]
    assert [(each.correlation_id, each.missing) for each in exchanges] == [(1, "gap"), (2, "capture ended")]


def test_librdkafkas_trailing_bytes_are_a_remainder_and_no_fault() -> None:
    ask = request("ApiVersions", 0, 1, "rdkafka") + b"\0\0\0\0"
    talk = Talk().ask(ask).answer(response("ApiVersions", 0, 1, errorCode=0, apiKeys=[]))
    talk.ask(metadata(2)).answer(metadata_answer(2))
    exchanges, _, _ = run(talk.segments)
    assert [e.api for e in exchanges] == ["ApiVersions", "Metadata"]
    assert exchanges[0].request is not None
    assert exchanges[0].request.decoded().remainder == b"\0\0\0\0"
    assert exchanges[0].request.decoded().quirk is not None
    assert exchanges[0].faults == []


def test_other_protocols_on_any_port_give_no_exchange() -> None:
    greetings = {
        "http": b"GET /metrics HTTP/1.1\r\nHost: broker:9092\r\n\r\n",
        "tls": bytes.fromhex("16030100c8010000c40303") + bytes(range(190)),
        "unknown": b"*1\r\n$4\r\nPING\r\n",
    }
    for protocol, greeting in greetings.items():
        talk = Talk().say(CLIENT, greeting).say(BROKER, b"+PONG\r\n")
        exchanges, _, connection = run(talk.segments)
        assert exchanges == []
        assert connection.protocol == protocol
        assert connection.skipped_bytes == len(greeting) + 7


def test_postgresql_is_not_kafka() -> None:
    startup = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0"
    talk = Talk().say(CLIENT, (len(startup) + 4).to_bytes(4, "big") + startup)
    talk.say(BROKER, b"R\0\0\0\x08\0\0\0\0S\0\0\0\x16application_name\0\0Z\0\0\0\x05I")
    talk.say(CLIENT, b"Q\0\0\0\x0dselect 1\0")
    exchanges, _, connection = run(talk.segments)
    assert exchanges == []
    assert connection.protocol == "unknown"


def test_random_bytes_are_not_kafka() -> None:
    randomly = random.Random(4)
    for size in (10, 1000, 100_000):
        talk = Talk().say(CLIENT, randomly.randbytes(size)).say(BROKER, randomly.randbytes(size))
        exchanges, _, connection = run(talk.segments)
        assert exchanges == []
        assert connection.protocol == "unknown"


def test_a_lost_response_costs_only_itself() -> None:
    talk = Talk()
    for i in range(30):
        talk.ask(metadata(i)).answer(metadata_answer(i))
    answers = [s for s in talk.segments if s.source == BROKER and s.payload]
    segments = [s for s in talk.segments if s is not answers[10]]
    exchanges, faults, connection = run(segments)
    assert [e.missing for e in exchanges] == [None] * 10 + ["gap"] + [None] * 19
    assert connection.gaps == 1
    assert connection.gap_bytes == len(answers[10].payload)
    assert "gap" in {f.kind for f in faults}


def test_a_lost_request_costs_only_itself() -> None:
    talk = Talk()
    for i in range(30):
        talk.ask(metadata(i)).answer(metadata_answer(i))
    asks = [s for s in talk.segments if s.source == CLIENT and s.payload]
    exchanges, _, _ = run([s for s in talk.segments if s is not asks[10]])
    missing = {e.correlation_id: (e.missing, e.request is None) for e in exchanges}
    assert missing == {i: ("gap", True) if i == 10 else (None, False) for i in range(30)}


def test_more_unanswered_requests_than_the_limit_are_evicted_and_reported() -> None:
    talk = Talk()
    for i in range(1100):
        talk.ask(metadata(i))
    exchanges, _, _ = run(talk.segments)
    evicted = [e for e in exchanges if e.missing == "evicted"]
    assert len(evicted) == 1100 - 1024
    assert {f.kind for e in evicted for f in e.faults} == {"too-many-pending"}


def test_responses_alone_are_recognised_by_their_chain_and_marked_as_inferred() -> None:
    talk = Talk()
    for i in range(5):
        talk.ask(metadata(i)).answer(metadata_answer(i))
    exchanges, _, connection = run([s for s in talk.segments if s.source == BROKER])
    assert len(exchanges) == 5
    assert all(e.inferred and e.inferred.startswith("role") for e in exchanges)
    assert connection.broker == "10.0.0.2:19092"


def test_the_fold_can_be_stored_between_any_two_segments() -> None:
    talk = Talk(mss=20).ask(metadata(1), metadata(2)).answer(metadata_answer(1), metadata_answer(2)).close()
    conversation = Conversation(0, talk.segments[0])
    done = 0
    for segment in talk.segments:
        conversation = pickle.loads(pickle.dumps(conversation))
        done += sum(isinstance(e, Completed) for e in conversation.feed(segment))
    assert done == 2


@pytest.mark.parametrize("briefs", [None, Interest()])
def test_every_value_comes_back_from_a_pickle(briefs: Interest | None) -> None:
    forms = None if briefs is None else PairLayouts(briefs)
    talk = Talk(mss=20).ask(metadata(1), metadata(2)).answer(metadata_answer(1)).ask(metadata(3))
    talk.answer(metadata_answer(2)).close()
    whole = talk.segments
    lost = [*whole[:12], *whole[14:]]
    quick_ends = 0
    for segments in (whole, lost):
        conversation = Conversation(7, segments[0], forms=forms)
        for segment in segments:
            conversation.feed(segment)
            again: Conversation = pickle.loads(pickle.dumps(conversation))
            assert values(again) == values(conversation)
            quick, streams = again._quick, again._duplex.streams
            if quick is not None:
                assert quick._requests is streams[quick.client]
                assert quick._responses is streams[1 - quick.client]
        quick_ends += conversation._quick is not None
    assert quick_ends == (briefs is not None)


def values(thing: Any) -> Any:
    """All values of an object, and of the objects in it."""
    if isinstance(thing, list | tuple):
        return [values(each) for each in thing]
    if isinstance(thing, Copies | RoundTrips | PairLayout | PairLayouts):
        return thing.__reduce__()[1]
    if isinstance(thing, Conversation | Duplex | Reassembler | QuickSession | Expected | Brief):
        return {name: values(getattr(thing, name)) for name in type(thing).__slots__}
    return thing if thing is None or type(thing) in PLAIN else type(thing)


def test_the_size_of_segments_does_not_matter() -> None:
    def outcome(mss: int) -> list[tuple[object, ...]]:
        talk = Talk(mss=mss).ask(metadata(1), metadata(2)).answer(metadata_answer(1), metadata_answer(2))
        return [(e.correlation_id, e.api, e.missing, e.topics) for e in run(talk.segments)[0]]

    assert all(outcome(mss) == outcome(1460) for mss in (1, 2, 3, 7, 50))


def test_framed_helper_prefixes_sizes() -> None:
    assert framed(b"ab", b"") == b"\0\0\0\2ab\0\0\0\0"


def test_data_after_both_fins_is_not_lost() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).close()
    talk.next = {who: seq - 1 for who, seq in talk.next.items()}  # the FINs were forged
    talk.ask(metadata(2)).answer(metadata_answer(2))
    exchanges, _, connection = run(talk.segments)
    assert [(e.correlation_id, e.missing) for e in exchanges] == [(1, None), (2, None)]
    assert connection.exchanges == 2


def test_a_request_after_both_fins_is_given_up_at_the_end() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).close()
    talk.next = {who: seq - 1 for who, seq in talk.next.items()}
    exchanges, _, _ = run(talk.ask(metadata(2)).segments)
    assert [(e.correlation_id, e.missing) for e in exchanges] == [(1, None), (2, "connection closed")]


def test_a_token_that_would_exhaust_a_parser_costs_only_the_principal() -> None:
    deep = urlsafe_b64encode(b"[" * 20_000)
    talk = Talk().ask(request("SaslHandshake", 1, 1, mechanism="OAUTHBEARER"))
    talk.answer(response("SaslHandshake", 1, 1, errorCode=0, mechanisms=["OAUTHBEARER"]))
    token = b"n,,\x01auth=Bearer x." + deep + b".y\x01\x01"
    talk.ask(request("SaslAuthenticate", 1, 2, authBytes=b64(token)))
    exchanges, _, connection = run(talk.segments)
    assert len(exchanges) == 2
    assert connection.sasl is not None
    assert connection.sasl["principal"] is None


def b64(data: bytes) -> str:
    return b64encode(data).decode()


def test_a_client_id_that_is_not_utf8_is_a_fault() -> None:
    broken = metadata(2)[:10] + metadata(2)[10:].replace(b"test", b"te\xff\xfe")
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).ask(broken)
    exchanges, _, _ = run(talk.segments)
    assert [f.kind for f in exchanges[1].faults] == ["not-utf8"]


def test_a_chain_of_tokens_is_looked_at_once() -> None:
    def seconds(size: int) -> float:
        talk = Talk(mss=1)
        talk.say(CLIENT, b"\0\0\0\x04\x60abc" + bytes(size))
        before = process_time()
        run(talk.segments)
        return process_time() - before

    least, most = (min(seconds(size) for _ in range(3)) for size in (2000, 8000))
    assert most < 10 * least, "four times the bytes: 16 times the work, were it quadratic"


def test_more_held_requests_than_may_wait_are_answered_all_the_same() -> None:
    """A capture that began in mid-stream, and in which no segment begins with a request: they are held back
    until the limit, and then all at once found to be answered."""
    count = 3_000
    talk = Talk(syn=False)
    asks = [framed(request("ListGroups", 0, i, client_id=None)) for i in range(count)]
    answers = [framed(response("ListGroups", 0, i, errorCode=0, groups=[])) for i in range(count)]
    tail = b"end"  # of a request from before the capture
    for start in range(0, count, 100):
        said = tail + b"".join(asks[start : start + 100])
        talk.say(talk.client, said[:-5])
        tail = said[-5:]
        talk.say(talk.broker, b"".join(answers[max(0, start - 1) : start + 99]))
    talk.say(talk.client, tail)
    talk.say(talk.broker, answers[-1])
    size = sum(len(segment.payload) for segment in talk.segments)
    exchanges, _, _ = run(talk.segments, DEFAULTS._replace(settle_bytes=size))
    assert {e.missing for e in exchanges} == {None}
    assert [e.correlation_id for e in exchanges] == list(range(count))
    assert not any(e.faults for e in exchanges)


def test_what_a_connection_speaks_is_settled_after_64_kib() -> None:
    said = random.Random(7).randbytes(80_000)
    talk = Talk(syn=False).say(CLIENT, said)
    conversation = Conversation(0, talk.segments[0])
    for segment in talk.segments:
        conversation.feed(segment)
    row = conversation.summary()
    assert (row.protocol, row.skipped_bytes) == ("unknown", len(said)), "nothing is held back any more"


def test_the_hole_of_a_lost_response_is_given_up_after_few_segments() -> None:
    talk = Talk()
    for i in range(30):
        talk.ask(metadata(i)).answer(metadata_answer(i))
    answers = [s for s in talk.segments if s.source == BROKER and s.payload]
    lost = answers[10]
    conversation = Conversation(0, talk.segments[0])
    done = 0
    for segment in talk.segments:
        if segment is lost:
            continue
        done += len(completed(conversation.feed(segment)))
        if segment.packet == lost.packet + 20:
            break
    assert done > 15, "what came after the hole is not held back for long"


def test_a_connection_on_which_nothing_is_said_is_a_row_without_exchanges() -> None:
    talk = Talk()
    opening = [s for s in talk.segments if s.flags & SYN][:1]
    exchanges, faults, row = run(opening)
    assert (exchanges, faults) == ([], [])
    assert (row.protocol, row.packets, row.bytes_to_broker, row.exchanges) == ("unknown", 1, 0, 0)
    assert (row.sasl, row.client_id, row.software) == (None, None, None)


def test_a_scan_of_ports_costs_little_memory_for_each_of_them() -> None:
    syn = Talk().segments[0]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [Conversation(number, syn) for number in range(1_000)]
        for conversation in kept:
            conversation.feed(syn)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(kept) < 2_000


def test_a_response_that_a_gap_cut_is_there_and_says_why_it_is_not_whole() -> None:
    talk = (
        Talk(mss=40).ask(metadata(1)).answer(metadata_answer(1)).ask(metadata(2)).answer(metadata_answer(2))
    )
    answers = [s for s in talk.segments if s.source == BROKER and s.payload]
    segments = [s for s in talk.segments if s is not answers[1]]
    cut, whole = run(segments)[0]
    assert cut.response is not None
    assert (cut.response.is_cut, cut.missing) == (True, "gap")
    assert [f.kind for f in cut.faults] == ["cut-frame"]
    assert (whole.correlation_id, whole.missing) == (2, None)


def test_acknowledged_numbers_after_a_fin_are_not_missing_bytes() -> None:
    *segments, last = Talk().ask(metadata(1)).answer(metadata_answer(1)).close().segments
    assert last.ack is not None
    _, faults, connection = run([*segments, last._replace(ack=last.ack + 9)])
    assert not faults
    assert (connection.gap_bytes, connection.end) == (0, "fin")


def test_the_limits_of_the_user_hold_for_the_messages() -> None:
    names = [{"name": f"topic-{i}"} for i in range(20)]
    talk = Talk().ask(request("Metadata", 1, 1, topics=names)).answer(metadata_answer(1))
    (exchange,), _, _ = run(talk.segments, DEFAULTS._replace(elements=10))
    assert exchange.request is not None
    assert [(f.kind, f.message) for f in exchange.faults] == [
        ("too-many-elements", "announces 20 elements, but the limit is 10")
    ]


def test_what_looks_like_kafka_and_is_not_taken_for_it_is_told_once() -> None:
    broken = request("Metadata", 1, 1, topics=[])[:-4] + b"\x7f\xff\xff\xff"
    exchanges, (told,), connection = run(Talk().ask(broken).ask(broken).close().segments)
    assert exchanges == []
    assert (connection.protocol, connection.skipped_bytes) == ("unknown", 2 * (len(broken) + 4))
    assert (told.layer, told.kind, told.connection) == ("session", "broken-request", 0)
    assert (told.packet, told.offset) == (4, len(broken) - 4)
    assert told.message.startswith("from 10.0.0.1:50000: this looks like Metadata v1 of the client 'test': ")
    assert told.message.endswith("; kdissect does not treat it as Kafka (-d tcp.port==19092,kafka does)")


def test_a_broken_first_request_does_not_cost_those_behind_it() -> None:
    broken = request("Metadata", 1, 1, topics=[])[:-4] + b"\x7f\xff\xff\xff"
    talk = Talk().ask(broken).ask(metadata(2)).answer(metadata_answer(2))
    exchanges, faults, connection = run(talk.segments)
    assert [exchange.correlation_id for exchange in exchanges] == [1, 2]
    assert [[fault.kind for fault in exchange.faults] for exchange in exchanges] == [
        ["truncated"],
        ["out-of-order"],
    ]
    assert (faults, connection.protocol) == ([], "kafka")
