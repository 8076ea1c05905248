"""What does a connection speak, and which end is the broker?"""

from __future__ import annotations

from kdissect.limits import DEFAULTS
from kdissect.model import Chunk, Gap
from kdissect.session.recognise import Doubt, Recogniser, Verdict, begins_tls
from tests.kafka import framed, request
from tests.session.runs import metadata, metadata_answer

KAFKA = framed(metadata(7))
BROKEN = framed(request("Metadata", 1, 6, "app", topics=[])[:-4] + b"\x7f\xff\xff\xff")
"""A request whose array announces more than there is."""


def chunk(data: bytes, offset: int = 0) -> Chunk:
    return Chunk(offset, data, 1, 1)


def gap(offset: int) -> Gap:
    return Gap(offset, 10, "lost", 1, 1)


def test_a_whole_request_settles_it_at_once_whoever_opened() -> None:
    for side in (0, 1):
        verdict = Recogniser().feed(side, chunk(KAFKA), True)
        assert verdict is not None
        assert (verdict.protocol, verdict.client, verdict.correlation_id) == ("kafka", side, 7)
        assert verdict.starts[side]
        assert not verdict.starts[1 - side]


def test_a_handshake_record_of_tls_settles_it() -> None:
    for begin, expected in [
        (b"\x16\x03\x01", True),
        (b"\x16\x03\x04\0", True),
        (b"\x16\x03\x05", False),
        (b"\x16\x02\x01", False),
        (b"\x17\x03\x03", False),
        (b"\x16\x03", False),
    ]:
        assert begins_tls(b"-" + begin + b"\x01", 1, 1 + len(begin)) is expected
        assert (Recogniser().feed(0, chunk(begin), True) == Verdict("tls")) is expected


def test_nothing_is_concluded_from_less_than_a_request_until_the_end() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, chunk(KAFKA[:-1]), True) is None
    verdict = recogniser.close()
    assert (verdict.protocol, verdict.client, verdict.correlation_id) == ("kafka", 0, 7)


def test_a_gap_settles_it_by_what_came_before() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, chunk(KAFKA[:-1]), True) is None
    verdict = recogniser.feed(0, gap(len(KAFKA) - 1), True)
    assert verdict is not None
    assert verdict.protocol == "kafka"


def test_a_gap_before_everything_tells_nothing() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, gap(0), False) is None
    verdict = recogniser.feed(0, chunk(KAFKA, 10), False)
    assert verdict is not None
    assert not verdict.starts[0], "what follows a gap need not begin a frame"


def test_in_mid_stream_the_start_of_a_later_segment_counts() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, chunk(b"the end of something"), False) is None
    verdict = recogniser.feed(0, chunk(KAFKA, 20), False)
    assert verdict == Verdict("kafka", 0, (False, False), None, 7)


def test_in_mid_stream_any_byte_counts_in_the_end() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(1, chunk(b"the end" + KAFKA), False) is None
    assert recogniser.close() == Verdict("kafka", 1, (False, False), None, 7)


def test_of_a_stream_seen_from_its_syn_only_the_beginning_counts() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, chunk(b"hello, "), True) is None
    assert recogniser.feed(0, chunk(KAFKA, 7), True) is None
    assert recogniser.close().protocol == "unknown"


def test_a_request_behind_bare_gssapi_tokens_settles_it() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, chunk(framed(b"\x60\x03abc", b"", b"\x05\x04\xff")), True) is None
    verdict = recogniser.feed(0, chunk(KAFKA, 18), True)
    assert verdict is not None
    assert (verdict.protocol, verdict.client, verdict.starts) == ("kafka", 0, (True, False))
    assert verdict.correlation_id == 7


def test_frames_that_do_not_begin_like_a_gssapi_token_are_not_passed_over() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, chunk(framed(b"\x61\x03abc")), True) is None
    assert recogniser.feed(0, chunk(KAFKA, 9), True) is None
    assert recogniser.close().protocol == "unknown"


def test_the_greetings_of_other_protocols_settle_it() -> None:
    for protocol, greeting in (
        ("tls", b"\x16\x03\x01\0\xc8"),
        ("http", b"POST /x"),
        ("http", b"HTTP/1.1 200"),
    ):
        verdict = Recogniser().feed(0, chunk(greeting), True)
        assert verdict is not None
        assert verdict.protocol == protocol


def test_in_mid_stream_a_record_of_tls_settles_it() -> None:
    for greeting in (
        b"\x17\x03\x03\0\x40" + bytes(7),
        b"\x14\x03\x03\0\x01\x01" + b"\x17\x03\x03\0\x40",  # how a client ends the handshake
        b"\x15\x03\x03\0\x1a" + bytes(26),
    ):
        verdict = Recogniser().feed(0, chunk(greeting), False)
        assert verdict is not None
        assert verdict.protocol == "tls"
        assert Recogniser().feed(0, chunk(greeting), True) is None  # no connection begins with it


def test_it_is_settled_when_the_limit_is_reached() -> None:
    recogniser = Recogniser(DEFAULTS._replace(settle_bytes=100))
    assert recogniser.feed(0, chunk(b"x" * 60), True) is None
    verdict = recogniser.feed(1, chunk(b"y" * 40), True)
    assert verdict is not None
    assert verdict.protocol == "unknown"


def test_responses_alone_are_told_by_their_chain() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(1, chunk(framed(*map(metadata_answer, (1, 2, 3)))), True) is None
    verdict = recogniser.close()
    assert (verdict.protocol, verdict.client, verdict.correlation_id) == ("kafka", 0, None)
    assert verdict.inferred is not None
    assert verdict.inferred.startswith("role: 3 responses")


def test_a_chain_is_none_if_it_is_short_or_does_not_ascend_or_the_other_side_spoke() -> None:
    def settled(*ids: int, said: bytes = b"") -> str:
        recogniser = Recogniser()
        recogniser.feed(1, chunk(framed(*map(metadata_answer, ids))), True)
        if said:
            recogniser.feed(0, chunk(said), True)
        return recogniser.close().protocol

    assert settled(1, 2, 3) == "kafka"
    assert settled(1, 2) == settled(1, 3, 2) == settled(1, 2, 3000) == "unknown"
    assert settled(1, 2, 3, said=b"PING") == "unknown"


def test_a_request_whose_body_is_broken_settles_nothing_but_is_told() -> None:
    for side in (0, 1):
        recogniser = Recogniser()
        assert recogniser.feed(side, chunk(BROKEN), True) is None
        verdict = recogniser.close()
        assert verdict.protocol == "unknown"
        defect = "announces 2,147,483,647 elements, but 0 bytes are left, and each takes at least 2 bytes"
        assert verdict.doubt == Doubt(side, 1, f"Metadata v1 of the client 'app': {defect}", 13)


def test_a_request_whose_header_breaks_off_in_its_tags_is_told_too() -> None:
    recogniser = Recogniser()
    head = request("ListGroups", 3, 6, "app")[:13]
    assert recogniser.feed(0, chunk(framed(head + b"\x80" * 20)), True) is None
    doubt = recogniser.close().doubt
    assert doubt is not None
    assert doubt.defect == "ListGroups v3 of the client 'app': the varint is longer than 5 bytes"


def test_of_many_broken_requests_the_first_is_told_also_before_a_gap() -> None:
    recogniser = Recogniser()
    other = BROKEN.replace(b"app", b"bad")
    assert recogniser.feed(0, chunk(BROKEN), True) is None
    assert recogniser.feed(0, gap(len(BROKEN)), True) is None
    assert recogniser.feed(0, chunk(other, len(BROKEN) + 10), True) is None
    doubt = recogniser.close().doubt
    assert doubt is not None
    assert "'app'" in doubt.defect


def test_a_broken_request_is_shown_where_one_behind_it_fits_to_the_last_byte() -> None:
    recogniser = Recogniser()
    assert recogniser.feed(0, chunk(BROKEN + BROKEN + KAFKA[:-1]), True) is None
    verdict = recogniser.feed(0, chunk(KAFKA[-1:], 2 * len(BROKEN) + len(KAFKA) - 1), True)
    assert verdict == Verdict("kafka", 0, (True, False), None, 7)


def test_behind_a_broken_request_a_header_alone_is_no_evidence() -> None:
    loose = framed(request("ListGroups", 0, 1, "rdkafka") + bytes(4))
    for after in (KAFKA[:-1], loose):
        recogniser = Recogniser()
        assert recogniser.feed(0, chunk(BROKEN + after), True) is None
        verdict = recogniser.close()
        assert (verdict.protocol, verdict.doubt is None) == ("unknown", False)
