"""Nothing depends on port numbers, or on who was seen to open the connection."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Dissector, Event
from kdissect.limits import DEFAULTS
from kdissect.model import ACK, SYN, Endpoint, Fault, Packet, Secrets, Segment, endpoint_text
from tests.amount import some
from tests.lab import CASES, Case, Dissected, dissected_case, sorted_out


class Rewriter:
    """Gives every endpoint of a capture another port; the same endpoint always the same."""

    def __init__(self, name: str) -> None:
        self.ports: dict[Endpoint, Endpoint] = {}
        self._free = list(range(1, 65_536))
        random.Random(name).shuffle(self._free)

    def port(self, endpoint: Endpoint) -> Endpoint:
        if endpoint not in self.ports:
            self.ports[endpoint] = endpoint[:-2] + self._free.pop().to_bytes(2, "big")
        return self.ports[endpoint]

    def change(self, segment: Segment) -> Segment | None:
        return segment

    def events(self, items: Iterable[Packet | Secrets | Fault]) -> Iterator[Event]:
        """What the pipeline says of the changed segments."""
        reader, dissector = SegmentReader(DEFAULTS), Dissector()
        for item in items:
            if not isinstance(item, Packet):
                yield from dissector.feed(item)
                continue
            segment = reader.feed(item)
            if not isinstance(segment, Segment):
                yield from (segment,) if segment is not None else ()
                continue
            source, destination = self.port(segment.source), self.port(segment.destination)
            changed = self.change(segment._replace(source=source, destination=destination))
            if changed is not None:
                yield from dissector.feed(changed)
        yield from reader.close()
        yield from dissector.close()


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


def rewritten(name: str, rewriter: type[Rewriter]) -> tuple[Dissected, dict[str, str]]:
    """A case's capture through a Rewriter, and which endpoint is which."""
    changing = rewriter(name)
    found = sorted_out(changing.events(Case(name).packets()))
    ports = changing.ports
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
@pytest.mark.parametrize("name", some(CASES, 14, "midstream"))
def test_ports_do_not_matter(name: str, rewriter: type[Rewriter]) -> None:
    found, names = rewritten(name, rewriter)
    assert outline(found, names) == outline(dissected_case(name))
    kafka = sum(connection.protocol == "kafka" for connection in found.connections)
    assert kafka == sum(connection.protocol == "kafka" for connection in dissected_case(name).connections)
