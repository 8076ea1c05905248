"""Session: which response answers which request, frame by frame."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Token
from kdissect.model import Direction, Fault, Frame
from kdissect.session.pairing import Event, Recognised, Session
from tests.kafka import request, response
from tests.session.runs import completed, cut_frame, frame, metadata, metadata_answer
from tests.tcp.segments import BROKER, CLIENT


class Line:
    """A session that is told what the two ends say, frame by frame; packets count from 1."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.session = Session(3, CLIENT, BROKER, limits)
        self.packet = 0
        self.events: list[Event] = []

    def ask(self, *payloads: bytes) -> list[Exchange]:
        return self._feed(payloads, Direction.TO_BROKER)

    def answer(self, *payloads: bytes) -> list[Exchange]:
        """Gives the exchanges that are complete now."""
        return self._feed(payloads, Direction.FROM_BROKER)

    def close(self, reason: str = "capture ended") -> list[Exchange]:
        self.session.end(reason)
        return completed(self.session.close())

    def heard(self, frame: Frame, packet: int) -> list[Event]:
        """What one frame means."""
        events = self.session.feed(frame, packet)
        assert events is not None
        return events

    def _feed(self, payloads: tuple[bytes, ...], direction: Direction) -> list[Exchange]:
        before = len(self.events)
        for payload in payloads:
            self.packet += 1
            self.events += self.heard(frame(payload, direction, self.packet), self.packet)
        return completed(self.events[before:])


def test_an_exchange_is_recognised_with_its_request_and_complete_with_its_response() -> None:
    line = Line()
    assert line.ask(metadata(1)) == []
    (begun,) = line.events
    assert isinstance(begun, Recognised)
    assert begun.exchange.recognised == (1, 3, 0)
    (done,) = line.answer(metadata_answer(1))
    assert done is begun.exchange
    assert (done.request_packet, done.response_packet, done.missing) == (1, 2, None)
    assert line.close() == []


def test_the_correlation_id_decides_and_a_breach_of_the_order_is_a_fault() -> None:
    line = Line()
    line.ask(metadata(1), metadata(2))
    (second,) = line.answer(metadata_answer(2))
    (first,) = line.answer(metadata_answer(1))
    assert [fault.kind for fault in second.faults] == ["out-of-order"]
    assert first.faults == []


@pytest.mark.parametrize(("correlation_id", "ns", "is_late"), [(7, 0, True), (7, 1, False), (8, 0, False)])
def test_a_request_that_is_captured_after_its_answer_does_not_wait(
    correlation_id: int, ns: int, is_late: bool
) -> None:
    line = Line()
    (answer,) = line.answer(metadata_answer(7))
    assert (answer.correlation_id, answer.missing) == (7, "not captured")
    asked = frame(metadata(correlation_id), packet=2)._replace(first_ns=ns, last_ns=ns)
    given_up = completed(line.heard(asked, 2))
    assert [(each.correlation_id, each.missing, each.think_ns) for each in given_up] == (
        [(7, "not captured", None)] if is_late else []
    )
    line.packet = 2
    line.ask(metadata(9))
    *_, done = line.answer(metadata_answer(9))
    assert [each.kind for each in done.faults] == ([] if is_late else ["out-of-order"])


def test_a_lost_response_is_given_up_as_soon_as_a_later_one_comes() -> None:
    line = Line()
    line.ask(metadata(1), metadata(2), metadata(3))
    line.session.gap(Direction.FROM_BROKER)
    lost, answered = line.answer(metadata_answer(2))
    assert (lost.correlation_id, lost.missing) == (1, "gap")
    assert (answered.correlation_id, answered.faults) == (2, [])
    (last,) = line.answer(metadata_answer(3))
    assert last.missing is None


def test_a_gap_before_a_request_does_not_explain_that_it_is_passed_over() -> None:
    line = Line()
    line.session.gap(Direction.FROM_BROKER)
    line.ask(metadata(1), metadata(2))
    (answered,) = line.answer(metadata_answer(2))
    assert [fault.kind for fault in answered.faults] == ["out-of-order"]


def test_a_gap_that_goes_on_behind_a_request_may_hold_its_response() -> None:
    """Two lost responses that follow each other are one gap, which is told where it begins."""
    for settled, why in ((1, "connection closed"), (9, "gap")):
        line = Line()
        line.ask(metadata(1))
        line.answer(metadata_answer(1))
        line.session.gap(Direction.FROM_BROKER, settled)
        line.ask(metadata(2))
        assert [exchange.missing for exchange in line.close("connection closed")] == [why]
    line = Line()
    line.session.gap(Direction.FROM_BROKER, 9)
    line.ask(metadata(1), metadata(2))
    lost, answered = line.answer(metadata_answer(2))
    assert (lost.missing, answered.faults) == ("gap", [])


def test_a_response_in_a_gap_was_not_captured_where_no_response_ever_was() -> None:
    for heard, why in ((True, "gap"), (False, "not captured")):
        line = Line()
        if heard:
            line.ask(metadata(1))
            line.answer(metadata_answer(1))
        line.ask(metadata(2))
        line.session.gap(Direction.FROM_BROKER)
        assert [exchange.missing for exchange in line.close()] == [why]


def test_what_was_captured_and_skipped_is_not_called_lost() -> None:
    line = Line()
    line.session.skip(Direction.TO_BROKER)
    (early,) = line.answer(metadata_answer(1))
    line.ask(metadata(2))
    line.answer(metadata_answer(2))
    line.session.skip(Direction.TO_BROKER)
    (alone,) = line.answer(metadata_answer(3))
    assert (early.missing, alone.missing) == ("skipped", "skipped")
    line.ask(metadata(4), metadata(5))
    line.session.skip(Direction.FROM_BROKER)
    passed_over, answered = line.answer(metadata_answer(5))
    assert (passed_over.missing, answered.missing) == ("skipped", None)
    line.ask(metadata(6))
    line.session.skip(Direction.FROM_BROKER)
    assert [exchange.missing for exchange in line.close()] == ["skipped"]


def test_behind_a_gap_it_is_the_gap_that_loses_what_is_skipped() -> None:
    line = Line()
    line.ask(metadata(1))
    line.answer(metadata_answer(1))
    for _ in range(2):
        line.session.gap(Direction.TO_BROKER)
        line.session.skip(Direction.TO_BROKER)
    (alone,) = line.answer(metadata_answer(2))
    assert alone.missing == "gap"
    line.ask(metadata(3))
    line.session.skip(Direction.TO_BROKER)
    _, later = line.answer(metadata_answer(3), metadata_answer(4))
    assert later.missing == "skipped", "a request came since"
    line.ask(metadata(5))
    line.session.gap(Direction.FROM_BROKER)
    line.session.skip(Direction.FROM_BROKER)
    assert [exchange.missing for exchange in line.close()] == ["gap"]


@pytest.mark.parametrize("reason", ["capture ended", "connection closed", "evicted"])
def test_what_waits_at_the_end_says_how_it_ended(reason: str) -> None:
    line = Line()
    line.ask(metadata(1), metadata(2))
    assert [exchange.missing for exchange in line.close(reason)] == [reason, reason]


def test_more_than_may_wait_gives_the_oldest_up() -> None:
    line = Line(DEFAULTS._replace(pending_requests=2))
    assert line.ask(metadata(1), metadata(2)) == []
    (oldest,) = line.ask(metadata(3))
    assert (oldest.correlation_id, oldest.missing) == (1, "evicted")
    assert [fault.kind for fault in oldest.faults] == ["too-many-pending"]
    assert [each.correlation_id for each in line.answer(metadata_answer(2), metadata_answer(3))] == [2, 3]


def test_a_late_response_says_that_its_request_was_given_up() -> None:
    line = Line(DEFAULTS._replace(pending_requests=1))
    line.ask(metadata(1), metadata(2))
    late, _, alone = line.answer(metadata_answer(1), metadata_answer(2), metadata_answer(9))
    assert (late.request, late.correlation_id, late.missing) == (None, 1, "evicted")
    assert alone.missing == "not captured"


def test_a_produce_request_with_acks_0_waits_for_nothing() -> None:
    line = Line()
    body: dict[str, Any] = {"transactionalId": None, "timeoutMs": 1, "topicData": []}
    (done,) = line.ask(request("Produce", 9, 1, acks=0, **body))
    assert done.missing == "acks=0"
    assert line.ask(request("Produce", 9, 2, acks=1, **body)) == []


def test_a_response_that_nothing_asked_for_is_an_exchange_of_its_own() -> None:
    line = Line()
    (alone,) = line.answer(metadata_answer(9))
    assert (alone.request, alone.api, alone.correlation_id, alone.missing) == (None, None, 9, "not captured")
    line.ask(metadata(1))
    line.session.gap(Direction.TO_BROKER)
    (lost,) = line.answer(metadata_answer(2))
    assert lost.missing == "gap"


def test_a_response_that_is_cut_is_there_and_says_why_it_is_not_whole() -> None:
    line = Line()
    line.ask(metadata(1))
    line.session.end("connection closed")
    (done,) = completed(line.heard(cut_frame(metadata_answer(1), 20), 2))
    assert done.response is not None
    assert done.missing == "connection closed"
    assert [fault.kind for fault in done.faults] == ["cut-frame"]


def test_a_request_that_is_cut_has_its_response_and_nothing_missing() -> None:
    line = Line()
    line.events += line.heard(cut_frame(metadata(1), 20, Direction.TO_BROKER), 1)
    (done,) = line.answer(metadata_answer(1))
    assert done.missing is None
    assert [fault.kind for fault in done.faults] == ["cut-frame"]


@pytest.mark.parametrize("direction", Direction)
def test_a_frame_without_a_whole_header_is_a_fault_and_costs_nothing_else(direction: Direction) -> None:
    line = Line()
    line.ask(metadata(1))
    (fault,) = line.heard(frame(b"\0\3", direction), 2)
    assert isinstance(fault, Fault)
    assert (fault.layer, fault.kind, fault.connection) == ("session", "malformed", 3)
    assert len(line.answer(metadata_answer(1))) == 1


def test_a_response_whose_header_breaks_off_is_still_the_answer() -> None:
    line = Line()
    line.ask(request("ListGroups", 3, 5))
    (done,) = line.answer((5).to_bytes(4, "big"))
    assert done.response is not None
    assert [(fault.layer, fault.kind) for fault in done.session_faults] == [("session", "truncated")]


def test_tokens_follow_a_handshake_of_version_0_until_a_request_fits() -> None:
    line = Line()
    line.ask(request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    line.answer(response("SaslHandshake", 0, 1, errorCode=0, mechanisms=["PLAIN"]))
    line.ask(b"\0alice\0secret")
    (token,) = line.answer(b"")
    assert isinstance(token.request, Token)
    assert isinstance(token.response, Token)
    assert (token.api, token.client_id, token.correlation_id) == ("SaslToken", "test", None)
    line.ask(metadata(2))
    (done,) = line.answer(metadata_answer(2))
    assert done.api == "Metadata"


def test_a_last_token_without_answer_does_not_take_that_of_the_next_request() -> None:
    line = Line()
    line.ask(b"\x60\x03abc")
    line.answer(b"\x60\x01a")
    line.ask(b"\x05\x04\xff", metadata(0))
    (done,) = line.answer(metadata_answer(0))
    assert (done.api, done.missing) == ("Metadata", None)


def test_a_cut_answer_to_a_token_says_why_it_is_not_whole() -> None:
    line = Line()
    line.ask(b"\x60\x03abc")
    line.session.gap(Direction.FROM_BROKER)
    (done,) = completed(line.heard(cut_frame(b"\x60\x01a", 1), 2))
    assert (done.api, done.missing) == ("SaslToken", "gap")


def handshake(correlation: int, mechanism: str) -> bytes:
    return request("SaslHandshake", 1, correlation, mechanism=mechanism)


def shaken(correlation: int, code: int = 0) -> bytes:
    return response("SaslHandshake", 1, correlation, errorCode=code, mechanisms=["PLAIN"])


def authenticate(correlation: int, token: bytes) -> bytes:
    return request("SaslAuthenticate", 1, correlation, authBytes=b64encode(token).decode())


def authenticated(correlation: int, code: int = 0) -> bytes:
    body = {"errorCode": code, "errorMessage": None, "authBytes": "", "sessionLifetimeMs": 0}
    return response("SaslAuthenticate", 1, correlation, **body)


def test_the_latest_login_is_what_is_told_of_a_connection() -> None:
    line = Line()
    login = line.session.login
    line.ask(handshake(1, "PLAIN"), authenticate(2, b"\0alice\0secret"))
    never = {"expires_ms": None}
    line.answer(shaken(1), authenticated(2))
    assert login.summary() == {"mechanism": "PLAIN", "principal": "alice", "outcome": "authenticated"} | never
    line.ask(handshake(3, "PLAIN"))
    assert login.summary() == {"mechanism": "PLAIN", "principal": None, "outcome": None} | never
    line.answer(shaken(3))
    line.ask(authenticate(4, b"\0bob\0wrong"))
    line.answer(authenticated(4, 58))
    assert login.summary() == {
        "mechanism": "PLAIN",
        "principal": "bob",
        "outcome": "SASL_AUTHENTICATION_FAILED",
        "expires_ms": None,
    }


def test_a_mechanism_that_the_broker_does_not_have_is_the_outcome() -> None:
    line = Line()
    line.ask(handshake(1, "GSSAPI"))
    line.answer(shaken(1, 33))
    assert line.session.login.outcome == "UNSUPPORTED_SASL_MECHANISM"


def test_the_client_is_known_by_what_it_says_of_itself() -> None:
    line = Line()
    line.ask(request("ApiVersions", 3, 1, "one", clientSoftwareName="c", clientSoftwareVersion="1"))
    line.ask(request("ListGroups", 0, 2, "two"))
    line.ask(request("ListGroups", 0, 3, None))
    assert (line.session.client_id, line.session.software) == ("two", "c 1")
    assert line.session.exchanges == 3


def test_a_request_that_was_overtaken_is_lost_when_its_correlation_id_is_used_again() -> None:
    line = Line()
    line.ask(metadata(1), metadata(2))
    line.answer(metadata_answer(2))
    line.ask(metadata(1))
    line.answer(metadata_answer(1))
    overtaking, lost, again = completed(line.events)
    assert (lost.missing, lost.response) == ("not captured", None)
    assert overtaking.response is not None
    assert again.response is not None
