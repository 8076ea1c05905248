"""What a capture holds, in one call: for tests that look at what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.capture.reader import Item
from kdissect.dissect import Dissector, Event
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import TopicNames
from kdissect.tls.keylog import TlsSecrets


def dissect(
    items: Iterable[Item],
    limits: Limits = DEFAULTS,
    broker_ports: frozenset[int] = frozenset(),
    names: TopicNames | None = None,
    secrets: TlsSecrets | None = None,
) -> Iterator[Event]:
    """Everything that a capture holds, in the order in which it is complete.

    :param names: those of an earlier pass over the same capture, which then count from its start.
    :param secrets: decrypt TLS, beside those that the capture has.
    """
    dissector = Dissector(limits, broker_ports, names, secrets=secrets)
    for item in items:
        yield from dissector.feed(item)
    yield from dissector.close()
