"""Exchanges and the state of the capture ─► metrics for Prometheus, over HTTP.

The wire, not kdissect, chooses names. So only the first client ids, topics and errors become label values, up
to a limit. All others count together as ``other``; what is not on the wire is ``none``. Times are seconds.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable
from typing import Any

from kdissect.exchange import Exchange
from kdissect.insight.finding import Finding
from kdissect.live.journal import Status
from kdissect.present.sanitise import sanitise

MOST_VALUES = 100
"""Different values of one label."""
LONGEST_VALUE = 200
"""Characters."""
OTHER, NONE = "other", "none"
DEFAULT_ADDRESS = "127.0.0.1"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class _Values:
    """The values of a label, bounded in number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str | None, str] = {None: NONE}

    def __call__(self, value: str | None) -> str:
        found = self._known.get(value)
        if found is None:
            if len(self._known) > self._most:
                return OTHER
            assert value is not None
            found = self._known[value] = sanitise(value, LONGEST_VALUE)
        return found


class Metrics:
    """Counts; :meth:`serve` lets others ask.

    :param status: tells how the capture goes, when it is asked.
    :raises ImportError: prometheus_client is not installed.
    """

    def __init__(self, status: Callable[[], Status], most_values: int = MOST_VALUES) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self._known: set[tuple[str, str]] = set()
        """Ids and severities that were told."""
        self._apis, self._clients = _Values(most_values), _Values(most_values)
        self._topics, self._errors = _Values(most_values), _Values(most_values)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"kdissect_{name}", meaning, labels, registry=self.registry)

        self._requests = counter("requests", "Requests seen.", "api")
        self._responses = counter("errors", "Responses with an error.", "api", "error", "class")
        self._bytes = counter("bytes", "Bytes of messages.", "api", "direction")
        self._of_clients = counter("client_requests", "Requests by client id.", "client")
        self._client_bytes = counter("client_bytes", "Bytes of messages by client id.", "client", "direction")
        self._of_topics = counter("topic_requests", "Exchanges that name a topic.", "topic", "api")
        self._record_bytes = counter("topic_record_bytes", "Bytes of record sets.", "topic", "api")
        self._faults = counter("faults", "Faults in exchanges.", "layer")
        self._findings = Gauge(
            "kdissect_findings",
            "Findings that are not over (kdissect explain).",
            ("id", "severity"),
            registry=self.registry,
        )
        self._latency = Histogram(
            "kdissect_latency_seconds",
            "From the request's last byte to the response's first.",
            ("api",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.registry.register(_CaptureMetrics(status))

    def add(self, exchange: Exchange) -> None:
        """Count an exchange."""
        api, client = self._apis(exchange.api), self._clients(exchange.client_id)
        if exchange.request is not None:
            self._requests.labels(api).inc()
            self._of_clients.labels(client).inc()
        for direction, size in (("request", exchange.request_size), ("response", exchange.response_size)):
            if size is not None:
                self._bytes.labels(api, direction).inc(size)
                self._client_bytes.labels(client, direction).inc(size)
        if exchange.error is not None:
            grave = exchange.error_class or NONE
            self._responses.labels(api, self._errors(exchange.error), grave).inc()
        if exchange.latency_ns is not None:
            self._latency.labels(api).observe(exchange.latency_ns / 1e9)
        for topic in exchange.topics:
            self._of_topics.labels(self._topics(topic), api).inc()
        for place in exchange.record_sets():
            topic = self._topics(place.topic or place.topic_id)
            self._record_bytes.labels(topic, api).inc(len(place.data))
        for fault in exchange.faults:
            self._faults.labels(fault.layer).inc()

    def know(self, findings: Iterable[Finding]) -> None:
        """What is found now; what was found before is over where it is not among it."""
        counts = Counts((each.id, each.severity) for each in findings if each.resolved_ns is None)
        self._known |= set(counts)
        for id, severity in self._known:
            self._findings.labels(id, severity).set(counts[id, severity])

    def serve(self, address: str, port: int) -> Callable[[], None]:
        """Answer on a port from now on; gives what ends that.

        :raises OSError: the port is taken.
        """
        from prometheus_client import start_http_server

        server, thread = start_http_server(port, address, self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop


class _CaptureMetrics:
    """The state of the capture, as metrics."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterable[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = self._status()
        counted = (
            ("packets", "Packets that passed the capture filter.", status.received),
            ("packets_dropped", "Packets that the system dropped.", status.dropped),
            ("packets_lost", "Packets that could not be written.", status.lost),
        )
        for name, meaning, value in counted:
            yield CounterMetricFamily(f"kdissect_{name}", meaning, value=value)
        yield GaugeMetricFamily("kdissect_ring_fill", "Share of the ring that waits.", value=status.fill)


def address_of(text: str) -> tuple[str, int]:
    """``:9464``, ``9464``, ``0.0.0.0:9464`` as address and port.

    :raises ValueError: it is neither.
    """
    address, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) < 65_536:
        raise ValueError(f"{text}: the form is :PORT or ADDRESS:PORT")
    return address.removeprefix("[").removesuffix("]") or DEFAULT_ADDRESS, int(port)
