"""Real brokers behind TLS: with the secrets, all that the broker logged is there; without, the reason is."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.message import Request
from kdissect.model import TLS_KEY_LOG, Fault, Packet, Secrets
from kdissect.session.conversation import Connection
from kdissect.tls.keylog import TlsSecrets
from tests.acceptance.request_log import body_json, difference
from tests.acceptance.test_request_log import pairs, request_difference
from tests.lab import TLS_CASES, Case, Dissected
from tests.shared import requires_shared, shared

Item = Packet | Secrets | Fault


def key_log(name: str) -> Secrets:
    return Secrets(TLS_KEY_LOG, (Case(name).folder / "keys.log").read_bytes())


def decrypted(items: Iterable[Item], secrets: Secrets | None = None) -> Dissected:
    known = TlsSecrets()
    if secrets is not None:
        known.add(secrets.data)
    out = Dissected([], [], [])
    dissector = Dissector(secrets=known)
    events = [event for item in items for event in dissector.feed(item)]
    for event in (*events, *dissector.close()):
        if isinstance(event, Exchange):
            out.exchanges.append(event)
        elif isinstance(event, Connection):
            out.connections.append(event)
        else:
            out.faults.append(event)
    out.exchanges.sort(key=lambda exchange: exchange.number)
    return out


def differences(name: str, exchanges: list[Exchange]) -> list[str]:
    """What the log and the wire differ in, of requests that are in both."""
    found, _, _ = pairs(name, exchanges)
    problems = []
    for logged, exchange in found:
        if isinstance(exchange.request, Request) and not exchange.request.is_cut:
            problems.append(request_difference(logged, exchange.request))
        if exchange.response is not None and not exchange.response.is_cut:
            problems.append(difference(logged.response, body_json(exchange.response), "response"))
    return [problem for problem in problems if problem is not None]


def assert_all_is_there(name: str, found: Dissected) -> None:
    logged, absent, _ = pairs(name, found.exchanges)
    assert (absent, found.faults) == ([], [])
    assert len(logged) == len(list(Case(name).log()))
    assert differences(name, found.exchanges) == []
    for connection in found.connections:
        assert (connection.protocol, connection.skipped_bytes) == ("kafka", 0)
        assert connection.tls is not None
        assert (connection.tls["decrypted"], connection.tls["dark"]) == (True, None)
    assert all(exchange.is_encrypted for exchange in found.exchanges)


@pytest.mark.parametrize("name", TLS_CASES)
def test_a_key_log(name: str) -> None:
    assert_all_is_there(name, decrypted(Case(name).packets(), key_log(name)))


@pytest.mark.parametrize("name", TLS_CASES)
@pytest.mark.parametrize("where", [0, 0.3, 1])
def test_a_block_of_secrets_anywhere_in_the_file(name: str, where: float) -> None:
    items = list(Case(name).packets())
    items.insert(round(where * len(items)), key_log(name))
    assert_all_is_there(name, decrypted(items))


@pytest.mark.parametrize("name", TLS_CASES)
def test_the_secrets_a_line_at_a_time_among_the_packets(name: str) -> None:
    items = list(Case(name).packets())
    lines = key_log(name).data.splitlines(keepends=True)
    for number, line in enumerate(lines):
        items.insert(number * len(items) // len(lines), Secrets(TLS_KEY_LOG, line))
    assert_all_is_there(name, decrypted(items))


@requires_shared
@pytest.mark.parametrize("name", TLS_CASES)
def test_the_capture_that_has_its_secrets_embedded(name: str) -> None:
    path = shared(f"testdata/captures/lab/{name}/capture-dsb.pcapng")
    assert_all_is_there(name, decrypted(read_packets([path])))


def fingerprint(exchange: Exchange) -> object:
    return [(m.frame.payload, m.frame.last_packet, m.frame.last_ns) for m in exchange.messages]


@pytest.mark.parametrize("name", TLS_CASES)
def test_exchanges_are_the_same_wherever_the_secrets_come_from(name: str) -> None:
    first = decrypted(Case(name).packets(), key_log(name)).exchanges
    second = decrypted([*Case(name).packets(), key_log(name)]).exchanges
    by_place = sorted(second, key=lambda e: (e.connection, e.request_packet or 0, e.correlation_id or 0))
    same = sorted(first, key=lambda e: (e.connection, e.request_packet or 0, e.correlation_id or 0))
    assert list(map(fingerprint, by_place)) == list(map(fingerprint, same))


@pytest.mark.parametrize("name", TLS_CASES)
@pytest.mark.parametrize("seed", range(8))
def test_lost_packets_cost_what_was_in_them(name: str, seed: int) -> None:
    """Nothing bogus: what is still there is what the broker logged."""
    items = list(Case(name).packets())
    lost = set(Random(seed).sample(range(len(items)), len(items) // 20))
    found = decrypted((item for number, item in enumerate(items) if number not in lost), key_log(name))
    assert differences(name, found.exchanges) == []
    logged, absent, beyond = pairs(name, found.exchanges)
    known = {exchange.api for exchange in decrypted(items, key_log(name)).exchanges}
    assert {exchange.api for exchange in beyond if exchange.api} <= known
    assert len(logged) > len(absent)
    for connection in found.connections:
        assert connection.tls is None or connection.protocol == "kafka" or connection.tls["dark"]


@pytest.mark.parametrize("name", TLS_CASES)
def test_secrets_of_others(name: str) -> None:
    (other,) = (each for each in TLS_CASES if each != name)
    found = decrypted(Case(name).packets(), key_log(other))
    assert found.exchanges == []
    for connection in found.connections:
        assert connection.tls is not None
        assert connection.tls["dark"].startswith("no secret for client random ")
    assert [each.kind for each in found.faults] == ["not-decrypted"] * len(found.connections)


@pytest.mark.parametrize("name", TLS_CASES)
def test_memory_for_bytes_that_wait_is_given_back(name: str) -> None:
    dissector = Dissector()
    most = 0
    for item in Case(name).packets():
        dissector.feed(item)
        most = max(most, dissector.held_bytes)
    assert 0 < most < DEFAULTS.waiting_bytes
    list(dissector.close())
