"""What a request waits behind the one before it on its connection."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.model import Segment
from tests.kafka import Talk, framed, request, response
from tests.session.runs import metadata, metadata_answer, run

MS = 1_000_000


def timed(talk: Talk, *times_ms: float) -> list[Segment]:
    """The segments of a talk at these times, in order."""
    assert len(times_ms) == len(talk.segments)
    times = [int(ms * MS) for ms in times_ms]
    return [each._replace(timestamp_ns=ns) for each, ns in zip(talk.segments, times, strict=True)]


def waits(segments: list[Segment]) -> list[tuple[int | None, int | None]]:
    exchanges, _, _ = run(segments)
    return [(each.behind_ns, each.behind_correlation_id) for each in exchanges]


def pipelined() -> Talk:
    """Two requests, the second before the first is answered, over an opened connection."""
    return Talk().ask(metadata(7)).ask(metadata(8)).answer(metadata_answer(7)).answer(metadata_answer(8))


def test_a_request_waits_until_the_last_byte_of_the_response_before_its_own() -> None:
    segments = timed(pipelined(), 0, 0, 0, 10, 11, 500, 503)
    assert waits(segments) == [(0, None), (489 * MS, 7)]
    (_, second), _, _ = run(segments)
    assert second.latency_ns == 492 * MS
    assert (second.turn_ns, second.network_ns, second.served_ns) == (3 * MS, None, 3 * MS)


def test_a_request_that_comes_after_the_response_before_its_own_waits_for_nothing() -> None:
    talk = Talk().ask(metadata(7)).answer(metadata_answer(7)).ask(metadata(8)).answer(metadata_answer(8))
    assert waits(timed(talk, 0, 0, 0, 10, 500, 501, 504)) == [(0, None), (0, None)]


def test_captured_at_a_far_client_the_way_to_the_broker_and_back_is_no_wait() -> None:
    """The broker had answered the first before the second reached it."""
    assert waits(timed(pipelined(), 0, 120, 120, 200, 210, 321, 331)) == [(0, None), (0, None)]
    # Served in 50 ms, of which the second waited 40 at the broker.
    assert waits(timed(pipelined(), 0, 120, 120, 200, 210, 370, 371)) == [(0, None), (40 * MS, 7)]


def test_captured_at_the_broker_the_way_to_a_far_client_is_in_no_wait() -> None:
    """The same traffic as at the client, half a round trip later or earlier."""
    assert waits(timed(pipelined(), 0, 0, 120, 200, 210, 250, 251)) == [(0, None), (40 * MS, 7)]


def test_each_waits_behind_the_one_just_before_it() -> None:
    talk = Talk().ask(metadata(1), metadata(2), metadata(3))
    talk.answer(metadata_answer(1)).answer(metadata_answer(2)).answer(metadata_answer(3))
    assert waits(timed(talk, 0, 0, 0, 10, 20, 30, 40)) == [(0, None), (10 * MS, 1), (20 * MS, 2)]


def test_a_request_without_a_response_has_no_wait_and_nobody_waits_behind_it() -> None:
    produce = request("Produce", 3, 1, transactionalId=None, acks=0, timeoutMs=1, topicData=[])
    talk = Talk().ask(produce).ask(metadata(2)).answer(metadata_answer(2)).ask(metadata(3))
    found = waits(timed(talk, 0, 0, 0, 10, 11, 500, 501))
    assert found == [(None, None), (0, None), (None, None)]


def test_behind_tokens_requests_wait_too() -> None:
    talk = Talk().ask(request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    talk.answer(response("SaslHandshake", 0, 1, errorCode=0, mechanisms=["PLAIN"]))
    talk.ask(b"\0alice\0secret").ask(metadata(2)).answer(b"").answer(metadata_answer(2))
    assert waits(timed(talk, 0, 0, 0, 1, 2, 3, 4, 90, 91)) == [(0, None), (0, None), (86 * MS, None)]


def test_a_response_whose_request_was_not_captured_is_waited_behind() -> None:
    talk = Talk(syn=False).ask(metadata(5)).answer(metadata_answer(5))
    talk.ask(metadata(7)).answer(response("ListGroups", 0, 6, errorCode=0, groups=[])).answer(
        metadata_answer(7)
    )
    exchanges, _, _ = run(timed(talk, 1, 2, 10, 30, 31))
    waited = {each.correlation_id: (each.behind_ns, each.behind_correlation_id) for each in exchanges}
    assert waited == {5: (0, None), 6: (None, None), 7: (19 * MS, 6)}


def lossy(after: bool) -> Exchange:
    """An exchange before whose response others were lost; its request was said before that, or after."""
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1))
    if not after:
        talk.ask(metadata(2))
    lost = len(talk.segments)
    talk.say(talk.broker, framed(metadata_answer(9)))
    if after:
        talk.ask(metadata(2))
    talk.answer(metadata_answer(2))
    for each in range(3, 16):  # what was lost is given up when so much more has come
        talk.ask(metadata(each)).answer(metadata_answer(each))
    exchanges, _, _ = run(talk.segments[:lost] + talk.segments[lost + 1 :])
    (found,) = [each for each in exchanges if each.correlation_id == 2]
    assert found.response is not None
    assert found.response.frame.searched
    return found


def test_where_a_response_before_it_may_be_lost_the_wait_is_not_known() -> None:
    found = lossy(after=False)
    assert (found.behind_ns, found.throttle_ns, found.served_ns) == (None, None, None)


def test_of_a_request_that_was_said_after_that_it_is() -> None:
    assert lossy(after=True).behind_ns == 0


def test_absurd_times_are_no_wait() -> None:
    segments = [each._replace(timestamp_ns=1) for each in pipelined().segments]
    far = (1 << 63) - 1
    for asked, answered in ((-far, far), (far, -far)):
        segments[4] = segments[4]._replace(timestamp_ns=asked)
        segments[5] = segments[5]._replace(timestamp_ns=answered)
        assert waits(segments)[1] in ((None, None), (0, None))
