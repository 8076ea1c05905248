"""What a request waited behind the one before it, where the order of packets is not the usual one."""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.model import Segment
from tests.kafka import Talk, response
from tests.lab import CASES, dissected_case
from tests.session.runs import metadata, metadata_answer, run
from tests.session.strangers import VENDOR_KEY, stranger
from tests.session.test_dialogue import link_metadata

MS = 1_000_000


def timed(segments: Sequence[Segment], *at_ms: float) -> list[Segment]:
    return [segment._replace(timestamp_ns=int(ms * MS)) for segment, ms in zip(segments, at_ms, strict=True)]


def test_a_response_that_was_sent_again_makes_nobody_wait_longer_than_its_answer_took() -> None:
    talk = Talk().ask(metadata(7)).ask(metadata(8)).answer(metadata_answer(7)).answer(metadata_answer(8))
    segments = [*talk.segments[:5], talk.segments[6], talk.segments[5]]
    exchanges, _, _ = run(timed(segments, 0, 0, 0, 10, 11, 15, 215))
    second = next(each for each in exchanges if each.correlation_id == 8)
    assert (second.latency_ns, second.behind_ns) == (4 * MS, 4 * MS)


def test_a_request_of_the_brokers_own_is_no_response_that_others_wait_behind() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).ask(metadata(7)).answer(link_metadata(20))
    talk.answer(metadata_answer(7)).ask(metadata_answer(20))
    exchanges, _, _ = run(timed(talk.segments, 0, 0, 0, 10, 11, 100, 200, 201, 202))
    late = next(each for each in exchanges if each.correlation_id == 7)
    assert (late.latency_ns, late.behind_ns, late.behind_correlation_id) == (101 * MS, 0, None)


def test_no_lab_capture_has_a_wait_longer_than_the_latency() -> None:
    for name in CASES:
        for exchange in dissected_case(name).exchanges:
            if exchange.behind_ns and exchange.latency_ns is not None:
                assert exchange.behind_ns <= exchange.latency_ns


def test_a_gap_among_requests_does_not_explain_what_is_absent_long_after_it() -> None:
    talk, lost = Talk(), 0
    for number in range(1, 20):
        lost = len(talk.segments) if number == 3 else lost
        talk.ask(metadata(number)).answer(metadata_answer(number))
    talk.answer(response("ListGroups", 0, 77, errorCode=0, groups=[]))
    exchanges, _, _ = run(talk.segments[:lost] + talk.segments[lost + 1 :])
    missing = {each.correlation_id: each.missing for each in exchanges if each.missing}
    assert missing == {3: "gap", 77: "not captured"}


def test_a_stranger_behind_a_proxy_is_told_as_without_one() -> None:
    for preamble in (b"", b"PROXY TCP4 192.0.2.1 198.51.100.1 51000 9092\r\n"):
        talk = Talk()
        if preamble:
            talk.say(talk.client, preamble)
        _, faults, _ = run(talk.ask(stranger(1, VENDOR_KEY, 0, "test")).segments)
        assert [fault.kind for fault in faults] == ["broken-request"]
