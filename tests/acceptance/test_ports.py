"""Nothing depends on port numbers, or on who was seen to open the connection."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import pytest

from kdissect import dissect
from kdissect.capture.segments import SegmentReader
from kdissect.model import ACK, SYN, Endpoint, Fault, Packet, Segment, endpoint_text
from tests.lab import CASES, Case, Dissected, dissected, dissected_case


class Rewriter(SegmentReader):
    """Gives every endpoint another port; the same endpoint always the same."""

    ports: ClassVar[dict[Endpoint, Endpoint]] = {}
    free: ClassVar[list[int]] = []

    def feed(self, packet: Packet) -> Segment | Fault | None:
        segment = super().feed(packet)
        if isinstance(segment, Segment):
            source, destination = self.port(segment.source), self.port(segment.destination)
            return self.change(segment._replace(source=source, destination=destination))
        return segment

    def port(self, endpoint: Endpoint) -> Endpoint:
        if endpoint not in self.ports:
            self.ports[endpoint] = endpoint[:-2] + self.free.pop().to_bytes(2, "big")
        return self.ports[endpoint]

    def change(self, segment: Segment) -> Segment | None:
        return segment


class WithoutHandshake(Rewriter):
    """Leaves the SYNs out, as where the capture began later."""

    def change(self, segment: Segment) -> Segment | None:
        return None if segment.flags & SYN else segment


class BrokerOpens(Rewriter):
    """Makes the broker's SYN the one that opens the connection, and leaves the client's out."""

    def change(self, segment: Segment) -> Segment | None:
        if segment.flags & (SYN | ACK) == SYN:
            return None
        if segment.flags & SYN:
            return segment._replace(flags=segment.flags & ~ACK, ack=None)
        return segment


def rewritten(
    name: str, rewriter: type[Rewriter], monkeypatch: pytest.MonkeyPatch
) -> tuple[Dissected, dict[str, str]]:
    """A case's capture through a Rewriter, and which endpoint is which."""
    ports: dict[Endpoint, Endpoint] = {}
    free = list(range(1, 65_536))
    random.Random(name).shuffle(free)
    with monkeypatch.context() as patch:
        patch.setattr(Rewriter, "ports", ports)
        patch.setattr(Rewriter, "free", free)
        patch.setattr(dissect, "SegmentReader", rewriter)
        found = dissected(Case(name).packets())
    return found, {endpoint_text(new): endpoint_text(old) for old, new in ports.items()}


def outline(found: Dissected, names: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
    """What must not change."""
    out = []
    for exchange in found.exchanges:
        ends = [exchange.client, exchange.broker]
        if names is not None:
            ends = [names[end] for end in ends]
        messages = [(m.frame.last_packet, m.frame.payload) for m in exchange.messages]
        api = exchange.api, exchange.api_version, exchange.correlation_id
        faults = [fault.kind for fault in exchange.faults]
        out.append((*ends, *api, exchange.missing, messages, exchange.topics, exchange.error, faults))
    return sorted(out, key=repr)


@pytest.mark.parametrize("rewriter", [Rewriter, WithoutHandshake, BrokerOpens])
@pytest.mark.parametrize("name", CASES)
def test_ports_do_not_matter(name: str, rewriter: type[Rewriter], monkeypatch: pytest.MonkeyPatch) -> None:
    found, names = rewritten(name, rewriter, monkeypatch)
    assert outline(found, names) == outline(dissected_case(name))
    kafka = sum(connection.protocol == "kafka" for connection in found.connections)
    assert kafka == sum(connection.protocol == "kafka" for connection in dissected_case(name).connections)
