"""Events and the state of the capture ─► metrics for Prometheus, over HTTP.

Statistics do the counting. Their columns declare the metrics (:class:`~kdissect.analysis.declared.Metric`).
Their rows are read at each request.

Label values come from the wire, so anybody can choose them. Only the first client ids, topics and errors
become label values, up to a limit. All others count together as ``other``; a value that is not on the wire is
``none``. Times are seconds.
"""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.declared import COUNTER, DURATION, HISTOGRAM, Declared, Metric
from kdissect.analysis.first_names import FirstNames
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.fold_set import Together
from kdissect.dissect import Event
from kdissect.insight.finding import Finding
from kdissect.limits import DEFAULTS, Limits
from kdissect.live.journal import Status
from kdissect.present.sanitise import sanitise

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

MOST_VALUES = 100
"""The most different values of one label."""
LONGEST_VALUE = 200
"""The most characters of a value."""
NONE = "none"
DEFAULT_ADDRESS = "127.0.0.1"
_GROWING = (COUNTER, HISTOGRAM)


class Metrics:
    """Counts events; :meth:`serve` answers requests.

    :param status: returns the status of the capture.
    :param statistics: the statistics whose columns may declare metrics.
    :raises ImportError: prometheus_client is not installed.
    """

    def __init__(
        self,
        status: Callable[[], Status],
        most_values: int = MOST_VALUES,
        limits: Limits = DEFAULTS,
        statistics: Iterable[type[Statistic]] | None = None,
    ) -> None:
        from prometheus_client import CollectorRegistry, Gauge

        self.registry = CollectorRegistry()
        self._known: set[tuple[str, str]] = set()
        """Ids and severities that were reported."""
        self._findings = Gauge(
            "kdissect_findings",
            "Findings that are not over (kdissect explain).",
            ("id", "severity"),
            registry=self.registry,
        )
        self._counted = _StatisticMetrics(
            STATISTICS.values() if statistics is None else statistics, limits, most_values
        )
        self.registry.register(self._counted)
        self.registry.register(_CaptureMetrics(status))

    def feed(self, event: Event) -> None:
        """Count an event."""
        self._counted.feed(event)

    def know(self, findings: Iterable[Finding]) -> None:
        """Take in the current findings. Earlier findings that are not among them are over."""
        counts = Counts((each.id, each.severity) for each in findings if each.resolved_ns is None)
        self._known |= set(counts)
        for id, severity in self._known:
            self._findings.labels(id, severity).set(counts[id, severity])

    def serve(self, address: str, port: int) -> Callable[[], None]:
        """Answer requests on a port from now on; return the function that ends that.

        :raises OSError: the port is taken.
        """
        return served(self.registry, address, port)


def served(registry: CollectorRegistry, address: str, port: int) -> Callable[[], None]:
    """Answer requests for the registered metrics on a port; return the function that ends that.

    :raises OSError: the port is taken.
    """
    from prometheus_client import start_http_server

    server, thread = start_http_server(port, address, registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop


class _MetricColumn(NamedTuple):
    """A column with a metric."""

    column: Declared
    metric: Metric


Labels = tuple[tuple[str, str], ...]


class _StatisticMetrics:
    """Statistics with columns that declare metrics, and these metrics. One thread feeds, others read."""

    def __init__(self, statistics: Iterable[type[Statistic]], limits: Limits, most_values: int) -> None:
        self._names = FirstNames(most_values)
        self._lock = Lock()
        self._created: dict[tuple[str, Labels], float] = {}
        """When a metric first had a value with these labels."""
        told: dict[tuple[type[Statistic], tuple[str, ...]], list[_MetricColumn]] = {}
        for kind in statistics:
            if not kind.is_deep:
                for column in kind.columns:
                    for metric in column.metrics:
                        told.setdefault((kind, _how(kind, metric)), []).append(_MetricColumn(column, metric))
        self._columns = [(kind.from_option(limits, how), each) for (kind, how), each in told.items()]
        for fold, _ in self._columns:
            fold.keep_first(self._names)
        self._together = Together(fold for fold, _ in self._columns)

    def feed(self, event: Event) -> None:
        with self._lock:
            self._together.feed(event)

    def collect(self) -> Iterable[Any]:
        """Called by Prometheus' library."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        kinds = {COUNTER: CounterMetricFamily, HISTOGRAM: HistogramMetricFamily}
        families: dict[str, Any] = {}
        for metric, values in self._values():
            name = f"kdissect_{metric.name}"
            family = families.get(name)
            if family is None:
                family = families[name] = kinds.get(metric.kind, GaugeMetricFamily)(name, metric.about)
            for labels, value in values.items():
                self._add(family, metric, labels, value)
        return families.values()

    def _values(self) -> list[tuple[Metric, dict[Labels, list[float]]]]:
        """The values of each metric, by labels: one value, or the buckets and the total of a histogram."""
        out: list[tuple[Metric, dict[Labels, list[float]]]] = []
        with self._lock:  # no thread may feed while rows are made
            for fold, told in self._columns:
                rows = fold.result()
                out += [(each.metric, self._summed(each, rows)) for each in told]
        return out

    def _summed(self, told: _MetricColumn, rows: Iterable[Row]) -> dict[Labels, list[float]]:
        column, metric = told
        out: dict[Labels, list[float]] = {}
        for row in rows:
            values = _values_of(row, column, metric)
            if values is not None and (any(values) or metric.tells_zero or metric.kind not in _GROWING):
                labels = (*self._labels(row, metric), *metric.always)
                before = out.get(labels)
                out[labels] = values if before is None else list(map(sum, zip(before, values, strict=True)))
        return out

    def _labels(self, row: Row, metric: Metric) -> Iterator[tuple[str, str]]:
        for label, column in metric.labels:
            name = self._names.name(column, None if row[column] is None else str(row[column]))
            yield label, NONE if name is None else sanitise(name, LONGEST_VALUE)

    def _add(self, family: Any, metric: Metric, labels: Labels, values: list[float]) -> None:
        by_name = dict(labels)
        if metric.kind not in _GROWING:
            family.add_sample(family.name, by_name, values[0])
            return
        created = self._created.setdefault((family.name, labels), time.time())
        if metric.kind == COUNTER:
            family.add_sample(f"{family.name}_total", by_name, values[0])
        else:
            *counts, total = values
            so_far = 0.0
            ends = [*(str(end / SECOND) for end in metric.ends_ns), "+Inf"]
            for end, count in zip(ends, counts, strict=True):
                so_far += count
                family.add_sample(f"{family.name}_bucket", {**by_name, "le": end}, so_far)
            family.add_sample(f"{family.name}_count", by_name, so_far)
            family.add_sample(f"{family.name}_sum", by_name, total)
        family.add_sample(f"{family.name}_created", by_name, created)


def _how(kind: type[Statistic], metric: Metric) -> tuple[str, ...]:
    """The groupings of a statistic that a metric needs."""
    columns = {column for _, column in metric.labels}
    return tuple(each for each in kind.groupings if each in columns)


def _values_of(row: Row, column: Declared, metric: Metric) -> list[float] | None:
    value = row[column.name]
    if value is None:
        return None
    if metric.kind == HISTOGRAM:
        return [*value, row[metric.total] / SECOND]
    return [value / SECOND if column.unit == DURATION else value]


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

    :raises ValueError: the text has another form.
    """
    address, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) < 65_536:
        raise ValueError(f"{text}: the form is :PORT or ADDRESS:PORT")
    return address.removeprefix("[").removesuffix("]") or DEFAULT_ADDRESS, int(port)
