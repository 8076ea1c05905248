"""Secrets are tried where they may help, and nowhere else; nothing that they open stays dark for that."""

from __future__ import annotations

import pickle
import ssl
from collections.abc import Iterable, Iterator
from functools import cache
from random import Random
from typing import Any

import pytest

from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import TLS_KEY_LOG, Fault, Secrets, Segment
from kdissect.session.awaiting import Awaiting
from kdissect.session.conversation import Connection, Conversation, Event
from kdissect.tls.decrypting import MOST_RETRIES
from kdissect.tls.keylog import TlsSecrets
from tests.kafka import METADATA_RESPONSE_1, framed, request, response
from tests.kafka import Talk as Wire
from tests.tcp.segments import BROKER
from tests.tls import mutate
from tests.tls.endpoints import Ends, Flight, Talk
from tests.tls.forge import CCS, client_hello, record, server_hello

Item = Segment | Secrets


def client(number: int) -> bytes:
    return bytes((10, 0, *number.to_bytes(2, "big"))) + (40_000).to_bytes(2, "big")


def wire(number: int, flights: Iterable[Flight]) -> list[Segment]:
    made = Wire(client(number))
    for side, data in flights:
        made.say((made.client, BROKER)[side], data)
    return made.segments


def waiting(number: int, random: bytes | None = None) -> list[Segment]:
    """A connection that waits for its secret, with its number as its client random."""
    hello = client_hello(
        number.to_bytes(32, "big") if random is None else random, (0x1301,), {43: b"\x04\x03\x04\x03\x03"}
    )
    answer = server_hello(bytes(32), 0x1301, {43: b"\x03\x04"})
    flights = [(0, record(22, hello)), (1, record(22, answer) + CCS + record(23, bytes(64)))]
    return wire(number, flights)


def told(number: int, secret: int = 0, label: str = "CLIENT_EARLY_TRAFFIC_SECRET") -> Secrets:
    """A block with a secret of that connection; the label is one that does not open it."""
    return Secrets(TLS_KEY_LOG, f"{label} {number:064x} {secret:064x}\n".encode())


def fed(items: Iterable[Item], dissector: Dissector, stored: bool = False) -> list[Any]:
    events: list[Any] = []
    for packet, item in enumerate(items, 1):
        if isinstance(item, Secrets):
            events += dissector.feed(item)
        else:
            events += dissector.feed(item._replace(packet=packet, timestamp_ns=packet * 1000))
        if stored:
            dissector = pickle.loads(pickle.dumps(dissector))
    return events + list(dissector.close())


@pytest.fixture
def retries(monkeypatch: pytest.MonkeyPatch) -> list[Conversation]:
    """Every retry of a connection."""
    found: list[Conversation] = []
    retry = Awaiting.retry

    def counted(
        self: Awaiting, names: Iterable[bytes], packet: int
    ) -> Iterator[tuple[Conversation, list[Event]]]:
        for conversation, events in retry(self, names, packet):
            found.append(conversation)
            yield conversation, events

    monkeypatch.setattr(Awaiting, "retry", counted)
    return found


def test_secrets_of_others_cost_those_that_wait_nothing(retries: list[Conversation]) -> None:
    dissector = Dissector()
    for number in range(50):
        for segment in waiting(number):
            dissector.feed(segment)
    for number in range(50):
        dissector.feed(told(1_000 + number))
    assert (len(retries), dissector.held_bytes > 0) == (0, True)
    dissector.feed(told(7))
    assert len(retries) == 1
    dissector.feed(told(7))  # nothing new
    assert len(retries) == 1
    dissector.feed(Secrets(TLS_KEY_LOG, b"".join(told(number, 1).data for number in range(50))))
    assert len(retries) == 51


def test_however_often_the_secrets_of_many_change_each_is_tried_a_few_times_only(
    retries: list[Conversation],
) -> None:
    """All of them say the same client random."""
    dissector = Dissector()
    for number in range(20):
        for segment in waiting(number, bytes(32)):
            dissector.feed(segment)
    for secret in range(10 * MOST_RETRIES):
        dissector.feed(told(0, secret))
    assert len(retries) == 20 * (MOST_RETRIES + 1)
    connections = [event for event in dissector.close() if isinstance(event, Connection)]
    assert {(each.tls or {})["dark"] for each in connections} == {
        "secrets came 32 times, but never all that it needs"
    }


def test_a_secret_that_is_told_where_too_many_are_known_is_tried_and_that_is_told_once() -> None:
    limits = DEFAULTS._replace(secret_bytes=5_000)
    talk, _, _ = family(True)
    others = [told(number) for number in range(100)]
    dissector = Dissector(limits)
    events = fed([*wire(0, talk.flights), *others, Secrets(TLS_KEY_LOG, talk.key_log), *others], dissector)
    (said,) = [each for each in events if isinstance(each, Fault) and each.kind == "too-many-secrets"]
    assert said.message == (
        "TLS secrets take more than 5,000 bytes; the oldest were forgotten, those of 3 connections so far"
    )
    assert list(exchanges(events).values()) == [2]
    assert dissector.secrets.left_out > 150


def test_secrets_that_were_too_many_before_anything_was_read_are_told_at_the_end() -> None:
    limits = DEFAULTS._replace(secret_bytes=5_000)
    secrets = TlsSecrets(limits)
    for number in range(100):
        secrets.add(told(number).data)
    said = [event.kind for event in Dissector(limits, secrets=secrets).close() if isinstance(event, Fault)]
    assert said == ["too-many-secrets"]


def test_connections_that_are_over_are_forgotten_here_too() -> None:
    dissector = Dissector()
    for number in range(5):
        for segment in waiting(number):
            dissector.feed(segment)
    stored = pickle.loads(pickle.dumps(dissector._awaiting))
    assert (len(stored.names), len(stored._by_name)) == (5, 5)
    list(dissector.close())
    assert (dissector._awaiting.names, dissector._awaiting._by_name) == ({}, {})


# -- sessions that are resumed ----------------------------------------------------------------------


def lines(turns: int) -> list[Flight]:
    out: list[Flight] = []
    for turn in range(1, turns + 1):
        out.append((0, framed(request("Metadata", 1, turn, topics=None))))
        out.append((1, framed(response("Metadata", 1, turn, **METADATA_RESPONSE_1))))
    return out


@cache
def family(tickets: bool) -> tuple[Talk, Talk, Talk]:
    """A connection of TLS 1.2, one that resumes it, and one that resumes that."""
    ends = Ends(ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0", tickets=tickets)
    first = ends.talk(lines(2))
    second = ends.talk(lines(3), first.session)
    third = ends.talk(lines(4), second.session)
    assert (second.resumed, third.resumed) == (True, True)
    return first, second, third


def exchanges(events: Iterable[Any]) -> dict[str, int]:
    """How many of each connection came out."""
    found: dict[str, int] = {}
    for event in events:
        if isinstance(event, Exchange) and event.missing is None:
            found[event.client] = found.get(event.client, 0) + 1
    return found


@pytest.mark.parametrize("tickets", [True, False])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("stored", [True, False])
def test_a_secret_frees_also_those_that_resume_its_session(
    tickets: bool, order: tuple[int, ...], stored: bool
) -> None:
    talks = family(tickets)
    items: list[Item] = [each for number in order for each in wire(number, talks[number].flights)]
    items.append(Secrets(TLS_KEY_LOG, talks[0].key_log))
    found = exchanges(fed(items, Dissector(), stored))
    assert sorted(found.values()) == [2, 3, 4]


@pytest.mark.parametrize("tickets", [True, False])
def test_a_session_that_is_taught_by_packets_frees_those_that_wait_for_it(tickets: bool) -> None:
    """The capture has the resumed connection first, as of two interfaces may be."""
    first, second, _ = family(tickets)
    secrets = TlsSecrets()
    secrets.add(first.key_log)
    items = wire(1, second.flights) + wire(0, first.flights)
    found = exchanges(fed(items, Dissector(secrets=secrets)))
    assert sorted(found.values()) == [2, 3]


# -- nothing stays dark -----------------------------------------------------------------------------


def tried_everywhere(self: Awaiting, told: Iterable[bytes], packet: int) -> Iterator[Any]:
    """As it was before there was an index: whatever is told, all that wait try again, by their numbers."""
    for conversation in sorted(self.__dict__.get("all", ()), key=lambda each: each.number):
        if conversation.waits_for_secrets:
            yield conversation, conversation.retry(packet)
    self._secrets.take_taught()


def note_all(self: Awaiting, conversation: Conversation) -> None:
    self.__dict__.setdefault("all", set()).add(conversation)


def scene(randomly: Random) -> list[Item]:
    """Connections side by side, some of them damaged; their secrets, some of them left out, at any place."""
    talks = [*family(True), *family(False)]
    streams: list[list[Item]] = []
    known: list[bytes] = [told(5_000 + number).data for number in range(5)]
    for number, each in enumerate(randomly.sample(talks, 4)):
        is_damaged = randomly.random() < 0.3
        streams.append(
            [*wire(number, mutate.damaged(each.flights, randomly) if is_damaged else each.flights)]
        )
        known += [line + b"\n" for line in each.key_log.splitlines() if randomly.random() < 0.6]
    randomly.shuffle(known)
    streams += [[Secrets(TLS_KEY_LOG, line)] for line in known]
    items: list[Item] = []
    while streams:
        one, count = randomly.choice(streams), randomly.randint(1, 20)
        items += one[:count]
        del one[:count]
        streams = [stream for stream in streams if stream]
    return items


@pytest.mark.parametrize("seed", range(60))
def test_nothing_stays_dark_that_comes_to_light_when_all_is_tried_with_every_secret(seed: int) -> None:
    items = scene(Random(seed))
    found = exchanges(fed(items, Dissector()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Awaiting, "retry", tried_everywhere)
        patch.setattr(Awaiting, "note", note_all)
        wanted = exchanges(fed(items, Dissector()))
    assert {each for each, count in wanted.items() if found.get(each, 0) < count} == set()
