"""What a quota holds back: inside the answer that tells it, or before the next request (KIP-219)."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.exchange import Exchange
from kdissect.protocol.apis import api_keys, versions
from kdissect.protocol.layout import layout
from kdissect.protocol.program import THROTTLE_FIELD
from kdissect.session.throttling import throttle_in
from tests.kafka import Talk, request, response
from tests.session.runs import run
from tests.session.test_behind import MS, timed

BEAT: dict[str, Any] = {"groupId": "g", "generationId": 1, "memberId": "m"}


def beat(version: int, correlation: int) -> bytes:
    more = {"groupInstanceId": None} if version >= 3 else {}
    return request("Heartbeat", version, correlation, **BEAT, **more)


def beaten(version: int, correlation: int, throttle_ms: int = 0) -> bytes:
    return response("Heartbeat", version, correlation, throttleTimeMs=throttle_ms, errorCode=0)


def two(version: int, throttle_ms: int, *times_ms: float, syn: bool = True) -> list[Exchange]:
    """Two exchanges, of which the first tells a quota's time."""
    talk = Talk(syn=syn).ask(beat(version, 1)).answer(beaten(version, 1, throttle_ms))
    talk.ask(beat(version, 2)).answer(beaten(version, 2))
    exchanges, _, _ = run(timed(talk, *times_ms))
    return exchanges


def parts(exchange: Exchange) -> tuple[float | None, ...]:
    """Behind, throttle, network, served, in ms; they add up."""
    found = (exchange.behind_ns, exchange.throttle_ns, exchange.network_ns, exchange.served_ns)
    if None not in (exchange.behind_ns, exchange.throttle_ns, exchange.served_ns):
        assert exchange.latency_ns == sum(each or 0 for each in found)
    return tuple(None if each is None else each / MS for each in found)


@pytest.mark.parametrize("version", [2, 4])
def test_since_kip_219_the_next_request_waits_for_what_is_left(version: int) -> None:
    first, second = two(version, 200, 0, 0, 0, 10, 11, 61, 215)
    assert parts(first) == (0, 0, None, 1)
    assert parts(second) == (0, 150, None, 4)


def test_a_client_that_waits_by_itself_is_held_back_by_nothing() -> None:
    _, second = two(4, 200, 0, 0, 0, 10, 11, 212, 215)
    assert parts(second) == (0, 0, None, 3)
    assert second.think_ns == 201 * MS


def test_an_older_broker_holds_the_answer_itself_back() -> None:
    first, second = two(1, 200, 0, 0, 0, 10, 213, 214, 216)
    assert parts(first) == (0, 200, None, 3)
    assert parts(second) == (0, 0, None, 2)


def test_an_old_version_that_is_answered_at_once_shows_a_newer_broker() -> None:
    first, second = two(1, 200, 0, 0, 0, 10, 11, 12, 215)
    assert parts(first) == (0, 0, None, 1)
    assert parts(second) == (0, 199, None, 4)


def test_what_a_broker_offers_says_which_of_the_two_it_does() -> None:
    """A slow answer of a new broker to an old client: it was not the quota that made it slow."""
    for newest, first_throttle, second_throttle in ((7, 0, 98), (5, 100, 0)):
        keys = [{"apiKey": 0, "minVersion": 0, "maxVersion": newest}]
        talk = (
            Talk()
            .ask(request("ApiVersions", 0, 9))
            .answer(response("ApiVersions", 0, 9, errorCode=0, apiKeys=keys))
        )
        talk.ask(beat(1, 1)).answer(beaten(1, 1, 100)).ask(beat(1, 2)).answer(beaten(1, 2))
        _, first, second = run(timed(talk, 0, 0, 0, 1, 2, 10, 130, 132, 240))[0]
        assert parts(first)[1] == first_throttle
        assert parts(second)[1] == second_throttle


def test_the_network_is_no_quotas_and_no_brokers() -> None:
    """Captured at a client 40 ms away; the broker mutes from when it answers."""
    first, second = two(4, 200, 0, 40, 40, 100, 141, 150, 345)
    assert parts(first) == (0, 0, 40, 1)
    # It answered at 121 and reads again at 321; the request was there at 170.
    assert parts(second) == (0, 151, 40, 4)


def test_no_part_is_longer_than_the_time_itself() -> None:
    _, second = two(4, 60_000, 0, 40, 40, 100, 141, 150, 345)
    assert parts(second) == (0, 155, 40, 0)


def test_the_client_thinks_from_when_an_answer_reaches_it() -> None:
    """Captured at the broker, 40 ms from the client."""
    first, second = two(4, 0, 0, 0, 40, 100, 101, 191, 192)
    assert first.think_ns is None
    assert second.think_ns == 50 * MS


def test_an_acknowledgement_that_comes_with_the_next_request_shortens_no_thinking() -> None:
    _, second = two(4, 0, 100, 101, 150, 151, syn=False)
    assert second.think_ns == 49 * MS


def test_while_something_else_is_asked_nobody_thinks() -> None:
    talk = Talk().ask(beat(4, 1)).answer(beaten(4, 1)).ask(beat(4, 2)).ask(beat(4, 3))
    talk.answer(beaten(4, 2)).answer(beaten(4, 3))
    exchanges, _, _ = run(timed(talk, 0, 0, 0, 1, 2, 5, 6, 7, 8))
    assert [each.think_ns for each in exchanges] == [None, 3 * MS, None]


def test_a_quota_holds_back_behind_an_earlier_request_too() -> None:
    """Both were sent before the first answer: behind it until then, and behind its quota since."""
    talk = Talk().ask(beat(4, 1)).ask(beat(4, 2)).answer(beaten(4, 1, 100)).answer(beaten(4, 2))
    exchanges, _, _ = run(timed(talk, 0, 0, 0, 1, 2, 10, 113))
    assert parts(exchanges[1]) == (8, 100, None, 3)


def test_the_throttle_time_stands_where_it_is_read_without_a_look_at_the_rest() -> None:
    first, nowhere = 0, 0
    for key in api_keys():
        for version in versions(key):
            candidates = layout(key, version, "response").candidates
            throttles, is_told = throttle_in(candidates)
            for struct in candidates:
                names = [each.name for each in struct.fields]
                inside = [each.struct for each in struct.fields if each.struct is not None]
                assert not any(THROTTLE_FIELD in each.by_name for each in inside)
                if is_told and throttles:
                    assert names[0] == THROTTLE_FIELD
                    assert struct.fields[0].type == "int32"
                    first += 1
                elif is_told:
                    assert THROTTLE_FIELD not in names
                    nowhere += 1
    assert first > 100
    assert nowhere > 50


def test_of_an_answer_that_is_not_known_nothing_is_told() -> None:
    assert throttle_in(()) == (False, False)
