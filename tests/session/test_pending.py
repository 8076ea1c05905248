"""What waits for an answer, oldest first."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.message import Token, parse_request
from kdissect.session.pending import Pending
from tests.session.runs import frame, metadata
from tests.tcp.segments import BROKER, CLIENT


def asked(correlation: int) -> Exchange:
    return Exchange(0, CLIENT, BROKER, request=parse_request(frame(metadata(correlation))))


def token() -> Exchange:
    return Exchange(0, CLIENT, BROKER, request=Token(frame(b"token"), "request"))


def test_the_oldest_of_equal_correlation_ids_is_found_first() -> None:
    pending = Pending()
    first, second = asked(5), asked(5)
    pending.add(first, 0)
    pending.add(second, 0)
    for wanted in (first, second):
        serial = pending.find(5)
        assert serial is not None
        assert pending.remove(serial) is wanted
    assert pending.find(5) is None
    assert (len(pending), pending.held_bytes) == (0, 0)


def test_tokens_wait_in_the_same_line_and_have_no_correlation_id() -> None:
    pending = Pending()
    line = [asked(1), token(), asked(2), token()]
    for gaps, exchange in enumerate(line):
        pending.add(exchange, gaps)
    second = pending.find(2)
    assert second is not None
    assert [pending[serial].exchange for serial in pending.older_than(second)] == line[:2]
    assert pending[second].losses == 2
    oldest = pending.token()
    assert oldest is not None
    assert pending.remove(oldest) is line[1]
    assert pending.remove(pending.oldest()) is line[0]
    assert [waiting.exchange for waiting in pending.clear()] == line[2:]
    assert (len(pending), pending.token(), pending.find(2)) == (0, None, None)
