"""Dissects a capture in one call, for tests of the results."""

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
    """All events of a capture, in the order in which they are complete.

    :param names: the names of an earlier pass over the same capture, which then apply from its start.
    :param secrets: decrypt TLS, beside the secrets in the capture.
    """
    dissector = Dissector(limits, broker_ports, names, secrets=secrets)
    for item in items:
        yield from dissector.feed(item)
    yield from dissector.close()
